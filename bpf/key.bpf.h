/* SPDX-License-Identifier: GPL-2.0 */
/* From a packet to the key that a limit counts it under, and what it costs there. */
#pragma once

#include "context.bpf.h"

static __always_inline void weir_mask_address(uint32_t *masked, const struct weir_limit *limit,
					      const uint32_t *address, uint8_t family)
{
	if (family == 4) {
		masked[0] = address[0] & limit->mask4;
		return;
	}
	for (int i = 0; i < 4; i++)
		masked[i] = address[i] & limit->mask6[i];
}

static __always_inline void weir_key_of(struct weir_key *key, const struct weir_limit *limit,
					const struct weir_packet *packet)
{
	*key = (struct weir_key){ 0 };
	if (!limit->key)
		return;
	key->kind = packet->family;
	if (limit->key & WEIR_KEY_SOURCE)
		weir_mask_address(key->source, limit, packet->source, packet->family);
	if (!(limit->key & ~WEIR_KEY_SOURCE))
		return;
	if (limit->key & WEIR_KEY_DESTINATION)
		weir_mask_address(key->destination, limit, packet->destination, packet->family);
	if (limit->key & WEIR_KEY_SOURCE_PORT)
		key->ports |= (uint32_t)packet->source_port << 16;
	if (limit->key & WEIR_KEY_DESTINATION_PORT)
		key->ports |= packet->destination_port;
	if (limit->key & WEIR_KEY_PROTOCOL)
		key->kind |= (uint32_t)packet->protocol << 8;
}

static __always_inline uint64_t weir_cost_of(const struct weir_limit *limit,
					     const struct weir_packet *packet)
{
	uint64_t amount = limit->flags & WEIR_LIMIT_BYTES ? packet->bytes : packet->packets;

	return limit->kind == WEIR_KIND_BUCKET ? weir_bucket_cost(&limit->bucket, amount) : amount;
}

static __always_inline void weir_charge_open(struct weir_context *context,
					     const struct weir_limit *limit, uint32_t index,
					     uint32_t mode)
{
	uint32_t sets = limit->own_sets ? limit->own_sets : weir_shape.sets;
	struct weir_charge *charge = &context->charge;
	struct weir_key key;
	uint64_t tag;

	weir_key_of(&key, limit, &context->packet);
	tag = weir_key_tag(&key, limit->salt, &weir_shape.seeds);
	charge->tag = tag;
	charge->cost = weir_cost_of(limit, &context->packet);
	charge->first = weir_tag_first(tag, sets);
	charge->second = weir_tag_second(tag, sets, &weir_shape.seeds);
	charge->limit = index;
	charge->mode = mode;
}
