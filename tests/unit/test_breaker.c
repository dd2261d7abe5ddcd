// SPDX-License-Identifier: GPL-2.0
#include <math.h>

#include "harness.h"
#include "random.h"
#include "weir/breaker.h"

#define MS 1000000LL
#define SECOND (1000 * MS)

/* A backend under steady traffic; up or down. Returns how many calls were refused. */
struct traffic {
	struct weir_breaker *breaker;
	int64_t now, step;
	uint64_t seed;
	int sent, refused;
};

static void drive(struct traffic *t, int64_t until, bool healthy)
{
	t->sent = t->refused = 0;
	for (; t->now < until; t->now += t->step) {
		struct weir_promise promise;

		t->sent++;
		if (!weir_breaker_allow(t->breaker, t->now, random_unit(&t->seed), &promise))
			t->refused++;
		else if (healthy)
			weir_promise_pass(&promise, t->now);
		else
			weir_promise_fail(&promise, t->now);
	}
}

static void healthy_backend_is_never_refused(void)
{
	struct traffic t = { weir_breaker_new(NULL, 0), 0, 3 * MS, 1, 0, 0 };

	drive(&t, 60 * SECOND, true);
	CU_ASSERT_EQUAL(t.refused, 0);
	CU_ASSERT_EQUAL(weir_breaker_ratio(t.breaker, t.now), 0);
	weir_breaker_free(t.breaker);
}

static void outage_is_shed_but_probed(void)
{
	struct traffic t = { weir_breaker_new(NULL, 0), 0, 10 * MS, 2, 0, 0 };
	int let;

	drive(&t, 60 * SECOND, true);
	drive(&t, 90 * SECOND, false);
	drive(&t, 120 * SECOND, false);
	let = t.sent - t.refused;
	/* Nearly all refused, yet at least one a probe interval let through. */
	CU_ASSERT(let >= 25 && let <= t.sent / 20);
	weir_breaker_free(t.breaker);
}

/* How long after an outage until nothing is refused any more. */
static int64_t recovery(int64_t step, int64_t outage, uint64_t seed)
{
	struct traffic t = { weir_breaker_new(NULL, 0), 0, step, seed, 0, 0 };
	int64_t healed, ns;

	drive(&t, 30 * SECOND, true);
	drive(&t, 30 * SECOND + outage, false);
	CU_ASSERT(weir_breaker_ratio(t.breaker, t.now) > 0.3);
	healed = t.now;
	while (t.now - healed < 600 * SECOND && weir_breaker_ratio(t.breaker, t.now) > 0)
		drive(&t, t.now + 100 * MS, true);
	ns = t.now - healed;
	/* And it stays so. */
	drive(&t, t.now + 20 * SECOND, true);
	CU_ASSERT_EQUAL(t.refused, 0);
	weir_breaker_free(t.breaker);
	return ns;
}

static void recovery_is_bounded(void)
{
	static const int64_t steps[] = { 100 * MS, 20 * MS, 5 * MS, 1 * MS };
	static const int64_t outages[] = { 10 * SECOND, 60 * SECOND, 900 * SECOND };
	int64_t longest = 0;

	for (size_t s = 0; s < sizeof(steps) / sizeof(steps[0]); s++)
		for (size_t o = 0; o < sizeof(outages) / sizeof(outages[0]); o++) {
			int64_t ns;

			if (outages[o] / steps[s] > 200000)
				continue;
			ns = recovery(steps[s], outages[o], 17 + s * 7 + o);
			longest = ns > longest ? ns : longest;
		}
	/* Measured: 12.0 s, with a window of 10 s, however long the outage was. */
	CU_ASSERT(longest > 0 && longest <= 15 * SECOND);
}

static void own_refusals_never_keep_it_shut(void)
{
	struct weir_breaker *breaker = weir_breaker_new(NULL, 0);
	struct weir_promise promise;
	double worst;
	int64_t now = 0;

	for (int i = 0; i < 100; i++)
		if (weir_breaker_allow(breaker, now, 0.999999, &promise))
			weir_promise_fail(&promise, now);
	worst = weir_breaker_ratio(breaker, now);
	CU_ASSERT(worst > 0.9);
	/* A roll of 0 refuses whenever anything would be: only probes pass, and all succeed. */
	for (int64_t probes = 0; now < 60 * SECOND; now += 50 * MS)
		if (weir_breaker_allow(breaker, now, 0, &promise)) {
			CU_ASSERT_TRUE(weir_promise_pass(&promise, now));
			probes++;
		}
	CU_ASSERT(weir_breaker_ratio(breaker, now) < worst);
	/* With ordinary rolls again it is open within the bound. */
	struct traffic t = { breaker, now, 50 * MS, 5, 0, 0 };

	drive(&t, now + 30 * SECOND, true);
	CU_ASSERT_EQUAL(weir_breaker_ratio(breaker, t.now), 0);
	weir_breaker_free(breaker);
}

