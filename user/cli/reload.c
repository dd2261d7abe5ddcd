// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>

#include "cli/client.h"

static int run(struct weir_cli *cli)
{
	json_t *result, *note;
	size_t i;
	int code = weir_client_ask(cli, "reload", weir_cli_add_terms(cli, json_object()),
				   &result);

	if (code)
		return code;
	if (cli->json)
		return weir_cli_print_json(cli, result);
	printf("reloaded: limits %lld\n",
	       (long long)json_integer_value(json_object_get(result, "limits")));
	json_array_foreach(json_object_get(result, "notes"), i, note)
		printf("note: %s\n", json_string_value(note));
	weir_cli_say_confirm(cli);
	json_decref(result);
	return WEIR_EXIT_OK;
}

const struct weir_command weir_command_reload = {
	.name = "reload",
	.arguments = "",
	.summary = "apply the configuration: all of it, or nothing changes",
	.example = "  weir reload --confirm 30s && weir confirm\n  weir check && weir reload",
	.options = WEIR_OPTION_CONFIRM | WEIR_OPTION_FORCE | WEIR_OPTION_SOCKET,
	.run = run,
};
