/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What weir needs to know of a packet, and the parser that finds it: a pure function over
 * bytes, the same in BPF and in user space, so that it can be fuzzed.
 *
 * Ethernet, VLAN tags (802.1Q, 802.1ad), IPv4 with options (RFC 791), IPv6 with extension headers
 * (RFC 8200), the ports of TCP, UDP and SCTP, TCP flags, ICMP types. A later fragment has no
 * ports. Every byte is checked before it is read. Of tags and extension headers as many as an
 * MTU of 1500 has room for.
 *
 * A first fragment that ends before TCP's flags counts as a SYN (RFC 1858, 3): stacks put it
 * together with the flags that come after, and nobody but who wants to hide a SYN sends it. In
 * IPv6 such a one is refused by the stack (RFC 8200, 4.5).
 *
 * A frame whose addresses can be read is WEIR_PARSED even where its upper header is cut off,
 * unknown or too deep: limits on addresses must not be escaped by a broken upper layer.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The parser is one function to the compiler: a call costs more than its work. */
#define WEIR_INLINE static inline __attribute__((always_inline))

/* As many as an MTU of 1500 has room for: Linux goes past any number of them. */
#define WEIR_EXTENSIONS_MAX 181
#define WEIR_TAGS_MAX 370 /* of VLANs, after two */
#define WEIR_NO_VLAN 0xffff

enum weir_parsed {
	WEIR_PARSED,	/* an IP packet: the fields below hold */
	WEIR_EXEMPT,	/* ARP, neighbour discovery: always passes */
	WEIR_NOT_IP,	/* another ethertype: passes */
	WEIR_MALFORMED, /* no whole IP header: passes to the stack, which knows what to do */
};

/* A connection begins with SYN and none of ACK, RST, FIN. */
enum { WEIR_TCP_SYN = 0x02, WEIR_TCP_BEGINS_MASK = 0x17, WEIR_TCP_FLAGS_END = 14 };

enum weir_packet_has {
	WEIR_HAS_PORTS = 1 << 0,
	WEIR_HAS_TCP_FLAGS = 1 << 1,
	WEIR_HAS_ICMP_TYPE = 1 << 2,
	WEIR_IS_FRAGMENT = 1 << 3, /* a fragment, the first one included */
};

/*
 * Addresses as network-order words; an IPv4 one is word 0, the rest is not written. Ports and
 * types that a packet hasn't are 0.
 */
struct weir_packet {
	uint32_t source[4];
	uint32_t destination[4];
	uint16_t source_port; /* host order, valid with WEIR_HAS_PORTS */
	uint16_t destination_port;
	uint16_t vlan;	      /* outermost VLAN id or WEIR_NO_VLAN */
	uint16_t header_bytes; /* link, network and transport headers, where a TCP payload starts */
	uint8_t family;	      /* 4 or 6 */
	uint8_t protocol;     /* upper-layer protocol, after extension headers */
	uint8_t tcp_flags;
	uint8_t icmp_type;
	uint8_t has; /* enum weir_packet_has */
	uint8_t reserved[3];
	uint32_t bytes;	  /* what the packet costs in bytes: filled in by the hook */
	uint32_t packets; /* wire packets: filled in by the hook */
};
_Static_assert(sizeof(struct weir_packet) == 56, "weir_packet has no hidden padding");

enum {
	WEIR_ETH_IPV4 = 0x0800,
	WEIR_ETH_ARP = 0x0806,
	WEIR_ETH_VLAN = 0x8100,
	WEIR_ETH_IPV6 = 0x86dd,
	WEIR_ETH_QINQ = 0x88a8,

	WEIR_IP_HOP_BY_HOP = 0,
	WEIR_IP_ICMP = 1,
	WEIR_IP_TCP = 6,
	WEIR_IP_UDP = 17,
	WEIR_IP_ROUTING = 43,
	WEIR_IP_FRAGMENT = 44,
	WEIR_IP_AUTHENTICATION = 51,
	WEIR_IP_ICMPV6 = 58,
	WEIR_IP_NO_NEXT = 59,
	WEIR_IP_DESTINATION = 60,
	WEIR_IP_SCTP = 132,

	WEIR_ND_FIRST = 133, /* router solicitation */
	WEIR_ND_LAST = 137,  /* redirect */
};

/* Where the parser stands: offset is how far into the frame, kept small for the verifier. */
struct weir_cursor {
	const uint8_t *data;
	const uint8_t *end;
	uint32_t offset;
};

