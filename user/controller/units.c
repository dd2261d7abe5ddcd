// SPDX-License-Identifier: GPL-2.0
#include "controller/units.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define NS_PER_SEC 1000000000ULL
#define RATE_HELP "write 1000pps, 10/min, 1/h, 1/d, 200mbit, 1mbyte, unlimited or block"
#define COUNT_HELP "write a whole number such as 2000, 2k, 3M or 1G"
#define SIZE_HELP "write bytes such as 1500byte, 64kbyte, 1mbyte or 1gbyte"
#define TIME_HELP "write a time such as 500ns, 10us, 100ms, 1s, 5m, 2h or 1d"

struct unit {
	const char *name;
	uint64_t factor;
};

/* The first name of a factor is the canonical one; larger factors come first for printing. */
static const struct unit per_units[] = {
	{ "d", 86400 * NS_PER_SEC },
	{ "day", 86400 * NS_PER_SEC },
	{ "h", 3600 * NS_PER_SEC },
	{ "hour", 3600 * NS_PER_SEC },
	{ "min", 60 * NS_PER_SEC },
	{ "m", 60 * NS_PER_SEC },
	{ "minute", 60 * NS_PER_SEC },
	{ "s", NS_PER_SEC },
	{ "sec", NS_PER_SEC },
	{ "second", NS_PER_SEC },
	{ NULL, 0 },
};
static const struct unit time_units[] = {
	{ "d", 86400 * NS_PER_SEC },
	{ "h", 3600 * NS_PER_SEC },
	{ "m", 60 * NS_PER_SEC },
	{ "s", NS_PER_SEC },
	{ "ms", 1000000 },
	{ "us", 1000 },
	{ "ns", 1 },
	{ NULL, 0 },
};
static const struct unit count_units[] = {
	{ "G", 1000000000 }, { "M", 1000000 }, { "k", 1000 }, { "", 1 }, { NULL, 0 },
};
static const struct unit pps_units[] = {
	{ "Gpps", 1000000000 }, { "Mpps", 1000000 }, { "kpps", 1000 }, { "pps", 1 }, { NULL, 0 },
};
static const struct unit bit_units[] = {
	{ "gbit", 1000000000 }, { "mbit", 1000000 }, { "kbit", 1000 }, { "bit", 1 }, { NULL, 0 },
};
static const struct unit byte_units[] = {
	{ "gbyte", 1000000000 }, { "mbyte", 1000000 }, { "kbyte", 1000 },
	{ "byte", 1 },		 { NULL, 0 },
};

static uint64_t unit_find(const struct unit *units, const char *name, size_t length)
{
	for (; units->name; units++) {
		if (strlen(units->name) == length && !memcmp(units->name, name, length))
			return units->factor;
	}
	return 0;
}

/* The largest unit that divides the value without a rest. */
static const struct unit *unit_for(const struct unit *units, uint64_t value)
{
	while (units[1].name && (value % units->factor || !value))
		units++;
	return units;
}

/* Reads the digits at the start of text; *rest is what follows them. */
static int number_parse(const char *text, uint64_t *value, const char **rest, const char *help,
			struct weir_error *err)
{
	const char *p = text;
	uint64_t n = 0;

	if (!*text)
		return weir_error_set(err, -EINVAL, "'' is empty: %s", help);
	if (*text == '-')
		return weir_error_set(err, -ERANGE, "'%s' is negative: %s", text, help);
	if (*text < '0' || *text > '9')
		return weir_error_set(err, -EINVAL, "'%s' does not start with a digit: %s", text,
				      help);
	for (; *p >= '0' && *p <= '9'; p++) {
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*p - '0'), &n))
			return weir_error_set(err, -ERANGE, "'%s' is too large: %s", text, help);
	}
	if (*p == '.')
		return weir_error_set(err, -EINVAL,
				      "'%s' is not a whole number (say it in a smaller unit): %s",
				      text, help);
	if (!n)
		return weir_error_set(err, -ERANGE, "'%s' is zero: %s", text, help);
	if (*text == '0')
		return weir_error_set(err, -EINVAL, "'%s' starts with a 0: %s", text, help);
	*value = n;
	*rest = p;
	return 0;
}

/* A number and one of the units, nothing else. */
static int quantity_parse(const char *text, const struct unit *units, uint64_t max, uint64_t *value,
			  const char *help, struct weir_error *err)
{
	uint64_t n = 0, factor;
	const char *rest = text;
	int rc;

	rc = number_parse(text, &n, &rest, help, err);
	if (rc)
		return rc;
	factor = unit_find(units, rest, strlen(rest));
	if (!factor)
		return weir_error_set(err, -EINVAL,
				      *rest ? "'%s' has an unknown unit '%s': %s"
					    : "'%s' has no unit%s: %s",
				      text, rest, help);
	if (__builtin_mul_overflow(n, factor, &n) || n > max)
		return weir_error_set(err, -ERANGE, "'%s' is too large: %s", text, help);
	*value = n;
	return 0;
}

