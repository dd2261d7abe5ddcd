/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The control socket: a Unix stream socket on a libevent loop. A request is one JSON line,
 *	{"command": "set", "arguments": {…}}
 * and so is its answer,
 *	{"ok": true, "result": {…}}  or  {"ok": false, "code": 1, "error": "one sentence"}
 * with the exit code that the CLI then has: 1 refused, 2 the kernel or controller said no. A
 * long result comes in parts: {"ok": true, "more": true, "result": {…}} and so on; members that
 * are arrays are to be put together. After `watch` the parts don't end.
 *
 * Nobody can hold up the loop or fill the memory: requests, clients, idle time and unread
 * output are all bounded. While all places are taken, who idles makes room for who comes. Only
 * root, the controller's own user and members of the group get in, by the socket's mode and
 * again by the credentials of the peer.
 */
#pragma once

#include <event2/event.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "controller/error.h"

#define WEIR_CONTROL_REQUEST_MAX 65536U /* bytes of a line */
#define WEIR_CONTROL_CLIENTS_MAX 64U
#define WEIR_CONTROL_WATCHERS_MAX 32U /* of them: they keep their places */
#define WEIR_CONTROL_IDLE_SECONDS 30
#define WEIR_CONTROL_OUTPUT_MAX (4U << 20) /* unread bytes of a stream; more are left out */

struct weir_control;
struct weir_control_client;

/*
 * Called for each request; it must answer, now or later, by exactly one of reply, fail and
 * stream. Until then the client's next request waits. `arguments` is an object, never NULL,
 * and the caller's.
 */
typedef void (*weir_control_handler)(void *context, struct weir_control_client *client,
				     const char *command, json_t *arguments);
/* A client that an answer may still be owed to is gone: forget it. */
typedef void (*weir_control_closed)(void *context, struct weir_control_client *client);

struct weir_control_options {
	const char *path;
	gid_t group; /* of the socket */
	unsigned int idle_seconds;
	weir_control_handler handler;
	weir_control_closed closed;
	void *context;
};

/*
 * Listens. A socket that a dead controller left is replaced; -EADDRINUSE for one that answers,
 * -EEXIST for a path that is no socket.
 */
int weir_control_start(struct weir_control **control, struct event_base *base,
		       const struct weir_control_options *options, struct weir_error *err);
/* Nobody new gets in: the next finds no controller. What was asked before can still be answered. */
void weir_control_close_door(struct weir_control *control);
/* Ends all clients (what was answered is still sent, as far as they take it at once). Runs the
 * loop once without waiting: events of others must be gone or ready for it. */
void weir_control_stop(struct weir_control *control);

/* The context of the control socket that a client came by. */
void *weir_control_client_context(const struct weir_control_client *client);

/* The code that goes with an -errno: 1 for what was refused (bad input, not found), else 2. */
int weir_control_code(int error);

/* Answers; takes over `result` (NULL: memory was out, and the answer says so). */
void weir_control_reply(struct weir_control_client *client, json_t *result);
void weir_control_fail(struct weir_control_client *client, int code, const char *sentence);

/*
 * Answers in parts: `next` gives one part at a time, when the client has read the one before,
 * and *more false with the last. `end` frees the context, also when the client goes away.
 */
typedef json_t *(*weir_control_next)(void *context, bool *more);
void weir_control_stream(struct weir_control_client *client, weir_control_next next,
			 void (*end)(void *context), void *context);

/*
 * Makes of the client a subscriber: no more requests, no idle time-out. push then sends it a
 * part, and is false where the client reads too slowly and the part was left out.
 */
void weir_control_subscribe(struct weir_control_client *client);
bool weir_control_push(struct weir_control_client *client, const json_t *part);
