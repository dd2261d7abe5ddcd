// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <math.h>

#include "harness.h"
#include "random.h"
#include "weir/bucket.h"

#define SECOND 1000000000LL
#define DAY (86400 * SECOND)
#define GBIT (1e9 / 8)

__extension__ typedef __int128 i128;

/* The seed's bucket in exact rationals: tokens are tokens * q * 10^9, the rate is p / q. */
struct model {
	i128 tokens, burst, p, token;
	int64_t latest;
};

static struct model model_new(int64_t p, int64_t q, int64_t burst, int64_t now)
{
	i128 token = (i128)q * SECOND;

	return (struct model){ token * burst, token * burst, p, token, now };
}

static i128 model_at(const struct model *m, int64_t now)
{
	i128 elapsed = now > m->latest ? now - m->latest : 0;
	i128 tokens = m->tokens + elapsed * m->p;

	return tokens > m->burst ? m->burst : tokens;
}

static bool model_take(struct model *m, int64_t now, int64_t halves)
{
	i128 cost = m->token * halves / 2;

	m->tokens = model_at(m, now);
	m->latest = now > m->latest ? now : m->latest;
	if (m->tokens < cost)
		return false;
	m->tokens -= cost;
	return true;
}

static int64_t model_next(const struct model *m, int64_t now, int64_t halves)
{
	i128 cost = m->token * halves / 2, missing = cost - model_at(m, now);

	if (cost > m->burst)
		return WEIR_FOREVER_NS;
	return missing > 0 ? (int64_t)((missing + m->p - 1) / m->p) : 0;
}

/* A gap that lands near or on the instant that decides. */
static int64_t gap(uint64_t *rng, const struct model *m, int64_t now, int64_t halves)
{
	int64_t wait = model_next(m, now, halves);
	int64_t token = (int64_t)(m->token / m->p) + 1;

	switch (random_below(rng, 6)) {
	case 0:
		return 0;
	case 1:
		return wait == WEIR_FOREVER_NS ? 1 : wait;
	case 2:
		return wait == WEIR_FOREVER_NS || !wait ? 0 : wait - 1;
	case 3:
		return (int64_t)random_below(rng, (uint64_t)token * 20);
	default:
		return (int64_t)random_below(rng, (uint64_t)token * 2);
	}
}

static void agrees_with_model(int64_t p, int64_t q, int64_t burst, uint64_t seed)
{
	int64_t now = (int64_t)random_below(&seed, 1000 * SECOND) - 500 * SECOND;
	struct weir_bucket bucket = weir_bucket_new((double)p / (double)q, (double)burst, now);
	struct model m = model_new(p, q, burst, now);
	unsigned int wrong = 0;

	for (int i = 0; i < 2000; i++) {
		int64_t halves =
			1 + (int64_t)random_below(&seed, i % 3 ? 4 : 2 * (uint64_t)burst + 2);
		double n = (double)halves / 2, tokens;

		now += gap(&seed, &m, now, halves);
		tokens = (double)model_at(&m, now) / (double)m.token;
		wrong += fabs(weir_bucket_tokens(&bucket, now) - tokens) > 1e-6;
		wrong += weir_bucket_next(&bucket, now, n) != model_next(&m, now, halves);
		wrong += weir_bucket_take(&bucket, now, n) != model_take(&m, now, halves);
	}
	CU_ASSERT_EQUAL(wrong, 0);
}

static void exact_against_rationals(void)
{
	static const int64_t rates[] = {
		1,    2,     3,	     7,	     10,      11,	97,	    1000,
		1001, 44100, 250000, 999983, 1000000, 14880952, 1000000000, 12500000000,
	};

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		agrees_with_model(rates[i], 1, 1, 11 + i);
		agrees_with_model(rates[i], 1, 3, 23 + i);
		agrees_with_model(rates[i], 1, 50, 37 + i);
	}
	/* Not whole, yet doubles without a remainder. */
	agrees_with_model(1, 2, 5, 91);
	agrees_with_model(7, 8, 2, 92);
	agrees_with_model(3, 1024, 4, 93);
}

/* The core under a flood: how many of `cost` it admits in `span`, asked every `step`. */
static uint64_t flood(const struct weir_bucket_conf *conf, uint64_t start, uint64_t span,
		      uint64_t step, uint64_t cost)
{
	uint64_t tat = 0, next, admitted = 0, ticks = weir_bucket_cost(conf, cost);

	for (uint64_t now = start; now <= start + span; now += step)
		while (weir_bucket_step(tat, conf, now << WEIR_TICK_SHIFT, ticks, &next)) {
			tat = next;
			admitted++;
		}
	return admitted;
}

