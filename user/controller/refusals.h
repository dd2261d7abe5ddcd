/* SPDX-License-Identifier: GPL-2.0 */
/* What was refused of each key of each limit, counted in user space: nothing is forgotten. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "weir/abi.h"

#define WEIR_REFUSALS_KEYS_MAX (1U << 20) /* what is beyond is counted together */

struct weir_refused_key {
	uint64_t tag; /* 0: free */
	uint64_t packets;
	uint64_t bytes;
	uint64_t first_ns;
	uint64_t last_ns;
	struct weir_own_record key; /* key.slot: of the limit */
};

/* All zero is an empty one. */
struct weir_refusals {
	struct weir_refused_key *entries; /* a hash table until it is sorted */
	size_t room;
	size_t count;
	uint64_t left_out; /* packets of keys that found no room */
};

/* Adds a packet of `bytes` at now_ns. -ENOMEM; the packet is then left out. */
int weir_refusals_add(struct weir_refusals *refusals, uint64_t tag,
		      const struct weir_own_record *key, uint32_t bytes, uint64_t now_ns);
/* Heaviest first, in packets, from entries[0] on. Nothing can be added any more. */
void weir_refusals_sort(struct weir_refusals *refusals);
void weir_refusals_free(struct weir_refusals *refusals);
