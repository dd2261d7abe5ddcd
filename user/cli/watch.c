// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "cli/client.h"
#include "cli/json_value.h"

/* 192.0.2.7:1024 or [2001:db8::7]:1024; no port where the packet has none. */
static void say_end(const char *address, long long port)
{
	if (!port)
		fputs(address, stdout);
	else
		printf(strchr(address, ':') ? "[%s]:%lld" : "%s:%lld", address, port);
}

/* The limit, the loop of a service, or the deny list. */
static void say_by(json_t *event)
{
	if (!json_is_null(json_object_get(event, "limit")))
		fputs(weir_json_text(event, "limit"), stdout);
	else if (json_is_string(json_object_get(event, "service")))
		printf("service %s: %s", weir_json_text(event, "service"),
		       weir_json_text(event, "loop"));
	else
		fputs("deny list", stdout);
}

static void say_text(json_t *event)
{
	bool would = json_is_true(json_object_get(event, "would"));
	char clock[32];

	printf("%s ", weir_cli_clock((uint64_t)weir_json_number(event, "time_ns"), clock));
	say_by(event);
	fputs(would ? " would refuse " : " refused ", stdout);
	say_end(weir_json_text(event, "source"), weir_json_number(event, "source_port"));
	fputs(" -> ", stdout);
	say_end(weir_json_text(event, "destination"), weir_json_number(event, "destination_port"));
	printf(" %s %lld byte on %s %s, %lld more left out\n", weir_json_text(event, "protocol"),
	       weir_json_number(event, "bytes"), weir_json_text(event, "interface"),
	       weir_json_text(event, "hook"), weir_json_number(event, "left_out"));
}

static int follow(const struct weir_cli *cli, struct weir_client *client, struct weir_error *err)
{
	for (;;) {
		json_t *event;
		bool last;
		int code = weir_client_next(client, true, &event, &last, err);

		if (code)
			return code;
		if (!event) {
			if (!weir_cli_interrupted())
				fputs("weir: the controller has ended\n", stderr);
			return WEIR_EXIT_OK;
		}
		if (cli->json) {
			weir_cli_print_json(cli, event);
		} else {
			say_text(event);
			json_decref(event);
		}
		if (fflush(stdout))
			return WEIR_EXIT_OK;
	}
}

static int run(struct weir_cli *cli)
{
	struct weir_client *client = NULL;
	struct weir_error err;
	int code;

	weir_cli_catch_interrupts();
	code = weir_client_open(&client, cli, "watch", NULL, &err);
	if (code == WEIR_CLIENT_DOWN)
		return weir_client_fail_down(cli);
	if (!code)
		code = follow(cli, client, &err);
	weir_client_close(client);
	return code ? weir_cli_fail(cli, code, &err) : WEIR_EXIT_OK;
}

const struct weir_command weir_command_watch = {
	.name = "watch",
	.arguments = "",
	.summary = "refusals as they happen: a sample, each with the number left out",
	.example = "  weir watch\n  weir watch -j | jq -r .source",
	.options = WEIR_OPTION_SOCKET,
	.run = run,
};
