// SPDX-License-Identifier: GPL-2.0
#include "controller/clock.h"
#include "controller/ranking.h"

#include <errno.h>
#include <stdlib.h>

#include "controller/report.h"

#define SLICE_SETS 4096
#define ASKERS_MAX 256
#define SPAN_NS 1000000000ULL /* rates are of so much at least */
#define KEEP_SECONDS 10
#define PERIOD_NS_MAX (10 * SPAN_NS)
#define REST 100 /* times what a walk takes, before the next that nobody asked for */

struct asker {
	struct weir_top top;
	weir_ranking_done done;
	void *context;
	bool walking; /* part of the walk that is on; else of the next */
};

/*
 * One kind of walk: totals, when asked for; or rates. Those are differences to a base, of which
 * there are two, taken in turn by walks at regular times: so the older one is one to two periods
 * old, and whoever asks has an answer after a single walk. The period is a second, or so long
 * that these walks take 1% of a CPU (up to 10 s).
 */
struct walker {
	struct weir_ranking *ranking;
	bool recent;
	struct event *event; /* the next slice, walk, or the end of `scan` */
	struct weir_scan *scan;
	bool walking;
	uint64_t begun_ns; /* the walk that is on or was the last */
	uint64_t spent_ns; /* on it */
	struct asker askers[ASKERS_MAX];
	size_t count;
	/* of rates */
	uint64_t bases_ns[WEIR_SCAN_BASES]; /* when they were taken; 0: not yet */
	uint64_t period_ns;
	int from, to; /* of the walk that is on: see weir_scan_compare */
};

struct weir_ranking {
	const struct weir_dataplane *dataplane;
	size_t entries; /* of all askers */
	struct walker walkers[2];
	struct weir_sent sent;
};

static void wake(struct walker *walker, uint64_t in_ns)
{
	struct timeval in = { (time_t)(in_ns / 1000000000), (suseconds_t)(in_ns / 1000 % 1000000) };

	event_add(walker->event, &in);
}

/* The base to compare to: the older one; -1 before there is any. */
static int older_base(const struct walker *walker)
{
	const uint64_t *at = walker->bases_ns;

	if (!at[0])
		return -1;
	return at[1] && at[1] < at[0] ? 1 : 0;
}

/* When a base is to be taken anew. */
static uint64_t base_due_ns(const struct walker *walker)
{
	const uint64_t *at = walker->bases_ns;
	uint64_t newer = at[0] > at[1] ? at[0] : at[1];

	return newer ? newer + walker->period_ns : 0;
}

static uint64_t walk_due_ns(const struct walker *walker)
{
	uint64_t due = base_due_ns(walker), asked;
	int from = older_base(walker);

	if (!walker->count || from < 0)
		return due;
	asked = walker->bases_ns[from] + SPAN_NS;
	return asked < due ? asked : due;
}

/* When the next walk is to begin. */
static void plan(struct walker *walker)
{
	uint64_t now = weir_monotonic_ns(), due = walker->recent ? walk_due_ns(walker) : now;

	if (walker->walking)
		return;
	if (!walker->recent && !walker->count)
		due += KEEP_SECONDS * SPAN_NS;
	wake(walker, due > now ? due - now : 0);
}

static void remove_asker(struct walker *walker, size_t i)
{
	walker->ranking->entries -= walker->askers[i].top.size;
	walker->askers[i] = walker->askers[--walker->count];
}

static void answer(struct walker *walker)
{
	uint64_t span_ns = walker->from < 0 ? 0 : walker->begun_ns - walker->bases_ns[walker->from];

	for (size_t i = walker->count; i-- > 0;) {
		struct asker asker = walker->askers[i];

		if (!asker.walking)
			continue;
		remove_asker(walker, i);
		weir_top_sort(&asker.top);
		asker.done(asker.context, &asker.top, weir_scan_limits(walker->scan), span_ns);
	}
}

/* What a walk of rates is compared to, and which base it takes anew. */
static void choose_bases(struct walker *walker)
{
	walker->from = older_base(walker);
	walker->to = -1;
	if (walker->begun_ns < base_due_ns(walker))
		return;
	walker->to = walker->from < 0 ? 0 : !walker->bases_ns[1] ? 1 : walker->from;
}

