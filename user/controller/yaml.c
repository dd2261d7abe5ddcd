// SPDX-License-Identifier: GPL-2.0
#include "controller/yaml.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct reader {
	yaml_parser_t parser;
	const char *name;
	size_t nodes;
	struct weir_error *err;
};

static int fail(struct reader *reader, size_t line, int code)
{
	weir_error_prefix(reader->err, "%s:%zu: ", reader->name, line);
	return code;
}

static int next_event(struct reader *reader, yaml_event_t *event)
{
	yaml_parser_t *parser = &reader->parser;

	if (yaml_parser_parse(parser, event))
		return 0;
	if (parser->error == YAML_MEMORY_ERROR)
		return weir_error_set(reader->err, -ENOMEM, "%s: out of memory", reader->name);
	if (parser->error == YAML_READER_ERROR) {
		weir_error_set(reader->err, 0, "not YAML in UTF-8: %s (byte %zu of the text)",
			       parser->problem, parser->problem_offset);
		return fail(reader, parser->mark.line + 1, -EINVAL);
	}
	weir_error_set(reader->err, 0, "not valid YAML: %s%s%s%s", parser->context ?: "",
		       parser->context ? ": " : "", parser->problem ?: "",
		       parser->problem && strstr(parser->problem, "cannot start any token") ?
			       " (a tab? indent by spaces)" :
			       "");
	return fail(reader, parser->problem_mark.line + 1, -EINVAL);
}

static int check_plain(struct reader *reader, const yaml_char_t *anchor, const yaml_char_t *tag,
		       size_t line)
{
	if (!anchor && !tag)
		return 0;
	weir_error_set(reader->err, 0, "'%s%s': %s are not used here: write the value itself",
		       anchor ? "&" : "", anchor ? anchor : tag, anchor ? "anchors" : "tags");
	return fail(reader, line, -EINVAL);
}

static int take_text(struct reader *reader, const yaml_event_t *event, char **text)
{
	size_t length = event->data.scalar.length, line = event->start_mark.line + 1;
	const char *value = (const char *)event->data.scalar.value;
	int rc;

	rc = check_plain(reader, event->data.scalar.anchor, event->data.scalar.tag, line);
	if (rc)
		return rc;
	if (strlen(value) != length) {
		weir_error_set(reader->err, 0, "'%s' is followed by a NUL: remove it", value);
		return fail(reader, line, -EINVAL);
	}
	*text = strdup(value);
	if (!*text)
		return weir_error_set(reader->err, -ENOMEM, "%s: out of memory", reader->name);
	return 0;
}

static int append(struct reader *reader, struct weir_node *parent, const struct weir_node *child)
{
	if (parent->count == parent->room) {
		size_t room = parent->room ? parent->room * 2 : 4;
		void *children = reallocarray(parent->children, room, sizeof(*child));

		if (!children)
			return weir_error_set(reader->err, -ENOMEM, "%s: out of memory",
					      reader->name);
		parent->children = children;
		parent->room = room;
	}
	parent->children[parent->count++] = *child;
	return 0;
}

static int check_key(struct reader *reader, const struct weir_node *map, const char *key,
		     size_t line)
{
	const struct weir_node *other = weir_node_child(map, key);

	if (other)
		weir_error_set(reader->err, 0, "'%s' is there twice (first on line %u): keep one",
			       key, other->key_line);
	else if (map->count == WEIR_YAML_KEYS_MAX)
		weir_error_set(reader->err, 0, "'%s': more than %u keys in one mapping", key,
			       WEIR_YAML_KEYS_MAX);
	else
		return 0;
	return fail(reader, line, -EINVAL);
}

static int read_node(struct reader *reader, const yaml_event_t *event, int depth,
		     struct weir_node *node);

/* Reads the key that `event` is into `child`. */
static int read_key(struct reader *reader, const yaml_event_t *event, const struct weir_node *map,
		    struct weir_node *child)
{
	size_t line = event->start_mark.line + 1;
	int rc;

	if (event->type != YAML_SCALAR_EVENT) {
		weir_error_set(reader->err, 0, "a key must be a word");
		return fail(reader, line, -EINVAL);
	}
	rc = take_text(reader, event, &child->key);
	child->key_line = (uint32_t)line;
	return rc ? rc : check_key(reader, map, child->key, line);
}

static int read_children(struct reader *reader, int depth, struct weir_node *node)
{
	for (;;) {
		struct weir_node child = { 0 };
		yaml_event_t event;
		int rc;

		rc = next_event(reader, &event);
		if (rc)
			return rc;
		if (event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT) {
			yaml_event_delete(&event);
			return 0;
		}
		if (node->kind == WEIR_NODE_MAP) {
			rc = read_key(reader, &event, node, &child);
			yaml_event_delete(&event);
			if (!rc)
				rc = next_event(reader, &event);
			if (rc) {
				weir_node_free(&child);
				return rc;
			}
		}
		rc = read_node(reader, &event, depth + 1, &child);
		yaml_event_delete(&event);
		if (!rc)
			rc = append(reader, node, &child);
		if (rc) {
			weir_node_free(&child);
			return rc;
		}
	}
}

