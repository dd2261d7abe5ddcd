// SPDX-License-Identifier: GPL-2.0
#include "weir/bucket.h"

#include <errno.h>
#include <math.h>

#include "span.h"

__extension__ typedef unsigned __int128 u128;

_Static_assert(sizeof(struct weir_bucket_conf) == 16, "shared with BPF");
_Static_assert(sizeof(struct weir_bucket_state) == 8, "shared with BPF");

/* The longest a burst may stand for, and the most tokens: both in units of their own. */
#define SPAN_UNITS (1ULL << 60)

/* The fewest ticks a take may cost: rounding one up makes it at most an eighth dearer. */
#define TICKS_LEAST 8

int weir_bucket_conf_init(struct weir_bucket_conf *conf, double rate, double burst, uint32_t grain)
{
	double ticks, mantissa, grains, burst_ticks;
	int exponent;

	if (!conf || !(rate > 0) || !(burst > 0) || !isfinite(rate) || !isfinite(burst) || !grain)
		return -EINVAL;
	ticks = (double)(WEIR_NS_PER_SEC << WEIR_TICK_SHIFT) / rate;
	/* Down, not up: where n tokens take a whole number of ticks, the cost is that number. */
	mantissa = floor(ldexp(frexp(ticks, &exponent), 32));
	exponent -= 32;
	if (exponent < -63 || exponent > 28 || ticks * grain < TICKS_LEAST)
		return -ERANGE;
	*conf = (struct weir_bucket_conf){
		.cost_mantissa = (uint32_t)mantissa,
		.cost_right = (uint8_t)(exponent < 0 ? -exponent : 0),
		.cost_left = (uint8_t)(exponent > 0 ? exponent : 0),
	};
	grains = fmax(burst / grain, 1);
	burst_ticks = ceil(grains * (double)weir_bucket_cost(conf, grain));
	if (burst_ticks > (double)WEIR_BUCKET_SPAN_MAX)
		return -ERANGE;
	conf->burst_ticks = (uint64_t)burst_ticks;
	return 0;
}

/* A positive double as mantissa * 2^exponent, the mantissa a whole number below 2^53. */
static uint64_t split(double value, int *exponent)
{
	double fraction = frexp(value, exponent);

	*exponent -= 53;
	return (uint64_t)ldexp(fraction, 53);
}

