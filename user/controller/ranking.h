/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who is heaviest, for any number of askers at once on an event loop: walks the ledger
 * (controller/top.h) in slices of a few milliseconds, one walk for all who asked meanwhile.
 *
 * Recent rates are taken over about a second. What they need (12 bytes a place) is kept while
 * somebody asks, and for 10 seconds after.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

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
/* Takes a question back. */
void weir_ranking_forget(struct weir_ranking *ranking, const void *context);
