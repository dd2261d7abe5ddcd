// SPDX-License-Identifier: GPL-2.0
#include "harness.h"
#include "random.h"
#include "weir/gate.h"

static void holds_its_limit(void)
{
	static const int32_t limits[] = { 1, 2, 50, 1000 };

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct weir_gate gate = weir_gate_new(limits[i]);

		for (int32_t n = 0; n < limits[i]; n++)
			CU_ASSERT_TRUE(weir_gate_enter(&gate));
		CU_ASSERT_FALSE(weir_gate_enter(&gate));
		CU_ASSERT_EQUAL(weir_gate_held(&gate), limits[i]);
		weir_gate_leave(&gate);
		CU_ASSERT_TRUE(weir_gate_enter(&gate));
		CU_ASSERT_FALSE(weir_gate_enter(&gate));
	}
}

static void counts_like_a_counter(void)
{
	struct weir_gate gate = weir_gate_new(7);
	uint64_t seed = 3;
	int inside = 0, wrong = 0;

	for (int i = 0; i < 20000; i++) {
		if (random_below(&seed, 2)) {
			wrong += weir_gate_enter(&gate) != (inside < 7);
			inside += inside < 7;
		} else {
			weir_gate_leave(&gate);
			inside -= inside > 0;
		}
		wrong += weir_gate_held(&gate) != inside;
		/* The first word is a neutral instant: above every real one while any is inside. */
		wrong += (gate.state.word <= 1ULL << 62) != (inside == 0);
	}
	CU_ASSERT_EQUAL(wrong, 0);
}

static void a_lowered_limit_acts_at_once(void)
{
	struct weir_gate gate = weir_gate_new(5);

	for (int i = 0; i < 5; i++)
		CU_ASSERT_TRUE(weir_gate_enter(&gate));
	gate.conf.limit = 2;
	CU_ASSERT_FALSE(weir_gate_enter(&gate));
	for (int i = 0; i < 3; i++)
		weir_gate_leave(&gate);
	CU_ASSERT_FALSE(weir_gate_enter(&gate));
	weir_gate_leave(&gate);
	CU_ASSERT_TRUE(weir_gate_enter(&gate));
}

static void zero_or_less_is_no_ceiling(void)
{
	struct weir_gate gate = weir_gate_new(-3);

	for (int i = 0; i < 100000; i++)
		CU_ASSERT_TRUE_FATAL(weir_gate_enter(&gate));
	CU_ASSERT_EQUAL(weir_gate_held(&gate), 100000);
	gate.state.word = WEIR_GATE_INSIDE | INT32_MAX;
	CU_ASSERT_FALSE(weir_gate_enter(&gate));
	CU_ASSERT_EQUAL(weir_gate_held(&gate), INT32_MAX);
}

static void leave_without_enter_is_ignored(void)
{
	struct weir_gate gate = weir_gate_new(1);

	weir_gate_leave(&gate);
	weir_gate_leave(&gate);
	CU_ASSERT_EQUAL(weir_gate_held(&gate), 0);
	CU_ASSERT_TRUE(weir_gate_enter(&gate));
	CU_ASSERT_FALSE(weir_gate_enter(&gate));
	CU_ASSERT_FALSE(weir_gate_enter(NULL));
	weir_gate_leave(NULL);
	CU_ASSERT_EQUAL(weir_gate_held(NULL), 0);
}

WEIR_TESTS("gate", TEST(holds_its_limit), TEST(counts_like_a_counter),
	   TEST(a_lowered_limit_acts_at_once), TEST(zero_or_less_is_no_ceiling),
	   TEST(leave_without_enter_is_ignored))
