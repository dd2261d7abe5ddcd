/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What could come next on a command line: `weir __complete WORD...`, the last word being the
 * one that is typed, for the shells' completion (packaging/completion). A candidate a line,
 * behind a tab what it is; `:file` and `:dir` stand for files and folders. The usage lines of
 * the commands are the grammar, so a new command completes by being in the table.
 */
#pragma once

#include "cli/cli.h"

/* words: what follows the command's name, at least one; it may be empty. */
int weir_cli_complete(const struct weir_cli *cli, const struct weir_command *command, int count,
		      char **words);

/* options.c: each option of the command, without dashes; help begins with no name. */
void weir_cli_options_each(const struct weir_command *command,
			   void (*say)(void *context, const char *name, const char *help),
			   void *context);
/* "FILE" where the word is an option of the command that takes one next, else NULL. */
const char *weir_cli_option_argument(const struct weir_command *command, const char *word);
