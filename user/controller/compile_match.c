// SPDX-License-Identifier: GPL-2.0
/*
 * The rows of each dimension. A row says which limits accept a value: those that name it and
 * those that don't look at the dimension, which are its base.
 */
#include "controller/compile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "weir/packet.h"

/* Rows that are found by class: equal bitmaps share a class, 0 is the base. */
struct classes {
	struct weir_bitmap *rows;
	uint32_t room;
	uint32_t count;
	uint16_t hash[2 * WEIR_PORT_CLASSES]; /* class + 1 by hash of its bitmap */
};
_Static_assert(WEIR_PORT_CLASSES == WEIR_PREFIX_CLASSES, "one hash for both");

static void classes_begin(struct classes *classes, struct weir_bitmap *rows, uint32_t room,
			  const struct weir_bitmap *base)
{
	memset(classes, 0, sizeof(*classes));
	*classes = (struct classes){ .rows = rows, .room = room };
	rows[0] = *base;
	classes->count = 1;
}

/* The class of a bitmap, or -E2BIG. */
static int class_of(struct classes *classes, const struct weir_bitmap *bitmap)
{
	const uint32_t size = sizeof(classes->hash) / sizeof(classes->hash[0]);
	uint64_t h = 0;

	if (!memcmp(&classes->rows[0], bitmap, sizeof(*bitmap)))
		return 0;
	for (int i = 0; i < WEIR_BITMAP_WORDS; i++)
		h = weir_mix(h + bitmap->word[i]);
	for (uint32_t at = (uint32_t)h % size;; at = (at + 1) % size) {
		uint16_t class = classes->hash[at];

		if (class && !memcmp(&classes->rows[class - 1], bitmap, sizeof(*bitmap)))
			return class - 1;
		if (class)
			continue;
		if (classes->count == classes->room)
			return -E2BIG;
		classes->rows[classes->count] = *bitmap;
		classes->hash[at] = (uint16_t)(classes->count + 1);
		return (int)classes->count++;
	}
}

/* ---- dimensions with a row a value ---- */

typedef bool (*accepts_fn)(const struct weir_policy_match *match, uint32_t value);

static bool bits_any(const struct weir_bits256 *bits)
{
	return bits->words[0] | bits->words[1] | bits->words[2] | bits->words[3];
}

static bool uses_protocol(const struct weir_policy_match *match)
{
	return bits_any(&match->protocols);
}

static bool accepts_protocol(const struct weir_policy_match *match, uint32_t value)
{
	return weir_bits256_has(&match->protocols, (uint8_t)value);
}

static bool uses_flags(const struct weir_policy_match *match)
{
	return match->flags_mask;
}

static bool accepts_flags(const struct weir_policy_match *match, uint32_t value)
{
	return value < WEIR_NO_TCP_FLAGS && (value & match->flags_mask) == match->flags_value;
}

static bool uses_icmp(const struct weir_policy_match *match)
{
	return bits_any(&match->icmp_types);
}

/* The same type number means another thing in each version: a limit names one of them. */
static bool accepts_icmp(const struct weir_policy_match *match, uint32_t value)
{
	uint8_t protocol = value < 256 ? 1 : 58;

	return value < WEIR_NO_ICMP_TYPE && weir_bits256_has(&match->icmp_types, (uint8_t)value) &&
	       weir_bits256_has(&match->protocols, protocol);
}

static bool ranges_have(const struct weir_ranges *ranges, uint32_t value)
{
	for (size_t i = 0; i < ranges->count; i++) {
		if (value >= ranges->items[i].low && value <= ranges->items[i].high)
			return true;
	}
	return false;
}

static bool uses_vlan(const struct weir_policy_match *match)
{
	return match->vlans.count;
}

static bool accepts_vlan(const struct weir_policy_match *match, uint32_t value)
{
	return value < WEIR_NO_VLAN_ROW && ranges_have(&match->vlans, value);
}

