// SPDX-License-Identifier: GPL-2.0
#include "weir/breaker.h"

#include <math.h>
#include <stdlib.h>

#include "span.h"
#include "weir/window.h"

#define BUCKET_MAX (1LL << 40) /* of each count, so that the window's sums can't overflow */

struct weir_breaker {
	struct weir_sre sre;
	struct weir_window *window;
	bool probing; /* probed_ns counts */
	int64_t probed_ns;
};

const struct weir_sre weir_sre = {
	.k = 1.5,
	.floor = 1.1,
	.protection = 5,
	.probe_ns = 1000000000,
	.size = 40,
	.window_ns = 10000000000,
};

struct weir_sre weir_sre_new(void)
{
	return weir_sre;
}

static double number_or(double value, double preset)
{
	return isnan(value) ? preset : value;
}

struct weir_breaker *weir_breaker_new(const struct weir_sre *sre, int64_t now_ns)
{
	struct weir_breaker *breaker = calloc(1, sizeof(*breaker));

	if (!breaker)
		return NULL;
	breaker->sre = sre ? *sre : weir_sre;
	breaker->sre.k = number_or(breaker->sre.k, weir_sre.k);
	breaker->sre.floor = number_or(breaker->sre.floor, weir_sre.floor);
	breaker->sre.protection = number_or(breaker->sre.protection, weir_sre.protection);
	breaker->window = weir_window_new(breaker->sre.size, breaker->sre.window_ns, now_ns,
					  sizeof(struct weir_tally), NULL);
	if (!breaker->window) {
		free(breaker);
		return NULL;
	}
	return breaker;
}

void weir_breaker_free(struct weir_breaker *breaker)
{
	if (!breaker)
		return;
	weir_window_free(breaker->window);
	free(breaker);
}

struct history {
	int64_t total, accepts;
	int32_t failing, working; /* runs that end at the newest bucket seen */
};

static void read_bucket(void *context, const void *bucket)
{
	const struct weir_tally *tally = bucket;
	struct history *history = context;

	history->total += tally->total;
	history->accepts += tally->success;
	if (tally->failure)
		history->working = 0;
	else if (tally->success)
		history->working++;
	if (tally->success)
		history->failing = 0;
	else if (tally->failure)
		history->failing++;
}

double weir_breaker_ratio(const struct weir_breaker *breaker, int64_t now_ns)
{
	struct history history = { 0 };
	double size, w, drop;

	if (!breaker)
		return 0;
	size = weir_window_size(breaker->window);
	weir_window_each(breaker->window, now_ns, true, read_bucket, &history);
	w = breaker->sre.k - (breaker->sre.k - breaker->sre.floor) * history.failing / size;
	w = fmax(w, breaker->sre.floor);
	drop = ((double)history.total - breaker->sre.protection - w * (double)history.accepts) /
	       ((double)history.total + 1);
	drop *= (size - history.working) / size;
	/* Knobs beyond reason (infinities) make a NaN: that refuses nothing. */
	return drop > 0 ? fmin(drop, 1) : 0;
}

static void record(struct weir_breaker *breaker, int64_t now_ns, enum weir_outcome outcome)
{
	weir_tally_add(weir_window_slot(breaker->window, now_ns), outcome);
}

static bool probe_due(const struct weir_breaker *breaker, int64_t now_ns)
{
	int64_t probe_ns = breaker->sre.probe_ns;

	return breaker->probing && weir_span_since(now_ns, breaker->probed_ns) >
					   (uint64_t)(probe_ns > 0 ? probe_ns : 0);
}

bool weir_breaker_allow(struct weir_breaker *breaker, int64_t now_ns, double roll,
			struct weir_promise *promise)
{
	double drop;

	if (!breaker || !promise)
		return false;
	promise->breaker = NULL;
	drop = weir_breaker_ratio(breaker, now_ns);
	if (drop > 0 && roll < drop && !probe_due(breaker, now_ns)) {
		record(breaker, now_ns, WEIR_OUTCOME_DROP);
		return false;
	}
	if (drop > 0) {
		breaker->probing = true;
		breaker->probed_ns = now_ns;
	}
	promise->breaker = breaker;
	return true;
}

static bool settle(struct weir_promise *promise, int64_t now_ns, enum weir_outcome outcome)
{
	if (!promise || !promise->breaker)
		return false;
	record(promise->breaker, now_ns, outcome);
	promise->breaker = NULL;
	return true;
}

bool weir_promise_pass(struct weir_promise *promise, int64_t now_ns)
{
	return settle(promise, now_ns, WEIR_OUTCOME_SUCCESS);
}

bool weir_promise_fail(struct weir_promise *promise, int64_t now_ns)
{
	return settle(promise, now_ns, WEIR_OUTCOME_FAILURE);
}

/* Raises a count by what is added; returns by how much. */
static int64_t raise_count(int64_t *count, int64_t by)
{
	int64_t room = *count < BUCKET_MAX ? BUCKET_MAX - *count : 0;

	by = by < 0 ? 0 : by > room ? room : by;
	*count += by;
	return by;
}

void weir_breaker_record(struct weir_breaker *breaker, int64_t now_ns, int64_t success,
			 int64_t failure, int64_t drop)
{
	struct weir_tally *tally;

	if (!breaker)
		return;
	tally = weir_window_slot(breaker->window, now_ns);
	tally->total += raise_count(&tally->success, success);
	tally->total += raise_count(&tally->failure, failure);
	tally->total += raise_count(&tally->drop, drop);
}
