// SPDX-License-Identifier: GPL-2.0
/*
 * The fields of a vector's line, of any types: what is taken is whole, of its type, and equal to
 * itself. The input is the letters of the types, a newline, and the fields.
 */
#include "tools/vector-values.h"

#include <stdint.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok)
{
	if (!ok)
		abort();
}

/* What is printed is of no interest, only that it can be. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	check(freopen("/dev/null", "w", stdout));
	return 0;
}

static void check_value(char type, const struct value *value)
{
	check(type != '4' || (value->i >= INT32_MIN && value->i <= INT32_MAX));
	check(type != 'b' || value->i == 0 || value->i == 1);
	check(type != 'c' || value->i >= 0);
	check(type != 'r' || value->i >= -1);
	check(type != 'e' || value->count % 4 == 0);
	if (strchr("ojqk", type))
		check(value->i >= 0 && words_of(type)[value->i]);
	if (strchr("dt~iqkrse", type))
		print_value(type, value);
	check(isnan(value->d) || type == 'l' || same(type, value, value));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct value values[FIELDS_MAX] = { { 0 } };
	char types[FIELDS_MAX + 1] = "", *text;
	const uint8_t *end = memchr(data, '\n', size);
	size_t count = end ? (size_t)(end - data) : 0;

	if (!end || count > FIELDS_MAX || memchr(data, '\0', size))
		return 0;
	memcpy(types, data, count);
	if (strspn(types, "i4dntrcb~ojqklse") != count)
		return 0;
	text = strndup((const char *)end + 1, size - count - 1);
	check(text);
	if (parse_fields(types, text, values)) {
		for (size_t i = 0; i < count; i++)
			check_value(types[i], &values[i]);
	}
	drop(values);
	free(text);
	return 0;
}