static void core_keeps_its_rate(void)
{
	static const struct {
		double rate;
		double burst;
		uint32_t grain;
		uint64_t cost, span, step;
		double error; /* tolerated share, below; over the rate: none but the burst */
	} cases[] = {
		{ 1.0 / 86400, 1, 1, 1, 1000 * (uint64_t)DAY, (uint64_t)SECOND * 864, 1e-6 },
		{ 1.0 / 3600, 5, 1, 1, 300 * (uint64_t)DAY, (uint64_t)SECOND * 36, 1e-6 },
		{ 3, 3, 1, 1, 100000 * (uint64_t)SECOND, 10000000, 1e-6 },
		{ 1000, 100, 1, 1, 1000 * (uint64_t)SECOND, 1000000, 1e-6 },
		{ 1e6, 1000, 1, 1, (uint64_t)SECOND, 1000, 1e-5 },
		{ 100 * GBIT, 1e6, 64, 1500, 100000000, 100, 1e-6 },
		{ 100 * GBIT, 1e6, 64, 64, 10000000, 100, 2e-3 },
		{ 10 * GBIT, 1e6, 64, 1500, 100000000, 1000, 1e-4 },
		{ 8, 3000, 64, 1500, 1000000 * (uint64_t)SECOND, (uint64_t)SECOND, 1e-6 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct weir_bucket_conf conf;
		double most, admitted;

		CU_ASSERT_EQUAL_FATAL(
			weir_bucket_conf_init(&conf, cases[i].rate, cases[i].burst, cases[i].grain),
			0);
		admitted = (double)flood(&conf, 600 * (uint64_t)DAY, cases[i].span, cases[i].step,
					 cases[i].cost) *
			   (double)cases[i].cost;
		most = cases[i].burst + cases[i].rate * (double)cases[i].span / SECOND;
		CU_ASSERT(admitted <= most * (1 + 1e-9) + cases[i].burst / 64);
		CU_ASSERT(admitted >= most * (1 - cases[i].error) - 2 * (double)cases[i].cost);
	}
}

static void fresh_burst_to_the_token(void)
{
	static const double rates[] = { 1.0 / 86400, 0.1, 1, 3, 7, 10, 999983, 14880952, 1e9 };
	static const int bursts[] = { 1, 2, 3, 7, 100, 4099 };

	for (size_t r = 0; r < sizeof(rates) / sizeof(rates[0]); r++)
		for (size_t b = 0; b < sizeof(bursts) / sizeof(bursts[0]); b++) {
			struct weir_bucket_conf conf;
			struct weir_bucket bucket = weir_bucket_new(rates[r], bursts[b], 5);
			uint64_t tat = 0, now = DAY << WEIR_TICK_SHIFT, next;
			int core = 0, face = 0;

			if (weir_bucket_conf_init(&conf, rates[r], bursts[b], 1) == -ERANGE)
				continue;
			while (weir_bucket_step(tat, &conf, now, weir_bucket_cost(&conf, 1),
						&next)) {
				tat = next;
				core++;
			}
			while (weir_bucket_take(&bucket, 5, 1))
				face++;
			CU_ASSERT_EQUAL(core, bursts[b]);
			CU_ASSERT_EQUAL(face, bursts[b]);
			CU_ASSERT_FALSE(weir_bucket_take(
				&bucket, 5 + weir_bucket_next(&bucket, 5, 1) - 1, 1));
			CU_ASSERT_TRUE(
				weir_bucket_take(&bucket, 5 + weir_bucket_next(&bucket, 5, 1), 1));
		}
}

static void idle_holds_no_more_than_the_burst(void)
{
	static const int64_t days[] = { 7, 30, 600, 36500 };

	for (size_t i = 0; i < sizeof(days) / sizeof(days[0]); i++) {
		struct weir_bucket bucket = weir_bucket_new(12.5e9, 4e9, 0);
		int64_t now = days[i] * DAY;

		CU_ASSERT_TRUE(weir_bucket_take(&bucket, 0, 4e9));
		CU_ASSERT_EQUAL(weir_bucket_tokens(&bucket, now), 4e9);
		CU_ASSERT_FALSE(weir_bucket_take(&bucket, now, 4e9 + 1));
		CU_ASSERT_TRUE(weir_bucket_take(&bucket, now, 4e9));
		CU_ASSERT_FALSE(weir_bucket_take(&bucket, now, 1));
	}
}

static void core_wait_is_the_instant(void)
{
	uint64_t rng = 7, tat = 0, next, now = 1, wrong = 0;
	struct weir_bucket_conf conf;

	CU_ASSERT_EQUAL_FATAL(weir_bucket_conf_init(&conf, 1000, 20, 1), 0);
	for (int i = 0; i < 20000; i++) {
		uint64_t cost = weir_bucket_cost(&conf, 1 + random_below(&rng, 20)), wait;

		now += random_below(&rng, 16000000 * 3);
		wait = weir_bucket_wait(tat, &conf, now, cost);
		wrong += !weir_bucket_step(tat, &conf, now + wait, cost, &next);
		wrong += wait && weir_bucket_step(tat, &conf, now + wait - 1, cost, &next);
		if (weir_bucket_step(tat, &conf, now, cost, &next))
			tat = next;
	}
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_EQUAL(weir_bucket_wait(tat, &conf, now, conf.burst_ticks + 1), UINT64_MAX);
}

static void core_follows_a_changed_limit(void)
{
	uint64_t now = 16 * (uint64_t)SECOND, tat, next;
	struct weir_bucket_conf slow, fast;

	CU_ASSERT_EQUAL_FATAL(weir_bucket_conf_init(&slow, 1, 100, 1), 0);
	CU_ASSERT_EQUAL_FATAL(weir_bucket_conf_init(&fast, 1000, 100, 1), 0);
	/* Emptied under 1/s: 100 s of debt. Under 1000/s it is empty, and 1 ms later it isn't. */
	tat = now + slow.burst_ticks;
	CU_ASSERT_FALSE(weir_bucket_step(tat, &fast, now, weir_bucket_cost(&fast, 1), &next));
	CU_ASSERT_EQUAL(weir_bucket_wait(tat, &fast, now, weir_bucket_cost(&fast, 1)), 16000000);
	/* The other way: half full is less than that at once, never more than the burst. */
	tat = now + fast.burst_ticks / 2;
	CU_ASSERT_TRUE(weir_bucket_step(tat, &slow, now, weir_bucket_cost(&slow, 99), &next));
	CU_ASSERT_FALSE(weir_bucket_step(next, &slow, now, weir_bucket_cost(&slow, 1), &next));
}

static void core_costs_never_wrap(void)
{
	static const double rates[] = { 1e-4, 1, 1e3, 1e9, 1e10, 1e12 };
	struct weir_bucket_conf conf;

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		uint64_t last = 0;

		CU_ASSERT_EQUAL_FATAL(weir_bucket_conf_init(&conf, rates[i], 2, 1000), 0);
		for (uint64_t n = 1; n; n <<= 1) {
			uint64_t cost = weir_bucket_cost(&conf, n);

			CU_ASSERT(cost >= last && cost > 0 && cost <= WEIR_BUCKET_SPAN_MAX + 1);
			last = cost;
		}
		CU_ASSERT_EQUAL(weir_bucket_cost(&conf, 0), 0);
	}
}

