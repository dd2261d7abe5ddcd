// SPDX-License-Identifier: GPL-2.0
/* The services within the controller's loop: their timer, their limits, who reports to them. */
#include <errno.h>
#include <time.h>

#include "controller/clock.h"
#include "controller/loop_private.h"
#include "controller/overrides.h"

static uint64_t realtime_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

/* ---- what the services ask of the controller ---- */

static const struct weir_policy_limit *limit(void *context, const char *name)
{
	const struct weir_loop *loop = context;

	return weir_policy_find_limit(weir_engine_policy(loop->engine), name);
}

static int set(void *context, const char *name, const struct weir_policy_change *change)
{
	struct weir_loop *loop = context;
	struct weir_error err = { 0 };

	return weir_engine_move(loop->engine, name, change, &err);
}

static int read_counts(void *context, size_t service, struct weir_service_counts *counts)
{
	const struct weir_loop *loop = context;

	return weir_engine_service_read(loop->engine, service, weir_monotonic_ns(), counts);
}

static int write_output(void *context, size_t service, const struct weir_service_output *output)
{
	const struct weir_loop *loop = context;

	return weir_engine_service_steer(loop->engine, service, weir_monotonic_ns(), output);
}

static void moved(void *context, const struct weir_movement *movement)
{
	struct weir_loop *loop = context;
	char line[WEIR_JOURNAL_TEXT];

	weir_journal_add_movement(loop->journal, realtime_ns(), movement);
	if (!loop->options->log)
		return;
	weir_movement_print(movement, line, sizeof(line));
	loop->options->log(loop->options->log_context, line);
}

static void take_outcome(void *context, const struct weir_outcome_line *line)
{
	struct weir_loop *loop = context;
	struct weir_error err;

	if (line)
		weir_services_outcome(loop->services, line->name, line->pass, line->response_ns,
				      &err);
	else
		weir_services_malformed(loop->services);
}

/* ---- life ---- */

static void on_tick(evutil_socket_t fd, short what, void *context)
{
	struct weir_loop *loop = context;

	(void)fd;
	(void)what;
	weir_services_tick(loop->services, (int64_t)weir_monotonic_ns());
}

/* The timer runs while there are services, at the pace of the fastest. */
static int set_timer(struct weir_loop *loop)
{
	int64_t tick_ns = weir_services_tick_ns(loop->services);
	const struct timeval every = { tick_ns / 1000000000, tick_ns % 1000000000 / 1000 };

	if (loop->services_timer)
		event_free(loop->services_timer);
	loop->services_timer = NULL;
	if (!tick_ns)
		return 0;
	loop->services_timer = event_new(loop->base, -1, EV_PERSIST, on_tick, loop);
	return !loop->services_timer || event_add(loop->services_timer, &every) ? -ENOMEM : 0;
}

/* Without the socket all else works, and `weir report` too: that is said, and no more. */
static void open_outcomes(struct weir_loop *loop)
{
	const struct weir_policy *policy = weir_engine_policy(loop->engine);
	struct weir_error err = { 0 };
	bool wanted = false;

	for (size_t i = 0; i < policy->service_count; i++)
		wanted |= policy->services[i].trust == WEIR_POLICY_TRUST_REPORT;
	if (wanted == (loop->outcomes != NULL))
		return;
	if (!wanted) {
		weir_outcomes_stop(loop->outcomes);
		loop->outcomes = NULL;
	} else if (weir_outcomes_start(&loop->outcomes, loop->base, loop->socket, loop->group_id,
				       take_outcome, loop, &err)) {
		weir_error_prefix(&err, "no datagrams of reports are taken: ");
		weir_loop_log(loop, err.text);
	}
}

int weir_loop_services_apply(struct weir_loop *loop, struct weir_error *err)
{
	const struct weir_services_io io = { .read = read_counts,
					     .write = write_output,
					     .limit = limit,
					     .set = set,
					     .moved = moved,
					     .log = weir_loop_log,
					     .root = "",
					     .context = loop };
	int rc;

	if (!loop->services)
		loop->services = weir_services_new(&io);
	if (!loop->services)
		return weir_error_set(err, -ENOMEM, "out of memory");
	rc = weir_services_apply(loop->services, weir_engine_policy(loop->engine),
				 (int64_t)weir_monotonic_ns(), err);
	if (!rc && set_timer(loop))
		rc = weir_error_set(err, -ENOMEM, "out of memory");
	open_outcomes(loop);
	return rc;
}

void weir_loop_services_end(struct weir_loop *loop)
{
	weir_outcomes_stop(loop->outcomes);
	loop->outcomes = NULL;
	if (loop->services_timer)
		event_free(loop->services_timer);
	loop->services_timer = NULL;
	weir_services_free(loop->services);
	loop->services = NULL;
}

/* ---- what is frozen ---- */

static const char *overrides_of(const struct weir_loop *loop)
{
	return loop->options->overrides ? loop->options->overrides : WEIR_OVERRIDES_DEFAULT;
}

int weir_loop_keep_frozen(struct weir_loop *loop, struct weir_error *err)
{
	json_t *frozen = weir_services_frozen(loop->services);

	if (!frozen)
		return weir_error_set(err, -ENOMEM, "out of memory");
	return weir_overrides_save_frozen(overrides_of(loop), frozen, err);
}

int weir_loop_freeze_kept(struct weir_loop *loop, struct weir_error *err)
{
	int rc;
	json_t *frozen = weir_overrides_frozen(overrides_of(loop), &rc, err);

	if (!frozen)
		return rc;
	weir_services_freeze_kept(loop->services, frozen);
	json_decref(frozen);
	return 0;
}
