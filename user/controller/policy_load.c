// SPDX-License-Identifier: GPL-2.0
#include "controller/policy_schema.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "controller/file.h"

static int load_files(struct weir_policy_list *list, const struct weir_node *root,
		      const char *field, const char *name, struct weir_error *err)
{
	const struct weir_node *lists = weir_node_child(root, "lists");
	const struct weir_node *node = lists ? weir_node_child(lists, field) : NULL;

	list->own = list->prefixes.count;
	for (size_t i = 0; i < list->files.count; i++) {
		int rc = weir_prefixes_load(&list->prefixes, list->files.items[i], err);

		if (rc && node)
			weir_error_prefix(err, "%s:%u: field 'lists.%s': ", name,
					  node->count ? node->children[i].line : node->line, field);
		if (rc)
			return rc;
	}
	return 0;
}

static uint32_t key_line(const struct weir_node *root, const char *key)
{
	const struct weir_node *node = weir_node_child(root, key);

	return node ? node->key_line : 0;
}

static void note_lines(struct weir_policy *policy, const struct weir_node *root)
{
	policy->lines.mode = key_line(root, "mode");
	policy->lines.lists = key_line(root, "lists");
	policy->lines.limits = key_line(root, "limits");
}

static int note_written(struct weir_policy *policy, const char *name, struct weir_error *err)
{
	size_t size = policy->limit_count * sizeof(*policy->limits);

	policy->written = malloc(size + 1);
	if (!policy->written)
		return weir_error_set(err, -ENOMEM, "%s: out of memory", name);
	if (size)
		memcpy(policy->written, policy->limits, size);
	return 0;
}

int weir_policy_load_text(const char *text, size_t length, const char *name,
			  struct weir_policy **policy, struct weir_error *err)
{
	struct weir_field_context context = { .file = name, .err = err };
	struct weir_node root = { 0 };
	struct weir_policy *p;
	int rc;

	if (length > WEIR_POLICY_FILE_MAX)
		return weir_error_set(err, -EFBIG,
				      "%s: %zu bytes, at most %u are read: put long lists into "
				      "allow_files, deny_files",
				      name, length, WEIR_POLICY_FILE_MAX);
	p = malloc(sizeof(*p));
	if (!p)
		return weir_error_set(err, -ENOMEM, "%s: out of memory", name);
	*p = weir_policy_defaults;
	p->file = strdup(name);
	rc = p->file ? weir_yaml_parse(text, length, name, &root, err)
		     : weir_error_set(err, -ENOMEM, "%s: out of memory", name);
	if (!rc)
		rc = weir_fields_load(weir_policy_fields, &root, p, &context);
	if (!rc)
		rc = load_files(&p->lists.allow, &root, "allow_files", name, err);
	if (!rc)
		rc = load_files(&p->lists.deny, &root, "deny_files", name, err);
	if (!rc) {
		note_lines(p, &root);
		weir_policy_complete(p);
		rc = weir_policy_check(p, err);
	}
	if (!rc)
		rc = note_written(p, name, err);
	weir_node_free(&root);
	if (rc)
		weir_policy_free(p);
	else
		*policy = p;
	return rc;
}

/* The whole of an open file into *text. */
static int read_all(FILE *file, const char *path, char **text, size_t *length,
		    struct weir_error *err)
{
	struct stat info;

	if (fstat(fileno(file), &info))
		return weir_error_set(err, -errno, "%s: can't be read: %s", path, strerror(errno));
	if (info.st_size > WEIR_POLICY_FILE_MAX)
		return weir_error_set(err, -EFBIG,
				      "%s: %lld bytes, at most %u are read: put long lists into "
				      "allow_files, deny_files",
				      path, (long long)info.st_size, WEIR_POLICY_FILE_MAX);
	*text = malloc((size_t)info.st_size + 1);
	if (!*text)
		return weir_error_set(err, -ENOMEM, "%s: out of memory", path);
	*length = fread(*text, 1, (size_t)info.st_size, file);
	return ferror(file) ? weir_error_set(err, -EIO, "%s: can't be read", path) : 0;
}

int weir_policy_load_file(const char *path, struct weir_policy **policy, struct weir_error *err)
{
	char *text = NULL;
	size_t length = 0;
	FILE *file;
	int rc = weir_file_open(path, &file, err);

	if (rc)
		return rc;
	rc = read_all(file, path, &text, &length, err);
	if (!rc)
		rc = weir_policy_load_text(text, length, path, policy, err);
	free(text);
	fclose(file);
	return rc;
}
