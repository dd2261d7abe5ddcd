// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "random.h"
#include "weir/window.h"

#define SLOTS 4096

struct seen {
	int64_t totals[64];
	int count;
};

static void collect(void *context, const void *bucket)
{
	struct seen *seen = context;

	seen->totals[seen->count++] = ((const struct weir_tally *)bucket)->total;
}

static struct seen read_all(const struct weir_window *window, int64_t now, bool current)
{
	struct seen seen = { .count = 0 };

	weir_window_each(window, now, current, collect, &seen);
	return seen;
}

/* Against a ledger of every bucket there ever was, numbered from the start. */
static void agrees_with_ledger(int32_t size, int64_t length, int64_t start, uint64_t seed)
{
	struct weir_window *window =
		weir_window_new(size, length, start, sizeof(struct weir_tally), NULL);
	static int64_t ledger[SLOTS];
	int64_t width = length / size, now = start, newest = 0;
	int wrong = 0;

	memset(ledger, 0, sizeof(ledger));
	CU_ASSERT_EQUAL(weir_window_size(window), size);
	CU_ASSERT_EQUAL(weir_window_width(window), width);
	while ((now - start) / width < SLOTS - 3 * size) {
		bool current = random_below(&seed, 2);
		int64_t last;
		struct seen seen;

		now += (int64_t)random_below(&seed,
					     (uint64_t)width * (1 + random_below(&seed, 4)) + 1);
		if (random_below(&seed, 2)) {
			weir_tally_add(weir_window_slot(window, now), WEIR_OUTCOME_SUCCESS);
			newest = (now - start) / width;
			ledger[newest]++;
		}
		seen = read_all(window, now, current);
		last = (now - start) / width;
		/* Oldest first: from the one after the window's tail, to the newest written. */
		for (int64_t k = last - size + 1, i = 0; k <= newest; k++, i++) {
			if (k == last && !current)
				break;
			wrong += i >= seen.count || seen.totals[i] != (k < 0 ? 0 : ledger[k]);
		}
		wrong +=
			newest == last
				? seen.count != size - !current
				: seen.count != (last - newest < size ? size - (last - newest) : 0);
	}
	CU_ASSERT_EQUAL(wrong, 0);
	weir_window_free(window);
}

static void holds_what_the_last_stretch_saw(void)
{
	agrees_with_ledger(1, 1000, 0, 1);
	agrees_with_ledger(7, 700, 123456789, 2);
	agrees_with_ledger(40, 10000000000, -77777, 3);
	agrees_with_ledger(50, 50, 5, 4);
}

static void reading_changes_nothing(void)
{
	struct weir_window *window = weir_window_new(4, 400, 0, sizeof(struct weir_tally), NULL);

	weir_tally_add(weir_window_slot(window, 50), WEIR_OUTCOME_DROP);
	CU_ASSERT_EQUAL(read_all(window, 350, true).count, 1);
	CU_ASSERT_EQUAL(read_all(window, 400, true).count, 0);
	CU_ASSERT_EQUAL(read_all(window, INT64_MAX, true).count, 0);
	CU_ASSERT_EQUAL(read_all(window, 350, true).totals[0], 1);
	/* The clock goes back: no time passed, and the write is in the newest bucket. */
	weir_tally_add(weir_window_slot(window, INT64_MIN), WEIR_OUTCOME_DROP);
	CU_ASSERT_EQUAL(read_all(window, -10, true).totals[3], 2);
	weir_window_free(window);
}

struct noted {
	int value;
	bool cleared;
};

static void back_to_default(void *bucket)
{
	*(struct noted *)bucket = (struct noted){ .value = 42, .cleared = true };
}

static void check_noted(void *context, const void *bucket)
{
	const struct noted *noted = bucket;

	*(int *)context += noted->cleared && noted->value == 42;
}

static void clears_to_the_callers_default(void)
{
	struct weir_window *window =
		weir_window_new(3, 30, 0, sizeof(struct noted), back_to_default);
	int fresh = 0;

	weir_window_each(window, 0, true, check_noted, &fresh);
	CU_ASSERT_EQUAL(fresh, 3);
	*(struct noted *)weir_window_slot(window, 0) = (struct noted){ 1, false };
	*(struct noted *)weir_window_slot(window, 10) = (struct noted){ 2, false };
	CU_ASSERT_EQUAL(((struct noted *)weir_window_slot(window, 10))->value, 2);
	fresh = 0;
	weir_window_slot(window, 35); /* sweeps the bucket of 0, not that of 10 */
	weir_window_each(window, 35, true, check_noted, &fresh);
	CU_ASSERT_EQUAL(fresh, 2);
	weir_window_free(window);
}

static void knobs_beyond_reason_are_defined(void)
{
	struct weir_window *window = weir_window_new(-5, -5, INT64_MIN, 8, NULL);
	struct weir_tally tally = { 0 };
	struct weir_total total = { .sum = INT64_MAX - 1 };

	CU_ASSERT_EQUAL(weir_window_size(window), 1);
	CU_ASSERT_EQUAL(weir_window_width(window), 1);
	CU_ASSERT_PTR_NOT_NULL(weir_window_slot(window, INT64_MAX));
	CU_ASSERT_PTR_NOT_NULL(weir_window_slot(window, INT64_MIN));
	weir_window_free(window);
	errno = 0;
	CU_ASSERT_PTR_NULL(weir_window_new(1, 1, 0, 0, NULL));
	CU_ASSERT_EQUAL(errno, EINVAL);
	CU_ASSERT_PTR_NULL(weir_window_slot(NULL, 0));
	CU_ASSERT_EQUAL(weir_window_size(NULL), 0);
	CU_ASSERT_EQUAL(weir_window_width(NULL), 0);
	weir_window_each(NULL, 0, true, collect, NULL);
	weir_window_free(NULL);
	weir_tally_add(NULL, WEIR_OUTCOME_DROP);
	weir_tally_add(&tally, (enum weir_outcome)3);
	CU_ASSERT_EQUAL(tally.total, 0);
	weir_total_add(NULL, 1);
	weir_total_add(&total, 5);
	CU_ASSERT_EQUAL(total.sum, INT64_MAX);
	CU_ASSERT_EQUAL(total.count, 1);
}

static void tally_and_total_add_up(void)
{
	struct weir_tally tally = { 0 };
	struct weir_total total = { 0 };

	weir_tally_add(&tally, WEIR_OUTCOME_SUCCESS);
	weir_tally_add(&tally, WEIR_OUTCOME_FAILURE);
	weir_tally_add(&tally, WEIR_OUTCOME_FAILURE);
	for (int i = 0; i < 3; i++)
		weir_tally_add(&tally, WEIR_OUTCOME_DROP);
	CU_ASSERT(tally.total == 6 && tally.success == 1 && tally.failure == 2 && tally.drop == 3);
	weir_total_add(&total, 10);
	weir_total_add(&total, -4);
	CU_ASSERT(total.sum == 6 && total.count == 2);
}

WEIR_TESTS("window", TEST(holds_what_the_last_stretch_saw), TEST(reading_changes_nothing),
	   TEST(clears_to_the_callers_default), TEST(knobs_beyond_reason_are_defined),
	   TEST(tally_and_total_add_up))
