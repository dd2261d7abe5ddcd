/* SPDX-License-Identifier: GPL-2.0 */
/* In which order the sources come: the rows of the benchmark. */
#pragma once

#include <stdint.h>

#include "bench.h"

enum bench_row {
	BENCH_ROW_1,
	BENCH_ROW_1K,
	BENCH_ROW_128K,
	BENCH_ROW_1M,
	BENCH_ROW_ZIPF, /* P(rank) ~ 1 / rank^1.1 over 1M */
	BENCH_ROWS,
};

extern const struct bench_row_info {
	const char *name;
	uint32_t sources; /* divides BENCH_SEQUENCE: each comes equally often, but for Zipf */
} bench_rows[BENCH_ROWS];

/*
 * The address of a source, in network order. Neighbours in number are not neighbours in address;
 * no two have the same.
 */
uint32_t bench_address(uint32_t source);

/* Fills BENCH_SEQUENCE addresses, the same at each call. 0 or -ENOMEM. */
int bench_sources_fill(uint32_t *sequence, enum bench_row row);

/*
 * Puts the sequence in another order. Replayed as it was learnt, it would meet the entries of a
 * freshly filled hash in the order in which they lie in memory, as no traffic does.
 */
void bench_sources_shuffle(uint32_t *sequence);

/* Sets CPUs that run at once far apart in the sequence. */
void bench_cursors_spread(struct bench_cursor *cursors, unsigned int count);
