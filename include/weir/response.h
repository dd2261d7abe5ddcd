/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Response times in a histogram of doubling ranges with 4 equal parts each: a slot is at most
 * 25% wide. The same in kernel and user space; no clock, no division.
 *
 *	below 4 ns   slot = ns
 *	else         e = index of the highest bit of ns; slot = (e - 1) * 4 + the next two bits
 *
 * The last slot takes everything from 1.75 * 2^40 ns (32 minutes) on.
 */
#pragma once

#include <stdint.h>

#define WEIR_RESPONSE_SLOTS 160

/* The number of the highest bit set. clang 14 does not end on __builtin_clzll for BPF. */
static inline uint32_t weir_highest_bit(uint64_t n)
{
	uint32_t bit = n >> 32 ? 32 : 0;

	bit += n >> (bit + 16) ? 16 : 0;
	bit += n >> (bit + 8) ? 8 : 0;
	bit += n >> (bit + 4) ? 4 : 0;
	bit += n >> (bit + 2) ? 2 : 0;
	return bit + (n >> (bit + 1) ? 1 : 0);
}

static inline uint32_t weir_response_slot(uint64_t ns)
{
	uint32_t high, slot;

	if (ns < 4)
		return (uint32_t)ns;
	high = weir_highest_bit(ns);
	slot = ((high - 1) << 2) + ((uint32_t)(ns >> (high - 2)) & 3);
	return slot < WEIR_RESPONSE_SLOTS ? slot : WEIR_RESPONSE_SLOTS - 1;
}

/* The least response time of a slot; of the slot after the last, where that one would end. */
static inline uint64_t weir_response_least(uint32_t slot)
{
	if (slot < 4)
		return slot;
	return (4ULL + (slot & 3)) << ((slot >> 2) - 1);
}
