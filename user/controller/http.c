// SPDX-License-Identifier: GPL-2.0
#include "controller/http.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "controller/clock.h"
#include "controller/http_listen.h"

#define SWEEP_MS 100
#define SECOND_NS 1000000000ULL
#define CROWDED_NS (WEIR_HTTP_CROWDED_MS * 1000000ULL)
#define INPUT_MAX (4 * WEIR_HTTP_HEADERS_MAX)

/*
 * libevent's server has no bound on connections, and its timeouts begin anew with each byte. So
 * each connection's bufferevent is made here and held by a reference: that it has lost its
 * callbacks shows that the server is done with it, and shutting its socket down ends it.
 */
struct connection {
	struct bufferevent *events; /* NULL: a free one */
	uint64_t since_ns;	    /* accepted, or last answered */
	bool answered;
	bool cut;
};

struct weir_http {
	struct weir_http_options options;
	struct evhttp *server;
	struct event_base *base;
	struct evconnlistener *listener; /* the server's */
	struct event *sweeper;
	struct weir_http_counts counts;
	struct connection connections[WEIR_HTTP_CONNECTIONS_MAX];
};

/* ---- pages ---- */

struct weir_page *weir_page_new(const char *type, const void *bytes, size_t length, bool owns_bytes)
{
	struct weir_page *page = bytes ? malloc(sizeof(*page)) : NULL;

	if (page)
		*page = (struct weir_page){ type, bytes, length, 1, owns_bytes };
	else if (owns_bytes)
		free((void *)bytes);
	return page;
}

struct weir_page *weir_page_get(struct weir_page *page)
{
	if (page)
		page->users++;
	return page;
}

void weir_page_put(struct weir_page *page)
{
	if (!page || --page->users)
		return;
	if (page->owns_bytes)
		free((void *)page->bytes);
	free(page);
}

static void page_sent(const void *bytes, size_t length, void *page)
{
	(void)bytes;
	(void)length;
	weir_page_put(page);
}

/* ---- connections ---- */

static bool is_over(const struct connection *connection)
{
	bufferevent_event_cb on_event;

	bufferevent_getcb(connection->events, NULL, NULL, &on_event, NULL);
	return !on_event;
}

/* Done with by the server: our reference was the last, and the socket is closed. */
static void let_go(struct weir_http *http, struct connection *connection)
{
	bufferevent_decref(connection->events);
	*connection = (struct connection){ 0 };
	http->counts.connections--;
}

static uint64_t patience_ns(const struct weir_http *http, const struct connection *connection)
{
	bool taking = evbuffer_get_length(bufferevent_get_output(connection->events));

	if (http->counts.connections == WEIR_HTTP_CONNECTIONS_MAX)
		return taking ? WEIR_HTTP_CROWDED_TAKE_SECONDS * SECOND_NS : CROWDED_NS;
	if (taking)
		return WEIR_HTTP_TAKE_SECONDS * SECOND_NS;
	return (connection->answered ? WEIR_HTTP_KEEP_SECONDS : WEIR_HTTP_ASK_SECONDS) * SECOND_NS;
}

/* The server then reads an end, and frees it. What is not taken yet goes at once: left to itself
 * the kernel would keep it for minutes. */
static void cut_off(struct weir_http *http, struct connection *connection)
{
	const struct linger none = { .l_onoff = 1 };
	int fd = bufferevent_getfd(connection->events);

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	shutdown(fd, SHUT_RDWR);
	connection->cut = true;
	http->counts.cut_off++;
}

static void sweep(struct weir_http *http)
{
	uint64_t now_ns = http->options.now_ns();

	for (size_t i = 0; i < WEIR_HTTP_CONNECTIONS_MAX; i++) {
		struct connection *connection = &http->connections[i];

		if (!connection->events)
			continue;
		if (is_over(connection)) {
			let_go(http, connection);
		} else if (!connection->cut &&
			   now_ns - connection->since_ns > patience_ns(http, connection)) {
			cut_off(http, connection);
		}
	}
}

/* Once a second while nobody is there: a listener that rests for want of descriptors goes on. */
static void plan_sweep(struct weir_http *http)
{
	const struct timeval soon = { .tv_usec = SWEEP_MS * 1000 }, later = { .tv_sec = 1 };

	event_add(http->sweeper, http->counts.connections ? &soon : &later);
}

