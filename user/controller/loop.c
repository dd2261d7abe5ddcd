// SPDX-License-Identifier: GPL-2.0
#include "controller/clock.h"
#include "controller/loop.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "controller/control_socket.h"
#include "controller/loop_private.h"

static uint64_t realtime_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

void weir_loop_log(void *context, const char *line)
{
	struct weir_loop *loop = context;

	weir_journal_add(loop->journal, realtime_ns(), line);
	if (loop->options->log)
		loop->options->log(loop->options->log_context, line);
}

static void log_format(struct weir_loop *loop, const char *format, const char *text)
{
	struct weir_error line;

	weir_error_set(&line, 0, format, text);
	weir_loop_log(loop, line.text);
}

/* ---- the word to systemd ---- */

static void notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length = path ? strlen(path) : 0;
	int fd;

	if (!length || length >= sizeof(address.sun_path))
		return;
	memcpy(address.sun_path, path, length);
	/* '@' stands for the NUL of an abstract address. */
	if (*path == '@')
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address,
	       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
	close(fd);
}

/* ---- sampled refusals, on to the subscribers ---- */

static void push(struct weir_subscriber *subscriber, json_t *part, uint64_t left_out)
{
	json_int_t all = (json_int_t)left_out + (json_int_t)subscriber->left_out;

	json_object_set_new(part, "left_out", json_integer(all));
	if (weir_control_push(subscriber->client, part))
		subscriber->left_out = 0;
	else
		subscriber->left_out += left_out + 1;
}

static int on_sample(void *context, void *data, size_t size)
{
	const struct weir_event *event = data;
	struct weir_loop *loop = context;
	int64_t offset = (int64_t)(realtime_ns() - weir_monotonic_ns());
	json_t *part;

	if (size < sizeof(*event) || !loop->subscriber_count)
		return 0;
	part = weir_report_event(weir_engine_dataplane(loop->engine), event, offset);
	for (size_t i = 0; i < loop->subscriber_count && part; i++)
		push(&loop->subscribers[i], part, event->suppressed);
	json_decref(part);
	return 0;
}

static void on_ring(evutil_socket_t fd, short what, void *context)
{
	struct weir_loop *loop = context;

	(void)fd;
	(void)what;
	ring_buffer__consume(loop->ring);
}

/* ---- time, links, signals ---- */

int weir_loop_undo(struct weir_loop *loop, struct weir_error *err)
{
	int rc = weir_engine_undo(loop->engine, err);

	if (rc)
		return rc;
	rc = weir_loop_services_apply(loop, err);
	weir_loop_web_apply(loop);
	return rc;
}

/* The time of a change that waits is over: back, however long it takes to succeed. */
static void undo_in_time(struct weir_loop *loop)
{
	struct weir_waiting waiting = weir_engine_waiting(loop->engine);
	struct weir_error err = { 0 };
	bool failing;

	if (waiting.state != WEIR_WAITING || waiting.left_ns)
		return;
	failing = weir_loop_undo(loop, &err);
	if (failing && !loop->undo_failing)
		weir_loop_log(loop, err.text);
	loop->undo_failing = failing;
}

static void on_second(evutil_socket_t fd, short what, void *context)
{
	struct weir_loop *loop = context;

	(void)fd;
	(void)what;
	undo_in_time(loop);
	weir_engine_tick(loop->engine);
	weir_rates_update(&loop->rates, weir_engine_dataplane(loop->engine), weir_monotonic_ns());
}

static void on_link(evutil_socket_t fd, short what, void *context)
{
	struct weir_loop *loop = context;

	(void)fd;
	(void)what;
	weir_engine_tick(loop->engine);
}

static void on_end(evutil_socket_t signal, short what, void *context)
{
	struct weir_loop *loop = context;

	(void)what;
	log_format(loop, "%s: ending, the limits stay in force",
		   signal == SIGINT ? "SIGINT" : "SIGTERM");
	event_base_loopbreak(loop->base);
}

