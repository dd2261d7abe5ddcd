/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Adaptive backpressure: walk an offer (a rate, a ceiling) up to what its target can take.
 *
 * The signal is the attempt-failure fraction of a trailing window, failures / (successes +
 * failures), from deltas of cumulative counts. The target is taken for fragile and scaled up:
 *
 *	above `high`   down: offer * clamp(1 - fraction, 0.25, 0.9), never below the floor; the
 *	               offer that failed is remembered (last_bad)
 *	below `low`    up, never above the ceiling:
 *	               climbing    nothing remembered: * 2
 *	               reclimbing  below 75% of last_bad: * 1.5, up to that 75%
 *	               probing     from there on: + max(1, 2% of last_bad)
 *	else           hold (the dead band)
 *
 * WEIR_MEMORY_CLEAR_STREAK clean windows in a row at or above last_bad clear the memory, and
 * that window climbs already. A window without attempts is no evidence: hold, and the streak
 * stands.
 * Source: throttle-governor (SRD-83 part 9); its ThrottleGovernor, Decision and functions.
 */
#pragma once

#include "api.h"

WEIR_API_BEGIN

/* Consecutive clean windows at or above last_bad after which it is forgotten. */
#define WEIR_MEMORY_CLEAR_STREAK 3 /* seed: MEMORY_CLEAR_STREAK */

/* seed: Decision */
enum weir_decision_kind {
	WEIR_DECISION_HOLD,
	WEIR_DECISION_UP,
	WEIR_DECISION_DOWN,
	WEIR_DECISION_WAIT, /* of weir_governor_tick only: the window isn't over */
};

/* What one window decided. */
struct weir_decision {
	enum weir_decision_kind kind;
	double offer; /* the offer from here on */
};

/* How the offer climbs at present. */
enum weir_climb {
	WEIR_CLIMB_CLIMBING,
	WEIR_CLIMB_RECLIMBING,
	WEIR_CLIMB_PROBING,
};

/* "climbing", "reclimbing" or "probing". */
const char *weir_climb_name(enum weir_climb climb);

/* How an offer climbs: last_bad NaN is "none". */
enum weir_climb weir_climb_at(double offer, double last_bad);

/*
 * One step, pure.
 *
 * @fraction of attempts that failed in the window; NaN holds
 * @current  the committed offer. One that an outside writer put above the ceiling is not
 *           raised, one below the floor not lowered; neither is pulled back. NaN holds.
 * @high, low, floor, ceiling  as above; NaN for the first two never moves, for the last two
 *           is no bound
 * @last_bad NaN: none
 *
 * seed: decide
 */
struct weir_decision weir_governor_decide(double fraction, double current, double high, double low,
					  double floor, double ceiling, double last_bad);

/*
 * Fold one window's evidence (clean, at or above last_bad) into the streak. Returns the new
 * streak, and in *clears (may be NULL) whether the memory clears on this window. No evidence
 * resets the streak; a negative streak counts as 0.
 *
 * seed: memory_clear_step
 */
int32_t weir_governor_memory_clear_step(int32_t streak, bool evidence, bool *clears);

/* Cumulative counts of attempts that resolved. */
struct weir_attempts {
	uint64_t success;
	uint64_t failure;
};

struct weir_governor_conf {
	double start;	   /* the first offer, held to [floor, ceiling]; NaN: the floor */
	double floor;	   /* not above 0, or NaN: 1 */
	double ceiling;	   /* NaN or below the floor: infinite, the floor */
	double high;	   /* fraction above which the offer backs off; NaN: 0.05 */
	double low;	   /* fraction below which it climbs; NaN: 0.01 */
	int64_t window_ns; /* a window is over once this much has passed; zero or less: any tick */
};

/*
 * Where offers go. Neither call may block: push starts to apply and returns, read tells what
 * came of it.
 */
struct weir_governor_control {
	/* Start to apply an offer. 0: accepted; -errno: not, it is pushed again later. */
	int (*push)(void *context, double offer);
	/*
	 * The committed value, whoever wrote it. -EINPROGRESS: the last push isn't confirmed yet.
	 * Other -errno: not known.
	 */
	int (*read)(void *context, double *committed);
	/* A line for every movement, naming the signal; no newline. NULL: none are logged. */
	void (*log)(void *context, const char *line);
	void *context;
};

/* seed: ThrottleGovernor */
struct weir_governor {
	struct weir_governor_conf conf;
	struct weir_governor_control control;
	struct weir_attempts counted; /* when the window opened */
	int64_t opened_ns;
	double offer;	 /* the committed one, as last known or accepted */
	double unsent;	 /* a push that was not accepted; NaN: none */
	double last_bad; /* NaN: none */
	int32_t streak;	 /* clean windows at or above last_bad */
};

/*
 * Whether a control that rounds may have made `committed` of the offer: they differ by less than
 * 1, or by less than a thousandth.
 */
static inline bool weir_governor_rounds(double offer, double committed)
{
	double within = offer / 1000 > 1 ? offer / 1000 : 1;

	return committed - offer < within && offer - committed < within;
}

/*
 * A governor whose first window opens at now with the counts as they stand; pushes the start.
 *
 * @control copied; NULL, or without push and read: the governor's own offer is the committed
 *          one
 *
 * A window over which a push was still unconfirmed says nothing about the offer: it is held and
 * its counts are dropped. An offer that an outside writer committed is logged, and the next step
 * starts from it (an apply that was accepted and then failed looks the same). One that is but
 * rounded isn't: the next step starts from what was pushed. A push that was
 * refused is logged and made again at the end of the next window, unless an outside writer was
 * there first.
 */
struct weir_governor weir_governor_new(const struct weir_governor_conf *conf,
				       const struct weir_governor_control *control, int64_t now_ns,
				       struct weir_attempts counts);

/*
 * Call as often as you like. WEIR_DECISION_WAIT before the window is over; else what it
 * decided, and the next one opens now. Counts that went back (a counter restarted) are a hold.
 * NULL: WAIT, 0.
 */
struct weir_decision weir_governor_tick(struct weir_governor *governor, int64_t now_ns,
					struct weir_attempts counts);

/* The offer as last known; 0 for NULL. */
double weir_governor_offer(const struct weir_governor *governor);

/* How it climbs at present; WEIR_CLIMB_CLIMBING for NULL. */
enum weir_climb weir_governor_climb(const struct weir_governor *governor);

WEIR_API_END
