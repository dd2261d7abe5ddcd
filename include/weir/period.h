/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fixed window: at most `quota` events a period, the count starting again when one ends.
 *
 * Cheaper than sliding.h and coarser: a quota at the end of one period and another at the
 * start of the next may pass within a moment. Source: the seed's Period and Quota. The same
 * code runs in BPF and in user space: unsigned 64-bit integers, no clock, no loop.
 *
 * Units. Instants and lengths are in any one unit that the caller keeps to; a period is below
 * 2^63. An end beyond 2^64 - 1 is held to that.
 *
 * A period opens on the first event after the last one closed and ends `period` later; with
 * `align` it ends at the next instant congruent to `phase` modulo the period. The end belongs
 * to the outside. A state whose `end` is not after now is as good as a fresh one.
 *
 * Thread use: the state is plain memory, two words; one writer at a time (the kernel side
 * works on them by compare-and-swap: place.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct weir_period_conf {
	uint64_t period; /* above 0 */
	uint64_t phase;	 /* below period; where a multiple of it on the wall clock falls */
	uint32_t quota;	 /* 0 admits nothing */
	uint8_t align;	 /* 0 or 1 */
	uint8_t pad[3];
};

struct weir_period_state {
	uint64_t end;	/* neutral instant: not after now = no period is open */
	uint64_t count; /* admitted in the open period */
};

/*
 * Where a period stands after an event.
 *
 * seed: Quota
 */
enum weir_quota {
	WEIR_QUOTA_UNDER, /* seed: Quota::Under */
	WEIR_QUOTA_HIT,	  /* seed: Quota::Hit; exactly on it: still admitted, the last one */
	WEIR_QUOTA_OVER,  /* seed: Quota::Over; not admitted */
};

/* When a period that opened now would end. */
static inline uint64_t weir_period_ending(const struct weir_period_conf *conf, uint64_t now)
{
	uint64_t length = conf->period ? conf->period : 1;
	uint64_t end;

	if (conf->align)
		length -= (now % length + length - conf->phase % length) % length;
	end = now + length;
	return end < now ? UINT64_MAX : end;
}

/*
 * The end of the open period, or 0 if none is open. Under one configuration an end is never
 * later than that of a period opening now; where it is, the period was shortened (or the
 * phase moved): the new one acts at once. Also the answer to "refused until".
 */
static inline uint64_t weir_period_until(const struct weir_period_state *state,
					 const struct weir_period_conf *conf, uint64_t now)
{
	uint64_t latest;

	if (state->end <= now)
		return 0;
	latest = weir_period_ending(conf, now);
	return state->end > latest ? latest : state->end;
}

/* Where the quota would stand after n more events at now. Writes nothing. */
static inline enum weir_quota weir_period_peek(const struct weir_period_state *state,
					       const struct weir_period_conf *conf, uint64_t now,
					       uint64_t n)
{
	uint64_t count = state->end > now ? state->count : 0;

	if (count > conf->quota || n > conf->quota - count)
		return WEIR_QUOTA_OVER;
	return n == conf->quota - count ? WEIR_QUOTA_HIT : WEIR_QUOTA_UNDER;
}

/*
 * Count n events at now and say where the quota stands. OVER counts nothing, but it too opens
 * a period where none is open (who must not leave a trace of a refusal peeks first).
 */
static inline enum weir_quota weir_period_step(struct weir_period_state *state,
					       const struct weir_period_conf *conf, uint64_t now,
					       uint64_t n)
{
	enum weir_quota quota = weir_period_peek(state, conf, now, n);
	uint64_t until = weir_period_until(state, conf, now);

	if (!until)
		state->count = 0;
	state->end = until ? until : weir_period_ending(conf, now);
	if (quota != WEIR_QUOTA_OVER)
		state->count += n;
	return quota;
}

/* How many events the open period has left; the whole quota if none is open. */
static inline uint32_t weir_period_room(const struct weir_period_state *state,
					const struct weir_period_conf *conf, uint64_t now)
{
	uint64_t count = state->end > now ? state->count : 0;

	return count > conf->quota ? 0 : (uint32_t)(conf->quota - count);
}

#ifndef __bpf__
#include "api.h"

WEIR_API_BEGIN

/*
 * The plain face. All times in nanoseconds.
 *
 * seed: Period
 */
struct weir_period {
	struct weir_period_conf conf;
	struct weir_period_state state;
	int64_t latest_ns; /* the latest take */
};

/*
 * A counter that no event has touched.
 *
 * @quota     events a period; zero or less admits nothing
 * @period_ns anything under a nanosecond is raised to one
 * @align     (seed's default: false) open periods on multiples of the period on the caller's
 *            clock: with a Unix clock a daily quota resets at midnight UTC
 *
 * seed: Period::new
 */
struct weir_period weir_period_new(int32_t quota, int64_t period_ns, bool align);

/*
 * Count one event at now and say where the quota stands. NULL: WEIR_QUOTA_OVER.
 *
 * seed: Period::take
 */
enum weir_quota weir_period_take(struct weir_period *period, int64_t now_ns);

/*
 * How many events remain in the current period.
 *
 * seed: Period::left
 */
int32_t weir_period_left(const struct weir_period *period, int64_t now_ns);

/*
 * How long until the current period ends; 0 when none is open, since an event opens one.
 *
 * seed: Period::next
 */
int64_t weir_period_next(const struct weir_period *period, int64_t now_ns);

WEIR_API_END
#endif
