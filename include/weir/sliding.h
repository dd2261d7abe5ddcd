/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sliding window: at most `quota` events in any stretch as long as the window. Exact, since
 * every stamp is kept; O(1), since only one of them decides.
 *
 * The stamps are a ring of `capacity` words outside the state (all zero at first). An event is
 * stored as its instant + 1, so that 0 is "never". n more events fit iff the (quota - n + 1)th
 * newest stamp has fallen out of the window: that is the one word to look at. A window is half
 * open: an event at t is outside from t + window on.
 *
 * Source: the seed's Sliding. The same code runs in BPF and in user space: unsigned 64-bit
 * integers, no clock, no loop (but for weir_sliding_step, which is user space's).
 *
 * Units. Instants and lengths are in any one unit that the caller keeps to, below 2^64 - 1.
 * Instants handed to one ring must not decrease; what a clock decreases by, the window may be
 * longer or shorter by for the events in question. capacity >= quota lets a live change of
 * the quota act at once and exactly: nothing is laid out anew. A changed window does too, but
 * for expiry, which is of the window at the time of the event: after a window was lengthened,
 * a state may count as empty before it is.
 *
 * Thread use: one writer at a time (the kernel side works on the same words by compare-and-swap:
 * place.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct weir_sliding_conf {
	uint64_t window;
	uint32_t quota;	   /* 0 admits nothing */
	uint32_t capacity; /* words in the ring: at least the quota, at least 1 */
};

struct weir_sliding_state {
	uint64_t expiry; /* neutral instant: when the newest event falls out; <= now = empty */
	uint64_t head;	 /* below capacity: where the next stamp goes */
};

/* head moved on by `steps`, which are at most the capacity. */
static inline uint64_t weir_sliding_slot(const struct weir_sliding_conf *conf, uint64_t head,
					 uint64_t steps)
{
	uint64_t slot = head + steps;

	return slot >= conf->capacity ? slot - conf->capacity : slot;
}

/* Whether n events can ever fit: what every other function here asks for. */
static inline bool weir_sliding_fits(const struct weir_sliding_conf *conf, uint64_t n)
{
	return n > 0 && n <= conf->quota && conf->quota <= conf->capacity;
}

/* Where the stamp is that decides about n more events. Only where weir_sliding_fits(n). */
static inline uint64_t weir_sliding_inspect(const struct weir_sliding_conf *conf, uint64_t head,
					    uint64_t n)
{
	return weir_sliding_slot(conf, head, conf->capacity - conf->quota + n - 1);
}

/* The instant a stamp falls out of the window; 0 for "never". Also "refused until". */
static inline uint64_t weir_sliding_until(const struct weir_sliding_conf *conf, uint64_t stamp)
{
	uint64_t until = stamp - 1 + conf->window;

	if (!stamp)
		return 0;
	return until < conf->window ? UINT64_MAX : until;
}

/* The decision: whether the inspected stamp is out of the window at now. */
static inline bool weir_sliding_open(const struct weir_sliding_conf *conf, uint64_t stamp,
				     uint64_t now)
{
	return !stamp || (now >= stamp - 1 && now - (stamp - 1) >= conf->window);
}

/* What to store for an event at now. */
static inline uint64_t weir_sliding_stamp(uint64_t now)
{
	return now < UINT64_MAX ? now + 1 : now;
}

/* After the stamps of n events at now were stored at slots head, head + 1, …: the new state. */
static inline void weir_sliding_advance(struct weir_sliding_state *state,
					const struct weir_sliding_conf *conf, uint64_t now,
					uint64_t n)
{
	state->head = weir_sliding_slot(conf, state->head, n);
	state->expiry = weir_sliding_until(conf, weir_sliding_stamp(now));
}

#ifndef __bpf__
/* The step over the whole ring: whether n events fit at now, storing them if so. */
static inline bool weir_sliding_step(struct weir_sliding_state *state,
				     const struct weir_sliding_conf *conf, uint64_t *ring,
				     uint64_t now, uint64_t n)
{
	if (!weir_sliding_fits(conf, n) ||
	    !weir_sliding_open(conf, ring[weir_sliding_inspect(conf, state->head, n)], now))
		return false;
	for (uint64_t i = 0; i < n; i++)
		ring[weir_sliding_slot(conf, state->head, i)] = weir_sliding_stamp(now);
	weir_sliding_advance(state, conf, now, n);
	return true;
}

#include "api.h"

WEIR_API_BEGIN

/*
 * The plain face. All times in nanoseconds. The ring is allocated with it: 8 bytes an event
 * of the quota.
 *
 * seed: Sliding
 */
struct weir_sliding;

/*
 * An empty window, or NULL with errno ENOMEM.
 *
 * @quota     events allowed in any stretch as long as the window; zero or less admits nothing
 * @window_ns zero or less: an event is out of the window at once, so all are admitted
 *
 * seed: Sliding::new
 */
struct weir_sliding *weir_sliding_new(int32_t quota, int64_t window_ns);
void weir_sliding_free(struct weir_sliding *sliding);

/*
 * Whether an event is within the quota now, counting it if it is.
 *
 * seed: Sliding::take
 */
bool weir_sliding_take(struct weir_sliding *sliding, int64_t now_ns);

/*
 * How many events remain in the current window. Takes time logarithmic in the quota.
 *
 * seed: Sliding::left
 */
int32_t weir_sliding_left(const struct weir_sliding *sliding, int64_t now_ns);

/*
 * How long until the window has room: until its oldest event falls out; 0 when it has room
 * now, WEIR_FOREVER_NS when it never will (no quota).
 *
 * seed: Sliding::next
 */
int64_t weir_sliding_next(const struct weir_sliding *sliding, int64_t now_ns);

WEIR_API_END
#endif
