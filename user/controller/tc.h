/* SPDX-License-Identifier: GPL-2.0 */
/*
 * TC on an interface, for the hooks that limits ask for. TCX links (6.6+), pinned beside the
 * maps and so ours by where they are; before that a filter of our own handle and priority on
 * clsact, ours iff it uses our map. Other links and filters are not touched, and the clsact
 * qdisc is taken away only if we made it and nothing else is on it.
 */
#pragma once

#include "controller/attach.h"

struct weir_tc {
	const struct weir_load *load;
	uint32_t board_id;
	struct weir_bpf *programs[WEIR_HOOKS]; /* loaded when first needed */
};

/*
 * Makes sure that ours is at each TC hook of the mask (1 << enum weir_hook), replacing that of
 * an earlier run in place. 1: something had to be attached or replaced; 0: all was well; else
 * -errno: -EBUSY for a foreign filter at our handle. Fills status->at_ingress and at_egress.
 */
int weir_tc_ensure(struct weir_tc *tc, struct weir_interface_status *status, uint32_t hooks,
		   struct weir_error *err);

/* Takes ours off the TC hooks of the mask; nothing is called where it isn't. */
void weir_tc_remove(const char *pins, uint32_t board_id, uint32_t ifindex, uint32_t hooks);

/* The same off every interface of this network namespace. */
void weir_tc_remove_all(const char *pins, uint32_t board_id);

void weir_tc_close(struct weir_tc *tc);

#define WEIR_TC_HOOKS (1U << WEIR_HOOK_TC_INGRESS | 1U << WEIR_HOOK_TC_EGRESS)
