// SPDX-License-Identifier: GPL-2.0
#include "sources.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "random.h"

#define ZIPF_EXPONENT 1.1

const struct bench_row_info bench_rows[BENCH_ROWS] = {
	[BENCH_ROW_1] = { "1", 1 },
	[BENCH_ROW_1K] = { "1k", 1 << 10 },
	[BENCH_ROW_128K] = { "128k", 1 << 17 },
	[BENCH_ROW_1M] = { "1m", 1 << 20 },
	[BENCH_ROW_ZIPF] = { "zipf", 1 << 20 },
};

uint32_t bench_address(uint32_t source)
{
	return source * 2654435761U + 0x0a000001;
}

/* One shuffle of all sources after the other. */
static void fill_uniform(uint32_t *sequence, uint32_t sources, uint64_t *random)
{
	for (uint32_t start = 0; start < BENCH_SEQUENCE; start += sources) {
		uint32_t *part = sequence + start;

		for (uint32_t i = 0; i < sources; i++) {
			uint32_t other = (uint32_t)random_below(random, i + 1);

			part[i] = part[other];
			part[other] = bench_address(i);
		}
	}
}

static int fill_zipf(uint32_t *sequence, uint32_t sources, uint64_t *random)
{
	double *up_to = malloc(sources * sizeof(*up_to)), sum = 0;

	if (!up_to)
		return -ENOMEM;
	for (uint32_t i = 0; i < sources; i++)
		up_to[i] = sum += pow(i + 1, -ZIPF_EXPONENT);
	for (uint32_t i = 0; i < BENCH_SEQUENCE; i++) {
		double draw = random_unit(random) * sum;
		uint32_t low = 0, high = sources - 1;

		while (low < high) {
			uint32_t middle = (low + high) / 2;

			if (up_to[middle] > draw)
				high = middle;
			else
				low = middle + 1;
		}
		sequence[i] = bench_address(low);
	}
	free(up_to);
	return 0;
}

int bench_sources_fill(uint32_t *sequence, enum bench_row row)
{
	uint64_t random = 20261130;

	if (row == BENCH_ROW_ZIPF)
		return fill_zipf(sequence, bench_rows[row].sources, &random);
	fill_uniform(sequence, bench_rows[row].sources, &random);
	return 0;
}

void bench_sources_shuffle(uint32_t *sequence)
{
	static uint64_t random = 20261201;

	for (uint32_t i = BENCH_SEQUENCE - 1; i > 0; i--) {
		uint32_t other = (uint32_t)random_below(&random, i + 1), source = sequence[i];

		sequence[i] = sequence[other];
		sequence[other] = source;
	}
}

void bench_cursors_spread(struct bench_cursor *cursors, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		cursors[i].next = (uint64_t)i * (BENCH_SEQUENCE / 2);
}
