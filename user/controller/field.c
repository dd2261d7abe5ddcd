// SPDX-License-Identifier: GPL-2.0
#include "controller/field.h"
#include "controller/prefix.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FLOW_ITEMS 8 /* a list up to this long stands on one line */

int weir_field_fail(const struct weir_field_context *context, uint32_t line, const char *name,
		    int code)
{
	const char *dot = *context->path && name ? "." : "";

	if (!*context->path && !name)
		weir_error_prefix(context->err, "%s:%u: ", context->file, line);
	else
		weir_error_prefix(context->err, "%s:%u: field '%s%s%s': ", context->file, line,
				  context->path, dot, name ? name : "");
	return code;
}

size_t weir_field_push(struct weir_field_context *context, const char *name, const char *item)
{
	size_t used = strlen(context->path);

	snprintf(context->path + used, sizeof(context->path) - used, item ? "%s%s[%s]" : "%s%s",
		 used ? "." : "", name, item);
	return used;
}

static const struct weir_field *find(const struct weir_field *fields, const char *name)
{
	for (; fields->name; fields++) {
		if (!strcmp(fields->name, name))
			return fields;
	}
	return NULL;
}

static int check_keys(const struct weir_field *fields, const struct weir_node *map,
		      struct weir_field_context *context)
{
	char all[256] = "";

	for (const struct weir_field *f = fields; f->name; f++)
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s",
			 f == fields ? "" : ", ", f->name);
	for (size_t i = 0; i < map->count; i++) {
		const struct weir_node *child = &map->children[i];

		if (find(fields, child->key))
			continue;
		weir_error_set(context->err, 0, "'%s' is not known here: write one of %s",
			       child->key, all);
		return weir_field_fail(context, child->key_line, NULL, -EINVAL);
	}
	return 0;
}

static bool is_missing(const struct weir_node *node)
{
	return node->kind == WEIR_NODE_SCALAR && !node->quoted &&
	       (!*node->text || !strcmp(node->text, "~"));
}

/* The text of a scalar, NULL (and an error) if the node is none. */
static const char *scalar(const struct weir_field *field, const struct weir_node *node,
			  struct weir_field_context *context)
{
	if (node->kind == WEIR_NODE_SCALAR)
		return node->text;
	weir_error_set(context->err, 0, "a %s where one value belongs",
		       node->kind == WEIR_NODE_LIST ? "list" : "mapping");
	weir_field_fail(context, node->line, field->name, -EINVAL);
	return NULL;
}

static int load_scalar(const struct weir_field *field, const struct weir_node *node, void *object,
		       struct weir_field_context *context)
{
	const char *text = scalar(field, node, context);
	int rc;

	if (!text)
		return -EINVAL;
	rc = weir_field_is_list(field) ? weir_field_add(field, text, object, context->err)
				       : weir_field_parse(field, text, object, context->err);
	return rc ? weir_field_fail(context, node->line, field->name, rc) : 0;
}

/* A list of scalars; one scalar is a list of one. */
static int load_list(const struct weir_field *field, const struct weir_node *node, void *object,
		     struct weir_field_context *context)
{
	int rc = 0;

	if (node->kind != WEIR_NODE_LIST)
		return load_scalar(field, node, object, context);
	if (!node->count && !(field->flags & WEIR_FIELD_EMPTY)) {
		weir_error_set(context->err, 0, "'[]' is empty: remove the line, or list a value");
		return weir_field_fail(context, node->line, field->name, -EINVAL);
	}
	for (size_t i = 0; !rc && i < node->count; i++)
		rc = load_scalar(field, &node->children[i], object, context);
	return rc;
}

static int load_map(const struct weir_field *field, const struct weir_node *node, void *object,
		    struct weir_field_context *context)
{
	void *value = (char *)object + field->offset;
	size_t path;
	int rc;

	path = weir_field_push(context, field->name, NULL);
	rc = weir_fields_load(field->fields, node, value, context);
	context->path[path] = 0;
	if (field->flags & WEIR_FIELD_GIVEN)
		*(bool *)value = true;
	return rc;
}

static int load_item(const struct weir_field *field, const struct weir_node *node, size_t i,
		     char *item, struct weir_field_context *context)
{
	const struct weir_node *name = weir_node_child(node, "name");
	char number[24], label[40];
	size_t path;
	int rc;

	snprintf(number, sizeof(number), "%zu", i + 1);
	snprintf(label, sizeof(label), "%s",
		 name && name->kind == WEIR_NODE_SCALAR && *name->text ? name->text : number);
	if (field->defaults)
		memcpy(item, field->defaults, field->size);
	*(uint32_t *)(item + field->line_offset) = node->line;
	path = weir_field_push(context, field->name, label);
	rc = weir_fields_load(field->fields, node, item, context);
	context->path[path] = 0;
	return rc;
}

