// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "cli/client.h"
#include "cli/json_value.h"
#include "cli/pinned.h"
#include "cli/show_services.h"
#include "cli/table.h"
#include "controller/control.h"
#include "controller/units.h"

static void add_rate(struct weir_table *table, json_t *object, const char *field)
{
	json_t *value = json_object_get(object, field);

	if (json_is_number(value))
		weir_table_add(table, "%.0fpps", json_number_value(value));
	else
		weir_table_add(table, "-");
}

static void heading(struct weir_table *table, const char *const *names)
{
	for (; *names; names++)
		weir_table_add(table, "%s", *names);
}

/* "gate limit 50: inside 12, pending 1" */
static void add_setting(struct weir_table *table, json_t *limit)
{
	if (!json_is_integer(json_object_get(limit, "inside")))
		weir_table_add(table, "%s", weir_json_text(limit, "setting"));
	else
		weir_table_add(
			table, "%s: inside %lld, pending %lld%s", weir_json_text(limit, "setting"),
			weir_json_number(limit, "inside"), weir_json_number(limit, "pending"),
			json_is_true(json_object_get(limit, "estimated")) ? " (estimated)" : "");
}

/* What a governor moves, moves all the time: a bucket's rate, a gate's limit. */
static bool is_governed(json_t *limit, const char *field)
{
	return json_is_string(json_object_get(limit, "governor")) &&
	       (!strcmp(field, "rate") || !strcmp(field, "limit"));
}

/* What was set and the file doesn't say. */
static void say_set(json_t *limit)
{
	json_t *set = json_object_get(limit, "set"), *saved = json_object_get(limit, "saved");
	const char *name = weir_json_text(limit, "name"), *field;
	size_t said = 0, kept = 0;
	json_t *change;

	json_object_foreach(set, field, change)
	{
		json_t *now = json_object_get(change, "now");

		if (is_governed(limit, field))
			continue;
		if (!said++)
			printf("%s was set:", name);
		kept += json_equal(json_object_get(saved, field), now);
		printf(" %s=%s (in the file: %s)", field, json_string_value(now),
		       weir_json_text(change, "file"));
	}
	if (said)
		printf(", %s; weir unset %s goes back\n",
		       kept == said ? "kept" :
		       kept	    ? "kept in part" :
				      "until the next reload or start",
		       name);
}

/* Whether what monitor mode counted is worth a column. */
static bool is_monitored(json_t *limits)
{
	json_t *limit;
	size_t i;

	json_array_foreach(limits, i, limit)
	{
		if (!strcmp(weir_json_text(limit, "mode"), "monitor") ||
		    weir_json_number(limit, "would_refuse"))
			return true;
	}
	return false;
}

static void say_limits(json_t *limits)
{
	bool monitored = is_monitored(limits);
	struct weir_table table = { .alignment = monitored ? "llllrrrrrr" : "llllrrrrr" };
	json_t *limit;
	size_t i;

	heading(&table, (const char *const[]){ "LIMIT", "MODE", "KEY", "SETTING", "ADMITTED",
					       "REFUSED", NULL });
	if (monitored)
		weir_table_add(&table, "WOULD REFUSE");
	heading(&table, (const char *const[]){ "UNTRACKED", "ADMITTING", "REFUSING", NULL });
	json_array_foreach(limits, i, limit)
	{
		weir_table_add(&table, "%s", weir_json_text(limit, "name"));
		weir_table_add(&table, "%s", weir_json_text(limit, "mode"));
		weir_table_add(&table, "%s", weir_json_text(limit, "key"));
		add_setting(&table, limit);
		weir_table_add(&table, "%lld", weir_json_number(limit, "admitted"));
		weir_table_add(&table, "%lld", weir_json_number(limit, "refused"));
		if (monitored)
			weir_table_add(&table, "%lld", weir_json_number(limit, "would_refuse"));
		weir_table_add(&table, "%lld", weir_json_number(limit, "untracked"));
		add_rate(&table, limit, "admitted_per_sec");
		add_rate(&table, limit, "refused_per_sec");
	}
	weir_table_print(&table);
	json_array_foreach(limits, i, limit) say_set(limit);
}

static long long path_packets(json_t *interface, const char *path)
{
	json_t *traffic = json_object_get(interface, "traffic"), *hook;
	const char *name;
	long long sum = 0;

	json_object_foreach(traffic, name, hook) sum +=
		weir_json_number(json_object_get(hook, path), "packets");
	return sum;
}

static void say_interfaces(json_t *interfaces)
{
	static const char *const names[] = { "INTERFACE", "ATTACHED", "LIMITED", "REFUSED",
					     "UNMATCHED", "NOTE",     NULL };
	struct weir_table table = { .alignment = "llrrrl" };
	json_t *interface;
	size_t i;

	heading(&table, names);
	json_array_foreach(interfaces, i, interface)
	{
		weir_table_add(&table, "%s", weir_json_text(interface, "name"));
		weir_table_add(&table, "%s", weir_json_text(interface, "attached"));
		weir_table_add(&table, "%lld", path_packets(interface, "limits"));
		weir_table_add(&table, "%lld", path_packets(interface, "refused"));
		weir_table_add(&table, "%lld", path_packets(interface, "unmatched"));
		weir_table_add(&table, "%s", weir_json_text(interface, "reason"));
	}
	weir_table_print(&table);
}

