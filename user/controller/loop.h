/* SPDX-License-Identifier: GPL-2.0 */
/* The controller: one event loop around one engine. */
#pragma once

#include "controller/engine.h"
#include "controller/error.h"

#define WEIR_SOCKET_DEFAULT "/run/weir/weir.sock"
/* How the line begins that says that the limits are in force and commands are answered. */
#define WEIR_LOOP_READY "ready: "
#define WEIR_VERSION "0.1.0"

struct weir_loop_options {
	const char *config;    /* NULL: WEIR_CONFIG_DEFAULT */
	const char *pins;      /* NULL: WEIR_PINS_DEFAULT */
	const char *socket;    /* NULL: the configuration's */
	const char *overrides; /* NULL: WEIR_OVERRIDES_DEFAULT */
	const char *session;   /* SSH_CONNECTION of a session not to be cut off; NULL: none */
	weir_engine_log log;   /* each line of what the controller does */
	void *log_context;
};

/*
 * Runs until SIGTERM, SIGINT or `weir stop`, SIGHUP being `weir reload`. 0, or -errno if it
 * could not start: then nothing is changed. Tells $NOTIFY_SOCKET when it is ready. The data
 * plane goes on when this returns, unless `weir stop --detach` ended it.
 */
int weir_loop_run(const struct weir_loop_options *options, struct weir_error *err);
