/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Puts a compiled policy into force: the idle generation is filled, one store switches, and
 * when the call returns no packet looks at the old one any more. So the idle generation and
 * the slots of removed limits may always be written at once.
 */
#pragma once

#include "controller/compile.h"
#include "controller/dataplane.h"

struct weir_generation {
	struct weir_dataplane *dataplane;
	int outer_fd; /* for weir_generation_wait */
	int inner_fd;
};

/* Waits for the packets under way, of a switch that a killed engine may just have made. */
int weir_generation_open(struct weir_generation *generation, struct weir_dataplane *dataplane,
			 struct weir_error *err);
void weir_generation_close(struct weir_generation *generation);

/* What is in force, as weir_compile wants it. Points into the maps. */
struct weir_compiled_before weir_generation_now(const struct weir_generation *generation);

/* 0, or -errno (no memory for the prefixes) and nothing changed. */
int weir_generation_apply(struct weir_generation *generation, const struct weir_compiled *compiled,
			  struct weir_error *err);

/*
 * `weir set`: gives the limit in force at index `limit` another conf and flags in place, at
 * once and without a wait, and its label with it. Same kind and key.
 *
 * A packet may read half of it, and so do all packets after a kill -9 in the middle, until the
 * next start stores the rest. The words are stored so that whatever is there at any instant
 * admits no more than the old setting or no more than the new one: a higher price (a bucket's
 * cost, a window, a period) before the depth that goes with it, a lower one after it; a block
 * before all else, what lifts it after all else. It may admit less than both: what is left of a
 * bucket at the new price may be under one packet.
 *
 * A packet reads its cost before the burst, so it can see the old cost with the new burst: it
 * pays the price of a moment earlier for room that the new limit grants. Keys are counted in
 * the new setting from the revision on, which is stored last; a key that nobody met between a
 * kill before that and the next start may have one new burst then, never more.
 *
 * The words of the others are as harmless. Sliding: quota and capacity are one word, and the
 * capacity never changes in place: a packet decides by the old or the new quota, and so by the
 * old or the new window, over stamps that nobody rewrites; what it lets pass is stored and
 * counts from then on. Period: with a new length and an old phase a period that opens in that
 * instant may end early (weir_period_until holds it to one length), so a key may begin anew
 * once, as it might at any change of the length. A gate is one word. Fronts go by the revision,
 * which is stored last. The alternative, a switch of generations with its wait, takes 10 ms
 * and more a change (measured).
 */
void weir_generation_set(struct weir_generation *generation, uint32_t limit,
			 const struct weir_limit *next, const struct weir_label *label);

/*
 * Returns when every program run that had begun before is over. Storing a map into a map of
 * maps waits for RCU in the kernel (maybe_wait_bpf_programs, since 4.20 and still in 6.18),
 * under which programs run. membarrier(GLOBAL) would be less code, but it does nothing on one
 * CPU and fails with nohz_full.
 */
int weir_generation_wait(struct weir_generation *generation);
