// SPDX-License-Identifier: GPL-2.0
/*
 * The policy compiler's tables give each packet the limits that a naive reading of the policy
 * gives it, for random policies of 1 to 256 limits.
 */
#include "harness.h"

#include "match_model.h"

static struct weir_bitmap tables(const struct weir_compiled *compiled, const struct packet *packet)
{
	return weir_compiled_match(compiled, &packet->parsed, packet->hook,
				   slots[packet->interface], 0);
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
