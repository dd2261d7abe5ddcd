// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "cli/client.h"

static int run(struct weir_cli *cli)
{
	json_t *result;
	int code;

	if (strcmp(cli->arguments[0], "del"))
		return weir_cli_fail_text(cli, WEIR_EXIT_USAGE,
					  "'%s': give weir ban del KEY; weir show bans lists them",
					  cli->arguments[0]);
	code = weir_client_ask(cli, "ban",
			       json_pack("{s:s, s:s}", "action", "del", "key", cli->arguments[1]),
			       &result);
	if (code)
		return code;
	if (cli->json)
		return weir_cli_print_json(cli, result);
	printf("%s: bans lifted: %lld\n", cli->arguments[1],
	       (long long)json_integer_value(json_object_get(result, "lifted")));
	json_decref(result);
	return WEIR_EXIT_OK;
}

const struct weir_command weir_command_ban = {
	.name = "ban",
	.arguments = "del KEY",
	.summary = "lift a ban: of a key as weir show bans has it, or of an address in it",
	.example = "  weir ban del 192.0.2.7",
	.options = WEIR_OPTION_SOCKET,
	.least = 2,
	.most = 2,
	.run = run,
};
