/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Whether one limit lets a packet pass: front, then ledger. See include/weir/ledger.h for the
 * protocol between CPUs.
 */
#pragma once

#include "count.bpf.h"

enum weir_answer {
	WEIR_ADMITTED,
	WEIR_NEW, /* admitted, and the first of its key */
	WEIR_REFUSED,
	WEIR_UNTRACKED, /* the ledger has no room for this newcomer */
	WEIR_AGAIN,	/* somebody was faster */
};

#define WEIR_TRIES 4

/* One limit's view of one packet. No pointers: it goes to functions verified on their own. */
struct weir_charge {
	uint64_t tag;
	uint64_t cost;
	uint32_t first; /* sets of the ledger */
	uint32_t second;
	uint32_t limit; /* index */
	uint32_t reserved;
};

static __always_inline struct weir_set *weir_set_at(uint32_t index)
{
	return bpf_map_lookup_elem(&weir_ledger, &index);
}

static __always_inline void weir_key_of(struct weir_key *key, const struct weir_limit *limit,
					const struct weir_packet *packet)
{
	*key = (struct weir_key){ .kind = packet->family };
	if (limit->key & WEIR_KEY_SOURCE) {
		if (packet->family == 4) {
			key->source[0] = packet->source[0] & limit->mask4;
		} else {
			for (int i = 0; i < 4; i++)
				key->source[i] = packet->source[i] & limit->mask6[i];
		}
	}
	if (!(limit->key & ~WEIR_KEY_SOURCE)) {
		key->kind = limit->key ? key->kind : 0;
		return;
	}
	if (limit->key & WEIR_KEY_DESTINATION) {
		/* A flow is told apart by whole addresses: its masks are all ones. */
		if (packet->family == 4) {
			key->destination[0] = packet->destination[0] & limit->mask4;
		} else {
			for (int i = 0; i < 4; i++)
				key->destination[i] = packet->destination[i] & limit->mask6[i];
		}
	}
	if (limit->key & WEIR_KEY_SOURCE_PORT)
		key->ports |= (uint32_t)packet->source_port << 16;
	if (limit->key & WEIR_KEY_DESTINATION_PORT)
		key->ports |= packet->destination_port;
	if (limit->key & WEIR_KEY_PROTOCOL)
		key->kind |= (uint32_t)packet->protocol << 8;
}

static __always_inline void weir_charge_open(struct weir_charge *charge,
					     const struct weir_context *context,
					     const struct weir_limit *limit, uint32_t index)
{
	const struct weir_packet *packet = &context->packet;
	struct weir_key key;
	uint64_t amount = limit->flags & WEIR_LIMIT_BYTES ? packet->bytes : packet->packets;

	weir_key_of(&key, limit, packet);
	*charge = (struct weir_charge){ .tag = weir_key_tag(&key, limit->salt, &weir_shape.seeds) };
	charge->cost = weir_bucket_cost(&limit->bucket, amount);
	charge->first = weir_tag_first(charge->tag, weir_shape.sets);
	charge->second = weir_tag_second(charge->tag, weir_shape.sets, &weir_shape.seeds);
	charge->limit = index;
}

/* ---- front ---- */

static __always_inline struct weir_front_slot *
weir_front_at(const struct weir_context *context, uint64_t tag)
{
	uint32_t key = context->cpu * weir_shape.front_slots + weir_tag_slot(tag, weir_shape.front_slots);

	return bpf_map_lookup_elem(&weir_front, &key);
}

/* Folds what a slot counted into the ledger, if the key still has its place there. */
static __always_inline void weir_front_fold(struct weir_front_slot *slot)
{
	uint32_t index = slot->place / WEIR_WAYS, way = slot->place % WEIR_WAYS;
	struct weir_set *set;

	if (!slot->refused)
		return;
	set = bpf_map_lookup_elem(&weir_ledger, &index);
	if (set && set->tag[way] == slot->tag)
		__sync_fetch_and_add(&set->counts[way].refused, slot->refused);
}

static __always_inline void weir_front_learn(struct weir_front_slot *slot,
					     const struct weir_charge *charge,
					     const struct weir_place *place, uint64_t seen,
					     uint32_t revision)
{
	uint32_t index = place->which ? charge->second : charge->first;

	if (slot->tag != charge->tag) {
		weir_front_fold(slot);
		slot->tag = charge->tag;
		slot->refused = 0;
	}
	slot->seen = seen;
	slot->place = index * WEIR_WAYS + place->way;
	slot->revision = revision;
}

/* ---- ledger ---- */

