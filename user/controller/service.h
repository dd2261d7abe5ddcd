/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One service's loops: libweir's Breaker, Shedder and governor over counts that somebody else
 * keeps (the kernel, or an application's reports). No kernel, no clock, no file: a tick brings
 * the time, the counts and the CPU; an output says what to enforce.
 *
 *	breaker   a drop fraction for new connections, and how often one gets through anyway. The
 *	          refusals it causes are its Drops: never failures, and nothing that the service did
 *	shedder   a ceiling on exchanges in flight, while the CPU is hot. Its refusals are no
 *	          outcome either: the breaker doesn't see them
 *	governor  a limit's rate or a gate's size, stepped from its committed value
 *
 * A tick's counts are spread evenly over the time since the last one, so ticks that come late or
 * uneven don't make a bucket look busier than it was. Not thread-safe. docs/services.md
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "controller/movement.h"
#include "weir/breaker.h"
#include "weir/governor.h"
#include "weir/response.h"
#include "weir/shedder.h"

#define WEIR_SERVICE_NO_CEILING UINT64_MAX
#define WEIR_SERVICE_TICK_MIN_NS 10000000LL   /* a tick is no shorter … */
#define WEIR_SERVICE_TICK_MAX_NS 1000000000LL /* … and no longer than this */
#define WEIR_SERVICE_RELEASE 1.5	      /* a second: how a ceiling that still refuses rises */
#define WEIR_SERVICE_PROBE_SPREAD 0.1	      /* a probe interval is drawn within ± this */
#define WEIR_SERVICE_SPAN_NS 10000000000LL    /* response times shown are of 1 to 2 of these */

/* Cumulative but for in_flight. */
struct weir_service_counts {
	uint64_t attempts; /* exchanges begun; what was refused is none */
	uint64_t success;
	uint64_t failure;	 /* reset, closed while pending, past the deadline */
	uint64_t dropped;	 /* refused by the breaker's fraction */
	uint64_t shed;		 /* refused at the shedder's ceiling */
	uint64_t response_count; /* successes with a response time … */
	uint64_t response_ns;	 /* … and the sum of these */
	uint64_t in_flight;	 /* now */
	uint64_t response[WEIR_RESPONSE_SLOTS];
};

struct weir_service_conf {
	char name[32];
	bool has[WEIR_LOOP_KINDS];
	struct weir_sre breaker;
	struct weir_shed shedder;
	struct weir_governor_conf governor; /* in the control's unit */
	uint64_t seed;			    /* of the draws for jitter */
};

/* What the world outside does for a service. */
struct weir_service_hooks {
	struct weir_governor_control control; /* of the governor; its log is not used */
	void (*moved)(void *context, const struct weir_movement *movement); /* or NULL */
	void *context;
};

struct weir_service_output {
	double drop;	  /* of new connections, [0, 1] */
	int64_t probe_ns; /* while drop is above 0: none let through for longer than this, one is */
	uint64_t ceiling; /* refuse new ones while this many are in flight; at least 1 */
};

struct weir_service_status {
	struct weir_service_counts counts; /* as last read */
	struct weir_service_output output; /* in force */
	bool has[WEIR_LOOP_KINDS];
	bool frozen[WEIR_LOOP_KINDS];
	int32_t cpu;	 /* WEIR_CPU_UNKNOWN (below 0): not known */
	double ratio;	 /* what the breaker would drop now; also while frozen */
	double capacity; /* of the shedder, in flight; its moving average of them */
	double average;
	bool hot, full;
	double offer; /* of the governor, as last known */
	const char *mode;
	double last_bad; /* NaN: none */
	int32_t streak;
	uint64_t median_ns, p99_ns; /* of responses: the upper end of a slot; 0: none were seen */
};

struct weir_service;

/* The counts of the first tick are where the differences begin. NULL: no memory. The governor,
 * where there is one, pushes its start. */
struct weir_service *weir_service_new(const struct weir_service_conf *conf,
				      const struct weir_service_hooks *hooks, int64_t now_ns);
void weir_service_free(struct weir_service *service);

/*
 * A loop whose settings are the same stays as it is, and a frozen loop frozen; others start anew.
 * 0 or -ENOMEM, then nothing has changed.
 */
int weir_service_configure(struct weir_service *service, const struct weir_service_conf *conf,
			   int64_t now_ns);
/* The counts come from elsewhere now, or began anew: the next tick only remembers them. */
void weir_service_rebase(struct weir_service *service);
/* Pushes the governor's offer again, after the limit was set back by a reload. */
void weir_service_push(struct weir_service *service);

/* How often it wants a tick: the narrower of the two buckets, a quarter of a governor's window. */
int64_t weir_service_tick_ns(const struct weir_service *service);

/* cpu: thousandths; below 0: not known, which is never hot. Counts that went back: see rebase. */
void weir_service_tick(struct weir_service *service, int64_t now_ns,
		       const struct weir_service_counts *counts, int32_t cpu);

const struct weir_service_output *weir_service_output(const struct weir_service *service);
void weir_service_status(const struct weir_service *service, struct weir_service_status *status);
const char *weir_service_name(const struct weir_service *service);

/*
 * Holds a loop still: its output stays as it is, evidence still comes in, so that a thaw acts on
 * what is true then. False: the service has no such loop.
 */
bool weir_service_freeze(struct weir_service *service, enum weir_loop_kind loop, bool frozen);
