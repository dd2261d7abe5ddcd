// SPDX-License-Identifier: GPL-2.0
#include "controller/control.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "controller/clock.h"
#include "controller/control_socket.h"

#define WRITE_SECONDS 10 /* without a byte read: the client is given up */
/* While all places are taken: so long may one ask nothing, or take an answer's part. */
#define CROWDED_ASK_NS 250000000ULL
#define CROWDED_TAKE_NS 2000000000ULL
#define CROWDED_LOOK_MS 50

enum state {
	WAITING,   /* for a request */
	ANSWERING, /* the handler owes an answer */
	STREAMING, /* parts are on their way */
	SUBSCRIBED,
	LEAVING, /* closed once the output is sent */
};

struct weir_control_client {
	struct weir_control *control;
	struct weir_control_client *next, **link; /* in the list of clients */
	struct bufferevent *events;
	enum state state;
	uint64_t since_ns; /* it came, or its last answer or part of one was written */
	bool ended;   /* it sends no more: close after the last answer */
	bool reading; /* on_read is running */
	weir_control_next part;
	void (*part_end)(void *context);
	void *part_context;
};

struct weir_control {
	struct weir_control_options options;
	struct event_base *base;
	struct event *accepting;
	struct event *resting; /* no descriptors, or no place yet: accepts again in a while */
	int fd;
	char path[128];
	dev_t device; /* of the socket's file: whether it is still ours */
	ino_t inode;
	unsigned int count;
	struct weir_control_client *clients;
};

/* ---- a client's end ---- */

/* What it takes at once; else only the loop may take from the front of its output. */
static void client_flush(struct weir_control_client *client)
{
	struct evbuffer *output = bufferevent_get_output(client->events);

	evbuffer_unfreeze(output, 1);
	evbuffer_write(output, bufferevent_getfd(client->events));
}

static void client_close(struct weir_control_client *client)
{
	struct weir_control *control = client->control;

	*client->link = client->next;
	if (client->next)
		client->next->link = client->link;
	control->count--;
	if (client->part_end)
		client->part_end(client->part_context);
	else if ((client->state == ANSWERING || client->state == SUBSCRIBED) &&
		 control->options.closed)
		control->options.closed(control->options.context, client);
	bufferevent_free(client->events);
	free(client);
}

/* ---- output ---- */

static int dump(const char *bytes, size_t size, void *output)
{
	return evbuffer_add(output, bytes, size);
}

static bool send_line(struct weir_control_client *client, json_t *line)
{
	struct evbuffer *output = bufferevent_get_output(client->events);
	bool sent = line && !json_dump_callback(line, dump, output, JSON_COMPACT) &&
		    !evbuffer_add(output, "\n", 1);

	json_decref(line);
	return sent;
}

static void on_read(struct bufferevent *events, void *arg);

/* Where nothing is owed to it: of one that sends no more, its requests may still be there. */
static enum state owed_nothing(const struct weir_control_client *client)
{
	struct evbuffer *input = bufferevent_get_input(client->events);

	if (!client->ended || evbuffer_search_eol(input, NULL, NULL, EVBUFFER_EOL_LF).pos >= 0)
		return WAITING;
	return LEAVING;
}

/* After an answer: the next request may already be there. */
static void answered(struct weir_control_client *client)
{
	client->since_ns = weir_monotonic_ns();
	client->state = owed_nothing(client);
	if (!client->reading)
		bufferevent_trigger(client->events, EV_READ, BEV_TRIG_IGNORE_WATERMARKS);
}

static void fail_line(struct weir_control_client *client, int code, const char *sentence)
{
	send_line(client,
		  json_pack("{s:b, s:i, s:s}", "ok", false, "code", code, "error", sentence));
}

void weir_control_fail(struct weir_control_client *client, int code, const char *sentence)
{
	fail_line(client, code, sentence);
	answered(client);
}

void weir_control_reply(struct weir_control_client *client, json_t *result)
{
	if (!result)
		fail_line(client, 2, "the controller is out of memory: try again");
	else
		send_line(client, json_pack("{s:b, s:o}", "ok", true, "result", result));
	answered(client);
}

static void send_part(struct weir_control_client *client)
{
	bool more = false;
	json_t *part = client->part(client->part_context, &more);

	client->since_ns = weir_monotonic_ns();
	if (part && more) {
		send_line(client,
			  json_pack("{s:b, s:b, s:o}", "ok", true, "more", true, "result", part));
		return;
	}
	client->part_end(client->part_context);
	client->part_end = NULL;
	weir_control_reply(client, part);
}

void weir_control_stream(struct weir_control_client *client, weir_control_next next,
			 void (*end)(void *context), void *context)
{
	client->part = next;
	client->part_end = end;
	client->part_context = context;
	client->state = STREAMING;
	send_part(client);
}

void weir_control_subscribe(struct weir_control_client *client)
{
	client->state = SUBSCRIBED;
	bufferevent_set_timeouts(client->events, NULL, NULL);
}

