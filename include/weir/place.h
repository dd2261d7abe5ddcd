/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the words of a place in the ledger mean for each kind of limit. `state` is always the
 * neutral instant (ledger.h). weir_counts.refused always counts refusals; weir_counts.passed:
 *
 *	bucket	packets passed
 *	gate	who is pending (pending.h)
 *	sliding	events so far: the ring's head, and what makes an event's slot its own
 *	period	the open period's count, with a mark of the period that it belongs to
 *
 * So the period needs no lock: its end is moved by one compare-and-swap, its count by another
 * that only succeeds on the word that was read. A count that bears another period's mark is 0.
 */
#pragma once

#include <stdint.h>

#include "period.h"
#include "sliding.h"

/* 32 bits of the end, mixed, so that different periods differ but once in 2^32. */
static inline uint64_t weir_period_mark(uint64_t end)
{
	return (end * 0x9e3779b97f4a7c15ULL) & 0xffffffff00000000ULL;
}

static inline uint64_t weir_period_word(uint64_t end, uint64_t count)
{
	return weir_period_mark(end) | (count & 0xffffffff);
}

/* The period's state as its limiter knows it, from a place's two words. */
static inline struct weir_period_state weir_period_unpack(uint64_t end, uint64_t word)
{
	struct weir_period_state state = { .end = end };

	if ((word & 0xffffffff00000000ULL) == weir_period_mark(end))
		state.count = word & 0xffffffff;
	return state;
}

/*
 * Sliding. Event number e is stored at ring[e mod capacity], capacity being a power of two.
 * Event number `events` may come when event `events - quota` has left the window. A taker
 * claims by compare-and-swap of the slot, then moves the head on. A slot that is already newer
 * than the newest known event shows a head that lags behind: whoever sees it moves it on.
 * (Where all stamps are equal that can't be told, and then moving on changes nothing.)
 */
static inline uint64_t weir_ring_index(uint64_t event, uint32_t capacity)
{
	return event & (capacity - 1);
}

static inline uint32_t weir_ring_capacity(uint32_t quota)
{
	uint32_t capacity = 16;

	while (capacity < quota && capacity < 1U << 31)
		capacity <<= 1;
	return capacity;
}
