// SPDX-License-Identifier: GPL-2.0
/*
 * The policy compiler's tables give each packet the limits that a naive reading of the policy
 * gives it, for random policies of 1 to 256 limits.
 */
#include "harness.h"

#include "match_model.h"

/* ---- what the tables say, read as the kernel side reads them ---- */

static uint32_t prefix_class(const struct weir_compiled *compiled, uint8_t family,
			     const uint32_t *address, uint8_t destination)
{
	uint8_t table = (uint8_t)(destination << 1 | (family == 6));
	uint32_t best = 0, class = 0;

	for (size_t i = 0; i < compiled->prefix_count; i++) {
		const struct weir_prefix_key *key = &compiled->prefixes[i].key;
		struct weir_prefix prefix = { .family = family,
					      .length = (uint8_t)(key->length - 8) };

		memcpy(prefix.address, key->address, 16);
		if (key->table != table || !weir_prefix_contains(&prefix, family, address) ||
		    key->length < best)
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

static void and_row(struct weir_bitmap *bitmap, const struct weir_compiled *compiled,
		    enum weir_dimension dimension, uint32_t row)
{
	if (compiled->head.dimensions & dimension)
		weir_bitmap_and(bitmap, &compiled->rows[row]);
}

static struct weir_bitmap tables(const struct weir_compiled *compiled, const struct packet *packet)
{
	struct weir_bitmap bitmap = compiled->head.hooks[packet->hook];
	const struct weir_packet *p = &packet->parsed;
	uint32_t icmp = p->family == 6 ? 256U + p->icmp_type : p->icmp_type;

	and_row(&bitmap, compiled, WEIR_BY_PROTOCOL, WEIR_ROWS_PROTOCOL + p->protocol);
	and_row(&bitmap, compiled, WEIR_BY_DESTINATION_PORT,
		WEIR_ROWS_DESTINATION_PORT + port_class(compiled, 0, p));
	and_row(&bitmap, compiled, WEIR_BY_SOURCE_PORT,
		WEIR_ROWS_SOURCE_PORT + port_class(compiled, 1, p));
	and_row(&bitmap, compiled, WEIR_BY_TCP_FLAGS,
		WEIR_ROWS_TCP_FLAGS +
			(p->has & WEIR_HAS_TCP_FLAGS ? p->tcp_flags : WEIR_NO_TCP_FLAGS));
	and_row(&bitmap, compiled, WEIR_BY_ICMP_TYPE,
		WEIR_ROWS_ICMP_TYPE + (p->has & WEIR_HAS_ICMP_TYPE ? icmp : WEIR_NO_ICMP_TYPE));
	and_row(&bitmap, compiled, WEIR_BY_VLAN,
		WEIR_ROWS_VLAN + (p->vlan < WEIR_NO_VLAN_ROW ? p->vlan : WEIR_NO_VLAN_ROW));
	and_row(&bitmap, compiled, WEIR_BY_SOURCE,
		WEIR_ROWS_SOURCE + prefix_class(compiled, p->family, p->source, 0));
	and_row(&bitmap, compiled, WEIR_BY_DESTINATION,
		WEIR_ROWS_DESTINATION + prefix_class(compiled, p->family, p->destination, 1));
	and_row(&bitmap, compiled, WEIR_BY_INTERFACE,
		WEIR_ROWS_INTERFACE + slots[packet->interface]);
	return bitmap;
}

static void random_policies_match_as_the_file_says(void)
{
	uint64_t random = 0x7765697200000001ULL, agreed = 0, matched = 0;

	for (int round = 0; round < 150; round++) {
		struct weir_policy *policy = random_policy(&random);
		struct weir_error err = { "" };
		int code;
		struct weir_compiled *compiled = compile(policy, NULL, &code, &err);

		CU_ASSERT_EQUAL_FATAL(code, 0);
		for (int i = 0; i < 400; i++) {
			struct packet packet = random_packet(&random);
			struct weir_bitmap bitmap = tables(compiled, &packet);

			for (size_t limit = 0; limit < WEIR_LIMITS_MAX; limit++) {
				bool want = limit < policy->limit_count &&
					    naive(policy, limit, &packet);

				agreed += weir_bitmap_has(&bitmap, limit) == want;
				matched += want;
			}
		}
		weir_compiled_free(compiled);
		weir_policy_free(policy);
	}
	CU_ASSERT_EQUAL(agreed, 150ULL * 400 * WEIR_LIMITS_MAX);
	CU_ASSERT(matched > 10000);
}

WEIR_TESTS("compile_match", TEST(random_policies_match_as_the_file_says))
