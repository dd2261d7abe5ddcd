/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A YAML text as a tree that knows its lines: the strict subset that a configuration needs.
 *
 * Why libyaml, which libcyaml is built on, and not libcyaml's own loader. Measured with 1.3.1:
 * it names the line of the event before the one that is wrong (an unknown key on line 2 was
 * reported on line 1), gives no line for a value once it is loaded, can't say "a value or a
 * list of them" or "a word or a mapping" (`to_port: 53`, `key: source`), and cuts a string off
 * at an escaped NUL in silence. Our rule is that every error has its line and nothing is
 * ignored; so the schema is ours (field.h) and the YAML is libyaml's.
 *
 * Refused: anchors, aliases (so no alias bomb), tags, a second document, keys that are no
 * scalars, a key twice, more than WEIR_YAML_KEYS_MAX keys in a mapping, nesting below
 * WEIR_YAML_DEPTH_MAX, more than WEIR_YAML_NODES_MAX nodes, NUL bytes, anything but UTF-8.
 */
#pragma once

#include "controller/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_YAML_DEPTH_MAX 12
#define WEIR_YAML_KEYS_MAX 64
#define WEIR_YAML_NODES_MAX 1000000

enum weir_node_kind { WEIR_NODE_SCALAR, WEIR_NODE_LIST, WEIR_NODE_MAP };

struct weir_node {
	enum weir_node_kind kind;
	bool quoted;	   /* a scalar in quotes: "" is then a text, else a missing value */
	uint32_t line;	   /* from 1 */
	uint32_t key_line; /* where its key stands, for a child of a map */
	char *key;	   /* NULL but for a child of a map */
	char *text;	   /* of a scalar: NUL-terminated, without NULs inside */
	struct weir_node *children;
	size_t count;
	size_t room;
};

/* 0, or -EINVAL, -E2BIG, -ENOMEM; the sentence begins with `name`:line:. An empty text is
 * refused. On success *root is freed by weir_node_free. */
int weir_yaml_parse(const char *text, size_t length, const char *name, struct weir_node *root,
		    struct weir_error *err);
void weir_node_free(struct weir_node *node);
/* The child of a map, NULL if it has none of this name. */
const struct weir_node *weir_node_child(const struct weir_node *map, const char *key);
