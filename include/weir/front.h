/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The front: what one CPU last learnt about the keys that it refused. Direct-mapped, one slot
 * a hash line, never shared between CPUs, so it needs no atomics.
 *
 * It answers only what can't become wrong behind its back: other CPUs push a bucket's TAT up,
 * never down, so `now + burst * T < seen + cost` refuses nothing that the ledger would admit; a
 * period or a sliding window that is full stays so until an instant known at the refusal. A
 * slot counts for one revision of one limit: after a change the ledger is asked again. What is
 * given back (a packet that another limit refused after a lost race, the rest of a lease) a CPU
 * may learn late, at the instant that it knew.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct weir_front_slot {
	uint64_t tag;	    /* 0: empty */
	uint64_t seen;	    /* ticks: a lower bound of the TAT, or refused until */
	uint64_t refused;   /* counted here, not yet in the ledger */
	uint32_t place;	    /* the key's place in the ledger: see weir_front_place */
	uint32_t revision;  /* of the limit, at the refusal */
};
_Static_assert(sizeof(struct weir_front_slot) == 32, "two slots a cache line");

static inline bool weir_front_holds(const struct weir_front_slot *slot, uint64_t tag,
				    uint32_t revision)
{
	return slot->tag == tag && slot->revision == revision;
}

/* Whether a bucket refuses for certain: `seen` is a lower bound of the TAT. */
static inline bool weir_front_refuses(uint64_t seen, uint64_t now_ticks, uint64_t burst_ticks,
				      uint64_t cost)
{
	uint64_t latest = now_ticks + burst_ticks;

	return seen <= latest && seen + cost > latest;
}

/*
 * Whether a period or a sliding window, of `span` each, refuses for certain: it is full until
 * `seen`. One that is further away than a span is from before the clock stepped back.
 */
static inline bool weir_front_refuses_until(uint64_t seen, uint64_t now_ticks, uint64_t span)
{
	return now_ticks < seen && seen - now_ticks <= span;
}

/*
 * A place as a slot remembers it: set * WEIR_WAYS + way in the ledger that all share, or in
 * the own ledger of the limit in a slot of the totals, which has at most 2^23 places.
 */
#define WEIR_FRONT_OWN (1U << 31)
#define WEIR_OWN_PLACES_MAX (1U << 23)

static inline uint32_t weir_front_place(uint32_t place, bool own, uint32_t slot)
{
	return own ? WEIR_FRONT_OWN | (slot & 0xff) << 23 | place : place;
}
