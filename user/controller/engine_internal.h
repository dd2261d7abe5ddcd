/* SPDX-License-Identifier: GPL-2.0 */
/* What engine.c and engine_interfaces.c share. */
#pragma once

#include <jansson.h>

#include "controller/attach.h"
#include "controller/confirm.h"
#include "controller/connections.h"
#include "controller/exchanges.h"
#include "controller/engine.h"
#include "controller/generation.h"
#include "controller/lists.h"
#include "controller/load.h"
#include "controller/own.h"
#include "controller/tc.h"

/* Interfaces in the policy's order. */
struct weir_held {
	struct weir_interface_status status[WEIR_INTERFACES_MAX];
	bool fresh[WEIR_INTERFACES_MAX]; /* the slot was another's: its counts start from 0 */
	size_t count;
};

struct weir_engine {
	char *config, *pins, *overrides;
	char *confirm_file; /* beside the overrides */
	struct weir_confirm *confirm; /* what waits or was undone; NULL: nothing */
	bool starts_undone; /* the time was over when it started: `before` is what it starts with */
	char boot_id[WEIR_BOOT_ID];
	uint64_t (*boot_clock)(void); /* weir_boottime_ns */
	weir_engine_log log;
	void *log_context;
	struct weir_policy *policy;
	json_t *saved; /* what the overrides file has of limits */
	json_t *kept; /* texts: what the saved changes did to the file when it was last read */
	struct weir_load load;
	struct weir_dataplane dataplane;
	struct weir_generation generation;
	struct weir_own own;
	struct weir_lists lists;
	uint64_t (*wall_clock)(void); /* weir_clock_wall_ns */
	uint64_t wall_ns;	      /* what the phases of aligned periods go by */
	struct weir_xdp xdp;
	struct weir_tc tc;
	uint32_t hooks; /* that limits use: 1 << enum weir_hook */
	struct weir_held held;
	struct weir_connections *connections; /* NULL until a policy has a gate or a service */
	struct weir_exchanges_map exchanges;
	int netlink_fd;
	int clock_fd;
	unsigned int ticks;
	uint64_t recounted_ns, bans_swept_ns; /* when that was last done */
};

void weir_engine_say(const struct weir_engine *engine, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- engine.c ---- */

/* The overrides file has changed. */
void weir_engine_saved_anew(struct weir_engine *engine);
/* The file with the saved changes over it. */
int weir_engine_read_policy(struct weir_engine *engine, struct weir_policy **policy,
			    struct weir_error *err);

/* ---- engine_enforce.c ---- */

/*
 * The policy into force, and the interfaces it names: all of it or, on an error, nothing. Takes
 * over the policy if it succeeds. `terms` with a confirm_ns: noted on file just before.
 */
int weir_engine_enforce(struct weir_engine *engine, struct weir_policy *policy,
			const struct weir_terms *terms, bool need_interface,
			struct weir_error *err);
int weir_engine_compile(const struct weir_engine *engine, const struct weir_policy *policy,
			const struct weir_held *held, struct weir_compiled **compiled,
			struct weir_error *err);
/* The connections in the gates, counted anew. */
void weir_engine_recount(struct weir_engine *engine);

/* ---- engine_confirm.c ---- */

/* What to start with: the file; or what a change waits with, or goes back to. */
int weir_engine_first_policy(struct weir_engine *engine, struct weir_policy **policy,
			     struct weir_error *err);
/* That is in force now. */
void weir_engine_first_done(struct weir_engine *engine);
/* -EALREADY while a change waits, or where the terms can't be had now. */
int weir_engine_may_change(const struct weir_engine *engine, const struct weir_terms *terms,
			   bool reload, struct weir_error *err);
/*
 * A note of what is to wait: `what`, and the policy in force as what to go back to. NULL without
 * terms->confirm_ns (*code 0), or on an error.
 */
struct weir_confirm *weir_engine_note(const struct weir_engine *engine,
				      const struct weir_terms *terms, const char *what, int *code,
				      struct weir_error *err);
/* On file, before it acts; takes over the note, NULL being none. The time runs from here. */
int weir_engine_wait(struct weir_engine *engine, struct weir_confirm *note,
		     const struct weir_policy *after, struct weir_error *err);
/* It did not act after all, or is no more to be remembered. */
int weir_engine_forget(struct weir_engine *engine, struct weir_error *err);

/* ---- engine_session.c ---- */

/* terms->session against a policy that is to come. 0 without one. */
int weir_engine_check_session(const struct weir_terms *terms, const struct weir_policy *policy,
			      const struct weir_compiled *compiled, const struct weir_held *held,
			      const struct weir_list_table *lists, int only,
			      struct weir_error *err);

/* ---- engine_interfaces.c ---- */

/*
 * The interfaces of a policy with their slots: those of before keep theirs, by name, or after
 * a restart by ifindex. Changes nothing. -E2BIG: no slot free beside those of before.
 */
int weir_held_plan(const struct weir_engine *engine, const struct weir_policy *policy,
		   struct weir_held *plan, struct weir_error *err);

/*
 * Attaches what the plan has and the engine doesn't yet hold so, `hooks` of TC included. What can't
 * be had gets its reason. 0; or the last error if there are interfaces and none could be had.
 */
int weir_held_take(struct weir_engine *engine, struct weir_held *plan, uint32_t hooks,
		   struct weir_error *err);

/* Takes ours off every interface that the engine does not hold and off TC hooks that no limit
 * uses; `all`: off everything. 0, or the first error of XDP's; each is said in the log. */
int weir_held_sweep(struct weir_engine *engine, bool all);

/* Looks after each interface: see weir_engine_tick. */
void weir_held_look(struct weir_engine *engine, bool retry);
