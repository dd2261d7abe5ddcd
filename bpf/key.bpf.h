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

/* The tag of the packet's key, which is in context->key after. */
__noinline uint64_t weir_tag_long(struct weir_context *context, uint32_t index)
{
	struct weir_limit *limit;

	if (!context)
		return 0;
	limit = weir_limit_at(context->generation, index);
	weir_key_of(&context->key, limit, &context->packet);
	return weir_key_tag(&context->key, limit->salt, &weir_shape.seeds);
}

/* The same, the short way round for what most limits look at. */
static __always_inline uint64_t weir_tag_of(struct weir_context *context,
					    const struct weir_limit *limit, uint32_t index)
{
	const struct weir_packet *packet = &context->packet;

	if (limit->key == WEIR_KEY_SOURCE && packet->family == 4)
		return weir_source4_tag(packet->source[0] & limit->mask4, limit->salt,
					&weir_shape.seeds);
	return weir_tag_long(context, index);
}

static __always_inline void weir_charge_open(struct weir_context *context,
					     const struct weir_limit *limit, uint32_t index,
					     uint32_t mode)
{
	struct weir_charge *charge = &context->charge;

	charge->tag = weir_tag_of(context, limit, index);
	charge->cost = weir_cost_of(limit, &context->packet);
	charge->limit = index;
	charge->mode = mode;
}

/* Which sets of the ledger to look in. */
static __always_inline void weir_charge_aim(struct weir_charge *charge,
					    const struct weir_limit *limit)
{
	uint32_t sets = limit->own_sets ? limit->own_sets : weir_shape.sets;

	charge->first = weir_tag_first(charge->tag, sets);
	charge->second = weir_tag_second(charge->tag, sets, &weir_shape.seeds);
}
