// SPDX-License-Identifier: GPL-2.0
#include "harness.h"
#include "random.h"
#include "weir/period.h"

#define SECOND 1000000000LL
#define DAY (86400 * SECOND)

/* Floor division: the multiple of `period` at or below now. */
static int64_t opening(int64_t now, int64_t period)
{
	int64_t rest = now % period;

	return now - (rest < 0 ? rest + period : rest);
}

static void agrees_with_model(int32_t quota, int64_t length, bool align, uint64_t seed)
{
	struct weir_period period = weir_period_new(quota, length, align);
	int64_t now = -5 * length - 3, end = INT64_MIN;
	int count = 0, wrong = 0;

	for (int i = 0; i < 5000; i++) {
		enum weir_quota want;

		now += (int64_t)random_below(&seed, (uint64_t)length / 4 + 2);
		wrong += weir_period_left(&period, now) != (now < end ? quota - count : quota);
		wrong += weir_period_next(&period, now) != (now < end ? end - now : 0);
		if (now >= end) {
			count = 0;
			end = (align ? opening(now, length) : now) + length;
		}
		want = count < quota - 1    ? WEIR_QUOTA_UNDER
		       : count == quota - 1 ? WEIR_QUOTA_HIT
					    : WEIR_QUOTA_OVER;
		count += count < quota;
		wrong += weir_period_take(&period, now) != want;
	}
	CU_ASSERT_EQUAL(wrong, 0);
}

static void counts_as_the_seed_says(void)
{
	agrees_with_model(1, 10, false, 1);
	agrees_with_model(3, 10, true, 2);
	agrees_with_model(100, 1, true, 3);
	agrees_with_model(5, SECOND, true, 4);
	agrees_with_model(7, DAY, true, 5);
	agrees_with_model(7, 86399999999999, false, 6);
}

static void a_day_ends_at_midnight(void)
{
	struct weir_period period = weir_period_new(1, DAY, true);
	int64_t midnight = 20000 * DAY;

	CU_ASSERT_EQUAL(weir_period_take(&period, midnight - 1), WEIR_QUOTA_HIT);
	CU_ASSERT_EQUAL(weir_period_take(&period, midnight - 1), WEIR_QUOTA_OVER);
	CU_ASSERT_EQUAL(weir_period_next(&period, midnight - 1), 1);
	CU_ASSERT_EQUAL(weir_period_take(&period, midnight), WEIR_QUOTA_HIT);
	CU_ASSERT_EQUAL(weir_period_next(&period, midnight), DAY);
}

static void core_counts_batches_to_the_quota(void)
{
	struct weir_period_conf conf = { .period = 100, .quota = 10 };
	struct weir_period_state state = { 0, 0 };

	CU_ASSERT_EQUAL(weir_period_step(&state, &conf, 5, 11), WEIR_QUOTA_OVER);
	CU_ASSERT_EQUAL(weir_period_step(&state, &conf, 5, 9), WEIR_QUOTA_UNDER);
	CU_ASSERT_EQUAL(weir_period_step(&state, &conf, 5, 2), WEIR_QUOTA_OVER);
	CU_ASSERT_EQUAL(weir_period_peek(&state, &conf, 5, UINT64_MAX), WEIR_QUOTA_OVER);
	CU_ASSERT_EQUAL(weir_period_room(&state, &conf, 5), 1);
	CU_ASSERT_EQUAL(weir_period_step(&state, &conf, 104, 1), WEIR_QUOTA_HIT);
	CU_ASSERT_EQUAL(weir_period_until(&state, &conf, 104), 105);
	CU_ASSERT_EQUAL(weir_period_until(&state, &conf, 105), 0);
	CU_ASSERT_EQUAL(weir_period_peek(&state, &conf, 105, 10), WEIR_QUOTA_HIT);
	CU_ASSERT_EQUAL(state.count, 10);
}

