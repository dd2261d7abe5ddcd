// SPDX-License-Identifier: GPL-2.0
#include "controller/field.h"
#include "controller/policy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Bits 0-5 of byte 13 of the TCP header, and the two of ECN. */
static const char *const flag_names[] = { "fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr" };
#define FLAG_HELP                                                                                  \
	"write names of fin syn rst psh ack urg ece cwr, ! before one that must not be set"

static const struct {
	const char *name;
	uint8_t number;
} protocols[] = {
	{ "icmp", 1 }, { "tcp", 6 }, { "udp", 17 }, { "icmpv6", 58 }, { "sctp", 132 },
};
#define PROTOCOLS (sizeof(protocols) / sizeof(protocols[0]))

bool weir_field_is_list(const struct weir_field *field)
{
	return field->type >= WEIR_FIELD_PROTOCOLS && field->type <= WEIR_FIELD_FLAGS;
}

/* Decimal digits only, no leading zero, 0 allowed; -EINVAL else. *end is what follows. */
static int small_number(const char *text, const char **end)
{
	int n = 0;

	if (*text < '0' || *text > '9' || (*text == '0' && text[1] >= '0' && text[1] <= '9'))
		return -EINVAL;
	for (; *text >= '0' && *text <= '9'; text++) {
		n = n * 10 + (*text - '0');
		if (n > UINT16_MAX)
			return -EINVAL;
	}
	*end = text;
	return n;
}

static int add_bit(const struct weir_field *field, const char *text, struct weir_bits256 *bits,
		   struct weir_error *err)
{
	bool named = field->type == WEIR_FIELD_PROTOCOLS;
	const char *end;
	int n = small_number(text, &end);

	if (n < 0 || n > 255 || *end) {
		n = -EINVAL;
		for (size_t i = 0; named && i < PROTOCOLS; i++) {
			if (!strcmp(protocols[i].name, text))
				n = protocols[i].number;
		}
	}
	if (n < 0)
		return weir_error_set(err, -EINVAL,
				      "'%s' is not known: write %sa number from 0 to 255", text,
				      named ? "tcp, udp, icmp, icmpv6, sctp or " : "");
	bits->words[n / 64] |= 1ULL << (n % 64);
	return 0;
}

/* The items with room for one more, NULL (and the old ones kept) if memory is short. */
static void *grow(void *items, size_t count, size_t *room, size_t size)
{
	size_t wanted = *room ? *room * 2 : 4;

	if (count < *room)
		return items;
	items = reallocarray(items, wanted, size);
	if (items)
		*room = wanted;
	return items;
}

static int add_range(const struct weir_field *field, const char *text, struct weir_ranges *ranges,
		     struct weir_error *err)
{
	const char *end = text;
	int low = small_number(text, &end), high = low;
	struct weir_range *items;

	if (low >= 0 && *end == '-')
		high = small_number(end + 1, &end);
	if (low < (int)field->min || high > (int)field->max || low > high || *end)
		return weir_error_set(
			err, -EINVAL,
			"'%s' is not a number or range: write %llu to %llu, or the two "
			"ends as in 5300-5310",
			text, (unsigned long long)field->min, (unsigned long long)field->max);
	items = grow(ranges->items, ranges->count, &ranges->room, sizeof(*items));
	if (!items)
		return weir_error_set(err, -ENOMEM, "out of memory");
	items[ranges->count++] =
		(struct weir_range){ .low = (uint16_t)low, .high = (uint16_t)high };
	ranges->items = items;
	return 0;
}

static int add_text(const struct weir_field *field, const char *text, struct weir_texts *texts,
		    struct weir_error *err)
{
	int rc = weir_field_check_text(field->type, field->size, text, err);
	char **items;

	for (size_t i = 0; !rc && i < texts->count; i++) {
		if (!strcmp(texts->items[i], text))
			return weir_error_set(err, -EINVAL, "'%s' is there twice: keep one", text);
	}
	if (rc)
		return rc;
	items = grow(texts->items, texts->count, &texts->room, sizeof(*items));
	if (!items)
		return weir_error_set(err, -ENOMEM, "out of memory");
	texts->items = items;
	items[texts->count] = strdup(text);
	if (!items[texts->count])
		return weir_error_set(err, -ENOMEM, "out of memory");
	texts->count++;
	return 0;
}

static int add_prefix(const char *text, struct weir_prefixes *prefixes, struct weir_error *err)
{
	struct weir_prefix prefix;
	int rc = weir_prefix_parse(text, &prefix, err);

	return rc ? rc : weir_prefixes_add(prefixes, &prefix, err);
}

