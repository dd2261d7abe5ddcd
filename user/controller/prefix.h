/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Address prefixes, IPv4 and IPv6, and files of them.
 *
 * An accepted prefix has no host bits set: a /24 can't be mistaken for one address. A bare
 * address is a /32 or /128. IPv4-mapped IPv6 is refused, since no packet carries it.
 */
#pragma once

#include "controller/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_PREFIX_TEXT 52
#define WEIR_PREFIX_LIST_MAX 4000000U /* prefixes in one list, all its files together */

struct weir_prefix {
	uint8_t family;	     /* 4 or 6 */
	uint8_t length;	     /* 0-32 or 0-128 */
	uint8_t address[16]; /* network order; IPv4 is the first 4 bytes, the rest 0 */
};

/* Owned by whoever embeds it; all zero is the empty list. */
struct weir_prefixes {
	struct weir_prefix *items;
	size_t count;
	size_t room; /* allocated items */
};

/* 0, or -EINVAL with a sentence that quotes the text (and the prefix that was likely meant). */
int weir_prefix_parse(const char *text, struct weir_prefix *prefix, struct weir_error *err);
/* Fills WEIR_PREFIX_TEXT bytes, always with the length, and returns them. */
char *weir_prefix_print(const struct weir_prefix *prefix, char *text);
bool weir_prefix_equal(const struct weir_prefix *a, const struct weir_prefix *b);
/* Whether `address` (network order, 4 or 16 bytes as family says) lies in the prefix. */
bool weir_prefix_contains(const struct weir_prefix *prefix, uint8_t family, const void *address);

/* Appends one; -ENOMEM, or -E2BIG above WEIR_PREFIX_LIST_MAX. */
int weir_prefixes_add(struct weir_prefixes *list, const struct weir_prefix *prefix,
		      struct weir_error *err);
void weir_prefixes_free(struct weir_prefixes *list);

/*
 * Appends a file: one prefix a line, blanks around it, # comments, empty lines, CRLF allowed.
 * One bad line refuses the whole file (the sentence starts with file:line) and the list stays
 * as it was. Errors: what open and read give, -EINVAL, -E2BIG, -ENOMEM.
 */
int weir_prefixes_load(struct weir_prefixes *list, const char *path, struct weir_error *err);