static const struct plain {
	enum weir_dimension dimension;
	uint32_t first, count;
	bool (*uses)(const struct weir_policy_match *match);
	accepts_fn accepts;
} plains[] = {
	{ WEIR_BY_PROTOCOL, WEIR_ROWS_PROTOCOL, 256, uses_protocol, accepts_protocol },
	{ WEIR_BY_TCP_FLAGS, WEIR_ROWS_TCP_FLAGS, 257, uses_flags, accepts_flags },
	{ WEIR_BY_ICMP_TYPE, WEIR_ROWS_ICMP_TYPE, 513, uses_icmp, accepts_icmp },
	{ WEIR_BY_VLAN, WEIR_ROWS_VLAN, 4097, uses_vlan, accepts_vlan },
};

static void compile_plain(const struct weir_policy *policy, const struct plain *plain,
			  struct weir_compiled *compiled)
{
	bool used = false;

	for (size_t i = 0; i < policy->limit_count; i++)
		used |= plain->uses(&policy->limits[i].match);
	if (!used)
		return;
	compiled->head.dimensions |= plain->dimension;
	for (size_t i = 0; i < policy->limit_count; i++) {
		const struct weir_policy_match *match = &policy->limits[i].match;
		bool looks = plain->uses(match);

		for (uint32_t value = 0; value < plain->count; value++) {
			if (!looks || plain->accepts(match, value))
				weir_bitmap_set(&compiled->rows[plain->first + value], i);
		}
	}
}

/* ---- ports ---- */

static const struct weir_ranges *ports_of(const struct weir_policy_match *match, bool source)
{
	return source ? &match->from_ports : &match->to_ports;
}

static void ports_fill(uint64_t *words, uint32_t low, uint32_t high, uint32_t class)
{
	for (uint32_t port = low; port <= high; port++)
		words[port / 4] |= (uint64_t) class << (port % 4 * 16);
}

/* Between two borders no limit tells ports apart. */
static int ports_classify(const struct weir_policy *policy, bool source, const bool *border,
			  const struct weir_bitmap *base, struct classes *classes, uint64_t *words)
{
	for (uint32_t low = 0, high; low < 65536; low = high + 1) {
		struct weir_bitmap bitmap = *base;
		int class;

		for (high = low; high < 65535 && !border[high + 1]; high++)
			;
		for (size_t i = 0; i < policy->limit_count; i++) {
			if (ranges_have(ports_of(&policy->limits[i].match, source), low))
				weir_bitmap_set(&bitmap, i);
		}
		class = class_of(classes, &bitmap);
		if (class < 0)
			return class;
		ports_fill(words, low, high, (uint32_t) class);
	}
	return 0;
}

static int compile_ports(const struct weir_policy *policy, bool source, struct classes *classes,
			 struct weir_compiled *compiled, struct weir_error *err)
{
	uint32_t first = source ? WEIR_ROWS_SOURCE_PORT : WEIR_ROWS_DESTINATION_PORT;
	static bool border[65537];
	struct weir_bitmap base = { 0 };
	bool used = false;

	memset(border, 0, sizeof(border));
	for (size_t i = 0; i < policy->limit_count; i++) {
		const struct weir_ranges *ports = ports_of(&policy->limits[i].match, source);

		if (!ports->count)
			weir_bitmap_set(&base, i);
		for (size_t j = 0; j < ports->count; j++) {
			border[ports->items[j].low] = border[ports->items[j].high + 1] = true;
			used = true;
		}
	}
	if (!used)
		return 0;
	compiled->head.dimensions |= source ? WEIR_BY_SOURCE_PORT : WEIR_BY_DESTINATION_PORT;
	classes_begin(classes, &compiled->rows[first], WEIR_PORT_CLASSES, &base);
	if (!ports_classify(policy, source, border, &base, classes, compiled->ports[source]))
		return 0;
	return weir_error_set(err, -E2BIG,
			      "match.%s_port: the limits tell more than %d kinds of ports apart: "
			      "use fewer or wider ranges",
			      source ? "from" : "to", WEIR_PORT_CLASSES - 1);
}

/* ---- prefixes ---- */

/* A prefix and who names it. */
struct named {
	struct weir_prefix prefix;
	struct weir_bitmap bitmap;
};

static const struct weir_prefixes *prefixes_of(const struct weir_policy_match *match,
					       bool destination)
{
	return destination ? &match->to : &match->from;
}

