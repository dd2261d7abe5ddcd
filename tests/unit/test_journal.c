// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/journal.h"
#include "harness.h"
#include "json_path.h"

static void the_last_lines_stay_in_order(void)
{
	struct weir_journal *journal = weir_journal_new();
	json_t *lines = weir_journal_json(journal, 10);

	CU_ASSERT_EQUAL(json_array_size(lines), 0);
	json_decref(lines);
	for (unsigned int i = 0; i < WEIR_JOURNAL_LINES + 7; i++) {
		char line[32];

		snprintf(line, sizeof(line), "line %u", i);
		weir_journal_add(journal, i, line);
	}
	lines = weir_journal_json(journal, SIZE_MAX);
	CU_ASSERT_EQUAL(json_array_size(lines), WEIR_JOURNAL_LINES);
	CU_ASSERT_STRING_EQUAL(text(lines, "0.text"), "line 7");
	CU_ASSERT_STRING_EQUAL(text(lines, "999.text"), "line 1006");
	CU_ASSERT_EQUAL(number(lines, "999.time_ns"), 1006);
	json_decref(lines);
	lines = weir_journal_json(journal, 2);
	CU_ASSERT_EQUAL(json_array_size(lines), 2);
	CU_ASSERT_STRING_EQUAL(text(lines, "0.text"), "line 1005");
	json_decref(lines);
	weir_journal_free(journal);
}

static void long_and_strange_lines_are_kept_as_far_as_they_go(void)
{
	struct weir_journal *journal = weir_journal_new();
	char longer[2 * WEIR_JOURNAL_TEXT];
	json_t *lines;

	memset(longer, 'l', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	weir_journal_add(journal, 1, longer);
	weir_journal_add(journal, 2, "a program called \xff\xfe");
	/* The last character of the room has two bytes, and the cut between them. */
	memcpy(longer + WEIR_JOURNAL_TEXT - 2, "\xc3\xbc", 2);
	weir_journal_add(journal, 3, longer);
	lines = weir_journal_json(journal, 5);
	CU_ASSERT_EQUAL(json_array_size(lines), 3);
	CU_ASSERT_EQUAL(strlen(text(lines, "2.text")), WEIR_JOURNAL_TEXT - 1);
	CU_ASSERT_STRING_EQUAL(text(lines, "2.text") + WEIR_JOURNAL_TEXT - 3, "l?");
	CU_ASSERT_EQUAL(strlen(text(lines, "0.text")), WEIR_JOURNAL_TEXT - 1);
	CU_ASSERT_STRING_EQUAL(text(lines, "1.text"), "a program called ??");
	json_decref(lines);
	weir_journal_free(journal);
}

/* How many more times there is memory. */
static int left;

static void *scarce(size_t size)
{
	return left-- > 0 ? malloc(size) : NULL;
}

/* Whichever allocation fails: no answer, not one that lacks lines. */
static void without_memory_there_is_no_answer(void)
{
	struct weir_movement movement = { .time_ns = 2, .from = 1, .to = 2, .signal = "cpu" };
	struct weir_journal *journal = weir_journal_new();
	json_t *lines = NULL;
	int failed = 0;

	weir_journal_add(journal, 1, "a line");
	weir_journal_add_movement(journal, 2, &movement);
	json_set_alloc_funcs(scarce, free);
	for (; !lines && failed < 1000; failed++) {
		left = failed;
		lines = weir_journal_json(journal, 5);
	}
	json_set_alloc_funcs(malloc, free);
	CU_ASSERT(failed > 10 && failed < 1000);
	CU_ASSERT_EQUAL(json_array_size(lines), 2);
	CU_ASSERT_PTR_NOT_NULL(json_object_get(json_array_get(lines, 1), "movement"));
	json_decref(lines);
	weir_journal_free(journal);
}

WEIR_TESTS("journal", TEST(the_last_lines_stay_in_order),
	   TEST(long_and_strange_lines_are_kept_as_far_as_they_go),
	   TEST(without_memory_there_is_no_answer))