static void conf_refuses_what_it_cannot_keep(void)
{
	struct weir_bucket_conf conf;

	CU_ASSERT_EQUAL(weir_bucket_conf_init(NULL, 1, 1, 1), -EINVAL);
	CU_ASSERT_EQUAL(weir_bucket_conf_init(&conf, 0, 1, 1), -EINVAL);
	CU_ASSERT_EQUAL(weir_bucket_conf_init(&conf, -1, 1, 1), -EINVAL);
	CU_ASSERT_EQUAL(weir_bucket_conf_init(&conf, NAN, 1, 1), -EINVAL);
	CU_ASSERT_EQUAL(weir_bucket_conf_init(&conf, INFINITY, 1, 1), -EINVAL);
	CU_ASSERT_EQUAL(weir_bucket_conf_init(&conf, 1, 0, 1), -EINVAL);
	CU_ASSERT_EQUAL(weir_bucket_conf_init(&conf, 1, NAN, 1), -EINVAL);
	CU_ASSERT_EQUAL(weir_bucket_conf_init(&conf, 1, INFINITY, 1), -EINVAL);
	CU_ASSERT_EQUAL(weir_bucket_conf_init(&conf, 1, 1, 0), -EINVAL);
	CU_ASSERT_EQUAL(weir_bucket_conf_init(&conf, 1, 1e12, 1), -ERANGE);
	CU_ASSERT_EQUAL(weir_bucket_conf_init(&conf, 1e-12, 1, 1), -ERANGE);
	CU_ASSERT_EQUAL(weir_bucket_conf_init(&conf, 1e30, 1, 1), -ERANGE);
	CU_ASSERT_EQUAL(weir_bucket_conf_init(&conf, 2.1e9, 1, 1), -ERANGE);
	CU_ASSERT_EQUAL(weir_bucket_conf_init(&conf, 2e9, 1, 1), 0);
	CU_ASSERT_EQUAL(weir_bucket_conf_init(&conf, 1e6, 1e6, 1), 0);
}