#define WEIR_OFFSET_MAX 4095

/* `size` bytes at the cursor, or NULL where the frame ends before. Does not move the cursor. */
WEIR_INLINE const uint8_t *
weir_cursor_peek(const struct weir_cursor *cursor, uint32_t size)
{
	uint32_t offset = cursor->offset;
	const uint8_t *at;

#ifdef __bpf__
	/* The compiler must not fold the mask away: the verifier needs to see it. */
	asm volatile("" : "+r"(offset));
#endif
	offset &= WEIR_OFFSET_MAX;
#ifdef __bpf__
	at = cursor->data + offset;
	if (at + size > cursor->end)
		return 0;
#else
	if (offset + size > (uint32_t)(cursor->end - cursor->data))
		return 0;
	at = cursor->data + offset;
#endif
	return at;
}

/*
 * Big-endian 16 bits in host order, and 32 bits as they are. clang would read them for BPF byte
 * by byte, since the target promises no unaligned loads; the kernels that run weir have them.
 */
static inline uint16_t weir_read16(const uint8_t *at)
{
#if defined(__bpf__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return __builtin_bswap16(*(const uint16_t *)at);
#else
	return (uint16_t)(at[0] << 8 | at[1]);
#endif
}

static inline uint32_t weir_word(const uint8_t *at)
{
#ifdef __bpf__
	return *(const uint32_t *)at;
#else
	uint32_t word;

	__builtin_memcpy(&word, at, sizeof(word));
	return word;
#endif
}

static inline bool weir_is_tag(uint16_t type)
{
	return type == WEIR_ETH_VLAN || type == WEIR_ETH_QINQ;
}

/* Returns the ethertype behind up to two tags, or 0 where the frame ends first. */
WEIR_INLINE uint16_t weir_parse_tags(struct weir_cursor *cursor, struct weir_packet *packet)
{
	const uint8_t *at = weir_cursor_peek(cursor, 14);
	uint16_t type;

	if (!at)
		return 0;
	type = weir_read16(at + 12);
	cursor->offset += 14;
	for (int tag = 0; tag < 2; tag++) {
		if (!weir_is_tag(type))
			break;
		at = weir_cursor_peek(cursor, 4);
		if (!at)
			return 0;
		if (packet->vlan == WEIR_NO_VLAN)
			packet->vlan = weir_read16(at) & 0x0fff;
		type = weir_read16(at + 2);
		cursor->offset += 4;
	}
	return type;
}

/*
 * Over memory the verifier forgets what it knows of the offset. So each turn of a loop is like the
 * one before to it, and what comes after is walked once.
 */
WEIR_INLINE void weir_cursor_forget(struct weir_cursor *cursor, struct weir_packet *packet)
{
	volatile uint16_t *memory = &packet->header_bytes;

	*memory = (uint16_t)cursor->offset;
	cursor->offset = *memory;
}

/*
 * The ethertype behind all further tags: Linux takes off any number of those with VLAN 0, and
 * what is in such a frame is this host's. 0 where the frame ends first, or there are too many.
 */
WEIR_INLINE uint16_t weir_skip_tags(struct weir_cursor *cursor, struct weir_packet *packet)
{
	uint16_t type = 0;

	for (int tag = 0; tag < WEIR_TAGS_MAX; tag++) {
		const uint8_t *at = weir_cursor_peek(cursor, 4);

		if (!at)
			return 0;
		type = weir_read16(at + 2);
		cursor->offset += 4;
		weir_cursor_forget(cursor, packet);
		if (!weir_is_tag(type))
			break;
	}
	return weir_is_tag(type) ? 0 : type;
}

/* The same behind any number of tags. */
WEIR_INLINE uint16_t weir_parse_link(struct weir_cursor *cursor, struct weir_packet *packet)
{
	uint16_t type = weir_parse_tags(cursor, packet);

	return weir_is_tag(type) ? weir_skip_tags(cursor, packet) : type;
}

