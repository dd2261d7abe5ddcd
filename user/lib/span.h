/* SPDX-License-Identifier: GPL-2.0 */
/* Arithmetic on the caller's clock that can't overflow. */
#pragma once

#include <stdint.h>

/* Nanoseconds from `then` to `now`; 0 if the clock went back. */
static inline uint64_t weir_span_since(int64_t now_ns, int64_t then_ns)
{
	return now_ns > then_ns ? (uint64_t)now_ns - (uint64_t)then_ns : 0;
}

/* An int64_t instant on an unsigned axis that keeps its order. */
static inline uint64_t weir_span_instant(int64_t now_ns)
{
	return (uint64_t)now_ns ^ (1ULL << 63);
}

/* a + b, held to INT64_MAX. */
static inline int64_t weir_span_sum(uint64_t a, uint64_t b)
{
	uint64_t sum = a + b;

	return sum < a || sum > INT64_MAX ? INT64_MAX : (int64_t)sum;
}

/* A double's nanoseconds, rounded to whole ones and held to [0, most]; NaN is 0. */
static inline int64_t weir_span_of(double ns, int64_t most)
{
	if (!(ns > 0) || most <= 0)
		return 0;
	return ns >= (double)most ? most : (int64_t)(ns + 0.5);
}
