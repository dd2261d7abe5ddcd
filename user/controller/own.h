/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Ledgers of their own: what a limit that is sliding, or keyed by flow, has beside the shared
 * ledger (struct weir_own_record in abi.h). Three maps in a limit's slot of three maps of maps,
 * which are pinned: so the inner ones outlive the controller, and end when their slot is
 * emptied.
 */
#pragma once

#include "controller/compile.h"
#include "controller/dataplane.h"

/* Which slots have maps: enum weir_own_map. */
struct weir_own {
	const struct weir_dataplane *dataplane;
	bool present[WEIR_LIMITS_MAX][WEIR_OWN_MAPS];
};

/* Bytes of kernel memory. `capacity`: of a ring, 0 for none. */
uint64_t weir_own_bytes(uint64_t sets, uint64_t capacity);

/* Looks at what there is, and gives back what no limit in force has (a killed engine's). */
int weir_own_open(struct weir_own *own, const struct weir_dataplane *dataplane,
		  const struct weir_compiled_before *now, struct weir_error *err);

/*
 * Before a policy comes into force: makes the maps that its limits lack. A failure (-ENOMEM,
 * mostly) has changed nothing.
 */
int weir_own_provide(struct weir_own *own, const struct weir_compiled *compiled,
		     const struct weir_compiled_before *now, struct weir_error *err);

/* After it, when no packet sees the old one any more: takes away what no limit has. */
void weir_own_release(struct weir_own *own, const struct weir_compiled_before *now);

/* ---- for those who look ---- */

/* One limit's, mapped into memory, read-only. */
struct weir_own_view {
	uint32_t id; /* of the ledger map */
	uint32_t sets;
	uint32_t capacity; /* of a ring; 0: there are none */
	const struct weir_set *ledger;
	const struct weir_own_record *keys;
	const uint64_t *rings;
	size_t bytes[WEIR_OWN_MAPS];
};

/* 0; -ENOENT where the slot has none; -EAGAIN where it changes hands; what mmap gives. */
int weir_own_view_open(struct weir_own_view *view, const struct weir_dataplane *dataplane,
		       uint32_t slot);
void weir_own_view_close(struct weir_own_view *view);
