// SPDX-License-Identifier: GPL-2.0
#include "controller/overrides.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "controller/file.h"

static int corrupt(const char *path, int line, const char *what, struct weir_error *err)
{
	return weir_error_set(err, -EINVAL,
			      "%s:%d: %s; these are the values that `weir set --save` kept: repair "
			      "the file, or delete it to go by the configuration alone",
			      path, line, what);
}

/* {"web": ["governor"]} */
static bool is_frozen(json_t *frozen)
{
	bool good = json_is_object(frozen);
	json_t *loops, *loop;
	const char *name;
	size_t i;

	json_object_foreach(frozen, name, loops)
	{
		good &= json_is_array(loops);
		json_array_foreach(loops, i, loop)
			good &= json_is_string(loop);
	}
	return good;
}

/* The file, checked to its last value; an empty one where there is none. NULL, *code. */
static json_t *read_file(const char *path, int *code, struct weir_error *err)
{
	json_error_t error;
	json_t *root, *fields, *value;
	const char *name;
	FILE *file;

	*code = weir_file_open(path, &file, err);
	if (*code == -ENOENT) {
		*code = 0;
		return json_pack("{s:i, s:{}}", "version", 1, "limits");
	}
	if (*code)
		return NULL;
	root = json_loadf(file, JSON_REJECT_DUPLICATES, &error);
	fclose(file);
	if (!root) {
		*code = corrupt(path, error.line, error.text, err);
		return NULL;
	}
	if (json_integer_value(json_object_get(root, "version")) != 1 ||
	    !json_is_object(json_object_get(root, "limits")))
		*code = corrupt(path, 1, "not a file of version 1 with limits", err);
	if (json_object_get(root, "frozen") && !is_frozen(json_object_get(root, "frozen")))
		*code = corrupt(path, 1, "frozen is not an object of lists of loops", err);
	json_object_foreach(json_object_get(root, "limits"), name, fields)
	{
		const char *field;

		if (!json_is_object(fields) || json_object_size(fields) > WEIR_OVERRIDES_FIELDS_MAX)
			*code = corrupt(path, 1, "a limit is not an object of fields", err);
		json_object_foreach(fields, field, value)
		{
			if (!json_is_string(value))
				*code = corrupt(path, 1, "a field's value is not a text", err);
		}
	}
	if (!*code)
		return root;
	json_decref(root);
	return NULL;
}

static void apply_one(const char *path, struct weir_policy *policy, const char *limit,
		      json_t *fields, weir_engine_log log, void *context)
{
	struct weir_policy_change changes[WEIR_OVERRIDES_FIELDS_MAX];
	struct weir_error refused;
	char line[1024], values[256] = "";
	size_t count = 0, used = 0;
	const char *field;
	json_t *value;

	json_object_foreach(fields, field, value)
	{
		changes[count++] = (struct weir_policy_change){ field, json_string_value(value) };
		if (used < sizeof(values))
			used += (size_t)snprintf(values + used, sizeof(values) - used, " %s=%s",
						 field, json_string_value(value));
	}
	if (weir_policy_set(policy, limit, changes, count, &refused))
		snprintf(line, sizeof(line),
			 "override in %s left out:%s: %s (weir unset %s forgets it)", path, values,
			 refused.text, limit);
	else
		snprintf(line, sizeof(line), "limit %s:%s (kept by weir set --save in %s)", limit,
			 values, path);
	if (log)
		log(context, line);
}

int weir_overrides_apply(const char *path, struct weir_policy *policy, weir_engine_log log,
			 void *context, struct weir_error *err)
{
	const char *limit;
	json_t *root, *fields;
	int code;

	root = read_file(path, &code, err);
	if (!root)
		return code ? code : weir_error_set(err, -ENOMEM, "no memory for %s", path);
	json_object_foreach(json_object_get(root, "limits"), limit, fields)
		apply_one(path, policy, limit, fields, log, context);
	json_decref(root);
	return 0;
}

/* The whole file; takes over `root`. */
static int write_file(const char *path, json_t *root, struct weir_error *err)
{
	char *text = json_dumps(root, JSON_INDENT(2) | JSON_SORT_KEYS);
	int code = text ? weir_file_replace(path, text) : -ENOMEM;

	free(text);
	json_decref(root);
	return code ? weir_error_set(err, code, "can't save to %s: %s", path, strerror(-code)) : 0;
}

int weir_overrides_save(const char *path, const char *limit,
			const struct weir_policy_change *changes, size_t count,
			struct weir_error *err)
{
	json_t *root, *limits, *fields;
	int code;

	root = read_file(path, &code, err);
	if (!root)
		return code ? code : weir_error_set(err, -ENOMEM, "no memory for %s", path);
	limits = json_object_get(root, "limits");
	fields = json_object_get(limits, limit);
	if (!fields) {
		fields = json_object();
		json_object_set_new(limits, limit, fields);
	}
	for (size_t i = 0; i < count; i++)
		json_object_set_new(fields, changes[i].field, json_string(changes[i].value));
	if (!count)
		json_object_del(limits, limit);
	return write_file(path, root, err);
}

json_t *weir_overrides_limits(const char *path)
{
	struct weir_error ignored;
	int code;
	json_t *root = read_file(path, &code, &ignored);
	json_t *limits = json_incref(json_object_get(root, "limits"));

	json_decref(root);
	return limits;
}

/* ---- frozen loops ---- */

json_t *weir_overrides_frozen(const char *path, int *code, struct weir_error *err)
{
	json_t *root = read_file(path, code, err), *frozen;

	if (!root) {
		*code = *code ? *code : weir_error_set(err, -ENOMEM, "no memory for %s", path);
		return NULL;
	}
	frozen = json_incref(json_object_get(root, "frozen"));
	json_decref(root);
	return frozen ? frozen : json_object();
}

int weir_overrides_save_frozen(const char *path, json_t *frozen, struct weir_error *err)
{
	int code;
	json_t *root = read_file(path, &code, err);

	if (!root) {
		json_decref(frozen);
		return code ? code : weir_error_set(err, -ENOMEM, "no memory for %s", path);
	}
	json_object_set_new(root, "frozen", frozen);
	return write_file(path, root, err);
}
