// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
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

WEIR_TESTS("journal", TEST(the_last_lines_stay_in_order),
	   TEST(long_and_strange_lines_are_kept_as_far_as_they_go))
