// SPDX-License-Identifier: GPL-2.0
/* The front's word against the bucket's: it refuses nothing that the ledger would admit. */
#include "harness.h"
#include "random.h"
#include "weir/bucket.h"
#include "weir/front.h"

/* A number of any size, all sizes equally likely. */
static uint64_t any_size(uint64_t *seed, unsigned int bits)
{
	return random_next(seed) >> (64 - bits + random_below(seed, bits));
}

static void refuses_only_what_the_bucket_refuses(void)
{
	uint64_t seed = 1, wrong = 0, refused = 0, asked = 0;

	for (int i = 0; i < 1000000; i++) {
		struct weir_bucket_conf conf = { .burst_ticks = 1 + any_size(&seed, 60) };
		uint64_t now = any_size(&seed, 62), cost = 1 + any_size(&seed, 60), next;
		uint64_t tat = now + random_below(&seed, conf.burst_ticks + 2);
		uint64_t seen = random_below(&seed, 2) ? tat : tat - random_below(&seed, tat + 1);
		bool front = weir_front_refuses(seen, now, conf.burst_ticks, cost);

		if (front)
			wrong += weir_bucket_step(tat, &conf, now, cost, &next);
		refused += front;
		asked += !front;
	}
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_TRUE(refused > 100000 && asked > 100000);
}

/* What it learnt at a refusal, it says again at once, and until the tick when it would pass. */
static void knows_the_tick(void)
{
	uint64_t seed = 2, wrong = 0;

	for (int i = 0; i < 100000; i++) {
		struct weir_bucket_conf conf = { .burst_ticks = 1 + any_size(&seed, 50) };
		uint64_t now = 1 + any_size(&seed, 60);
		uint64_t cost = 1 + random_below(&seed, conf.burst_ticks), next;
		uint64_t seen = now + random_below(&seed, conf.burst_ticks + 1);
		uint64_t wait = weir_bucket_wait(seen, &conf, now, cost);

		wrong += weir_front_refuses(seen, now, conf.burst_ticks, cost) != (wait > 0);
		if (!wait)
			continue;
		wrong += !weir_front_refuses(seen, now + wait - 1, conf.burst_ticks, cost);
		wrong += weir_front_refuses(seen, now + wait, conf.burst_ticks, cost);
		wrong += !weir_bucket_step(seen, &conf, now + wait, cost, &next);
	}
	CU_ASSERT_EQUAL(wrong, 0);
}

/* From before a lower burst or a clock that stepped back: the ledger decides. */
static void asks_when_seen_is_out_of_reach(void)
{
	CU_ASSERT_TRUE(weir_front_refuses(1100, 1000, 100, 1));
	CU_ASSERT_FALSE(weir_front_refuses(1101, 1000, 100, 1));
	CU_ASSERT_FALSE(weir_front_refuses(UINT64_MAX / 2, 1000, 100, 1));
}

static void holds_one_revision_of_one_key(void)
{
	struct weir_front_slot slot = { .tag = 7, .revision = 3 };

	CU_ASSERT_TRUE(weir_front_holds(&slot, 7, 3));
	CU_ASSERT_FALSE(weir_front_holds(&slot, 7, 4));
	CU_ASSERT_FALSE(weir_front_holds(&slot, 15, 3));
}

static void refuses_until_the_instant(void)
{
	CU_ASSERT_TRUE(weir_front_refuses_until(1000, 999, 500));
	CU_ASSERT_FALSE(weir_front_refuses_until(1000, 1000, 500));
	CU_ASSERT_FALSE(weir_front_refuses_until(0, 0, 500));
	CU_ASSERT_TRUE(weir_front_refuses_until(1000, 500, 500));
	CU_ASSERT_FALSE(weir_front_refuses_until(1000, 499, 500));
}

static void places_of_own_ledgers_stand_apart(void)
{
	CU_ASSERT_EQUAL(weir_front_place(12345, false, 255), 12345);
	CU_ASSERT_EQUAL(weir_front_place(0, true, 0), WEIR_FRONT_OWN);
	CU_ASSERT_EQUAL(weir_front_place(WEIR_OWN_PLACES_MAX - 1, true, 255), UINT32_MAX);
	CU_ASSERT_EQUAL(weir_front_place(5, true, 1) >> 23, 0x101);
}

WEIR_TESTS("front", TEST(refuses_only_what_the_bucket_refuses), TEST(knows_the_tick),
	   TEST(asks_when_seen_is_out_of_reach), TEST(holds_one_revision_of_one_key),
	   TEST(refuses_until_the_instant), TEST(places_of_own_ledgers_stand_apart))
