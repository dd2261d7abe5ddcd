/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the words of a place in the ledger mean for each kind of limit. `state` is always the
 * neutral instant (ledger.h). weir_counts.refused always counts refusals; weir_counts.passed:
 *
 *	bucket	packets passed, and in the upper 16 bits the limit's revision that the state is
 *		counted in (see below)
 *	gate	who is pending (pending.h)
 *	sliding	events so far: the ring's head, and what makes an event's slot its own
 *	period	the open period's count, with a mark of the period that it belongs to
 *
 * So the period needs no lock: its count is moved by a compare-and-swap that only succeeds on
 * the word that was read, its end with the place marked busy meanwhile. A count that bears
 * another period's mark is 0.
 */
#pragma once

#include <stdint.h>

#include "bucket.h"
#include "period.h"
#include "sliding.h"

/*
 * Bucket. A TAT is time, so the same word means more tokens after the rate or the burst was
 * raised, and fewer after it was lowered: changing a limit back and forth would refill its
 * buckets each time. A place therefore says which revision of its limit the state is counted
 * in, and the first packet after a change converts it: the tokens stay what they were at the
 * change, but for those beyond the new burst, and from then on accrue at the new rate. A full
 * bucket is as good as a fresh one and stays full.
 */
#define WEIR_PASSED_BITS 48

static inline uint64_t weir_passed_word(uint32_t revision, uint64_t passed)
{
	return (uint64_t)(uint16_t)revision << WEIR_PASSED_BITS | passed;
}

static inline uint64_t weir_passed_count(uint64_t word)
{
	return word & ((1ULL << WEIR_PASSED_BITS) - 1);
}

static inline uint16_t weir_passed_revision(uint64_t word)
{
	return (uint16_t)(word >> WEIR_PASSED_BITS);
}

/*
 * What `ticks` of tokens at one cost are at another, rounded down; `most` if they are more. The
 * costs are mantissa * 2^exponent. In line whatever the compiler thinks: BPF passes no more
 * than five arguments.
 */
static inline __attribute__((always_inline)) uint64_t
weir_ticks_convert(uint64_t ticks, uint32_t mantissa, int exponent, uint32_t to_mantissa,
		   int to_exponent, uint64_t most)
{
	uint64_t high = ticks >> 32, low = ticks & 0xffffffff, rest, result;
	int shift = to_exponent - exponent;

	if (ticks > WEIR_BUCKET_SPAN_MAX || !mantissa)
		return 0;
	/* ticks * to_mantissa / mantissa in two digits of 32 bits: nothing passes 64. */
	rest = high * to_mantissa % mantissa;
	result = high * to_mantissa / mantissa;
	if (result >> 28)
		return most;
	result = (result << 32) + (rest << 32) / mantissa + low * to_mantissa / mantissa;
	if (shift <= 0)
		result = shift < -63 ? 0 : result >> -shift;
	else
		result = shift > 59 || result > WEIR_BUCKET_SPAN_MAX >> shift ? most :
										result << shift;
	return result < most ? result : most;
}

/*
 * What past revisions of a bucket were, by slot and revision (struct weir_board): what its keys
 * have is converted by it. A revision older than these is not known any more: the bucket counts
 * as empty.
 */
#define WEIR_PAST_REVISIONS 8

struct weir_past {
	uint32_t revision;
	uint32_t cost_mantissa;
	int32_t cost_exponent;
	uint32_t reserved;
	uint64_t burst_ticks;
	uint64_t until_ticks; /* when the next revision came */
};

/*
 * How many revisions (modulo 2^16) a place is behind; 0 also where it is ahead, by less than a
 * packet can be late: the packet goes by the policy before.
 */
static inline uint64_t weir_passed_behind(uint64_t word, uint32_t revision)
{
	uint64_t behind = (uint16_t)(revision - weir_passed_revision(word));

	return behind < 65536 - WEIR_PAST_REVISIONS ? behind : 0;
}

/*
 * The TAT, counted in `revision`, as `conf` has it, which leaves the tokens as they were. past:
 * what the limit has at revision % WEIR_PAST_REVISIONS.
 */
static inline __attribute__((always_inline)) uint64_t
weir_past_convert(const struct weir_past *past, uint16_t revision,
		  const struct weir_bucket_conf *conf, uint64_t tat, uint64_t now_ticks)
{
	uint64_t tokens = 0, owed;

	if ((uint16_t)past->revision != revision)
		return tat > now_ticks ? now_ticks + conf->burst_ticks : tat;
	if (tat <= past->until_ticks)
		return tat;
	owed = tat - past->until_ticks;
	if (owed < past->burst_ticks)
		tokens = weir_ticks_convert(past->burst_ticks - owed, past->cost_mantissa,
					    past->cost_exponent, conf->cost_mantissa,
					    (int)conf->cost_left - (int)conf->cost_right,
					    conf->burst_ticks);
	return past->until_ticks + conf->burst_ticks - tokens;
}

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
 * claims by compare-and-swap of the slot, then moves the head on. The slot at the head holds an
 * event older than the one that decides: where its stamp is still in the window, it was claimed
 * already and the head lags behind; whoever sees it moves it on. One that is older than the
 * newest event is not: the key that had the place before left it.
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
