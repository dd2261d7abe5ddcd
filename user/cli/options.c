// SPDX-License-Identifier: GPL-2.0
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/complete.h"
#include "controller/engine.h"
#include "controller/top.h"

/* Options in the order of the help; `value` is getopt's letter and the bit of the mask. */
static const struct {
	unsigned int bit;
	const char *name, *argument, *help;
} known[] = {
	{ WEIR_OPTION_CONFIG, "config", "FILE",
	  "-c, --config FILE   the configuration "
	  "(" WEIR_CONFIG_DEFAULT ")" },
	{ WEIR_OPTION_OVERRIDES, "overrides", "FILE",
	  "--overrides FILE    what `weir set --save` keeps (" WEIR_OVERRIDES_DEFAULT ")" },
	{ WEIR_OPTION_ONCE, "once", NULL,
	  "--once              print the heaviest keys of now and end, as without a terminal" },
	{ WEIR_OPTION_TOTAL, "total", NULL,
	  "--total             count since each key was first seen, not rates" },
	{ WEIR_OPTION_COUNT, "count", "N", "-n, --count N       how many at most" },
	{ WEIR_OPTION_SAVE, "save", NULL, "--save              keep it over a reload and restart" },
	{ WEIR_OPTION_CONFIRM, "confirm", "TIME",
	  "--confirm TIME      go back after so long (1s to 1h) unless `weir confirm` follows" },
	{ WEIR_OPTION_FORCE, "force", NULL,
	  "--force             even if it cuts off the ssh session that this is typed in" },
	{ WEIR_OPTION_UNDO, "undo", NULL, "--undo              go back now" },
	{ WEIR_OPTION_DETACH, "detach", NULL,
	  "--detach            take the limits off the interfaces too" },
	{ WEIR_OPTION_INTERFACE, "interface", "NAME",
	  "--interface NAME    the one of the configuration's that the capture is of (its first)" },
	{ WEIR_OPTION_ADDRESSES, "address", "PREFIX",
	  "--address PREFIX[,PREFIX...]  this host's: packets from there go out, all others come "
	  "in\n                      (else as the capture says; where it doesn't, in)" },
	{ WEIR_OPTION_TOP, "top", "N", "--top N             how many refused keys to list (10)" },
	{ WEIR_OPTION_PCAP, "pcap", "FILE",
	  "--pcap FILE         the traffic of a capture (- is stdin), not of the controller" },
	{ WEIR_OPTION_PINS, "pins", "DIR",
	  "--pins DIR          where the data plane is pinned ($WEIR_PINS, " WEIR_PINS_DEFAULT
	  ")" },
	{ WEIR_OPTION_SOCKET, "socket", "PATH",
	  "--socket PATH       the control socket ($WEIR_SOCKET, the configuration's)" },
};
#define KNOWN (sizeof(known) / sizeof(known[0]))

void weir_cli_help(const struct weir_command *command)
{
	printf("usage: weir %s%s%s [OPTION...]\n%s\n\noptions:\n", command->name,
	       *command->arguments ? " " : "", command->arguments, command->summary);
	for (size_t i = 0; i < KNOWN; i++) {
		if (command->options & known[i].bit)
			printf("  %s\n", known[i].help);
	}
	printf("  -j, --json          JSON, numbers in base units\n"
	       "  -h, --help          this text\n\nexample:\n%s\n",
	       command->example);
}

/* "-c, --config FILE   the configuration": what stands behind two spaces or more. */
static const char *help_alone(const char *help)
{
	const char *gap = strstr(help, "  ");

	return gap ? gap + strspn(gap, " ") : "";
}

void weir_cli_options_each(const struct weir_command *command,
			   void (*say)(void *context, const char *name, const char *help),
			   void *context)
{
	for (size_t i = 0; i < KNOWN; i++) {
		if (command->options & known[i].bit)
			say(context, known[i].name, help_alone(known[i].help));
	}
	say(context, "json", "JSON, numbers in base units");
	say(context, "help", "the command's arguments and options");
}

static bool is_option(const char *word, const char *name, unsigned int bit)
{
	if (!strncmp(word, "--", 2))
		return !strcmp(word + 2, name);
	return (bit == WEIR_OPTION_CONFIG && !strcmp(word, "-c")) ||
	       (bit == WEIR_OPTION_COUNT && !strcmp(word, "-n"));
}

const char *weir_cli_option_argument(const struct weir_command *command, const char *word)
{
	for (size_t i = 0; i < KNOWN; i++) {
		if (command->options & known[i].bit && is_option(word, known[i].name, known[i].bit))
			return known[i].argument;
	}
	return NULL;
}

static int usage(const struct weir_cli *cli, const char *what, const char *value)
{
	return weir_cli_fail_text(cli, WEIR_EXIT_USAGE, "%s '%s': see weir %s --help", what, value,
				  cli->command->name);
}

