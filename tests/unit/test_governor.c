// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "random.h"
#include "weir/governor.h"

#define SECOND 1000000000LL
#define HIGH 0.05
#define LOW 0.01

/* A control as a test can steer it, and the lines that were logged. */
struct bench {
	double committed;
	int push_error, read_error, pushes;
	char lines[64][256];
	int line_count;
	double (*rounds)(double); /* what the control keeps of an offer, NULL: all */
};

static int bench_push(void *context, double offer)
{
	struct bench *bench = context;

	bench->pushes++;
	if (!bench->push_error)
		bench->committed = bench->rounds ? bench->rounds(offer) : offer;
	return bench->push_error;
}

static int bench_read(void *context, double *committed)
{
	struct bench *bench = context;

	*committed = bench->committed;
	return bench->read_error;
}

static void bench_log(void *context, const char *line)
{
	struct bench *bench = context;

	snprintf(bench->lines[bench->line_count++ % 64], 256, "%s", line);
}

static const char *last_line(const struct bench *bench)
{
	return bench->line_count ? bench->lines[(bench->line_count - 1) % 64] : "";
}

static struct weir_governor governor_on(struct bench *bench, double start, double ceiling)
{
	struct weir_governor_conf conf = { start, 1, ceiling, HIGH, LOW, SECOND };
	struct weir_governor_control control = { bench_push, bench_read, bench_log, bench };

	return weir_governor_new(&conf, bench ? &control : NULL, 0, (struct weir_attempts){ 0, 0 });
}

/* One window of `attempts`, of which a share fails. */
static struct weir_decision one(struct weir_governor *governor, uint64_t attempts, double failing)
{
	struct weir_attempts counts = governor->counted;
	uint64_t failed = (uint64_t)llround((double)attempts * failing);

	counts.failure += failed;
	counts.success += attempts - failed;
	return weir_governor_tick(governor, governor->opened_ns + SECOND, counts);
}

static void decide_keeps_its_bounds(void)
{
	uint64_t seed = 8;
	int wrong = 0;

	for (int i = 0; i < 100000; i++) {
		double floor = 1 + (double)random_below(&seed, 20);
		double ceiling = floor + (double)random_below(&seed, 10000);
		double current = floor + random_unit(&seed) * (ceiling - floor);
		double bad = i % 3 ? NAN : floor + random_unit(&seed) * 10000;
		double fraction = random_unit(&seed) * (i % 2 ? 1 : 0.08);
		struct weir_decision d =
			weir_governor_decide(fraction, current, HIGH, LOW, floor, ceiling, bad);

		wrong += d.offer < floor || d.offer > ceiling;
		wrong += d.kind == WEIR_DECISION_HOLD ? d.offer != current
			 : d.kind == WEIR_DECISION_UP ? d.offer <= current || fraction >= LOW
						      : d.offer >= current || fraction <= HIGH;
		/* Never by more than a quarter down or a doubling up; with a memory, never past
		 * 75% of it but in steps of 2%. */
		wrong += d.offer < current * 0.25 || d.offer > current * 2;
		if (d.kind == WEIR_DECISION_UP && !isnan(bad))
			wrong += d.offer > fmax(0.75 * bad, current + fmax(1, bad * 0.02)) + 1e-9;
	}
	CU_ASSERT_EQUAL(wrong, 0);
}

static void decide_backs_off_by_severity(void)
{
	double last = 1000;

	for (double fraction = 0.06; fraction <= 1; fraction += 0.01) {
		struct weir_decision d =
			weir_governor_decide(fraction, 1000, HIGH, LOW, 1, INFINITY, NAN);

		CU_ASSERT_EQUAL(d.kind, WEIR_DECISION_DOWN);
		CU_ASSERT(d.offer <= last);
		last = d.offer;
	}
	CU_ASSERT_EQUAL(last, 250);
}

static void decide_is_defined_for_anything(void)
{
	static const double odd[] = { 0, -1, NAN, INFINITY, -INFINITY, 1, 1e308 };

	for (int i = 0; i < 7 * 7 * 7; i++) {
		struct weir_decision d = weir_governor_decide(odd[i % 7], odd[i / 7 % 7], HIGH, LOW,
							      odd[i / 49], odd[i % 5], odd[i % 3]);

		CU_ASSERT(d.kind != WEIR_DECISION_WAIT);
	}
	CU_ASSERT_EQUAL(weir_governor_decide(NAN, 5, HIGH, LOW, 1, 9, NAN).kind,
			WEIR_DECISION_HOLD);
	CU_ASSERT_EQUAL(weir_governor_decide(0, 50, HIGH, LOW, 1, 9, NAN).offer, 50);
	CU_ASSERT_EQUAL(weir_governor_decide(1, 0.5, HIGH, LOW, 1, 9, NAN).offer, 0.5);
}

