/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Random policies of 1 to 256 limits, packets in the values that they look at, and a naive
 * reading of which limits apply: for tests of the compiler and of the kernel's match.
 */
#pragma once

#include <arpa/inet.h>

#include "random.h"
#include "unit/compile_text.h"
#include "weir/packet.h"

/* ---- a random policy ---- */

static inline void add_prefixes(struct text *text, const char *field, uint64_t *random)
{
	static const char *const nested[] = {
		"0.0.0.0/0",
		"10.0.0.0/8",
		"10.1.0.0/16",
		"10.1.2.0/24",
		"10.1.2.3/32",
		"10.1.2.128/25",
		"192.0.2.0/24",
		"\"::/0\"",
		"\"2001:db8::/32\"",
		"\"2001:db8:1::/48\"",
		"\"2001:db8:1::1/128\"",
		"\"2001:db8:1:0:8000::/65\"",
	};
	size_t count = 1 + random_below(random, 3), at = random_below(random, 12);

	add(text, ", %s: [", field);
	for (size_t i = 0; i < count; i++)
		add(text, "%s%s", i ? ", " : "", nested[(at + 5 * i) % 12]);
	add(text, "]");
}

static inline void add_ports(struct text *text, const char *field, uint64_t *random)
{
	uint64_t low = random_below(random, 64), high = low + random_below(random, 64);

	add(text, ", %s: [%lu-%lu, %lu, 65000-65535]", field, low + 1, high + 1,
	    255 + random_below(random, 3));
}

static inline void add_match(struct text *text, uint64_t *random)
{
	static const char *const hooks[] = { "xdp", "tc-ingress", "tc-egress" };

	add(text, "    match: {hook: %s", hooks[random_below(random, 3)]);
	switch (random_below(random, 6)) {
	case 0:
		add(text, ", proto: tcp, flags: %s",
		    random_below(random, 2) ? "\"syn,!ack\"" : "rst");
		break;
	case 1:
		add(text, ", proto: %s, icmp: [%lu, 8]",
		    random_below(random, 2) ? "icmp" : "icmpv6", random_below(random, 8));
		break;
	case 2:
		add(text, ", proto: [udp, tcp]");
		add_ports(text, "to_port", random);
		break;
	case 3:
		add_ports(text, "from_port", random);
		break;
	case 4:
		add(text, ", proto: %lu", random_below(random, 256));
		break;
	}
	if (!random_below(random, 3))
		add(text, ", vlan: [%lu-%lu, 4094]", random_below(random, 5),
		    5 + random_below(random, 3));
	if (!random_below(random, 2))
		add_prefixes(text, "from", random);
	if (!random_below(random, 3))
		add_prefixes(text, "to", random);
	if (!random_below(random, 3))
		add(text, ", interfaces: [e%lu]", random_below(random, INTERFACES));
	add(text, "}\n");
}

static inline struct weir_policy *random_policy(uint64_t *random)
{
	size_t count = random_below(random, 4) ? 1 + random_below(random, 20)
					       : 1 + random_below(random, WEIR_LIMITS_MAX);
	struct text text = { 0 };
	struct weir_policy *policy;

	add(&text, "version: 1\ninterfaces: [{name: e0}, {name: e1}, {name: e2}]\nlimits:\n");
	for (size_t i = 0; i < count; i++) {
		add(&text, "  - name: l%zu\n    bucket: {rate: 10pps}\n    key: source\n", i);
		if (random_below(random, 8))
			add_match(&text, random);
	}
	policy = load(text.bytes);
	free(text.bytes);
	return policy;
}

/* ---- a random packet, in the values that policies look at ---- */

struct packet {
	struct weir_packet parsed;
	uint32_t interface; /* in the policy */
	enum weir_hook hook;
};

static inline void random_address(uint32_t *address, uint8_t family, uint64_t *random)
{
	static const char *const v4[] = { "10.1.2.3",	"10.1.2.200", "10.1.9.9",
					  "10.200.0.1", "192.0.2.77", "203.0.113.1" };
	static const char *const v6[] = { "2001:db8:1::1", "2001:db8:1:0:8000::5", "2001:db8:2::1",
					  "2001:db9::1" };

	memset(address, 0, 16);
	if (family == 4)
		inet_pton(AF_INET, v4[random_below(random, 6)], address);
	else
		inet_pton(AF_INET6, v6[random_below(random, 4)], address);
}

