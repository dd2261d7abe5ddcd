// SPDX-License-Identifier: GPL-2.0
#include "controller/field.h"
#include "controller/units.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef int (*parse_number)(const char *text, uint64_t *value, struct weir_error *err);
typedef char *(*print_number)(uint64_t value, char *text);

/* NULL for the types that are no uint64_t. */
static parse_number number_parser(enum weir_field_type type)
{
	switch (type) {
	case WEIR_FIELD_COUNT:
	case WEIR_FIELD_LEVEL:
		return weir_count_parse;
	case WEIR_FIELD_RATIO:
		return weir_ratio_parse;
	case WEIR_FIELD_PERCENT:
		return weir_percent_parse;
	case WEIR_FIELD_TIME:
		return weir_time_parse;
	default:
		return NULL;
	}
}

static print_number number_printer(enum weir_field_type type)
{
	switch (type) {
	case WEIR_FIELD_COUNT:
	case WEIR_FIELD_LEVEL:
		return weir_count_print;
	case WEIR_FIELD_RATIO:
		return weir_ratio_print;
	case WEIR_FIELD_PERCENT:
		return weir_percent_print;
	case WEIR_FIELD_TIME:
		return weir_time_print;
	default:
		return NULL;
	}
}

static int parse_in_range(const struct weir_field *field, const char *text, uint64_t *value,
			  struct weir_error *err)
{
	char low[WEIR_UNIT_TEXT], high[WEIR_UNIT_TEXT];
	bool level = field->type == WEIR_FIELD_LEVEL;
	print_number print = number_printer(field->type);
	uint64_t n;
	int rc;

	if (level && (!strcmp(text, "block") || !strcmp(text, "unlimited"))) {
		*value = *text == 'b' ? 0 : UINT64_MAX;
		return 0;
	}
	rc = number_parser(field->type)(text, &n, err);
	if (field->min == field->max && (rc || n != field->min))
		rc = weir_error_set(err, rc ? rc : -ERANGE, "'%s' is not known: write %s", text,
				    print(field->min, low));
	else if (!rc && (n < field->min || n > field->max))
		rc = weir_error_set(err, -ERANGE, "'%s' is out of range: write %s to %s%s", text,
				    print(field->min, low), print(field->max, high),
				    level ? ", unlimited or block" : "");
	else if (rc && level)
		weir_error_set(err, rc, "'%s' is not a limit: write %s to %s, unlimited or block",
			       text, print(field->min, low), print(field->max, high));
	else if (rc)
		weir_error_append(err, ", from %s to %s", print(field->min, low),
				  print(field->max, high));
	if (!rc)
		*value = n;
	return rc;
}

static int parse_word(const struct weir_field *field, const char *text, void *value,
		      struct weir_error *err)
{
	char all[128] = "";

	for (int i = 0; field->words[i]; i++) {
		if (!strcmp(field->words[i], text)) {
			*(unsigned int *)value = (unsigned int)i;
			return 0;
		}
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", i ? ", " : "",
			 field->words[i]);
	}
	return weir_error_set(err, -EINVAL, "'%s' is not known: write one of %s", text, all);
}

static int parse_bool(const char *text, bool *value, struct weir_error *err)
{
	if (strcmp(text, "true") && strcmp(text, "false"))
		return weir_error_set(err, -EINVAL, "'%s' is not known: write true or false", text);
	*value = *text == 't';
	return 0;
}

static bool is_made_of(const char *text, const char *first, const char *rest)
{
	return *text && strchr(first, *text) && text[1 + strspn(text + 1, rest)] == 0;
}

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"

/* The rules a text has beyond its length; NULL if it keeps them, else what to write. */
static const char *text_rule(enum weir_field_type type, const char *text)
{
	switch (type) {
	case WEIR_FIELD_NAME:
		return is_made_of(text, LOWER DIGITS, LOWER DIGITS "_-")
			       ? NULL
			       : "write a-z, 0-9, _ and -, a letter or digit first";
	case WEIR_FIELD_GROUP:
		return is_made_of(text, LOWER "_", LOWER DIGITS "_-")
			       ? NULL
			       : "write the name of a group, such as weir";
	case WEIR_FIELD_HOSTS:
		return is_made_of(text, LOWER DIGITS, LOWER DIGITS ".-")
			       ? NULL
			       : "write the name of a machine in small letters, without a port, "
				 "such as weir.example";
	case WEIR_FIELD_IFNAME:
	case WEIR_FIELD_IFNAMES:
		for (const char *p = text; *p; p++) {
			if (*p == '/' || *p == ':' || (unsigned char)*p <= ' ' || *p == 0x7f)
				return "write the name of a network interface, such as eth0";
		}
		return *text && strcmp(text, ".") && strcmp(text, "..")
			       ? NULL
			       : "write the name of a network interface, such as eth0";
	default:
		for (const char *p = text; *p; p++) {
			if ((unsigned char)*p < ' ' || *p == 0x7f)
				return "write a path without control characters";
		}
		return *text == '/' ? NULL : "write an absolute path, one that begins with /";
	}
}

