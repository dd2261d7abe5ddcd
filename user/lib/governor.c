// SPDX-License-Identifier: GPL-2.0
#include "weir/governor.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "span.h"

#define CLIMB_FACTOR 2.0
#define RECLIMB_FACTOR 1.5
#define SAFE_SHARE 0.75	 /* of last_bad: the proven-safe zone */
#define PROBE_SHARE 0.02 /* of last_bad */
#define KEEP_LEAST 0.25
#define KEEP_MOST 0.9
#define LINE_BYTES 256

const char *weir_climb_name(enum weir_climb climb)
{
	switch (climb) {
	case WEIR_CLIMB_RECLIMBING:
		return "reclimbing";
	case WEIR_CLIMB_PROBING:
		return "probing";
	case WEIR_CLIMB_CLIMBING:
	default:
		return "climbing";
	}
}

enum weir_climb weir_climb_at(double offer, double last_bad)
{
	if (isnan(last_bad))
		return WEIR_CLIMB_CLIMBING;
	return offer < SAFE_SHARE * last_bad ? WEIR_CLIMB_RECLIMBING : WEIR_CLIMB_PROBING;
}

static double raised(double current, double last_bad)
{
	switch (weir_climb_at(current, last_bad)) {
	case WEIR_CLIMB_RECLIMBING:
		return fmin(current * RECLIMB_FACTOR, SAFE_SHARE * last_bad);
	case WEIR_CLIMB_PROBING:
		return current + fmax(1, PROBE_SHARE * last_bad);
	case WEIR_CLIMB_CLIMBING:
	default:
		return current * CLIMB_FACTOR;
	}
}

struct weir_decision weir_governor_decide(double fraction, double current, double high, double low,
					  double floor, double ceiling, double last_bad)
{
	struct weir_decision hold = { WEIR_DECISION_HOLD, current };
	double next;

	if (fraction > high) {
		next = fmax(current * fmin(fmax(1 - fraction, KEEP_LEAST), KEEP_MOST), floor);
		return next < current ? (struct weir_decision){ WEIR_DECISION_DOWN, next } : hold;
	}
	if (fraction < low) {
		next = fmin(raised(current, last_bad), ceiling);
		return next > current ? (struct weir_decision){ WEIR_DECISION_UP, next } : hold;
	}
	return hold;
}

int32_t weir_governor_memory_clear_step(int32_t streak, bool evidence, bool *clears)
{
	bool full = evidence && streak >= WEIR_MEMORY_CLEAR_STREAK - 1;

	if (clears)
		*clears = full;
	if (!evidence || full)
		return 0;
	return (streak > 0 ? streak : 0) + 1;
}

__attribute__((format(printf, 2, 3))) static void say(const struct weir_governor *governor,
						      const char *format, ...)
{
	char line[LINE_BYTES];
	va_list arguments;

	if (!governor->control.log)
		return;
	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	governor->control.log(governor->control.context, line);
}

/* Commit an offer, or remember it as unsent. Returns whether the control accepted it. */
static bool commit(struct weir_governor *governor, double offer)
{
	const struct weir_governor_control *control = &governor->control;
	int error = control->push ? control->push(control->context, offer) : 0;

	governor->unsent = error ? offer : NAN;
	if (error) {
		say(governor, "push of %g refused (%s): the offer stays %g, trying again", offer,
		    strerror(-error), governor->offer);
		return false;
	}
	governor->offer = offer;
	return true;
}

static struct weir_governor_conf complete(struct weir_governor_conf conf)
{
	conf.floor = conf.floor > 0 ? conf.floor : 1;
	conf.ceiling = isnan(conf.ceiling) ? INFINITY : fmax(conf.ceiling, conf.floor);
	conf.start =
		isnan(conf.start) ? conf.floor : fmin(fmax(conf.start, conf.floor), conf.ceiling);
	conf.high = isnan(conf.high) ? 0.05 : conf.high;
	conf.low = isnan(conf.low) ? 0.01 : conf.low;
	return conf;
}

struct weir_governor weir_governor_new(const struct weir_governor_conf *conf,
				       const struct weir_governor_control *control, int64_t now_ns,
				       struct weir_attempts counts)
{
	static const struct weir_governor_conf unset = { NAN, NAN, NAN, NAN, NAN, 0 };
	struct weir_governor governor = {
		.conf = complete(conf ? *conf : unset),
		.counted = counts,
		.opened_ns = now_ns,
		.last_bad = NAN,
	};
	double committed = governor.conf.start;

