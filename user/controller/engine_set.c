// SPDX-License-Identifier: GPL-2.0
/* `weir set`. */
#include <errno.h>

#include "controller/engine_internal.h"
#include "controller/overrides.h"

static void say_set(const struct weir_engine *engine, const char *limit,
		    const struct weir_policy_change *changes, size_t count, const char *before)
{
	char text[256] = "";
	size_t used = 0;

	for (size_t i = 0; i < count && used < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, " %s=%s",
					 changes[i].field, changes[i].value);
	weir_engine_say(engine, "limit %s:%s (weir set), before: %s", limit, text, before);
}

/* A changed limit as it can be stored in place: in the ledger and the rings that it has. */
static int compile_set(const struct weir_engine *engine, const struct weir_policy_limit *limit,
		       struct weir_limit *next, struct weir_error *err)
{
	const struct weir_limit *live =
		weir_generation_now(&engine->generation).limits + (limit - engine->policy->limits);
	int code = weir_compile_limit(engine->policy, limit, engine->wall_ns, next, err);

	if (code || next->kind != WEIR_KIND_SLIDING)
		return code;
	if (next->sliding.quota > live->sliding.capacity)
		return weir_error_set(
			err, -ERANGE,
			"limit '%s': field 'quota': '%u' is more than its rings hold: write at "
			"most %u, or change the file and reload, which makes new rings (and "
			"forgets what is in these)",
			limit->name, next->sliding.quota, live->sliding.capacity);
	next->sliding.capacity = live->sliding.capacity;
	return 0;
}

/* Into force, or nothing has changed. *label_before gets the label that it had. */
static int change(struct weir_engine *engine, const char *name,
		  const struct weir_policy_change *changes, size_t count, bool save,
		  struct weir_label *label_before, struct weir_error *err)
{
	struct weir_policy_limit *limit = weir_policy_find_limit(engine->policy, name), before;
	struct weir_label label;
	struct weir_limit next;
	int code;

	/* A change touches plain values only, so a plain copy brings them back. */
	if (limit)
		before = *limit;
	code = weir_policy_set(engine->policy, name, changes, count, err);
	if (code || !limit)
		return code;
	code = compile_set(engine, limit, &next, err);
	if (!code && save)
		code = weir_overrides_save(engine->overrides, name, changes, count, err);
	if (code) {
		*limit = before;
		return code;
	}
	weir_compile_label(&before, label_before);
	weir_compile_label(limit, &label);
	weir_generation_set(&engine->generation, (uint32_t)(limit - engine->policy->limits), &next,
			    &label);
	return 0;
}

int weir_engine_set(struct weir_engine *engine, const char *name,
		    const struct weir_policy_change *changes, size_t count, bool save,
		    struct weir_error *err)
{
	struct weir_label before;
	int code = change(engine, name, changes, count, save, &before, err);

	if (!code)
		say_set(engine, name, changes, count, before.setting);
	return code;
}

int weir_engine_move(struct weir_engine *engine, const char *name,
		     const struct weir_policy_change *step, struct weir_error *err)
{
	struct weir_label before;

	return change(engine, name, step, 1, false, &before, err);
}
