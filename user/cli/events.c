// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <time.h>

#include "cli/client.h"

static void say_line(json_t *line)
{
	uint64_t time_ns = (uint64_t)json_integer_value(json_object_get(line, "time_ns"));
	time_t seconds = (time_t)(time_ns / 1000000000);
	char date[16], clock[32];
	struct tm local;

	localtime_r(&seconds, &local);
	strftime(date, sizeof(date), "%Y-%m-%d", &local);
	printf("%s %s %s\n", date, weir_cli_clock(time_ns, clock),
	       json_string_value(json_object_get(line, "text")));
}

static int run(struct weir_cli *cli)
{
	json_t *arguments = cli->count ? json_pack("{s:I}", "count", (json_int_t)cli->count) : NULL;
	json_t *result, *line;
	size_t i;
	int code = weir_client_ask(cli, "events", arguments, &result);

	if (code)
		return code;
	if (cli->json)
		return weir_cli_print_json(cli, result);
	json_array_foreach(json_object_get(result, "events"), i, line) say_line(line);
	json_decref(result);
	return WEIR_EXIT_OK;
}

const struct weir_command weir_command_events = {
	.name = "events",
	.arguments = "",
	.summary = "what the controller did and why: its last 1000 lines",
	.example = "  weir events -n 20",
	.options = WEIR_OPTION_COUNT | WEIR_OPTION_SOCKET,
	.run = run,
};
