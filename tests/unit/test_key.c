// SPDX-License-Identifier: GPL-2.0
/* The hash of keys: spread over the sets, collisions, independence. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness.h"
#include "random.h"
#include "weir/key.h"

#define SETS 1024
#define KEYS (SETS * 64)
#define GRID 32 /* for two values at once */

enum pattern { SEQUENTIAL, STRIDED, RANDOM, IPV6_PREFIXES, PATTERNS };

static struct weir_seeds draw_seeds(uint64_t *random)
{
	struct weir_seeds seeds;

	for (int i = 0; i < WEIR_KEY_WORDS; i++)
		seeds.word[i] = random_next(random) | 1;
	seeds.second = random_next(random) | 1;
	return seeds;
}

/* The i-th key of a pattern; addresses in network order, as a little-endian machine reads them. */
static struct weir_key key_of(enum pattern pattern, uint32_t i)
{
	struct weir_key key = { .kind = 4 };
	uint64_t random = 77 + (uint64_t)i * 0x9e3779b97f4a7c15ULL;

	switch (pattern) {
	case SEQUENTIAL:
		key.source[0] = __builtin_bswap32(0x0a000000 + i);
		break;
	case STRIDED: /* the first host of every /24 */
		key.source[0] = __builtin_bswap32(0x0a000001 + i * 256);
		break;
	case RANDOM:
		key.source[0] = (uint32_t)random_next(&random);
		key.ports = (uint32_t)random_next(&random);
		break;
	default: /* /64s of one provider */
		key.kind = 6;
		key.source[0] = __builtin_bswap32(0x20010db8);
		key.source[1] = __builtin_bswap32(i);
	}
	return key;
}

/* Chi-square of counts against evenness, in standard deviations from its mean. */
static double unevenness(const uint32_t *counts, size_t cells, double expected)
{
	double sum = 0, freedom = (double)cells - 1;

	for (size_t i = 0; i < cells; i++)
		sum += (counts[i] - expected) * (counts[i] - expected) / expected;
	return (sum - freedom) / sqrt(2 * freedom);
}

static void spreads_over_the_sets(void)
{
	uint64_t random = 1;
	double worst = 0;

	for (int draw = 0; draw < 10; draw++) {
		struct weir_seeds seeds = draw_seeds(&random);

		for (enum pattern pattern = 0; pattern < PATTERNS; pattern++) {
			uint32_t counts[3][SETS] = { 0 };

			for (uint32_t i = 0; i < KEYS; i++) {
				struct weir_key key = key_of(pattern, i);
				uint64_t tag = weir_key_tag(&key, 5, &seeds);

				counts[0][weir_tag_first(tag, SETS)]++;
				counts[1][weir_tag_second(tag, SETS, &seeds)]++;
				counts[2][weir_tag_slot(tag, SETS)]++;
			}
			for (int i = 0; i < 3; i++)
				worst = fmax(worst, unevenness(counts[i], SETS, 64));
		}
	}
	printf("  chi-square over %d sets, 120 of them: the worst %.1f deviations above its mean\n",
	       SETS, worst);
	CU_ASSERT_TRUE(worst < 5);
}

/* Two values of 0..GRID-1 for each key: every pair as often as another. */
static double dependence(enum pattern pattern, int what, const struct weir_seeds *seeds)
{
	uint32_t counts[GRID * GRID] = { 0 };

	for (uint32_t i = 0; i < KEYS; i++) {
		struct weir_key key = key_of(pattern, i);
		uint64_t tag = weir_key_tag(&key, 1, seeds);
		uint64_t other = weir_key_tag(&key, 2, seeds);
		/* Of 2^15 sets, so that the second is hardly ever moved off the first. */
		uint32_t a = weir_tag_first(tag, 1 << 15) % GRID, b;

		b = what == 0	? weir_tag_second(tag, 1 << 15, seeds) % GRID
		    : what == 1 ? weir_tag_slot(tag, GRID)
				: weir_tag_first(other, 1 << 15) % GRID;
		counts[a * GRID + b]++;
	}
	return unevenness(counts, sizeof(counts) / sizeof(counts[0]), (double)KEYS / (GRID * GRID));
}

static void sets_slots_and_salts_are_independent(void)
{
	uint64_t random = 2;
	double worst = 0;

	for (int draw = 0; draw < 10; draw++) {
		struct weir_seeds seeds = draw_seeds(&random);

		for (enum pattern pattern = 0; pattern < PATTERNS; pattern++)
			for (int what = 0; what < 3; what++)
				worst = fmax(worst, dependence(pattern, what, &seeds));
	}
	printf("  chi-square of pairs, 120 of them: the worst %.1f deviations above its mean\n",
	       worst);
	CU_ASSERT_TRUE(worst < 5);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void a_million_keys_do_not_collide(void)
{
	const uint32_t count = 250000;
	uint64_t *tags = malloc(sizeof(*tags) * count * PATTERNS), random = 3, same = 0, bad = 0;
	struct weir_seeds seeds = draw_seeds(&random);

	for (uint32_t i = 0; i < count * PATTERNS; i++) {
		struct weir_key key = key_of(i / count, i % count);

		tags[i] = weir_key_tag(&key, i / count, &seeds);
		bad += (tags[i] & 3) != 3;
	}
	qsort(tags, count * PATTERNS, sizeof(*tags), by_value);
	for (uint32_t i = 1; i < count * PATTERNS; i++)
		same += tags[i] == tags[i - 1];
	CU_ASSERT_EQUAL(same, 0);
	CU_ASSERT_EQUAL(bad, 0);
	free(tags);
}

static void every_word_and_the_salt_count(void)
{
	uint64_t random = 4, wrong = 0;

	for (int draw = 0; draw < 1000; draw++) {
		struct weir_seeds seeds = draw_seeds(&random);
		struct weir_key key = { .kind = 4 };
		uint32_t *words = (uint32_t *)&key;
		uint64_t tag = weir_key_tag(&key, draw, &seeds);

		wrong += weir_key_tag(&key, draw + 1, &seeds) == tag;
		for (int word = 0; word < WEIR_KEY_WORDS; word++) {
			words[word] ^= 1U << (draw % 32);
			wrong += weir_key_tag(&key, draw, &seeds) == tag;
			words[word] ^= 1U << (draw % 32);
		}
	}
	CU_ASSERT_EQUAL(wrong, 0);
}

static void two_sets_are_two(void)
{
	uint64_t random = 5, wrong = 0;
	struct weir_seeds seeds = draw_seeds(&random);

	for (uint32_t sets = 2; sets <= 1 << 21; sets *= 2) {
		for (int i = 0; i < 5000; i++) {
			uint64_t tag = random_next(&random) | 3;
			uint32_t first = weir_tag_first(tag, sets);
			uint32_t second = weir_tag_second(tag, sets, &seeds);

			wrong += first == second || first >= sets || second >= sets;
		}
	}
	CU_ASSERT_EQUAL(wrong, 0);
}

WEIR_TESTS("key", TEST(spreads_over_the_sets), TEST(sets_slots_and_salts_are_independent),
	   TEST(a_million_keys_do_not_collide), TEST(every_word_and_the_salt_count),
	   TEST(two_sets_are_two))
