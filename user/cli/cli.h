/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The weir command. A subcommand is one file with one struct weir_command; main.c has the
 * table. This is the only layer that prints: results on stdout, errors on stderr (with --json
 * as {"error": …} on stdout), one sentence each.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/error.h"

enum weir_exit {
	WEIR_EXIT_OK = 0,
	WEIR_EXIT_REFUSED = 1, /* bad input, not found */
	WEIR_EXIT_FAILED = 2,  /* the kernel or the controller said no */
	WEIR_EXIT_USAGE = 64,
};

enum weir_option {
	WEIR_OPTION_CONFIG = 1 << 0,
	WEIR_OPTION_OVERRIDES = 1 << 1,
	WEIR_OPTION_ONCE = 1 << 2,
	WEIR_OPTION_TOTAL = 1 << 3,
	WEIR_OPTION_COUNT = 1 << 4,
	WEIR_OPTION_SAVE = 1 << 5,
	WEIR_OPTION_DETACH = 1 << 6,
	WEIR_OPTION_PINS = 1 << 7,
	WEIR_OPTION_SOCKET = 1 << 8,
	WEIR_OPTION_CONFIRM = 1 << 9,
	WEIR_OPTION_FORCE = 1 << 10,
	WEIR_OPTION_UNDO = 1 << 11,
	WEIR_OPTION_INTERFACE = 1 << 12,
	WEIR_OPTION_ADDRESSES = 1 << 13,
	WEIR_OPTION_TOP = 1 << 14,
	WEIR_OPTION_PCAP = 1 << 15,
};

/* A command line, read. */
struct weir_cli {
	const struct weir_command *command;
	bool json;
	const char *pins;   /* --pins, $WEIR_PINS, the default */
	const char *socket; /* --socket, $WEIR_SOCKET; NULL: neither */
	const char *config;
	const char *overrides;
	const char *confirm; /* a time; NULL: not given */
	const char *interface; /* of a capture */
	const char *addresses; /* "192.0.2.1,2001:db8::/64": this host's */
	const char *pcap;
	bool once, total, save, detach, force, undo;
	uint32_t count; /* 0: not given */
	char **arguments;
	int argument_count;
};

struct weir_command {
	const char *name;
	const char *arguments; /* as the usage line shows them */
	const char *summary;
	const char *example;		  /* lines, indented by two */
	unsigned int options;		  /* enum weir_option; --json and --help are everybody's */
	int least, most;		  /* arguments */
	int (*run)(struct weir_cli *cli); /* enum weir_exit */
};

extern const struct weir_command weir_command_run, weir_command_check, weir_command_reload,
	weir_command_show, weir_command_set, weir_command_why, weir_command_top, weir_command_watch,
	weir_command_events, weir_command_stop, weir_command_version, weir_command_allow,
	weir_command_deny, weir_command_confirm, weir_command_freeze, weir_command_thaw,
	weir_command_report, weir_command_ban, weir_command_try, weir_command_suggest,
	weir_command_unset;

/* options.c: 0 to go on; else *code is what to exit with, all said. */
int weir_cli_parse(struct weir_cli *cli, const struct weir_command *command, int argc, char **argv,
		   int *code);
void weir_cli_help(const struct weir_command *command);

/*
 * session.c: SSH_CONNECTION of the session that the command is typed in, its own or that of the
 * nearest ancestor that has one (sudo takes it away). NULL: none, or --force.
 */
const char *weir_cli_session(const struct weir_cli *cli);
/* Adds --confirm and the session to what a change asks of the controller. */
json_t *weir_cli_add_terms(const struct weir_cli *cli, json_t *arguments);
/* With --confirm: what is to follow. */
void weir_cli_say_confirm(const struct weir_cli *cli);

/* Says an error and returns the code. */
int weir_cli_fail(const struct weir_cli *cli, int code, const struct weir_error *err);
int weir_cli_fail_text(const struct weir_cli *cli, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* One JSON document a line; takes over the value. Returns WEIR_EXIT_OK, or _FAILED for NULL. */
int weir_cli_print_json(const struct weir_cli *cli, json_t *value);

/* "12:34:56.789", local time. Fills 32 bytes and returns them. */
char *weir_cli_clock(uint64_t time_ns, char *text);

/* From now on SIGINT and SIGTERM only make this true, and end a wait. */
void weir_cli_catch_interrupts(void);
bool weir_cli_interrupted(void);
