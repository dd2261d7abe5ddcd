/* SPDX-License-Identifier: GPL-2.0 */
/* What the benchmark's two sides share. */
#pragma once

#include <stdint.h>

/* Source addresses, in the order in which they come: a power of two of them. */
#define BENCH_SEQUENCE (1 << 20)
#define BENCH_CPUS 256 /* that have a cursor of their own: a power of two */

/* Where a CPU is in the sequence: a cache line each. */
struct bench_cursor {
	uint64_t next;
	uint64_t reserved[7];
};

/* What the textbook limiter counts: a cache line a CPU. */
struct bench_totals {
	uint64_t passed;
	uint64_t refused;
	uint64_t reserved[6];
};

#define BENCH_SOURCE_OFFSET 26 /* of the source address in the frame */
