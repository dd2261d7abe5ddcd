// SPDX-License-Identifier: GPL-2.0
#include <math.h>
#include <stdlib.h>

#include "harness.h"
#include "random.h"
#include "weir/shedder.h"

#define MS 1000000LL
#define SECOND (1000 * MS)
#define COLD 500
#define HOT 950

/* `calls` calls in flight at once, each taking `rt`, then done: a round a bucket of 100 ms. */
static int64_t warm_up(struct weir_shedder *shedder, int64_t now, int rounds, int calls, int64_t rt)
{
	struct weir_ticket *tickets = calloc((size_t)calls, sizeof(*tickets));

	for (int round = 0; round < rounds; round++, now += 100 * MS) {
		for (int i = 0; i < calls; i++)
			CU_ASSERT_TRUE(weir_shedder_allow(shedder, now, COLD, &tickets[i]));
		for (int i = 0; i < calls; i++)
			CU_ASSERT_TRUE(weir_ticket_pass(&tickets[i], now + rt));
	}
	free(tickets);
	return now;
}

static void capacity_is_littles_law(void)
{
	struct weir_shedder *shedder = weir_shedder_new(NULL, 0);
	int64_t now = warm_up(shedder, 0, 20, 40, 50 * MS);

	/* 40 passes in 100 ms at 50 ms each: 20 in flight; scaled by (1000 - cpu) / 100. */
	CU_ASSERT_DOUBLE_EQUAL(weir_shedder_capacity(shedder, now, 900), 20, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(weir_shedder_capacity(shedder, now, 950), 10, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(weir_shedder_capacity(shedder, now, 999), 2, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(weir_shedder_capacity(shedder, now, 5000), 2, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(weir_shedder_capacity(shedder, now, 0), 20, 1e-9);
	/* Aged out: one pass a bucket at the assumed second. */
	CU_ASSERT_DOUBLE_EQUAL(weir_shedder_capacity(shedder, now + 5 * SECOND, 900), 10, 1e-9);
	weir_shedder_free(shedder);
}

/* Surge: start calls and never finish them. Returns how many got in out of `calls`. */
static int surge(struct weir_shedder *shedder, int64_t now, int32_t cpu, int calls,
		 struct weir_ticket *tickets)
{
	int in = 0;

	for (int i = 0; i < calls; i++)
		in += weir_shedder_allow(shedder, now, cpu, &tickets[in]);
	return in;
}

static void only_hot_and_full_sheds(void)
{
	struct weir_shedder *shedder = weir_shedder_new(NULL, 0);
	struct weir_ticket tickets[400];
	int64_t now = warm_up(shedder, 0, 20, 40, 50 * MS);
	int in;

	/* A spike of the CPU with nothing queued; a queue on an idle CPU. */
	CU_ASSERT_EQUAL(surge(shedder, now, HOT, 1, tickets), 1);
	CU_ASSERT_EQUAL(surge(shedder, now, COLD, 200, tickets + 1), 200);
	CU_ASSERT_EQUAL(weir_shedder_flying(shedder), 201);
	/* The average moves only as calls finish; then both are over the capacity of 10. */
	CU_ASSERT_EQUAL(surge(shedder, now, HOT, 10, tickets + 201), 10);
	for (in = 0; in < 50; in++)
		weir_ticket_fail(&tickets[in]);
	CU_ASSERT_EQUAL(surge(shedder, now, HOT, 10, tickets), 0);
	CU_ASSERT_EQUAL(surge(shedder, now, COLD + 399, 10, tickets), 0); /* not cool yet */
	CU_ASSERT_EQUAL(surge(shedder, now + SECOND, COLD, 10, tickets), 10);
	/* Cool: below the threshold it takes all again, however soon. */
	CU_ASSERT_EQUAL(surge(shedder, now, COLD, 10, tickets), 10);
	weir_shedder_free(shedder);
}

static void hot_without_a_refusal_does_not_linger(void)
{
	struct weir_shedder *shedder = weir_shedder_new(NULL, 0);
	struct weir_ticket tickets[400];
	int64_t now = warm_up(shedder, 0, 20, 40, 50 * MS);

	CU_ASSERT_EQUAL(surge(shedder, now, HOT, 1, tickets), 1);
	surge(shedder, now, COLD, 200, tickets + 1);
	for (int i = 0; i < 50; i++)
		weir_ticket_fail(&tickets[i]);
	CU_ASSERT_EQUAL(surge(shedder, now + 1, 899, 10, tickets), 10);
	CU_ASSERT_EQUAL(surge(shedder, now + 1, 900, 10, tickets), 0);
	weir_shedder_free(shedder);
}

/* A server under twice the load that it can take, at full CPU: it keeps working, and recovers. */
static void overload_keeps_some_and_ends(void)
{
	struct weir_shedder *shedder = weir_shedder_new(NULL, 0);
	static struct weir_ticket queue[40000];
	int head = 0, tail = 0, refused = 0, served = 0;
	int64_t now = 0;

	for (; now < 30 * SECOND; now += MS) {
		bool busy = tail - head > 20;
		bool load = now > 5 * SECOND && now < 20 * SECOND;

		for (int i = 0; i < (load ? 2 : now / MS % 2); i++) {
			if (weir_shedder_allow(shedder, now, busy ? 960 : COLD, &queue[tail]))
				tail++;
			else
				refused++;
			CU_ASSERT_FATAL(tail < 40000);
		}
		if (head < tail && weir_ticket_pass(&queue[head], now)) {
			head++;
			served++;
		}
		if (now > 25 * SECOND)
			CU_ASSERT(tail - head <= 1);
	}
	CU_ASSERT(refused > 1000);
	/* 7,500 outside the overload; within it, nearly the 15,000 that it can do. */
	CU_ASSERT(served > 7400 + 14500);
	CU_ASSERT_EQUAL(weir_shedder_flying(shedder), tail - head);
	weir_shedder_free(shedder);
}

static void failures_say_nothing_about_capacity(void)
{
	struct weir_shedder *shedder = weir_shedder_new(NULL, 0);
	struct weir_ticket ticket;
	double before;
	int64_t now = warm_up(shedder, 0, 10, 5, 10 * MS);

	before = weir_shedder_capacity(shedder, now, 900);
	for (int i = 0; i < 100; i++) {
		CU_ASSERT_TRUE(weir_shedder_allow(shedder, now, COLD, &ticket));
		CU_ASSERT_TRUE(weir_ticket_fail(&ticket));
	}
	CU_ASSERT_EQUAL(weir_shedder_capacity(shedder, now, 900), before);
	weir_shedder_free(shedder);
}

static void settles_once(void)
{
	struct weir_shedder *shedder = weir_shedder_new(NULL, 0);
	struct weir_ticket ticket = { 0 };

	CU_ASSERT_FALSE(weir_ticket_fail(&ticket));
	CU_ASSERT_TRUE(weir_shedder_allow(shedder, 0, COLD, &ticket));
	CU_ASSERT_TRUE(weir_ticket_pass(&ticket, 5));
	CU_ASSERT_FALSE(weir_ticket_pass(&ticket, 5));
	CU_ASSERT_FALSE(weir_ticket_fail(&ticket));
	CU_ASSERT_EQUAL(weir_shedder_flying(shedder), 0);
	CU_ASSERT_FALSE(weir_ticket_pass(NULL, 0));
	CU_ASSERT_FALSE(weir_ticket_fail(NULL));
	weir_shedder_free(shedder);
}

static void knobs_beyond_reason_are_defined(void)
{
	static const double odd[] = { 0, -1, NAN, INFINITY, -INFINITY, 1e308 };
	static const int32_t cpus[] = { 0, -1, 1000, 2000, INT32_MAX, INT32_MIN };

	for (int i = 0; i < 36; i++) {
		struct weir_shed shed = weir_shed_new();
		struct weir_shedder *shedder;
		struct weir_ticket tickets[20];
		double capacity;

		shed.beta = odd[i % 6];
		shed.floor = odd[i / 6];
		shed.cpu = cpus[i % 6];
		shed.size = i % 2 ? 0 : INT32_MIN;
		shed.window_ns = shed.cool_ns = i % 3 ? -1 : 0;
		shed.latency_ns = i % 5 ? INT64_MAX : INT64_MIN;
		shedder = weir_shedder_new(&shed, INT64_MIN);
		for (int k = 0; k < 20; k++)
			if (weir_shedder_allow(shedder, k % 7, cpus[k % 6], &tickets[k]))
				k % 2 ? weir_ticket_fail(&tickets[k])
				      : weir_ticket_pass(&tickets[k], INT64_MAX);
		capacity = weir_shedder_capacity(shedder, INT64_MAX, cpus[i / 6]);
		CU_ASSERT(capacity >= 0);
		weir_shedder_free(shedder);
	}
	CU_ASSERT_FALSE(weir_shedder_allow(NULL, 0, 0, NULL));
	CU_ASSERT_EQUAL(weir_shedder_flying(NULL), 0);
	CU_ASSERT_EQUAL(weir_shedder_capacity(NULL, 0, 0), 0);
	weir_shedder_free(NULL);
}

static void preset_is_the_seeds(void)
{
	CU_ASSERT(weir_shed.size == 50 && weir_shed.window_ns == 5 * SECOND);
	CU_ASSERT(weir_shed.cpu == 900 && weir_shed.latency_ns == SECOND);
	CU_ASSERT(weir_shed.beta == 0.9 && weir_shed.cool_ns == SECOND);
	CU_ASSERT(weir_shed.floor == 0.1 && weir_shed_new().cpu == 900);
}

/* `passes` and `fails` single calls, each leaving `flying` others in flight. */
static void settle_singly(struct weir_shedder *shedder, int64_t now, int passes, int fails,
			  int64_t rt)
{
	for (int i = 0; i < passes + fails; i++) {
		struct weir_ticket ticket;

		CU_ASSERT_TRUE(weir_shedder_allow(shedder, now - rt, COLD, &ticket));
		if (i < passes)
			weir_ticket_pass(&ticket, now);
		else
			weir_ticket_fail(&ticket);
	}
}

static void recording_equals_single_calls(void)
{
	struct weir_shedder *one = weir_shedder_new(NULL, 0), *many = weir_shedder_new(NULL, 0);
	struct weir_ticket held[40];
	int64_t now = SECOND;
	uint64_t seed = 4;
	int flying = 0;

	for (int round = 0; round < 1000; round++) {
		int passes = (int)random_below(&seed, 50), fails = (int)random_below(&seed, 5);
		int64_t rt = (int64_t)random_below(&seed, 200 * MS);
		struct weir_shedder_calls calls;

		now += (int64_t)random_below(&seed, 150 * MS);
		if (flying < 40 && random_below(&seed, 20) == 0)
			weir_shedder_allow(one, now, COLD, &held[flying++]);
		settle_singly(one, now, passes, fails, rt);
		calls = (struct weir_shedder_calls){ passes, passes * rt, fails, 0, flying };
		weir_shedder_record(many, now, &calls);
		CU_ASSERT_EQUAL(weir_shedder_capacity(one, now, 950),
				weir_shedder_capacity(many, now, 950));
		CU_ASSERT_EQUAL(weir_shedder_flying(one), weir_shedder_flying(many));
		CU_ASSERT_DOUBLE_EQUAL(weir_shedder_average(one), weir_shedder_average(many),
				       1e-9);
	}
	while (flying)
		weir_ticket_fail(&held[--flying]);
	weir_shedder_free(one);
	weir_shedder_free(many);
}

static void recorded_refusals_keep_it_hot_while_it_cools(void)
{
	struct weir_shedder *shedder = weir_shedder_new(NULL, 0);
	struct weir_shedder_calls calls = { 10, 10 * MS, 0, 0, 5 };

	CU_ASSERT_TRUE(weir_shedder_hot(shedder, 0, HOT));
	weir_shedder_record(shedder, 0, &calls);
	CU_ASSERT_FALSE(weir_shedder_hot(shedder, 100 * MS, COLD));
	CU_ASSERT_TRUE(weir_shedder_hot(shedder, 200 * MS, HOT));
	calls.refusals = 1;
	weir_shedder_record(shedder, 200 * MS, &calls);
	CU_ASSERT_TRUE(weir_shedder_hot(shedder, 1100 * MS, COLD));
	CU_ASSERT_FALSE(weir_shedder_hot(shedder, 1200 * MS, COLD));
	CU_ASSERT_FALSE(weir_shedder_hot(shedder, 1100 * MS, COLD));
	weir_shedder_free(shedder);
}

static void recording_takes_any_count(void)
{
	struct weir_shedder *shedder = weir_shedder_new(NULL, 0);
	struct weir_shedder_calls calls = { INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX };

	weir_shedder_record(NULL, 0, &calls);
	weir_shedder_record(shedder, 0, NULL);
	for (int64_t i = 0; i < 100; i++)
		weir_shedder_record(shedder, i * 50 * MS, &calls);
	CU_ASSERT_TRUE(isfinite(weir_shedder_capacity(shedder, 5 * SECOND, 950)));
	calls = (struct weir_shedder_calls){ -1, -1, INT64_MIN, -1, -1 };
	weir_shedder_record(shedder, 20 * SECOND, &calls);
	CU_ASSERT_EQUAL(weir_shedder_flying(shedder), 0);
	CU_ASSERT_FALSE(weir_shedder_hot(NULL, 0, HOT));
	CU_ASSERT_EQUAL(weir_shedder_average(NULL), 0);
	weir_shedder_free(shedder);
}

WEIR_TESTS("shedder", TEST(capacity_is_littles_law), TEST(only_hot_and_full_sheds),
	   TEST(hot_without_a_refusal_does_not_linger), TEST(overload_keeps_some_and_ends),
	   TEST(failures_say_nothing_about_capacity), TEST(settles_once),
	   TEST(knobs_beyond_reason_are_defined), TEST(preset_is_the_seeds),
	   TEST(recording_equals_single_calls),
	   TEST(recorded_refusals_keep_it_hot_while_it_cools), TEST(recording_takes_any_count))
