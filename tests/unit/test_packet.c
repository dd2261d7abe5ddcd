// SPDX-License-Identifier: GPL-2.0
/*
 * The parser. Every frame lies at the end of a block of its very size, so that AddressSanitizer
 * sees a read of one byte too many.
 */
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "packet_build.h"
#include "random.h"
#include "weir/packet.h"

static enum weir_parsed parse_tagged(struct weir_packet *packet, const uint8_t *bytes, size_t size,
				     uint16_t vlan)
{
	uint8_t *block = malloc(size ? size : 1);
	uint8_t *data = size ? block : block + 1;
	enum weir_parsed parsed;

	memcpy(data, bytes, size);
	memset(packet, 0xa5, sizeof(*packet));
	parsed = weir_packet_parse(packet, data, data + size, vlan);
	free(block);
	return parsed;
}

static enum weir_parsed parse(struct weir_packet *packet, const struct frame *f)
{
	return parse_tagged(packet, f->bytes, f->size, WEIR_NO_VLAN);
}

/* ---- checking ---- */

/* An IPv4 address is one word, and the rest of it isn't written. */
static bool has_addresses(const struct weir_packet *p)
{
	uint8_t from[16], to[16];
	size_t size = p->family == 4 ? 4 : 16;

	for (size_t i = 0; i < size; i++) {
		from[i] = (uint8_t)((p->family == 4 ? 10 : 0x20) + i);
		to[i] = (uint8_t)((p->family == 4 ? 20 : 0x30) + i);
	}
	return !memcmp(p->source, from, size) && !memcmp(p->destination, to, size);
}

static bool has_ports(const struct weir_packet *p)
{
	return p->has & WEIR_HAS_PORTS && p->source_port == 0x1234 && p->destination_port == 53;
}

static bool has_no_ports(const struct weir_packet *p)
{
	return !(p->has & WEIR_HAS_PORTS) && !p->source_port && !p->destination_port;
}

static bool has_ports_protocol(unsigned int protocol)
{
	return protocol == WEIR_IP_TCP || protocol == WEIR_IP_UDP || protocol == WEIR_IP_SCTP;
}

/* What a frame cut off at `size` must yield. */
static bool reads_cut_off(const struct frame *f, size_t size, unsigned int protocol)
{
	size_t l3_size = f->bytes[f->l3] >> 4 == 4 ? 20 : 40, l4_size;
	struct weir_packet p;
	enum weir_parsed parsed = parse_tagged(&p, f->bytes, size, WEIR_NO_VLAN);
	bool icmp = protocol == WEIR_IP_ICMP || protocol == WEIR_IP_ICMPV6;

	if (size < f->l3 + l3_size)
		return parsed == WEIR_MALFORMED;
	if (parsed != WEIR_PARSED || !has_addresses(&p))
		return false;
	l4_size = size > f->l4 ? size - f->l4 : 0;
	if (!!(p.has & WEIR_HAS_ICMP_TYPE) != (icmp && l4_size >= 1))
		return false;
	if (!!(p.has & WEIR_HAS_TCP_FLAGS) != (protocol == WEIR_IP_TCP && l4_size >= 14))
		return false;
	return has_ports_protocol(protocol) && l4_size >= 4 ? has_ports(&p) : has_no_ports(&p);
}

/* ---- tests ---- */