static void memory_needs_a_streak(void)
{
	bool clears;

	CU_ASSERT_EQUAL(weir_governor_memory_clear_step(0, true, &clears), 1);
	CU_ASSERT_EQUAL(weir_governor_memory_clear_step(1, true, &clears), 2);
	CU_ASSERT_FALSE(clears);
	CU_ASSERT_EQUAL(weir_governor_memory_clear_step(2, true, &clears), 0);
	CU_ASSERT_TRUE(clears);
	CU_ASSERT_EQUAL(weir_governor_memory_clear_step(2, false, &clears), 0);
	CU_ASSERT_FALSE(clears);
	CU_ASSERT_EQUAL(weir_governor_memory_clear_step(INT32_MIN, true, NULL), 1);
	CU_ASSERT_EQUAL(weir_governor_memory_clear_step(INT32_MAX, true, NULL), 0);
}

/* A target that serves `wall` attempts a window and fails what is over. */
static struct weir_decision against_wall(struct weir_governor *governor, double wall)
{
	double offer = governor->offer;

	return one(governor, (uint64_t)llround(offer * 100),
		   offer > wall ? (offer - wall) / offer : 0);
}

/*
 * Walk against a wall until it is settled, then on. The wall proper is where the fraction
 * passes `high`. Returns the windows it took to stay within 5% below that for good.
 */
static int settle_at(struct weir_governor *governor, double target)
{
	double wall = target / (1 - HIGH);
	int settled = 0, crossed = 0;

	for (int i = 0; i < 400; i++) {
		double before = governor->offer, bad = governor->last_bad;
		struct weir_decision d = against_wall(governor, target);

		/* With a memory that stands, no multiplicative step ends above its safe zone. */
		if (d.kind == WEIR_DECISION_UP && d.offer > before + fmax(1, bad * 0.02) + 1e-9 &&
		    !isnan(governor->last_bad))
			CU_ASSERT(d.offer <= 0.75 * bad + 1e-9);
		if (d.kind == WEIR_DECISION_UP && d.offer > before * 1.2 && d.offer > wall)
			crossed++;
		if (governor->offer < 0.95 * wall || governor->offer > wall + 1e-9)
			settled = i + 1;
	}
	/* Into a wall it doesn't know: once by doubling, and once below 75% of that. */
	CU_ASSERT(crossed <= 2);
	return settled;
}

static void settles_below_a_moving_wall(void)
{
	static const double targets[] = { 1000, 400, 390, 5000, 4000, 100, 250000, 99000, 100 };
	struct weir_governor governor = governor_on(NULL, 2, INFINITY);
	int longest = 0;

	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		int settled = settle_at(&governor, targets[i]);

		longest = settled > longest ? settled : longest;
	}
	CU_ASSERT(longest <= 60);
}

static void robust_target_is_at_the_ceiling_soon(void)
{
	struct weir_governor governor = governor_on(NULL, 1, 1000);
	int windows = 0;

	while (governor.offer < 1000 && windows < 100) {
		one(&governor, 1000, 0);
		windows++;
	}
	CU_ASSERT_EQUAL(windows, 10);
	CU_ASSERT_EQUAL(one(&governor, 1000, 0).kind, WEIR_DECISION_HOLD);
}

