/* SPDX-License-Identifier: GPL-2.0 */
/* What engine.c and engine_interfaces.c share. */
#pragma once

#include "controller/attach.h"
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
	weir_engine_log log;
	void *log_context;
	struct weir_policy *policy;
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
	unsigned int since_recount; /* ticks */
};

void weir_engine_say(const struct weir_engine *engine, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

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
 * uses; `all`: off everything. */
void weir_held_sweep(struct weir_engine *engine, bool all);

/* Looks after each interface: see weir_engine_tick. */
void weir_held_look(struct weir_engine *engine, bool retry);