static int check_room(struct reader *reader, int depth, size_t line)
{
	if (depth > WEIR_YAML_DEPTH_MAX) {
		weir_error_set(reader->err, 0, "nested more than %d deep", WEIR_YAML_DEPTH_MAX);
		return fail(reader, line, -EINVAL);
	}
	if (++reader->nodes > WEIR_YAML_NODES_MAX) {
		weir_error_set(reader->err, 0,
			       "more than %d values: put long lists into allow_files, deny_files",
			       WEIR_YAML_NODES_MAX);
		return fail(reader, line, -E2BIG);
	}
	return 0;
}

static int read_node(struct reader *reader, const yaml_event_t *event, int depth,
		     struct weir_node *node)
{
	size_t line = event->start_mark.line + 1;
	int rc;

	node->line = (uint32_t)line;
	rc = check_room(reader, depth, line);
	if (rc)
		return rc;
	switch (event->type) {
	case YAML_SCALAR_EVENT:
		node->kind = WEIR_NODE_SCALAR;
		node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
		return take_text(reader, event, &node->text);
	case YAML_SEQUENCE_START_EVENT:
		node->kind = WEIR_NODE_LIST;
		rc = check_plain(reader, event->data.sequence_start.anchor,
				 event->data.sequence_start.tag, line);
		break;
	case YAML_MAPPING_START_EVENT:
		node->kind = WEIR_NODE_MAP;
		rc = check_plain(reader, event->data.mapping_start.anchor,
				 event->data.mapping_start.tag, line);
		break;
	default: /* an alias: nothing else can stand where a node begins */
		weir_error_set(reader->err, 0, "aliases are not used here: write the value itself");
		return fail(reader, line, -EINVAL);
	}
	return rc ? rc : read_children(reader, depth, node);
}

/* STREAM-START, DOCUMENT-START, one node, DOCUMENT-END, STREAM-END. */
static int read_stream(struct reader *reader, struct weir_node *root)
{
	yaml_event_type_t type = YAML_NO_EVENT;
	bool seen = false;

	while (type != YAML_STREAM_END_EVENT) {
		yaml_event_t event;
		int rc = next_event(reader, &event);

		if (rc)
			return rc;
		type = event.type;
		if (type == YAML_DOCUMENT_START_EVENT && seen) {
			weir_error_set(reader->err, 0, "a second document: one file, one document");
			rc = fail(reader, event.start_mark.line + 1, -EINVAL);
		} else if (type != YAML_STREAM_START_EVENT && type != YAML_STREAM_END_EVENT &&
			   type != YAML_DOCUMENT_START_EVENT && type != YAML_DOCUMENT_END_EVENT) {
			seen = true;
			rc = read_node(reader, &event, 0, root);
		}
		yaml_event_delete(&event);
		if (rc)
			return rc;
	}
	if (!seen)
		return weir_error_set(reader->err, -EINVAL,
				      "%s:1: the file is empty: it must at least say 'version: 1'",
				      reader->name);
	return 0;
}

int weir_yaml_parse(const char *text, size_t length, const char *name, struct weir_node *root,
		    struct weir_error *err)
{
	static const char mark[] = "\xef\xbb\xbf";
	struct reader reader = { .name = name, .err = err };
	int rc;

	*root = (struct weir_node){ 0 };
	/* What some editors begin a file with is a column to libyaml: the line below it would be
	 * indented less. */
	if (length >= sizeof(mark) - 1 && !memcmp(text, mark, sizeof(mark) - 1)) {
		text += sizeof(mark) - 1;
		length -= sizeof(mark) - 1;
	}
	if (!yaml_parser_initialize(&reader.parser))
		return weir_error_set(err, -ENOMEM, "%s: out of memory", name);
	yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text, length);
	rc = read_stream(&reader, root);
	yaml_parser_delete(&reader.parser);
	if (rc) {
		weir_node_free(root);
		*root = (struct weir_node){ 0 };
	}
	return rc;
}

void weir_node_free(struct weir_node *node)
{
	for (size_t i = 0; i < node->count; i++)
		weir_node_free(&node->children[i]);
	free(node->children);
	free(node->key);
	free(node->text);
}

const struct weir_node *weir_node_child(const struct weir_node *map, const char *key)
{
	for (size_t i = 0; i < map->count; i++) {
		const struct weir_node *child = &map->children[i];

		if (child->key && !strcmp(child->key, key))
			return child;
	}
	return NULL;
}