static void no_time_passes_backwards(void)
{
	struct weir_bucket bucket = weir_bucket_new(10, 1, SECOND);

	CU_ASSERT_TRUE(weir_bucket_take(&bucket, SECOND, 1));
	CU_ASSERT_FALSE(weir_bucket_take(&bucket, SECOND / 2, 1));
	CU_ASSERT_EQUAL(weir_bucket_tokens(&bucket, INT64_MIN), 0);
	CU_ASSERT_EQUAL(weir_bucket_next(&bucket, SECOND / 2, 1), SECOND / 2 + SECOND / 10);
	CU_ASSERT_FALSE(weir_bucket_take(&bucket, SECOND + SECOND / 10 - 1, 1));
	CU_ASSERT_TRUE(weir_bucket_take(&bucket, SECOND + SECOND / 10, 1));
	/* From one end of the clock to the other. */
	bucket = weir_bucket_new(10, 1, INT64_MIN);
	CU_ASSERT_TRUE(weir_bucket_take(&bucket, INT64_MIN, 1));
	CU_ASSERT_TRUE(weir_bucket_take(&bucket, INT64_MAX, 1));
	CU_ASSERT_EQUAL(weir_bucket_next(&bucket, INT64_MIN, 1), INT64_MAX);
}

static void knobs_beyond_reason_are_defined(void)
{
	struct weir_bucket bucket = weir_bucket_new(0, 2, 0);

	CU_ASSERT_TRUE(weir_bucket_take(&bucket, 0, 2));
	CU_ASSERT_FALSE(weir_bucket_take(&bucket, INT64_MAX, 0.5));
	CU_ASSERT_EQUAL(weir_bucket_next(&bucket, 0, 1), WEIR_FOREVER_NS);
	bucket = weir_bucket_new(NAN, NAN, 0);
	CU_ASSERT_EQUAL(weir_bucket_tokens(&bucket, 0), 1);
	bucket = weir_bucket_new(-5, -5, 0);
	CU_ASSERT_EQUAL(weir_bucket_tokens(&bucket, 0), 1);
	bucket = weir_bucket_new(1e-300, 3, 0);
	CU_ASSERT_TRUE(weir_bucket_take(&bucket, 0, 3));
	CU_ASSERT_EQUAL(weir_bucket_next(&bucket, INT64_MAX, 1), WEIR_FOREVER_NS);
	bucket = weir_bucket_new(INFINITY, 0, 0);
	CU_ASSERT_TRUE(weir_bucket_take(&bucket, 0, 1e15));
	CU_ASSERT_TRUE(weir_bucket_take(&bucket, SECOND, 1e15));
	bucket = weir_bucket_new(1, INFINITY, 0);
	CU_ASSERT(weir_bucket_tokens(&bucket, 0) > 1e9);
	CU_ASSERT_TRUE(weir_bucket_take(&bucket, 0, 1e9));
	CU_ASSERT_EQUAL(weir_bucket_next(&bucket, 0, INFINITY), WEIR_FOREVER_NS);
}

static void costs_beyond_reason_are_defined(void)
{
	struct weir_bucket bucket = weir_bucket_new(10, 10, 0);

	CU_ASSERT_TRUE(weir_bucket_take(&bucket, 0, 0));
	CU_ASSERT_TRUE(weir_bucket_take(&bucket, 0, -3));
	CU_ASSERT_FALSE(weir_bucket_take(&bucket, 0, NAN));
	CU_ASSERT_FALSE(weir_bucket_take(&bucket, 0, INFINITY));
	CU_ASSERT_EQUAL(weir_bucket_tokens(&bucket, 0), 10);
	CU_ASSERT_EQUAL(weir_bucket_next(&bucket, 0, NAN), WEIR_FOREVER_NS);
	CU_ASSERT_EQUAL(weir_bucket_next(&bucket, 0, -1), 0);
	CU_ASSERT_TRUE(weir_bucket_take(&bucket, 0, 1e-300));
	CU_ASSERT_FALSE(weir_bucket_take(&bucket, 0, 10));
	CU_ASSERT_FALSE(weir_bucket_take(NULL, 0, 0));
	CU_ASSERT_EQUAL(weir_bucket_next(NULL, 0, 0), WEIR_FOREVER_NS);
	CU_ASSERT_EQUAL(weir_bucket_tokens(NULL, 0), 0);
}

WEIR_TESTS("bucket", TEST(exact_against_rationals), TEST(core_keeps_its_rate),
	   TEST(fresh_burst_to_the_token), TEST(idle_holds_no_more_than_the_burst),
	   TEST(core_wait_is_the_instant), TEST(core_follows_a_changed_limit),
	   TEST(core_costs_never_wrap), TEST(conf_refuses_what_it_cannot_keep),
	   TEST(no_time_passes_backwards), TEST(knobs_beyond_reason_are_defined),
	   TEST(costs_beyond_reason_are_defined))
