/* SPDX-License-Identifier: GPL-2.0 */
/* The CLI's end of the control socket (controller/control.h has the protocol). */
#pragma once

#include "cli/cli.h"

/* Instead of an exit code: nobody listens on the socket. */
#define WEIR_CLIENT_DOWN (-1)

struct weir_client;

/* Connects and asks; takes over `arguments` (NULL: none). WEIR_EXIT_OK, _FAILED or DOWN. */
int weir_client_open(struct weir_client **client, const struct weir_cli *cli, const char *command,
		     json_t *arguments, struct weir_error *err);
/*
 * The next part of the answer, and whether it is the last; waits at most 30 s unless `forever`.
 * *part is NULL when an interrupt, or the controller's end (forever only), came instead.
 */
int weir_client_next(struct weir_client *client, bool forever, json_t **part, bool *last,
		     struct weir_error *err);
void weir_client_close(struct weir_client *client);

/* All of a question: its parts put together, arrays appended. */
int weir_client_call(const struct weir_cli *cli, const char *command, json_t *arguments,
		     json_t **result, struct weir_error *err);

/* The same for a command that takes the controller: says what is wrong, also that it is down. */
int weir_client_ask(const struct weir_cli *cli, const char *command, json_t *arguments,
		    json_t **result);
/* Says that the controller is down and how to start it. */
int weir_client_fail_down(const struct weir_cli *cli);
const char *weir_client_socket(const struct weir_cli *cli);