static inline uint16_t random_port(uint64_t *random)
{
	static const uint16_t ports[] = { 0, 255, 256, 257, 258, 64999, 65000, 65535 };

	return random_below(random, 2) ? (uint16_t)random_below(random, 130)
				       : ports[random_below(random, 8)];
}

static inline struct packet random_packet(uint64_t *random)
{
	static const uint8_t protocols[] = { 1, 6, 17, 58, 132 };
	struct packet packet = {
		.interface = (uint32_t)random_below(random, INTERFACES),
		.hook = (enum weir_hook)random_below(random, WEIR_HOOKS),
	};
	struct weir_packet *parsed = &packet.parsed;

	parsed->family = random_below(random, 2) ? 4 : 6;
	random_address(parsed->source, parsed->family, random);
	random_address(parsed->destination, parsed->family, random);
	parsed->protocol = random_below(random, 4) ? protocols[random_below(random, 5)]
						   : (uint8_t)random_below(random, 256);
	parsed->vlan =
		random_below(random, 2) ? WEIR_NO_VLAN : (uint16_t)random_below(random, 4095);
	if (random_below(random, 2) && parsed->vlan != WEIR_NO_VLAN)
		parsed->vlan %= 9;
	if (parsed->protocol == 6 || parsed->protocol == 17 || parsed->protocol == 132)
		parsed->has = random_below(random, 4) ? WEIR_HAS_PORTS : 0;
	if (parsed->protocol == 6 && parsed->has)
		parsed->has |= WEIR_HAS_TCP_FLAGS;
	if ((parsed->protocol == 1 && parsed->family == 4) ||
	    (parsed->protocol == 58 && parsed->family == 6))
		parsed->has = random_below(random, 4) ? WEIR_HAS_ICMP_TYPE : 0;
	parsed->source_port = random_port(random);
	parsed->destination_port = random_port(random);
	parsed->tcp_flags = (uint8_t)random_next(random);
	parsed->icmp_type = (uint8_t)random_below(random, 10);
	return packet;
}

/* ---- what the policy says of it ---- */

static inline bool in_ranges(const struct weir_ranges *ranges, uint32_t value)
{
	bool in = false;

	for (size_t i = 0; i < ranges->count; i++)
		in |= value >= ranges->items[i].low && value <= ranges->items[i].high;
	return in;
}

static inline bool in_prefixes(const struct weir_prefixes *list, uint8_t family, const void *address)
{
	bool in = !list->count;

	for (size_t i = 0; i < list->count; i++)
		in |= weir_prefix_contains(&list->items[i], family, address);
	return in;
}

static inline bool any(const struct weir_bits256 *bits)
{
	return bits->words[0] | bits->words[1] | bits->words[2] | bits->words[3];
}

static inline bool naive_interface(const struct weir_policy *policy, const struct weir_policy_match *match,
			    uint32_t interface)
{
	bool in = !match->interfaces.count;

	for (size_t i = 0; i < match->interfaces.count; i++)
		in |= !strcmp(match->interfaces.items[i], policy->interfaces[interface].name);
	return in;
}

static inline bool naive_upper(const struct weir_policy_match *match, const struct weir_packet *packet)
{
	if (any(&match->protocols) && !weir_bits256_has(&match->protocols, packet->protocol))
		return false;
	if (match->to_ports.count && (!(packet->has & WEIR_HAS_PORTS) ||
				      !in_ranges(&match->to_ports, packet->destination_port)))
		return false;
	if (match->from_ports.count && (!(packet->has & WEIR_HAS_PORTS) ||
					!in_ranges(&match->from_ports, packet->source_port)))
		return false;
	if (match->flags_mask && (!(packet->has & WEIR_HAS_TCP_FLAGS) ||
				  (packet->tcp_flags & match->flags_mask) != match->flags_value))
		return false;
	return !any(&match->icmp_types) ||
	       (packet->has & WEIR_HAS_ICMP_TYPE &&
		weir_bits256_has(&match->icmp_types, packet->icmp_type));
}

static inline bool naive(const struct weir_policy *policy, size_t limit, const struct packet *packet)
{
	const struct weir_policy_match *match = &policy->limits[limit].match;
	const struct weir_packet *parsed = &packet->parsed;

	return (int)match->hook == (int)packet->hook && naive_upper(match, parsed) &&
	       (!match->vlans.count || in_ranges(&match->vlans, parsed->vlan)) &&
	       in_prefixes(&match->from, parsed->family, parsed->source) &&
	       in_prefixes(&match->to, parsed->family, parsed->destination) &&
	       naive_interface(policy, match, packet->interface);
}
