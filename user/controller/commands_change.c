// SPDX-License-Identifier: GPL-2.0
/* What the control socket can be asked to change, and to take back: docs/json.md. */
#include <errno.h>

#include "controller/confirm.h"
#include "controller/loop_private.h"
#include "controller/units.h"

#define CHANGES_MAX 32

static void fail(struct weir_control_client *client, int error, const struct weir_error *err)
{
	weir_control_fail(client, weir_error_code(error), err->text);
}

/* ---- terms ---- */

int weir_commands_time(json_t *arguments, const struct weir_commands_span *span, uint64_t *ns,
		       struct weir_error *err)
{
	json_t *value = json_object_get(arguments, span->name);
	const char *text = json_string_value(value);
	int rc;

	*ns = 0;
	if (!value)
		return 0;
	rc = weir_time_parse(text ? text : "", ns, err);
	if (rc)
		weir_error_append(err, ", from %s", span->range);
	else if (*ns < span->least_ns || *ns > span->most_ns)
		rc = weir_error_set(err, -ERANGE, "'%.64s' is out of range: write %s", text,
				    span->range);
	if (rc)
		weir_error_prefix(err, "%s: ", span->name);
	return rc;
}

int weir_commands_flag(json_t *arguments, const char *name, bool *flag, struct weir_error *err)
{
	json_t *value = json_object_get(arguments, name);

	*flag = json_is_true(value);
	if (!value || json_is_boolean(value))
		return 0;
	return weir_error_set(err, -EINVAL, "%s: give true or false", name);
}

int weir_commands_terms(json_t *arguments, struct weir_terms *terms, struct weir_session *session,
			struct weir_error *err)
{
	static const struct weir_commands_span confirm = { "confirm", WEIR_CONFIRM_MIN_NS,
							   WEIR_CONFIRM_MAX_NS, "1s to 1h" };
	json_t *value = json_object_get(arguments, "session");
	const char *text = json_string_value(value);
	int rc;

	*terms = (struct weir_terms){ .save = false };
	rc = weir_commands_flag(arguments, "save", &terms->save, err);
	if (!rc)
		rc = weir_commands_time(arguments, &confirm, &terms->confirm_ns, err);
	if (rc || !value)
		return rc;
	terms->session = session;
	return weir_session_parse(text ? text : "", session, err);
}

/* ---- set, reload ---- */

/* The changes of an object of texts; 0 where it isn't one, or has too many. */
static size_t read_changes(json_t *changes, struct weir_policy_change *list)
{
	const char *field;
	size_t count = 0;
	json_t *value;

	if (json_object_size(changes) > CHANGES_MAX)
		return 0;
	json_object_foreach(changes, field, value)
	{
		if (!json_is_string(value))
			return 0;
		list[count++] = (struct weir_policy_change){ field, json_string_value(value) };
	}
	return count;
}

/* With no changes: back to what the file says. */
static void change(struct weir_loop *loop, struct weir_control_client *client, json_t *arguments,
		   const char *limit, const struct weir_policy_change *list, size_t count)
{
	struct weir_error err = { 0 };
	struct weir_session session;
	struct weir_terms terms;
	int rc = weir_commands_terms(arguments, &terms, &session, &err);

	if (!count)
		terms.save = true;
	if (!rc)
		rc = weir_engine_set(loop->engine, limit, list, count, &terms, &err);
	if (rc)
		fail(client, rc, &err);
	else if (weir_policy_find_limit(weir_engine_policy(loop->engine), limit))
		weir_commands_show(loop, client, limit);
	else
		weir_control_reply(client, json_pack("{s:i, s:[]}", "schema", WEIR_JSON_SCHEMA,
						     "limits"));
}

void weir_commands_set(struct weir_loop *loop, struct weir_control_client *client,
		       json_t *arguments)
{
	const char *name = json_string_value(json_object_get(arguments, "limit"));
	struct weir_policy_change list[CHANGES_MAX];
	size_t count = read_changes(json_object_get(arguments, "changes"), list);

	if (name && count)
		change(loop, client, arguments, name, list, count);
	else
		weir_control_fail(client, 1,
				  "set takes a text 'limit' and an object 'changes' of 1 to 32 "
				  "texts");
}

void weir_commands_unset(struct weir_loop *loop, struct weir_control_client *client,
			 json_t *arguments)
{
	const char *name = json_string_value(json_object_get(arguments, "limit"));

	if (name)
		change(loop, client, arguments, name, NULL, 0);
	else
		weir_control_fail(client, 1, "unset takes a text 'limit'");
}

void weir_commands_reload(struct weir_loop *loop, struct weir_control_client *client,
			  json_t *arguments)
{
	struct weir_error err = { 0 };
	struct weir_session session;
	struct weir_terms terms;
	int rc = weir_commands_terms(arguments, &terms, &session, &err);

	if (!rc)
		rc = weir_loop_reload(loop, &terms, &err);
	if (rc)
		fail(client, rc, &err);
	else
		weir_control_reply(
			client,
			json_pack("{s:i, s:I, s:o}", "schema", WEIR_JSON_SCHEMA, "limits",
				  (json_int_t)weir_engine_policy(loop->engine)->limit_count,
				  "notes", weir_engine_notes(loop->engine)));
}

/* ---- confirm ---- */

void weir_commands_confirm(struct weir_loop *loop, struct weir_control_client *client,
			   json_t *arguments)
{
	struct weir_waiting waiting = weir_engine_waiting(loop->engine);
	char what[WEIR_CONFIRM_WHAT] = "";
	struct weir_error err = { 0 };
	bool undo;
	int rc = weir_commands_flag(arguments, "undo", &undo, &err);

	/* It is gone with the change that waits. */
	if (waiting.what)
		snprintf(what, sizeof(what), "%s", waiting.what);
	if (!rc)
		rc = undo ? weir_loop_undo(loop, &err) : weir_engine_confirm(loop->engine, &err);
	if (rc)
		fail(client, rc, &err);
	else
		weir_control_reply(client, json_pack("{s:i, s:s, s:b, s:b}", "schema",
						     WEIR_JSON_SCHEMA, "what", what, "confirmed",
						     !undo, "saved", !undo && waiting.save));
}