int weir_field_check_length(const char *text, size_t size, struct weir_error *err)
{
	if (strlen(text) < size)
		return 0;
	/* Quoted in full it would push the advice out of the sentence. */
	return weir_error_set(err, -EINVAL, "'%.40s...' is too long: at most %zu characters", text,
			      size - 1);
}

int weir_field_check_text(enum weir_field_type type, size_t size, const char *text,
			  struct weir_error *err)
{
	const char *rule = text_rule(type, text);
	int rc = weir_field_check_length(text, size, err);

	if (!rc && rule)
		rc = weir_error_set(err, -EINVAL, "'%s' can't be used: %s", text, rule);
	return rc;
}

/* address:port with a numeric address, [v6]:port, or off. */
static int check_listen(const char *text, struct weir_error *err)
{
	const char *colon = strrchr(text, ':');
	unsigned char binary[16];
	char address[64];
	size_t length;
	long port;
	char *end;

	if (!strcmp(text, "off"))
		return 0;
	if (!colon || colon == text || colon - text >= 64 || colon[1] < '1' || colon[1] > '9')
		goto bad;
	length = (size_t)(colon - text);
	memcpy(address, text, length);
	address[length] = 0;
	port = strtol(colon + 1, &end, 10);
	if (*end || port > 65535)
		goto bad;
	if (inet_pton(AF_INET, address, binary) == 1)
		return 0;
	address[length - 1] = 0;
	if (text[0] == '[' && colon[-1] == ']' && inet_pton(AF_INET6, address + 1, binary) == 1)
		return 0;
bad:
	return weir_error_set(
		err, -EINVAL,
		"'%s' is not an address and port: write 127.0.0.1:9477, [::1]:9477 or "
		"off",
		text);
}

static int parse_events(const struct weir_field *field, const char *text, struct weir_rate *value,
			struct weir_error *err)
{
	struct weir_rate rate;
	int rc = weir_rate_parse(text, &rate, err);

	if (rc)
		return rc;
	if (rate.bytes || weir_rate_is_unlimited(&rate) ||
	    (rate.per_ns && weir_rate_per_sec(&rate) >= field->max))
		return weir_error_set(err, -ERANGE,
				      "'%s' is out of range: write less than %" PRIu64
				      "pps (100pps is 100 events a second), or block for none",
				      text, field->max);
	*value = rate;
	return 0;
}

static int parse_offer(const char *text, struct weir_rate *value, struct weir_error *err)
{
	uint64_t count;
	int rc;

	if (text[strspn(text, DIGITS)] == 0 && *text) {
		rc = weir_count_parse(text, &count, err);
		if (!rc)
			*value = (struct weir_rate){ .amount = count };
		return rc;
	}
	if (!strcmp(text, "block"))
		return weir_error_set(err, -EINVAL,
				      "'block' can't be a governor's bound: write a rate for a "
				      "bucket, a number for a gate");
	return weir_rate_parse(text, value, err);
}

/* COUNT refusals in TIME */
static int parse_after(const char *text, uint64_t *value, struct weir_error *err)
{
	static const char middle[] = " refusals in ";
	const char *found = strstr(text, middle);
	char number[32];
	uint64_t count, ns;
	int rc;

	if (!found || found - text >= (ptrdiff_t)sizeof(number))
		return weir_error_set(err, -EINVAL, "'%s' is not known: write 100 refusals in 10s",
				      text);
	memcpy(number, text, (size_t)(found - text));
	number[found - text] = 0;
	rc = weir_count_parse(number, &count, err);
	if (!rc)
		rc = weir_time_parse(found + strlen(middle), &ns, err);
	if (!rc && (count > 1000000000 || ns > 86400000000000ULL || ns < 1000000))
		rc = weir_error_set(err, -ERANGE,
				    "'%s' is out of range: write at most 1G refusals in 1ms to 1d",
				    text);
	if (rc)
		return rc;
	value[0] = count;
	value[1] = ns;
	return 0;
}

