// SPDX-License-Identifier: GPL-2.0
#include "controller/confirm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "controller/file.h"

#define VERSION 1
#define BOOT_ID_FILE "/proc/sys/kernel/random/boot_id"

void weir_confirm_free(struct weir_confirm *confirm)
{
	if (!confirm)
		return;
	free(confirm->before);
	free(confirm->after);
	free(confirm->save_limit);
	json_decref(confirm->save_changes);
	free(confirm);
}

/* ---- the file ---- */

/* Fills in what the file says: 0, -EINVAL, -ENOMEM. */
static int unpack(struct weir_confirm *confirm, json_t *root)
{
	const char *what, *boot_id, *before, *after, *save_limit = NULL;
	int version, undone, reload;
	json_int_t within_ns, until_ns;
	json_t *save = NULL;

	if (json_unpack(root, "{s:i, s:b, s:b, s:s, s:I, s:s, s:I, s:s, s:s, s?:{s:s, s:o}}",
			"version", &version, "undone", &undone, "reload", &reload, "what", &what,
			"within_ns", &within_ns, "boot_id", &boot_id, "until_ns", &until_ns,
			"before", &before, "after", &after, "save", "limit", &save_limit,
			"changes", &save) ||
	    version != VERSION || within_ns < 0 || until_ns < 0 ||
	    (save_limit && !json_is_object(save)))
		return -EINVAL;
	confirm->undone = undone;
	confirm->reload = reload;
	snprintf(confirm->what, sizeof(confirm->what), "%s", what);
	confirm->within_ns = (uint64_t)within_ns;
	snprintf(confirm->boot_id, sizeof(confirm->boot_id), "%s", boot_id);
	confirm->until_ns = (uint64_t)until_ns;
	confirm->before = strdup(before);
	confirm->after = strdup(after);
	confirm->save_limit = save_limit ? strdup(save_limit) : NULL;
	confirm->save_changes = json_incref(save);
	return confirm->before && confirm->after && (!save_limit || confirm->save_limit) ? 0 :
											   -ENOMEM;
}

int weir_confirm_read(const char *path, struct weir_confirm **out, struct weir_error *err)
{
	struct weir_confirm *confirm;
	json_error_t error = { 0 };
	FILE *file;
	json_t *root;
	int code = weir_file_open(path, &file, err);

	*out = NULL;
	if (code)
		return code == -ENOENT ? 0 : code;
	root = json_loadf(file, JSON_REJECT_DUPLICATES, &error);
	fclose(file);
	confirm = calloc(1, sizeof(*confirm));
	code = !confirm ? -ENOMEM : root ? unpack(confirm, root) : -EINVAL;
	json_decref(root);
	if (!code) {
		*out = confirm;
		return 0;
	}
	weir_confirm_free(confirm);
	return weir_error_set(err, code,
			      "%s: %s; it is what a change that waits for `weir confirm` goes back "
			      "to: delete it to go by the configuration instead",
			      path, code == -ENOMEM ? "no memory to read it"
				    : root	    ? "lacks what such a file has"
						    : error.text);
}

static json_t *pack(const struct weir_confirm *confirm)
{
	json_t *root = json_pack("{s:i, s:b, s:b, s:s, s:I, s:s, s:I, s:s, s:s}", "version",
				 VERSION, "undone", confirm->undone, "reload",
				 confirm->reload, "what", confirm->what, "within_ns",
				 (json_int_t)confirm->within_ns, "boot_id",
				 confirm->boot_id, "until_ns",
				 (json_int_t)confirm->until_ns, "before", confirm->before, "after",
				 confirm->after);

	if (root && confirm->save_limit &&
	    json_object_set_new(root, "save",
				json_pack("{s:s, s:O}", "limit", confirm->save_limit, "changes",
					  confirm->save_changes))) {
		json_decref(root);
		return NULL;
	}
	return root;
}

int weir_confirm_write(const char *path, const struct weir_confirm *confirm,
		       struct weir_error *err)
{
	json_t *root = pack(confirm);
	char *text = root ? json_dumps(root, JSON_INDENT(2)) : NULL;
	int code = text ? weir_file_replace(path, text) : -ENOMEM;

	free(text);
	json_decref(root);
	return code ? weir_error_set(err, code,
				     "can't note in %s what to go back to: %s: without --confirm "
				     "it needs no note",
				     path, strerror(-code)) :
		      0;
}

int weir_confirm_remove(const char *path, struct weir_error *err)
{
	int code = weir_file_remove(path);

	return code ? weir_error_set(err, code, "can't delete %s: %s", path, strerror(-code)) : 0;
}

/* ---- time ---- */

void weir_confirm_boot_id(char *boot_id)
{
	FILE *file = fopen(BOOT_ID_FILE, "re");

	boot_id[0] = '\0';
	if (!file)
		return;
	if (!fgets(boot_id, WEIR_BOOT_ID, file))
		boot_id[0] = '\0';
	boot_id[strcspn(boot_id, "\n")] = '\0';
	fclose(file);
}

uint64_t weir_confirm_left_ns(const struct weir_confirm *confirm, const char *boot_id,
			      uint64_t boot_ns)
{
	if (confirm->undone || strcmp(confirm->boot_id, boot_id) || boot_ns >= confirm->until_ns)
		return 0;
	return confirm->until_ns - boot_ns;
}

/* ---- policies ---- */

char *weir_confirm_policy_text(const struct weir_policy *policy, int *code,
			       struct weir_error *err)
{
	struct weir_policy view = *policy;
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);

	view.lists.allow.own = view.lists.allow.prefixes.count;
	view.lists.deny.own = view.lists.deny.prefixes.count;
	view.lists.allow.files.count = view.lists.deny.files.count = 0;
	*code = out ? weir_policy_print(&view, out) : -ENOMEM;
	if (out && fclose(out) && !*code)
		*code = -ENOMEM;
	if (*code)
		weir_error_set(err, *code, "no memory for what to go back to");
	else if (length > WEIR_POLICY_FILE_MAX)
		*code = weir_error_set(err, -EFBIG,
				       "the policy and its lists are %zu bytes of text, at most %u "
				       "can be kept to go back to: leave out --confirm",
				       length, WEIR_POLICY_FILE_MAX);
	if (!*code)
		return text;
	free(text);
	return NULL;
}
