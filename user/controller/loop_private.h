/* SPDX-License-Identifier: GPL-2.0 */
/* What loop.c and commands.c share; others include loop.h. */
#pragma once

#include <event2/event.h>

#include "controller/control.h"
#include "controller/journal.h"
#include "controller/loop.h"
#include "controller/outcomes.h"
#include "controller/ranking.h"
#include "controller/report.h"
#include "controller/services.h"

struct ring_buffer;
struct weir_web;

struct weir_subscriber {
	struct weir_control_client *client;
	uint64_t left_out; /* events it was too slow for, since the last that it got */
};

struct weir_loop {
	const struct weir_loop_options *options;
	const char *pins;
	char socket[WEIR_POLICY_SOCKET_SIZE]; /* where it listens */
	char group[WEIR_POLICY_GROUP_SIZE];   /* as it was at the start */
	struct event_base *base;
	struct weir_engine *engine;
	struct weir_control *control;
	struct weir_journal *journal;
	struct weir_ranking *ranking;
	struct weir_rates rates;
	struct ring_buffer *ring;
	gid_t group_id; /* of the sockets */
	struct weir_services *services;
	struct event *services_timer;
	struct weir_outcomes *outcomes; /* while a service trusts reports */
	struct weir_web *web;		/* loop_web.c */
	uint64_t started_ns;		/* since 1970 */
	uint64_t reloads, reloads_refused;
	struct event *watched[7]; /* signals, timer, netlink, clock, ring */
	size_t watched_count;
	struct weir_subscriber subscribers[WEIR_CONTROL_WATCHERS_MAX];
	size_t subscriber_count;
	struct weir_control_client *stopper; /* who asked to stop: answered at the end */
	bool detach;			     /* then */
	bool undo_failing;		     /* said, and tried again each second */
};

/* A line for the log and the journal. */
void weir_loop_log(void *loop, const char *line);
/* The file again, and the word about it in the log. */
int weir_loop_reload(struct weir_loop *loop, const struct weir_terms *terms,
		     struct weir_error *err);
/* Back to what was before a change that waits. */
int weir_loop_undo(struct weir_loop *loop, struct weir_error *err);

/* loop_services.c: the services of the policy in force, at the start and after a reload. */
int weir_loop_services_apply(struct weir_loop *loop, struct weir_error *err);
void weir_loop_services_end(struct weir_loop *loop);
/* What is frozen, on file with the overrides; and from there at the start. */
int weir_loop_keep_frozen(struct weir_loop *loop, struct weir_error *err);
int weir_loop_freeze_kept(struct weir_loop *loop, struct weir_error *err);

/* commands_change.c */
void weir_commands_set(struct weir_loop *loop, struct weir_control_client *client,
		       json_t *arguments);
void weir_commands_unset(struct weir_loop *loop, struct weir_control_client *client,
			 json_t *arguments);
void weir_commands_reload(struct weir_loop *loop, struct weir_control_client *client,
			  json_t *arguments);
void weir_commands_confirm(struct weir_loop *loop, struct weir_control_client *client,
			   json_t *arguments);
/* What a change comes with: -EINVAL, -ERANGE. terms->session points to *session. */
int weir_commands_terms(json_t *arguments, struct weir_terms *terms, struct weir_session *session,
			struct weir_error *err);
/* A time such as "10m" that may be left out, 0 then: -EINVAL, -ERANGE. */
struct weir_commands_span {
	const char *name; /* of the argument */
	uint64_t least_ns, most_ns;
	const char *range; /* those two, in words */
};
int weir_commands_time(json_t *arguments, const struct weir_commands_span *span, uint64_t *ns,
		       struct weir_error *err);
/* A boolean that may be left out: -EINVAL for what is none. */
int weir_commands_flag(json_t *arguments, const char *name, bool *flag, struct weir_error *err);
/* The answer to a show of `what`. */
void weir_commands_show(struct weir_loop *loop, struct weir_control_client *client,
			const char *what);

/* loop_web.c: the HTTP server as the policy in force wants it. What it can't have is said in the
 * log and tried again: a limit must not wait for a port. */
void weir_loop_web_apply(struct weir_loop *loop);
void weir_loop_web_end(struct weir_loop *loop);

/* commands.c: what reports are made from. interfaces: WEIR_INTERFACES_MAX of them, filled in. */
void weir_loop_view(struct weir_view *view, const struct weir_loop *loop,
		    struct weir_interface_status *interfaces);

/* commands_services.c */
void weir_commands_freeze(struct weir_loop *loop, struct weir_control_client *client,
			 json_t *arguments);
void weir_commands_thaw(struct weir_loop *loop, struct weir_control_client *client,
		       json_t *arguments);
void weir_commands_report(struct weir_loop *loop, struct weir_control_client *client,
			 json_t *arguments);

/* commands.c: the two ends of the control socket (weir_control_handler, _closed). */
void weir_commands_handle(void *loop, struct weir_control_client *client, const char *command,
			  json_t *arguments);
void weir_commands_closed(void *loop, struct weir_control_client *client);