static void p10_reads_every_field(void)
{
	static const struct {
		unsigned int protocol, header;
	} rows[] = { { WEIR_IP_UDP, 8 }, { WEIR_IP_TCP, 32 }, { WEIR_IP_SCTP, 12 } };
	struct weir_packet p;
	struct frame f;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (int family = 4; family <= 6; family += 2) {
			(family == 4 ? build4 : build6)(&f, rows[i].protocol);
			CU_ASSERT_EQUAL(parse(&p, &f), WEIR_PARSED);
			CU_ASSERT_EQUAL(p.family, family);
			CU_ASSERT_EQUAL(p.protocol, rows[i].protocol);
			CU_ASSERT_EQUAL(p.vlan, WEIR_NO_VLAN);
			CU_ASSERT_EQUAL(p.header_bytes, f.l4 + rows[i].header);
			CU_ASSERT_TRUE(has_addresses(&p) && has_ports(&p));
			CU_ASSERT_EQUAL(p.tcp_flags, rows[i].protocol == WEIR_IP_TCP ? 0x12 : 0);
			CU_ASSERT_EQUAL(p.has & WEIR_IS_FRAGMENT, 0);
		}
	}
	build4(&f, WEIR_IP_ICMP);
	CU_ASSERT_EQUAL(parse(&p, &f), WEIR_PARSED);
	CU_ASSERT_TRUE(p.has & WEIR_HAS_ICMP_TYPE && p.icmp_type == 8 && has_no_ports(&p));
	build6(&f, WEIR_IP_ICMPV6);
	CU_ASSERT_EQUAL(parse(&p, &f), WEIR_PARSED);
	CU_ASSERT_TRUE(p.has & WEIR_HAS_ICMP_TYPE && p.icmp_type == 128 && has_no_ports(&p));
	/* Each in the other's family says nothing. */
	build4(&f, WEIR_IP_ICMPV6);
	CU_ASSERT_EQUAL(parse(&p, &f), WEIR_PARSED);
	CU_ASSERT_EQUAL(p.has, 0);
	/* A protocol that has no ports: no payload is read as such. */
	build4(&f, 47);
	CU_ASSERT_EQUAL(parse(&p, &f), WEIR_PARSED);
	CU_ASSERT_TRUE(has_no_ports(&p));
}

static void p9_every_truncation(void)
{
	static const unsigned int protocols[] = { WEIR_IP_TCP, WEIR_IP_UDP, WEIR_IP_SCTP,
						  WEIR_IP_ICMP };
	static const uint16_t tags[2][2] = { { WEIR_ETH_QINQ, 5 }, { WEIR_ETH_VLAN, 6 } };
	unsigned int wrong = 0;
	struct frame f;

	for (size_t i = 0; i < sizeof(protocols) / sizeof(protocols[0]); i++) {
		unsigned int v4 = protocols[i], v6 = v4 == WEIR_IP_ICMP ? WEIR_IP_ICMPV6 : v4;

		for (size_t tag_count = 0; tag_count <= 2; tag_count++) {
			put_link(&f, tags, tag_count, WEIR_ETH_IPV4);
			put_ipv4(&f, 5 + (unsigned int)i, v4, 0);
			put_transport(&f, v4);
			for (size_t size = 0; size <= f.size && size <= 128; size++)
				wrong += !reads_cut_off(&f, size, v4);
			put_link(&f, tags, tag_count, WEIR_ETH_IPV6);
			put_ipv6(&f, WEIR_IP_HOP_BY_HOP, 64);
			put_extension(&f, WEIR_IP_HOP_BY_HOP, WEIR_IP_DESTINATION, 0);
			put_extension(&f, WEIR_IP_DESTINATION, v6, 1);
			put_transport(&f, v6);
			for (size_t size = 0; size <= f.size && size <= 128; size++)
				wrong += !reads_cut_off(&f, size, v6);
		}
	}
	CU_ASSERT_EQUAL(wrong, 0);
}

static void p6_ipv4_options(void)
{
	struct weir_packet p;
	struct frame f;

	for (unsigned int words = 0; words <= 15; words++) {
		put_link(&f, NULL, 0, WEIR_ETH_IPV4);
		put_ipv4(&f, words, WEIR_IP_TCP, 0);
		put_transport(&f, WEIR_IP_TCP);
		if (words < 5) {
			CU_ASSERT_EQUAL(parse(&p, &f), WEIR_MALFORMED);
			continue;
		}
		CU_ASSERT_EQUAL(parse(&p, &f), WEIR_PARSED);
		CU_ASSERT_TRUE(has_addresses(&p) && has_ports(&p));
		CU_ASSERT_EQUAL(p.tcp_flags, 0x12);
		CU_ASSERT_EQUAL(p.header_bytes, 14 + words * 4 + 32);
		/* The options say they are there, but the frame ends: the address still counts. */
		f.size = f.l3 + 20;
		CU_ASSERT_EQUAL(parse(&p, &f), WEIR_PARSED);
		CU_ASSERT_TRUE(has_addresses(&p) && has_no_ports(&p));
	}
}