static int load_items(const struct weir_field *field, const struct weir_node *node, void *object,
		      struct weir_field_context *context)
{
	size_t *count = (size_t *)((char *)object + field->count_offset);
	char **items = (char **)((char *)object + field->offset);
	int rc = 0;

	if (node->kind != WEIR_NODE_LIST) {
		weir_error_set(context->err, 0, "a list belongs here: begin each item with '- '");
		return weir_field_fail(context, node->line, field->name, -EINVAL);
	}
	if (node->count > field->max) {
		weir_error_set(context->err, 0, "%zu items, at most %llu are possible", node->count,
			       (unsigned long long)field->max);
		return weir_field_fail(context, node->line, field->name, -EINVAL);
	}
	if (!node->count)
		return 0;
	*items = calloc(node->count, field->size);
	if (!*items)
		return weir_error_set(context->err, -ENOMEM, "out of memory");
	for (size_t i = 0; !rc && i < node->count; i++) {
		*count = i + 1; /* the free sees what a failed load left */
		rc = load_item(field, &node->children[i], i, *items + i * field->size, context);
	}
	return rc;
}

static int load_field(const struct weir_field *field, const struct weir_node *node, void *object,
		      struct weir_field_context *context)
{
	if (is_missing(node)) {
		weir_error_set(context->err, 0, "'%s' has no value: write one, or remove the line",
			       field->name);
		return weir_field_fail(context, node->key_line, field->name, -EINVAL);
	}
	switch (field->type) {
	case WEIR_FIELD_MAP:
		return load_map(field, node, object, context);
	case WEIR_FIELD_ITEMS:
		return load_items(field, node, object, context);
	case WEIR_FIELD_CUSTOM:
		return field->custom->load(context, node, (char *)object + field->offset);
	default:
		return weir_field_is_list(field) ? load_list(field, node, object, context)
						 : load_scalar(field, node, object, context);
	}
}

int weir_fields_load(const struct weir_field *fields, const struct weir_node *map, void *object,
		     struct weir_field_context *context)
{
	int rc;

	if (map->kind != WEIR_NODE_MAP) {
		weir_error_set(context->err, 0, "a mapping belongs here, such as %s: VALUE",
			       fields->name);
		return weir_field_fail(context, map->line, NULL, -EINVAL);
	}
	rc = check_keys(fields, map, context);
	for (const struct weir_field *f = fields; !rc && f->name; f++) {
		const struct weir_node *child = weir_node_child(map, f->name);

		if (child) {
			rc = load_field(f, child, object, context);
		} else if (f->flags & WEIR_FIELD_REQUIRED) {
			weir_error_set(context->err, 0, "is missing: add it");
			rc = weir_field_fail(context, map->line, f->name, -EINVAL);
		}
	}
	return rc;
}

static void print_list(const struct weir_field *field, const void *object, int indent, FILE *out)
{
	char text[WEIR_FIELD_TEXT];
	size_t cursor = 0, count = 0;

	while (count <= FLOW_ITEMS && weir_field_next(field, object, &cursor, text))
		count++;
	if (!count)
		return;
	fprintf(out, "%*s%s:%s", indent, "", field->name, count > FLOW_ITEMS ? "\n" : " [");
	cursor = 0;
	for (size_t i = 0; weir_field_next(field, object, &cursor, text); i++) {
		if (count > FLOW_ITEMS)
			fprintf(out, "%*s- %s\n", indent + 2, "", text);
		else
			fprintf(out, "%s%s", i ? ", " : "", text);
	}
	if (count <= FLOW_ITEMS)
		fputs("]\n", out);
}

/* The fields of one struct as text of its own; NULL only if memory is short. Freed by the caller.
 */
static char *body_text(const struct weir_field *fields, const void *object, int indent)
{
	char *body = NULL;
	size_t size = 0;
	FILE *memory = open_memstream(&body, &size);

	if (!memory)
		return NULL;
	weir_fields_print(fields, object, indent, memory);
	fclose(memory);
	return body;
}

static void print_items(const struct weir_field *field, const void *object, int indent, FILE *out)
{
	size_t count = *(const size_t *)((const char *)object + field->count_offset);
	const char *items = *(char *const *)((const char *)object + field->offset);

	if (count)
		fprintf(out, "%*s%s:\n", indent, "", field->name);
	for (size_t i = 0; i < count; i++) {
		char *body = body_text(field->fields, items + i * field->size, indent + 4);

		/* The dash stands in the indentation of the first field. */
		if (body && *body)
			fprintf(out, "%*s- %s", indent + 2, "", body + indent + 4);
		free(body);
	}
}

