// SPDX-License-Identifier: GPL-2.0
#include "cli/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void weir_table_add(struct weir_table *table, const char *format, ...)
{
	va_list args;
	char *text;
	int length;

	if (table->count == table->room) {
		size_t room = table->room ? 2 * table->room : 64;
		char **cells = realloc(table->cells, room * sizeof(*cells));

		if (!cells)
			abort();
		table->cells = cells;
		table->room = room;
	}
	va_start(args, format);
	length = vasprintf(&text, format, args);
	va_end(args);
	if (length < 0)
		abort();
	table->cells[table->count++] = text;
}

void weir_table_print(struct weir_table *table)
{
	size_t columns = strlen(table->alignment), widths[WEIR_TABLE_COLUMNS] = { 0 };

	for (size_t i = 0; i < table->count; i++) {
		size_t width = strlen(table->cells[i]);

		if (width > widths[i % columns])
			widths[i % columns] = width;
	}
	for (size_t i = 0; i < table->count; i++) {
		size_t column = i % columns;
		int width = (int)widths[column];

		if (table->alignment[column] == 'r')
			printf("%*s", width, table->cells[i]);
		else
			printf("%-*s", column + 1 < columns ? width : 0, table->cells[i]);
		fputs(column + 1 < columns ? "  " : "\n", stdout);
		free(table->cells[i]);
	}
	free(table->cells);
	table->cells = NULL;
	table->count = table->room = 0;
}
