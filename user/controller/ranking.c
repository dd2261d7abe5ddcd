// SPDX-License-Identifier: GPL-2.0
#include "controller/clock.h"
#include "controller/ranking.h"

#include <errno.h>
#include <stdlib.h>

#include "controller/report.h"

#define SLICE_SETS 4096
#define ASKERS_MAX 256
#define SPAN_NS 1000000000ULL
#define KEEP_SECONDS 10

struct asker {
	struct weir_top top;
	weir_ranking_done done;
	void *context;
	bool walking; /* part of the walk that is on; else of the next */
};

/* One kind of walk: totals, or what is recent. */
struct walker {
	struct weir_ranking *ranking;
	bool recent;
	struct event *event; /* the next slice, walk, or the end of `scan` */
	struct weir_scan *scan;
	bool walking;
	uint64_t begun_ns;  /* the walk that is on or was the last; 0: none since `scan` is */
	uint64_t before_ns; /* the one before */
	struct asker askers[ASKERS_MAX];
	size_t count;
};

struct weir_ranking {
	const struct weir_dataplane *dataplane;
	size_t entries; /* of all askers */
	struct walker walkers[2];
};

static void wake(struct walker *walker, uint64_t in_ns)
{
	struct timeval in = { (time_t)(in_ns / 1000000000), (suseconds_t)(in_ns / 1000 % 1000000) };

	event_add(walker->event, &in);
}

/* When the next walk may begin: rates need a second since the last. */
static void plan(struct walker *walker)
{
	uint64_t now = weir_monotonic_ns(), due = walker->begun_ns + SPAN_NS;

	if (walker->walking)
		return;
	if (!walker->count)
		wake(walker, KEEP_SECONDS * SPAN_NS);
	else
		wake(walker, walker->recent && walker->begun_ns && due > now ? due - now : 0);
}

static void remove_asker(struct walker *walker, size_t i)
{
	walker->ranking->entries -= walker->askers[i].top.size;
	walker->askers[i] = walker->askers[--walker->count];
}

static void answer(struct walker *walker)
{
	uint64_t span_ns = walker->recent ? walker->begun_ns - walker->before_ns : 0;

	for (size_t i = walker->count; i-- > 0;) {
		struct asker asker = walker->askers[i];

		if (!asker.walking)
			continue;
		remove_asker(walker, i);
		weir_top_sort(&asker.top);
		asker.done(asker.context, &asker.top, weir_scan_limits(walker->scan), span_ns);
	}
}

static bool begin(struct walker *walker)
{
	/* The first walk of rates only takes note; whoever asks for them waits for the next. */
	bool notes = walker->recent && !walker->begun_ns;

	if (!walker->scan &&
	    weir_scan_new(&walker->scan, walker->ranking->dataplane, walker->recent))
		return false;
	for (size_t i = 0; i < walker->count; i++)
		walker->askers[i].walking = !notes;
	walker->before_ns = walker->begun_ns;
	walker->begun_ns = weir_monotonic_ns();
	walker->walking = true;
	weir_scan_begin(walker->scan);
	return true;
}

static void rest(struct walker *walker)
{
	weir_scan_free(walker->scan);
	walker->scan = NULL;
	walker->begun_ns = 0;
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
	struct weir_top *tops[ASKERS_MAX];
	struct walker *walker = arg;
	size_t count = 0;

	(void)fd;
	(void)what;
	if (!walker->walking && !walker->count) {
		rest(walker);
		return;
	}
	if (!walker->walking && !begin(walker)) {
		wake(walker, SPAN_NS);
		return;
	}
	for (size_t i = 0; i < walker->count; i++) {
		if (walker->askers[i].walking)
			tops[count++] = &walker->askers[i].top;
	}
	if (weir_scan_step(walker->scan, SLICE_SETS, tops, count)) {
		wake(walker, 0);
		return;
	}
	walker->walking = false;
	answer(walker);
	plan(walker);
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
	}
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
	free(ranking);
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