/* The upper layer: what can't be read is left out, never an error. */
WEIR_INLINE void weir_parse_transport(struct weir_cursor *cursor, struct weir_packet *packet)
{
	const uint8_t *at;

	packet->header_bytes = (uint16_t)cursor->offset;
	switch (packet->protocol) {
	case WEIR_IP_TCP:
		at = weir_cursor_peek(cursor, WEIR_TCP_FLAGS_END);
		if (at) {
			packet->tcp_flags = at[13];
			packet->has |= WEIR_HAS_TCP_FLAGS;
			packet->header_bytes += (uint16_t)(at[12] >> 4 << 2);
		}
		break;
	case WEIR_IP_UDP:
		packet->header_bytes += 8;
		break;
	case WEIR_IP_SCTP:
		packet->header_bytes += 12;
		break;
	case WEIR_IP_ICMP:
	case WEIR_IP_ICMPV6:
		if ((packet->protocol == WEIR_IP_ICMP) != (packet->family == 4))
			return;
		at = weir_cursor_peek(cursor, 1);
		if (at) {
			packet->icmp_type = at[0];
			packet->has |= WEIR_HAS_ICMP_TYPE;
		}
		return;
	default:
		return;
	}
	at = weir_cursor_peek(cursor, 4);
	if (!at)
		return;
	packet->source_port = weir_read16(at);
	packet->destination_port = weir_read16(at + 2);
	packet->has |= WEIR_HAS_PORTS;
}

WEIR_INLINE enum weir_parsed weir_parse_ipv4(struct weir_cursor *cursor,
				struct weir_packet *packet)
{
	const uint8_t *at = weir_cursor_peek(cursor, 20);
	uint32_t header;
	uint16_t fragment;

	if (!at)
		return WEIR_MALFORMED;
	header = (uint32_t)(at[0] & 0x0f) << 2;
	if (at[0] >> 4 != 4 || header < 20)
		return WEIR_MALFORMED;
	packet->family = 4;
	packet->protocol = at[9];
	packet->source[0] = weir_word(at + 12);
	packet->destination[0] = weir_word(at + 16);
	fragment = weir_read16(at + 6);
	if (fragment & 0x3fff)
		packet->has |= WEIR_IS_FRAGMENT;
	cursor->offset += header;
	if (fragment & 0x1fff) {
		packet->header_bytes = (uint16_t)cursor->offset;
		return WEIR_PARSED;
	}
	weir_parse_transport(cursor, packet);
	/* What is there of the flags is padding, and what they are the next fragment's. */
	if (fragment & 0x2000 && packet->protocol == WEIR_IP_TCP &&
	    weir_read16(at + 2) < header + WEIR_TCP_FLAGS_END) {
		packet->tcp_flags = WEIR_TCP_SYN;
		packet->has |= WEIR_HAS_TCP_FLAGS;
	}
	return WEIR_PARSED;
}

/*
 * One extension header: moves past it and returns the next header's number, or -1 where the
 * chain ends without a transport header (cut off, encrypted, no next header, a later fragment).
 */
WEIR_INLINE int weir_parse_extension(struct weir_cursor *cursor, struct weir_packet *packet,
				uint8_t protocol)
{
	const uint8_t *at = weir_cursor_peek(cursor, 8);
	/* Its length is in other units than that of all others. Without a branch: see there. */
	uint32_t is_ah = 1ULL << WEIR_IP_AUTHENTICATION >> (protocol & 63) & 1;
	uint16_t fragment;

	if (!at)
		return -1;
	if (protocol != WEIR_IP_FRAGMENT) {
		cursor->offset += ((uint32_t)at[1] + 1 + is_ah) << (3 - is_ah);
		return at[0];
	}
	fragment = weir_read16(at + 2);
	if (fragment & 0xfff9)
		packet->has |= WEIR_IS_FRAGMENT;
	cursor->offset += 8;
	if (fragment & 0xfff8)
		packet->protocol = at[0];
	return fragment & 0xfff8 ? -1 : at[0];
}

static inline bool weir_is_extension(uint8_t protocol)
{
	const uint64_t all = 1ULL << WEIR_IP_HOP_BY_HOP | 1ULL << WEIR_IP_ROUTING |
			     1ULL << WEIR_IP_FRAGMENT | 1ULL << WEIR_IP_DESTINATION |
			     1ULL << WEIR_IP_AUTHENTICATION;

	return protocol < 64 && all >> protocol & 1;
}

WEIR_INLINE enum weir_parsed weir_parse_ipv6(struct weir_cursor *cursor,
				struct weir_packet *packet)
{
	const uint8_t *at = weir_cursor_peek(cursor, 40);
	uint8_t hop_limit;
	int next;