int weir_field_parse(const struct weir_field *field, const char *text, void *object,
		     struct weir_error *err)
{
	void *value = (char *)object + field->offset;
	bool is_text = field->type <= WEIR_FIELD_LISTEN;
	int rc = weir_field_check_length(text, is_text ? field->size : WEIR_FIELD_VALUE_SIZE, err);

	if (rc)
		return rc;
	switch (field->type) {
	case WEIR_FIELD_WORD:
		return parse_word(field, text, value, err);
	case WEIR_FIELD_BOOL:
		return parse_bool(text, value, err);
	case WEIR_FIELD_RATE:
		return weir_rate_parse(text, value, err);
	case WEIR_FIELD_EVENTS:
		return parse_events(field, text, value, err);
	case WEIR_FIELD_OFFER:
		return parse_offer(text, value, err);
	case WEIR_FIELD_AMOUNT:
		return weir_amount_parse(text, value, err);
	case WEIR_FIELD_AFTER:
		return parse_after(text, value, err);
	case WEIR_FIELD_LISTEN:
		rc = check_listen(text, err);
		break;
	default:
		if (number_parser(field->type))
			return parse_in_range(field, text, value, err);
		rc = weir_field_check_text(field->type, field->size, text, err);
	}
	if (!rc)
		strcpy(value, text); /* fits: both checks refuse what is longer than size */
	return rc;
}

/* The code point at text, which is valid UTF-8 (YAML is nothing else), and its length. */
static unsigned int decode(const char *text, size_t *length)
{
	const unsigned char *p = (const unsigned char *)text;
	unsigned int value;

	*length = *p < 0x80 ? 1 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : 4;
	value = *length == 1 ? *p : *p & (0x7fU >> *length);
	for (size_t i = 1; i < *length && p[i]; i++)
		value = value << 6 | (p[i] & 0x3f);
	return value;
}

/* Line breaks and what the YAML reader refuses must be escaped to come back as they were. */
static bool needs_escape(unsigned int value)
{
	return (value >= 0x7f && value < 0xa0) || value == 0x2028 || value == 0x2029 ||
	       value == 0xfeff || value == 0xfffe || value == 0xffff;
}

void weir_field_quote(const char *value, char *text)
{
	size_t length;

	*text++ = '"';
	for (; *value; value += length) {
		unsigned int point = decode(value, &length);

		if (needs_escape(point)) {
			text += sprintf(text, "\\u%04X", point);
			continue;
		}
		if (*value == '"' || *value == '\\')
			*text++ = '\\';
		memcpy(text, value, length);
		text += length;
	}
	*text++ = '"';
	*text = 0;
}

static void print_after(const uint64_t *value, char *text)
{
	char count[WEIR_UNIT_TEXT], window[WEIR_UNIT_TEXT];

	snprintf(text, WEIR_FIELD_TEXT, "%s refusals in %s", weir_count_print(value[0], count),
		 weir_time_print(value[1], window));
}

bool weir_field_text(const struct weir_field *field, const void *object, char *text)
{
	const void *value = (const char *)object + field->offset;
	const struct weir_amount *amount = value;
	const struct weir_rate *rate = value;
	uint64_t number;

	switch (field->type) {
	case WEIR_FIELD_WORD:
		strcpy(text, field->words[*(const unsigned int *)value]);
		return true;
	case WEIR_FIELD_BOOL:
		strcpy(text, *(const bool *)value ? "true" : "false");
		return true;
	case WEIR_FIELD_RATE:
	case WEIR_FIELD_EVENTS:
		weir_rate_print(rate, text);
		return true;
	case WEIR_FIELD_OFFER:
		weir_rate_print(rate, text);
		return rate->amount;
	case WEIR_FIELD_AMOUNT:
		weir_amount_print(amount, text);
		return amount->given;
	case WEIR_FIELD_AFTER:
		print_after(value, text);
		return true;
	case WEIR_FIELD_NAME:
		strcpy(text, value);
		return *text;
	default:
		break;
	}
	if (!number_printer(field->type)) {
		weir_field_quote(value, text);
		return *(const char *)value;
	}
	number = *(const uint64_t *)value;
	number_printer(field->type)(number, text);
	if (field->type == WEIR_FIELD_LEVEL && (!number || number == UINT64_MAX))
		strcpy(text, number ? "unlimited" : "block");
	/* A time or a count that may be left out is 0 when it is. */
	return number || (field->type != WEIR_FIELD_TIME && field->type != WEIR_FIELD_COUNT);
}
