// SPDX-License-Identifier: GPL-2.0
#include "cli/client.h"
#include "cli/show_services.h"

/* freeze and thaw: `weir freeze web breaker`. */
static int run(struct weir_cli *cli)
{
	json_t *arguments = json_pack("{s:s}", "service", cli->arguments[0]), *result;
	int code;

	if (arguments && cli->argument_count > 1)
		json_object_set_new(arguments, "loop", json_string(cli->arguments[1]));
	code = weir_client_ask(cli, cli->command->name, arguments, &result);
	if (code)
		return code;
	if (cli->json)
		return weir_cli_print_json(cli, result);
	weir_cli_say_services(json_object_get(result, "services"));
	json_decref(result);
	return WEIR_EXIT_OK;
}

const struct weir_command weir_command_freeze = {
	.name = "freeze",
	.arguments = "NAME [breaker|shedder|governor]",
	.summary = "hold a service's loops still: what they enforce stays as it is",
	.example = "  weir freeze web\n  weir freeze web governor",
	.options = WEIR_OPTION_SOCKET,
	.least = 1,
	.most = 2,
	.run = run,
};

const struct weir_command weir_command_thaw = {
	.name = "thaw",
	.arguments = "NAME [breaker|shedder|governor]",
	.summary = "let a service's loops move again",
	.example = "  weir thaw web",
	.options = WEIR_OPTION_SOCKET,
	.least = 1,
	.most = 2,
	.run = run,
};