static void climb_modes_are_named(void)
{
	struct bench bench = { 0 };
	struct weir_governor governor = governor_on(&bench, 100, INFINITY);

	CU_ASSERT_STRING_EQUAL(last_line(&bench), "start at 100: floor 1, ceiling inf");
	one(&governor, 1000, 0);
	CU_ASSERT_STRING_EQUAL(last_line(&bench), "up 100 -> 200 (climbing): "
						  "attempt failures 0% of 1000, below 1%");
	one(&governor, 1000, 0.8);
	CU_ASSERT_STRING_EQUAL(last_line(&bench),
			       "down 200 -> 50: attempt failures 80% of 1000, above 5%");
	CU_ASSERT_EQUAL(weir_governor_climb(&governor), WEIR_CLIMB_RECLIMBING);
	one(&governor, 1000, 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(last_line(&bench), "up 50 -> 75 (reclimbing)"));
	one(&governor, 1000, 0);
	one(&governor, 1000, 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(last_line(&bench), "up 112.5 -> 150 (reclimbing)"));
	one(&governor, 1000, 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(last_line(&bench), "up 150 -> 154 (probing)"));
	/* One line a movement, none for a hold. */
	CU_ASSERT_EQUAL(bench.line_count, 7);
	one(&governor, 1000, 0.03);
	one(&governor, 0, 0);
	CU_ASSERT_EQUAL(bench.line_count, 7);
}

static void an_outside_writer_is_honoured(void)
{
	struct bench bench = { 0 };
	struct weir_governor governor = governor_on(&bench, 100, 10000);

	bench.committed = 3000;
	CU_ASSERT_EQUAL(one(&governor, 1000, 0).offer, 6000);
	CU_ASSERT_PTR_NOT_NULL(
		strstr(bench.lines[1], "outside writer moved the offer 100 -> 3000"));
	bench.committed = 40;
	CU_ASSERT_EQUAL(one(&governor, 1000, 0.5).offer, 20);
	CU_ASSERT_EQUAL(bench.committed, 20);
	CU_ASSERT_EQUAL(governor.last_bad, 40);
	/* Above the ceiling: not raised, and not pulled back unless it fails. */
	bench.committed = 50000;
	CU_ASSERT_EQUAL(one(&governor, 1000, 0).kind, WEIR_DECISION_HOLD);
	CU_ASSERT_EQUAL(bench.committed, 50000);
	/* A control that keeps whole numbers is no outside writer. */
	bench.committed = 100;
	one(&governor, 1000, 0.03);
	one(&governor, 1000, 0.22);
	bench.line_count = 0;
	bench.committed = floor(bench.committed);
	one(&governor, 1000, 0.03);
	CU_ASSERT_EQUAL(bench.line_count, 0);
}

/* Whichever way: no offer is one that its next step rounds to again, at no wall. */
static void a_control_of_whole_numbers_is_moved_on(void)
{
	double (*const ways[])(double) = { round, floor, ceil };

	for (int i = 0; i < 3 * 300; i++) {
		struct bench bench = { .rounds = ways[i % 3] };
		struct weir_governor governor = governor_on(&bench, 20, 10000);
		double wall = 2 + i / 3;

		for (int window = 0; window < 60; window++)
			one(&governor, 10000,
			    bench.committed > wall ? 1 - wall / bench.committed : 0);
		CU_ASSERT(bench.committed <= 1.2 * wall + 1);
		for (int window = 0; window < 60; window++)
			one(&governor, 10000, 0);
		CU_ASSERT(bench.committed > 9000);
		for (int window = 0; window < 200; window++)
			one(&governor, 10000, 0.06);
		CU_ASSERT(bench.committed <= 2);
		/* Of what it pushed nothing was taken for an outside writer's. */
		for (int line = 0; line < 64; line++)
			CU_ASSERT_PTR_NULL(strstr(bench.lines[line], "outside"));
	}
}

static void an_unconfirmed_push_is_waited_for(void)
{
	struct bench bench = { 0 };
	struct weir_governor governor = governor_on(&bench, 100, 10000);

	one(&governor, 1000, 0);
	bench.read_error = -EINPROGRESS;
	/* Failures of a window in which the offer was not yet in force: not held against it. */
	CU_ASSERT_EQUAL(one(&governor, 1000, 0.9).kind, WEIR_DECISION_HOLD);
	CU_ASSERT_TRUE(isnan(governor.last_bad));
	CU_ASSERT_EQUAL(bench.line_count, 2); /* start, up: to wait is nothing to report */
	bench.read_error = 0;
	CU_ASSERT_EQUAL(one(&governor, 1000, 0).offer, 400);
	CU_ASSERT_EQUAL(bench.pushes, 3);
	bench.read_error = -EIO;
	CU_ASSERT_EQUAL(one(&governor, 1000, 0.9).kind, WEIR_DECISION_HOLD);
	CU_ASSERT_PTR_NOT_NULL(strstr(last_line(&bench), "can't be read"));
}

