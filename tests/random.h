/* SPDX-License-Identifier: GPL-2.0 */
/* Repeatable draws for property tests: xorshift64*, seeded by the test. */
#pragma once

#include <stdint.h>

static inline uint64_t random_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dULL;
}

/* Uniform in [0, below); below above 0. */
static inline uint64_t random_below(uint64_t *state, uint64_t below)
{
	return random_next(state) % below;
}

/* Uniform in [0, 1). */
static inline double random_unit(uint64_t *state)
{
	return (double)(random_next(state) >> 11) / 9007199254740992.0;
}