static u128 gcd(u128 a, u128 b)
{
	while (b) {
		u128 rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/*
 * units_per_token / units_per_ns = 10^9 / rate, as one exact fraction of whole numbers;
 * false if `most` units a token are not enough for it.
 */
static bool scale_exactly(struct weir_bucket *bucket, double rate, uint64_t most)
{
	int exponent;
	u128 per_ns = split(rate, &exponent), per_token = WEIR_NS_PER_SEC, common;

	if (exponent < -90 || exponent > 60)
		return false;
	if (exponent < 0)
		per_token <<= -exponent;
	else
		per_ns <<= exponent;
	common = gcd(per_ns, per_token);
	per_ns /= common;
	per_token /= common;
	if (per_token > most || per_ns > SPAN_UNITS)
		return false;
	/* Finer still, as far as there is room: then fractions of a token are whole too. */
	while (per_token <= most / 2 && per_ns <= SPAN_UNITS / 2) {
		per_token *= 2;
		per_ns *= 2;
	}
	bucket->units_per_ns = (uint64_t)per_ns;
	bucket->units_per_token = (uint64_t)per_token;
	return true;
}

/* The same to within one part in `most`, the token's units rounded up. */
static void scale_nearly(struct weir_bucket *bucket, double rate, uint64_t most)
{
	int exponent, shift;
	u128 mantissa = split(rate, &exponent), units;
	int log = (int)floor(log2((double)most * rate / (double)WEIR_NS_PER_SEC));

	log = log > 60 ? 60 : log < 0 ? 0 : log;
	do {
		shift = log - exponent;
		units = WEIR_NS_PER_SEC;
		if (shift >= 0)
			units = ((units << shift) + mantissa - 1) / mantissa;
		else
			units = (units + (mantissa << -shift) - 1) / (mantissa << -shift);
	} while (units > most && log-- > 0);
	bucket->units_per_ns = 1ULL << (log < 0 ? 0 : log);
	bucket->units_per_token = (uint64_t)units;
}

/* What n tokens, at most the burst, cost in the bucket's units, rounded up. */
static uint64_t cost_units(const struct weir_bucket *bucket, double n)
{
	int exponent;
	u128 product = (u128)split(n, &exponent) * bucket->units_per_token;

	if (exponent >= 0)
		return (uint64_t)(product << exponent);
	if (exponent <= -127)
		return 1;
	return (uint64_t)((product + ((u128)1 << -exponent) - 1) >> -exponent);
}

struct weir_bucket weir_bucket_new(double rate, double burst, int64_t now_ns)
{
	struct weir_bucket bucket = { .latest_ns = now_ns };
	double most = (double)SPAN_UNITS, longest;

	rate = rate > most ? most : rate;
	/* What accrues in the longest span that the units can count. */
	longest = rate > 0 ? most * (rate / (double)WEIR_NS_PER_SEC) : 0;
	if (isnan(burst) || burst == 0)
		burst = rate;
	if (longest >= 1)
		most = fmin(most, longest);
	bucket.burst = burst > 1 ? fmin(burst, most) : 1;
	if (longest < 1)
		bucket.units_per_token = (uint64_t)((double)SPAN_UNITS / bucket.burst);
	else if (!scale_exactly(&bucket, rate, (uint64_t)((double)SPAN_UNITS / bucket.burst)))
		scale_nearly(&bucket, rate, (uint64_t)((double)SPAN_UNITS / bucket.burst));
	bucket.conf.burst_ticks = cost_units(&bucket, bucket.burst);
	return bucket;
}

/* Now on the bucket's axis: units since the latest take. */
static uint64_t units_since(const struct weir_bucket *bucket, int64_t now_ns)
{
	uint64_t elapsed = weir_span_since(now_ns, bucket->latest_ns);

	if (!bucket->units_per_ns)
		return 0;
	/* Twice the longest span: full, whatever the state. */
	if (elapsed > 2 * SPAN_UNITS / bucket->units_per_ns)
		return 2 * SPAN_UNITS;
	return elapsed * bucket->units_per_ns;
}

bool weir_bucket_take(struct weir_bucket *bucket, int64_t now_ns, double n)
{
	uint64_t now, next, tat;
	bool taken = n <= 0;

	if (!bucket)
		return false;
	now = units_since(bucket, now_ns);
	tat = bucket->state.tat;
	if (n > 0 && n <= bucket->burst) {
		taken = weir_bucket_step(tat, &bucket->conf, now, cost_units(bucket, n), &next);
		if (taken)
			tat = next;
	}
	bucket->state.tat = tat > now ? tat - now : 0;
	if (now_ns > bucket->latest_ns)
		bucket->latest_ns = now_ns;
	return taken;
}

int64_t weir_bucket_next(const struct weir_bucket *bucket, int64_t now_ns, double n)
{
	uint64_t wait;

	if (n <= 0 && bucket)
		return 0;
	if (!bucket || !(n <= bucket->burst))
		return WEIR_FOREVER_NS;
	wait = weir_bucket_wait(bucket->state.tat, &bucket->conf, units_since(bucket, now_ns),
				cost_units(bucket, n));
	if (!wait)
		return 0;
	if (!bucket->units_per_ns)
		return WEIR_FOREVER_NS;
	wait = wait / bucket->units_per_ns + (wait % bucket->units_per_ns != 0);
	return weir_span_sum(wait, weir_span_since(bucket->latest_ns, now_ns));
}

double weir_bucket_tokens(const struct weir_bucket *bucket, int64_t now_ns)
{
	uint64_t now, left, per_token, whole;

	if (!bucket)
		return 0;
	now = units_since(bucket, now_ns);
	if (bucket->state.tat <= now)
		return bucket->burst;
	left = bucket->conf.burst_ticks - (bucket->state.tat - now);
	per_token = bucket->units_per_token;
	whole = left / per_token;
	return (double)whole + (double)(left % per_token) / (double)per_token;
}
