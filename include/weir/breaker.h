/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Circuit breaker that sheds a fraction of calls rather than all of them.
 *
 * There is no open, half-open and closed. The breaker keeps a rolling window of outcomes and
 * refuses each new call with a probability that grows with the failures in it. With `accepts`
 * successes out of `total` calls in the window, `failing` the run of all-failure buckets at
 * its head (the newest ones) and `working` the run of all-success ones, the bucket now falls in
 * included:
 *
 *	w     = max(k - (k - floor) * failing / size, floor)
 *	drop  = (total - protection - w * accepts) / (total + 1)
 *	drop *= (size - working) / size
 *
 * A bucket that holds neither a success nor a failure neither ends nor lengthens a run. A drop
 * at or below zero lets everything through. Source: the seed's Breaker, Promise, Sre; Google
 * SRE book, "Handling Overload", client-side throttling.
 */
#pragma once

#include "api.h"

WEIR_API_BEGIN

/*
 * The constants of client-side throttling. Build another from the preset and set what differs:
 * `struct weir_sre mine = weir_sre; mine.k = 2.0;`. A NaN knob takes the preset's value.
 *
 * seed: Sre
 */
struct weir_sre {
	double k;	   /* seed: Sre.k; calls that each success pays for */
	double floor;	   /* seed: Sre.floor; what k decays to while the head is failing */
	double protection; /* seed: Sre.protection; calls let through regardless */
	int64_t probe_ns;  /* seed: Sre.probe; none let through longer than this: one is.
			    * Zero or less: at the next instant */
	int32_t size;	   /* seed: Sre.size; buckets in the window, under one raised to one */
	int64_t window_ns; /* seed: Sre.window; how far back it reaches */
};

/* The preset: k 1.5 decaying to 1.1, protection 5, a probe a second, 10 s in 40 buckets. */
extern const struct weir_sre weir_sre; /* seed: sre */

/*
 * A policy, every knob with the preset's value, to set the ones that differ.
 *
 * seed: Sre::new
 */
struct weir_sre weir_sre_new(void);

/* seed: Breaker */
struct weir_breaker;

/*
 * A call that the breaker let through. Exactly one of pass and fail settles it; until then the
 * window holds no record of how it went. Held by the caller, not to be copied, and settled no
 * later than the breaker is freed. A promise of zero bytes is settled.
 *
 * seed: Promise
 */
struct weir_promise {
	struct weir_breaker *breaker; /* NULL once settled */
};

/*
 * A breaker with an empty window opening at now_ns (seed's default: 0). NULL with errno ENOMEM.
 * Takes 32 bytes a bucket of the window.
 *
 * @sre NULL: the preset. It is copied.
 *
 * seed: Breaker::new
 */
struct weir_breaker *weir_breaker_new(const struct weir_sre *sre, int64_t now_ns);
void weir_breaker_free(struct weir_breaker *breaker);

/*
 * Ask to make one call at now. True means go ahead, and the caller settles *promise once the
 * call has finished. False means refused: recorded as a Drop, and *promise is settled.
 *
 * @roll a draw from [0, 1); refused when it falls under the drop fraction. NaN never does.
 *
 * The probe: an admission made while the drop is above zero starts its clock anew; when the
 * last such one is longer ago than probe_ns, one call is let through whatever its roll. NULL
 * for any of the pointers: false, nothing recorded.
 *
 * seed: Breaker::allow
 */
bool weir_breaker_allow(struct weir_breaker *breaker, int64_t now_ns, double roll,
			struct weir_promise *promise);

/*
 * The fraction of calls that would be refused at now, zero while the window is healthy, never
 * above one. The probe is left out: this is the standing throttle, for a dashboard.
 *
 * seed: Breaker::ratio
 */
double weir_breaker_ratio(const struct weir_breaker *breaker, int64_t now_ns);

/*
 * The call succeeded at now. False and nothing recorded if it was settled before.
 *
 * seed: Promise::pass
 */
bool weir_promise_pass(struct weir_promise *promise, int64_t now_ns);

/*
 * The call failed at now. False and nothing recorded if it was settled before.
 *
 * seed: Promise::fail
 */
bool weir_promise_fail(struct weir_promise *promise, int64_t now_ns);

/*
 * An addition of ours, for calls that are made and counted elsewhere: the window then holds what
 * it would after `success` passes, `failure` fails and `drop` refusals at now, one by one. The
 * probe's clock is left alone, it belongs to who lets calls through. A count below zero is zero;
 * what one bucket counts of each is held to 2^40.
 */
void weir_breaker_record(struct weir_breaker *breaker, int64_t now_ns, int64_t success,
			 int64_t failure, int64_t drop);

WEIR_API_END
