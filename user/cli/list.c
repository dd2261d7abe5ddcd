// SPDX-License-Identifier: GPL-2.0
/* weir allow, weir deny. */
#include <stdio.h>
#include <string.h>

#include "cli/client.h"
#include "cli/pinned.h"
#include "cli/table.h"
#include "controller/units.h"

static const char *time_left(json_t *entry, char *text)
{
	json_t *left = json_object_get(entry, "left_ns");

	if (!json_is_integer(left))
		return "for ever";
	return weir_time_print_left((uint64_t)json_integer_value(left), text);
}

static int say_list(const struct weir_cli *cli, json_t *result)
{
	struct weir_table table = { .alignment = "llr" };
	char text[WEIR_UNIT_TEXT];
	json_t *entry;
	size_t i;

	if (cli->json)
		return weir_cli_print_json(cli, result);
	json_array_foreach(json_object_get(result, "entries"), i, entry)
	{
		bool file = json_is_true(json_object_get(entry, "file"));

		if (!i) {
			weir_table_add(&table, "PREFIX");
			weir_table_add(&table, "FROM");
			weir_table_add(&table, "LEFT");
		}
		weir_table_add(&table, "%s", json_string_value(json_object_get(entry, "prefix")));
		weir_table_add(&table, "%s", file ? "file" : "live");
		weir_table_add(&table, "%s", time_left(entry, text));
	}
	if (json_array_size(json_object_get(result, "entries")))
		weir_table_print(&table);
	json_decref(result);
	return WEIR_EXIT_OK;
}

static int say_change(const struct weir_cli *cli, json_t *result)
{
	bool added = !strcmp(json_string_value(json_object_get(result, "action")), "add");
	char text[WEIR_UNIT_TEXT];

	if (cli->json)
		return weir_cli_print_json(cli, result);
	printf("%s: %s %s%s%s\n", cli->command->name,
	       json_string_value(json_object_get(result, "prefix")), added ? "added" : "taken out",
	       added ? ", left: " : "", added ? time_left(result, text) : "");
	json_decref(result);
	return WEIR_EXIT_OK;
}

static int usage(const struct weir_cli *cli)
{
	return weir_cli_fail_text(
		cli, WEIR_EXIT_USAGE,
		"give: weir %s add PREFIX [for TIME], weir %s del PREFIX, or weir "
		"%s list",
		cli->command->name, cli->command->name, cli->command->name);
}

static int list_pinned(const struct weir_cli *cli)
{
	enum weir_list list = strcmp(cli->command->name, "allow") ? WEIR_DENY : WEIR_ALLOW;
	struct weir_pinned *pinned;
	int code = weir_pinned_open(&pinned, cli);

	if (code)
		return code;
	code = weir_pinned_read_lists(pinned, cli);
	if (!code)
		code = say_list(cli, weir_report_list(&pinned->lists.tables[list], list, 0,
						      SIZE_MAX, pinned->view.now_ns));
	weir_pinned_close(pinned);
	return code;
}

static int run(struct weir_cli *cli)
{
	const char *action = cli->arguments[0];
	json_t *arguments = json_pack("{s:s}", "action", action), *result;
	bool add = !strcmp(action, "add"), list = !strcmp(action, "list");
	int count = cli->argument_count, code;
	struct weir_error err;

	if ((list && count != 1) || (!list && !add && (strcmp(action, "del") || count != 2)) ||
	    (add && count != 2 && (count != 4 || strcmp(cli->arguments[2], "for")))) {
		json_decref(arguments);
		return usage(cli);
	}
	if (!list)
		json_object_set_new(arguments, "prefix", json_string(cli->arguments[1]));
	if (count == 4)
		json_object_set_new(arguments, "for", json_string(cli->arguments[3]));
	code = weir_client_call(cli, cli->command->name, weir_cli_add_terms(cli, arguments),
				&result, &err);
	if (code == WEIR_CLIENT_DOWN)
		return list ? list_pinned(cli) : weir_client_fail_down(cli);
	if (code)
		return weir_cli_fail(cli, code, &err);
	return list ? say_list(cli, result) : say_change(cli, result);
}

const struct weir_command weir_command_allow = {
	.name = "allow",
	.arguments = "add PREFIX [for TIME] | del PREFIX | list",
	.summary = "who passes before any limit: live entries, kept over reloads and restarts",
	.example = "  weir allow add 192.0.2.0/24\n  weir allow add 2001:db8::7 for 10m",
	.options = WEIR_OPTION_FORCE | WEIR_OPTION_PINS | WEIR_OPTION_SOCKET,
	.least = 1,
	.most = 4,
	.run = run,
};

const struct weir_command weir_command_deny = {
	.name = "deny",
	.arguments = "add PREFIX [for TIME] | del PREFIX | list",
	.summary = "who is refused whatever the limits say (allow wins); add again extends",
	.example = "  weir deny add 198.51.100.0/24 for 1h\n  weir deny list -j",
	.options = WEIR_OPTION_FORCE | WEIR_OPTION_PINS | WEIR_OPTION_SOCKET,
	.least = 1,
	.most = 4,
	.run = run,
};