static void a_refused_push_is_made_again(void)
{
	struct bench bench = { .push_error = -EBUSY, .committed = 5000 };
	struct weir_governor governor = governor_on(&bench, 7, 10000);

	CU_ASSERT_PTR_NOT_NULL(strstr(last_line(&bench), "push of 7 refused"));
	bench.push_error = 0;
	CU_ASSERT_EQUAL(weir_governor_offer(&governor), 5000);
	CU_ASSERT_EQUAL(one(&governor, 1000, 0).offer, 7);
	CU_ASSERT_EQUAL(bench.pushes, 2);
	CU_ASSERT_EQUAL(one(&governor, 1000, 0).offer, 14);
	bench.push_error = -EBUSY;
	CU_ASSERT_EQUAL(one(&governor, 1000, 0).offer, 14);
	/* An outside writer was there first: the old push is dropped. */
	bench.push_error = 0;
	bench.committed = 100;
	CU_ASSERT_EQUAL(one(&governor, 1000, 0).offer, 200);
}

static void windows_are_deltas(void)
{
	struct weir_governor_conf conf = { 10, 1, 1000, HIGH, LOW, SECOND };
	struct weir_attempts counts = { 5000, 5000 };
	struct weir_governor governor = weir_governor_new(&conf, NULL, 100, counts);

	/* A lifetime of 50% failures before it began says nothing. */
	counts.success += 100;
	CU_ASSERT_EQUAL(weir_governor_tick(&governor, 99 + SECOND, counts).kind,
			WEIR_DECISION_WAIT);
	CU_ASSERT_EQUAL(weir_governor_tick(&governor, 50, counts).kind, WEIR_DECISION_WAIT);
	CU_ASSERT_EQUAL(weir_governor_tick(&governor, 100 + SECOND, counts).offer, 20);
	/* A counter that restarted: hold, and go on from there. */
	counts = (struct weir_attempts){ 3, 0 };
	CU_ASSERT_EQUAL(weir_governor_tick(&governor, 100 + 2 * SECOND, counts).kind,
			WEIR_DECISION_HOLD);
	counts.success += 100;
	CU_ASSERT_EQUAL(weir_governor_tick(&governor, 100 + 3 * SECOND, counts).offer, 40);
}

static void knobs_beyond_reason_are_defined(void)
{
	struct weir_governor_conf conf = { NAN, NAN, NAN, NAN, NAN, -1 };
	struct weir_attempts none = { 0, 0 };
	struct weir_governor governor = weir_governor_new(&conf, NULL, INT64_MAX, none);

	CU_ASSERT_EQUAL(weir_governor_offer(&governor), 1);
	CU_ASSERT_EQUAL(weir_governor_tick(&governor, INT64_MIN, none).kind, WEIR_DECISION_HOLD);
	conf = (struct weir_governor_conf){ 50, -3, -5, HIGH, LOW, 0 };
	governor = weir_governor_new(&conf, NULL, 0, none);
	CU_ASSERT_EQUAL(weir_governor_offer(&governor), 1);
	governor = weir_governor_new(NULL, NULL, 0, none);
	CU_ASSERT_EQUAL(weir_governor_offer(&governor), 1);
	CU_ASSERT_EQUAL(weir_governor_tick(NULL, 0, none).kind, WEIR_DECISION_WAIT);
	CU_ASSERT_EQUAL(weir_governor_offer(NULL), 0);
	CU_ASSERT_EQUAL(weir_governor_climb(NULL), WEIR_CLIMB_CLIMBING);
	CU_ASSERT_STRING_EQUAL(weir_climb_name((enum weir_climb)9), "climbing");
}

WEIR_TESTS("governor", TEST(decide_keeps_its_bounds), TEST(decide_backs_off_by_severity),
	   TEST(decide_is_defined_for_anything), TEST(memory_needs_a_streak),
	   TEST(settles_below_a_moving_wall), TEST(robust_target_is_at_the_ceiling_soon),
	   TEST(climb_modes_are_named), TEST(an_outside_writer_is_honoured),
	   TEST(a_control_of_whole_numbers_is_moved_on), TEST(an_unconfirmed_push_is_waited_for),
	   TEST(a_refused_push_is_made_again), TEST(windows_are_deltas),
	   TEST(knobs_beyond_reason_are_defined))