/* "syn" or "syn,!ack"; value[0] is the mask, value[1] what must be set of it. */
static int add_flags(const char *text, uint8_t *value, struct weir_error *err)
{
	const char *p = text;

	for (;;) {
		size_t length = strcspn(p + (*p == '!'), ","), bit = 0;
		const char *name = p + (*p == '!');

		while (bit < 8 &&
		       (length != strlen(flag_names[bit]) || memcmp(name, flag_names[bit], length)))
			bit++;
		if (bit == 8)
			return weir_error_set(err, -EINVAL, "'%s' are no TCP flags: " FLAG_HELP,
					      text);
		if (value[0] & 1U << bit)
			return weir_error_set(err, -EINVAL, "'%s': %s is there twice: keep one",
					      text, flag_names[bit]);
		value[0] |= (uint8_t)(1U << bit);
		value[1] |= (uint8_t)(*p == '!' ? 0 : 1U << bit);
		p = name + length;
		if (!*p++)
			return 0;
	}
}

int weir_field_add(const struct weir_field *field, const char *text, void *object,
		   struct weir_error *err)
{
	void *value = (char *)object + field->offset;
	bool is_text = field->type == WEIR_FIELD_IFNAMES || field->type == WEIR_FIELD_PATHS ||
		       field->type == WEIR_FIELD_HOSTS;
	int rc = weir_field_check_length(text, is_text ? field->size : WEIR_FIELD_VALUE_SIZE, err);

	if (rc)
		return rc;
	switch (field->type) {
	case WEIR_FIELD_PROTOCOLS:
	case WEIR_FIELD_BITS:
		return add_bit(field, text, value, err);
	case WEIR_FIELD_RANGES:
		return add_range(field, text, value, err);
	case WEIR_FIELD_PREFIXES:
		return add_prefix(text, value, err);
	case WEIR_FIELD_FLAGS:
		return add_flags(text, value, err);
	default:
		return add_text(field, text, value, err);
	}
}

static bool next_bit(const struct weir_field *field, const struct weir_bits256 *bits,
		     size_t *cursor, char *text)
{
	while (*cursor < 256 && !weir_bits256_has(bits, (uint8_t)*cursor))
		++*cursor;
	if (*cursor == 256)
		return false;
	snprintf(text, WEIR_FIELD_TEXT, "%zu", *cursor);
	for (size_t i = 0; field->type == WEIR_FIELD_PROTOCOLS && i < PROTOCOLS; i++) {
		if (protocols[i].number == *cursor)
			strcpy(text, protocols[i].name);
	}
	++*cursor;
	return true;
}

static bool next_flag(const uint8_t *value, size_t *cursor, char *text)
{
	while (*cursor < 8 && !(value[0] >> *cursor & 1))
		++*cursor;
	if (*cursor == 8)
		return false;
	snprintf(text, WEIR_FIELD_TEXT, value[1] >> *cursor & 1 ? "%s" : "\"!%s\"",
		 flag_names[*cursor]);
	++*cursor;
	return true;
}

static void print_range(const struct weir_range *range, char *text)
{
	snprintf(text, WEIR_FIELD_TEXT, range->low == range->high ? "%u" : "%u-%u", range->low,
		 range->high);
}

static void print_prefix(const struct weir_prefix *prefix, char *text)
{
	char plain[WEIR_PREFIX_TEXT];

	weir_prefix_print(prefix, plain);
	if (prefix->family == 6)
		weir_field_quote(plain, text);
	else
		strcpy(text, plain);
}

bool weir_field_next(const struct weir_field *field, const void *object, size_t *cursor, char *text)
{
	const void *value = (const char *)object + field->offset;
	const struct weir_prefixes *prefixes = value;
	const struct weir_ranges *ranges = value;
	const struct weir_texts *texts = value;

	switch (field->type) {
	case WEIR_FIELD_PROTOCOLS:
	case WEIR_FIELD_BITS:
		return next_bit(field, value, cursor, text);
	case WEIR_FIELD_FLAGS:
		return next_flag(value, cursor, text);
	case WEIR_FIELD_RANGES:
		if (*cursor == ranges->count)
			return false;
		print_range(&ranges->items[(*cursor)++], text);
		return true;
	case WEIR_FIELD_PREFIXES:
		if (*cursor == prefixes->count)
			return false;
		print_prefix(&prefixes->items[(*cursor)++], text);
		return true;
	default:
		if (*cursor == texts->count)
			return false;
		weir_field_quote(texts->items[(*cursor)++], text);
		return true;
	}
}

void weir_field_clear(const struct weir_field *field, void *object)
{
	void *value = (char *)object + field->offset;
	struct weir_texts *texts = value;

	switch (field->type) {
	case WEIR_FIELD_RANGES:
		free(((struct weir_ranges *)value)->items);
		*(struct weir_ranges *)value = (struct weir_ranges){ 0 };
		break;
	case WEIR_FIELD_PREFIXES:
		weir_prefixes_free(value);
		break;
	case WEIR_FIELD_IFNAMES:
	case WEIR_FIELD_PATHS:
	case WEIR_FIELD_HOSTS:
		for (size_t i = 0; i < texts->count; i++)
			free(texts->items[i]);
		free(texts->items);
		*texts = (struct weir_texts){ 0 };
		break;
	default: /* nothing of its own */
		break;
	}
}
