/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The values in a vector's line: parsed strictly, compared as shared/vectors/README.md says,
 * printed. For replay-vectors and its fuzzer. A value's type is a letter:
 *
 *	i	int64			b	0 or 1
 *	4	int32			~	int64, off by at most one
 *	d	double within 1e-9	t	double within 1e-6
 *	n	double or `none`	r	int64 or `none` (-1)
 *	c	int64, not negative	o j q k	words: outcome, jitter, quota, decision
 *	l	doubles by comma, or -	s	int64 by comma, off by at most one, or -
 *	e	tallies, or -
 */
#pragma once

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELDS_MAX 8

/* One argument or one field of an answer. Which members count depends on its type letter. */
struct value {
	int64_t i;
	double d;
	void *list; /* doubles of an argument, int64_t of an answer; malloc'ed */
	size_t count;
};

static void *must(void *memory)
{
	if (!memory) {
		fprintf(stderr, "replay-vectors: out of memory\n");
		exit(1);
	}
	return memory;
}

static const char *const outcomes[] = { "S", "F", "D", NULL };
static const char *const jitters[] = { "rigid", "full", "equal", "decorrelated", "spread", NULL };
static const char *const quotas[] = { "Under", "Hit", "Over", NULL };
static const char *const decisions[] = { "hold", "up", "down", "wait", NULL };

static const char *const *words_of(char type)
{
	return type == 'o' ? outcomes : type == 'j' ? jitters : type == 'q' ? quotas : decisions;
}

static bool parse_int(const char *text, int64_t *value)
{
	char *end;

	if (strspn(text, "-0123456789") != strlen(text))
		return false;
	errno = 0;
	*value = strtoll(text, &end, 10);
	return !errno && end != text && !*end;
}

static bool parse_double(const char *text, double *value)
{
	char *end;
	bool word = !strcmp(text, "inf") || !strcmp(text, "-inf") || !strcmp(text, "nan");

	if (!word && strspn(text, "+-.0123456789eE") != strlen(text))
		return false;
	*value = strtod(text, &end);
	return end != text && !*end && (word || isfinite(*value));
}

static bool parse_word(const char *text, const char *const *words, int64_t *value)
{
	for (*value = 0; words[*value]; ++*value)
		if (!strcmp(text, words[*value]))
			return true;
	return false;
}

/* A list by commas: doubles (l) or whole numbers (s), or tallies by spaces and colons (e). */
static bool parse_list(char type, char *text, struct value *value)
{
	const char *separators = type == 'e' ? " :" : ",";
	size_t most = strlen(text) + 1;
	char *item;

	value->list = must(calloc(most, sizeof(double)));
	if (!strcmp(text, "-"))
		return true;
	while ((item = strsep(&text, separators))) {
		double *number = (double *)value->list + value->count;
		int64_t *whole = (int64_t *)value->list + value->count++;

		if (!(type == 'l' ? parse_double(item, number) : parse_int(item, whole)))
			return false;
	}
	return type != 'e' || value->count % 4 == 0;
}

static bool parse_value(char type, char *text, struct value *value)
{
	switch (type) {
	case 'd':
	case 't':
	case 'n':
		if (type == 'n' && !strcmp(text, "none"))
			value->d = NAN;
		else
			return parse_double(text, &value->d);
		return true;
	case 'r':
		value->i = -1;
		return !strcmp(text, "none") || (parse_int(text, &value->i) && value->i >= 0);
	case 'l':
	case 's':
	case 'e':
		return parse_list(type, text, value);
	case 'o':
	case 'j':
	case 'q':
	case 'k':
		return parse_word(text, words_of(type), &value->i);
	default:
		return parse_int(text, &value->i) &&
		       (type != '4' || (value->i >= INT32_MIN && value->i <= INT32_MAX)) &&
		       (type != 'c' || value->i >= 0) &&
		       (type != 'b' || value->i == 0 || value->i == 1);
	}
}

/* Split at single spaces, into `most` words at the most. */
static size_t split(char *text, char **words, size_t most)
{
	size_t count = 0;

	while (text && *text && count < most) {
		words[count] = strsep(&text, " ");
		count++;
	}
	return count;
}

static bool parse_fields(const char *types, char *text, struct value *values)
{
	char *words[FIELDS_MAX + 1];
	size_t count = strlen(types);
	bool whole = !strcmp(types, "e"); /* its spaces are its own */

	if (whole)
		return parse_value('e', text, &values[0]);
	if (split(text, words, FIELDS_MAX + 1) != count)
		return false;
	for (size_t i = 0; i < count; i++)
		if (!parse_value(types[i], words[i], &values[i]))
			return false;
	return true;
}

static void drop(struct value *values)
{
	for (size_t i = 0; i < FIELDS_MAX; i++)
		free(values[i].list);
}

static bool near_int(int64_t a, int64_t b)
{
	return (a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a) <= 1;
}

static bool same(char type, const struct value *want, const struct value *got)
{
	switch (type) {
	case 'd':
		return want->d == got->d || fabs(want->d - got->d) <= 1e-9 * fmax(1, fabs(want->d));
	case 't':
		return want->d == got->d || fabs(want->d - got->d) <= 1e-6;
	case '~':
		return near_int(want->i, got->i);
	case 's':
	case 'e':
		if (want->count != got->count)
			return false;
		for (size_t i = 0; i < want->count; i++) {
			int64_t a = ((int64_t *)want->list)[i], b = ((int64_t *)got->list)[i];

			if (type == 's' ? !near_int(a, b) : a != b)
				return false;
		}
		return true;
	default:
		return want->i == got->i;
	}
}

static void print_value(char type, const struct value *value)
{
	putchar(' ');
	if (type == 'd' || type == 't')
		printf("%.17g", value->d);
	else if (type == 'q' || type == 'k')
		fputs(words_of(type)[value->i], stdout);
	else if (type == 'r' && value->i < 0)
		fputs("none", stdout);
	else if ((type == 's' || type == 'e') && !value->count)
		putchar('-');
	else if (type != 's' && type != 'e')
		printf("%" PRId64, value->i);
	else
		for (size_t i = 0; i < value->count; i++)
			printf("%s%" PRId64,
			       !i	     ? ""
			       : type == 's' ? ","
			       : i % 4	     ? ":"
					     : " ",
			       ((int64_t *)value->list)[i]);
}