int weir_loop_reload(struct weir_loop *loop, const struct weir_terms *terms,
		     struct weir_error *err)
{
	int rc = weir_engine_reload(loop->engine, terms, err);
	const struct weir_policy *policy;

	if (rc) {
		loop->reloads_refused++;
		log_format(loop, "reload refused, nothing changed: %s", err->text);
		return rc;
	}
	loop->reloads++;
	weir_loop_web_apply(loop);
	rc = weir_loop_services_apply(loop, err);
	if (rc)
		log_format(loop, "reload: the limits are in force, but: %s", err->text);
	policy = weir_engine_policy(loop->engine);
	if ((!loop->options->socket && strcmp(policy->control.socket, loop->socket)) ||
	    strcmp(policy->control.group, loop->group))
		weir_loop_log(loop, "control: a new socket or group counts from the next start");
	return rc;
}

static void on_hangup(evutil_socket_t fd, short what, void *context)
{
	struct weir_error err = { 0 };

	(void)fd;
	(void)what;
	weir_loop_reload(context, NULL, &err);
}

/* ---- start ---- */

static int watch(struct weir_loop *loop, struct event *event, const struct timeval *every)
{
	if (!event || event_add(event, every))
		return -ENOMEM;
	loop->watched[loop->watched_count++] = event;
	return 0;
}

static int watch_signals(struct weir_loop *loop)
{
	signal(SIGPIPE, SIG_IGN);
	if (watch(loop, evsignal_new(loop->base, SIGTERM, on_end, loop), NULL) ||
	    watch(loop, evsignal_new(loop->base, SIGINT, on_end, loop), NULL) ||
	    watch(loop, evsignal_new(loop->base, SIGHUP, on_hangup, loop), NULL))
		return -ENOMEM;
	return 0;
}

static int watch_engine(struct weir_loop *loop, struct weir_error *err)
{
	const struct timeval second = { .tv_sec = 1 };
	struct weir_dataplane *dataplane = weir_engine_dataplane(loop->engine);
	int links = weir_engine_netlink_fd(loop->engine);
	const short reads = EV_READ | EV_PERSIST;

	loop->ring = ring_buffer__new(dataplane->events_fd, on_sample, loop, NULL);
	if (!loop->ring)
		return weir_error_set(err, -errno, "the ring buffer of events: %s",
				      strerror(errno));
	if (weir_ranking_new(&loop->ranking, loop->base, dataplane) ||
	    watch(loop, event_new(loop->base, -1, EV_PERSIST, on_second, loop), &second) ||
	    watch(loop,
		  event_new(loop->base, ring_buffer__epoll_fd(loop->ring), reads, on_ring, loop),
		  NULL) ||
	    (links >= 0 && watch(loop, event_new(loop->base, links, reads, on_link, loop), NULL)) ||
	    watch(loop,
		  event_new(loop->base, weir_engine_clock_fd(loop->engine), reads, on_link, loop),
		  NULL))
		return weir_error_set(err, -ENOMEM, "out of memory");
	weir_rates_update(&loop->rates, dataplane, weir_monotonic_ns());
	return 0;
}

/* Where to listen and for whom is needed before the engine starts: a socket that can't be had
 * must not cost a data plane. */
static int read_control(struct weir_loop *loop, struct weir_error *err)
{
	const char *config = loop->options->config ? loop->options->config : WEIR_CONFIG_DEFAULT;
	struct weir_policy *policy;
	int rc = weir_policy_load_file(config, &policy, err);

	if (rc)
		return rc;
	if (loop->options->socket && strlen(loop->options->socket) >= sizeof(loop->socket))
		rc = weir_error_set(err, -ENAMETOOLONG, "socket '%s': at most %zu characters",
				    loop->options->socket, sizeof(loop->socket) - 1);
	else
		snprintf(loop->socket, sizeof(loop->socket), "%s",
			 loop->options->socket ? loop->options->socket : policy->control.socket);
	snprintf(loop->group, sizeof(loop->group), "%s", policy->control.group);
	weir_policy_free(policy);
	return rc;
}

