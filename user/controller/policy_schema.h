/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of the policy share among themselves; others include policy.h. */
#pragma once

#include "controller/field.h"
#include "controller/policy.h"

extern const struct weir_field weir_policy_fields[]; /* of struct weir_policy */
extern const struct weir_field weir_policy_limit_fields[];
extern const struct weir_policy weir_policy_defaults;

/* Fills in what depends on other values: a bucket's unit and default burst. */
void weir_policy_complete_limit(struct weir_policy_limit *limit);
/* The same for all of it, and the kinds of the limits, and the governors' bounds. */
void weir_policy_complete(struct weir_policy *policy);
/* What no field can know alone. Sentences begin with limit 'name':, those of a whole policy with
 * file:line: before that. */
int weir_policy_check_limit(const struct weir_policy *policy, const struct weir_policy_limit *limit,
			    struct weir_error *err);
int weir_policy_check(const struct weir_policy *policy, struct weir_error *err);
