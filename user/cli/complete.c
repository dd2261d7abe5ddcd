// SPDX-License-Identifier: GPL-2.0
#include "cli/complete.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/client.h"

#define PIECE_SIZE 64

/* A command line that is being typed. */
struct line {
	const struct weir_cli *cli;
	const struct weir_command *command;
	const char *words[64]; /* arguments before `typed`, options left out */
	size_t count;
	const char *typed;
};

static void say(const struct line *line, const char *word, const char *ending, const char *what)
{
	char whole[PIECE_SIZE * 2];

	snprintf(whole, sizeof(whole), "%s%s", word, ending);
	if (strncmp(whole, line->typed, strlen(line->typed)))
		return;
	/* A help of several lines: its first. */
	printf(*what ? "%s\t%.*s\n" : "%s\n", whole, (int)strcspn(what, "\n"), what);
}

/* ---- what the running weir has ---- */

/* NULL: all of it. */
static json_t *ask(const struct line *line, const char *what)
{
	struct weir_error err;
	json_t *result = NULL;

	if (weir_client_call(line->cli, "show", json_pack("{s:s*}", "what", what), &result, &err))
		return NULL;
	return result;
}

static void say_names_of(const struct line *line, json_t *found, const char *part, const char *what)
{
	json_t *item;
	size_t i;

	json_array_foreach(json_object_get(found, part), i, item)
		say(line, json_string_value(json_object_get(item, "name")), "", what);
}

static bool is_one_of(const char *word, const char *const *words)
{
	while (*words && strcmp(*words, word))
		words++;
	return *words;
}

static void say_names(const struct line *line)
{
	static const char *const of_services[] = { "freeze", "thaw", "report", NULL };
	static const char *const of_both[] = { "show", NULL };
	bool both = is_one_of(line->command->name, of_both);
	bool services = is_one_of(line->command->name, of_services);
	json_t *found = ask(line, NULL);

	if (both || !services)
		say_names_of(line, found, "limits", "limit");
	if (both || services)
		say_names_of(line, found, "services", "service");
	json_decref(found);
}

static void say_fields(const struct line *line)
{
	json_t *found = ask(line, line->words[0]), *settings, *value;
	const char *field;

	settings = json_object_get(json_array_get(json_object_get(found, "limits"), 0), "settings");
	if (settings) {
		say(line, "mode=enforce", "", "refuse what is over");
		say(line, "mode=monitor", "", "count it only");
		say(line, "untracked=pass", "", "a newcomer without a place");
		say(line, "untracked=drop", "", "a newcomer without a place");
	}
	json_object_foreach(settings, field,
			    value) if (strcmp(field, "mode") && strcmp(field, "untracked"))
		say(line, field, "=", "");
	json_decref(found);
}

/* ---- the usage line of a command, as a grammar ---- */

static bool is_placeholder(const char *piece)
{
	return *piece >= 'A' && *piece <= 'Z';
}

/* The next piece between bars of "[limits|NAME]": false after the last. */
static bool next_piece(const char **token, char *piece)
{
	size_t length;

	*token += strspn(*token, "[|]");
	length = strcspn(*token, "[|] ");
	if (!length || length >= PIECE_SIZE)
		return false;
	memcpy(piece, *token, length);
	piece[length] = '\0';
	*token += length;
	return true;
}

static bool takes(const char *token, const char *word)
{
	char piece[PIECE_SIZE];

	while (next_piece(&token, piece)) {
		if (is_placeholder(piece) || !strcmp(piece, word))
			return true;
	}
	return false;
}

static void say_piece(const struct line *line, char *piece)
{
	char *equals = strchr(piece, '=');

	if (!strncmp(piece, "FILE", 4))
		puts(":file");
	else if (!strncmp(piece, "FIELD=", 6))
		say_fields(line);
	else if (!strcmp(piece, "NAME"))
		say_names(line);
	else if (!is_placeholder(piece)) {
		if (equals)
			equals[1] = '\0';
		say(line, piece, "", "");
	}
}

/* One alternative, such as "add PREFIX [for TIME]", against what is there. */
static void say_alternative(const struct line *line, const char *const *tokens, size_t count)
{
	char piece[PIECE_SIZE];
	const char *token;
	size_t at = line->count;

	for (size_t i = 0; i < line->count && i < count; i++) {
		if (!takes(tokens[i], line->words[i]))
			return;
	}
	if (at >= count && count && strstr(tokens[count - 1], "..."))
		at = count - 1;
	if (at >= count)
		return;
	token = tokens[at];
	while (next_piece(&token, piece))
		say_piece(line, piece);
}

static void say_arguments(const struct line *line)
{
	char *usage = strdup(line->command->arguments), *save;
	const char *tokens[16];
	size_t count = 0;

	if (!usage)
		return;
	for (char *token = strtok_r(usage, " ", &save); token; token = strtok_r(NULL, " ", &save)) {
		if (!strcmp(token, "|")) {
			say_alternative(line, tokens, count);
			count = 0;
		} else if (count < sizeof(tokens) / sizeof(tokens[0])) {
			tokens[count++] = token;
		}
	}
	say_alternative(line, tokens, count);
	free(usage);
}

/* ---- options ---- */

static void say_option(void *context, const char *name, const char *help)
{
	struct line *line = context;
	char whole[PIECE_SIZE];

	snprintf(whole, sizeof(whole), "--%s", name);
	say(line, whole, "", help);
}

static void say_value(const char *argument)
{
	if (!strcmp(argument, "DIR"))
		puts(":dir");
	else if (!strcmp(argument, "FILE") || !strcmp(argument, "PATH"))
		puts(":file");
}

int weir_cli_complete(const struct weir_cli *cli, const struct weir_command *command, int count,
		      char **words)
{
	struct line line = { .cli = cli, .command = command, .typed = words[count - 1] };
	const char *argument = NULL;

	for (int i = 0; i < count - 1; i++) {
		bool value = argument;

		argument = value ? NULL : weir_cli_option_argument(command, words[i]);
		if (!value && *words[i] != '-' &&
		    line.count < sizeof(line.words) / sizeof(line.words[0]))
			line.words[line.count++] = words[i];
	}
	if (argument)
		say_value(argument);
	else if (*line.typed == '-')
		weir_cli_options_each(command, say_option, &line);
	else
		say_arguments(&line);
	return WEIR_EXIT_OK;
}
