/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Connections between their first packet and their acceptance, each once at each gate. The
 * least recently used go first: a connection that a flood pushes out counts as pending until
 * that expires, and a repeated SYN of it as another one.
 */
#pragma once

#include "ledger.bpf.h"
#include "weir/pending.h"

/* The connection of context->packet at the limit that the charge is open for. */
__noinline uint64_t weir_pending_key(struct weir_context *context)
{
	const struct weir_packet *packet;
	struct weir_key *key;

	if (!context)
		return 0;
	packet = &context->packet;
	key = &context->key;
	*key = (struct weir_key){
		.ports = (uint32_t)packet->source_port << 16 | packet->destination_port,
		.kind = packet->family,
	};
	key->source[0] = packet->source[0];
	key->destination[0] = packet->destination[0];
	for (int i = 1; i < 4 && packet->family == 6; i++) {
		key->source[i] = packet->source[i];
		key->destination[i] = packet->destination[i];
	}
	return weir_key_tag(key, context->charge.tag, &weir_shape.seeds);
}

/* When the connection asked, 0 where it hasn't or does not count any more. */
static __always_inline uint64_t weir_pending_since(uint64_t connection, uint64_t slice)
{
	const uint64_t *then = bpf_map_lookup_elem(&weir_pending, &connection);

	return then && weir_pending_lives(weir_pending_slice(*then), slice) ? *then : 0;
}
