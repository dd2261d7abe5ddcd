// SPDX-License-Identifier: GPL-2.0
#include <stdlib.h>

#include "harness.h"
#include "random.h"
#include "weir/sliding.h"

#define EVENTS 4000

/* How many of the first `count` instants lie in (now - window, now]. */
static int inside(const int64_t *instants, int count, int64_t window, int64_t now)
{
	int found = 0;

	for (int i = 0; i < count; i++)
		found += instants[i] + window > now;
	return found;
}

static void against_every_stamp(int32_t quota, int64_t window, uint64_t seed)
{
	struct weir_sliding *sliding = weir_sliding_new(quota, window);
	static int64_t admitted[EVENTS];
	int64_t now = -3 * window;
	int count = 0, wrong = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(sliding);
	for (int i = 0; i < EVENTS; i++) {
		int room, first;

		now += (int64_t)random_below(&seed, i % 3 ? 3 : (uint64_t)window / 2 + 2);
		room = quota - inside(admitted, count, window, now);
		first = count - quota;
		wrong += weir_sliding_left(sliding, now) != room;
		if (first >= 0)
			wrong += weir_sliding_next(sliding, now) !=
				 (room ? 0 : admitted[first] + window - now);
		wrong += weir_sliding_take(sliding, now) != (room > 0);
		if (room > 0)
			admitted[count++] = now;
	}
	CU_ASSERT_EQUAL(wrong, 0);
	/* The promise itself: any stretch as long as the window, begun at any event. */
	for (int i = quota; i < count; i++)
		CU_ASSERT(admitted[i] - admitted[i - quota] >= window);
	weir_sliding_free(sliding);
}

static void never_more_than_the_quota_in_any_stretch(void)
{
	against_every_stamp(1, 10, 1);
	against_every_stamp(2, 1, 2);
	against_every_stamp(3, 10, 3);
	against_every_stamp(7, 100, 4);
	against_every_stamp(100, 333, 5);
}

static void limit_and_instant_to_the_nanosecond(void)
{
	struct weir_sliding *sliding = weir_sliding_new(3, 1000);

	for (int i = 0; i < 3; i++)
		CU_ASSERT_TRUE(weir_sliding_take(sliding, 500 + i));
	CU_ASSERT_FALSE(weir_sliding_take(sliding, 502));
	CU_ASSERT_EQUAL(weir_sliding_next(sliding, 502), 998);
	CU_ASSERT_FALSE(weir_sliding_take(sliding, 1499));
	CU_ASSERT_TRUE(weir_sliding_take(sliding, 1500));
	CU_ASSERT_FALSE(weir_sliding_take(sliding, 1500));
	weir_sliding_free(sliding);
}

/* The core with batches, a ring longer than the quota and a quota that changes under way. */
static void core_follows_a_changed_quota(void)
{
	struct weir_sliding_conf conf = { .window = 50, .quota = 5, .capacity = 20 };
	struct weir_sliding_state state = { 0 };
	uint64_t ring[20] = { 0 }, stamps[EVENTS * 4], seed = 9, now = 100;
	int count = 0, wrong = 0;

	for (int i = 0; i < EVENTS; i++) {
		uint64_t n = 1 + random_below(&seed, 4), alive = 0;
		bool fits;

		if (i % 50 == 0)
			conf.quota = 1 + (uint32_t)random_below(&seed, 20);
		now += random_below(&seed, 12);
		for (int k = count - 1; k >= 0 && stamps[k] + 50 > now; k--)
			alive++;
		fits = alive + n <= conf.quota;
		wrong += weir_sliding_step(&state, &conf, ring, now, n) != fits;
		for (uint64_t k = 0; fits && k < n; k++)
			stamps[count++] = now;
		wrong += (state.expiry <= now) != (alive + (fits ? n : 0) == 0);
	}
	CU_ASSERT_EQUAL(wrong, 0);
}

