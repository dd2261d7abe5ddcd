// SPDX-License-Identifier: GPL-2.0
/* The same tables as JSON in base units: `weir check -j`. */
#include "controller/field.h"
#include "controller/policy.h"

#include <string.h>

static json_t *rate_json(const struct weir_rate *rate)
{
	if (weir_rate_is_unlimited(rate) || weir_rate_is_block(rate))
		return json_string(rate->amount ? "unlimited" : "block");
	if (!rate->per_ns)
		return json_integer((json_int_t)rate->amount);
	return json_pack("{s:I, s:I, s:s}", "amount", (json_int_t)rate->amount, "per_ns",
			 (json_int_t)rate->per_ns, "unit", rate->bytes ? "bytes" : "packets");
}

static json_t *level_json(uint64_t level)
{
	if (!level || level == UINT64_MAX)
		return json_string(level ? "unlimited" : "block");
	return json_integer((json_int_t)level);
}

static json_t *scalar_json(const struct weir_field *field, const void *object)
{
	const void *value = (const char *)object + field->offset;
	const uint64_t *number = value;
	char text[WEIR_FIELD_TEXT];

	switch (field->type) {
	case WEIR_FIELD_WORD:
		weir_field_text(field, object, text);
		return json_string(text);
	case WEIR_FIELD_BOOL:
		return json_boolean(*(const bool *)value);
	case WEIR_FIELD_COUNT:
		return *number ? json_integer((json_int_t)*number) : NULL;
	case WEIR_FIELD_TIME:
		return json_integer((json_int_t)*number);
	case WEIR_FIELD_LEVEL:
		return level_json(*number);
	case WEIR_FIELD_RATIO:
	case WEIR_FIELD_PERCENT:
		return json_real((double)*number / (double)WEIR_MILLION);
	case WEIR_FIELD_RATE:
	case WEIR_FIELD_EVENTS:
	case WEIR_FIELD_OFFER:
		return rate_json(value);
	case WEIR_FIELD_AMOUNT:
		return json_integer((json_int_t)((const struct weir_amount *)value)->value);
	case WEIR_FIELD_AFTER:
		return json_pack("{s:I, s:I}", "refusals", (json_int_t)number[0], "window_ns",
				 (json_int_t)number[1]);
	default:
		return json_string(value);
	}
}

/* Texts plain, not as YAML quotes them; numbers as numbers; a range as its two ends. */
static json_t *list_json(const struct weir_field *field, const void *object)
{
	const void *value = (const char *)object + field->offset;
	const struct weir_prefixes *prefixes = value;
	const struct weir_ranges *ranges = value;
	const struct weir_texts *texts = value;
	json_t *list = json_array();
	char text[WEIR_FIELD_TEXT];
	size_t cursor = 0;

	switch (field->type) {
	case WEIR_FIELD_RANGES:
		for (size_t i = 0; i < ranges->count; i++)
			json_array_append_new(list, json_pack("[i, i]", ranges->items[i].low,
							      ranges->items[i].high));
		break;
	case WEIR_FIELD_PREFIXES:
		for (size_t i = 0; i < prefixes->count; i++)
			json_array_append_new(
				list, json_string(weir_prefix_print(&prefixes->items[i], text)));
		break;
	case WEIR_FIELD_IFNAMES:
	case WEIR_FIELD_PATHS:
	case WEIR_FIELD_HOSTS:
		for (size_t i = 0; i < texts->count; i++)
			json_array_append_new(list, json_string(texts->items[i]));
		break;
	default:
		while (weir_field_next(field, object, &cursor, text)) {
			char *plain = *text == '"' ? text + 1 : text;

			plain[strcspn(plain, "\"")] = 0;
			json_array_append_new(list, json_string(plain));
		}
	}
	return list;
}

static json_t *items_json(const struct weir_field *field, const void *object)
{
	size_t count = *(const size_t *)((const char *)object + field->count_offset);
	const char *items = *(char *const *)((const char *)object + field->offset);
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(list,
				      weir_fields_json(field->fields, items + i * field->size));
	return list;
}

static json_t *field_json(const struct weir_field *field, const void *object)
{
	const void *value = (const char *)object + field->offset;

	switch (field->type) {
	case WEIR_FIELD_MAP:
		return field->flags & WEIR_FIELD_GIVEN && !*(const bool *)value
			       ? NULL
			       : weir_fields_json(field->fields, value);
	case WEIR_FIELD_ITEMS:
		return items_json(field, object);
	case WEIR_FIELD_CUSTOM:
		return field->custom->json(value);
	default:
		return weir_field_is_list(field) ? list_json(field, object)
						 : scalar_json(field, object);
	}
}

json_t *weir_fields_json(const struct weir_field *fields, const void *object)
{
	json_t *map = json_object();

	for (; fields->name; fields++) {
		bool time = fields->type == WEIR_FIELD_TIME;
		json_t *value = field_json(fields, object);
		char name[64];

		snprintf(name, sizeof(name), "%s%s", fields->name, time ? "_ns" : "");
		if (value)
			json_object_set_new(map, name, value);
	}
	return map;
}
