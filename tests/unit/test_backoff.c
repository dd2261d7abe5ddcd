// SPDX-License-Identifier: GPL-2.0
#include <math.h>

#include "harness.h"
#include "random.h"
#include "weir/backoff.h"

#define MS 1000000LL

static struct weir_backoff with(enum weir_jitter_kind kind, double fraction)
{
	struct weir_backoff backoff = weir_backoff_new();

	backoff.attempts = 12;
	backoff.jitter.kind = kind;
	backoff.jitter.fraction = fraction;
	return backoff;
}

static void ceiling_grows_to_the_cap(void)
{
	struct weir_backoff backoff = with(WEIR_JITTER_RIGID, 0);
	int64_t last = 0;

	CU_ASSERT_EQUAL(weir_backoff_ceiling(&backoff, 1), 100 * MS);
	CU_ASSERT_EQUAL(weir_backoff_ceiling(&backoff, 4), 800 * MS);
	CU_ASSERT_EQUAL(weir_backoff_ceiling(&backoff, 5), 1000 * MS);
	for (int32_t retry = -3; retry < 200; retry++) {
		int64_t ceiling = weir_backoff_ceiling(&backoff, retry);

		CU_ASSERT(ceiling >= last && ceiling <= backoff.cap_ns);
		CU_ASSERT_EQUAL(weir_backoff_delay(&backoff, retry, 0.7, 5), ceiling);
		last = ceiling;
	}
	CU_ASSERT_EQUAL(weir_backoff_ceiling(&backoff, INT32_MAX), backoff.cap_ns);
	CU_ASSERT_EQUAL(weir_backoff_ceiling(&backoff, INT32_MIN), 0);
}

/* Every draw's delay lies in [low, high] * ceiling, reaches near both ends, grows with the draw. */
static void bounded(enum weir_jitter_kind kind, double fraction, double low, double high)
{
	struct weir_backoff backoff = with(kind, fraction);
	uint64_t seed = 5;

	for (int32_t retry = 1; retry < 12; retry++) {
		double ceiling = (double)weir_backoff_ceiling(&backoff, retry), sum = 0;

		for (int i = 0; i < 1000; i++) {
			double random = random_unit(&seed);
			int64_t delay = weir_backoff_delay(&backoff, retry, random, 0);

			CU_ASSERT((double)delay >= low * ceiling - 1);
			CU_ASSERT((double)delay <= high * ceiling + 1);
			CU_ASSERT_EQUAL(delay, weir_backoff_delay(&backoff, retry, random, 0));
			CU_ASSERT(delay <= weir_backoff_delay(&backoff, retry, random + 0.01, 0));
			sum += (double)delay;
		}
		CU_ASSERT_DOUBLE_EQUAL(sum / 1000 / ceiling, (low + high) / 2, 0.05);
		CU_ASSERT_EQUAL(weir_backoff_delay(&backoff, retry, 0, 0), llround(low * ceiling));
	}
}

static void jitter_keeps_its_bounds(void)
{
	bounded(WEIR_JITTER_FULL, 0, 0, 1);
	bounded(WEIR_JITTER_EQUAL, 0, 0.5, 1);
	bounded(WEIR_JITTER_SPREAD, 0.2, 0.8, 1.2);
	bounded(WEIR_JITTER_SPREAD, 1, 0, 2);
	bounded(WEIR_JITTER_SPREAD, 7, 0, 2);
	bounded(WEIR_JITTER_SPREAD, -7, 1, 1);
	bounded(WEIR_JITTER_SPREAD, NAN, 1, 1);
	bounded(WEIR_JITTER_RIGID, 0, 1, 1);
}

static void decorrelated_grows_from_where_it_landed(void)
{
	struct weir_backoff backoff = with(WEIR_JITTER_DECORRELATED, 0);
	uint64_t seed = 6;
	int64_t previous = 0;

	for (int i = 0; i < 10000; i++) {
		int64_t most = previous * 3 < backoff.cap_ns ? previous * 3 : backoff.cap_ns;
		int64_t delay =
			weir_backoff_delay(&backoff, 1 + i % 50, random_unit(&seed), previous);

		CU_ASSERT(delay >= backoff.base_ns && delay <= backoff.cap_ns);
		CU_ASSERT(delay <= most || most < backoff.base_ns);
		previous = i % 17 ? delay : 0;
	}
	CU_ASSERT_EQUAL(weir_backoff_delay(&backoff, 2, 0.9, INT64_MAX), backoff.cap_ns);
	CU_ASSERT_EQUAL(weir_backoff_delay(&backoff, 2, 0.9, INT64_MIN), backoff.base_ns);
}

