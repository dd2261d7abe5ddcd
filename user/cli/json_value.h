/* SPDX-License-Identifier: GPL-2.0 */
/* Fields of the objects that the controller answers with, as the commands show them. */
#pragma once

#include <jansson.h>

/* "-" for a field that is missing or no text. */
static inline const char *weir_json_text(const json_t *object, const char *field)
{
	const char *value = json_string_value(json_object_get(object, field));

	return value ? value : "-";
}

/* 0 for a field that is missing or no whole number. */
static inline long long weir_json_number(const json_t *object, const char *field)
{
	return json_integer_value(json_object_get(object, field));
}
