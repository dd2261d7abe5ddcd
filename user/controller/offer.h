/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A governor's offer and the limit it moves. An offer is a number in the unit of the governor's
 * floor: packets a second, a minute, an hour or a day as that says; bytes a second; connections.
 */
#pragma once

#include "controller/policy.h"

#define WEIR_OFFER_TEXT 40

struct weir_offer_unit {
	uint64_t per_ns; /* 0: connections */
	bool bytes;
};

struct weir_offer_unit weir_offer_unit(const struct weir_policy_governor *governor);
/* "pps", "/min", "/h", "/d", "bytes/s", "connections". */
const char *weir_offer_unit_name(struct weir_offer_unit unit);

/* A rate (or level) in the unit: 0 for block, INFINITY for unlimited. */
double weir_offer_of_rate(const struct weir_rate *rate, struct weir_offer_unit unit);
/* What a limit is set to now. */
double weir_offer_of_limit(const struct weir_policy_limit *limit, struct weir_offer_unit unit);

/* The largest offer that a limit can be set to. */
double weir_offer_most(struct weir_offer_unit unit);
/* The change that makes it an offer, whole and at least 1: `rate` or `limit`. */
struct weir_policy_change weir_offer_change(double offer, struct weir_offer_unit unit,
					    char text[WEIR_OFFER_TEXT]);