bool weir_control_push(struct weir_control_client *client, const json_t *part)
{
	struct evbuffer *output = bufferevent_get_output(client->events);

	if (evbuffer_get_length(output) > WEIR_CONTROL_OUTPUT_MAX)
		return false;
	/* "O" takes a reference of its own, which changes nothing else in the part. */
	return send_line(client, json_pack("{s:b, s:b, s:O}", "ok", true, "more", true, "result",
					   (json_t *)part));
}

/* All output is sent. */
static void on_written(struct bufferevent *events, void *arg)
{
	struct weir_control_client *client = arg;

	if (client->state == STREAMING)
		send_part(client);
	else if (client->state == LEAVING)
		client_close(client);
	else if (client->state == WAITING && evbuffer_get_length(bufferevent_get_input(events)))
		on_read(events, client);
}

/* ---- input ---- */

static void handle(struct weir_control_client *client, const char *line, size_t length)
{
	const struct weir_control_options *options = &client->control->options;
	json_t *request, *arguments;
	const char *command = NULL;
	json_error_t error;

	client->state = ANSWERING;
	request = json_loadb(line, length, JSON_REJECT_DUPLICATES, &error);
	if (!request) {
		weir_control_fail(client, 1, "the request is no JSON object in one line");
		return;
	}
	arguments = json_object_get(request, "arguments");
	command = json_string_value(json_object_get(request, "command"));
	if (!command || (arguments && !json_is_object(arguments))) {
		json_decref(request);
		weir_control_fail(client, 1,
				  "the request has no text 'command', or 'arguments' that are no "
				  "object");
		return;
	}
	arguments = arguments ? json_incref(arguments) : json_object();
	options->handler(options->context, client, command, arguments);
	json_decref(arguments);
	json_decref(request);
}

static void leave(struct weir_control_client *client, int code, const char *sentence)
{
	fail_line(client, code, sentence);
	client->state = LEAVING;
	bufferevent_disable(client->events, EV_READ);
}

/* Whoever asks and doesn't read the answers waits. */
static bool may_answer(const struct weir_control_client *client)
{
	return evbuffer_get_length(bufferevent_get_output(client->events)) <
	       WEIR_CONTROL_OUTPUT_MAX;
}

/*
 * Reading stops while requests wait and their room is full. Not by libevent's high watermark:
 * as long as the input stays above it, deferred callbacks are called again and again.
 */
static void read_on(struct weir_control_client *client)
{
	if (!client->ended && client->state != LEAVING &&
	    !(bufferevent_get_enabled(client->events) & EV_READ))
		bufferevent_enable(client->events, EV_READ);
}

static void on_read(struct bufferevent *events, void *arg)
{
	struct weir_control_client *client = arg;
	struct evbuffer *input = bufferevent_get_input(events);
	size_t length = 0;
	char *line;

	client->reading = true;
	while (client->state == WAITING && may_answer(client) &&
	       (line = evbuffer_readln(input, &length, EVBUFFER_EOL_LF))) {
		handle(client, line, length);
		free(line);
	}
	client->reading = false;
	/* What a subscriber says is of no interest. */
	if (client->state == SUBSCRIBED)
		evbuffer_drain(input, evbuffer_get_length(input));
	if (evbuffer_get_length(input) < WEIR_CONTROL_REQUEST_MAX)
		read_on(client);
	else if (client->state == WAITING && may_answer(client))
		leave(client, 1, "the request is longer than 64 KiB");
	else
		bufferevent_disable(events, EV_READ);
	if (client->state == LEAVING && !evbuffer_get_length(bufferevent_get_output(events)))
		client_close(client);
}

static void on_event(struct bufferevent *events, short what, void *arg)
{
	struct weir_control_client *client = arg;

	/* The write side is shut by some clients once they have asked: they still get the answer.
	 */
	if (what & BEV_EVENT_EOF && client->state != SUBSCRIBED &&
	    (client->state != WAITING || evbuffer_get_length(bufferevent_get_output(events)))) {
		client->ended = true;
		if (client->state == WAITING)
			client->state = owed_nothing(client);
		return;
	}
	/* Idle while we owe an answer is no idleness of the client's. */
	if (what == (BEV_EVENT_TIMEOUT | BEV_EVENT_READING) && client->state != WAITING) {
		bufferevent_enable(client->events, EV_READ);
		return;
	}
	client_close(client);
}

/* ---- clients come ---- */

