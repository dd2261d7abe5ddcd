// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "cli/client.h"
#include "cli/json_value.h"
#include "cli/pinned.h"
#include "cli/table.h"
#include "controller/units.h"

static const char *state_of(json_t *limit)
{
	json_t *in_ledger = json_object_get(limit, "in_ledger");

	if (json_is_integer(json_object_get(limit, "banned_for_ns")))
		return "banned";
	if (json_is_null(in_ledger))
		return "not known by an address";
	if (json_is_true(json_object_get(limit, "refused_now")))
		return strcmp(weir_json_text(limit, "mode"), "monitor") ?
			       "refused" :
			       "would be refused (monitor)";
	if (json_is_true(in_ledger))
		return "passes";
	return json_is_true(json_object_get(limit, "room")) ? "passes, not seen lately"
							    : "untracked: the ledger is full here";
}

/* Rounded up, so that it is over when it says so. */
static const char *print_wait(long long ns, char *text)
{
	if (ns <= 0)
		return "-";
	if (ns < 1000000)
		return "<1ms";
	if (ns >= 1000000000)
		return weir_time_print_left((uint64_t)ns, text);
	snprintf(text, WEIR_UNIT_TEXT, "%lldms", (ns + 999999) / 1000000);
	return text;
}

static void say_limit(struct weir_table *table, json_t *limit)
{
	json_t *left = json_object_get(limit, "left");
	json_t *ban = json_object_get(limit, "banned_for_ns");
	long long wait_ns = json_integer_value(
		json_is_integer(ban) ? ban : json_object_get(limit, "refused_for_ns"));
	char time[WEIR_UNIT_TEXT];
	json_t *of = json_object_get(limit, "of");

	weir_table_add(table, "%s", json_string_value(json_object_get(limit, "limit")));
	weir_table_add(table, "%s", of ? json_string_value(of) : "-");
	weir_table_add(table, "%s", json_string_value(json_object_get(limit, "setting")));
	if (json_is_number(left))
		weir_table_add(table, "%.1f", json_number_value(left));
	else
		weir_table_add(table, "-");
	weir_table_add(table, "%s", print_wait(wait_ns, time));
	weir_table_add(table, "%lld",
		       (long long)json_integer_value(json_object_get(limit, "admitted")));
	weir_table_add(table, "%lld",
		       (long long)json_integer_value(json_object_get(limit, "refused")));
	weir_table_add(table, "%s", state_of(limit));
}

/* Allow wins, and a packet on either list meets no limit. */
static void say_lists(json_t *lists)
{
	static const char *const names[] = { "allow", "deny" };
	bool allowed = json_is_object(json_object_get(lists, "allow"));

	for (size_t i = 0; i < 2; i++) {
		json_t *entry = json_object_get(lists, names[i]);
		json_t *left = json_object_get(entry, "left_ns");
		char time[WEIR_UNIT_TEXT] = "ever";

		if (!json_is_object(entry))
			continue;
		if (json_is_integer(left))
			weir_time_print_left((uint64_t)json_integer_value(left), time);
		printf("on the %s list, for %s: %s\n", names[i], time,
		       i && allowed ? "allow wins" : "the limits don't count");
	}
}

static int say(const struct weir_cli *cli, json_t *report)
{
	static const char *const names[] = { "LIMIT", "KEY",	  "SETTING", "LEFT",
					     "FOR",   "ADMITTED", "REFUSED", "NOW" };
	struct weir_table table = { .alignment = "lllrrrrl" };
	json_t *limit;
	size_t i;

	if (cli->json)
		return weir_cli_print_json(cli, report);
	say_lists(json_object_get(report, "lists"));
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		weir_table_add(&table, "%s", names[i]);
	json_array_foreach(json_object_get(report, "limits"), i, limit) say_limit(&table, limit);
	weir_table_print(&table);
	json_decref(report);
	return WEIR_EXIT_OK;
}

static int run(struct weir_cli *cli)
{
	const char *address = cli->arguments[0];
	uint8_t bytes[16], family;
	struct weir_pinned *pinned;
	struct weir_error err;
	json_t *report;
	int code;

	if (weir_report_parse_address(address, &family, bytes, &err))
		return weir_cli_fail(cli, WEIR_EXIT_REFUSED, &err);
	code = weir_client_call(cli, "why", json_pack("{s:s}", "address", address), &report, &err);
	if (!code)
		return say(cli, report);
	if (code != WEIR_CLIENT_DOWN)
		return weir_cli_fail(cli, code, &err);
	code = weir_pinned_open(&pinned, cli);
	if (code)
		return code;
	code = say(cli, weir_report_why(&pinned->view, family, bytes));
	weir_pinned_close(pinned);
	return code;
}

const struct weir_command weir_command_why = {
	.name = "why",
	.arguments = "ADDRESS",
	.summary = "what each limit has on an address: tokens left, refused, for how long",
	.example = "  weir why 192.0.2.7",
	.options = WEIR_OPTION_PINS | WEIR_OPTION_SOCKET,
	.least = 1,
	.most = 1,
	.run = run,
};