static void p7_vlan_tags(void)
{
	static const uint16_t tags[3][2] = { { WEIR_ETH_QINQ, 100 },
					     { WEIR_ETH_VLAN, 0x640 },
					     { WEIR_ETH_VLAN, 7 } };
	struct weir_packet p;
	struct frame f;

	for (size_t first = 0; first < 2; first++) {
		for (size_t count = 1; count <= 2 && first + count <= 3; count++) {
			put_link(&f, tags + first, count, WEIR_ETH_IPV4);
			put_ipv4(&f, 5, WEIR_IP_UDP, 0);
			put_transport(&f, WEIR_IP_UDP);
			CU_ASSERT_EQUAL(parse(&p, &f), WEIR_PARSED);
			CU_ASSERT_EQUAL(p.vlan, tags[first][1]);
			CU_ASSERT_TRUE(has_addresses(&p) && has_ports(&p));
			CU_ASSERT_EQUAL(p.header_bytes, 14 + 4 * count + 28);
			/* A tag that the hook took from the metadata is the outermost. */
			CU_ASSERT_EQUAL(parse_tagged(&p, f.bytes, f.size, 9), WEIR_PARSED);
			CU_ASSERT_EQUAL(p.vlan, 9);
		}
	}
	put_link(&f, tags, 3, WEIR_ETH_IPV4);
	put_ipv4(&f, 5, WEIR_IP_UDP, 0);
	CU_ASSERT_EQUAL(parse(&p, &f), WEIR_PARSED);
	CU_ASSERT_EQUAL(p.vlan, 100);
	put_link(&f, tags, 2, WEIR_ETH_ARP);
	CU_ASSERT_EQUAL(parse(&p, &f), WEIR_EXEMPT);
}

/* Linux takes off any number of tags with VLAN 0: none of them hides what is inside. */
static void p7_any_number_of_tags(void)
{
	static const size_t tags[] = { 3, 4, 17, 371, 372, 373, 1500 };
	static uint8_t bytes[8192];
	struct weir_packet p;
	struct frame f;

	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
		size_t ip_at = 14 + 4 * tags[i];
		bool fits = tags[i] <= WEIR_TAGS_MAX + 2;

		build4(&f, WEIR_IP_UDP);
		memset(bytes, 0, sizeof(bytes));
		for (size_t tag = 0; tag < tags[i]; tag++)
			bytes[12 + 4 * tag] = 0x81;
		memcpy(bytes + ip_at - 2, f.bytes + 12, f.size - 12);
		CU_ASSERT_EQUAL(parse_tagged(&p, bytes, ip_at + f.size - 14, WEIR_NO_VLAN),
				fits ? WEIR_PARSED : WEIR_MALFORMED);
		CU_ASSERT_TRUE(!fits || (has_addresses(&p) && has_ports(&p) && !p.vlan));
		CU_ASSERT_TRUE(!fits || p.header_bytes == ip_at + 28);
		CU_ASSERT_EQUAL(parse_tagged(&p, bytes, ip_at + 19, WEIR_NO_VLAN), WEIR_MALFORMED);
	}
}

static unsigned int random_units(uint64_t *seed, unsigned int kind)
{
	if (kind == WEIR_IP_FRAGMENT)
		return 0;
	return (unsigned int)random_below(seed, 5) + (kind == WEIR_IP_AUTHENTICATION);
}

static void p4_extension_chains(void)
{
	static const uint8_t kinds[] = { WEIR_IP_HOP_BY_HOP, WEIR_IP_ROUTING, WEIR_IP_DESTINATION,
					 WEIR_IP_AUTHENTICATION, WEIR_IP_FRAGMENT };
	uint64_t seed = 4;
	struct frame f;
	struct weir_packet p;

	for (int round = 0; round < 2000; round++) {
		size_t count = (size_t)round % 10;
		uint8_t chain[11];

		for (size_t i = 0; i < count; i++)
			chain[i] = kinds[random_below(&seed, sizeof(kinds))];
		chain[count] = round & 16 ? WEIR_IP_TCP : WEIR_IP_UDP;
		put_link(&f, NULL, 0, WEIR_ETH_IPV6);
		put_ipv6(&f, chain[0], 64);
		for (size_t i = 0; i < count; i++)
			put_extension(&f, chain[i], chain[i + 1], random_units(&seed, chain[i]));
		put_transport(&f, chain[count]);
		CU_ASSERT_EQUAL(parse(&p, &f), WEIR_PARSED);
		CU_ASSERT_TRUE(has_addresses(&p));
		CU_ASSERT_TRUE(has_ports(&p) && p.protocol == chain[count]);
	}
}

