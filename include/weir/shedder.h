/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Load shedding that refuses work only when the server is both hot and full.
 *
 * Hot: the CPU is at or over the threshold, or was less than the cooling time ago and the
 * shedder has refused since. Full: both the count of calls in flight and its moving average
 * are over what the server has shown it can finish:
 *
 *	capacity = max(passes a nanosecond of the busiest bucket * the fastest bucket's mean
 *		       response time in nanoseconds, 1)
 *	           * clamp((1000 - cpu) / (1000 - threshold), floor, 1)
 *
 * The bucket still filling is left out of both readings; the busiest counts as at least one
 * pass; `latency` stands for the response time while the window has none, and for any that is
 * longer. A CPU spike with nothing
 * queued sheds nothing, and neither does a queue on an idle CPU. Source: the seed's Shedder,
 * Ticket, Shed.
 */
#pragma once

#include "api.h"

WEIR_API_BEGIN

/*
 * The constants of adaptive load shedding: copy the preset and set what differs. A NaN knob
 * takes the preset's value.
 *
 * seed: Shed
 */
struct weir_shed {
	int32_t size;	    /* seed: Shed.size; buckets in the window, at least one */
	int64_t window_ns;  /* seed: Shed.window; how far back it reaches */
	int32_t cpu;	    /* seed: Shed.cpu; thousandths at and above which the CPU is hot; at
			     * 1000 or more there is no scale: floor when hot, else 1 */
	int64_t latency_ns; /* seed: Shed.latency; response time while the window has none,
			     * and the longest that counts */
	double beta;	    /* seed: Shed.beta; weight of the old average of calls in flight,
			     * updated only as calls finish; held to [0, 1] */
	int64_t cool_ns;    /* seed: Shed.cool; how long it stays hot after the CPU fell back */
	double floor;	    /* seed: Shed.floor; least share of the capacity, held to [0, 1] */
};

/* The preset: 5 s in 50 buckets, hot at 900, 1 s assumed, average 0.9, 1 s to cool, floor 0.1. */
extern const struct weir_shed weir_shed; /* seed: shed */

/*
 * A policy, every knob with the preset's value, to set the ones that differ.
 *
 * seed: Shed::new
 */
struct weir_shed weir_shed_new(void);

/* seed: Shedder */
struct weir_shedder;

/*
 * A call that the shedder let through. Exactly one of pass and fail settles it. Held by the
 * caller, not to be copied, and settled no later than the shedder is freed. A ticket of zero
 * bytes is settled.
 *
 * seed: Ticket
 */
struct weir_ticket {
	struct weir_shedder *shedder; /* NULL once settled */
	int64_t started_ns;
};

/*
 * A shedder with an empty window opening at now_ns (seed's default: 0). NULL with errno
 * ENOMEM. Takes 16 bytes a bucket of the window.
 *
 * @shed NULL: the preset. It is copied.
 *
 * seed: Shedder::new
 */
struct weir_shedder *weir_shedder_new(const struct weir_shed *shed, int64_t now_ns);
void weir_shedder_free(struct weir_shedder *shedder);

/*
 * Ask to start one call at now, with the CPU at `cpu` thousandths, read by the caller. True
 * means go ahead, and the caller settles *ticket once the call has finished. False means
 * refused, and *ticket is settled. NULL for any of the pointers: false.
 *
 * seed: Shedder::allow
 */
bool weir_shedder_allow(struct weir_shedder *shedder, int64_t now_ns, int32_t cpu,
			struct weir_ticket *ticket);

/*
 * How many calls are in flight.
 *
 * seed: Shedder::flying
 */
int64_t weir_shedder_flying(const struct weir_shedder *shedder);

/*
 * How many calls in flight count as full at now with the CPU at `cpu` thousandths.
 */
double weir_shedder_capacity(const struct weir_shedder *shedder, int64_t now_ns, int32_t cpu);

/*
 * The call succeeded at now: its response time counts towards the capacity (zero if the clock
 * went back). False and nothing recorded if it was settled before.
 *
 * seed: Ticket::pass
 */
bool weir_ticket_pass(struct weir_ticket *ticket, int64_t now_ns);

/*
 * The call failed. It leaves flight, and the average of calls in flight with it, but says
 * nothing about the capacity. False if it was settled before.
 *
 * seed: Ticket::fail
 */
bool weir_ticket_fail(struct weir_ticket *ticket);

/* Calls that were made and counted elsewhere, over a stretch of time. */
struct weir_shedder_calls {
	int64_t passes;	     /* that have a response time … */
	int64_t response_ns; /* … and the sum of these */
	int64_t failures;    /* and passes without one */
	int64_t refusals;    /* because it was hot and full */
	int64_t flying;	     /* in flight at its end */
};

/*
 * An addition of ours: the shedder is then as after that many tickets settled at now, one by
 * one, each leaving `flying` others in flight. A count below zero is zero; what one bucket counts
 * is held to 2^40 passes.
 */
void weir_shedder_record(struct weir_shedder *shedder, int64_t now_ns,
			 const struct weir_shedder_calls *calls);

/*
 * An addition of ours: whether the shedder is hot at now with the CPU at `cpu` thousandths, which
 * is what weir_shedder_allow looks at first. It remembers the CPU as allow does.
 */
bool weir_shedder_hot(struct weir_shedder *shedder, int64_t now_ns, int32_t cpu);

/* An addition of ours: the moving average of calls in flight. */
double weir_shedder_average(const struct weir_shedder *shedder);

WEIR_API_END