/* What contains comes just before what it contains. */
static int order(const void *left, const void *right)
{
	const struct weir_prefix *a = &((const struct named *)left)->prefix;
	const struct weir_prefix *b = &((const struct named *)right)->prefix;
	int address = memcmp(a->address, b->address, sizeof(a->address));

	if (a->family != b->family)
		return a->family - b->family;
	return address ? address : a->length - b->length;
}

/* Every prefix of one direction, each once. */
static size_t prefixes_gather(const struct weir_policy *policy, bool destination,
			      struct named *named)
{
	size_t count = 0, kept = 0;

	for (size_t i = 0; i < policy->limit_count; i++) {
		const struct weir_prefixes *list =
			prefixes_of(&policy->limits[i].match, destination);

		for (size_t j = 0; j < list->count; j++) {
			named[count] = (struct named){ .prefix = list->items[j] };
			weir_bitmap_set(&named[count++].bitmap, i);
		}
	}
	qsort(named, count, sizeof(*named), order);
	for (size_t i = 0; i < count; i++) {
		if (kept && !order(&named[kept - 1], &named[i])) {
			for (int w = 0; w < WEIR_BITMAP_WORDS; w++)
				named[kept - 1].bitmap.word[w] |= named[i].bitmap.word[w];
		} else {
			named[kept++] = named[i];
		}
	}
	return kept;
}

static struct weir_prefix_key prefix_key(const struct weir_prefix *prefix, bool destination)
{
	struct weir_prefix_key key = {
		.length = 8U + prefix->length,
		.table = (uint8_t)(destination << 1 | (prefix->family == 6)),
	};

	memcpy(key.address, prefix->address, sizeof(key.address));
	return key;
}

/* Gives each what contains it; the path from the widest down to it is a stack. */
static int prefixes_classify(struct named *named, size_t count, bool destination,
			     const struct weir_bitmap *base, struct classes *classes,
			     struct weir_compiled *compiled)
{
	const struct named *path[130];
	size_t depth = 0;

	for (size_t i = 0; i < count; i++) {
		const struct weir_prefix *prefix = &named[i].prefix;
		int class;

		while (depth && !weir_prefix_contains(&path[depth - 1]->prefix, prefix->family,
						      prefix->address))
			depth--;
		for (int w = 0; w < WEIR_BITMAP_WORDS; w++)
			named[i].bitmap.word[w] |=
				(depth ? &path[depth - 1]->bitmap : base)->word[w];
		path[depth++] = &named[i];
		class = class_of(classes, &named[i].bitmap);
		if (class < 0)
			return class;
		compiled->prefixes[compiled->prefix_count++] = (struct weir_prefix_class){
			.key = prefix_key(prefix, destination),
			.class = (uint32_t) class,
		};
	}
	return 0;
}

static size_t count_prefixes(const struct weir_policy *policy, bool destination,
			     struct weir_bitmap *base)
{
	size_t total = 0;

	for (size_t i = 0; i < policy->limit_count; i++) {
		size_t count = prefixes_of(&policy->limits[i].match, destination)->count;

		total += count;
		if (!count)
			weir_bitmap_set(base, i);
	}
	return total;
}

static int compile_prefixes(const struct weir_policy *policy, bool destination,
			    struct classes *classes, struct weir_compiled *compiled,
			    struct weir_error *err)
{
	uint32_t first = destination ? WEIR_ROWS_DESTINATION : WEIR_ROWS_SOURCE;
	struct weir_bitmap base = { 0 };
	size_t count = count_prefixes(policy, destination, &base);
	struct named *named;
	int code;

	if (!count)
		return 0;
	if (compiled->prefix_count + count > WEIR_PREFIXES_MAX)
		return weir_error_set(err, -E2BIG,
				      "match.from and match.to: more than %u prefixes in all: "
				      "join some into shorter prefixes",
				      WEIR_PREFIXES_MAX);
	named = malloc(count * sizeof(*named));
	if (!named)
		return weir_error_set(err, -ENOMEM, "no memory for %zu prefixes", count);
	compiled->head.dimensions |= destination ? WEIR_BY_DESTINATION : WEIR_BY_SOURCE;
	classes_begin(classes, &compiled->rows[first], WEIR_PREFIX_CLASSES, &base);
	count = prefixes_gather(policy, destination, named);
	code = prefixes_classify(named, count, destination, &base, classes, compiled);
	free(named);
	if (code)
		return weir_error_set(err, code,
				      "match.%s: the limits tell more than %d kinds of addresses "
				      "apart: give several limits the same prefixes",
				      destination ? "to" : "from", WEIR_PREFIX_CLASSES - 1);
	return 0;
}

