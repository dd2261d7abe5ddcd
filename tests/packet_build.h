/* SPDX-License-Identifier: GPL-2.0 */
/* Frames for the parser's tests, header by header, broken ones too. */
#pragma once

#include <string.h>

#include "weir/packet.h"

#define FRAME_MAX 8192

struct frame {
	uint8_t bytes[FRAME_MAX];
	size_t size;
	size_t l3, l4; /* where the headers begin */
};

static inline void put8(struct frame *f, unsigned int value)
{
	f->bytes[f->size++] = (uint8_t)value;
}

static inline void put16(struct frame *f, unsigned int value)
{
	put8(f, value >> 8);
	put8(f, value & 0xff);
}

static inline void put_zeros(struct frame *f, size_t count)
{
	memset(f->bytes + f->size, 0, count);
	f->size += count;
}

static inline void put_range(struct frame *f, unsigned int first, size_t count)
{
	for (size_t i = 0; i < count; i++)
		put8(f, first + (unsigned int)i);
}

/* Addresses, tags of (type, id) pairs, then the ethertype. */
static inline void put_link(struct frame *f, const uint16_t (*tags)[2], size_t tag_count,
			    uint16_t type)
{
	f->size = 0;
	put_range(f, 0x10, 12);
	for (size_t i = 0; i < tag_count; i++) {
		put16(f, tags[i][0]);
		put16(f, 0xe000 | tags[i][1]); /* with a priority */
	}
	put16(f, type);
	f->l3 = f->size;
}

/* From 10.11.12.13 to 20.21.22.23. `words` of header, `fragment` as on the wire. */
static inline void put_ipv4(struct frame *f, unsigned int words, unsigned int protocol,
			    unsigned int fragment)
{
	put8(f, 0x40 | words);
	put8(f, 0);
	put16(f, 0x1234);
	put16(f, 0x5678);
	put16(f, fragment);
	put8(f, 64);
	put8(f, protocol);
	put16(f, 0);
	put_range(f, 10, 4);
	put_range(f, 20, 4);
	if (words > 5)
		put_range(f, 0x80, (words - 5) * 4); /* looks like ports if read as such */
	f->l4 = f->size;
}

/* From 2001:..0f to 3031:..3f. */
static inline void put_ipv6(struct frame *f, unsigned int next, unsigned int hop_limit)
{
	put8(f, 0x60);
	put_zeros(f, 3);
	put16(f, 100);
	put8(f, next);
	put8(f, hop_limit);
	put_range(f, 0x20, 16);
	put_range(f, 0x30, 16);
	f->l4 = f->size;
}

/* An extension header of 8 * (units + 1) bytes, or of 4 * (units + 2) for AH. */
static inline void put_extension(struct frame *f, unsigned int kind, unsigned int next,
				 unsigned int units)
{
	size_t size = kind == WEIR_IP_AUTHENTICATION ? 4 * (units + 2) : 8 * (units + 1);

	put8(f, next);
	put8(f, kind == WEIR_IP_FRAGMENT ? 0 : units);
	put_zeros(f, size - 2);
	f->l4 = f->size;
}

/* Ports 4660 to 53 and what else the protocol has. */
static inline void put_transport(struct frame *f, unsigned int protocol)
{
	if (protocol == WEIR_IP_ICMP || protocol == WEIR_IP_ICMPV6) {
		put8(f, protocol == WEIR_IP_ICMP ? 8 : 128);
		put_zeros(f, 7);
		return;
	}
	put16(f, 0x1234);
	put16(f, 53);
	if (protocol == WEIR_IP_TCP) {
		put_zeros(f, 8);
		put8(f, 8 << 4);
		put8(f, 0x12);
		put_zeros(f, 18);
	} else {
		put_zeros(f, protocol == WEIR_IP_SCTP ? 8 : 4);
	}
	put_zeros(f, 10);
}

static inline void build4(struct frame *f, unsigned int protocol)
{
	put_link(f, NULL, 0, WEIR_ETH_IPV4);
	put_ipv4(f, 5, protocol, 0);
	put_transport(f, protocol);
}

static inline void build6(struct frame *f, unsigned int protocol)
{
	put_link(f, NULL, 0, WEIR_ETH_IPV6);
	put_ipv6(f, protocol, 64);
	put_transport(f, protocol);
}
