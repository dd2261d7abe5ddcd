// SPDX-License-Identifier: GPL-2.0
/*
 * weir.yaml(5) says of each field what the schema says: there is a line
 *
 *	*limits.sliding.quota*: 1 to 4096; required; set
 *
 * for each, with its values, default and whether `weir set` changes it, and no line more.
 */
#include "controller/policy_schema.h"
#include "harness.h"

#include <stdlib.h>
#include <string.h>

#define PAGE "man/weir.yaml.5.scd"
#define ROOM 65536

static char wanted[ROOM], found[ROOM];

/* What a whole item may be, before its fields are read: no larger. */
static const char nothing[4096];

static void add(char *to, const char *text)
{
	size_t length = strlen(to);

	CU_ASSERT_FATAL(length + strlen(text) < ROOM);
	strcpy(to + length, text);
}

static void add_words(char *line, const char *const *words)
{
	for (size_t i = 0; words[i]; i++) {
		strcat(line, i ? " | " : "");
		strcat(line, words[i]);
	}
}

static char *bound(const struct weir_field *field, uint64_t value, char *text)
{
	switch (field->type) {
	case WEIR_FIELD_TIME:
		return value ? weir_time_print(value, text) : strcpy(text, "0");
	case WEIR_FIELD_RATIO:
		return weir_ratio_print(value, text);
	case WEIR_FIELD_PERCENT:
		return weir_percent_print(value, text);
	default:
		sprintf(text, "%llu", (unsigned long long)value);
		return text;
	}
}

static const char *const kinds[] = {
	[WEIR_FIELD_NAME] = "a name",
	[WEIR_FIELD_IFNAME] = "an interface",
	[WEIR_FIELD_PATH] = "a path",
	[WEIR_FIELD_GROUP] = "a group",
	[WEIR_FIELD_LISTEN] = "address:port or off",
	[WEIR_FIELD_BOOL] = "true | false",
	[WEIR_FIELD_RATE] = "a rate",
	[WEIR_FIELD_EVENTS] = "a rate or block",
	[WEIR_FIELD_OFFER] = "a rate or a number",
	[WEIR_FIELD_AMOUNT] = "a number or a size",
	[WEIR_FIELD_AFTER] = "N refusals in TIME",
	[WEIR_FIELD_PROTOCOLS] = "protocols",
	[WEIR_FIELD_BITS] = "0 to 255",
	[WEIR_FIELD_PREFIXES] = "prefixes",
	[WEIR_FIELD_IFNAMES] = "interfaces",
	[WEIR_FIELD_PATHS] = "paths",
	[WEIR_FIELD_HOSTS] = "host names",
	[WEIR_FIELD_FLAGS] = "TCP flags",
	[WEIR_FIELD_MAP] = "a map",
	[WEIR_FIELD_CUSTOM] = "a key",
};

static void add_values(char *line, const struct weir_field *field)
{
	char low[WEIR_UNIT_TEXT], high[WEIR_UNIT_TEXT];

	switch (field->type) {
	case WEIR_FIELD_WORD:
		add_words(line, field->words);
		return;
	case WEIR_FIELD_ITEMS:
		sprintf(line + strlen(line), "a list of maps, at most %llu",
			(unsigned long long)field->max);
		return;
	case WEIR_FIELD_COUNT:
	case WEIR_FIELD_LEVEL:
	case WEIR_FIELD_RATIO:
	case WEIR_FIELD_PERCENT:
	case WEIR_FIELD_TIME:
	case WEIR_FIELD_RANGES:
		sprintf(line + strlen(line), "%s to %s%s", bound(field, field->min, low),
			bound(field, field->max, high),
			field->type == WEIR_FIELD_LEVEL	   ? ", unlimited or block"
			: field->type == WEIR_FIELD_RANGES ? ", ranges"
							   : "");
		return;
	default:
		CU_ASSERT_PTR_NOT_NULL_FATAL(kinds[field->type]);
		strcat(line, kinds[field->type]);
	}
}

static bool has_default(const struct weir_field *field, const char *object)
{
	static const struct weir_rate none;

	if (field->flags & WEIR_FIELD_REQUIRED || weir_field_is_list(field))
		return false;
	switch (field->type) {
	case WEIR_FIELD_MAP:
	case WEIR_FIELD_ITEMS:
	case WEIR_FIELD_CUSTOM:
	case WEIR_FIELD_OFFER:
	case WEIR_FIELD_AMOUNT:
		return false;
	case WEIR_FIELD_WORD:
	case WEIR_FIELD_BOOL:
		return true;
	default:
		return memcmp(object + field->offset, &none,
			      field->size < sizeof(none) ? field->size : sizeof(none)) != 0;
	}
}

static void want(const struct weir_field *fields, const char *object, const char *path)
{
	for (const struct weir_field *field = fields; field->name; field++) {
		char here[128], line[2048], text[WEIR_FIELD_TEXT];

		snprintf(here, sizeof(here), "%s%s%s", path, *path ? "." : "", field->name);
		snprintf(line, sizeof(line), "*%s*: ", here);
		add_values(line, field);
		if (field->flags & WEIR_FIELD_REQUIRED)
			strcat(line, "; required");
		if (has_default(field, object) && weir_field_text(field, object, text))
			sprintf(line + strlen(line), "; default %s", text);
		if (field->flags & WEIR_FIELD_SET)
			strcat(line, "; set");
		add(wanted, line);
		add(wanted, "\n");
		if (field->type == WEIR_FIELD_MAP)
			want(field->fields, object + field->offset, here);
		else if (field->type == WEIR_FIELD_ITEMS)
			want(field->fields, field->defaults ? field->defaults : nothing, here);
	}
}

/* The page's lines of fields, each with its newline. */
static void find(void)
{
	FILE *page = fopen(PAGE, "r");
	char line[2048];

	CU_ASSERT_PTR_NOT_NULL_FATAL(page);
	while (fgets(line, sizeof(line), page)) {
		if (*line == '*' && strstr(line, "*: "))
			add(found, line);
	}
	fclose(page);
}

static size_t missing(const char *what, char *from, const char *in)
{
	size_t count = 0;
	char *save;

	for (char *line = strtok_r(from, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char whole[2050];

		snprintf(whole, sizeof(whole), "\n%s\n", line);
		if (strstr(in, whole))
			continue;
		printf("  %s: %s\n", what, line);
		count++;
	}
	return count;
}

static void the_page_says_what_the_schema_says(void)
{
	static char all_wanted[ROOM] = "\n", all_found[ROOM] = "\n";

	want(weir_policy_fields, (const char *)&weir_policy_defaults, "");
	find();
	add(all_wanted, wanted);
	add(all_found, found);
	CU_ASSERT_EQUAL(missing(PAGE " lacks", wanted, all_found), 0);
	CU_ASSERT_EQUAL(missing(PAGE " has, the schema not", found, all_wanted), 0);
}

WEIR_TESTS("man", TEST(the_page_says_what_the_schema_says))
