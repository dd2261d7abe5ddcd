// SPDX-License-Identifier: GPL-2.0
/* `weir set`, `weir unset`. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "controller/engine_internal.h"
#include "controller/overrides.h"

/* " rate=500pps burst=1000" */
static void print_changes(const struct weir_policy_change *changes, size_t count, char *text,
			  size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < count && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, " %s=%s", changes[i].field,
					 changes[i].value);
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

/* The changed policy against the session: all of its tables, for the one limit. */
static int check_session(const struct weir_engine *engine, const struct weir_terms *terms,
			 const struct weir_policy_limit *limit, struct weir_error *err)
{
	struct weir_compiled *compiled = NULL;
	int code;

	if (!terms || !terms->session)
		return 0;
	code = weir_engine_compile(engine, engine->policy, &engine->held, &compiled, err);
	if (!code)
		code = weir_engine_check_session(terms, engine->policy, compiled,
						 &engine->held, engine->lists.tables,
						 (int)(limit - engine->policy->limits), err);
	weir_compiled_free(compiled);
	return code;
}

/* What is on file before it acts: the saved values, or those that wait with the change. */
static int keep(struct weir_engine *engine, const char *name,
		const struct weir_policy_change *changes, size_t count,
		const struct weir_terms *terms, struct weir_confirm *note, struct weir_error *err)
{
	if (!terms || (!terms->save && !note))
		return 0;
	if (!note)
		return weir_overrides_save(engine->overrides, name, changes, count, err);
	if (terms->save) {
		note->save_limit = strdup(name);
		note->save_changes = json_object();
		for (size_t i = 0; i < count; i++)
			json_object_set_new(note->save_changes, changes[i].field,
					    json_string(changes[i].value));
	}
	return weir_engine_wait(engine, note, engine->policy, err);
}

/*
 * The file's quota is more than the rings hold that were made for the kept one: it is forgotten all
 * the same, or every reload would bring it back.
 */
static int unset_at_reload(const struct weir_engine *engine, const char *name, int code,
			   struct weir_error *err)
{
	struct weir_error other;

	if (weir_overrides_save(engine->overrides, name, NULL, 0, &other))
		return weir_error_set(err, -EIO, "%s", other.text);
	weir_error_prefix(err, "nothing is kept of it any more, and weir reload brings what the "
			       "file says; now not: ");
	return code;
}

/* Into force, or nothing has changed. *label_before gets the label that it had. */
static int change(struct weir_engine *engine, const char *name,
		  const struct weir_policy_change *changes, size_t count,
		  const struct weir_terms *terms, struct weir_confirm *note,
		  struct weir_label *label_before, struct weir_error *err)
{
	struct weir_policy_limit *limit = weir_policy_find_limit(engine->policy, name), before;
	struct weir_label label;
	struct weir_limit next;
	int code;

	/* A change touches plain values only, so a plain copy brings them back. */
	if (limit)
		before = *limit;
	code = count ? weir_policy_set(engine->policy, name, changes, count, err) :
		       weir_policy_unset(engine->policy, name, err);
	if (code || !limit)
		goto out;
	code = compile_set(engine, limit, &next, err);
	if (code == -ERANGE && !count && !note)
		code = unset_at_reload(engine, name, code, err);
	if (!code)
		code = check_session(engine, terms, limit, err);
	if (!code) {
		code = keep(engine, name, changes, count, terms, note, err);
		note = NULL;
	}
	if (code) {
		*limit = before;
		goto out;
	}
	weir_compile_label(&before, label_before);
	weir_compile_label(limit, &label);
	weir_generation_set(&engine->generation, (uint32_t)(limit - engine->policy->limits), &next,
			    &label);
out:
	weir_confirm_free(note);
	return code;
}

/* Of a limit that the file had once: -ENOENT, as err says, where there is nothing of it. */
static int forget(struct weir_engine *engine, const char *name, struct weir_error *err)
{
	int code;

	if (!weir_engine_saved(engine, name))
		return -ENOENT;
	code = weir_overrides_save(engine->overrides, name, NULL, 0, err);
	if (!code)
		weir_engine_say(engine, "%s: what was kept of it is forgotten (weir unset)", name);
	return code;
}

int weir_engine_set(struct weir_engine *engine, const char *name,
		    const struct weir_policy_change *changes, size_t count,
		    const struct weir_terms *terms, struct weir_error *err)
{
	const char *verb = count ? "set" : "unset";
	char text[192], what[WEIR_CONFIRM_WHAT];
	struct weir_confirm *note = NULL;
	struct weir_label before;
	int code = weir_engine_may_change(engine, terms, false, err);

	print_changes(changes, count, text, sizeof(text));
	snprintf(what, sizeof(what), "weir %s %s%s", verb, name, text);
	if (!code)
		note = weir_engine_note(engine, terms, what, &code, err);
	if (!code)
		code = change(engine, name, changes, count, terms, note, &before, err);
	if (code == -ENOENT && !count)
		code = forget(engine, name, err);
	else if (!code)
		weir_engine_say(engine, "limit %s:%s (weir %s), before: %s", name,
				count ? text : " as in the file", verb, before.setting);
	if (terms && terms->save)
		weir_engine_saved_anew(engine);
	return code;
}

int weir_engine_move(struct weir_engine *engine, const char *name,
		     const struct weir_policy_change *step, struct weir_error *err)
{
	struct weir_label before;

	return change(engine, name, step, 1, NULL, NULL, &before, err);
}