static int start_control(struct weir_loop *loop, struct weir_error *err)
{
	struct weir_control_options options = {
		.path = loop->socket,
		.idle_seconds = WEIR_CONTROL_IDLE_SECONDS,
		.handler = weir_commands_handle,
		.closed = weir_commands_closed,
		.context = loop,
	};
	int rc = read_control(loop, err);

	if (rc)
		return rc;
	options.path = loop->socket;
	loop->group_id = 0;
	if (!weir_control_group(loop->group, &loop->group_id))
		log_format(loop,
			   "note: this system has no group '%1$s' (control.group): root needs "
			   "none; for other users `groupadd -r %1$s` and start weir again",
			   loop->group);
	options.group = loop->group_id;
	return weir_control_start(&loop->control, loop->base, &options, err);
}

static int start(struct weir_loop *loop, struct weir_error *err)
{
	const char *text = loop->options->session;
	struct weir_session session = { 0 };
	const struct weir_engine_options options = {
		.config = loop->options->config,
		.pins = loop->pins,
		.overrides = loop->options->overrides,
		.log = weir_loop_log,
		.log_context = loop,
		.session = text ? &session : NULL,
	};
	int rc = text ? weir_session_parse(text, &session, err) : 0;

	if (rc)
		return rc;
	loop->journal = weir_journal_new();
	loop->base = event_base_new();
	if (!loop->journal || !loop->base || watch_signals(loop))
		return weir_error_set(err, -ENOMEM, "out of memory");
	rc = start_control(loop, err);
	if (!rc)
		rc = weir_engine_start(&loop->engine, &options, err);
	if (!rc)
		rc = watch_engine(loop, err);
	if (!rc)
		rc = weir_loop_services_apply(loop, err);
	if (!rc)
		rc = weir_loop_freeze_kept(loop, err);
	if (!rc)
		weir_loop_web_apply(loop);
	return rc;
}

/* ---- end ---- */

/* To who asked for the end, as the last word. `left`: why not all of it is off, 0 if it is. */
static void answer_stopper(struct weir_loop *loop, int left)
{
	struct weir_error line;

	weir_error_set(&line, left,
		       "the controller has ended, but not all of it is away: %s: its log has "
		       "more; `weir stop --detach` again, when it can be",
		       strerror(-left));
	if (left)
		weir_control_fail(loop->stopper, 2, line.text);
	else
		weir_control_reply(loop->stopper,
				   json_pack("{s:i, s:b}", "schema", WEIR_JSON_SCHEMA, "detached",
					     loop->detach));
}

static void end(struct weir_loop *loop)
{
	int left = 0;

	weir_loop_web_end(loop);
	weir_ranking_free(loop->ranking);
	loop->ranking = NULL;
	for (size_t i = 0; i < loop->watched_count; i++)
		event_free(loop->watched[i]);
	ring_buffer__free(loop->ring);
	weir_loop_services_end(loop);
	if (loop->engine)
		left = weir_engine_stop(loop->engine, loop->detach);
	/* Who is told that it ended must not meet it again. */
	if (loop->stopper) {
		weir_control_close_door(loop->control);
		answer_stopper(loop, left);
	}
	weir_control_stop(loop->control);
	if (loop->base)
		event_base_free(loop->base);
	weir_journal_free(loop->journal);
}

int weir_loop_run(const struct weir_loop_options *options, struct weir_error *err)
{
	struct weir_loop *loop = calloc(1, sizeof(*loop));
	int rc;

	if (!loop)
		return weir_error_set(err, -ENOMEM, "out of memory");
	loop->options = options;
	loop->started_ns = realtime_ns();
	loop->pins = options->pins ? options->pins : WEIR_PINS_DEFAULT;
	rc = start(loop, err);
	if (!rc) {
		log_format(loop, WEIR_LOOP_READY "%s", loop->socket);
		notify("READY=1\n");
		event_base_dispatch(loop->base);
		notify("STOPPING=1\n");
	}
	end(loop);
	free(loop);
	return rc;
}
