/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Token bucket, kept as GCRA's single word: the theoretical arrival time (TAT).
 *
 *	tokens = burst - max(0, tat - now) / T		T = the time one token takes
 *	taking n: new = max(tat, now) + n * T, admitted iff new - now <= burst * T
 *
 * Source: ITU-T I.371 annex A (virtual scheduling); the seed's Bucket. The same code runs in
 * BPF and in user space: unsigned 64-bit integers, no clock, no loop, no division by a state.
 *
 * Units. A tick is 1/16 ns; instants are ticks since any epoch that the caller keeps to (the
 * kernel side: boot), so 64 bits hold 36 years. A refusal leaves the state as it was.
 *
 * Exactness. The rate is kept to 32 significant bits (2.4e-10). A cost is rounded up to the
 * tick, so what a stretch of time t admits less than burst + rate * t is under 1/16 ns a take,
 * and it never admits more (weir_bucket_conf_init says what it adds to a burst for that).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define WEIR_TICK_SHIFT 4 /* ticks = nanoseconds << 4 */
#define WEIR_NS_PER_SEC 1000000000ULL

/* The most one take may cost in tokens: keeps every product below 2^64 (32 + 31 bits). */
#define WEIR_BUCKET_COST_MAX 0x7fffffffULL
/* Longest time a burst may stand for, in ticks: 2 years. tat can't wrap before 2^64 - that. */
#define WEIR_BUCKET_SPAN_MAX (1ULL << 60)

/* What an operator says, precomputed. cost(n) = ceil(n * mantissa / 2^right) << left. */
struct weir_bucket_conf {
	uint64_t burst_ticks;	/* burst * T: how far ahead of now the TAT may run */
	uint32_t cost_mantissa; /* T in ticks, 32 significant bits */
	uint8_t cost_right;
	uint8_t cost_left;
	uint16_t reserved;
};

struct weir_bucket_state {
	uint64_t tat; /* ticks; 0, or anything not after now, is a full bucket */
};

/* What n tokens cost in ticks. n above WEIR_BUCKET_COST_MAX counts as that. Never 0 for n > 0. */
static inline uint64_t weir_bucket_cost(const struct weir_bucket_conf *conf, uint64_t n)
{
	uint64_t round = (1ULL << (conf->cost_right & 63)) - 1;
	uint64_t cost;

	if (n > WEIR_BUCKET_COST_MAX)
		n = WEIR_BUCKET_COST_MAX;
	cost = (n * conf->cost_mantissa + round) >> (conf->cost_right & 63);
	/* A product that the left shift would push over the span costs more than any burst. */
	if (cost > (WEIR_BUCKET_SPAN_MAX >> (conf->cost_left & 63)))
		return WEIR_BUCKET_SPAN_MAX + 1;
	return cost << (conf->cost_left & 63);
}

/*
 * The TAT as the present configuration allows it. tat - now <= burst_ticks holds as long as
 * the configuration stays; where it doesn't, the limit was changed (or the clock stepped
 * back): the bucket then is empty, not in debt. So a change acts at once, both ways.
 */
static inline uint64_t weir_bucket_clamp(uint64_t tat, const struct weir_bucket_conf *conf,
					 uint64_t now_ticks)
{
	uint64_t latest = now_ticks + conf->burst_ticks;

	return tat > latest ? latest : tat;
}

/*
 * The pure step: whether `cost` ticks may be taken at `now_ticks`, and in *next the TAT that
 * follows if so. Writes nothing else: the caller stores *next, by compare-and-swap where
 * others may have been faster.
 */
static inline bool weir_bucket_step(uint64_t tat, const struct weir_bucket_conf *conf,
				    uint64_t now_ticks, uint64_t cost, uint64_t *next)
{
	uint64_t base = weir_bucket_clamp(tat, conf, now_ticks);

	if (base < now_ticks)
		base = now_ticks;
	*next = base + cost;
	return *next - now_ticks <= conf->burst_ticks;
}

/* Ticks from now until `cost` could be taken; 0 now, UINT64_MAX if more than the burst. */
static inline uint64_t weir_bucket_wait(uint64_t tat, const struct weir_bucket_conf *conf,
					uint64_t now_ticks, uint64_t cost)
{
	uint64_t next;

	if (cost > conf->burst_ticks)
		return UINT64_MAX;
	if (weir_bucket_step(tat, conf, now_ticks, cost, &next))
		return 0;
	return next - now_ticks - conf->burst_ticks;
}

#ifndef __bpf__
#include "api.h"

WEIR_API_BEGIN

/*
 * Fill a configuration for the kernel side (and only for it: weir_bucket_new needs none).
 * Refused: a rate, burst or grain that is not a number above zero (-EINVAL); a burst that takes
 * longer than 2 years to refill, or more than 2e9 takes of the grain a second, which 1/16 ns is
 * too coarse for (-ERANGE).
 *
 * @rate   tokens a second
 * @burst  the most the bucket holds, in tokens; under the grain it is raised to that
 * @grain  the fewest tokens that a take will cost: 1 where packets are charged, 64 for bytes.
 *         A fresh bucket admits exactly burst / grain takes of that many at one instant,
 *         although each cost is rounded up to the tick: burst_ticks has room for that, under
 *         a tick a take.
 */
int weir_bucket_conf_init(struct weir_bucket_conf *conf, double rate, double burst, uint32_t grain);

/*
 * The plain face. It runs weir_bucket_step in a unit of time of this bucket's own, in which
 * one token takes a whole number of units, and counts time from the last take: a double's
 * fraction of a token and rates like 3 a second, which 1/16 ns and 32 bits would round, stay
 * exact. All times in nanoseconds.
 *
 * seed: Bucket
 */
struct weir_bucket {
	struct weir_bucket_conf conf;	/* burst_ticks: in this bucket's unit */
	struct weir_bucket_state state; /* tat: units after latest_ns */
	double burst;			/* tokens */
	uint64_t units_per_ns;		/* 0: nothing ever accrues */
	uint64_t units_per_token;
	int64_t latest_ns; /* the latest take */
};

/*
 * A bucket that starts full at now_ns.
 *
 * @rate   tokens accrued a second. Zero, negative, NaN or under one in 36 years: none ever;
 *         over 2^60: 2^60.
 * @burst  the most it holds (seed's default 0: none given, which means the rate; so does
 *         NaN). Under one it is raised to one. Held to 2^60, and to 36 years of the rate.
 * @now_ns seed's default: 0
 *
 * seed: Bucket::new
 */
struct weir_bucket weir_bucket_new(double rate, double burst, int64_t now_ns);

/*
 * Whether n tokens (seed's default: 1) are available now, taking them if they are. Zero or
 * fewer are always available and take nothing; NaN never is.
 *
 * seed: Bucket::take
 */
bool weir_bucket_take(struct weir_bucket *bucket, int64_t now_ns, double n);

/*
 * How long until n tokens (seed's default: 1) would be available, without taking them. 0 when
 * they are now; WEIR_FOREVER_NS when they never will be: more than the burst, NaN, no rate.
 *
 * seed: Bucket::next
 */
int64_t weir_bucket_next(const struct weir_bucket *bucket, int64_t now_ns, double n);

/*
 * How many tokens are in the bucket.
 *
 * seed: Bucket::tokens
 */
double weir_bucket_tokens(const struct weir_bucket *bucket, int64_t now_ns);

WEIR_API_END
#endif
