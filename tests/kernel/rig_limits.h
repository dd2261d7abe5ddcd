/* SPDX-License-Identifier: GPL-2.0 */
/* On top of rig.h: limits of every kind, several at once, and ledgers and rings of their own. */
#pragma once

#include "kernel/rig.h"

#define RIG_TICKS(ns) ((uint64_t)(ns) << WEIR_TICK_SHIFT)
#define RIG_SOURCE_MASKS .mask4 = UINT32_MAX, .mask6 = { UINT32_MAX, UINT32_MAX }

/*
 * A rig for all tests of a file, since to verify the programs takes a second: opened by the
 * first, for the others the clock starts anew, nothing is limited and frames count as they are.
 * State stays: each test's limits have salts of their own (rig_salt). Totals go on.
 */
void rig_begin(struct rig *rig, enum rig_program program, uint32_t keys);
uint64_t rig_salt(void);

/*
 * The limits from now on, at all hooks, for every packet: by the other generation, as a reload
 * would. Revisions are set here; all else is the caller's, slots too.
 */
void rig_put(struct rig *rig, const struct weir_limit *limits, uint32_t count);

/* The limit in force at an index. */
const struct weir_limit *rig_limit(const struct rig *rig, uint32_t index);

/*
 * A ledger and keys of its own for a slot, fresh, and rings of `capacity` stamps a place, none
 * where that is 0. Ends the test program where that fails.
 */
void rig_own(struct rig *rig, uint32_t slot, uint32_t sets, uint32_t capacity);

/* A bucket of `rate` a second and `burst`, in packets; else as the limit is. */
void rig_bucket(struct weir_limit *limit, double rate, double burst);

/* The kind's own settings in nanoseconds. */
void rig_sliding(struct weir_limit *limit, uint32_t quota, uint64_t window_ns, uint32_t sets);
void rig_period(struct weir_limit *limit, uint32_t quota, uint64_t period_ns);

/*
 * A v4 UDP frame that generic XDP would count as `packets` of the wire: what rig_send counts
 * it as, once rig_cut_frames has told the longest frame. Costs RIG_PART_BYTES + 42 bytes each.
 */
#define RIG_PART_BYTES 100
void rig_cut_frames(struct rig *rig, bool on);
void rig_frame_of(struct frame *frame, const char *source, uint32_t packets);

/*
 * When the packets since rig_plan passed, both CPUs together, in order. Their number, and in
 * *out an array to be freed.
 */
size_t rig_log(const struct rig *rig, uint64_t **out);

/* Sum of the totals of the slot. */
struct weir_totals rig_totals(const struct rig *rig, uint32_t slot);

/* Its program_fd becomes that of another program of weir's: weir_xdp, weir_ingress... */
void rig_use(struct rig *rig, const char *program);

/* One frame to a program on skbs, with what is known of it beside. The verdict or -errno. */
int rig_send_skb(const struct rig *rig, const void *frame, uint32_t size, struct __sk_buff *ctx);
