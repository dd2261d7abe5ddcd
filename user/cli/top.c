// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/pinned.h"
#include "cli/top_screen.h"
#include "controller/clock.h"
#include "cli/table.h"

#define COUNT_DEFAULT 20

static uint32_t count_of(const struct weir_cli *cli)
{
	return cli->count ? cli->count : COUNT_DEFAULT;
}

static const char *limit_of(const struct weir_cli *cli)
{
	return cli->argument_count ? cli->arguments[0] : NULL;
}

/* ---- printing ---- */

static void add_number(struct weir_table *table, json_t *key, const char *field, const char *unit)
{
	weir_table_add(table, "%.0f%s", json_number_value(json_object_get(key, field)), unit);
}

static int say(const struct weir_cli *cli, json_t *result)
{
	const char *admitted = cli->total ? "admitted" : "admitted_per_sec";
	const char *refused = cli->total ? "refused" : "refused_per_sec";
	struct weir_table table = { .alignment = "rrll" };
	json_t *key;
	size_t i;

	if (cli->json)
		return weir_cli_print_json(cli, result);
	weir_table_add(&table, cli->total ? "REFUSED" : "REFUSING");
	weir_table_add(&table, cli->total ? "ADMITTED" : "ADMITTING");
	weir_table_add(&table, "KEY");
	weir_table_add(&table, "LIMIT");
	json_array_foreach(json_object_get(result, "keys"), i, key)
	{
		add_number(&table, key, refused, cli->total ? "" : "pps");
		add_number(&table, key, admitted, cli->total ? "" : "pps");
		weir_table_add(&table, "%s", json_string_value(json_object_get(key, "key")));
		weir_table_add(&table, "%s", json_string_value(json_object_get(key, "limit")));
	}
	weir_table_print(&table);
	json_decref(result);
	return WEIR_EXIT_OK;
}

/* ---- from the pins ---- */

struct pinned_top {
	struct weir_pinned *pinned;
	struct weir_scan *scan;
	uint32_t slot;
	uint64_t begun_ns;
};

/* A second between two lists, or two walks over the pins. */
static void wait_a_second(uint64_t since_ns)
{
	uint64_t now = weir_monotonic_ns(), due = since_ns + 1000000000;
	struct timespec left = { 0 };

	if (due <= now)
		return;
	left.tv_sec = (time_t)((due - now) / 1000000000);
	left.tv_nsec = (long)((due - now) % 1000000000);
	nanosleep(&left, NULL);
}

static int pinned_once(const struct weir_cli *cli, struct pinned_top *state)
{
	const struct weir_dataplane *dataplane = &state->pinned->dataplane;
	struct weir_top top, *tops[] = { &top };
	uint64_t before_ns = state->begun_ns;
	json_t *report;

	if (weir_top_init(&top, count_of(cli), state->slot, !cli->total))
		return weir_cli_fail_text(cli, WEIR_EXIT_FAILED, "out of memory");
	if (!cli->total) {
		wait_a_second(state->begun_ns);
		state->begun_ns = weir_monotonic_ns();
	}
	weir_scan_run(state->scan, tops, 1);
	weir_top_sort(&top);
	before_ns = cli->total ? 0 : state->begun_ns - before_ns;
	report = json_pack("{s:i, s:I}", "schema", WEIR_JSON_SCHEMA, "span_ns",
			   (json_int_t)before_ns);
	report = weir_report_add(report, "keys",
				 weir_report_top(dataplane, &top, weir_scan_limits(state->scan), 0,
						 top.count, before_ns));
	weir_top_free(&top);
	return say(cli, report);
}

static int pinned_start(const struct weir_cli *cli, struct pinned_top *state)
{
	const char *name = limit_of(cli);
	int slot = name ? weir_report_find_slot(&state->pinned->dataplane, name) : WEIR_NO_LIMIT;

	if (slot < 0)
		return weir_cli_fail_text(cli, WEIR_EXIT_REFUSED,
					  "there is no limit '%s': see weir show limits", name);
	state->slot = (uint32_t)slot;
	if (weir_scan_new(&state->scan, &state->pinned->dataplane, !cli->total))
		return weir_cli_fail_text(cli, WEIR_EXIT_FAILED, "out of memory");
	state->begun_ns = weir_monotonic_ns();
	if (!cli->total)
		weir_scan_run(state->scan, NULL, 0);
	return WEIR_EXIT_OK;
}

/* ---- the command ---- */

static json_t *arguments(const struct weir_cli *cli)
{
	json_t *made =
		json_pack("{s:I, s:b}", "count", (json_int_t)count_of(cli), "total", cli->total);

	if (limit_of(cli))
		json_object_set_new(made, "limit", json_string(limit_of(cli)));
	return made;
}

/* One list, from the controller or, from the first time that it is down, from the pins. */
static int list(const struct weir_cli *cli, struct pinned_top *state)
{
	struct weir_error err;
	json_t *result;
	int code;

	if (state->pinned)
		return pinned_once(cli, state);
	code = weir_client_call(cli, "top", arguments(cli), &result, &err);
	if (!code)
		return say(cli, result);
	if (weir_cli_interrupted())
		return WEIR_EXIT_OK;
	if (code != WEIR_CLIENT_DOWN)
		return weir_cli_fail(cli, code, &err);
	code = weir_pinned_open(&state->pinned, cli);
	if (!code)
		code = pinned_start(cli, state);
	return code ? code : pinned_once(cli, state);
}

static int run(struct weir_cli *cli)
{
	struct pinned_top state = { 0 };
	uint64_t begun_ns;
	int code;

	if (!cli->json && !cli->once && isatty(STDOUT_FILENO) && isatty(STDIN_FILENO))
		return weir_top_screen(cli);
	/* A list is for the eye or for a script: only JSON goes on without a terminal. */
	cli->once |= !cli->json;
	if (!cli->once)
		weir_cli_catch_interrupts();
	do {
		begun_ns = weir_monotonic_ns();
		code = list(cli, &state);
		if (code || fflush(stdout) || cli->once)
			break;
		wait_a_second(begun_ns);
	} while (!weir_cli_interrupted());
	weir_scan_free(state.scan);
	if (state.pinned)
		weir_pinned_close(state.pinned);
	return code;
}

const struct weir_command weir_command_top = {
	.name = "top",
	.arguments = "[NAME]",
	.summary = "what limits, services and the heaviest keys do now, on the whole screen",
	.example = "  weir top\n  weir top per-ip --once -n 5 -j",
	.options = WEIR_OPTION_ONCE | WEIR_OPTION_TOTAL | WEIR_OPTION_COUNT | WEIR_OPTION_PINS |
		   WEIR_OPTION_SOCKET,
	.most = 1,
	.run = run,
};
