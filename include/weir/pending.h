/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pending: how many have asked to enter a gate and are not inside yet, without a timer.
 *
 * One word: the number of the current slice of time (16 bits), then how many asked in it and
 * in the one before (24 bits each). A request so counts for one to two slices, 2.1 to 4.3 s,
 * and is then forgotten by itself: the next who looks sees a new slice. Counts stop at 2^24 - 1.
 *
 * The slice's number comes round after 39 hours. Where nobody has touched the word for exactly
 * that long, what it says counts again for a slice: so much longer, no more, is a place held.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define WEIR_PENDING_SHIFT 35 /* ticks of a slice: 2^31 ns */
#define WEIR_PENDING_MAX 0xffffffULL

static inline uint64_t weir_pending_slice(uint64_t now_ticks)
{
	return now_ticks >> WEIR_PENDING_SHIFT;
}

/* When nothing that asks in this slice counts any more. */
static inline uint64_t weir_pending_until(uint64_t slice)
{
	return (slice + 2) << WEIR_PENDING_SHIFT;
}

/* Whether what asked in slice `then` counts in slice `now`. */
static inline bool weir_pending_lives(uint64_t then, uint64_t now)
{
	return now - then <= 1 || then - now == 1;
}

/* The word as it reads in this slice. One that is a slice ahead is so by another CPU's clock. */
static inline uint64_t weir_pending_turn(uint64_t word, uint64_t slice)
{
	uint16_t age = (uint16_t)(slice - (word >> 48));

	if (!age || age == UINT16_MAX)
		return word;
	word = age == 1 ? word >> 24 & WEIR_PENDING_MAX : 0;
	return (slice & 0xffff) << 48 | word;
}

/* How many are pending. */
static inline uint64_t weir_pending_count(uint64_t word, uint64_t slice)
{
	word = weir_pending_turn(word, slice);
	return (word >> 24 & WEIR_PENDING_MAX) + (word & WEIR_PENDING_MAX);
}

/* The word with one more. */
static inline uint64_t weir_pending_add(uint64_t word, uint64_t slice)
{
	word = weir_pending_turn(word, slice);
	return (word >> 24 & WEIR_PENDING_MAX) < WEIR_PENDING_MAX ? word + (1 << 24) : word;
}

/* The word with one less of those that asked in slice `then`. */
static inline uint64_t weir_pending_drop(uint64_t word, uint64_t slice, uint64_t then)
{
	word = weir_pending_turn(word, slice);
	if ((uint16_t)then == word >> 48)
		return word >> 24 & WEIR_PENDING_MAX ? word - (1 << 24) : word;
	if ((uint16_t)(then + 1) == word >> 48)
		return word & WEIR_PENDING_MAX ? word - 1 : word;
	return word;
}