static void print_map(const struct weir_field *field, const void *value, int indent, FILE *out)
{
	char *body;

	if (field->flags & WEIR_FIELD_GIVEN && !*(const bool *)value)
		return;
	body = body_text(field->fields, value, indent + 2);
	if (body && *body)
		fprintf(out, "%*s%s:\n%s", indent, "", field->name, body);
	free(body);
}

void weir_fields_print(const struct weir_field *fields, const void *object, int indent, FILE *out)
{
	for (const struct weir_field *f = fields; f->name; f++) {
		const void *value = (const char *)object + f->offset;
		char text[WEIR_FIELD_TEXT];

		if (f->type == WEIR_FIELD_MAP)
			print_map(f, value, indent, out);
		else if (f->type == WEIR_FIELD_ITEMS)
			print_items(f, object, indent, out);
		else if (f->type == WEIR_FIELD_CUSTOM)
			f->custom->print(value, indent, out);
		else if (weir_field_is_list(f))
			print_list(f, object, indent, out);
		else if (weir_field_text(f, object, text))
			fprintf(out, "%*s%s: %s\n", indent, "", f->name, text);
		else if (f->type == WEIR_FIELD_AMOUNT)
			fprintf(out, "%*s# %s: %s by default\n", indent, "", f->name, text);
	}
}

static bool list_equal(const struct weir_field *field, const void *a, const void *b)
{
	char left[WEIR_FIELD_TEXT], right[WEIR_FIELD_TEXT];
	const struct weir_prefixes *x = (const void *)((const char *)a + field->offset);
	const struct weir_prefixes *y = (const void *)((const char *)b + field->offset);
	size_t i = 0, j = 0;
	bool more;

	/* The one that is long: a million of them in 20 ms, not in a second. */
	if (field->type == WEIR_FIELD_PREFIXES)
		return x->count == y->count &&
		       (!x->count || !memcmp(x->items, y->items, x->count * sizeof(*x->items)));
	do {
		more = weir_field_next(field, a, &i, left);
		if (more != weir_field_next(field, b, &j, right) || (more && strcmp(left, right)))
			return false;
	} while (more);
	return true;
}

static bool items_equal(const struct weir_field *field, const void *a, const void *b)
{
	size_t count = *(const size_t *)((const char *)a + field->count_offset);
	const char *left = *(char *const *)((const char *)a + field->offset);
	const char *right = *(char *const *)((const char *)b + field->offset);

	if (count != *(const size_t *)((const char *)b + field->count_offset))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (!weir_fields_equal(field->fields, left + i * field->size,
				       right + i * field->size))
			return false;
	}
	return true;
}

static bool map_equal(const struct weir_field *field, const void *a, const void *b)
{
	if (field->flags & WEIR_FIELD_GIVEN) {
		if (*(const bool *)a != *(const bool *)b)
			return false;
		if (!*(const bool *)a)
			return true;
	}
	return weir_fields_equal(field->fields, a, b);
}

static bool field_equal(const struct weir_field *field, const void *a, const void *b)
{
	char left[WEIR_FIELD_TEXT], right[WEIR_FIELD_TEXT];
	const char *x = (const char *)a + field->offset, *y = (const char *)b + field->offset;

	switch (field->type) {
	case WEIR_FIELD_MAP:
		return map_equal(field, x, y);
	case WEIR_FIELD_ITEMS:
		return items_equal(field, a, b);
	case WEIR_FIELD_CUSTOM:
		return field->custom->equal(x, y);
	default:
		if (weir_field_is_list(field))
			return list_equal(field, a, b);
		/* The canonical text is the value: one that isn't given has its default there. */
		weir_field_text(field, a, left);
		weir_field_text(field, b, right);
		return !strcmp(left, right);
	}
}

bool weir_fields_equal(const struct weir_field *fields, const void *a, const void *b)
{
	for (; fields->name; fields++) {
		if (!field_equal(fields, a, b))
			return false;
	}
	return true;
}

void weir_fields_free(const struct weir_field *fields, void *object)
{
	for (const struct weir_field *f = fields; f->name; f++) {
		char *value = (char *)object + f->offset;

		if (weir_field_is_list(f)) {
			weir_field_clear(f, object);
		} else if (f->type == WEIR_FIELD_MAP) {
			weir_fields_free(f->fields, value);
		} else if (f->type == WEIR_FIELD_ITEMS) {
			size_t count = *(size_t *)((char *)object + f->count_offset);

			for (size_t i = 0; i < count; i++)
				weir_fields_free(f->fields, *(char **)value + i * f->size);
			free(*(char **)value);
		}
	}
}
