// SPDX-License-Identifier: GPL-2.0
/* What the control socket can be asked of services: docs/json.md. */
#include <string.h>

#include "controller/loop_private.h"

static void answer(struct weir_loop *loop, struct weir_control_client *client, const char *name,
		   int rc, const struct weir_error *err)
{
	json_t *services;

	if (rc) {
		weir_control_fail(client, weir_error_code(rc), err->text);
		return;
	}
	services = weir_services_json(loop->services, name, &rc);
	weir_control_reply(client, weir_report_add(json_pack("{s:i}", "schema", WEIR_JSON_SCHEMA),
						   "services", services));
}

static void hold(struct weir_loop *loop, struct weir_control_client *client, json_t *arguments,
		 bool frozen)
{
	const char *name = json_string_value(json_object_get(arguments, "service"));
	json_t *which = json_object_get(arguments, "loop");
	struct weir_error err;
	int rc;

	if (!name || (which && !json_is_string(which))) {
		weir_control_fail(client, 1,
				  "freeze and thaw take a text 'service', and a text 'loop' for "
				  "one of its loops");
		return;
	}
	rc = weir_services_freeze(loop->services, name, json_string_value(which), frozen, &err);
	if (!rc) {
		rc = weir_loop_keep_frozen(loop, &err);
		if (rc)
			weir_error_prefix(&err, "it has acted, but is not kept over a restart: ");
	}
	answer(loop, client, name, rc, &err);
}

void weir_commands_freeze(struct weir_loop *loop, struct weir_control_client *client,
			  json_t *arguments)
{
	hold(loop, client, arguments, true);
}

void weir_commands_thaw(struct weir_loop *loop, struct weir_control_client *client,
			json_t *arguments)
{
	hold(loop, client, arguments, false);
}

void weir_commands_report(struct weir_loop *loop, struct weir_control_client *client,
			  json_t *arguments)
{
	const char *name = json_string_value(json_object_get(arguments, "service"));
	json_t *pass = json_object_get(arguments, "pass");
	json_t *response_ns = json_object_get(arguments, "response_ns");
	struct weir_error err;
	int rc;

	if (!name || !json_is_boolean(pass) ||
	    (response_ns &&
	     (!json_is_integer(response_ns) || json_integer_value(response_ns) < 1))) {
		weir_control_fail(client, 1,
				  "report takes a text 'service', a boolean 'pass', and a number "
				  "'response_ns' above 0 if it is known");
		return;
	}
	rc = weir_services_outcome(loop->services, name, json_is_true(pass),
				   (uint64_t)json_integer_value(response_ns), &err);
	answer(loop, client, name, rc, &err);
}
