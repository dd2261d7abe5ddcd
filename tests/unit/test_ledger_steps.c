// SPDX-License-Identifier: GPL-2.0
/* The ledger's protocol, step by step. */
#include "harness.h"
#include "weir/ledger.h"

static const struct weir_beginning beginning = { .state = 1000000, .passed = 1 };

/* A rival's provisional tag at a place. */
static void put_rival(struct weir_set *set, uint32_t way, uint64_t tag)
{
	set->tag[way] = tag & ~WEIR_TAG_CONFIRMED;
	set->state[way] = WEIR_STATE_BUSY;
}

static void a_claim_yields_and_strikes_by_rule(void)
{
	static const struct {
		uint32_t rival; /* which * WEIR_WAYS + way; ours is 3 */
		bool confirmed, stays;
	} rows[] = {
		{ 1, false, false }, /* a lower rival stays */
		{ 5, false, true },  /* a higher one is struck out */
		{ 12, false, true }, /* in the second set, too */
		{ 5, true, false },  /* a confirmed one stays, wherever */
		{ 12, true, false },
	};
	const uint64_t tag = 0x77777777, now = 5000;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct weir_set sets[2] = { 0 };
		struct weir_set *theirs = &sets[rows[i].rival / WEIR_WAYS];
		struct weir_place ours = { .set = &sets[0], .way = 3 };
		uint32_t way = rows[i].rival % WEIR_WAYS;
		bool stays;

		put_rival(theirs, way, tag);
		if (rows[i].confirmed)
			theirs->tag[way] = tag;
		CU_ASSERT_TRUE(weir_ledger_reserve(&ours, now));
		stays = weir_ledger_publish(&sets[0], &sets[1], &ours, tag, &beginning, now);
		CU_ASSERT_EQUAL(stays, rows[i].stays);
		CU_ASSERT_EQUAL(sets[0].tag[3], rows[i].stays ? tag : 0);
		CU_ASSERT_EQUAL(theirs->tag[way], rows[i].confirmed ? tag
						  : rows[i].stays   ? 0
								    : (tag & ~WEIR_TAG_CONFIRMED));
		/* Ours, or given back: neutral again, but not at the instant it was taken. */
		CU_ASSERT_EQUAL(sets[0].state[3], rows[i].stays ? beginning.state : now + 1);
	}
}

static void a_struck_out_claim_gives_its_place_back(void)
{
	struct weir_set sets[2] = { 0 };
	struct weir_place place = { .set = &sets[1], .way = 7, .which = 1 };

	/* Reserved, then struck out by a rival that has confirmed: nothing of it is left. */
	CU_ASSERT_TRUE(weir_ledger_reserve(&place, 100));
	CU_ASSERT_FALSE(weir_ledger_reserve(&place, 100));
	CU_ASSERT_FALSE(weir_neutral(sets[1].state[7], UINT64_MAX / 2 - 1));
	weir_ledger_release(&place, 100);
	CU_ASSERT_EQUAL(sets[1].tag[7], 0);
	CU_ASSERT_FALSE(weir_ledger_reserve(&place, 100));
	CU_ASSERT_TRUE(weir_ledger_reserve(&place, 101));
}

static void neutral_means_not_after_now(void)
{
	static const uint64_t instants[] = { 0, 1, 1000, 1ULL << 40, 1ULL << 61 };

	for (size_t i = 0; i < sizeof(instants) / sizeof(instants[0]); i++) {
		uint64_t now = instants[i];

		CU_ASSERT_TRUE(weir_neutral(0, now));
		CU_ASSERT_TRUE(weir_neutral(now, now));
		CU_ASSERT_FALSE(weir_neutral(now + 1, now));
		CU_ASSERT_FALSE(weir_neutral(now + (1ULL << 60), now));
		CU_ASSERT_FALSE(weir_neutral(WEIR_STATE_BUSY, now));
		CU_ASSERT_FALSE(weir_neutral(1ULL << 63 | 1, now + 2));
		CU_ASSERT_EQUAL(weir_equal(now, now), 1);
		CU_ASSERT_EQUAL(weir_equal(now, now + 1), 0);
		CU_ASSERT_EQUAL(weir_equal(now, now ^ 1ULL << 63), 0);
	}
}

static void newcomers_go_to_the_emptier_set(void)
{
	for (uint32_t a = 0; a <= WEIR_WAYS; a++) {
		for (uint32_t b = 0; b <= WEIR_WAYS; b++) {
			struct weir_set sets[2] = { 0 };
			bool second = a >= WEIR_FIRST_FULL && b < a;
			struct weir_place place;

			for (uint32_t i = 0; i < WEIR_WAYS; i++) {
				sets[0].state[i] = i < a ? 501 : 500;
				sets[1].state[i] = i < b ? 501 : 0;
			}
			weir_ledger_choose(&place, &sets[0], &sets[1], 500);
			if (a == WEIR_WAYS && b == WEIR_WAYS) {
				CU_ASSERT_PTR_NULL(place.set);
				continue;
			}
			CU_ASSERT_PTR_EQUAL(place.set, &sets[second]);
			CU_ASSERT_EQUAL(place.which, second);
			CU_ASSERT_TRUE(place.way < WEIR_WAYS);
			CU_ASSERT_TRUE(weir_neutral(place.set->state[place.way % WEIR_WAYS], 500));
		}
	}
}

WEIR_TESTS("ledger steps", TEST(a_claim_yields_and_strikes_by_rule),
	   TEST(a_struck_out_claim_gives_its_place_back), TEST(neutral_means_not_after_now),
	   TEST(newcomers_go_to_the_emptier_set))
