/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The RST that answers a refused SYN (RFC 9293, 3.5.2): from the address that was asked, seq 0,
 * ack the SYN's number plus one. Written over the SYN, which is never shorter, and sent out
 * where it came in, which the driver must be able to (a veth's peer needs an XDP program; else
 * the answer is lost, as good as a drop). Not for a SYN behind IPv6 extension headers: that is
 * dropped.
 */
#pragma once

#include "context.bpf.h"

#define WEIR_RESET_BYTES 20 /* of TCP */
#define WEIR_FRAME_MIN 60   /* what a frame is padded to, without its checksum */

static __always_inline uint16_t weir_checksum_end(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

static __always_inline uint64_t weir_checksum_words(const void *at, uint32_t words)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < words; i++)
		sum += ((const uint32_t *)at)[i];
	return sum;
}

static __always_inline void weir_put32(void *at, uint32_t value)
{
	*(uint32_t *)at = value;
}

/* Both addresses change places; their sum, which is the same before and after. */
static __always_inline uint64_t weir_swap_addresses(uint8_t *source, uint32_t words)
{
	uint32_t *from = (uint32_t *)source, *to = from + words;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < words; i++) {
		uint32_t word = from[i];

		sum += (uint64_t)word + to[i];
		from[i] = to[i];
		to[i] = word;
	}
	return sum;
}

static __always_inline void weir_swap_macs(uint8_t *frame)
{
	uint16_t *words = (uint16_t *)frame;

	for (int i = 0; i < 3; i++) {
		uint16_t word = words[i];

		words[i] = words[i + 3];
		words[i + 3] = word;
	}
}

/* `sum`: of the addresses. `seq`: of the SYN, network order. */
static __always_inline void weir_put_reset(uint8_t *tcp, const struct weir_packet *packet,
					   uint32_t seq, uint64_t sum)
{
	uint32_t ports = bpf_htonl((uint32_t)packet->destination_port << 16 | packet->source_port);

	weir_put32(tcp, ports);
	weir_put32(tcp + 4, 0);
	weir_put32(tcp + 8, bpf_htonl(bpf_ntohl(seq) + 1));
	weir_put32(tcp + 12, bpf_htonl(0x50140000)); /* 20 bytes of header, RST and ACK */
	weir_put32(tcp + 16, 0);
	sum += bpf_htonl(WEIR_IP_TCP) + bpf_htonl(WEIR_RESET_BYTES);
	sum += weir_checksum_words(tcp, WEIR_RESET_BYTES / 4);
	*(uint16_t *)(tcp + 16) = weir_checksum_end(sum);
}

/* Where the IP header begins, 0 where the link header isn't whole or has more than two tags. */
static __always_inline uint32_t weir_network_offset(const struct weir_cursor *begin,
						    struct weir_packet *packet)
{
	struct weir_cursor cursor = *begin;

	uint16_t type = weir_parse_tags(&cursor, packet);

	return type && !weir_is_tag(type) ? cursor.offset : 0;
}

static __always_inline bool weir_reset4(struct weir_cursor *cursor, struct weir_packet *packet)
{
	uint8_t *ip = (uint8_t *)weir_cursor_peek(cursor, 20), *tcp;
	uint32_t ip_offset = cursor->offset, seq;
	uint64_t sum;

	if (!ip)
		return false;
	cursor->offset += (ip[0] & 0x0f) << 2;
	tcp = (uint8_t *)weir_cursor_peek(cursor, WEIR_RESET_BYTES);
	if (!tcp)
		return false;
	seq = weir_word(tcp + 4);
	cursor->offset = ip_offset + 20;
	tcp = (uint8_t *)weir_cursor_peek(cursor, WEIR_RESET_BYTES);
	if (!tcp)
		return false;
	weir_put32(ip, bpf_htonl(0x45000000 | (20 + WEIR_RESET_BYTES)));
	weir_put32(ip + 4, bpf_htonl(0x00004000));	/* don't fragment */
	weir_put32(ip + 8, bpf_htonl(0x40000000 | WEIR_IP_TCP << 16)); /* 64 hops */
	sum = weir_swap_addresses(ip + 12, 1);
	*(uint16_t *)(ip + 10) = weir_checksum_end(weir_checksum_words(ip, 5));
	weir_put_reset(tcp, packet, seq, sum);
	return true;
}

static __always_inline bool weir_reset6(struct weir_cursor *cursor, struct weir_packet *packet)
{
	uint8_t *ip = (uint8_t *)weir_cursor_peek(cursor, 40 + WEIR_RESET_BYTES), *tcp;
	uint32_t seq;
	uint64_t sum;

	if (!ip || ip[6] != WEIR_IP_TCP)
		return false;
	tcp = ip + 40;
	seq = weir_word(tcp + 4);
	weir_put32(ip, bpf_htonl(0x60000000));
	weir_put32(ip + 4, bpf_htonl(WEIR_RESET_BYTES << 16 | WEIR_IP_TCP << 8 | 64));
	sum = weir_swap_addresses(ip + 8, 4);
	weir_put_reset(tcp, packet, seq, sum);
	cursor->offset += 40;
	return true;
}

/* XDP_TX with the answer in place of the SYN, or XDP_DROP. */
__noinline int weir_reset(struct xdp_md *ctx, struct weir_context *context)
{
	struct weir_cursor cursor = {
		.data = (void *)(long)ctx->data,
		.end = (void *)(long)ctx->data_end,
	};
	uint8_t *frame;
	uint32_t size, bytes = cursor.end - cursor.data;
	bool done;

	if (!context)
		return XDP_DROP;
	cursor.offset = weir_network_offset(&cursor, &context->packet);
	if (!cursor.offset)
		return XDP_DROP;
	done = context->packet.family == 4 ? weir_reset4(&cursor, &context->packet) :
					     weir_reset6(&cursor, &context->packet);
	frame = (uint8_t *)(long)ctx->data;
	if (!done || frame + 12 > (uint8_t *)(long)ctx->data_end)
		return XDP_DROP;
	weir_swap_macs(frame);
	size = cursor.offset + WEIR_RESET_BYTES;
	size = size < WEIR_FRAME_MIN ? WEIR_FRAME_MIN : size;
	if (bytes > size && bpf_xdp_adjust_tail(ctx, (int)size - (int)bytes))
		return XDP_DROP;
	return XDP_TX;
}
