/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Leases: for a bucket with one key for all, where every CPU would fight over one word. A CPU
 * that has lost a race there takes a batch of tokens besides its packet's, at most
 * burst / WEIR_LEASE_SHARE over all CPUs together, and spends it alone for WEIR_LEASE_NS. The
 * tokens are paid for, so nothing is admitted beyond the bucket; they may pass that much later
 * than they were taken. What is left of an expired lease goes back with the next packet. The
 * key's own count of passed packets leaves out those that a lease paid for: the limit's totals
 * have them.
 */
#pragma once

#include "ledger.bpf.h"

static __always_inline struct weir_lease *weir_lease_at(struct weir_cpu *cpu,
							const struct weir_limit *limit)
{
	return &cpu->leases[limit->slot & (WEIR_LIMITS_MAX - 1)];
}

/* Whether this CPU's lease pays for the packet; a check only looks. */
static __always_inline bool weir_lease_covers(struct weir_lease *lease,
					      const struct weir_context *context,
					      const struct weir_limit *limit)
{
	const struct weir_charge *charge = &context->charge;

	if (lease->revision != limit->revision || lease->left_ticks < charge->cost ||
	    context->now_ticks >= lease->expires_ticks)
		return false;
	if (charge->mode == WEIR_TAKE)
		lease->left_ticks -= charge->cost;
	return true;
}

/* This CPU's batch, in ticks. */
static __always_inline uint64_t weir_lease_batch(const struct weir_limit *limit)
{
	return limit->bucket.burst_ticks / WEIR_LEASE_SHARE / weir_shape.cpus;
}

/* Whether it has tokens left that are to go back. */
static __always_inline bool weir_lease_is_over(const struct weir_lease *lease,
					       const struct weir_limit *limit, uint64_t now_ticks)
{
	return lease->left_ticks && lease->revision == limit->revision &&
	       now_ticks >= lease->expires_ticks;
}
