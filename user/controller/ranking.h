/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who is heaviest, for any number of askers at once on an event loop: walks the ledger
 * (controller/top.h) in slices of a few milliseconds, one walk for all who asked meanwhile.
 *
 * Rates are taken over one to two seconds, longer in a ledger so large that a walk takes more
 * than 10 ms (1,048,576 full places: measured 20 to 40 ms, so 2 to 8 s). Walks for that go on all
 * the time, at 1% of a CPU at most, so an answer takes one walk and never a wait, but in the
 * first second.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#include "controller/sent.h"
#include "controller/top.h"

#define WEIR_RANKING_ENTRIES_MAX WEIR_TOP_MAX /* of all askers together */

/*
 * The answer, sorted: the callee takes over the top (weir_top_free). span_ns: what the counts
 * were taken over; 0 where they are since a key has its place.
 */
typedef void (*weir_ranking_done)(void *context, struct weir_top *top,
				  const struct weir_limits_view *limits, uint64_t span_ns);

struct weir_ranking;

int weir_ranking_new(struct weir_ranking **ranking, struct event_base *base,
		     const struct weir_dataplane *dataplane);
/* Forgets every asker without an answer. */
void weir_ranking_free(struct weir_ranking *ranking);

/* Asks. -EBUSY when others already ask for too many entries, -ENOMEM. */
int weir_ranking_ask(struct weir_ranking *ranking, uint32_t slot, size_t size, bool recent,
		     weir_ranking_done done, void *context);
/* What all keys have sent, since the ranking began. */
const struct weir_sent *weir_ranking_sent(const struct weir_ranking *ranking);

/* Takes a question back. */
void weir_ranking_forget(struct weir_ranking *ranking, const void *context);
