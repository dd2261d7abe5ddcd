// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "controller/clock.h"
#include "controller/control.h"
#include "controller/loop.h"
#include "controller/report.h"
#include "weir/bucket.h"

/* Lines a second on stderr, and how many at once: a quarrel over an interface must not fill
 * the disk. `weir events` has them all. The line that scripts wait for is never left out. */
#define LOG_RATE 20
#define LOG_BURST 200

struct log {
	struct weir_bucket bucket;
	unsigned long long left_out;
};

static void print_line(void *context, const char *line)
{
	struct log *log = context;

	bool ready = !strncmp(line, WEIR_LOOP_READY, strlen(WEIR_LOOP_READY));

	if (!ready && !weir_bucket_take(&log->bucket, (int64_t)weir_monotonic_ns(), 1)) {
		log->left_out++;
		return;
	}
	if (log->left_out)
		fprintf(stderr, "%llu lines left out: see weir events\n", log->left_out);
	log->left_out = 0;
	fprintf(stderr, "%s\n", line);
}

static int run(struct weir_cli *cli)
{
	struct log log = { .bucket = weir_bucket_new(LOG_RATE, LOG_BURST,
						     (int64_t)weir_monotonic_ns()) };
	const struct weir_loop_options options = {
		.config = cli->config,
		.pins = cli->pins,
		.socket = cli->socket,
		.overrides = cli->overrides,
		.log = print_line,
		.log_context = &log,
	};
	struct weir_error err = { 0 };
	int rc = weir_loop_run(&options, &err);

	return rc ? weir_cli_fail(cli, weir_control_code(rc), &err) : WEIR_EXIT_OK;
}

const struct weir_command weir_command_run = {
	.name = "run",
	.arguments = "",
	.summary = "the controller, in the foreground; SIGHUP reloads, SIGTERM ends it and leaves "
		   "the limits",
	.example = "  weir run -c /etc/weir/weir.yaml",
	.options =
		WEIR_OPTION_CONFIG | WEIR_OPTION_OVERRIDES | WEIR_OPTION_PINS | WEIR_OPTION_SOCKET,
	.run = run,
};