	if (control)
		governor.control = *control;
	if (governor.control.read &&
	    (governor.control.read(governor.control.context, &committed) || isnan(committed)))
		committed = governor.conf.start;
	governor.offer = committed;
	if (commit(&governor, governor.conf.start))
		say(&governor, "start at %g: floor %g, ceiling %g", governor.offer,
		    governor.conf.floor, governor.conf.ceiling);
	return governor;
}

/*
 * Learn the committed offer. False: it isn't known, or isn't ours to step from in this window.
 */
static bool read_back(struct weir_governor *governor)
{
	double committed = governor->offer, unsent = governor->unsent;
	int error = 0;

	if (governor->control.read)
		error = governor->control.read(governor->control.context, &committed);
	if (error == -EINPROGRESS)
		return false;
	if (error || isnan(committed)) {
		say(governor, "hold at %g: the committed value can't be read (%s)", governor->offer,
		    error ? strerror(-error) : "not a number");
		return false;
	}
	/* Steps from the 77 that a control made of 77.25 would lead there again and again. */
	if (!weir_governor_rounds(governor->offer, committed)) {
		say(governor, "an outside writer moved the offer %g -> %g: going on from there",
		    governor->offer, committed);
		unsent = NAN;
		governor->offer = committed;
	}
	governor->unsent = NAN;
	if (isnan(unsent))
		return true;
	if (commit(governor, unsent))
		say(governor, "pushed %g again: accepted", unsent);
	return false;
}

/* Remember or forget congestion by what one window showed. */
static void remember(struct weir_governor *governor, double fraction)
{
	bool clean = fraction < governor->conf.low && !(fraction > governor->conf.high);
	bool clears;

	if (fraction > governor->conf.high)
		governor->last_bad = governor->offer;
	governor->streak = weir_governor_memory_clear_step(
		governor->streak, clean && governor->offer >= governor->last_bad, &clears);
	if (!clears)
		return;
	say(governor, "forgot the congestion at %g: %d clean windows in a row at or above it",
	    governor->last_bad, WEIR_MEMORY_CLEAR_STREAK);
	governor->last_bad = NAN;
}

static struct weir_decision move(struct weir_governor *governor, struct weir_attempts window)
{
	const struct weir_governor_conf *conf = &governor->conf;
	double attempts = (double)window.success + (double)window.failure;
	double fraction = (double)window.failure / attempts, before = governor->offer;
	struct weir_decision decision;
	const char *climb;

	remember(governor, fraction);
	climb = weir_climb_name(weir_governor_climb(governor));
	decision = weir_governor_decide(fraction, before, conf->high, conf->low, conf->floor,
					conf->ceiling, governor->last_bad);
	if (decision.kind == WEIR_DECISION_HOLD)
		return decision;
	if (!commit(governor, decision.offer))
		return (struct weir_decision){ WEIR_DECISION_HOLD, governor->offer };
	if (decision.kind == WEIR_DECISION_DOWN)
		say(governor, "down %g -> %g: attempt failures %.3g%% of %g, above %g%%", before,
		    decision.offer, fraction * 100, attempts, conf->high * 100);
	else
		say(governor, "up %g -> %g (%s): attempt failures %.3g%% of %g, below %g%%", before,
		    decision.offer, climb, fraction * 100, attempts, conf->low * 100);
	return decision;
}

struct weir_decision weir_governor_tick(struct weir_governor *governor, int64_t now_ns,
					struct weir_attempts counts)
{
	struct weir_attempts window;
	bool restarted, known;
	int64_t window_ns;

	if (!governor)
		return (struct weir_decision){ WEIR_DECISION_WAIT, 0 };
	window_ns = governor->conf.window_ns > 0 ? governor->conf.window_ns : 0;
	if (weir_span_since(now_ns, governor->opened_ns) < (uint64_t)window_ns)
		return (struct weir_decision){ WEIR_DECISION_WAIT, governor->offer };
	restarted = counts.success < governor->counted.success ||
		    counts.failure < governor->counted.failure;
	window.success = counts.success - governor->counted.success;
	window.failure = counts.failure - governor->counted.failure;
	governor->counted = counts;
	governor->opened_ns = now_ns;
	known = read_back(governor);
	/* No evidence of either kind: the streak stands too. */
	if (!known || restarted || (!window.success && !window.failure))
		return (struct weir_decision){ WEIR_DECISION_HOLD, governor->offer };
	return move(governor, window);
}

double weir_governor_offer(const struct weir_governor *governor)
{
	return governor ? governor->offer : 0;
}

enum weir_climb weir_governor_climb(const struct weir_governor *governor)
{
	if (!governor)
		return WEIR_CLIMB_CLIMBING;
	return weir_climb_at(governor->offer, governor->last_bad);
}
