// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>

#include "cli/cli.h"
#include "controller/loop.h"
#include "controller/report.h"
#include "weir/abi.h"

static int run(struct weir_cli *cli)
{
	if (cli->json)
		return weir_cli_print_json(cli, json_pack("{s:i, s:s, s:i}", "schema",
							  WEIR_JSON_SCHEMA, "version", WEIR_VERSION,
							  "abi", WEIR_ABI_VERSION));
	printf("weir %s, data plane ABI %d\n", WEIR_VERSION, WEIR_ABI_VERSION);
	return WEIR_EXIT_OK;
}

const struct weir_command weir_command_version = {
	.name = "version",
	.arguments = "",
	.summary = "the version of weir and of the layout of its pinned maps",
	.example = "  weir version -j",
	.run = run,
};
