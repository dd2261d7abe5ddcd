/* SPDX-License-Identifier: GPL-2.0 */
/* The frame of a parsed packet: what weir_packet_parse makes of it is the packet again. */
#pragma once

#include <string.h>

#include "weir/packet.h"

#define PACKET_FRAME_MAX 256

static inline uint8_t *packet_put16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
	return at + 2;
}

/* A packet without its upper header is a later fragment. */
static inline uint8_t *packet_put_ip(uint8_t *at, const struct weir_packet *packet, bool later)
{
	bool v6 = packet->family == 6;

	if (!v6) {
		at[0] = 0x45;
		packet_put16(at + 6, later ? 0x2010 : 0x4000);
		at[8] = 64;
		at[9] = packet->protocol;
		memcpy(at + 12, packet->source, 4);
		memcpy(at + 16, packet->destination, 4);
		return at + 20;
	}
	at[0] = 0x60;
	at[6] = later ? WEIR_IP_FRAGMENT : packet->protocol;
	at[7] = 64;
	memcpy(at + 8, packet->source, 16);
	memcpy(at + 24, packet->destination, 16);
	at += 40;
	if (!later)
		return at;
	at[0] = packet->protocol;
	packet_put16(at + 2, 0x0100);
	return at + 8;
}

/* Returns the frame's size: at least 60, and `payload` bytes of zeros at the end. */
static inline uint32_t packet_frame(uint8_t *frame, const struct weir_packet *packet,
				    uint32_t payload)
{
	bool upper = packet->has & (WEIR_HAS_PORTS | WEIR_HAS_ICMP_TYPE);
	bool has_upper = packet->protocol == WEIR_IP_TCP || packet->protocol == WEIR_IP_UDP ||
			 packet->protocol == WEIR_IP_SCTP ||
			 packet->protocol == (packet->family == 4 ? WEIR_IP_ICMP : WEIR_IP_ICMPV6);
	uint8_t *at = frame + 12;

	memset(frame, 0, PACKET_FRAME_MAX);
	if (packet->vlan != WEIR_NO_VLAN) {
		at = packet_put16(at, WEIR_ETH_VLAN);
		at = packet_put16(at, 0xe000 | packet->vlan);
	}
	at = packet_put16(at, packet->family == 6 ? WEIR_ETH_IPV6 : WEIR_ETH_IPV4);
	at = packet_put_ip(at, packet, has_upper && !upper);
	if (packet->has & WEIR_HAS_ICMP_TYPE)
		at[0] = packet->icmp_type;
	if (packet->has & WEIR_HAS_PORTS) {
		packet_put16(at, packet->source_port);
		packet_put16(at + 2, packet->destination_port);
	}
	if (packet->has & WEIR_HAS_TCP_FLAGS) {
		at[12] = 5 << 4;
		at[13] = packet->tcp_flags;
	}
	return (uint32_t)(at - frame) + 20 + payload;
}