/* Linux goes past any number of them: no chain that a frame has room for hides the ports. */
static void p4_long_chains(void)
{
	static const size_t counts[] = { 9, 20, 100, WEIR_EXTENSIONS_MAX, WEIR_EXTENSIONS_MAX + 1 };
	static uint8_t bytes[2048];
	struct weir_packet p;
	struct frame f;

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		size_t upper_at = 54 + 8 * counts[i];

		build6(&f, WEIR_IP_DESTINATION);
		memcpy(bytes, f.bytes, 54);
		for (size_t n = 0; n < counts[i]; n++) {
			memset(bytes + 54 + 8 * n, 0, 8);
			bytes[54 + 8 * n] = n + 1 < counts[i] ? WEIR_IP_DESTINATION : WEIR_IP_UDP;
		}
		build6(&f, WEIR_IP_UDP);
		memcpy(bytes + upper_at, f.bytes + 54, 8);
		CU_ASSERT_EQUAL(parse_tagged(&p, bytes, upper_at + 8, WEIR_NO_VLAN), WEIR_PARSED);
		CU_ASSERT_TRUE(has_addresses(&p));
		CU_ASSERT_EQUAL(has_ports(&p), counts[i] <= WEIR_EXTENSIONS_MAX);
		/* No more of them fit into an MTU of 1500. */
		CU_ASSERT_TRUE(counts[i] <= WEIR_EXTENSIONS_MAX || upper_at + 8 > 14 + 1500);
	}
}

static void p4_chains_that_lead_nowhere(void)
{
	struct weir_packet p;
	struct frame f;

	/* No next header, and one that is encrypted: what follows is not read as ports. */
	for (int i = 0; i < 2; i++) {
		put_link(&f, NULL, 0, WEIR_ETH_IPV6);
		put_ipv6(&f, WEIR_IP_DESTINATION, 64);
		put_extension(&f, WEIR_IP_DESTINATION, i ? WEIR_IP_NO_NEXT : 50, 0);
		put_transport(&f, WEIR_IP_TCP);
		CU_ASSERT_EQUAL(parse(&p, &f), WEIR_PARSED);
		CU_ASSERT_TRUE(has_addresses(&p) && has_no_ports(&p));
		CU_ASSERT_EQUAL(p.protocol, i ? WEIR_IP_NO_NEXT : 50);
	}
	/* Longer than anybody reads: the end of it lies beyond the reach of an offset. */
	put_link(&f, NULL, 0, WEIR_ETH_IPV6);
	put_ipv6(&f, WEIR_IP_DESTINATION, 64);
	put_extension(&f, WEIR_IP_DESTINATION, WEIR_IP_ROUTING, 255);
	put_extension(&f, WEIR_IP_ROUTING, WEIR_IP_TCP, 255);
	put_transport(&f, WEIR_IP_TCP);
	CU_ASSERT_EQUAL(parse(&p, &f), WEIR_PARSED);
	CU_ASSERT_TRUE(has_addresses(&p) && has_no_ports(&p));
	/* A length that points behind the frame. */
	put_link(&f, NULL, 0, WEIR_ETH_IPV6);
	put_ipv6(&f, WEIR_IP_DESTINATION, 64);
	put_extension(&f, WEIR_IP_DESTINATION, WEIR_IP_TCP, 0);
	f.bytes[f.l3 + 41] = 200;
	put_transport(&f, WEIR_IP_TCP);
	CU_ASSERT_EQUAL(parse(&p, &f), WEIR_PARSED);
	CU_ASSERT_TRUE(has_addresses(&p) && has_no_ports(&p));
}

