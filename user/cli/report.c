// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "cli/client.h"
#include "controller/outcomes.h"

static int run(struct weir_cli *cli)
{
	const char *outcome = cli->arguments[1];
	bool pass = !strcmp(outcome, "pass");
	uint64_t response_ns = 0;
	struct weir_error err;
	json_t *arguments, *result;
	int code;

	if (!pass && strcmp(outcome, "fail"))
		return weir_cli_fail_text(cli, WEIR_EXIT_USAGE, "'%s': give pass or fail", outcome);
	if (cli->argument_count > 2 &&
	    weir_outcome_parse_time(cli->arguments[2], &response_ns, &err))
		return weir_cli_fail(cli, WEIR_EXIT_REFUSED, &err);
	arguments = json_pack("{s:s, s:b}", "service", cli->arguments[0], "pass", pass);
	if (arguments && response_ns)
		json_object_set_new(arguments, "response_ns",
				    json_integer((json_int_t)response_ns));
	code = weir_client_ask(cli, "report", arguments, &result);
	if (code)
		return code;
	if (cli->json)
		return weir_cli_print_json(cli, result);
	json_decref(result);
	return WEIR_EXIT_OK;
}

const struct weir_command weir_command_report = {
	.name = "report",
	.arguments = "NAME pass|fail [rt=TIME]",
	.summary = "tell how one exchange of a service went, if it trusts reports",
	.example = "  weir report web pass rt=12ms\n  weir report web fail",
	.options = WEIR_OPTION_SOCKET,
	.least = 2,
	.most = 3,
	.run = run,
};
