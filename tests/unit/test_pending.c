// SPDX-License-Identifier: GPL-2.0
#include "harness.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "random.h"
#include "weir/pending.h"

static void counts_for_one_to_two_slices(void)
{
	uint64_t word = 0, slice = 70000;

	word = weir_pending_add(word, slice);
	word = weir_pending_add(word, slice);
	CU_ASSERT_EQUAL(weir_pending_count(word, slice), 2);
	word = weir_pending_add(word, slice + 1);
	CU_ASSERT_EQUAL(weir_pending_count(word, slice + 1), 3);
	CU_ASSERT_EQUAL(weir_pending_count(word, slice + 2), 1);
	CU_ASSERT_EQUAL(weir_pending_count(word, slice + 3), 0);
	CU_ASSERT_EQUAL(weir_pending_until(slice + 1) >> WEIR_PENDING_SHIFT, slice + 3);
}

/* A CPU whose clock is a moment behind does not throw away what is there. */
static void a_clock_behind_sees_the_same(void)
{
	uint64_t word = weir_pending_add(0, 65536);

	CU_ASSERT_EQUAL(weir_pending_count(word, 65535), 1);
	CU_ASSERT_EQUAL(weir_pending_count(weir_pending_add(word, 65535), 65536), 2);
	CU_ASSERT_TRUE(weir_pending_lives(65536, 65535));
	CU_ASSERT_TRUE(weir_pending_lives(65535, 65536));
	CU_ASSERT_FALSE(weir_pending_lives(65534, 65536));
	CU_ASSERT_FALSE(weir_pending_lives(65536, 65534));
}

static void stops_at_its_most(void)
{
	uint64_t word = 5ULL << 48 | WEIR_PENDING_MAX << 24;

	CU_ASSERT_EQUAL(weir_pending_add(word, 5), word);
	CU_ASSERT_EQUAL(weir_pending_count(weir_pending_add(word, 6), 6), WEIR_PENDING_MAX + 1);
	CU_ASSERT_EQUAL(weir_pending_drop(0, 5, 5) & 0xffffffffffff, 0);
	CU_ASSERT_EQUAL(weir_pending_drop(word, 5, 4), word);
}

/* Against a table of every slice. */
static void counts_like_a_table(void)
{
	uint32_t table[600] = { 0 };
	uint64_t word = 0, slice = 100, wrong = 0, base = 65536 - 300;
	uint64_t random = 7;

	for (int i = 0; i < 100000; i++) {
		uint64_t what = random_next(&random), then = slice - (what >> 8 & 3);

		if (what % 1000 == 0 && slice < 590)
			slice += 1 + (what >> 16) % 3;
		if (what & 1) {
			table[slice]++;
			word = weir_pending_add(word, base + slice);
		} else if (table[then]) {
			table[then]--;
			word = weir_pending_drop(word, base + slice, base + then);
		}
		wrong += weir_pending_count(word, base + slice) != table[slice] + table[slice - 1];
	}
	CU_ASSERT_EQUAL(wrong, 0);
}

WEIR_TESTS("pending", TEST(counts_for_one_to_two_slices), TEST(a_clock_behind_sees_the_same),
	   TEST(stops_at_its_most), TEST(counts_like_a_table))
