/* SPDX-License-Identifier: GPL-2.0 */
/* The ledger and the fronts as maps: see include/weir/ledger.h and front.h. */
#pragma once

#include "key.bpf.h"

enum weir_answer {
	WEIR_ADMITTED,
	WEIR_NEW, /* admitted, and the first of its key */
	WEIR_REFUSED,
	WEIR_BANNED,	/* refused because of a ban */
	WEIR_UNTRACKED, /* the ledger has no room for this newcomer */
	WEIR_AGAIN,	/* somebody was faster */
	WEIR_NOWHERE,	/* the key has no place yet */
};

#define WEIR_TRIES 4

static __always_inline struct weir_set *weir_set_at(const struct weir_limit *limit, uint32_t index)
{
	uint32_t slot = limit->slot;
	void *own;

	if (!limit->own_sets)
		return bpf_map_lookup_elem(&weir_ledger, &index);
	own = bpf_map_lookup_elem(&weir_own_ledgers, &slot);
	return own ? bpf_map_lookup_elem(own, &index) : 0;
}

/* Of the place that the charge stands at. */
static __always_inline uint32_t weir_place_number(const struct weir_charge *charge)
{
	uint32_t set = charge->which ? charge->second : charge->first;

	return set * WEIR_WAYS + (charge->way & (WEIR_WAYS - 1));
}

static __always_inline void weir_record_fill(struct weir_key_record *record,
					     const struct weir_limit *limit,
					     const struct weir_key *key)
{
	for (int i = 0; i < 4; i++)
		record->address[i] = limit->key & WEIR_KEY_SOURCE ? key->source[i] :
								    key->destination[i];
	record->slot = limit->slot;
	record->family = key->kind;
	record->protocol = key->kind >> 8;
	record->source_port = key->ports >> 16;
	record->destination_port = key->ports;
}

/* Whose the place is that the charge stands at. */
static __always_inline void weir_record_key(struct weir_context *context,
					    const struct weir_limit *limit)
{
	uint32_t place = weir_place_number(&context->charge), slot = limit->slot;
	struct weir_key_record *record;
	struct weir_own_record *own;
	struct weir_key *key = &context->key;
	void *map;

	weir_key_of(key, limit, &context->packet);
	if (!limit->own_sets) {
		record = bpf_map_lookup_elem(&weir_keys, &place);
		if (record)
			weir_record_fill(record, limit, key);
		return;
	}
	map = bpf_map_lookup_elem(&weir_own_keys, &slot);
	own = map ? bpf_map_lookup_elem(map, &place) : 0;
	if (!own)
		return;
	weir_record_fill(&own->key, limit, key);
	__builtin_memcpy(own->peer, key->destination, sizeof(own->peer));
}

/* ---- front ---- */

static __always_inline struct weir_front_slot *weir_front_at(const struct weir_context *context,
							     uint64_t tag)
{
	uint32_t key = context->cpu * weir_shape.front_slots +
		       weir_tag_slot(tag, weir_shape.front_slots);

	return bpf_map_lookup_elem(&weir_front, &key);
}

/* Folds what a slot counted into the ledger, if the key still has its place there. */
static __always_inline void weir_front_fold(const struct weir_front_slot *slot)
{
	uint32_t place = slot->place & ~WEIR_FRONT_OWN;
	uint32_t set_index = place / WEIR_WAYS, way = place % WEIR_WAYS;
	uint32_t owner = place >> 23 & 0xff;
	struct weir_set *set;
	void *own;

	if (slot->place & WEIR_FRONT_OWN) {
		set_index = (place & (WEIR_OWN_PLACES_MAX - 1)) / WEIR_WAYS;
		own = bpf_map_lookup_elem(&weir_own_ledgers, &owner);
		set = own ? bpf_map_lookup_elem(own, &set_index) : 0;
	} else {
		set = bpf_map_lookup_elem(&weir_ledger, &set_index);
	}
	if (set && set->tag[way] == slot->tag)
		__sync_fetch_and_add(&set->counts[way].refused, slot->refused);
}

static __always_inline void weir_front_learn(struct weir_front_slot *slot, uint64_t tag,
					     uint64_t seen, uint32_t place, uint32_t revision)
{
	if (slot->tag != tag) {
		if (slot->refused)
			weir_front_fold(slot);
		slot->tag = tag;
		slot->refused = 0;
	}
	slot->seen = seen;
	slot->place = place;
	slot->revision = revision;
}