static void p1_p2_ipv4_fragments(void)
{
	static const struct {
		unsigned int word;
		bool fragment, ports;
	} rows[] = {
		{ 0x0000, false, true }, { 0x4000, false, true }, /* don't fragment */
		{ 0x8000, false, true },			  /* the evil bit */
		{ 0x2000, true, true },				  /* the first */
		{ 0x2001, true, false }, { 0x2100, true, false }, { 0x0001, true, false },
		{ 0x1fff, true, false }, { 0x0100, true, false },
	};
	struct weir_packet p;
	struct frame f;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (int tcp = 0; tcp < 2; tcp++) {
			unsigned int protocol = tcp ? WEIR_IP_TCP : WEIR_IP_UDP;

			put_link(&f, NULL, 0, WEIR_ETH_IPV4);
			put_ipv4(&f, 5, protocol, rows[i].word);
			put_transport(&f, protocol);
			CU_ASSERT_EQUAL(parse(&p, &f), WEIR_PARSED);
			CU_ASSERT_TRUE(has_addresses(&p) && p.protocol == protocol);
			CU_ASSERT_EQUAL(!!(p.has & WEIR_IS_FRAGMENT), rows[i].fragment);
			CU_ASSERT_TRUE(rows[i].ports ? has_ports(&p) : has_no_ports(&p));
			CU_ASSERT_EQUAL(!!(p.has & WEIR_HAS_TCP_FLAGS), tcp && rows[i].ports);
		}
	}
}

/* nmap -f: a SYN whose flags come with the second fragment, and others in the frame's padding. */
static void p1_flags_that_are_cut_off(void)
{
	static const struct {
		unsigned int words, length, fragment, flags;
	} rows[] = {
		{ 5, 28, 0x2000, WEIR_TCP_SYN }, { 5, 33, 0x2000, WEIR_TCP_SYN },
		{ 6, 32, 0x2000, WEIR_TCP_SYN }, { 15, 68, 0x6000, WEIR_TCP_SYN },
		{ 5, 34, 0x2000, 0x12 },	 { 5, 36, 0x2000, 0x12 },
		{ 15, 76, 0x2000, 0x12 },	 { 5, 28, 0x4000, 0x12 }, /* the stack drops it */
	};
	struct weir_packet p;
	struct frame f;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		put_link(&f, NULL, 0, WEIR_ETH_IPV4);
		put_ipv4(&f, rows[i].words, WEIR_IP_TCP, rows[i].fragment);
		f.bytes[16] = 0;
		f.bytes[17] = (uint8_t)rows[i].length;
		put_transport(&f, WEIR_IP_TCP);
		CU_ASSERT_EQUAL(parse(&p, &f), WEIR_PARSED);
		CU_ASSERT_TRUE(has_ports(&p) && p.has & WEIR_HAS_TCP_FLAGS);
		CU_ASSERT_EQUAL(p.tcp_flags, rows[i].flags);
	}
}

static void p1_p2_ipv6_fragments(void)
{
	static const struct {
		unsigned int word;
		bool fragment, ports;
	} rows[] = {
		{ 0x0000, false, true }, /* atomic (RFC 6946): whole */
		{ 0x0006, false, true }, /* reserved bits */
		{ 0x0001, true, true },	 { 0x0009, true, false },
		{ 0x0008, true, false }, { 0xfff8, true, false },
	};
	struct weir_packet p;
	struct frame f;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		put_link(&f, NULL, 0, WEIR_ETH_IPV6);
		put_ipv6(&f, WEIR_IP_HOP_BY_HOP, 64);
		put_extension(&f, WEIR_IP_HOP_BY_HOP, WEIR_IP_FRAGMENT, 0);
		put_extension(&f, WEIR_IP_FRAGMENT, WEIR_IP_TCP, 0);
		f.bytes[f.l4 - 6] = (uint8_t)(rows[i].word >> 8);
		f.bytes[f.l4 - 5] = (uint8_t)rows[i].word;
		put_transport(&f, WEIR_IP_TCP);
		CU_ASSERT_EQUAL(parse(&p, &f), WEIR_PARSED);
		CU_ASSERT_TRUE(has_addresses(&p) && p.protocol == WEIR_IP_TCP);
		CU_ASSERT_EQUAL(!!(p.has & WEIR_IS_FRAGMENT), rows[i].fragment);
		CU_ASSERT_TRUE(rows[i].ports ? has_ports(&p) : has_no_ports(&p));
	}
}

/* A neighbour discovery message of a type, with a hop limit, behind a fragment header or not. */
static enum weir_parsed parse_nd(unsigned int type, unsigned int hop_limit, bool fragment)
{
	struct weir_packet p;
	struct frame f;