static void on_sweep(evutil_socket_t fd, short what, void *arg)
{
	struct weir_http *http = arg;

	(void)fd;
	(void)what;
	sweep(http);
	if (http->counts.connections < WEIR_HTTP_CONNECTIONS_MAX)
		evconnlistener_enable(http->listener);
	plan_sweep(http);
}

/* The server asks for a connection's bufferevent once it has accepted it. */
static struct bufferevent *on_accepted(struct event_base *base, void *arg)
{
	struct weir_http *http = arg;
	struct connection *free_one = http->connections;
	struct connection *end = free_one + WEIR_HTTP_CONNECTIONS_MAX;
	struct bufferevent *events = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);

	/* Without memory the server tries by itself, and fails. */
	if (!events)
		return NULL;
	while (free_one < end && free_one->events)
		free_one++;
	/* The listener rests while all are taken. Should it not, the server is on its own. */
	if (free_one == end)
		return events;
	*free_one = (struct connection){ .events = events, .since_ns = http->options.now_ns() };
	bufferevent_incref(events);
	bufferevent_setwatermark(events, EV_READ, 0, INPUT_MAX);
	if (++http->counts.connections == 1)
		plan_sweep(http);
	if (http->counts.connections == WEIR_HTTP_CONNECTIONS_MAX)
		evconnlistener_disable(http->listener);
	return events;
}

/* Out of descriptors, mostly: a rest, or the loop would spin. arg is the server's, not ours. */
static void on_accept_error(struct evconnlistener *listener, void *arg)
{
	(void)arg;
	evconnlistener_disable(listener);
}

/* ---- requests ---- */

static struct connection *connection_of(struct weir_http *http, struct evhttp_request *request)
{
	struct evhttp_connection *made = evhttp_request_get_connection(request);
	struct bufferevent *events = made ? evhttp_connection_get_bufferevent(made) : NULL;

	for (size_t i = 0; i < WEIR_HTTP_CONNECTIONS_MAX; i++) {
		if (events && http->connections[i].events == events)
			return &http->connections[i];
	}
	return NULL;
}

static void add_headers(struct evhttp_request *request, const char *type, size_t length)
{
	static const char *const fixed[][2] = {
		{ "Content-Security-Policy",
		  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
		  "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'" },
		{ "X-Content-Type-Options", "nosniff" },
		{ "X-Frame-Options", "DENY" },
		{ "Referrer-Policy", "no-referrer" },
		{ "Cross-Origin-Resource-Policy", "same-origin" },
		{ "Cross-Origin-Opener-Policy", "same-origin" },
		{ "Cache-Control", "no-store" },
	};
	struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
	char text[24];

	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		evhttp_add_header(headers, fixed[i][0], fixed[i][1]);
	snprintf(text, sizeof(text), "%zu", length);
	evhttp_add_header(headers, "Content-Type", type);
	evhttp_add_header(headers, "Content-Length", text);
}

static bool is_head(const struct evhttp_request *request)
{
	return evhttp_request_get_command(request) == EVHTTP_REQ_HEAD;
}

static void send_page(struct evhttp_request *request, struct weir_page *page)
{
	struct evbuffer *body = evhttp_request_get_output_buffer(request);

	add_headers(request, page->type, page->length);
	if (is_head(request) || !page->length ||
	    evbuffer_add_reference(body, page->bytes, page->length, page_sent, page))
		weir_page_put(page);
	evhttp_send_reply(request, 200, "OK", NULL);
}

static void refuse(struct weir_http *http, struct evhttp_request *request, int code,
		   const char *reason, const char *sentence)
{
	struct evbuffer *body = evhttp_request_get_output_buffer(request);

	http->counts.refused++;
	if (code == 405)
		evhttp_add_header(evhttp_request_get_output_headers(request), "Allow", "GET, HEAD");
	add_headers(request, "text/plain; charset=utf-8", strlen(sentence));
	if (!is_head(request))
		evbuffer_add(body, sentence, strlen(sentence));
	evhttp_send_reply(request, code, reason, NULL);
}

