// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>

#include "cli/client.h"

static int run(struct weir_cli *cli)
{
	json_t *result;
	int code = weir_client_ask(cli, "confirm", json_pack("{s:b}", "undo", cli->undo), &result);

	if (code)
		return code;
	if (cli->json)
		return weir_cli_print_json(cli, result);
	printf("%s: %s%s\n", json_string_value(json_object_get(result, "what")),
	       cli->undo ? "gone back" : "confirmed",
	       json_is_true(json_object_get(result, "saved")) ? " (saved)" : "");
	json_decref(result);
	return WEIR_EXIT_OK;
}

const struct weir_command weir_command_confirm = {
	.name = "confirm",
	.arguments = "",
	.summary = "keep a change made with --confirm, or with --undo go back now",
	.example = "  weir confirm\n  weir confirm --undo",
	.options = WEIR_OPTION_UNDO | WEIR_OPTION_SOCKET,
	.run = run,
};
