/* SPDX-License-Identifier: GPL-2.0 */
/* The property that the random test and the fuzzer both hold the policy to. */
#pragma once

#include "controller/policy.h"

#include <stdlib.h>
#include <string.h>

static inline char *weir_roundtrip_print(const struct weir_policy *policy)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		abort();
	if (weir_policy_print(policy, out))
		abort();
	fclose(out);
	return text;
}

/*
 * Prints a policy, loads that text, and compares: the two must be equal, and the second must
 * print as the first did. Returns NULL, or what went wrong (in err where a load said it).
 */
static inline const char *weir_roundtrip(const struct weir_policy *policy, struct weir_error *err)
{
	char *text = weir_roundtrip_print(policy), *second = NULL;
	struct weir_policy *again = NULL;
	const char *wrong = NULL;

	if (weir_policy_load_text(text, strlen(text), "printed", &again, err)) {
		wrong = "the printed policy does not load";
		goto out;
	}
	second = weir_roundtrip_print(again);
	if (!weir_policy_equal(policy, again) || !weir_policy_equal(again, policy))
		wrong = "the printed policy is another policy";
	else if (strcmp(text, second))
		wrong = "the printed policy prints differently";
out:
	weir_policy_free(again);
	free(second);
	free(text);
	return wrong;
}
