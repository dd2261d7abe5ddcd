// SPDX-License-Identifier: GPL-2.0
/* --confirm: a change that goes back by itself. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "controller/engine_internal.h"
#include "controller/overrides.h"
#include "controller/units.h"

struct weir_waiting weir_engine_waiting(const struct weir_engine *engine)
{
	const struct weir_confirm *confirm = engine->confirm;

	if (!confirm)
		return (struct weir_waiting){ .state = WEIR_WAITING_NOTHING };
	return (struct weir_waiting){
		.state = confirm->undone ? WEIR_UNDONE : WEIR_WAITING,
		.what = confirm->what,
		.save = confirm->save_limit,
		.left_ns = weir_confirm_left_ns(confirm, engine->boot_id, engine->boot_clock()),
	};
}

int weir_engine_may_change(const struct weir_engine *engine, const struct weir_terms *terms,
			   bool reload, struct weir_error *err)
{
	struct weir_waiting waiting = weir_engine_waiting(engine);
	char time[WEIR_UNIT_TEXT];

	if (waiting.state == WEIR_WAITING)
		return weir_error_set(err, -EALREADY,
				      "%s waits to be confirmed for another %s: first weir "
				      "confirm, or weir confirm --undo",
				      waiting.what,
				      weir_time_print_left(waiting.left_ns, time));
	/* With a saved value over it the file would be another than what was gone back from. */
	if (waiting.state == WEIR_UNDONE && !reload && terms &&
	    (terms->confirm_ns || terms->save))
		return weir_error_set(err, -EALREADY,
				      "%s still says what was gone back from, and only one such "
				      "thing can be remembered: put it right and weir reload, then "
				      "try again",
				      engine->config);
	return 0;
}

/* ---- into waiting ---- */

struct weir_confirm *weir_engine_note(const struct weir_engine *engine,
				      const struct weir_terms *terms, const char *what, int *code,
				      struct weir_error *err)
{
	struct weir_confirm *note;

	*code = 0;
	if (!terms || !terms->confirm_ns || !engine->policy)
		return NULL;
	note = calloc(1, sizeof(*note));
	if (!note) {
		*code = weir_error_set(err, -ENOMEM, "no memory for what to go back to");
		return NULL;
	}
	snprintf(note->what, sizeof(note->what), "%s", what);
	note->reload = !strcmp(what, "weir reload");
	note->within_ns = terms->confirm_ns;
	note->before = weir_confirm_policy_text(engine->policy, code, err);
	if (!*code)
		return note;
	weir_confirm_free(note);
	return NULL;
}

int weir_engine_wait(struct weir_engine *engine, struct weir_confirm *note,
		     const struct weir_policy *after, struct weir_error *err)
{
	char time[WEIR_UNIT_TEXT];
	int code;

	if (!note)
		return 0;
	note->after = weir_confirm_policy_text(after, &code, err);
	memcpy(note->boot_id, engine->boot_id, sizeof(note->boot_id));
	note->until_ns = engine->boot_clock() + note->within_ns;
	if (!code)
		code = weir_confirm_write(engine->confirm_file, note, err);
	if (code) {
		weir_confirm_free(note);
		return code;
	}
	weir_confirm_free(engine->confirm);
	engine->confirm = note;
	weir_engine_say(engine, "%s waits for weir confirm: in %s it goes back", note->what,
			weir_time_print(note->within_ns, time));
	return 0;
}

int weir_engine_forget(struct weir_engine *engine, struct weir_error *err)
{
	int code = weir_confirm_remove(engine->confirm_file, err);

	if (code)
		return code;
	weir_confirm_free(engine->confirm);
	engine->confirm = NULL;
	return 0;
}

/* ---- out of it ---- */

static int nothing_waits(const struct weir_engine *engine, struct weir_error *err)
{
	if (engine->confirm)
		return weir_error_set(err, -ENOENT,
				      "nothing waits to be confirmed: %s was gone back from",
				      engine->confirm->what);
	return weir_error_set(err, -ENOENT, "nothing waits to be confirmed: see weir events");
}

/* What `--save` went with. */
static int save(const struct weir_engine *engine, struct weir_error *err)
{
	struct weir_policy_change changes[WEIR_OVERRIDES_FIELDS_MAX];
	const char *field;
	size_t count = 0;
	json_t *value;

	json_object_foreach(engine->confirm->save_changes, field, value)
	{
		if (count < WEIR_OVERRIDES_FIELDS_MAX && json_is_string(value))
			changes[count++] =
				(struct weir_policy_change){ field, json_string_value(value) };
	}
	return weir_overrides_save(engine->overrides, engine->confirm->save_limit, changes, count,
				   err);
}