/* ---- interfaces and hooks ---- */

static bool names_interface(const struct weir_policy_match *match, const char *name)
{
	for (size_t i = 0; i < match->interfaces.count; i++) {
		if (!strcmp(match->interfaces.items[i], name))
			return true;
	}
	return !match->interfaces.count;
}

static void compile_interfaces(const struct weir_policy *policy, const uint32_t *slots,
			       struct weir_compiled *compiled)
{
	for (size_t i = 0; i < policy->limit_count; i++) {
		const struct weir_policy_match *match = &policy->limits[i].match;

		if (match->interfaces.count)
			compiled->head.dimensions |= WEIR_BY_INTERFACE;
		for (size_t j = 0; j < policy->interface_count; j++) {
			if (names_interface(match, policy->interfaces[j].name))
				weir_bitmap_set(&compiled->rows[WEIR_ROWS_INTERFACE + slots[j]], i);
		}
	}
}

static void compile_hooks(const struct weir_policy *policy, struct weir_compiled *compiled)
{
	static const enum weir_hook hooks[] = {
		[WEIR_POLICY_XDP] = WEIR_HOOK_XDP,
		[WEIR_POLICY_TC_INGRESS] = WEIR_HOOK_TC_INGRESS,
		[WEIR_POLICY_TC_EGRESS] = WEIR_HOOK_TC_EGRESS,
	};

	for (size_t i = 0; i < policy->limit_count; i++)
		weir_bitmap_set(&compiled->head.hooks[hooks[policy->limits[i].match.hook]], i);
}

/* A gate looks at no packet but those that begin a connection: SYN, and not ACK, RST or FIN. */
static void compile_gates(const struct weir_policy *policy, struct weir_compiled *compiled)
{
	struct weir_bitmap *rows = &compiled->rows[WEIR_ROWS_TCP_FLAGS];
	bool used = compiled->head.dimensions & WEIR_BY_TCP_FLAGS;

	if (!compiled->head.gates)
		return;
	compiled->head.dimensions |= WEIR_BY_TCP_FLAGS;
	for (uint32_t flags = 0; flags <= WEIR_NO_TCP_FLAGS; flags++) {
		bool begins =
			flags < WEIR_NO_TCP_FLAGS && (flags & WEIR_TCP_BEGINS_MASK) == WEIR_TCP_SYN;

		for (size_t i = 0; i < policy->limit_count; i++) {
			if (!used)
				weir_bitmap_set(&rows[flags], i);
			if (policy->limits[i].kind == WEIR_POLICY_GATE && !begins)
				rows[flags].word[i / 64] &= ~(1ULL << (i % 64));
		}
	}
}

int weir_compile_match(const struct weir_policy *policy, const uint32_t *slots,
		       struct weir_compiled *compiled, struct weir_error *err)
{
	struct classes *classes = malloc(sizeof(*classes));
	size_t prefixes = 0;
	int code;

	for (size_t i = 0; i < policy->limit_count; i++)
		prefixes += policy->limits[i].match.from.count + policy->limits[i].match.to.count;
	compiled->prefixes = calloc(prefixes + 1, sizeof(*compiled->prefixes));
	if (!classes || !compiled->prefixes) {
		free(classes);
		return weir_error_set(err, -ENOMEM, "no memory for the policy's tables");
	}
	compile_hooks(policy, compiled);
	for (size_t i = 0; i < sizeof(plains) / sizeof(plains[0]); i++)
		compile_plain(policy, &plains[i], compiled);
	compile_gates(policy, compiled);
	compile_interfaces(policy, slots, compiled);
	code = compile_ports(policy, false, classes, compiled, err);
	if (!code)
		code = compile_ports(policy, true, classes, compiled, err);
	if (!code)
		code = compile_prefixes(policy, false, classes, compiled, err);
	if (!code)
		code = compile_prefixes(policy, true, classes, compiled, err);
	free(classes);
	return code;
}