	if (!at || at[0] >> 4 != 6)
		return WEIR_MALFORMED;
	packet->family = 6;
	packet->protocol = at[6];
	hop_limit = at[7];
	for (int i = 0; i < 4; i++) {
		packet->source[i] = weir_word(at + 8 + 4 * i);
		packet->destination[i] = weir_word(at + 24 + 4 * i);
	}
	cursor->offset += 40;
	for (int i = 0; i < WEIR_EXTENSIONS_MAX && weir_is_extension(packet->protocol); i++) {
		next = weir_parse_extension(cursor, packet, packet->protocol);
		if (next < 0) {
			packet->header_bytes = (uint16_t)cursor->offset;
			return WEIR_PARSED;
		}
		packet->protocol = (uint8_t)next;
		if (cursor->offset > WEIR_OFFSET_MAX)
			return WEIR_PARSED;
		weir_cursor_forget(cursor, packet);
	}
	weir_parse_transport(cursor, packet);
	/* RFC 4861: a hop limit of 255 shows that it comes from this very link. */
	if (packet->protocol == WEIR_IP_ICMPV6 && packet->has & WEIR_HAS_ICMP_TYPE &&
	    packet->icmp_type >= WEIR_ND_FIRST && packet->icmp_type <= WEIR_ND_LAST &&
	    hop_limit == 255 && !(packet->has & WEIR_IS_FRAGMENT))
		return WEIR_EXEMPT;
	return WEIR_PARSED;
}

/* Whether the ethertype is of IP, and a header of that version can be at the cursor. */
WEIR_INLINE bool weir_is_ip_at(const struct weir_cursor *cursor, uint16_t ethertype)
{
	const uint8_t *at = weir_cursor_peek(cursor, 1);

	return at && ((ethertype == WEIR_ETH_IPV4 && at[0] >> 4 == 4) ||
		      (ethertype == WEIR_ETH_IPV6 && at[0] >> 4 == 6));
}

/*
 * Parses the frame in [data, end). `vlan` is a tag that the hook took from the metadata, or
 * WEIR_NO_VLAN. Writes all of *packet but bytes and packets; addresses only where it is
 * WEIR_PARSED or neighbour discovery.
 *
 * `ethertype` is what the stack takes the packet for, 0 where it doesn't say: where it says IP
 * and no link header says so, there is none (a device of layer 3; a frame that generic XDP has
 * copied), and the packet begins with its network header.
 */
WEIR_INLINE enum weir_parsed weir_packet_parse_as(struct weir_packet *packet, const void *data,
						  const void *end, uint16_t vlan,
						  uint16_t ethertype)
{
	struct weir_cursor cursor = { .data = data, .end = end };
	uint16_t type;

	packet->vlan = vlan;
	packet->source_port = 0;
	packet->destination_port = 0;
	packet->header_bytes = 0;
	packet->family = 0;
	packet->protocol = 0;
	packet->tcp_flags = 0;
	packet->icmp_type = 0;
	packet->has = 0;
	type = weir_parse_link(&cursor, packet);
	if ((ethertype == WEIR_ETH_IPV4 || ethertype == WEIR_ETH_IPV6) &&
	    !weir_is_ip_at(&cursor, type)) {
		cursor.offset = 0;
		packet->vlan = vlan;
		type = ethertype;
	}
	switch (type) {
	case WEIR_ETH_IPV4:
		return weir_parse_ipv4(&cursor, packet);
	case WEIR_ETH_IPV6:
		return weir_parse_ipv6(&cursor, packet);
	case WEIR_ETH_ARP:
		return WEIR_EXEMPT;
	case 0:
		return WEIR_MALFORMED;
	default:
		return WEIR_NOT_IP;
	}
}

WEIR_INLINE enum weir_parsed weir_packet_parse(struct weir_packet *packet, const void *data,
					       const void *end, uint16_t vlan)
{
	return weir_packet_parse_as(packet, data, end, vlan, 0);
}

/*
 * Whether a frame is of the kind that most are: no VLAN tag, IPv4. Its source is then at 26 and
 * weir_packet_parse would say WEIR_PARSED.
 */
WEIR_INLINE bool weir_packet_is_plain(const uint8_t *data,
				const uint8_t *end)
{
	return data + 34 <= end && weir_read16(data + 12) == WEIR_ETH_IPV4 &&
	       data[14] >> 4 == 4 && (data[14] & 0x0f) >= 5;
}
