// SPDX-License-Identifier: GPL-2.0
/* Changes of a bucket's limit: no key gains or loses a token by them. */
#include "kernel/bucket_bench.h"
#include "weir/place.h"

#define SECOND WEIR_NS_PER_SEC

static void b1_pushes_refill_nothing(void)
{
	struct rig_limit limit = { .rate = 1000, .burst = 50, .key = WEIR_KEY_SOURCE };
	struct bench bench;
	uint64_t passed = 0;

	bench_open(&bench, &limit);
	for (int i = 0; i < 1000; i++) {
		CU_ASSERT_EQUAL(rig_set(&bench.rig, &limit), 0);
		*bench.rig.now_ns += SECOND / 1000;
		passed += passed_of(&bench, 20);
	}
	CU_ASSERT_EQUAL(passed, 50 + 999);
}

static void b1_raises_give_nothing(void)
{
	struct rig_limit limit = { .rate = 1, .burst = 40, .key = WEIR_KEY_SOURCE };
	struct bench bench;

	bench_open(&bench, &limit);
	CU_ASSERT_EQUAL(passed_of(&bench, 100), 40);
	for (int i = 0; i < 200; i++) {
		limit.rate *= 1.05;
		CU_ASSERT_EQUAL(rig_set(&bench.rig, &limit), 0);
		CU_ASSERT_EQUAL(passed_of(&bench, 50), 0);
	}
}

/* Whatever changes at one instant: the tokens stay what they were, and an empty bucket empty. */
static void b1_changes_back_and_forth_refill_nothing(void)
{
	struct rig_limit limit = { .rate = 100, .burst = 40, .key = WEIR_KEY_SOURCE };
	uint64_t seed = 4;
	struct bench bench;

	bench_open(&bench, &limit);
	CU_ASSERT_EQUAL(passed_of(&bench, 100), 40);
	for (int i = 0; i < 300; i++) {
		limit.rate = log_uniform(&seed, 0.01, 1e6);
		limit.burst = (double)(1 + random_below(&seed, 100));
		CU_ASSERT_EQUAL(rig_set(&bench.rig, &limit), 0);
		CU_ASSERT_EQUAL(passed_of(&bench, 50), 0);
	}
}

/* A change leaves a bucket the tokens it has, as far as the new burst holds them. */
static void b1_a_change_keeps_the_tokens(void)
{
	struct rig_limit limit = { .rate = 10, .burst = 100, .key = WEIR_KEY_SOURCE };
	struct bench bench;

	bench_open(&bench, &limit);
	CU_ASSERT_EQUAL(passed_of(&bench, 30), 30);
	limit.rate = 1000;
	limit.burst = 400;
	CU_ASSERT_EQUAL(rig_set(&bench.rig, &limit), 0);
	CU_ASSERT_EQUAL(passed_of(&bench, 50), 50);
	limit.rate = 0.5;
	limit.burst = 11;
	CU_ASSERT_EQUAL(rig_set(&bench.rig, &limit), 0);
	CU_ASSERT_EQUAL(passed_of(&bench, 50), 11);
}

/* A key that was not seen for more changes than are remembered counts as empty, not as full. */
static void b1_a_forgotten_revision_is_empty(void)
{
	struct rig_limit limit = { .rate = 1, .burst = 100, .key = WEIR_KEY_SOURCE };
	struct bench bench;

	bench_open(&bench, &limit);
	CU_ASSERT_EQUAL(passed_of(&bench, 10), 10);
	for (int i = 0; i < WEIR_PAST_REVISIONS + 1; i++)
		CU_ASSERT_EQUAL(rig_set(&bench.rig, &limit), 0);
	CU_ASSERT_EQUAL(passed_of(&bench, 100), 0);
	*bench.rig.now_ns += 3 * SECOND;
	CU_ASSERT_EQUAL(passed_of(&bench, 100), 3);
}

/*
 * Places say the lower half of a revision. A key that slept through so many changes that the
 * half came more than half round is converted all the same, and so at each change from then on.
 */
static void b1_a_long_sleep_is_no_way_round(void)
{
	static const uint32_t changes[] = { 9, 32767, 32768, 40000, 65500, 65536 + 20 };
	struct rig_limit limit = { .rate = 100, .burst = 40, .key = WEIR_KEY_SOURCE };
	struct bench bench;

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		limit.salt = i + 1;
		limit.rate = 100;
		bench_open(&bench, &limit);
		CU_ASSERT_EQUAL(passed_of(&bench, 1), 1);
		bench.rig.revision += changes[i];
		*bench.rig.now_ns += 86400 * SECOND;
		CU_ASSERT_EQUAL(rig_set(&bench.rig, &limit), 0);
		CU_ASSERT_EQUAL(passed_of(&bench, 100), 40);
		for (int halving = 0; halving < 3; halving++) {
			limit.rate /= 2;
			CU_ASSERT_EQUAL(rig_set(&bench.rig, &limit), 0);
			CU_ASSERT_EQUAL(passed_of(&bench, 100), 0);
		}
	}
}

/*
 * A packet that is under way when another policy is switched to may find its key converted to
 * that already, whose prices it doesn't know. It must not take the state for one to be cut off.
 */
static void b1_a_late_packet_refills_nothing(void)
{
	struct rig_limit limit = { .rate = 1600, .burst = 100, .key = WEIR_KEY_SOURCE };
	uint32_t *generation;
	struct bench bench;

	bench_open(&bench, &limit);
	generation = &bench.rig.plane.board->active.generation;
	CU_ASSERT_EQUAL(passed_of(&bench, 60), 60);
	limit.rate = 100;
	CU_ASSERT_EQUAL(rig_set(&bench.rig, &limit), 0);
	CU_ASSERT_EQUAL(passed_of(&bench, 10), 10);
	*generation ^= 1;
	CU_ASSERT_FALSE(passes(&bench));
	CU_ASSERT_EQUAL(weir_dataplane_totals(&bench.rig.plane, 0).contended_packets, 1);
	*generation ^= 1;
	CU_ASSERT_EQUAL(passed_of(&bench, 100), 30);
}

WEIR_TESTS("kernel bucket changes", TEST(b1_pushes_refill_nothing), TEST(b1_raises_give_nothing),
	   TEST(b1_changes_back_and_forth_refill_nothing),
	   TEST(b1_a_change_keeps_the_tokens), TEST(b1_a_forgotten_revision_is_empty),
	   TEST(b1_a_long_sleep_is_no_way_round), TEST(b1_a_late_packet_refills_nothing))
