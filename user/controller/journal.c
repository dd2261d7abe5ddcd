// SPDX-License-Identifier: GPL-2.0
#include "controller/journal.h"

#include <stdio.h>
#include <stdlib.h>

#include "controller/error.h"

struct line {
	uint64_t time_ns;
	char text[WEIR_JOURNAL_TEXT];
	bool moved;
	struct weir_movement movement;
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

static struct line *next_line(struct weir_journal *journal, uint64_t time_ns)
{
	struct line *line = &journal->lines[journal->added++ % WEIR_JOURNAL_LINES];

	line->time_ns = time_ns;
	line->moved = false;
	return line;
}

void weir_journal_add(struct weir_journal *journal, uint64_t time_ns, const char *text)
{
	struct line *line = next_line(journal, time_ns);

	snprintf(line->text, sizeof(line->text), "%s", text);
	weir_error_make_printable(line->text);
}

void weir_journal_add_movement(struct weir_journal *journal, uint64_t time_ns,
			       const struct weir_movement *movement)
{
	struct line *line = next_line(journal, time_ns);

	weir_movement_print(movement, line->text, sizeof(line->text));
	line->moved = true;
	line->movement = *movement;
}

static json_t *line_json(const struct line *line)
{
	json_t *made = json_pack("{s:I, s:s}", "time_ns", (json_int_t)line->time_ns, "text",
				 line->text);

	if (made && line->moved &&
	    json_object_set_new(made, "movement", weir_movement_json(&line->movement))) {
		json_decref(made);
		return NULL;
	}
	return made;
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

		if (json_array_append_new(array, line_json(line))) {
			json_decref(array);
			array = NULL;
		}
	}
	return array;
}
