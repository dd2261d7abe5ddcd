// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/client.h"
#include "cli/json_value.h"

/* "rate=500pps" into the object of changes: 0, or a code, all said. */
static int add_change(const struct weir_cli *cli, json_t *changes, const char *text)
{
	const char *equals = strchr(text, '=');
	char *field;
	int code = 0;

	if (!equals || equals == text || !equals[1])
		return weir_cli_fail_text(cli, WEIR_EXIT_USAGE,
					  "'%s': give FIELD=VALUE, such as rate=500pps", text);
	field = strndup(text, (size_t)(equals - text));
	if (!field)
		return weir_cli_fail_text(cli, WEIR_EXIT_FAILED, "out of memory");
	if (json_object_get(changes, field))
		code = weir_cli_fail_text(cli, WEIR_EXIT_USAGE, "'%s': field '%s' is given twice",
					  text, field);
	else if (json_object_set_new(changes, field, json_string(equals + 1)))
		code = weir_cli_fail_text(cli, WEIR_EXIT_FAILED, "out of memory");
	free(field);
	return code;
}

/* Fields that were set and that the setting doesn't say: of bans, and what newcomers get. */
static void say_others(json_t *limit)
{
	json_t *settings = json_object_get(limit, "settings"), *change;
	const char *field;

	json_object_foreach(json_object_get(limit, "set"), field, change)
	{
		if (!json_object_get(settings, field) && strcmp(field, "mode"))
			printf("; %s %s", field, weir_json_text(change, "now"));
	}
}

static int say(const struct weir_cli *cli, json_t *result)
{
	json_t *limit = json_array_get(json_object_get(result, "limits"), 0);

	if (cli->json)
		return weir_cli_print_json(cli, result);
	if (!limit) {
		printf("%s: forgotten; there is no limit of this name now\n", cli->arguments[0]);
		json_decref(result);
		return WEIR_EXIT_OK;
	}
	printf("%s: %s %s", weir_json_text(limit, "name"), weir_json_text(limit, "mode"),
	       weir_json_text(limit, "setting"));
	say_others(limit);
	puts(cli->save && !cli->confirm ? " (saved)" : "");
	weir_cli_say_confirm(cli);
	json_decref(result);
	return WEIR_EXIT_OK;
}

static int ask(const struct weir_cli *cli, json_t *arguments)
{
	json_t *result;
	int code = weir_client_ask(cli, cli->command->name, weir_cli_add_terms(cli, arguments),
				   &result);

	return code ? code : say(cli, result);
}

static int run_unset(struct weir_cli *cli)
{
	return ask(cli, json_pack("{s:s}", "limit", cli->arguments[0]));
}

static int run(struct weir_cli *cli)
{
	json_t *changes = json_object();
	int code = 0;

	for (int i = 1; i < cli->argument_count && !code; i++)
		code = add_change(cli, changes, cli->arguments[i]);
	if (code) {
		json_decref(changes);
		return code;
	}
	return ask(cli, json_pack("{s:s, s:o, s:b}", "limit", cli->arguments[0], "changes", changes,
				  "save", cli->save));
}

const struct weir_command weir_command_set = {
	.name = "set",
	.arguments = "NAME FIELD=VALUE...",
	.summary = "change a limit now; it has acted when the command returns",
	.example = "  weir set per-ip rate=500pps burst=1000\n"
		   "  weir set per-ip rate=unlimited --save\n"
		   "  weir set per-ip rate=50pps --confirm 30s && weir confirm",
	.options = WEIR_OPTION_SAVE | WEIR_OPTION_CONFIRM | WEIR_OPTION_FORCE | WEIR_OPTION_SOCKET,
	.least = 2,
	.most = 33,
	.run = run,
};

const struct weir_command weir_command_unset = {
	.name = "unset",
	.arguments = "NAME",
	.summary = "back to the file's values; forgets what `set --save` kept",
	.example = "  weir unset per-ip",
	.options = WEIR_OPTION_CONFIRM | WEIR_OPTION_FORCE | WEIR_OPTION_SOCKET,
	.least = 1,
	.most = 1,
	.run = run_unset,
};
