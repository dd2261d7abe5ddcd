// SPDX-License-Identifier: GPL-2.0
#include "cli/cli.h"
#include "cli/log.h"
#include "controller/clock.h"
#include "controller/control.h"
#include "controller/loop.h"

static void print_line(void *context, const char *line)
{
	weir_log_line(context, line, (int64_t)weir_monotonic_ns());
}

static int run(struct weir_cli *cli)
{
	struct weir_log log;
	const struct weir_loop_options options = {
		.config = cli->config,
		.pins = cli->pins,
		.socket = cli->socket,
		.overrides = cli->overrides,
		.session = weir_cli_session(cli),
		.log = print_line,
		.log_context = &log,
	};
	struct weir_error err = { 0 };
	int rc;

	weir_log_open(&log, stderr, (int64_t)weir_monotonic_ns());
	rc = weir_loop_run(&options, &err);
	return rc ? weir_cli_fail(cli, weir_error_code(rc), &err) : WEIR_EXIT_OK;
}

const struct weir_command weir_command_run = {
	.name = "run",
	.arguments = "",
	.summary = "the controller, in the foreground; SIGHUP reloads, SIGTERM ends it and leaves "
		   "the limits",
	.example = "  weir run -c /etc/weir/weir.yaml",
	.options =
		WEIR_OPTION_CONFIG | WEIR_OPTION_OVERRIDES | WEIR_OPTION_FORCE | WEIR_OPTION_PINS |
		WEIR_OPTION_SOCKET,
	.run = run,
};