	put_link(&f, NULL, 0, WEIR_ETH_IPV6);
	put_ipv6(&f, fragment ? WEIR_IP_FRAGMENT : WEIR_IP_ICMPV6, hop_limit);
	if (fragment) {
		put_extension(&f, WEIR_IP_FRAGMENT, WEIR_IP_ICMPV6, 0);
		f.bytes[f.l4 - 5] = 1; /* more to come */
	}
	put8(&f, type);
	put_zeros(&f, 23);
	return parse(&p, &f);
}

static void p16_exempt_and_not_ip(void)
{
	static const uint16_t others[] = { 0x88cc, 0x8863, 0x88e5, 0x0026, 0x9000, 0xffff };
	struct weir_packet p;
	struct frame f;

	for (unsigned int type = 0; type < 256; type++) {
		bool nd = type >= 133 && type <= 137;

		CU_ASSERT_EQUAL(parse_nd(type, 255, false), nd ? WEIR_EXEMPT : WEIR_PARSED);
		CU_ASSERT_EQUAL(parse_nd(type, 254, false), WEIR_PARSED);
		CU_ASSERT_EQUAL(parse_nd(type, 255, true), WEIR_PARSED);
	}
	put_link(&f, NULL, 0, WEIR_ETH_ARP);
	CU_ASSERT_EQUAL(parse(&p, &f), WEIR_EXEMPT);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		put_link(&f, NULL, 0, others[i]);
		put_zeros(&f, 46);
		CU_ASSERT_EQUAL(parse(&p, &f), WEIR_NOT_IP);
	}
	/* The version must be what the ethertype says. */
	build4(&f, WEIR_IP_UDP);
	f.bytes[f.l3] = 0x65;
	CU_ASSERT_EQUAL(parse(&p, &f), WEIR_MALFORMED);
	build6(&f, WEIR_IP_UDP);
	f.bytes[f.l3] = 0x45;
	CU_ASSERT_EQUAL(parse(&p, &f), WEIR_MALFORMED);
}

/* Whatever the bytes: nothing is read past the end, and the answer doesn't contradict itself. */
static void random_bytes(void)
{
	static const uint16_t types[] = { WEIR_ETH_IPV4, WEIR_ETH_IPV6, WEIR_ETH_VLAN,
					  WEIR_ETH_QINQ };
	static const uint8_t nexts[] = { 0, 6, 17, 43, 44, 51, 58, 60, 132 };
	uint64_t seed = 9, wrong = 0, parsed_count = 0;

	for (int round = 0; round < 300000; round++) {
		size_t size = random_below(&seed, 129);
		enum weir_parsed parsed;
		struct weir_packet p;
		uint8_t bytes[128];

		for (size_t i = 0; i < size; i++)
			bytes[i] = random_below(&seed, 3)
					   ? (uint8_t)random_next(&seed)
					   : nexts[random_below(&seed, sizeof(nexts))];
		if (size > 14 && random_below(&seed, 20)) {
			uint16_t type = types[random_below(&seed, 4)];

			bytes[12] = (uint8_t)(type >> 8);
			bytes[13] = (uint8_t)type;
			bytes[14] = type == WEIR_ETH_IPV4   ? 0x40 | (bytes[14] & 15)
				    : type == WEIR_ETH_IPV6 ? 0x60
							    : bytes[14];
		}
		parsed = parse_tagged(&p, bytes, size, WEIR_NO_VLAN);
		parsed_count += parsed == WEIR_PARSED;
		wrong += parsed > WEIR_MALFORMED;
		wrong += parsed == WEIR_PARSED && p.family != 4 && p.family != 6;
		wrong += p.has & WEIR_HAS_PORTS && !has_ports_protocol(p.protocol);
		wrong += p.has & WEIR_HAS_TCP_FLAGS && p.protocol != WEIR_IP_TCP;
		wrong += p.vlan != WEIR_NO_VLAN && p.vlan > 0xfff;
	}
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_TRUE(parsed_count > 50000);
}

WEIR_TESTS("packet", TEST(p10_reads_every_field), TEST(p9_every_truncation), TEST(p6_ipv4_options),
	   TEST(p7_vlan_tags), TEST(p7_any_number_of_tags),
	   TEST(p4_extension_chains), TEST(p4_long_chains), TEST(p4_chains_that_lead_nowhere),
	   TEST(p1_p2_ipv4_fragments), TEST(p1_flags_that_are_cut_off), TEST(p1_p2_ipv6_fragments),
	   TEST(p16_exempt_and_not_ip),
	   TEST(random_bytes))