/* `letter`: of a short one, which may stand anywhere in a word that getopt is not yet done with. */
static int unknown(const struct weir_cli *cli, int letter, const char *word)
{
	char option[] = { '-', (char)letter, '\0' };
	bool is_short = letter > 0 && letter < 0x80 && strncmp(word, "--", 2);

	return usage(cli, "unknown option", is_short ? option : word);
}

static int read_count(struct weir_cli *cli, const char *name, const char *text)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || value < 1 || value > WEIR_TOP_MAX)
		return weir_cli_fail_text(cli, WEIR_EXIT_USAGE,
					  "--%s '%s': give a whole number from 1 to %u", name, text,
					  WEIR_TOP_MAX);
	cli->count = (uint32_t)value;
	return 0;
}

static int take(struct weir_cli *cli, unsigned int bit, const char *value)
{
	switch (bit) {
	case WEIR_OPTION_CONFIG:
		cli->config = value;
		break;
	case WEIR_OPTION_OVERRIDES:
		cli->overrides = value;
		break;
	case WEIR_OPTION_ONCE:
		cli->once = true;
		break;
	case WEIR_OPTION_TOTAL:
		cli->total = true;
		break;
	case WEIR_OPTION_COUNT:
		return read_count(cli, "count", value);
	case WEIR_OPTION_TOP:
		return read_count(cli, "top", value);
	case WEIR_OPTION_INTERFACE:
		cli->interface = value;
		break;
	case WEIR_OPTION_ADDRESSES:
		cli->addresses = value;
		break;
	case WEIR_OPTION_PCAP:
		cli->pcap = value;
		break;
	case WEIR_OPTION_SAVE:
		cli->save = true;
		break;
	case WEIR_OPTION_CONFIRM:
		cli->confirm = value;
		break;
	case WEIR_OPTION_FORCE:
		cli->force = true;
		break;
	case WEIR_OPTION_UNDO:
		cli->undo = true;
		break;
	case WEIR_OPTION_DETACH:
		cli->detach = true;
		break;
	case WEIR_OPTION_PINS:
		cli->pins = value;
		break;
	case WEIR_OPTION_SOCKET:
		cli->socket = value;
		break;
	}
	return 0;
}

/* The options of one command, for getopt. */
static void fill(const struct weir_command *command, struct option *options)
{
	size_t count = 0;

	for (size_t i = 0; i < KNOWN; i++) {
		if (command->options & known[i].bit)
			options[count++] = (struct option){ known[i].name,
							    known[i].argument ? required_argument
									      : no_argument,
							    NULL, (int)known[i].bit << 8 };
	}
	options[count++] = (struct option){ "json", no_argument, NULL, 'j' };
	options[count++] = (struct option){ "help", no_argument, NULL, 'h' };
	options[count] = (struct option){ 0 };
}

static unsigned int bit_of(const struct weir_command *command, int letter)
{
	unsigned int bit = letter == 'c'   ? WEIR_OPTION_CONFIG
			   : letter == 'n' ? WEIR_OPTION_COUNT
					   : (unsigned int)letter >> 8;

	return bit & command->options;
}

/* What goes to the controller is JSON. */
static int check_arguments(const struct weir_cli *cli)
{
	for (int i = 0; i < cli->argument_count; i++) {
		json_t *text = json_string(cli->arguments[i]);

		json_decref(text);
		if (!text && cli->command->options & WEIR_OPTION_SOCKET)
			return weir_cli_fail_text(cli, WEIR_EXIT_REFUSED,
						  "argument %d is not UTF-8", i + 1);
	}
	return WEIR_EXIT_OK;
}

int weir_cli_parse(struct weir_cli *cli, const struct weir_command *command, int argc, char **argv,
		   int *code)
{
	struct option options[KNOWN + 3];
	int letter, rc;

	cli->command = command;
	fill(command, options);
	opterr = 0;
	while ((letter = getopt_long(argc, argv, ":c:n:jh", options, NULL)) != -1) {
		if (letter == 'h') {
			weir_cli_help(command);
			*code = WEIR_EXIT_OK;
			return 1;
		}
		if (letter == 'j') {
			cli->json = true;
			continue;
		}
		if (letter == ':')
			rc = usage(cli, "a value is missing after", argv[optind - 1]);
		else if (letter == '?' || !bit_of(command, letter))
			rc = unknown(cli, letter == '?' ? optopt : letter, argv[optind - 1]);
		else
			rc = take(cli, bit_of(command, letter), optarg);
		if (rc) {
			*code = rc;
			return 1;
		}
	}
	cli->arguments = argv + optind;
	cli->argument_count = argc - optind;
	if (cli->argument_count < command->least)
		*code = weir_cli_fail_text(cli, WEIR_EXIT_USAGE,
					   "usage: weir %s %s: see weir %s --help", command->name,
					   command->arguments, command->name);
	else if (cli->argument_count > command->most)
		*code = usage(cli, "unexpected", cli->arguments[command->most]);
	else
		*code = check_arguments(cli);
	return *code;
}
