/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A time budget measured from the instant it started. A budget of zero or less never expires,
 * which is how most servers spell "no timeout". Source: the seed's Deadline.
 */
#pragma once

#include "api.h"

WEIR_API_BEGIN

/* seed: Deadline */
struct weir_deadline {
	int64_t budget_ns;
	int64_t started_ns;
};

/*
 * A deadline of budget_ns starting at now_ns.
 *
 * seed: Deadline::start
 */
struct weir_deadline weir_deadline_start(int64_t budget_ns, int64_t now_ns);

/*
 * Whether the budget is spent at now: from budget_ns after the start on. NULL never is.
 *
 * seed: Deadline::expired
 */
bool weir_deadline_expired(const struct weir_deadline *deadline, int64_t now_ns);

/*
 * What is left of the budget at now, from 0 to the budget, in *left_ns. False when there is no
 * budget (or the deadline is NULL), which has no finite remainder: *left_ns is then
 * WEIR_FOREVER_NS. left_ns may be NULL.
 *
 * seed: Deadline::remaining
 */
bool weir_deadline_remaining(const struct weir_deadline *deadline, int64_t now_ns,
			     int64_t *left_ns);

WEIR_API_END