static char *quantity_print(uint64_t value, const struct unit *units, char *text)
{
	const struct unit *unit = unit_for(units, value);

	snprintf(text, WEIR_UNIT_TEXT, "%" PRIu64 "%s", value / unit->factor, unit->name);
	return text;
}

/* What stands between the number and the slash: packets, bits or bytes, and how many of them. */
static int rate_unit_parse(const char *unit, size_t length, bool has_per, struct weir_rate *rate)
{
	uint64_t factor;

	factor = unit_find(has_per ? count_units : pps_units, unit, length);
	rate->bytes = !factor;
	if (!factor)
		factor = unit_find(byte_units, unit, length);
	if (factor)
		return __builtin_mul_overflow(rate->amount, factor, &rate->amount) ? -ERANGE : 0;
	factor = unit_find(bit_units, unit, length);
	if (!factor)
		return -EINVAL;
	if (__builtin_mul_overflow(rate->amount, factor, &rate->amount))
		return -ERANGE;
	if (rate->amount % 8 == 0)
		rate->amount /= 8;
	else
		rate->per_ns *= 8;
	return 0;
}

static int rate_error(const char *text, const char *rest, struct weir_error *err)
{
	size_t length = strlen(rest);

	if (length >= 3 && !strcmp(rest + length - 3, "bps"))
		return weir_error_set(err, -EINVAL,
				      "'%s': bps means bits to some and bytes to others: write "
				      "200mbit or 25mbyte (both a second)",
				      text);
	if (!*rest)
		return weir_error_set(err, -EINVAL, "'%s' has no unit: " RATE_HELP, text);
	return weir_error_set(err, -EINVAL, "'%s' has an unknown unit '%s': " RATE_HELP, text,
			      rest);
}

int weir_rate_parse(const char *text, struct weir_rate *rate, struct weir_error *err)
{
	struct weir_rate r = { .per_ns = NS_PER_SEC };
	const char *rest = text, *slash;
	int rc;

	if (!strcmp(text, "unlimited") || !strcmp(text, "block")) {
		*rate = (struct weir_rate){ .amount = *text == 'u' ? UINT64_MAX : 0 };
		return 0;
	}
	rc = number_parse(text, &r.amount, &rest, RATE_HELP, err);
	if (rc)
		return rc;
	slash = strchr(rest, '/');
	if (slash) {
		r.per_ns = unit_find(per_units, slash + 1, strlen(slash + 1));
		if (!r.per_ns)
			return rate_error(text, slash, err);
	}
	rc = rate_unit_parse(rest, slash ? (size_t)(slash - rest) : strlen(rest), slash, &r);
	if (rc == -EINVAL)
		return rate_error(text, rest, err);
	if (rc || weir_rate_per_sec(&r) > WEIR_RATE_MAX_PER_SEC ||
	    (weir_rate_per_sec(&r) == WEIR_RATE_MAX_PER_SEC && r.amount % (r.per_ns / NS_PER_SEC)))
		return weir_error_set(err, -ERANGE,
				      "'%s' is too large: at most 1000Gpps or 1000gbyte a second, "
				      "or write unlimited",
				      text);
	*rate = r;
	return 0;
}

char *weir_rate_print(const struct weir_rate *rate, char *text)
{
	const struct unit *unit, *per = per_units;
	uint64_t amount = rate->amount;

	if (!rate->per_ns) {
		if (weir_rate_is_block(rate) || weir_rate_is_unlimited(rate))
			snprintf(text, WEIR_UNIT_TEXT, amount ? "unlimited" : "block");
		else
			weir_count_print(amount, text);
		return text;
	}
	while (per[1].name && per->factor != rate->per_ns && per->factor * 8 != rate->per_ns)
		per++;
	if (!rate->bytes) {
		snprintf(text, WEIR_UNIT_TEXT, "%" PRIu64 "%s%s", amount,
			 per->factor == NS_PER_SEC ? "pps" : "/",
			 per->factor == NS_PER_SEC ? "" : per->name);
		return text;
	}
	if (per->factor == rate->per_ns)
		amount *= 8;
	unit = unit_for(bit_units, amount);
	snprintf(text, WEIR_UNIT_TEXT, "%" PRIu64 "%s%s%s", amount / unit->factor, unit->name,
		 per->factor == NS_PER_SEC ? "" : "/", per->factor == NS_PER_SEC ? "" : per->name);
	return text;
}

int weir_rate_compare(const struct weir_rate *a, const struct weir_rate *b)
{
	unsigned __int128 left, right;

	if (!a->per_ns || !b->per_ns) {
		/* A word against anything, or two levels: block < any < unlimited. */
		if (!a->per_ns && !b->per_ns)
			return (a->amount > b->amount) - (a->amount < b->amount);
		if (!a->per_ns)
			return a->amount ? 1 : -1;
		return b->amount ? -1 : 1;
	}
	left = (unsigned __int128)a->amount * b->per_ns;
	right = (unsigned __int128)b->amount * a->per_ns;
	return (left > right) - (left < right);
}

