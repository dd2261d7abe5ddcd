/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the keys of each limit send, from regular walks over the ledger (top.h): how fast each
 * was at its busiest, and how much was sent at which rate. It is what `weir suggest` goes by.
 *
 * Rates are packets a second between two walks, refused ones included, in slots of 1/8 octave:
 * a figure is the upper end of its slot, up to 9% above the truth, the greatest one exact. A key
 * that lost its place and came back is another key here, and one that came and went between two
 * walks isn't seen. Of buckets and sliding windows only: a period's count begins anew, a gate
 * counts connections.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "controller/keys.h"

#define WEIR_SENT_SLOTS 256 /* of rates: 1 is 2^-8 a second, 8 more are twice as fast; 0: none */

struct weir_sent_limit {
	uint64_t salt;	   /* of the limit; another one has other keys */
	uint64_t since_ns; /* the walk that began it */
	uint64_t until_ns; /* the last one */
	uint64_t window_ns; /* between the last two */
	uint64_t new_keys; /* the total when it began */
	uint64_t appeared; /* keys that were new to a walk */
	uint64_t sources;  /* keys that sent anything */
	double max;
	uint64_t peaks[WEIR_SENT_SLOTS]; /* keys, by the rate at their busiest */
	struct {
		uint64_t packets;
		double seconds; /* of keys */
	} load[WEIR_SENT_SLOTS]; /* by the rate of a key between two walks */
};

struct weir_sent {
	struct weir_sent_limit *limits[WEIR_LIMITS_MAX]; /* by slot; NULL: nothing yet */
	uint64_t window_ns;				 /* of the walk that is on */
};

void weir_sent_free(struct weir_sent *sent);

/* Before a walk that ends a window: limits that are new or changed their keys begin anew. */
void weir_sent_begin(struct weir_sent *sent, const struct weir_dataplane *dataplane,
		     const struct weir_limits_view *limits, uint64_t before_ns, uint64_t now_ns);

/*
 * A key that the walk came by: `packets` in the window. peak: the slot of its rate so far, 0 for
 * a key that is new (then `fresh`) or has sent nothing. Returns the slot of its rate now.
 */
uint8_t weir_sent_count(struct weir_sent *sent, const struct weir_limit *limit, uint64_t packets,
			uint8_t peak, bool fresh);

/* The rate below which the share `quantile` (0 to 1) of the sources stayed at their busiest. */
double weir_sent_quantile(const struct weir_sent_limit *limit, double quantile);
/* Shares, 0 to 1, that a bucket of so many packets a second would refuse, but for its burst. */
double weir_sent_sources_above(const struct weir_sent_limit *limit, double rate);
double weir_sent_packets_above(const struct weir_sent_limit *limit, double rate);

/* Rounded up to two digits. */
double weir_sent_round(double rate);

/*
 * {"limits": […]} of all limits, or of the one in `slot` (WEIR_NO_LIMIT: all); docs/json.md,
 * "suggest". NULL without memory.
 */
json_t *weir_sent_report(const struct weir_sent *sent, const struct weir_dataplane *dataplane,
			 uint32_t slot);
