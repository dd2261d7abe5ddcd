/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The heaviest keys of the ledger: one walk over its places, in steps so that an event loop
 * isn't held up, feeds any number of askers. An asker's memory is a heap of the size it asked
 * for. Refusals that a CPU still holds in its front are added in, each front slot once.
 *
 * The kernel writes all the while. A place whose key record doesn't fit its tag is left out:
 * it is changing hands. So a walk is not a snapshot: each place is as it was when it was read.
 *
 * Rates are differences to a base, what a walk before found: 16 bytes a place. Only this finds a
 * source that has just become heavy among millions. With two bases, taken in turn, there is one
 * of a good age at any time (4 MB each at the default size).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/keys.h"

#define WEIR_TOP_MAX 1000000U

struct weir_top_entry {
	uint64_t tag;
	uint64_t passed; /* packets: since the key has its place, or since the walk before */
	uint64_t refused;
	struct weir_own_record key;
};

/* What one asker wants and gets. */
struct weir_top {
	uint32_t slot; /* of a limit, or WEIR_NO_LIMIT: of all */
	bool recent;   /* since the walk before, else since the key has its place */
	size_t size;
	size_t count;
	struct weir_top_entry *entries; /* heaviest first once weir_top_sort was called */
};

/* 0 or -ENOMEM; size is held to WEIR_TOP_MAX. */
int weir_top_init(struct weir_top *top, size_t size, uint32_t slot, bool recent);
void weir_top_sort(struct weir_top *top);
void weir_top_free(struct weir_top *top);

struct weir_scan;
struct weir_sent;

#define WEIR_SCAN_BASES 2

/* Of the ledger that all share and of the limits' own ones, which are mapped anew at each walk.
 * `bases`: how many to keep; without any there are no rates. With one, each walk is compared to
 * the one before. 0 or -ENOMEM. The dataplane must stay as long as the scan. */
int weir_scan_new(struct weir_scan **scan, const struct weir_dataplane *dataplane, uint32_t bases);
void weir_scan_free(struct weir_scan *scan);

/*
 * The next walks are compared to base `from` and are base `to` after; -1: none. `sent`, or NULL,
 * is told of every key: where `from` and `to` are the same, always that one.
 */
void weir_scan_compare(struct weir_scan *scan, int from, int to, struct weir_sent *sent);

/* Starts a walk: reads the limits in force and the fronts. */
void weir_scan_begin(struct weir_scan *scan);
/* Walks on over at most `sets` sets; false once the walk is over. */
bool weir_scan_step(struct weir_scan *scan, uint32_t sets, struct weir_top *const *tops,
		    size_t count);
/* All of a walk at once. */
void weir_scan_run(struct weir_scan *scan, struct weir_top *const *tops, size_t count);
/* The limits as the walk saw them. */
const struct weir_limits_view *weir_scan_limits(const struct weir_scan *scan);
