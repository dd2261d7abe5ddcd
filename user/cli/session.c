// SPDX-License-Identifier: GPL-2.0
/* The ssh session that a command is typed in. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

#define NAME "SSH_CONNECTION="
#define ANCESTORS_MAX 32

/* What a process was started with, as far as we may see it. */
static bool find_in(pid_t process, char *value, size_t size)
{
	char path[64], *entry = NULL;
	size_t room = 0;
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/environ", process);
	file = fopen(path, "re");
	while (file && !found && getdelim(&entry, &room, '\0', file) > 0) {
		found = !strncmp(entry, NAME, strlen(NAME));
		if (found)
			snprintf(value, size, "%s", entry + strlen(NAME));
	}
	free(entry);
	if (file)
		fclose(file);
	return found;
}

/* 0: none. The name before it may have spaces and brackets. */
static pid_t parent_of(pid_t process)
{
	char path[64], text[512] = "", *end;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", process);
	file = fopen(path, "re");
	if (!file)
		return 0;
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	/* ") S 1234 " */
	end = strrchr(text, ')');
	return end && strlen(end) > 4 ? (pid_t)strtol(end + 4, NULL, 10) : 0;
}

const char *weir_cli_session(const struct weir_cli *cli)
{
	static char found[256];
	const char *own = getenv("SSH_CONNECTION");
	pid_t process = getppid();

	if (cli->force)
		return NULL;
	snprintf(found, sizeof(found), "%s", own ? own : "");
	for (int i = 0; !own && !*found && process > 1 && i < ANCESTORS_MAX; i++) {
		find_in(process, found, sizeof(found));
		process = parent_of(process);
	}
	/* sshd's word where there is no address, as over a pipe. */
	return *found && strncmp(found, "UNKNOWN", 7) ? found : NULL;
}

json_t *weir_cli_add_terms(const struct weir_cli *cli, json_t *arguments)
{
	const char *session = weir_cli_session(cli);

	if (session)
		json_object_set_new(arguments, "session", json_string(session));
	if (cli->confirm)
		json_object_set_new(arguments, "confirm", json_string(cli->confirm));
	return arguments;
}

void weir_cli_say_confirm(const struct weir_cli *cli)
{
	if (cli->confirm)
		printf("it goes back in %s: keep it by weir confirm\n", cli->confirm);
}