static void client_new(struct weir_control *control, int fd)
{
	const struct timeval idle = { .tv_sec = control->options.idle_seconds };
	const struct timeval slow = { .tv_sec = WRITE_SECONDS };
	struct weir_control_client *client = calloc(1, sizeof(*client));

	if (client)
		client->events = bufferevent_socket_new(
			control->base, fd, BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
	if (!client || !client->events) {
		free(client);
		close(fd);
		return;
	}
	client->control = control;
	client->since_ns = weir_monotonic_ns();
	client->link = &control->clients;
	client->next = control->clients;
	if (client->next)
		client->next->link = &client->next;
	control->clients = client;
	control->count++;
	bufferevent_setcb(client->events, on_read, on_written, on_event, client);
	bufferevent_set_timeouts(client->events, &idle, &slow);
	bufferevent_enable(client->events, EV_READ | EV_WRITE);
	if (!weir_control_peer_allowed(fd, control->options.group))
		leave(client, 2,
		      "this user may not use weir: it takes root or a member of the socket's "
		      "group");
	else if (control->count > WEIR_CONTROL_CLIENTS_MAX)
		leave(client, 2, "too many clients are connected: try again");
}

static void rest(struct weir_control *control, unsigned int ms)
{
	const struct timeval time = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

	event_del(control->accepting);
	event_add(control->resting, &time);
}

/* How long it has kept its place without use; 0 for who is owed an answer, or watches. */
static uint64_t idle_ns(const struct weir_control_client *client, uint64_t now_ns)
{
	bool takes = evbuffer_get_length(bufferevent_get_output(client->events));

	if (client->state == ANSWERING || client->state == SUBSCRIBED)
		return 0;
	return (now_ns - client->since_ns) / (takes ? CROWDED_TAKE_NS / CROWDED_ASK_NS : 1);
}

/*
 * A place for one more: who idles makes room for who comes. False: nobody has idled for long
 * enough yet. True and none made: all are busy, which whoever comes is told.
 */
static bool make_room(struct weir_control *control)
{
	struct weir_control_client *idlest = NULL;
	uint64_t most = 0, now_ns = weir_monotonic_ns();

	if (control->count < WEIR_CONTROL_CLIENTS_MAX)
		return true;
	for (struct weir_control_client *client = control->clients; client; client = client->next) {
		uint64_t idle = idle_ns(client, now_ns);

		if (idle > most) {
			most = idle;
			idlest = client;
		}
	}
	if (idlest && most < CROWDED_ASK_NS)
		return false;
	if (idlest) {
		fail_line(idlest, 2, "others wait for a place: ask at once, and read the answer");
		client_flush(idlest);
		client_close(idlest);
	}
	return true;
}

static void on_accept(evutil_socket_t fd, short what, void *arg)
{
	struct weir_control *control = arg;
	int client;

	(void)what;
	/* Over the maximum there is room for some who are told so; more wait in the queue. */
	while (control->count < 2 * WEIR_CONTROL_CLIENTS_MAX) {
		if (!make_room(control)) {
			rest(control, CROWDED_LOOK_MS);
			return;
		}
		client = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (client >= 0) {
			client_new(control, client);
			continue;
		}
		if (errno == EINTR || errno == ECONNABORTED)
			continue;
		if (errno == EAGAIN)
			return;
		break;
	}
	rest(control, 1000);
}

static void on_rested(evutil_socket_t fd, short what, void *arg)
{
	struct weir_control *control = arg;

	(void)fd;
	(void)what;
	event_add(control->accepting, NULL);
}

/* ---- start and stop ---- */

void *weir_control_client_context(const struct weir_control_client *client)
{
	return client->control->options.context;
}

int weir_control_start(struct weir_control **control, struct event_base *base,
		       const struct weir_control_options *options, struct weir_error *err)
{
	struct weir_control *made;
	struct stat status = { 0 };
	int fd = weir_control_listen(options->path, options->group, err);

	if (fd < 0)
		return fd;
	made = calloc(1, sizeof(*made));
	if (!made) {
		close(fd);
		return weir_error_set(err, -ENOMEM, "no memory for the control socket");
	}
	made->options = *options;
	made->base = base;
	made->fd = fd;
	/* weir_control_listen has bounded it. */
	memcpy(made->path, options->path, strlen(options->path) + 1);
	made->options.path = made->path;
	stat(made->path, &status);
	made->device = status.st_dev;
	made->inode = status.st_ino;
	made->accepting = event_new(base, fd, EV_READ | EV_PERSIST, on_accept, made);
	made->resting = evtimer_new(base, on_rested, made);
	if (!made->accepting || !made->resting || event_add(made->accepting, NULL)) {
		weir_control_stop(made);
		return weir_error_set(err, -ENOMEM, "no memory for the control socket");
	}
	*control = made;
	return 0;
}

void weir_control_close_door(struct weir_control *control)
{
	struct stat status;

	if (control->fd < 0)
		return;
	if (control->accepting)
		event_free(control->accepting);
	if (control->resting)
		event_free(control->resting);
	control->accepting = control->resting = NULL;
	if (!stat(control->path, &status) && status.st_dev == control->device &&
	    status.st_ino == control->inode)
		unlink(control->path);
	close(control->fd);
	control->fd = -1;
}

void weir_control_stop(struct weir_control *control)
{
	if (!control)
		return;
	weir_control_close_door(control);
	while (control->clients) {
		struct weir_control_client *client = control->clients;

		client_flush(client);
		client_close(client);
	}
	/* What libevent has put off holds their memory. */
	event_base_loop(control->base, EVLOOP_NONBLOCK);
	free(control);
}
