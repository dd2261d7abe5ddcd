// SPDX-License-Identifier: GPL-2.0
/* The compiled tables, read as the kernel side reads them (bpf/match.bpf.h). */
#include <string.h>

#include "controller/compile.h"

static uint32_t prefix_class(const struct weir_compiled *compiled, uint8_t family,
			     const uint32_t *address, uint8_t destination)
{
	uint8_t table = (uint8_t)(destination << 1 | (family == 6));
	uint32_t best = 0, class = 0;

	for (size_t i = 0; i < compiled->prefix_count; i++) {
		const struct weir_prefix_key *key = &compiled->prefixes[i].key;
		struct weir_prefix prefix = { .family = family,
					      .length = (uint8_t)(key->length - 8) };

		memcpy(prefix.address, key->address, sizeof(prefix.address));
		if (key->table != table || key->length < best ||
		    !weir_prefix_contains(&prefix, family, address))
			continue;
		best = key->length;
		class = compiled->prefixes[i].class;
	}
	return class;
}

static uint32_t port_class(const struct weir_compiled *compiled, int source,
			   const struct weir_packet *packet)
{
	uint16_t port = source ? packet->source_port : packet->destination_port;

	if (!(packet->has & WEIR_HAS_PORTS))
		return 0;
	return weir_port_class(compiled->ports[source][port / 4], port);
}

struct weir_bitmap weir_compiled_match(const struct weir_compiled *compiled,
				       const struct weir_packet *packet, enum weir_hook hook,
				       uint32_t interface, uint32_t ignored)
{
	const bool has_flags = packet->has & WEIR_HAS_TCP_FLAGS;
	const bool has_icmp = packet->has & WEIR_HAS_ICMP_TYPE;
	const uint32_t icmp = packet->family == 6 ? 256U + packet->icmp_type : packet->icmp_type;
	const uint32_t vlan = packet->vlan < WEIR_NO_VLAN_ROW ? packet->vlan : WEIR_NO_VLAN_ROW;
	const struct {
		enum weir_dimension dimension;
		uint32_t row;
	} looks[] = {
		{ WEIR_BY_PROTOCOL, WEIR_ROWS_PROTOCOL + packet->protocol },
		{ WEIR_BY_DESTINATION_PORT,
		  WEIR_ROWS_DESTINATION_PORT + port_class(compiled, 0, packet) },
		{ WEIR_BY_SOURCE_PORT, WEIR_ROWS_SOURCE_PORT + port_class(compiled, 1, packet) },
		{ WEIR_BY_TCP_FLAGS,
		  WEIR_ROWS_TCP_FLAGS + (has_flags ? packet->tcp_flags : WEIR_NO_TCP_FLAGS) },
		{ WEIR_BY_ICMP_TYPE, WEIR_ROWS_ICMP_TYPE + (has_icmp ? icmp : WEIR_NO_ICMP_TYPE) },
		{ WEIR_BY_VLAN, WEIR_ROWS_VLAN + vlan },
		{ WEIR_BY_SOURCE,
		  WEIR_ROWS_SOURCE + prefix_class(compiled, packet->family, packet->source, 0) },
		{ WEIR_BY_DESTINATION,
		  WEIR_ROWS_DESTINATION +
			  prefix_class(compiled, packet->family, packet->destination, 1) },
		{ WEIR_BY_INTERFACE, WEIR_ROWS_INTERFACE + interface },
	};
	struct weir_bitmap bitmap = compiled->head.hooks[hook];

	for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
		if (compiled->head.dimensions & ~ignored & looks[i].dimension)
			weir_bitmap_and(&bitmap, &compiled->rows[looks[i].row]);
	}
	return bitmap;
}