static void protection_spares_the_quiet(void)
{
	struct weir_breaker *breaker = weir_breaker_new(NULL, 0);
	struct weir_promise promise;

	for (int i = 0; i < 5; i++) {
		CU_ASSERT_TRUE(weir_breaker_allow(breaker, i, 0, &promise));
		weir_promise_fail(&promise, i);
	}
	CU_ASSERT_EQUAL(weir_breaker_ratio(breaker, 5), 0);
	CU_ASSERT_TRUE(weir_breaker_allow(breaker, 5, 0, &promise));
	weir_promise_fail(&promise, 5);
	CU_ASSERT_DOUBLE_EQUAL(weir_breaker_ratio(breaker, 6), 1.0 / 7, 1e-12);
	CU_ASSERT_FALSE(weir_breaker_allow(breaker, 6, 1.0 / 7 - 1e-9, &promise));
	weir_breaker_free(breaker);
}

/* A call in the bucket at `second`, let through whatever the drop, and how it ended. */
static void call(struct weir_breaker *breaker, int64_t second, bool success)
{
	struct weir_promise promise;

	CU_ASSERT_TRUE(weir_breaker_allow(breaker, second * SECOND, 1, &promise));
	success ? weir_promise_pass(&promise, second * SECOND)
		: weir_promise_fail(&promise, second * SECOND);
}

static void drop_is_the_formula(void)
{
	struct weir_sre sre = { 2, 1.2, 3, SECOND, 10, 10 * SECOND };
	struct weir_breaker *breaker = weir_breaker_new(&sre, 0);

	/* Failing, then mixed: no run of either kind reaches the head. */
	for (int i = 0; i < 8; i++)
		call(breaker, 0, false);
	call(breaker, 1, true);
	call(breaker, 1, false);
	CU_ASSERT_DOUBLE_EQUAL(weir_breaker_ratio(breaker, SECOND), (10 - 3 - 2.0) / 11, 1e-12);
	/* Two failing buckets at the head: w = 2 - 0.8 * 2 / 10. */
	call(breaker, 2, false);
	call(breaker, 3, false);
	CU_ASSERT_DOUBLE_EQUAL(weir_breaker_ratio(breaker, 3 * SECOND), (12 - 3 - 1.84) / 13,
			       1e-12);
	/* An empty bucket ends no run; three working ones take 3 / 10 off. */
	call(breaker, 5, true);
	call(breaker, 7, true);
	call(breaker, 8, true);
	CU_ASSERT_DOUBLE_EQUAL(weir_breaker_ratio(breaker, 8 * SECOND),
			       (15 - 3 - 2 * 4.0) / 16 * 0.7, 1e-12);
	weir_breaker_free(breaker);
}

static void probe_is_strictly_after_its_interval(void)
{
	struct weir_breaker *breaker = weir_breaker_new(NULL, 0);
	struct weir_promise promise;

	for (int i = 0; i < 50; i++)
		if (weir_breaker_allow(breaker, 0, 0.9999, &promise))
			weir_promise_fail(&promise, 0);
	/* The last admission above was made while the drop was positive: at 0. */
	CU_ASSERT_FALSE(weir_breaker_allow(breaker, SECOND, 0, &promise));
	CU_ASSERT_TRUE(weir_breaker_allow(breaker, SECOND + 1, 0, &promise));
	CU_ASSERT_FALSE(weir_breaker_allow(breaker, SECOND + 2, 0, &promise));
	CU_ASSERT_TRUE(weir_breaker_allow(breaker, SECOND * 2 + 2, 0, &promise));
	weir_breaker_free(breaker);
}

static void settles_once(void)
{
	struct weir_breaker *breaker = weir_breaker_new(NULL, 0);
	struct weir_promise promise = { 0 };
	double before;

	CU_ASSERT_FALSE(weir_promise_fail(&promise, 0));
	for (int i = 0; i < 20; i++) {
		weir_breaker_allow(breaker, 0, 0.9999, &promise);
		weir_promise_fail(&promise, 0);
	}
	before = weir_breaker_ratio(breaker, 0);
	CU_ASSERT_FALSE(weir_promise_fail(&promise, 0));
	CU_ASSERT_FALSE(weir_promise_pass(&promise, 0));
	CU_ASSERT_EQUAL(weir_breaker_ratio(breaker, 0), before);
	CU_ASSERT_FALSE(weir_breaker_allow(breaker, 0, 0, &promise));
	CU_ASSERT_FALSE(weir_promise_pass(&promise, 0));
	CU_ASSERT_FALSE(weir_promise_pass(NULL, 0));
	CU_ASSERT_FALSE(weir_promise_fail(NULL, 0));
	weir_breaker_free(breaker);
}

