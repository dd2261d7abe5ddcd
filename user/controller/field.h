/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The schema language: a table of fields says what a mapping may hold and where each value
 * goes in a struct. Loading, `weir set`, printing, comparing and freeing all walk the same
 * table, so a field can't be read but not printed, or printed but not compared.
 *
 * policy_schema.c has the tables; nothing here knows what a limit is.
 */
#pragma once

#include "controller/error.h"
#include "controller/yaml.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define WEIR_FIELD_VALUE_SIZE 128 /* no number, rate, word or address is this long */
#define WEIR_FIELD_TEXT 800	  /* room for any printed scalar: 255 bytes, each as up to 3 */

enum weir_field_type {
	/* One scalar. In brackets the C type at `offset`. */
	WEIR_FIELD_NAME,    /* [char[size]] [a-z0-9][a-z0-9_-]* */
	WEIR_FIELD_IFNAME,  /* [char[size]] a network interface */
	WEIR_FIELD_PATH,    /* [char[size]] an absolute path */
	WEIR_FIELD_GROUP,   /* [char[size]] a user group */
	WEIR_FIELD_LISTEN,  /* [char[size]] address:port, [v6]:port or off */
	WEIR_FIELD_WORD,    /* [enum] index into `words` */
	WEIR_FIELD_BOOL,    /* [bool] true or false */
	WEIR_FIELD_COUNT,   /* [uint64_t] min to max */
	WEIR_FIELD_LEVEL,   /* [uint64_t] min to max, block (0) or unlimited (UINT64_MAX) */
	WEIR_FIELD_RATIO,   /* [uint64_t] millionths, min to max */
	WEIR_FIELD_PERCENT, /* [uint64_t] millionths, min to max */
	WEIR_FIELD_TIME,    /* [uint64_t] ns, min to max */
	WEIR_FIELD_RATE,    /* [struct weir_rate] */
	WEIR_FIELD_EVENTS,  /* [struct weir_rate] packets a second up to max, or block */
	WEIR_FIELD_OFFER,   /* [struct weir_rate] a rate or a count; {0,0}: not given */
	WEIR_FIELD_AMOUNT,  /* [struct weir_amount] */
	WEIR_FIELD_AFTER,   /* [uint64_t[2]] "100 refusals in 10s": count, ns */
	/* A scalar or a list of scalars. */
	WEIR_FIELD_PROTOCOLS, /* [struct weir_bits256] numbers or names */
	WEIR_FIELD_BITS,      /* [struct weir_bits256] numbers 0-255 */
	WEIR_FIELD_RANGES,    /* [struct weir_ranges] N or LOW-HIGH, min to max */
	WEIR_FIELD_PREFIXES,  /* [struct weir_prefixes] */
	WEIR_FIELD_IFNAMES,   /* [struct weir_texts] */
	WEIR_FIELD_PATHS,     /* [struct weir_texts] absolute */
	WEIR_FIELD_HOSTS,     /* [struct weir_texts] names of machines, small letters */
	WEIR_FIELD_FLAGS,     /* [uint8_t[2]] TCP flags: mask, value */
	/* Structure. */
	WEIR_FIELD_MAP,	   /* the struct at offset, of `fields` */
	WEIR_FIELD_ITEMS,  /* [T *] and [size_t at count_offset]: a list of maps, up to max */
	WEIR_FIELD_CUSTOM, /* by `custom` */
};

/* Flags. */
#define WEIR_FIELD_REQUIRED 1U
#define WEIR_FIELD_SET 2U   /* `weir set` may change it */
#define WEIR_FIELD_GIVEN 4U /* MAP: its struct begins with a bool that says it was there */
#define WEIR_FIELD_EMPTY 8U /* list: [] is allowed */

struct weir_field;

/* Where a load stands, for its errors. */
struct weir_field_context {
	const char *file;
	char path[192]; /* limits[per-ip].bucket */
	struct weir_error *err;
};

struct weir_field_custom {
	int (*load)(struct weir_field_context *context, const struct weir_node *node, void *value);
	void (*print)(const void *value, int indent, FILE *out);
	bool (*equal)(const void *a, const void *b);
	json_t *(*json)(const void *value);
};

struct weir_field {
	const char *name; /* NULL ends a table */
	enum weir_field_type type;
	unsigned int flags;
	uint32_t offset;
	uint32_t size;	       /* of the text, or of one item */
	uint32_t count_offset; /* ITEMS */
	uint32_t line_offset;  /* ITEMS: of a uint32_t in the item */
	uint64_t min, max;
	const char *const *words; /* NULL-terminated */
	const struct weir_field *fields;
	const void *defaults; /* ITEMS: what an item is before its fields are read */
	const struct weir_field_custom *custom;
};

/* Reads a map into object, whose defaults are there. Fields are read in the table's order.
 * Errors begin with file:line: field 'path':. What was read so far is left for the free. */
int weir_fields_load(const struct weir_field *fields, const struct weir_node *map, void *object,
		     struct weir_field_context *context);
void weir_fields_print(const struct weir_field *fields, const void *object, int indent, FILE *out);
bool weir_fields_equal(const struct weir_field *fields, const void *a, const void *b);
void weir_fields_free(const struct weir_field *fields, void *object);
/* Base units; names of times end in _ns; sections that were not given are left out. */
json_t *weir_fields_json(const struct weir_field *fields, const void *object);
/* Goes one step down the path, to an item of a list where `item` isn't NULL; the caller restores it
 * by cutting it at what this returns. */
size_t weir_field_push(struct weir_field_context *context, const char *name, const char *item);
/* Puts file:line: field 'path.name': in front of the sentence; name may be NULL. Returns code. */
int weir_field_fail(const struct weir_field_context *context, uint32_t line, const char *name,
		    int code);

/* field_value.c: one scalar at object + offset. */
int weir_field_parse(const struct weir_field *field, const char *text, void *object,
		     struct weir_error *err);
/* Canonical text into WEIR_FIELD_TEXT bytes, quoted for YAML where needed; false if the value
 * was not given and nothing is to be printed. */
bool weir_field_text(const struct weir_field *field, const void *object, char *text);

/* Whether a text fits into size bytes with its NUL; a longer one is quoted only in part. */
int weir_field_check_length(const char *text, size_t size, struct weir_error *err);
/* Whether a NAME, IFNAME, PATH, GROUP or HOST (or an item of their lists) is a usable text. */
int weir_field_check_text(enum weir_field_type type, size_t size, const char *text,
			  struct weir_error *err);
/* `value` in double quotes, as YAML reads it, into WEIR_FIELD_TEXT bytes. */
void weir_field_quote(const char *value, char *text);

/* field_list.c: lists of scalars. */
bool weir_field_is_list(const struct weir_field *field);
int weir_field_add(const struct weir_field *field, const char *text, void *object,
		   struct weir_error *err);
/* Walks the values: *cursor starts at 0; false after the last. */
bool weir_field_next(const struct weir_field *field, const void *object, size_t *cursor,
		     char *text);
void weir_field_clear(const struct weir_field *field, void *object);