int weir_engine_confirm(struct weir_engine *engine, struct weir_error *err)
{
	char what[WEIR_CONFIRM_WHAT];
	bool saved;
	int code;

	if (weir_engine_waiting(engine).state != WEIR_WAITING)
		return nothing_waits(engine, err);
	saved = engine->confirm->save_limit;
	memcpy(what, engine->confirm->what, sizeof(what));
	code = saved ? save(engine, err) : 0;
	if (saved)
		weir_engine_saved_anew(engine);
	if (!code)
		code = weir_engine_forget(engine, err);
	if (!code)
		weir_engine_say(engine, "%s: confirmed%s", what, saved ? " and saved" : "");
	return code;
}

static int load_kept(const struct weir_engine *engine, const char *text,
		     struct weir_policy **policy, struct weir_error *err)
{
	int code = weir_policy_load_text(text, strlen(text), engine->confirm_file, policy, err);
	struct weir_policy *file;
	struct weir_error ignored;

	if (!code)
		code = weir_policy_check_features(*policy, weir_engine_features(), err);
	if (code)
		return code;
	if (engine->policy) {
		weir_policy_write_as(*policy, engine->policy);
	} else if (!weir_policy_load_file(engine->config, &file, &ignored)) {
		weir_policy_write_as(*policy, file);
		weir_policy_free(file);
	}
	return 0;
}

/* It is gone back from. A reload stays remembered: its file must not come in by a restart. */
static void settle_undone(struct weir_engine *engine, const char *why)
{
	struct weir_confirm *confirm = engine->confirm;
	struct weir_error err;
	int code;

	confirm->undone = true;
	if (confirm->reload)
		weir_engine_say(engine,
				"%s: gone back (%s): %s is not what is in force; put it right and "
				"weir reload",
				confirm->what, why, engine->config);
	else
		weir_engine_say(engine, "%s: gone back (%s)", confirm->what, why);
	code = confirm->reload ? weir_confirm_write(engine->confirm_file, confirm, &err) :
				 weir_engine_forget(engine, &err);
	if (code)
		weir_engine_say(engine, "%s", err.text);
}

int weir_engine_undo(struct weir_engine *engine, struct weir_error *err)
{
	struct weir_waiting waiting = weir_engine_waiting(engine);
	struct weir_policy *policy = NULL;
	int code;

	if (waiting.state != WEIR_WAITING)
		return nothing_waits(engine, err);
	code = load_kept(engine, engine->confirm->before, &policy, err);
	if (!code)
		code = weir_engine_enforce(engine, policy, NULL, false, err);
	if (code) {
		weir_policy_free(policy);
		weir_error_prefix(err, "can't go back from %s: ", waiting.what);
		return code;
	}
	settle_undone(engine, waiting.left_ns ? "weir confirm --undo" : "nobody confirmed it");
	return 0;
}

/* ---- start ---- */

/* The file, unless it still says what was gone back from. */
static int policy_unless_undone(struct weir_engine *engine, struct weir_policy **policy,
				struct weir_error *err)
{
	int code = weir_engine_read_policy(engine, policy, err);
	char *text;
	bool same;

	if (code)
		return code;
	text = weir_confirm_policy_text(*policy, &code, err);
	same = text && !strcmp(text, engine->confirm->after);
	free(text);
	if (!same)
		return 0;
	weir_engine_say(engine,
			"%s is as it was when nobody confirmed it: what was in force before is "
			"again; put it right and weir reload, or weir reload as it is",
			engine->config);
	weir_policy_free(*policy);
	*policy = NULL;
	return load_kept(engine, engine->confirm->before, policy, err);
}

int weir_engine_first_policy(struct weir_engine *engine, struct weir_policy **policy,
			     struct weir_error *err)
{
	int code = weir_confirm_read(engine->confirm_file, &engine->confirm, err);
	struct weir_waiting waiting = weir_engine_waiting(engine);

	if (code)
		return code;
	switch (waiting.state) {
	case WEIR_WAITING_NOTHING:
		return weir_engine_read_policy(engine, policy, err);
	case WEIR_UNDONE:
		return policy_unless_undone(engine, policy, err);
	case WEIR_WAITING:
		break;
	}
	weir_engine_saved_anew(engine);
	engine->starts_undone = !waiting.left_ns;
	return load_kept(engine,
			 engine->starts_undone ? engine->confirm->before : engine->confirm->after,
			 policy, err);
}

void weir_engine_first_done(struct weir_engine *engine)
{
	struct weir_waiting waiting = weir_engine_waiting(engine);
	char time[WEIR_UNIT_TEXT];
	struct weir_error err;

	/* Loaded from what was kept, or the file says something else by now. */
	if (waiting.state == WEIR_UNDONE && strcmp(engine->policy->file, engine->confirm_file) &&
	    weir_engine_forget(engine, &err))
		weir_engine_say(engine, "%s", err.text);
	if (engine->starts_undone && engine->confirm)
		settle_undone(engine, "nobody confirmed it");
	else if (waiting.state == WEIR_WAITING)
		weir_engine_say(engine, "%s still waits for weir confirm: in %s it goes back",
				waiting.what,
				weir_time_print_left(waiting.left_ns, time));
}
