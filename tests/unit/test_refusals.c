// SPDX-License-Identifier: GPL-2.0
/* Refusals by key: none is lost while the table grows, and what has no room is said. */
#include "controller/refusals.h"
#include "harness.h"

static struct weir_refusals refusals;

static void add(uint64_t tag, uint16_t slot, uint64_t now_ns)
{
	struct weir_own_record key = { .key.slot = slot };

	CU_ASSERT_EQUAL(weir_refusals_add(&refusals, tag, &key, 100, now_ns), 0);
}

static void keys_are_counted_and_sorted(void)
{
	/* Key k is refused k times, under tags that collide in a small table. */
	for (uint64_t round = 1; round <= 100; round++) {
		for (uint64_t k = round; k <= 100; k++)
			add(k << 32 | 7, 3, 1000 * k + round);
	}
	add(50ULL << 32 | 7, 4, 1); /* the same tag of another limit is another key */
	CU_ASSERT_EQUAL(refusals.count, 101);
	weir_refusals_sort(&refusals);
	for (uint64_t i = 0; i < 100; i++) {
		const struct weir_refused_key *entry = &refusals.entries[i];

		CU_ASSERT_EQUAL(entry->packets, i == 99 ? 1 : 100 - i);
		CU_ASSERT_EQUAL(entry->bytes, 100 * entry->packets);
	}
	CU_ASSERT_EQUAL(refusals.entries[0].tag >> 32, 100);
	CU_ASSERT_EQUAL(refusals.entries[0].first_ns, 100001);
	CU_ASSERT_EQUAL(refusals.entries[0].last_ns, 100100);
	weir_refusals_free(&refusals);
}

static void keys_without_room_are_said(void)
{
	for (uint64_t k = 1; k <= WEIR_REFUSALS_KEYS_MAX + 5; k++)
		add(k * 0x9e3779b97f4a7c15ULL, 3, k);
	add(0x9e3779b97f4a7c15ULL, 3, 1);
	CU_ASSERT_EQUAL(refusals.count, WEIR_REFUSALS_KEYS_MAX);
	CU_ASSERT_EQUAL(refusals.left_out, 5);
	weir_refusals_sort(&refusals);
	CU_ASSERT_EQUAL(refusals.entries[0].packets, 2);
	weir_refusals_free(&refusals);
}

static void none_is_an_empty_list(void)
{
	weir_refusals_sort(&refusals);
	CU_ASSERT_EQUAL(refusals.count, 0);
	weir_refusals_free(&refusals);
}

WEIR_TESTS("refusals", TEST(keys_are_counted_and_sorted), TEST(keys_without_room_are_said),
	   TEST(none_is_an_empty_list))