static void knobs_beyond_reason_are_defined(void)
{
	static const double odd[] = { 0, -1, NAN, INFINITY, -INFINITY, 1e308 };
	struct weir_promise promise;

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]) * 3; i++) {
		struct weir_sre sre = weir_sre_new();
		struct weir_breaker *breaker;
		double ratio;

		*(i % 3 == 0 ? &sre.k : i % 3 == 1 ? &sre.floor : &sre.protection) = odd[i / 3];
		sre.size = -1;
		sre.window_ns = sre.probe_ns = INT64_MIN;
		breaker = weir_breaker_new(&sre, INT64_MAX);
		for (int k = 0; k < 50; k++)
			if (weir_breaker_allow(breaker, k, odd[k % 6], &promise))
				k % 2 ? weir_promise_fail(&promise, k)
				      : weir_promise_pass(&promise, k);
		ratio = weir_breaker_ratio(breaker, INT64_MIN);
		CU_ASSERT(ratio >= 0 && ratio <= 1);
		weir_breaker_free(breaker);
	}
	CU_ASSERT_FALSE(weir_breaker_allow(NULL, 0, 0, &promise));
	CU_ASSERT_EQUAL(weir_breaker_ratio(NULL, 0), 0);
	weir_breaker_free(NULL);
}

static void preset_is_the_seeds(void)
{
	CU_ASSERT(weir_sre.k == 1.5 && weir_sre.floor == 1.1 && weir_sre.protection == 5);
	CU_ASSERT(weir_sre.probe_ns == SECOND && weir_sre.size == 40);
	CU_ASSERT_EQUAL(weir_sre.window_ns, 10 * SECOND);
	CU_ASSERT_EQUAL(weir_sre_new().window_ns, 10 * SECOND);
}

/* A bucket's worth at once is that many single calls. */
static void recording_equals_single_calls(void)
{
	struct weir_breaker *one = weir_breaker_new(NULL, 0), *many = weir_breaker_new(NULL, 0);
	uint64_t seed = 9;
	int64_t now = 0;

	for (int round = 0; round < 2000; round++) {
		int64_t counts[3] = { 0 };

		now += (int64_t)random_below(&seed, 400 * MS);
		for (uint64_t i = random_below(&seed, 30); i > 0; i--) {
			struct weir_promise promise;

			if (!weir_breaker_allow(one, now, random_unit(&seed), &promise))
				counts[2]++;
			else if (random_below(&seed, 3 + (uint64_t)round / 100 % 5))
				counts[0] += weir_promise_pass(&promise, now);
			else
				counts[1] += weir_promise_fail(&promise, now);
		}
		weir_breaker_record(many, now, counts[0], counts[1], counts[2]);
		CU_ASSERT_EQUAL(weir_breaker_ratio(one, now), weir_breaker_ratio(many, now));
	}
	weir_breaker_free(one);
	weir_breaker_free(many);
}

static void recording_takes_any_count(void)
{
	struct weir_breaker *breaker = weir_breaker_new(NULL, 0);

	weir_breaker_record(NULL, 0, 1, 1, 1);
	weir_breaker_record(breaker, 0, INT64_MIN, -1, -1);
	CU_ASSERT_EQUAL(weir_breaker_ratio(breaker, 0), 0);
	for (int64_t i = 0; i < 100; i++)
		weir_breaker_record(breaker, i * 250 * MS, 0, INT64_MAX, INT64_MAX);
	CU_ASSERT_DOUBLE_EQUAL(weir_breaker_ratio(breaker, 99 * 250 * MS), 1, 1e-6);
	for (int64_t i = 100; i < 200; i++)
		weir_breaker_record(breaker, i * 250 * MS, INT64_MAX, 0, 0);
	CU_ASSERT_EQUAL(weir_breaker_ratio(breaker, 199 * 250 * MS), 0);
	weir_breaker_free(breaker);
}

WEIR_TESTS("breaker", TEST(healthy_backend_is_never_refused), TEST(outage_is_shed_but_probed),
	   TEST(recovery_is_bounded), TEST(own_refusals_never_keep_it_shut),
	   TEST(protection_spares_the_quiet), TEST(drop_is_the_formula),
	   TEST(probe_is_strictly_after_its_interval), TEST(settles_once),
	   TEST(knobs_beyond_reason_are_defined), TEST(preset_is_the_seeds),
	   TEST(recording_equals_single_calls), TEST(recording_takes_any_count))
