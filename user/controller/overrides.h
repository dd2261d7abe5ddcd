/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What `weir set --save` keeps: a small JSON file beside the configuration's reach (that may
 * be read-only), {"version": 1, "limits": {"per-ip": {"rate": "500pps"}}}, applied over the
 * configuration at every start and reload. Values are those of the configuration's language.
 */
#pragma once

#include <jansson.h>

#include "controller/engine.h"

#define WEIR_OVERRIDES_FIELDS_MAX 32 /* of a limit */

/*
 * Applies the file to the policy; no file is no override. -EINVAL for what is no such file. A
 * limit or field that the policy no longer has is logged and left out, a value likewise: the
 * configuration has moved on.
 */
int weir_overrides_apply(const char *path, struct weir_policy *policy, weir_engine_log log,
			 void *context, struct weir_error *err);

/*
 * Adds changes of one limit; no changes: what was kept of it is forgotten. Atomic, on disk when it
 * returns. Makes the file's folder.
 */
int weir_overrides_save(const char *path, const char *limit,
			const struct weir_policy_change *changes, size_t count,
			struct weir_error *err);

/* The values that are kept, {"per-ip": {"rate": "500pps"}}: a new reference, or NULL. */
json_t *weir_overrides_limits(const char *path);

/*
 * What `weir freeze` holds still, in the same file: {"frozen": {"web": ["governor"]}}. A new
 * reference, or NULL: *code. Save replaces all of it and takes over `frozen`.
 */
json_t *weir_overrides_frozen(const char *path, int *code, struct weir_error *err);
int weir_overrides_save_frozen(const char *path, json_t *frozen, struct weir_error *err);