static void answer(struct weir_http *http, struct evhttp_request *request)
{
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(request);
	const char *path = uri ? evhttp_uri_get_path(uri) : NULL;
	const char *host = evhttp_find_header(evhttp_request_get_input_headers(request), "Host");
	struct weir_page *page;
	int rc = -ENOENT;

	if (!weir_http_host_is_ours(host, http->options.hosts(http->options.context))) {
		refuse(http, request, 403, "Forbidden",
		       "this server answers to addresses, to localhost and to the names in "
		       "metrics.hosts: use one of them\n");
		return;
	}
	if (!is_head(request) && evhttp_request_get_command(request) != EVHTTP_REQ_GET) {
		refuse(http, request, 405, "Method Not Allowed",
		       "nothing can be changed here: use GET or HEAD\n");
		return;
	}
	page = path ? http->options.page(http->options.context, path, &rc) : NULL;
	if (page)
		send_page(request, page);
	else if (rc == -ENOENT)
		refuse(http, request, 404, "Not Found",
		       "there is no such page: /metrics, and with the dashboard /, /api/show, "
		       "/api/top, /api/events\n");
	else
		refuse(http, request, 503, "Service Unavailable",
		       "the controller is out of memory: try again\n");
}

static void on_request(struct evhttp_request *request, void *arg)
{
	struct weir_http *http = arg;
	struct connection *connection = connection_of(http, request);

	http->counts.requests++;
	if (connection) {
		connection->since_ns = http->options.now_ns();
		connection->answered = true;
	}
	answer(http, request);
}

/* ---- life ---- */

static bool make_server(struct weir_http *http, int fd)
{
	struct evhttp_bound_socket *bound;
	struct evconnlistener *listener;

	http->sweeper = evtimer_new(http->base, on_sweep, http);
	http->server = evhttp_new(http->base);
	listener = evconnlistener_new(http->base, NULL, NULL,
				      LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
	if (!listener)
		close(fd);
	if (!http->sweeper || !http->server || !listener) {
		if (listener)
			evconnlistener_free(listener);
		return false;
	}
	evconnlistener_set_error_cb(listener, on_accept_error);
	bound = evhttp_bind_listener(http->server, listener);
	if (!bound) {
		evconnlistener_free(listener);
		return false;
	}
	http->listener = listener;
	evhttp_set_bevcb(http->server, on_accepted, http);
	evhttp_set_gencb(http->server, on_request, http);
	evhttp_set_max_headers_size(http->server, WEIR_HTTP_HEADERS_MAX);
	evhttp_set_max_body_size(http->server, WEIR_HTTP_BODY_MAX);
	/* Every method comes to on_request, which says what there is instead. */
	evhttp_set_allowed_methods(http->server, UINT16_MAX);
	/* Deadlines are the sweep's; this is longer than any of them. */
	evhttp_set_timeout(http->server, 2 * WEIR_HTTP_KEEP_SECONDS);
	plan_sweep(http);
	return true;
}

int weir_http_start(struct weir_http **http, struct event_base *base,
		    const struct weir_http_options *options, struct weir_error *err)
{
	struct weir_http *made;
	int fd = weir_http_listen(options->listen, err);

	if (fd < 0)
		return fd;
	made = calloc(1, sizeof(*made));
	if (made) {
		made->options = *options;
		made->base = base;
		if (!options->now_ns)
			made->options.now_ns = weir_monotonic_ns;
	} else {
		close(fd);
	}
	if (!made || !make_server(made, fd)) {
		weir_http_stop(made);
		return weir_error_set(err, -ENOMEM, "no memory for the HTTP server");
	}
	*http = made;
	return 0;
}

void weir_http_stop(struct weir_http *http)
{
	if (!http)
		return;
	/* The server frees its listener and its connections; what we hold of them goes after. */
	if (http->server)
		evhttp_free(http->server);
	for (size_t i = 0; i < WEIR_HTTP_CONNECTIONS_MAX; i++) {
		if (http->connections[i].events)
			let_go(http, &http->connections[i]);
	}
	if (http->sweeper)
		event_free(http->sweeper);
	free(http);
}

struct weir_http_counts weir_http_counts(const struct weir_http *http)
{
	return http->counts;
}