static __always_inline void weir_record_key(const struct weir_context *context,
					    const struct weir_charge *charge,
					    const struct weir_limit *limit,
					    const struct weir_place *place)
{
	uint32_t index = place->which ? charge->second : charge->first;
	uint32_t at = index * WEIR_WAYS + place->way;
	struct weir_key_record *record = bpf_map_lookup_elem(&weir_keys, &at);
	struct weir_key key;

	if (!record)
		return;
	weir_key_of(&key, limit, &context->packet);
	for (int i = 0; i < 4; i++)
		record->address[i] = limit->key & WEIR_KEY_SOURCE ? key.source[i] :
								    key.destination[i];
	record->slot = limit->slot;
	record->family = limit->key ? context->packet.family : 0;
	record->protocol = key.kind >> 8;
	record->source_port = key.ports >> 16;
	record->destination_port = key.ports;
}

/* A newcomer's place in the ledger, charged with its first packet: enum weir_answer. */
__noinline int weir_bucket_claim(const struct weir_context *context,
				 const struct weir_charge *charge)
{
	struct weir_set *first, *second;
	struct weir_limit *limit;
	struct weir_place place;
	uint64_t next;

	if (!context || !charge)
		return WEIR_REFUSED;
	limit = weir_limit_at(context, charge->limit);
	first = weir_set_at(charge->first);
	second = weir_set_at(charge->second);
	if (!limit || !first || !second)
		return WEIR_REFUSED;
	if (!weir_bucket_step(0, &limit->bucket, context->now_ticks, charge->cost, &next))
		return WEIR_REFUSED;
	weir_ledger_choose(&place, first, second, context->now_ticks);
	if (!place.set)
		return WEIR_UNTRACKED;
	if (!weir_ledger_reserve(&place, context->now_ticks))
		return WEIR_AGAIN;
	weir_record_key(context, charge, limit, &place);
	return weir_ledger_publish(first, second, &place, charge->tag, next, context->now_ticks) ?
		       WEIR_NEW :
		       WEIR_AGAIN;
}

/* Where the key is; place->set is NULL if nowhere. */
static __always_inline void weir_place_find(struct weir_place *place, struct weir_set *first,
					    struct weir_set *second, uint64_t tag)
{
	uint32_t way = weir_set_find(first, tag);

	*place = (struct weir_place){ .set = first, .way = way };
	if (way < WEIR_WAYS)
		return;
	way = weir_set_find(second, tag);
	*place = (struct weir_place){ .set = second, .way = way, .which = 1 };
	if (way >= WEIR_WAYS)
		place->set = 0;
}

static __always_inline int weir_bucket_try(const struct weir_context *context,
					   const struct weir_charge *charge,
					   const struct weir_limit *limit, struct weir_set *first,
					   struct weir_set *second, struct weir_front_slot *slot)
{
	struct weir_place place;
	struct weir_counts *counts;
	uint64_t *state, tat, next;

	weir_place_find(&place, first, second, charge->tag);
	if (!place.set)
		return weir_bucket_claim(context, charge);
	place.way &= WEIR_WAYS - 1;
	state = &place.set->state[place.way];
	counts = &place.set->counts[place.way];
	tat = weir_once(*state);
	if (tat == WEIR_STATE_BUSY || !weir_set_holds(place.set, place.way, charge->tag))
		return WEIR_AGAIN;
	if (weir_bucket_step(tat, &limit->bucket, context->now_ticks, charge->cost, &next)) {
		if (weir_swap(state, tat, next) != tat)
			return WEIR_AGAIN;
		__sync_fetch_and_add(&counts->passed, 1);
		return WEIR_ADMITTED;
	}
	next = weir_bucket_clamp(tat, &limit->bucket, context->now_ticks);
	if (next != tat)
		weir_swap(state, tat, next);
	__sync_fetch_and_add(&counts->refused, 1);
	weir_front_learn(slot, charge, &place, next, limit->revision);
	return WEIR_REFUSED;
}

/* Takes what a packet costs from one limit's bucket: enum weir_answer. */
static __always_inline int weir_bucket_take_packet(const struct weir_context *context,
						   const struct weir_limit *limit, uint32_t index)
{
	struct weir_front_slot *slot;
	struct weir_set *first, *second;
	struct weir_charge charge;
	int answer = WEIR_AGAIN;

	weir_charge_open(&charge, context, limit, index);
	slot = weir_front_at(context, charge.tag);
	if (!slot)
		return WEIR_UNTRACKED;
	if (weir_front_holds(slot, charge.tag, limit->revision) &&
	    weir_front_refuses(slot->seen, context->now_ticks, limit->bucket.burst_ticks,
			       charge.cost)) {
		slot->refused++;
		return WEIR_REFUSED;
	}
	first = weir_set_at(charge.first);
	second = weir_set_at(charge.second);
	if (!first || !second)
		return WEIR_UNTRACKED;
	weir_set_touch(first);
	weir_set_touch(second);
	_Pragma("clang loop unroll(disable)")
	for (int i = 0; i < WEIR_TRIES && answer == WEIR_AGAIN; i++)
		answer = weir_bucket_try(context, &charge, limit, first, second, slot);
	return answer;
}
