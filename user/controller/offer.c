// SPDX-License-Identifier: GPL-2.0
#include "controller/offer.h"

#include <math.h>
#include <stdio.h>

#define SECOND_NS 1000000000ULL
#define OFFER_MAX 1e12 /* what the units can say of anything a second */

static const struct {
	uint64_t per_ns;
	const char *name;
} periods[] = {
	{ SECOND_NS, "pps" },
	{ 60 * SECOND_NS, "/min" },
	{ 3600 * SECOND_NS, "/h" },
	{ 86400 * SECOND_NS, "/d" },
};
#define PERIODS (sizeof(periods) / sizeof(periods[0]))

struct weir_offer_unit weir_offer_unit(const struct weir_policy_governor *governor)
{
	const struct weir_rate *floor = &governor->floor;

	/* Of bytes there may be so many every 8 s: a second is as good. */
	return (struct weir_offer_unit){ floor->bytes ? SECOND_NS : floor->per_ns, floor->bytes };
}

static const char *period_name(uint64_t per_ns)
{
	for (size_t i = 0; i < PERIODS; i++) {
		if (periods[i].per_ns == per_ns)
			return periods[i].name;
	}
	return periods[0].name;
}

const char *weir_offer_unit_name(struct weir_offer_unit unit)
{
	return !unit.per_ns ? "connections" : unit.bytes ? "bytes/s" : period_name(unit.per_ns);
}

double weir_offer_of_rate(const struct weir_rate *rate, struct weir_offer_unit unit)
{
	if (!rate->per_ns)
		return rate->amount == UINT64_MAX ? INFINITY : (double)rate->amount;
	return (double)rate->amount * ((double)unit.per_ns / (double)rate->per_ns);
}

double weir_offer_of_limit(const struct weir_policy_limit *limit, struct weir_offer_unit unit)
{
	if (limit->kind == WEIR_POLICY_BUCKET)
		return weir_offer_of_rate(&limit->bucket.rate, unit);
	return limit->gate.limit == WEIR_POLICY_UNLIMITED ? INFINITY : (double)limit->gate.limit;
}

double weir_offer_most(struct weir_offer_unit unit)
{
	return unit.per_ns ? OFFER_MAX : (double)WEIR_POLICY_COUNT_MAX;
}

struct weir_policy_change weir_offer_change(double offer, struct weir_offer_unit unit,
					    char text[WEIR_OFFER_TEXT])
{
	double whole = fmin(fmax(floor(offer + 0.5), 1), weir_offer_most(unit));

	snprintf(text, WEIR_OFFER_TEXT, "%.0f%s", whole,
		 !unit.per_ns ? ""
		 : unit.bytes ? "byte"
			      : period_name(unit.per_ns));
	return (struct weir_policy_change){ unit.per_ns ? "rate" : "limit", text };
}
