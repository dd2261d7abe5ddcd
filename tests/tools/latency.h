/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Latencies in a histogram: 16 steps to every power of two of microseconds, so a percentile is
 * at most 1/16 too high.
 */
#pragma once

#include <stdint.h>

#define LATENCY_STEPS 16
#define LATENCY_SLOTS (LATENCY_STEPS * 40)

struct latency {
	uint64_t slots[LATENCY_SLOTS];
	uint64_t count, max_us;
};

static inline unsigned int latency_slot(uint64_t us)
{
	unsigned int power, slot;

	if (us < LATENCY_STEPS)
		return (unsigned int)us;
	power = 63 - (unsigned int)__builtin_clzll(us);
	slot = (power - 3) * LATENCY_STEPS + (unsigned int)(us >> (power - 4)) % LATENCY_STEPS;
	return slot < LATENCY_SLOTS ? slot : LATENCY_SLOTS - 1;
}

/* The most that falls into this slot. */
static inline uint64_t latency_of_slot(unsigned int slot)
{
	unsigned int power = slot / LATENCY_STEPS + 3;

	if (slot < LATENCY_STEPS)
		return slot;
	return ((LATENCY_STEPS + slot % LATENCY_STEPS + 1ULL) << (power - 4)) - 1;
}

static inline void latency_add(struct latency *latency, uint64_t us)
{
	latency->slots[latency_slot(us)]++;
	latency->count++;
	if (us > latency->max_us)
		latency->max_us = us;
}

/* 0 where there are none. */
static inline uint64_t latency_us(const struct latency *latency, unsigned int per_thousand)
{
	uint64_t want = (latency->count * per_thousand + 999) / 1000, seen = 0;

	for (unsigned int i = 0; i < LATENCY_SLOTS; i++) {
		seen += latency->slots[i];
		if (seen && seen >= want)
			return latency_of_slot(i) < latency->max_us ? latency_of_slot(i)
								    : latency->max_us;
	}
	return 0;
}

static inline void latency_join(struct latency *to, const struct latency *from)
{
	for (unsigned int i = 0; i < LATENCY_SLOTS; i++)
		to->slots[i] += from->slots[i];
	to->count += from->count;
	if (from->max_us > to->max_us)
		to->max_us = from->max_us;
}
