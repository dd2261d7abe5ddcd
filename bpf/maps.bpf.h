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
struct weir_board weir_board SEC(".data.board");

WEIR_ARRAY(weir_rows, struct weir_bitmap, 2 * WEIR_ROWS);
WEIR_ARRAY(weir_ports, uint64_t, 2 * 2 * WEIR_PORT_WORDS); /* [generation][source][word] */
WEIR_ARRAY(weir_labels, struct weir_label, WEIR_LIMITS_MAX);

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

/* Services: policy, state and totals. */
WEIR_ARRAY(weir_services, struct weir_service_policy, WEIR_SERVICES_MAX);
WEIR_ARRAY(weir_service_ports, uint64_t, WEIR_PORT_WORDS);
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, WEIR_SERVICE_PREFIXES_MAX);
	__type(key, struct weir_service_prefix);
	__type(value, uint32_t);
} weir_service_prefixes SEC(".maps");
WEIR_ARRAY(weir_service_states, struct weir_service_state, WEIR_SERVICES_MAX);
WEIR_ARRAY(weir_exchanges, struct weir_exchanges, WEIR_SERVICES_MAX); /* set at load */

/* Connections that wait at a gate: see pending.bpf.h. The value is when they asked, in ticks. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, WEIR_PENDING_ENTRIES);
	__type(key, uint64_t);
	__type(value, uint64_t);
} weir_pending SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct weir_socket);
} weir_sockets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WEIR_RECOUNT_KEYS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, uint64_t);
	__type(value, struct weir_recount);
} weir_recounts SEC(".maps");

WEIR_ARRAY(weir_listening, uint64_t, 65536 / 64);
WEIR_ARRAY(weir_connections, struct weir_connection_counts, 1);

/* totals, and each CPU's scratch */
WEIR_ARRAY(weir_cpus, struct weir_cpu, 1); /* set at load */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
} weir_events SEC(".maps");
