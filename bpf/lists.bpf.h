/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The allow and deny lists: longest prefix, one trie a list and family. Allow wins whatever
 * the lengths. An entry's value is when it expires; user space keeps in it the latest expiry of
 * all entries of the list that contain the prefix, so the longest match speaks for all.
 */
#pragma once

#include "context.bpf.h"

struct weir_list4_key {
	uint32_t length;
	uint32_t address;
};

struct weir_list6_key {
	uint32_t length;
	uint32_t address[4];
};

#define WEIR_LIST(name, key_type)                                                              \
	struct {                                                                               \
		__uint(type, BPF_MAP_TYPE_LPM_TRIE);                                           \
		__uint(map_flags, BPF_F_NO_PREALLOC);                                          \
		__uint(max_entries, WEIR_LIST_MAX);                                            \
		__type(key, key_type);                                                         \
		__type(value, uint64_t);                                                       \
	} name SEC(".maps")

WEIR_LIST(weir_allow4, struct weir_list4_key);
WEIR_LIST(weir_allow6, struct weir_list6_key);
WEIR_LIST(weir_deny4, struct weir_list4_key);
WEIR_LIST(weir_deny6, struct weir_list6_key);

/*
 * User space's own, no program looks at it: the entries that were added live, with their own
 * expiry, so that a controller that starts anew knows them. `table`: enum weir_trie.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4 * WEIR_LIST_MAX);
	__type(key, struct weir_prefix_key);
	__type(value, uint64_t);
} weir_live SEC(".maps");

static __always_inline bool weir_list_has(const struct weir_packet *packet, void *list4,
					  void *list6, uint64_t now_ns)
{
	struct weir_list4_key key4 = { .length = 32, .address = packet->source[0] };
	struct weir_list6_key key6 = { .length = 128 };
	const uint64_t *expires;

	if (packet->family == 4) {
		expires = bpf_map_lookup_elem(list4, &key4);
	} else {
		__builtin_memcpy(key6.address, packet->source, sizeof(key6.address));
		expires = bpf_map_lookup_elem(list6, &key6);
	}
	return expires && (*expires == WEIR_LIST_FOREVER || now_ns < *expires);
}

/* Out of line: most hosts list nobody. */
__noinline int weir_is_allowed(const struct weir_packet *packet, uint64_t now_ns)
{
	return packet && weir_list_has(packet, &weir_allow4, &weir_allow6, now_ns);
}

__noinline int weir_is_denied(const struct weir_packet *packet, uint64_t now_ns)
{
	return packet && weir_list_has(packet, &weir_deny4, &weir_deny6, now_ns);
}

static __always_inline bool weir_lists_used(const struct weir_packet *packet, uint32_t used,
					    uint32_t v4, uint32_t v6)
{
	return used & (packet->family == 4 ? v4 : v6);
}
