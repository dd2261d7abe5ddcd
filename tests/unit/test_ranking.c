// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <time.h>

#include "controller/ranking.h"
#include "fake_dataplane.h"
#include "harness.h"

static struct weir_dataplane fake;
static struct weir_ranking *ranking;
static struct event_base *base;

/* An answer as it came. */
struct got {
	unsigned int times;
	size_t count;
	uint64_t heaviest, span_ns;
};

static void done(void *context, struct weir_top *top, const struct weir_limits_view *limits,
		 uint64_t span_ns)
{
	struct got *got = context;

	CU_ASSERT_EQUAL(limits->count, 2);
	got->times++;
	got->count = top->count;
	got->heaviest = top->count ? top->entries[0].passed + top->entries[0].refused : 0;
	got->span_ns = span_ns;
	weir_top_free(top);
}

/* Limits on slots 3 and 5; 40 keys of the first, weights 1 to 40, and one of the second. */
static void setup(void)
{
	struct weir_limit *first, *second;

	/* More sets than a slice has, so that a walk takes several. */
	fake_dataplane_make(&fake, 16384, 64);
	first = fake_limit_add(&fake, "first", "bucket rate 1pps burst 1", 3);
	second = fake_limit_add(&fake, "second", "bucket rate 1pps burst 1", 5);
	for (unsigned int i = 1; i <= 40; i++) {
		char address[16];

		snprintf(address, sizeof(address), "10.0.0.%u", i);
		fake_key_add(&fake, first, address, i, 0, 0);
	}
	fake_key_add(&fake, second, "10.0.0.1", 500, 0, 0);
	base = event_base_new();
	CU_ASSERT_EQUAL_FATAL(weir_ranking_new(&ranking, base, &fake), 0);
}

static void teardown(void)
{
	weir_ranking_free(ranking);
	event_base_free(base);
	fake_dataplane_free(&fake);
}

static void run_until(const unsigned int *times)
{
	for (int i = 0; i < 10000 && !*times; i++)
		event_base_loop(base, EVLOOP_ONCE);
}

static void one_walk_answers_everybody(void)
{
	struct got all = { 0 }, one = { 0 }, none = { 0 };

	setup();
	CU_ASSERT_EQUAL(weir_ranking_ask(ranking, WEIR_NO_LIMIT, 10, false, done, &all), 0);
	CU_ASSERT_EQUAL(weir_ranking_ask(ranking, 3, 50, false, done, &one), 0);
	CU_ASSERT_EQUAL(weir_ranking_ask(ranking, 9, 50, false, done, &none), 0);
	run_until(&all.times);
	CU_ASSERT(all.count == 10 && all.heaviest == 500 && !all.span_ns);
	CU_ASSERT(one.times == 1 && one.count == 40 && one.heaviest == 40);
	CU_ASSERT(none.times == 1 && none.count == 0);
	teardown();
}

static void rates_are_what_came_between_two_walks(void)
{
	struct got first = { 0 }, total = { 0 };

	setup();
	weir_ranking_ask(ranking, WEIR_NO_LIMIT, 10, true, done, &first);
	/* The walk that takes note comes first; a total asked for with it is done after that. */
	weir_ranking_ask(ranking, WEIR_NO_LIMIT, 10, false, done, &total);
	run_until(&total.times);
	for (int i = 0; i < 10; i++)
		event_base_loop(base, EVLOOP_NONBLOCK);
	CU_ASSERT_EQUAL(first.times, 0);
	for (uint32_t set = 0; set < fake.shape.sets; set++) {
		for (int way = 0; way < WEIR_WAYS; way++)
			fake.ledger[set].counts[way].refused += fake.ledger[set].tag[way] ? 3 : 0;
	}
	run_until(&first.times);
	CU_ASSERT(first.count == 10 && first.heaviest == 3);
	CU_ASSERT(first.span_ns >= 900000000 && first.span_ns < 5000000000);
	teardown();
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Bases are taken whether or not somebody asks, so rates of a second need no second. */
static void an_answer_takes_a_walk_and_no_wait(void)
{
	struct got got = { 0 };
	uint64_t asked_ns, begun_ns;

	setup();
	begun_ns = now_ns();
	while (now_ns() - begun_ns < 1300000000)
		event_base_loop(base, EVLOOP_ONCE);
	for (int i = 0; i < 5; i++) {
		got = (struct got){ 0 };
		asked_ns = now_ns();
		weir_ranking_ask(ranking, WEIR_NO_LIMIT, 10, true, done, &got);
		run_until(&got.times);
		if (now_ns() - asked_ns < 300000000)
			break;
	}
	CU_ASSERT(now_ns() - asked_ns < 300000000);
	CU_ASSERT(got.times == 1 && got.span_ns >= 900000000);
	teardown();
}

static void whoever_leaves_gets_no_answer(void)
{
	struct got gone = { 0 }, stays = { 0 };

	setup();
	weir_ranking_ask(ranking, WEIR_NO_LIMIT, 10, false, done, &gone);
	weir_ranking_ask(ranking, WEIR_NO_LIMIT, 20, false, done, &stays);
	/* In the middle of the walk. */
	event_base_loop(base, EVLOOP_ONCE);
	weir_ranking_forget(ranking, &gone);
	run_until(&stays.times);
	CU_ASSERT_EQUAL(stays.count, 20);
	CU_ASSERT_EQUAL(gone.times, 0);
	/* And the end of the ranking frees those who still wait (ASan tells). */
	weir_ranking_ask(ranking, WEIR_NO_LIMIT, 10, true, done, &gone);
	teardown();
	CU_ASSERT_EQUAL(gone.times, 0);
}

static void memory_of_all_askers_is_bounded(void)
{
	struct got got = { 0 };

	setup();
	CU_ASSERT_EQUAL(
		weir_ranking_ask(ranking, 3, WEIR_RANKING_ENTRIES_MAX - 5, false, done, &got), 0);
	CU_ASSERT_EQUAL(weir_ranking_ask(ranking, 3, 6, true, done, &got), -EBUSY);
	CU_ASSERT_EQUAL(weir_ranking_ask(ranking, 3, 5, true, done, &got), 0);
	weir_ranking_forget(ranking, &got);
	CU_ASSERT_EQUAL(weir_ranking_ask(ranking, 3, 6, true, done, &got), 0);
	teardown();
}

WEIR_TESTS("ranking", TEST(one_walk_answers_everybody), TEST(rates_are_what_came_between_two_walks),
	   TEST(an_answer_takes_a_walk_and_no_wait), TEST(whoever_leaves_gets_no_answer),
	   TEST(memory_of_all_askers_is_bounded))
