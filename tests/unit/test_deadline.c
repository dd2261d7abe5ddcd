// SPDX-License-Identifier: GPL-2.0
#include "harness.h"
#include "random.h"
#include "weir/deadline.h"

static void the_end_belongs_to_the_outside(void)
{
	struct weir_deadline deadline = weir_deadline_start(1000, 50);
	int64_t left;

	CU_ASSERT_FALSE(weir_deadline_expired(&deadline, 1049));
	CU_ASSERT_TRUE(weir_deadline_remaining(&deadline, 1049, &left));
	CU_ASSERT_EQUAL(left, 1);
	CU_ASSERT_TRUE(weir_deadline_expired(&deadline, 1050));
	CU_ASSERT_TRUE(weir_deadline_remaining(&deadline, 1050, &left));
	CU_ASSERT_EQUAL(left, 0);
}

static void expired_is_nothing_remaining(void)
{
	uint64_t seed = 4;
	int wrong = 0;

	for (int i = 0; i < 20000; i++) {
		int64_t start = (int64_t)random_below(&seed, 2000) - 1000;
		int64_t budget = 1 + (int64_t)random_below(&seed, 1000);
		int64_t now = (int64_t)random_below(&seed, 4000) - 2000, left = -1;
		struct weir_deadline deadline = weir_deadline_start(budget, start);

		wrong += !weir_deadline_remaining(&deadline, now, &left);
		wrong += left < 0 || left > budget;
		wrong += weir_deadline_expired(&deadline, now) != (left == 0);
		wrong += now >= start && left > 0 && left != start + budget - now;
	}
	CU_ASSERT_EQUAL(wrong, 0);
}

static void no_budget_never_expires(void)
{
	static const int64_t budgets[] = { 0, -1, INT64_MIN };

	for (int i = 0; i < 3; i++) {
		struct weir_deadline deadline = weir_deadline_start(budgets[i], INT64_MIN);
		int64_t left = 5;

		CU_ASSERT_FALSE(weir_deadline_expired(&deadline, INT64_MAX));
		CU_ASSERT_FALSE(weir_deadline_remaining(&deadline, INT64_MAX, &left));
		CU_ASSERT_EQUAL(left, WEIR_FOREVER_NS);
		CU_ASSERT_FALSE(weir_deadline_remaining(&deadline, INT64_MAX, NULL));
	}
}

static void the_ends_of_the_clock_are_defined(void)
{
	struct weir_deadline deadline = weir_deadline_start(INT64_MAX, INT64_MIN);
	int64_t left;

	CU_ASSERT_FALSE(weir_deadline_expired(&deadline, -2));
	CU_ASSERT_TRUE(weir_deadline_expired(&deadline, -1));
	CU_ASSERT_TRUE(weir_deadline_expired(&deadline, INT64_MAX));
	deadline = weir_deadline_start(INT64_MAX, INT64_MAX);
	CU_ASSERT_TRUE(weir_deadline_remaining(&deadline, INT64_MIN, &left));
	CU_ASSERT_EQUAL(left, INT64_MAX);
	CU_ASSERT_FALSE(weir_deadline_expired(NULL, 0));
	CU_ASSERT_FALSE(weir_deadline_remaining(NULL, 0, &left));
	CU_ASSERT_TRUE(weir_deadline_remaining(&deadline, 0, NULL));
}

WEIR_TESTS("deadline", TEST(the_end_belongs_to_the_outside), TEST(expired_is_nothing_remaining),
	   TEST(no_budget_never_expires), TEST(the_ends_of_the_clock_are_defined))