uint64_t weir_rate_per_sec(const struct weir_rate *rate)
{
	return rate->per_ns ? rate->amount / (rate->per_ns / NS_PER_SEC) : rate->amount;
}

int weir_count_parse(const char *text, uint64_t *count, struct weir_error *err)
{
	return quantity_parse(text, count_units, UINT64_MAX - 1, count, COUNT_HELP, err);
}

char *weir_count_print(uint64_t count, char *text)
{
	snprintf(text, WEIR_UNIT_TEXT, "%" PRIu64, count);
	return text;
}

int weir_size_parse(const char *text, uint64_t *bytes, struct weir_error *err)
{
	size_t length = strlen(text);

	if (length >= 3 && !strcmp(text + length - 3, "bit"))
		return weir_error_set(err, -EINVAL, "'%s' is in bits: " SIZE_HELP, text);
	return quantity_parse(text, byte_units, UINT64_MAX - 1, bytes, SIZE_HELP, err);
}

char *weir_size_print(uint64_t bytes, char *text)
{
	return quantity_print(bytes, byte_units, text);
}

int weir_amount_parse(const char *text, struct weir_amount *amount, struct weir_error *err)
{
	struct weir_amount a = { .given = true };
	size_t length = strlen(text);
	int rc;

	a.bytes = length && (text[length - 1] == 'e' || text[length - 1] == 't');
	rc = a.bytes ? weir_size_parse(text, &a.value, err) : weir_count_parse(text, &a.value, err);
	if (!rc)
		*amount = a;
	return rc;
}

char *weir_amount_print(const struct weir_amount *amount, char *text)
{
	return amount->bytes ? weir_size_print(amount->value, text)
			     : weir_count_print(amount->value, text);
}

int weir_time_parse(const char *text, uint64_t *ns, struct weir_error *err)
{
	return quantity_parse(text, time_units, INT64_MAX, ns, TIME_HELP, err);
}

char *weir_time_print(uint64_t ns, char *text)
{
	return quantity_print(ns, time_units, text);
}

char *weir_time_print_left(uint64_t ns, char *text)
{
	uint64_t seconds = ns / NS_PER_SEC + !!(ns % NS_PER_SEC);

	return weir_time_print((seconds ? seconds : 1) * NS_PER_SEC, text);
}

/* Digits, and up to `decimals` more behind a point; 0 is a value here. */
static int decimal_parse(const char *text, size_t length, unsigned int decimals, uint64_t *value)
{
	const char *p = text, *end = text + length;
	uint64_t n = 0;

	if (p == end || *p < '0' || *p > '9' || (*p == '0' && end - p > 1 && p[1] != '.'))
		return -EINVAL;
	for (; p < end && *p >= '0' && *p <= '9'; p++) {
		n = n * 10 + (uint64_t)(*p - '0');
		if (n > INT32_MAX)
			return -ERANGE;
	}
	if (p < end && (*p++ != '.' || p == end))
		return -EINVAL;
	for (; decimals; decimals--) {
		n *= 10;
		if (p < end && *p >= '0' && *p <= '9')
			n += (uint64_t)(*p++ - '0');
	}
	if (p != end)
		return -EINVAL;
	*value = n;
	return 0;
}

static char *decimal_print(uint64_t value, unsigned int decimals, uint64_t one, const char *unit,
			   char *text)
{
	size_t length;

	snprintf(text, WEIR_UNIT_TEXT, "%" PRIu64 ".%0*" PRIu64, value / one, (int)decimals,
		 value % one);
	length = strlen(text);
	while (text[length - 1] == '0')
		length--;
	if (text[length - 1] == '.')
		length--;
	snprintf(text + length, WEIR_UNIT_TEXT - length, "%s", unit);
	return text;
}

int weir_ratio_parse(const char *text, uint64_t *millionths, struct weir_error *err)
{
	int rc = decimal_parse(text, strlen(text), 6, millionths);

	if (rc)
		return weir_error_set(err, rc,
				      rc == -ERANGE ? "'%s' is too large: write 1.5 or 0.1" :
						      "'%s' is not a number with up to 6 "
						      "decimals: write 1.5 or 0.1",
				      text);
	return 0;
}

char *weir_ratio_print(uint64_t millionths, char *text)
{
	return decimal_print(millionths, 6, WEIR_MILLION, "", text);
}

int weir_percent_parse(const char *text, uint64_t *millionths, struct weir_error *err)
{
	size_t length = strlen(text);
	uint64_t value = 0;
	int rc = -EINVAL;

	if (length && text[length - 1] == '%')
		rc = decimal_parse(text, length - 1, 4, &value);
	if (rc || value > WEIR_MILLION)
		return weir_error_set(
			err, rc == -EINVAL ? rc : -ERANGE,
			"'%s' is not a share from 0%% to 100%% with up to 4 decimals: "
			"write 5%% or 0.5%%",
			text);
	*millionths = value;
	return 0;
}

char *weir_percent_print(uint64_t millionths, char *text)
{
	return decimal_print(millionths, 4, WEIR_MILLION / 100, "%", text);
}