static void core_aligns_to_the_phase(void)
{
	struct weir_period_conf conf = { .period = 100, .phase = 30, .quota = 1, .align = 1 };

	CU_ASSERT_EQUAL(weir_period_ending(&conf, 0), 30);
	CU_ASSERT_EQUAL(weir_period_ending(&conf, 29), 30);
	CU_ASSERT_EQUAL(weir_period_ending(&conf, 30), 130);
	CU_ASSERT_EQUAL(weir_period_ending(&conf, 1029), 1030);
	CU_ASSERT_EQUAL(weir_period_ending(&conf, UINT64_MAX), UINT64_MAX);
}

static void core_follows_a_changed_period(void)
{
	struct weir_period_conf conf = { .period = 1000000, .quota = 5 };
	struct weir_period_state state = { 0, 0 };

	CU_ASSERT_EQUAL(weir_period_step(&state, &conf, 10, 5), WEIR_QUOTA_HIT);
	conf.period = 100;
	CU_ASSERT_EQUAL(weir_period_until(&state, &conf, 20), 120);
	CU_ASSERT_EQUAL(weir_period_step(&state, &conf, 20, 1), WEIR_QUOTA_OVER);
	CU_ASSERT_EQUAL(weir_period_until(&state, &conf, 119), 120);
	CU_ASSERT_EQUAL(weir_period_step(&state, &conf, 120, 1), WEIR_QUOTA_UNDER);
	/* A lowered quota: what was counted stays counted. */
	conf.quota = 1;
	CU_ASSERT_EQUAL(weir_period_room(&state, &conf, 121), 0);
	CU_ASSERT_EQUAL(weir_period_peek(&state, &conf, 121, 1), WEIR_QUOTA_OVER);
}

static void no_time_passes_backwards(void)
{
	struct weir_period period = weir_period_new(2, 10, false);

	CU_ASSERT_EQUAL(weir_period_take(&period, 100), WEIR_QUOTA_UNDER);
	CU_ASSERT_EQUAL(weir_period_take(&period, 3), WEIR_QUOTA_HIT);
	CU_ASSERT_EQUAL(weir_period_next(&period, 3), 107);
	CU_ASSERT_EQUAL(weir_period_take(&period, INT64_MIN), WEIR_QUOTA_OVER);
	CU_ASSERT_EQUAL(weir_period_take(&period, 110), WEIR_QUOTA_UNDER);
}

static void knobs_beyond_reason_are_defined(void)
{
	struct weir_period period = weir_period_new(-1, -1, true);

	CU_ASSERT_EQUAL(weir_period_take(&period, 7), WEIR_QUOTA_OVER);
	CU_ASSERT_EQUAL(weir_period_left(&period, 7), 0);
	CU_ASSERT_EQUAL(weir_period_next(&period, 7), 1);
	period = weir_period_new(1, INT64_MAX, false);
	CU_ASSERT_EQUAL(weir_period_take(&period, INT64_MIN), WEIR_QUOTA_HIT);
	CU_ASSERT_EQUAL(weir_period_take(&period, -2), WEIR_QUOTA_OVER);
	CU_ASSERT_EQUAL(weir_period_take(&period, -1), WEIR_QUOTA_HIT);
	CU_ASSERT_EQUAL(weir_period_take(&period, INT64_MAX - 2), WEIR_QUOTA_OVER);
	CU_ASSERT_EQUAL(weir_period_take(&period, INT64_MAX - 1), WEIR_QUOTA_HIT);
	period = weir_period_new(1, INT64_MAX, true);
	CU_ASSERT_EQUAL(weir_period_take(&period, INT64_MAX - 1), WEIR_QUOTA_HIT);
	CU_ASSERT_EQUAL(weir_period_next(&period, INT64_MIN), INT64_MAX);
	CU_ASSERT_EQUAL(weir_period_take(NULL, 7), WEIR_QUOTA_OVER);
	CU_ASSERT_EQUAL(weir_period_left(NULL, 7), 0);
	CU_ASSERT_EQUAL(weir_period_next(NULL, 7), 0);
}

WEIR_TESTS("period", TEST(counts_as_the_seed_says), TEST(a_day_ends_at_midnight),
	   TEST(core_counts_batches_to_the_quota), TEST(core_aligns_to_the_phase),
	   TEST(core_follows_a_changed_period), TEST(no_time_passes_backwards),
	   TEST(knobs_beyond_reason_are_defined))