static void core_refuses_what_never_fits(void)
{
	struct weir_sliding_conf conf = { .window = 50, .quota = 5, .capacity = 5 };
	struct weir_sliding_state state = { 0 };
	uint64_t ring[5] = { 0 };

	CU_ASSERT_FALSE(weir_sliding_step(&state, &conf, ring, 1, 0));
	CU_ASSERT_FALSE(weir_sliding_step(&state, &conf, ring, 1, 6));
	CU_ASSERT_FALSE(weir_sliding_step(&state, &conf, ring, 1, UINT64_MAX));
	CU_ASSERT_TRUE(weir_sliding_step(&state, &conf, ring, 1, 5));
	conf.quota = 6; /* more than the ring can tell */
	CU_ASSERT_FALSE(weir_sliding_step(&state, &conf, ring, 1000, 1));
}

static void no_time_passes_backwards(void)
{
	struct weir_sliding *sliding = weir_sliding_new(1, 100);

	CU_ASSERT_TRUE(weir_sliding_take(sliding, 1000));
	CU_ASSERT_FALSE(weir_sliding_take(sliding, 10));
	CU_ASSERT_EQUAL(weir_sliding_left(sliding, 10), 0);
	CU_ASSERT_EQUAL(weir_sliding_next(sliding, 10), 1090);
	CU_ASSERT_TRUE(weir_sliding_take(sliding, 1100));
	CU_ASSERT_TRUE(weir_sliding_take(sliding, INT64_MAX));
	CU_ASSERT_FALSE(weir_sliding_take(sliding, INT64_MIN));
	weir_sliding_free(sliding);
	/* Room at the latest instant is room at an earlier one too. */
	sliding = weir_sliding_new(2, 100);
	CU_ASSERT_TRUE(weir_sliding_take(sliding, 1000));
	CU_ASSERT_TRUE(weir_sliding_take(sliding, 1100));
	CU_ASSERT_EQUAL(weir_sliding_next(sliding, 10), 0);
	CU_ASSERT_EQUAL(weir_sliding_left(sliding, 10), 1);
	weir_sliding_free(sliding);
}

static void knobs_beyond_reason_are_defined(void)
{
	static const int32_t none[] = { 0, -1, INT32_MIN };
	struct weir_sliding *sliding;

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		sliding = weir_sliding_new(none[i], 100);
		CU_ASSERT_FALSE(weir_sliding_take(sliding, 1));
		CU_ASSERT_EQUAL(weir_sliding_left(sliding, 1), 0);
		CU_ASSERT_EQUAL(weir_sliding_next(sliding, 1), WEIR_FOREVER_NS);
		weir_sliding_free(sliding);
	}
	sliding = weir_sliding_new(1, -5);
	CU_ASSERT_TRUE(weir_sliding_take(sliding, 1));
	CU_ASSERT_TRUE(weir_sliding_take(sliding, 1));
	weir_sliding_free(sliding);
	sliding = weir_sliding_new(1, INT64_MAX);
	CU_ASSERT_TRUE(weir_sliding_take(sliding, 5));
	CU_ASSERT_FALSE(weir_sliding_take(sliding, INT64_MAX));
	CU_ASSERT_EQUAL(weir_sliding_next(sliding, 6), INT64_MAX - 1);
	weir_sliding_free(sliding);
	CU_ASSERT_FALSE(weir_sliding_take(NULL, 1));
	CU_ASSERT_EQUAL(weir_sliding_left(NULL, 1), 0);
	CU_ASSERT_EQUAL(weir_sliding_next(NULL, 1), WEIR_FOREVER_NS);
	weir_sliding_free(NULL);
}

WEIR_TESTS("sliding", TEST(never_more_than_the_quota_in_any_stretch),
	   TEST(limit_and_instant_to_the_nanosecond), TEST(core_follows_a_changed_quota),
	   TEST(core_refuses_what_never_fits), TEST(no_time_passes_backwards),
	   TEST(knobs_beyond_reason_are_defined))
