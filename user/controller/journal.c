// SPDX-License-Identifier: GPL-2.0
#include "controller/journal.h"

#include <stdio.h>
#include <stdlib.h>

struct line {
	uint64_t time_ns;
	char text[WEIR_JOURNAL_TEXT];
};

struct weir_journal {
	uint64_t added; /* since the start: the next one goes to added % LINES */
	struct line lines[WEIR_JOURNAL_LINES];
};

struct weir_journal *weir_journal_new(void)
{
	return calloc(1, sizeof(struct weir_journal));
}

void weir_journal_free(struct weir_journal *journal)
{
	free(journal);
}

void weir_journal_add(struct weir_journal *journal, uint64_t time_ns, const char *text)
{
	struct line *line = &journal->lines[journal->added++ % WEIR_JOURNAL_LINES];

	line->time_ns = time_ns;
	snprintf(line->text, sizeof(line->text), "%s", text);
}

json_t *weir_journal_json(const struct weir_journal *journal, size_t count)
{
	json_t *array = json_array();
	uint64_t first;

	if (count > WEIR_JOURNAL_LINES)
		count = WEIR_JOURNAL_LINES;
	first = journal->added > count ? journal->added - count : 0;
	for (uint64_t i = first; i < journal->added && array; i++) {
		const struct line *line = &journal->lines[i % WEIR_JOURNAL_LINES];
		/* A foreign program may have any bytes for a name. */
		json_t *text = json_string(line->text);

		if (!text)
			text = json_string("(a line that is not UTF-8)");
		if (json_array_append_new(array,
					  json_pack("{s:I, s:o}", "time_ns",
						    (json_int_t)line->time_ns, "text", text))) {
			json_decref(array);
			array = NULL;
		}
	}
	return array;
}
