/* SPDX-License-Identifier: GPL-2.0 */
/* Which limits apply to a packet: see include/weir/match.h. */
#pragma once

#include "context.bpf.h"

/*
 * The number of the lowest set bit of a word that has one: BPF has no instruction for it.
 * (Leiserson, Prokop and Randall, "Using de Bruijn sequences to index a 1", 1998.)
 */
static const uint8_t weir_bit_of[64] = {
	0,  1,	2,  53, 3,  7,	54, 27, 4,  38, 41, 8,	34, 55, 48, 28, 62, 5,	39, 46, 44, 42,
	22, 9,	24, 35, 59, 56, 49, 18, 29, 11, 63, 52, 6,  26, 37, 40, 33, 47, 61, 45, 43, 21,
	23, 58, 17, 10, 51, 25, 36, 32, 60, 20, 57, 16, 50, 31, 19, 15, 30, 14, 13, 12,
};

static __always_inline uint32_t weir_lowest_bit(uint64_t word)
{
	return weir_bit_of[((word & (0 - word)) * 0x022fdd63cc95386dULL) >> 58 & 63];
}

static __always_inline void weir_match_row(struct weir_context *context, uint32_t row)
{
	uint32_t key = context->generation * WEIR_ROWS + row;
	const struct weir_bitmap *bitmap = bpf_map_lookup_elem(&weir_rows, &key);

	if (bitmap)
		weir_bitmap_and(&context->limits, bitmap);
}

static __always_inline uint32_t weir_match_port_class(const struct weir_context *context,
						      uint32_t source, uint16_t port)
{
	uint32_t key = (context->generation * 2 + source) * WEIR_PORT_WORDS + port / 4;
	const uint64_t *word;

	if (!(context->packet.has & WEIR_HAS_PORTS))
		return 0;
	word = bpf_map_lookup_elem(&weir_ports, &key);
	return word ? weir_port_class(*word, port) & (WEIR_PORT_CLASSES - 1) : 0;
}

static __noinline uint32_t weir_match_prefix_class(const struct weir_context *context,
						const uint32_t *address, uint32_t destination)
{
	bool v6 = context->packet.family == 6;
	struct weir_prefix_key key = {
		.length = 8 + (v6 ? 128 : 32),
		.table = context->generation << 2 | destination << 1 | v6,
	};
	const uint32_t *class;

	__builtin_memcpy(key.address, address, sizeof(key.address));
	class = bpf_map_lookup_elem(&weir_prefixes, &key);
	return class ? *class & (WEIR_PREFIX_CLASSES - 1) : 0;
}

static __always_inline void weir_match_upper(struct weir_context *context, uint32_t dimensions)
{
	const struct weir_packet *packet = &context->packet;
	uint32_t row;

	if (dimensions & WEIR_BY_PROTOCOL)
		weir_match_row(context, WEIR_ROWS_PROTOCOL + packet->protocol);
	if (dimensions & WEIR_BY_DESTINATION_PORT) {
		row = weir_match_port_class(context, 0, packet->destination_port);
		weir_match_row(context, WEIR_ROWS_DESTINATION_PORT + row);
	}
	if (dimensions & WEIR_BY_SOURCE_PORT) {
		row = weir_match_port_class(context, 1, packet->source_port);
		weir_match_row(context, WEIR_ROWS_SOURCE_PORT + row);
	}
	if (dimensions & WEIR_BY_TCP_FLAGS) {
		row = packet->has & WEIR_HAS_TCP_FLAGS ? packet->tcp_flags : WEIR_NO_TCP_FLAGS;
		weir_match_row(context, WEIR_ROWS_TCP_FLAGS + row);
	}
	if (dimensions & WEIR_BY_ICMP_TYPE) {
		row = packet->family == 6 ? 256 + packet->icmp_type : packet->icmp_type;
		if (!(packet->has & WEIR_HAS_ICMP_TYPE))
			row = WEIR_NO_ICMP_TYPE;
		weir_match_row(context, WEIR_ROWS_ICMP_TYPE + row);
	}
}

/* Takes out of context->limits those that don't accept the packet. */
static __always_inline void weir_match_rows(struct weir_context *context, uint32_t dimensions)
{
	const struct weir_packet *packet = &context->packet;
	uint32_t row;

	if (!dimensions)
		return;
	weir_match_upper(context, dimensions);
	if (dimensions & WEIR_BY_VLAN) {
		row = packet->vlan < WEIR_NO_VLAN_ROW ? packet->vlan : WEIR_NO_VLAN_ROW;
		weir_match_row(context, WEIR_ROWS_VLAN + row);
	}
	if (dimensions & WEIR_BY_SOURCE) {
		row = weir_match_prefix_class(context, packet->source, 0);
		weir_match_row(context, WEIR_ROWS_SOURCE + row);
	}
	if (dimensions & WEIR_BY_DESTINATION) {
		row = weir_match_prefix_class(context, packet->destination, 1);
		weir_match_row(context, WEIR_ROWS_DESTINATION + row);
	}
	if (dimensions & WEIR_BY_INTERFACE)
		weir_match_row(context, WEIR_ROWS_INTERFACE + context->interface);
}

/* Fills context->limits. */
static __always_inline void weir_match(struct weir_context *context,
				       const struct weir_policy_head *head)
{
	uint32_t hook = context->hook;

	if (hook >= WEIR_HOOKS)
		return;
	context->limits = head->hooks[hook];
	weir_match_rows(context, head->dimensions);
}