static bool begin(struct walker *walker)
{
	struct weir_ranking *ranking = walker->ranking;
	bool windows;

	if (!walker->scan && weir_scan_new(&walker->scan, ranking->dataplane,
					   walker->recent ? WEIR_SCAN_BASES : 0))
		return false;
	walker->begun_ns = weir_monotonic_ns();
	walker->from = walker->to = -1;
	if (walker->recent)
		choose_bases(walker);
	/* On the first base alone windows follow each other; and take a walk in two. */
	windows = walker->from == 0 && walker->to == 0;
	weir_scan_compare(walker->scan, walker->from, walker->to, windows ? &ranking->sent : NULL);
	/* The first walk of rates only takes note; whoever asks for them waits for the next. */
	for (size_t i = 0; i < walker->count; i++)
		walker->askers[i].walking = !walker->recent || walker->from >= 0;
	walker->walking = true;
	weir_scan_begin(walker->scan);
	if (windows)
		weir_sent_begin(&ranking->sent, ranking->dataplane,
				weir_scan_limits(walker->scan), walker->bases_ns[0],
				walker->begun_ns);
	walker->spent_ns = weir_monotonic_ns() - walker->begun_ns;
	return true;
}

static void end(struct walker *walker)
{
	uint64_t period_ns = REST * walker->spent_ns;

	walker->walking = false;
	answer(walker);
	if (walker->to >= 0)
		walker->bases_ns[walker->to] = walker->begun_ns;
	walker->period_ns = period_ns < SPAN_NS	       ? SPAN_NS
			    : period_ns > PERIOD_NS_MAX ? PERIOD_NS_MAX
							: period_ns;
	plan(walker);
}

static void rest(struct walker *walker)
{
	weir_scan_free(walker->scan);
	walker->scan = NULL;
}

/* One slice of the walk that is on; true while there are more. */
static bool step(struct walker *walker)
{
	struct weir_top *tops[ASKERS_MAX];
	uint64_t begun_ns = weir_monotonic_ns();
	size_t count = 0;
	bool more;

	for (size_t i = 0; i < walker->count; i++) {
		if (walker->askers[i].walking)
			tops[count++] = &walker->askers[i].top;
	}
	more = weir_scan_step(walker->scan, SLICE_SETS, tops, count);
	walker->spent_ns += weir_monotonic_ns() - begun_ns;
	return more;
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
	struct walker *walker = arg;

	(void)fd;
	(void)what;
	if (!walker->walking && !walker->recent && !walker->count)
		rest(walker);
	else if (!walker->walking && !begin(walker))
		wake(walker, SPAN_NS);
	else if (step(walker))
		wake(walker, 0);
	else
		end(walker);
}

int weir_ranking_new(struct weir_ranking **ranking, struct event_base *base,
		     const struct weir_dataplane *dataplane)
{
	struct weir_ranking *made = calloc(1, sizeof(*made));

	if (!made)
		return -ENOMEM;
	made->dataplane = dataplane;
	for (int i = 0; i < 2; i++) {
		struct walker *walker = &made->walkers[i];

		walker->ranking = made;
		walker->recent = i;
		walker->event = evtimer_new(base, on_wake, walker);
		if (!walker->event) {
			weir_ranking_free(made);
			return -ENOMEM;
		}
		walker->period_ns = SPAN_NS;
	}
	plan(&made->walkers[true]);
	*ranking = made;
	return 0;
}

void weir_ranking_free(struct weir_ranking *ranking)
{
	if (!ranking)
		return;
	for (int i = 0; i < 2; i++) {
		struct walker *walker = &ranking->walkers[i];

		for (size_t j = 0; j < walker->count; j++)
			weir_top_free(&walker->askers[j].top);
		if (walker->event)
			event_free(walker->event);
		weir_scan_free(walker->scan);
	}
	weir_sent_free(&ranking->sent);
	free(ranking);
}

const struct weir_sent *weir_ranking_sent(const struct weir_ranking *ranking)
{
	return &ranking->sent;
}

int weir_ranking_ask(struct weir_ranking *ranking, uint32_t slot, size_t size, bool recent,
		     weir_ranking_done done, void *context)
{
	struct walker *walker = &ranking->walkers[recent];
	struct asker *asker = &walker->askers[walker->count];
	int err;

	if (walker->count == ASKERS_MAX || ranking->entries + size > WEIR_RANKING_ENTRIES_MAX)
		return -EBUSY;
	err = weir_top_init(&asker->top, size, slot, recent);
	if (err)
		return err;
	asker->done = done;
	asker->context = context;
	asker->walking = false;
	walker->count++;
	ranking->entries += size;
	plan(walker);
	return 0;
}

void weir_ranking_forget(struct weir_ranking *ranking, const void *context)
{
	for (int i = 0; i < 2; i++) {
		struct walker *walker = &ranking->walkers[i];

		for (size_t j = walker->count; j-- > 0;) {
			struct weir_top top = walker->askers[j].top;

			if (walker->askers[j].context != context)
				continue;
			remove_asker(walker, j);
			weir_top_free(&top);
		}
	}
}
