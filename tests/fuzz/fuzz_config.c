// SPDX-License-Identifier: GPL-2.0
/* A configuration: refused in words, or accepted, printed and loaded back as the same policy. */
#include "policy_roundtrip.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct weir_policy *policy = NULL;
	struct weir_error err = { "" };

	/* The input must not name files: what they hold would not be the input's doing. */
	if (memmem(data, size, "_files", 6))
		return 0;
	if (weir_policy_load_text((const char *)data, size, "fuzz", &policy, &err)) {
		if (policy || !*err.text)
			abort();
		return 0;
	}
	weir_policy_check_features(policy, 0, &err);
	json_decref(weir_policy_json(policy));
	if (weir_roundtrip(policy, &err))
		abort();
	weir_policy_free(policy);
	return 0;
}
