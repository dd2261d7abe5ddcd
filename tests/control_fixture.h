/* SPDX-License-Identifier: GPL-2.0 */
/* A control socket in a folder of its own, with a handler that does as it is told. */
#pragma once

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "controller/control.h"
#include "harness.h"
#include "json_path.h"

static char folder[32], path[64];
static struct event_base *base;
static struct weir_control *control;

/* What the handler saw. */
static unsigned int handled, closed_count, ended, parts_made;
static struct weir_control_client *owed; /* an answer, or the subscriber */

static inline void end_parts(void *context)
{
	free(context);
	ended++;
}

static inline json_t *next_part(void *context, bool *more)
{
	int *left = context;
	char filler[10001];

	memset(filler, 'x', sizeof(filler) - 1);
	filler[sizeof(filler) - 1] = '\0';
	parts_made++;
	*more = --*left > 0;
	return json_pack("{s:i, s:s}", "left", *left, "filler", filler);
}

static inline void handler(void *context, struct weir_control_client *client, const char *command,
			   json_t *arguments)
{
	(void)context;
	handled++;
	if (!strcmp(command, "echo")) {
		weir_control_reply(client, json_incref(arguments));
	} else if (!strcmp(command, "big")) {
		char *text = malloc(1000001);

		memset(text, 'y', 1000000);
		text[1000000] = '\0';
		weir_control_reply(client, json_string(text));
		free(text);
	} else if (!strcmp(command, "later")) {
		owed = client;
	} else if (!strcmp(command, "watch")) {
		owed = client;
		weir_control_subscribe(client);
	} else if (!strcmp(command, "parts")) {
		int *left = malloc(sizeof(*left));

		*left = 1000;
		weir_control_stream(client, next_part, end_parts, left);
	} else {
		weir_control_fail(client, 1, "unknown");
	}
}

static inline void closed(void *context, struct weir_control_client *client)
{
	(void)context;
	closed_count++;
	if (client == owed)
		owed = NULL;
}

static inline int start(unsigned int idle_seconds, struct weir_error *err)
{
	const struct weir_control_options options = { .path = path,
						      .group = getegid(),
						      .idle_seconds = idle_seconds,
						      .handler = handler,
						      .closed = closed };

	return weir_control_start(&control, base, &options, err);
}

static inline void make_folder(void)
{
	/* A loop that doesn't rest would never come back. */
	alarm(120);
	/* As the controller does: a client that is gone is an error of a write, no signal. */
	signal(SIGPIPE, SIG_IGN);
	strcpy(folder, "/tmp/weir-control-XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/s", folder);
	base = event_base_new();
	handled = closed_count = ended = parts_made = 0;
	owed = NULL;
	control = NULL;
}

static inline void setup(void)
{
	struct weir_error err;

	make_folder();
	CU_ASSERT_EQUAL_FATAL(start(30, &err), 0);
}

static inline void teardown(void)
{
	weir_control_stop(control);
	event_base_free(base);
	unlink(path);
	CU_ASSERT_EQUAL(rmdir(folder), 0);
}

static inline void pump(void)
{
	for (int i = 0; i < 20; i++)
		event_base_loop(base, EVLOOP_NONBLOCK);
}

static inline int join(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

	strcpy(address.sun_path, path);
	CU_ASSERT_EQUAL_FATAL(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	pump();
	return fd;
}

static inline ssize_t say(int fd, const char *text)
{
	ssize_t sent = send(fd, text, strlen(text), MSG_NOSIGNAL);

	pump();
	return sent;
}

/* One line of the answer, read while the server runs; NULL at the end or after 2 s of silence. */
static inline char *line(int fd)
{
	static char text[1200000];
	size_t used = 0;

	for (int idle = 0; idle < 2000;) {
		ssize_t seen = recv(fd, text + used, sizeof(text) - used, MSG_PEEK);
		char *end = seen > 0 ? memchr(text + used, '\n', (size_t)seen) : NULL;

		if (seen == 0)
			return NULL;
		if (seen < 0) {
			poll(NULL, 0, 1);
			event_base_loop(base, EVLOOP_NONBLOCK);
			idle++;
			continue;
		}
		/* Takes what it has seen, up to the end of the line. */
		seen = recv(fd, text + used, end ? (size_t)(end + 1 - text) - used : (size_t)seen,
			    0);
		used += (size_t)seen;
		if (end) {
			*end = '\0';
			return text;
		}
	}
	return NULL;
}

static inline json_t *answer(int fd)
{
	char *text = line(fd);

	return text ? json_loads(text, 0, NULL) : NULL;
}

static inline bool fails_with(int fd, int code, const char *words)
{
	json_t *got = answer(fd);
	bool ok = json_is_false(at(got, "ok")) && number(got, "code") == code &&
		  strstr(text(got, "error"), words);

	json_decref(got);
	return ok;
}

static inline bool echoes(int fd, int value)
{
	char request[96];
	json_t *got;
	bool ok;

	snprintf(request, sizeof(request), "{\"command\":\"echo\",\"arguments\":{\"n\":%d}}\n",
		 value);
	say(fd, request);
	got = answer(fd);
	ok = json_is_true(at(got, "ok")) && number(got, "result.n") == value;
	json_decref(got);
	return ok;
}
