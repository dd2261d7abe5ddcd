/* SPDX-License-Identifier: GPL-2.0 */
/* A value in a JSON document by its path, "limits.0.name", for tests. */
#pragma once

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline json_t *at(json_t *object, const char *path)
{
	char text[128], *save = NULL;

	snprintf(text, sizeof(text), "%s", path);
	for (char *word = strtok_r(text, ".", &save); word; word = strtok_r(NULL, ".", &save)) {
		object = *word >= '0' && *word <= '9' ? json_array_get(object, (size_t)atoi(word))
						      : json_object_get(object, word);
	}
	return object;
}

static inline long long number(json_t *object, const char *path)
{
	json_t *value = at(object, path);

	return json_is_integer(value) ? json_integer_value(value) : -1;
}

static inline const char *text(json_t *object, const char *path)
{
	const char *value = json_string_value(at(object, path));

	return value ? value : "(none)";
}
