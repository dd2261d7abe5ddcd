/* SPDX-License-Identifier: GPL-2.0 */
/*
 * When to try again, and how long to wait first. Pure: the caller draws the random numbers, and
 * the same draw gives the same delay. Source: the seed's Backoff and Jitter.
 *
 * Draws are from [0, 1); what lies outside is held to it, NaN counts as 0. Results are whole
 * nanoseconds, rounded to the nearest, never negative.
 */
#pragma once

#include <stddef.h>

#include "api.h"

WEIR_API_BEGIN

/*
 * How much randomness goes into a delay. `ceiling` is what weir_backoff_ceiling says.
 *
 * seed: Jitter
 */
enum weir_jitter_kind {
	WEIR_JITTER_RIGID,	  /* seed: Jitter::Rigid; the ceiling, unchanged */
	WEIR_JITTER_FULL,	  /* seed: Jitter::Full; uniform over [0, ceiling] */
	WEIR_JITTER_EQUAL,	  /* seed: Jitter::Equal; uniform over [ceiling / 2, ceiling] */
	WEIR_JITTER_DECORRELATED, /* seed: Jitter::Decorrelated; uniform over
				   * [base, previous * 3], held to the cap */
	WEIR_JITTER_SPREAD,	  /* seed: Jitter::Spread; ceiling * [1 - f, 1 + f]: may
				   * pass the cap by the fraction */
};

struct weir_jitter {
	enum weir_jitter_kind kind; /* what is none of the five acts as WEIR_JITTER_RIGID */
	double fraction;	    /* of WEIR_JITTER_SPREAD, held to [0, 1]; NaN counts as 0 */
};

/*
 * Copy the preset and set what differs.
 *
 * seed: Backoff
 */
struct weir_backoff {
	int64_t base_ns;	   /* seed: Backoff.base; before the first retry; negative: 0 */
	double factor;		   /* seed: Backoff.factor; each ceiling over the last;
				    * NaN counts as 1, negative as 0 */
	int64_t cap_ns;		   /* seed: Backoff.cap; held to this; negative: 0 */
	int32_t attempts;	   /* seed: Backoff.attempts; calls in all, the first included */
	struct weir_jitter jitter; /* seed: Backoff.jitter; how much is randomised */
};

/* The preset: 3 attempts, 100 ms doubling to 1 s, spread by a fifth either way. */
extern const struct weir_backoff weir_backoff; /* seed: backoff */

/*
 * A backoff, every knob with the preset's value, to set the ones that differ.
 *
 * seed: Backoff::new
 */
struct weir_backoff weir_backoff_new(void);

/*
 * The undelayed ceiling before the retry-th retry: min(base * factor^(retry - 1), cap). The
 * first retry is 1; zero or less gives 0. NULL is the preset, here and below.
 *
 * seed: Backoff::ceiling
 */
int64_t weir_backoff_ceiling(const struct weir_backoff *backoff, int32_t retry);

/*
 * How long to wait before the retry-th retry; 0 for a retry of zero or less.
 *
 * @random      (seed's default: 0) the draw
 * @previous_ns (seed's default: 0) what the last delay turned out to be; only Decorrelated reads
 *              it: a third of the base or less gives the base
 *
 * seed: Backoff::delay
 */
int64_t weir_backoff_delay(const struct weir_backoff *backoff, int32_t retry, double random,
			   int64_t previous_ns);

/*
 * Whether a call that has made `made` attempts may make another.
 *
 * seed: Backoff::more
 */
bool weir_backoff_more(const struct weir_backoff *backoff, int32_t made);

/*
 * Every delay that a run of retries would wait, each the next one's previous, into delays_ns,
 * as many as `capacity` holds. Returns how many the run has: attempts - 1, or 0.
 *
 * @randoms the draws, one a retry; where they run short (or are NULL) the rest use 0
 *
 * seed: Backoff::schedule
 */
size_t weir_backoff_schedule(const struct weir_backoff *backoff, const double *randoms,
			     size_t random_count, int64_t *delays_ns, size_t capacity);

WEIR_API_END