static void schedule_is_its_delays(void)
{
	static const double draws[] = { 0.25, 0.5, 0.75, 0.999, 0.1 };
	enum weir_jitter_kind kinds[] = { WEIR_JITTER_RIGID, WEIR_JITTER_FULL, WEIR_JITTER_EQUAL,
					  WEIR_JITTER_DECORRELATED, WEIR_JITTER_SPREAD };
	int64_t delays[20];

	for (size_t k = 0; k < 5; k++) {
		struct weir_backoff backoff = with(kinds[k], 0.3);
		int64_t previous = 0;

		CU_ASSERT_EQUAL(weir_backoff_schedule(&backoff, draws, 5, delays, 20), 11);
		for (int32_t i = 0; i < 11; i++) {
			previous =
				weir_backoff_delay(&backoff, i + 1, i < 5 ? draws[i] : 0, previous);
			CU_ASSERT_EQUAL(delays[i], previous);
		}
	}
}

static void schedule_writes_what_fits(void)
{
	struct weir_backoff backoff = with(WEIR_JITTER_RIGID, 0);
	int64_t delays[3] = { -1, -1, -1 };

	CU_ASSERT_EQUAL(weir_backoff_schedule(&backoff, NULL, 9, delays, 2), 11);
	CU_ASSERT(delays[0] == 100 * MS && delays[1] == 200 * MS && delays[2] == -1);
	CU_ASSERT_EQUAL(weir_backoff_schedule(&backoff, NULL, 0, NULL, 9), 11);
	backoff.attempts = INT32_MIN;
	CU_ASSERT_EQUAL(weir_backoff_schedule(&backoff, NULL, 0, delays, 3), 0);
	CU_ASSERT_EQUAL(weir_backoff_schedule(NULL, NULL, 0, delays, 3), 2);
}

static void more_counts_the_first_attempt(void)
{
	CU_ASSERT_TRUE(weir_backoff_more(&weir_backoff, 1));
	CU_ASSERT_TRUE(weir_backoff_more(&weir_backoff, 2));
	CU_ASSERT_FALSE(weir_backoff_more(&weir_backoff, 3));
	CU_ASSERT_TRUE(weir_backoff_more(NULL, INT32_MIN));
	CU_ASSERT_FALSE(weir_backoff_more(NULL, INT32_MAX));
}

static void knobs_beyond_reason_are_defined(void)
{
	static const double odd[] = { 0, -2, NAN, INFINITY, -INFINITY, 1e308, 1e-308 };
	static const int64_t spans[] = { 0, -1, INT64_MIN, INT64_MAX };

	for (int i = 0; i < 7 * 4 * 4 * 6; i++) {
		struct weir_backoff backoff = with((enum weir_jitter_kind)(i % 6), odd[i % 7]);
		int64_t ceiling, delay;

		backoff.factor = odd[i / 24 % 7];
		backoff.base_ns = spans[i % 4];
		backoff.cap_ns = spans[i / 4 % 4];
		ceiling = weir_backoff_ceiling(&backoff, 1 + i % 9);
		delay = weir_backoff_delay(&backoff, 1 + i % 9, odd[i / 7 % 7], spans[i / 6 % 4]);
		CU_ASSERT(ceiling >= 0 && ceiling <= (backoff.cap_ns > 0 ? backoff.cap_ns : 0));
		CU_ASSERT(delay >= 0);
	}
	CU_ASSERT_EQUAL(weir_backoff_ceiling(NULL, 2), 200 * MS);
	CU_ASSERT_EQUAL(weir_backoff_delay(NULL, 2, 0, 0), 160 * MS);
}

WEIR_TESTS("backoff", TEST(ceiling_grows_to_the_cap), TEST(jitter_keeps_its_bounds),
	   TEST(decorrelated_grows_from_where_it_landed), TEST(schedule_is_its_delays),
	   TEST(schedule_writes_what_fits), TEST(more_counts_the_first_attempt),
	   TEST(knobs_beyond_reason_are_defined))
