// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdio.h>

#include "cli/client.h"
#include "controller/control_socket.h"
#include "controller/engine.h"
#include "controller/outcomes.h"
#include "controller/report.h"

static int say(const struct weir_cli *cli)
{
	if (cli->json)
		return weir_cli_print_json(cli, json_pack("{s:i, s:b}", "schema", WEIR_JSON_SCHEMA,
							  "detached", cli->detach));
	puts(cli->detach ? "stopped and detached" : "stopped: the limits stay in force");
	return WEIR_EXIT_OK;
}

/* The sockets of a controller that was killed. One that can't go is in nobody's way. */
static void remove_sockets(const struct weir_cli *cli)
{
	const char *path = weir_client_socket(cli);
	struct weir_error ignored;
	char report[256];

	weir_control_remove_dead(path, &ignored);
	snprintf(report, sizeof(report), "%s" WEIR_OUTCOMES_SUFFIX, path);
	weir_control_remove_dead(report, &ignored);
}

/* There is no controller: its data plane may be there still. */
static int detach(const struct weir_cli *cli)
{
	struct weir_error err = { 0 };
	int rc = weir_engine_detach_pins(cli->pins, &err);

	if (!rc || rc == -ENOENT)
		remove_sockets(cli);
	if (!rc)
		return say(cli);
	if (rc == -ENOENT)
		return weir_cli_fail_text(cli, WEIR_EXIT_REFUSED,
					  "nothing to detach: no controller answers at '%s' and "
					  "nothing is pinned in '%s'",
					  weir_client_socket(cli), cli->pins);
	return weir_cli_fail(cli, WEIR_EXIT_FAILED, &err);
}

static int run(struct weir_cli *cli)
{
	struct weir_error err;
	json_t *result;
	int code = weir_client_call(cli, "stop", json_pack("{s:b}", "detach", cli->detach), &result,
				    &err);

	if (code == WEIR_CLIENT_DOWN)
		return cli->detach ? detach(cli) : weir_client_fail_down(cli);
	if (code)
		return weir_cli_fail(cli, code, &err);
	json_decref(result);
	return say(cli);
}

const struct weir_command weir_command_stop = {
	.name = "stop",
	.arguments = "",
	.summary = "end the controller; the limits stay in force unless told to go",
	.example = "  weir stop --detach",
	.options = WEIR_OPTION_DETACH | WEIR_OPTION_PINS | WEIR_OPTION_SOCKET,
	.run = run,
};
