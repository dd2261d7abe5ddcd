/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A small, read-only HTTP server around libevent's: GET and HEAD of a few pages, for a scraper
 * and a browser. It shares the controller's loop, so whatever clients do is bounded: at most
 * WEIR_HTTP_CONNECTIONS_MAX connections, each with so long to ask and so long to take its answer
 * in all, not from byte to byte; who idles makes room for who waits. Pages are counted references:
 * a thousand slow readers of one page hold one page.
 *
 * It answers only to an address, to localhost and to the names it was given (Host), so that a
 * web page elsewhere can't reach it by a name of its own (DNS rebinding).
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/error.h"
#include "controller/policy.h"

#define WEIR_HTTP_CONNECTIONS_MAX 128
#define WEIR_HTTP_HEADERS_MAX 8192 /* bytes of a request */
#define WEIR_HTTP_BODY_MAX 1024	   /* which nothing here wants */
#define WEIR_HTTP_CROWDED_MS 500   /* so long may one idle while all connections are taken … */
#define WEIR_HTTP_CROWDED_TAKE_SECONDS 2 /* … and so long take an answer */
#define WEIR_HTTP_ASK_SECONDS 5	   /* from the connection to the end of its first request */
#define WEIR_HTTP_TAKE_SECONDS 10  /* to take an answer */
#define WEIR_HTTP_KEEP_SECONDS 65  /* from an answer to the end of the next request */

/* What a path gives, shared by all who are taking it. */
struct weir_page {
	const char *type; /* Content-Type, a constant */
	const void *bytes;
	size_t length;
	unsigned int users;
	bool owns_bytes; /* from malloc */
};

/* With one user. NULL: no memory, and bytes are freed if it would own them. */
struct weir_page *weir_page_new(const char *type, const void *bytes, size_t length,
				bool owns_bytes);
/* One user more, or less; the last frees it. NULL is fine. */
struct weir_page *weir_page_get(struct weir_page *page);
void weir_page_put(struct weir_page *page);

struct weir_http_counts {
	uint64_t requests;    /* answered, errors included */
	uint64_t refused;     /* of them: Host, method, unknown path */
	uint64_t cut_off;     /* connections ended for being slow, idle, or in the way */
	uint32_t connections; /* now */
};

struct weir_http_options {
	const char *listen; /* as the policy's metrics.listen, but not off; for the start only */
	/* The names it answers to now. */
	const struct weir_texts *(*hosts)(void *context);
	/* The page of a path, with one user for the caller; NULL with -ENOENT or -ENOMEM in *rc. */
	struct weir_page *(*page)(void *context, const char *path, int *rc);
	uint64_t (*now_ns)(void); /* for tests; NULL: weir_monotonic_ns */
	void *context;
};

struct weir_http;

/* -EADDRINUSE and what else the system says, with a sentence that names the address. */
int weir_http_start(struct weir_http **http, struct event_base *base,
		    const struct weir_http_options *options, struct weir_error *err);
/* Every connection ends. NULL is fine. */
void weir_http_stop(struct weir_http *http);
struct weir_http_counts weir_http_counts(const struct weir_http *http);

/* Whether a Host header (NULL: there is none) means this server: any address, localhost, one of
 * `hosts`; with a port or without. */
bool weir_http_host_is_ours(const char *host, const struct weir_texts *hosts);
/* Whether an address as in `listen` can be reached by this machine alone. */
bool weir_http_is_loopback(const char *listen);
