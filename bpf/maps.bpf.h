/* SPDX-License-Identifier: GPL-2.0 */
/* Every map of the data plane. Sizes marked "set at load" are changed before loading. */
#pragma once

#include "weir/abi.h"
#include "weir/front.h"

/* Set at load, the same as in weir_switch. */
const volatile struct weir_shape weir_shape = { .sets = 2, .front_slots = 1, .cpus = 1 };

#define WEIR_ARRAY(name, value_type, entries)                                                  \
	struct {                                                                               \
		__uint(type, BPF_MAP_TYPE_ARRAY);                                              \
		__uint(map_flags, BPF_F_MMAPABLE);                                             \
		__uint(max_entries, entries);                                                  \
		__type(key, uint32_t);                                                            \
		__type(value, value_type);                                                     \
	} name SEC(".maps")

/* policy */
WEIR_ARRAY(weir_switch, struct weir_switch, 1);
WEIR_ARRAY(weir_policy, struct weir_policy_head, 2);
WEIR_ARRAY(weir_limits, struct weir_limit, 2 * WEIR_LIMITS_MAX);
WEIR_ARRAY(weir_rows, struct weir_bitmap, 2 * WEIR_ROWS);
WEIR_ARRAY(weir_ports, uint64_t, 2 * 2 * WEIR_PORT_WORDS); /* [generation][source][word] */
WEIR_ARRAY(weir_interfaces, struct weir_interface_line, WEIR_INTERFACE_LINES);
WEIR_ARRAY(weir_labels, struct weir_label, WEIR_LIMITS_MAX);
WEIR_ARRAY(weir_lists_live, struct weir_lists_live, 1);

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 17);
	__type(key, struct weir_prefix_key);
	__type(value, uint32_t);
} weir_prefixes SEC(".maps");

/* state */
WEIR_ARRAY(weir_ledger, struct weir_set, 2);		   /* set at load: the sets */
WEIR_ARRAY(weir_keys, struct weir_key_record, 2 * WEIR_WAYS); /* set at load */
WEIR_ARRAY(weir_front, struct weir_front_slot, 1);	   /* set at load: [cpu][slot] */
WEIR_ARRAY(weir_leases, struct weir_lease, WEIR_LIMITS_MAX); /* set at load: [cpu][slot] */

#define WEIR_INNER_ARRAY(name, value_type)                                                     \
	struct name {                                                                          \
		__uint(type, BPF_MAP_TYPE_ARRAY);                                              \
		__uint(map_flags, BPF_F_MMAPABLE | BPF_F_INNER_MAP);                           \
		__uint(max_entries, 1);                                                        \
		__uint(key_size, sizeof(uint32_t));                                            \
		__uint(value_size, sizeof(value_type));                                        \
	}
#define WEIR_ARRAY_OF(name, inner)                                                             \
	struct {                                                                               \
		__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);                                      \
		__uint(max_entries, WEIR_LIMITS_MAX);                                          \
		__type(key, uint32_t);                                                         \
		__array(values, struct inner);                                                 \
	} name SEC(".maps")

WEIR_INNER_ARRAY(weir_own_ledger, struct weir_set);
WEIR_INNER_ARRAY(weir_own_key, struct weir_own_record);
WEIR_INNER_ARRAY(weir_ring, uint64_t);
WEIR_ARRAY_OF(weir_own_ledgers, weir_own_ledger);
WEIR_ARRAY_OF(weir_own_keys, weir_own_key);
WEIR_ARRAY_OF(weir_rings, weir_ring);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WEIR_BANS_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, uint64_t);
	__type(value, struct weir_ban);
} weir_bans SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, WEIR_BANS_MAX);
	__type(key, uint64_t);
	__type(value, struct weir_strikes);
} weir_strikes SEC(".maps");

/* totals */
WEIR_ARRAY(weir_totals, struct weir_totals, WEIR_LIMITS_MAX); /* set at load: [cpu][slot] */
WEIR_ARRAY(weir_traffic, struct weir_traffic, WEIR_INTERFACES_MAX * WEIR_HOOKS); /* [cpu][..] */
WEIR_ARRAY(weir_sampler, struct weir_sampler, 1);	     /* set at load: [cpu] */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
} weir_events SEC(".maps");