static void say_ledger(json_t *ledger)
{
	json_t *own;
	size_t i;

	printf("ledger: places %lld  memory %.1f MB  held %.2f%%%s  known %.2f%%  untracked %lld  "
	       "contended %lld  events_lost %lld\n",
	       weir_json_number(ledger, "places"),
	       (double)weir_json_number(ledger, "memory_bytes") / 1e6,
	       json_number_value(json_object_get(ledger, "held_percent")),
	       json_is_true(json_object_get(ledger, "estimated")) ? " (estimated)" : "",
	       json_number_value(json_object_get(ledger, "known_percent")),
	       weir_json_number(ledger, "untracked"), weir_json_number(ledger, "contended"),
	       weir_json_number(ledger, "events_lost"));
	json_array_foreach(json_object_get(ledger, "own"), i, own)
		printf("ledger of %s: places %lld  held %.2f%%  known %.2f%%\n",
		       weir_json_text(own, "limit"), weir_json_number(own, "places"),
		       json_number_value(json_object_get(own, "held_percent")),
		       json_number_value(json_object_get(own, "known_percent")));
}

static void say_lists(json_t *lists)
{
	const char *name;
	json_t *list;

	json_object_foreach(lists, name, list)
	{
		if (json_is_object(list))
			printf("%s: ipv4 %lld  ipv6 %lld  live %lld\n", name,
			       weir_json_number(list, "ipv4"), weir_json_number(list, "ipv6"),
			       weir_json_number(list, "live"));
	}
}

static void say_bans(json_t *bans)
{
	struct weir_table table = { .alignment = "llr" };
	char time[WEIR_UNIT_TEXT];
	json_t *ban;
	size_t i;

	if (!json_array_size(bans)) {
		puts("nobody is banned");
		return;
	}
	heading(&table, (const char *const[]){ "LIMIT", "KEY", "LEFT", NULL });
	json_array_foreach(bans, i, ban)
	{
		uint64_t left = (uint64_t)weir_json_number(ban, "left_ns");

		weir_table_add(&table, "%s", weir_json_text(ban, "limit"));
		weir_table_add(&table, "%s", weir_json_text(ban, "key"));
		weir_table_add(&table, "%s", weir_time_print_left(left, time));
	}
	weir_table_print(&table);
}

static void say_waiting(json_t *confirm)
{
	char time[WEIR_UNIT_TEXT];
	uint64_t left = (uint64_t)weir_json_number(confirm, "left_ns");

	if (!strcmp(weir_json_text(confirm, "state"), "waiting"))
		printf("WAITS: %s goes back in %s unless weir confirm follows%s\n\n",
		       weir_json_text(confirm, "what"),
		       weir_time_print_left(left, time),
		       json_is_true(json_object_get(confirm, "save")) ? " (and is not saved yet)"
								      : "");
	else
		printf("UNDONE: %s was gone back from: the file is not what is in force\n\n",
		       weir_json_text(confirm, "what"));
}

static int say(const struct weir_cli *cli, json_t *report)
{
	static const struct {
		const char *name;
		void (*say)(json_t *part);
	} parts[] = {
		{ "limits", say_limits },
		{ "interfaces", say_interfaces },
		{ "services", weir_cli_say_services },
		{ "ledger", say_ledger },
		{ "lists", say_lists },
		{ "bans", say_bans },
	};
	bool first = true;

	if (cli->json)
		return weir_cli_print_json(cli, report);
	if (json_is_object(json_object_get(report, "confirm")))
		say_waiting(json_object_get(report, "confirm"));
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		json_t *part = json_object_get(report, parts[i].name);

		if (!part)
			continue;
		if (!first)
			putchar('\n');
		first = false;
		parts[i].say(part);
	}
	json_decref(report);
	return WEIR_EXIT_OK;
}

static int run_pinned(const struct weir_cli *cli, const char *what)
{
	struct weir_pinned *pinned;
	struct weir_error err;
	int code = weir_pinned_open(&pinned, cli), rc;
	json_t *report;

	if (code)
		return code;
	weir_pinned_measure(pinned);
	if (!what || !strcmp(what, "all") || !strcmp(what, "lists"))
		code = weir_pinned_read_lists(pinned, cli);
	if (code) {
		weir_pinned_close(pinned);
		return code;
	}
	report = weir_report_show(&pinned->view, what, &rc, &err);
	code = rc ? weir_cli_fail(cli, weir_error_code(rc), &err) : say(cli, report);
	weir_pinned_close(pinned);
	return code;
}

static int run(struct weir_cli *cli)
{
	const char *what = cli->argument_count ? cli->arguments[0] : NULL;
	struct weir_error err;
	json_t *report;
	int code = weir_client_call(cli, "show", json_pack("{s:s*}", "what", what), &report, &err);

	if (code == WEIR_CLIENT_DOWN)
		return run_pinned(cli, what);
	return code ? weir_cli_fail(cli, code, &err) : say(cli, report);
}

const struct weir_command weir_command_show = {
	.name = "show",
	.arguments = "[limits|interfaces|services|ledger|lists|bans|NAME]",
	.summary = "totals, rates, settings: of everything, a part, one limit or service",
	.example = "  weir show\n  weir show per-ip -j | jq '.limits[0].refused'",
	.options = WEIR_OPTION_PINS | WEIR_OPTION_SOCKET,
	.most = 1,
	.run = run,
};
