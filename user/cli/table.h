/* SPDX-License-Identifier: GPL-2.0 */
/* Text in aligned columns. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define WEIR_TABLE_COLUMNS 12

struct weir_table {
	const char *alignment; /* a letter a column: l or r */
	char **cells;
	size_t count, room;
};

/* Appends the next cell, row by row; the first row is the heading. */
void weir_table_add(struct weir_table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Prints it on stdout and empties it. */
void weir_table_print(struct weir_table *table);
