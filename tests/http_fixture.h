/* SPDX-License-Identifier: GPL-2.0 */
/* An HTTP server with two pages, on a clock that the test moves, and raw clients of it. */
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "controller/http.h"
#include "harness.h"

#define SECOND 1000000000ULL
#define BIG 4000000

static struct event_base *base;
static struct weir_http *http;
static struct weir_page *small, *big;
static struct weir_texts names;
static uint64_t now_ns;
static uint16_t port;

static inline uint64_t clock_ns(void)
{
	return now_ns;
}

static inline struct weir_page *page(void *context, const char *path, int *rc)
{
	(void)context;
	*rc = !strcmp(path, "/poor") ? -ENOMEM : -ENOENT;
	if (!strcmp(path, "/"))
		return weir_page_get(small);
	return !strcmp(path, "/big") ? weir_page_get(big) : NULL;
}

static inline const struct weir_texts *hosts(void *context)
{
	(void)context;
	return &names;
}

static inline int listen_on(const char *address, struct weir_http **made, struct weir_error *err)
{
	const struct weir_http_options options = {
		.listen = address, .hosts = hosts, .page = page, .now_ns = clock_ns
	};

	return weir_http_start(made, base, &options, err);
}

/* On the first free port from one that depends on the process. */
static inline void setup(void)
{
	struct weir_error err;
	char address[32];
	int rc = -EADDRINUSE;

	alarm(120);
	signal(SIGPIPE, SIG_IGN);
	base = event_base_new();
	small = weir_page_new("text/plain", "hello\n", 6, false);
	big = weir_page_new("text/plain", calloc(1, BIG), BIG, true);
	now_ns = 1000 * SECOND;
	port = (uint16_t)(20000 + getpid() % 10000);
	for (int tries = 0; rc == -EADDRINUSE && tries < 100; tries++) {
		snprintf(address, sizeof(address), "127.0.0.1:%u", ++port);
		rc = listen_on(address, &http, &err);
	}
	CU_ASSERT_EQUAL_FATAL(rc, 0);
}

static inline void pump(int rounds)
{
	for (int i = 0; i < rounds; i++) {
		event_base_loop(base, EVLOOP_NONBLOCK);
		poll(NULL, 0, 1);
	}
}

/* Longer than the server takes to look at its connections, under load too. */
static inline void sweep(void)
{
	pump(300);
}

static inline void teardown(void)
{
	weir_http_stop(http);
	for (int i = 0; i < 5; i++)
		event_base_loop(base, EVLOOP_NONBLOCK);
	CU_ASSERT_EQUAL(small->users, 1);
	CU_ASSERT_EQUAL(big->users, 1);
	weir_page_put(small);
	weir_page_put(big);
	event_base_free(base);
}

static inline int join(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons(port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	int rc = connect(fd, (struct sockaddr *)&address, sizeof(address));

	CU_ASSERT_FATAL(fd >= 0 && (!rc || errno == EINPROGRESS));
	return fd;
}

static inline ssize_t say(int fd, const char *text)
{
	ssize_t sent = send(fd, text, strlen(text), MSG_NOSIGNAL);

	pump(2);
	return sent;
}

/* What comes until silence, as text; "" if nothing does. *ended: the server closed. */
static inline const char *hear(int fd, bool *ended)
{
	static char text[65536];
	size_t used = 0;

	*ended = false;
	for (int idle = 0; idle < 60 && used < sizeof(text) - 1;) {
		ssize_t got = recv(fd, text + used, sizeof(text) - 1 - used, 0);

		if (got > 0) {
			used += (size_t)got;
			idle = 0;
			continue;
		}
		if (!got || errno != EAGAIN) {
			*ended = true;
			break;
		}
		pump(2);
		idle++;
	}
	text[used] = '\0';
	return text;
}

static inline bool answers(int fd, const char *request, const char *status)
{
	bool ended;

	say(fd, request);
	return !strncmp(hear(fd, &ended), status, strlen(status));
}

static inline bool is_cut(int fd)
{
	bool ended;

	hear(fd, &ended);
	return ended;
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
#define OK "HTTP/1.1 200 OK\r\n"
