/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Frames from a template: Ethernet, up to two VLAN tags, IPv4 or IPv6, UDP or a TCP SYN, zero
 * payload. Only the source (address, port) changes from frame to frame; the checksums of all
 * the rest are summed once, so writing a frame costs the same at any size but for its copy.
 *
 * A frame's size is what is on the wire without the FCS: what XDP sees.
 */
#pragma once

#include "tool.h"

#include <stdint.h>
#include <string.h>

#define FRAME_MAX 9022 /* a 9000-byte MTU, Ethernet and two tags */
#define FRAME_TAGS_MAX 2

struct frame_spec {
	struct in6_addr source, destination; /* IPv4 mapped */
	uint8_t to_mac[6];
	uint16_t tags[FRAME_TAGS_MAX];
	unsigned int tag_count;
	uint16_t from_port, to_port;
	uint8_t protocol;  /* IPPROTO_UDP or IPPROTO_TCP */
	unsigned int size; /* 0: a TCP SYN without payload, for UDP that or 60 */
};

struct frame {
	uint8_t bytes[FRAME_MAX];
	unsigned int size;
	unsigned int ip_at, address_at, address_size, l4_at, l4_sum_at;
	bool ipv6;
	uint64_t ip_sum, l4_sum; /* of all that stays the same */
};

static inline void frame_put16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

/* Sum of 16-bit words, unfolded. An odd last byte is a word's high half. */
static inline uint64_t frame_sum(const uint8_t *at, unsigned int size)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i + 1 < size; i += 2)
		sum += (uint64_t)at[i] << 8 | at[i + 1];
	if (size & 1)
		sum += (uint64_t)at[size - 1] << 8;
	return sum;
}

static inline uint16_t frame_checksum(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static inline unsigned int frame_l4_size(const struct frame_spec *spec)
{
	return spec->protocol == IPPROTO_TCP ? 20 : 8;
}

/* The size of the headers alone: the least a frame of this kind can have. */
static inline unsigned int frame_headers_size(const struct frame_spec *spec)
{
	unsigned int ip = IN6_IS_ADDR_V4MAPPED(&spec->destination) ? 20 : 40;

	return 14 + 4 * spec->tag_count + ip + frame_l4_size(spec);
}

static inline void frame_put_ethernet(struct frame *f, const struct frame_spec *spec)
{
	static const uint8_t from_mac[6] = { 2, 'f', 'l', 'o', 'o', 'd' };
	uint8_t *at = f->bytes + 12;

	memcpy(f->bytes, spec->to_mac, 6);
	memcpy(f->bytes + 6, from_mac, 6);
	for (unsigned int i = 0; i < spec->tag_count; i++, at += 4) {
		frame_put16(at, spec->tag_count == 2 && i == 0 ? 0x88a8 : 0x8100);
		frame_put16(at + 2, spec->tags[i]);
	}
	frame_put16(at, f->ipv6 ? 0x86dd : 0x0800);
	f->ip_at = (unsigned int)(at + 2 - f->bytes);
}

static inline void frame_put_ip(struct frame *f, const struct frame_spec *spec)
{
	uint8_t *ip = f->bytes + f->ip_at;

	if (f->ipv6) {
		ip[0] = 0x60;
		frame_put16(ip + 4, (uint16_t)(f->size - f->ip_at - 40));
		ip[6] = spec->protocol;
		ip[7] = 64;
		memcpy(ip + 24, &spec->destination, 16);
		f->address_at = f->ip_at + 8;
		f->address_size = 16;
		f->l4_at = f->ip_at + 40;
		return;
	}
	ip[0] = 0x45;
	frame_put16(ip + 2, (uint16_t)(f->size - f->ip_at));
	ip[6] = 0x40; /* don't fragment */
	ip[8] = 64;
	ip[9] = spec->protocol;
	memcpy(ip + 16, &spec->destination.s6_addr[12], 4);
	f->address_at = f->ip_at + 12;
	f->address_size = 4;
	f->l4_at = f->ip_at + 20;
	f->ip_sum = frame_sum(ip, 20);
}

static inline void frame_put_l4(struct frame *f, const struct frame_spec *spec)
{
	uint8_t *l4 = f->bytes + f->l4_at;
	unsigned int size = f->size - f->l4_at;
	unsigned int to_at = f->address_at + f->address_size;

	frame_put16(l4 + 2, spec->to_port);
	if (spec->protocol == IPPROTO_UDP) {
		frame_put16(l4 + 4, (uint16_t)size);
		f->l4_sum_at = f->l4_at + 6;
	} else {
		l4[12] = 5 << 4;
		l4[13] = 0x02; /* SYN */
		frame_put16(l4 + 14, 65535);
		f->l4_sum_at = f->l4_at + 16;
	}
	f->l4_sum = frame_sum(f->bytes + to_at, f->address_size) + spec->protocol + size +
		    frame_sum(l4, size);
}

/* The template. spec->size must be 0 or from frame_headers_size() to FRAME_MAX. */
static inline void frame_build(struct frame *f, const struct frame_spec *spec)
{
	unsigned int least = frame_headers_size(spec);

	memset(f, 0, sizeof(*f));
	if (spec->protocol == IPPROTO_UDP && least < 60)
		least = 60;
	f->size = spec->size ? spec->size : least;
	f->ipv6 = !IN6_IS_ADDR_V4MAPPED(&spec->destination);
	frame_put_ethernet(f, spec);
	frame_put_ip(f, spec);
	frame_put_l4(f, spec);
}

/* Makes `out`, a copy of the template's bytes, come from this address and port. */
static inline void frame_set_source(const struct frame *f, uint8_t *out,
				    const struct in6_addr *source, uint16_t port)
{
	const uint8_t *address = source->s6_addr + 16 - f->address_size;
	uint64_t sum = frame_sum(address, f->address_size);
	uint16_t l4_sum = frame_checksum(f->l4_sum + sum + port);

	memcpy(out + f->address_at, address, f->address_size);
	frame_put16(out + f->l4_at, port);
	frame_put16(out + f->l4_sum_at, l4_sum ? l4_sum : 0xffff); /* UDP: 0 means none */
	if (!f->ipv6)
		frame_put16(out + f->ip_at + 10, frame_checksum(f->ip_sum + sum));
}

/* The index-th source after base, `shift` bits up: base + (index << shift). shift is < 128. */
static inline struct in6_addr frame_nth_source(const struct in6_addr *base, uint64_t index,
					       unsigned int shift)
{
	unsigned __int128 value = 0;
	struct in6_addr out;

	for (int i = 0; i < 16; i++)
		value = value << 8 | base->s6_addr[i];
	value += (unsigned __int128)index << shift;
	for (int i = 15; i >= 0; i--, value >>= 8)
		out.s6_addr[i] = (uint8_t)value;
	return out;
}
