// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/complete.h"
#include "controller/engine.h"

static const struct weir_command *const commands[] = {
	&weir_command_run, &weir_command_check, &weir_command_reload, &weir_command_show,
	&weir_command_set, &weir_command_unset, &weir_command_confirm, &weir_command_top,
	&weir_command_suggest, &weir_command_try, &weir_command_allow, &weir_command_deny,
	&weir_command_ban, &weir_command_why, &weir_command_watch, &weir_command_events,
	&weir_command_freeze, &weir_command_thaw, &weir_command_report, &weir_command_stop,
	&weir_command_version,
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const struct weir_command *find(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++) {
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	}
	return NULL;
}

static void print_help(FILE *out)
{
	fputs("usage: weir COMMAND [ARGUMENT...] [OPTION...]\n\n", out);
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(out, "  %-8s %s\n", commands[i]->name, commands[i]->summary);
	fputs("  help     this text, or that of a command\n\n"
	      "weir COMMAND --help says more, with an example. Exit codes: 0, 1 refused (bad "
	      "input,\n"
	      "not found), 2 the kernel or the controller said no, 64 usage.\n",
	      out);
}

static int unknown(const char *name)
{
	fprintf(stderr, "weir: unknown command '%s': there are", name);
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(stderr, " %s,", commands[i]->name);
	fputs(" help\n", stderr);
	return WEIR_EXIT_USAGE;
}

static int help(const char *name)
{
	if (!name)
		print_help(stdout);
	else if (find(name))
		weir_cli_help(find(name));
	else
		return unknown(name);
	return WEIR_EXIT_OK;
}

/* See complete.h. The command itself is completed here, where the table is. */
static int complete(const struct weir_cli *cli, int count, char **words)
{
	bool is_first = count == 1, is_help = count == 2 && !strcmp(words[0], "help");

	if (count > 1 && find(words[0]))
		return weir_cli_complete(cli, find(words[0]), count - 1, words + 1);
	for (size_t i = 0; i < COMMANDS && (is_first || is_help); i++) {
		if (!strncmp(commands[i]->name, words[count - 1], strlen(words[count - 1])))
			printf("%s\t%s\n", commands[i]->name, commands[i]->summary);
	}
	if (is_first && !strncmp("help", words[0], strlen(words[0])))
		puts("help\tthis text, or that of a command");
	return WEIR_EXIT_OK;
}

/* What was written must have arrived; a reader that has had enough is no error. */
static int finish(int code)
{
	if (fflush(stdout) || ferror(stdout)) {
		if (errno == EPIPE)
			return code;
		perror("weir: stdout");
		return WEIR_EXIT_FAILED;
	}
	return code;
}

int main(int argc, char **argv)
{
	struct weir_cli cli = { .pins = getenv("WEIR_PINS"), .socket = getenv("WEIR_SOCKET") };
	const struct weir_command *command;
	int code;

	signal(SIGPIPE, SIG_IGN);
	if (!cli.pins)
		cli.pins = WEIR_PINS_DEFAULT;
	if (argc < 2) {
		print_help(stderr);
		return WEIR_EXIT_USAGE;
	}
	if (!strcmp(argv[1], "help") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return finish(help(argc > 2 ? argv[2] : NULL));
	if (!strcmp(argv[1], "__complete"))
		return finish(complete(&cli, argc - 2, argv + 2));
	command =
		find(!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V") ? "version" : argv[1]);
	if (!command)
		return unknown(argv[1]);
	if (!weir_cli_parse(&cli, command, argc - 1, argv + 1, &code))
		code = command->run(&cli);
	return finish(code);
}
