/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The allow and deny lists: longest prefix, one trie a list and family. Allow wins whatever
 * the lengths. An entry's value is when it expires; user space keeps in it the latest expiry of
 * all entries of the list that contain the prefix, so the longest match speaks for all.
 */
#pragma once

#include "clock.bpf.h"
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

/* Few entries expire: the clock is read for those only. */
static __always_inline bool weir_entry_holds(const uint64_t *expires)
{
	return expires && (*expires == WEIR_LIST_FOREVER || weir_now_ns() < *expires);
}

static __always_inline bool weir_list4_has(void *list, uint32_t address)
{
	struct weir_list4_key key = { .length = 32, .address = address };

	return weir_entry_holds(bpf_map_lookup_elem(list, &key));
}

static __always_inline bool weir_list_has(const struct weir_packet *packet, void *list4,
					  void *list6)
{
	struct weir_list6_key key = { .length = 128 };

	if (packet->family == 4)
		return weir_list4_has(list4, packet->source[0]);
	__builtin_memcpy(key.address, packet->source, sizeof(key.address));
	return weir_entry_holds(bpf_map_lookup_elem(list6, &key));
}

/* Out of line: most hosts list nobody. */
__noinline int weir_is_allowed(const struct weir_packet *packet)
{
	return packet && weir_list_has(packet, &weir_allow4, &weir_allow6);
}

__noinline int weir_is_denied(const struct weir_packet *packet)
{
	return packet && weir_list_has(packet, &weir_deny4, &weir_deny6);
}

static __always_inline bool weir_lists_used(const struct weir_packet *packet, uint32_t used,
					    uint32_t v4, uint32_t v6)
{
	return used & (packet->family == 4 ? v4 : v6);
}
