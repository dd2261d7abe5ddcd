// SPDX-License-Identifier: GPL-2.0
#include "controller/policy_schema.h"

#include "weir/place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void weir_policy_free(struct weir_policy *policy)
{
	if (!policy)
		return;
	weir_fields_free(weir_policy_fields, policy);
	free(policy->written);
	free(policy->file);
	free(policy);
}

struct weir_policy_limit *weir_policy_find_limit(const struct weir_policy *policy, const char *name)
{
	for (size_t i = 0; i < policy->limit_count; i++) {
		if (!strcmp(policy->limits[i].name, name))
			return &policy->limits[i];
	}
	return NULL;
}

struct weir_policy_service *weir_policy_find_service(const struct weir_policy *policy,
						     const char *name)
{
	for (size_t i = 0; i < policy->service_count; i++) {
		if (!strcmp(policy->services[i].name, name))
			return &policy->services[i];
	}
	return NULL;
}

uint64_t weir_policy_own_keys(const struct weir_policy *policy,
			      const struct weir_policy_limit *limit)
{
	uint64_t wanted = limit->keys, keys = 16, most;

	if (!limit->sliding.given && limit->key.kind != WEIR_POLICY_KEY_FLOW)
		return 0;
	if (limit->key.kind == WEIR_POLICY_KEY_NONE)
		return keys;
	if (!wanted) {
		wanted = policy->ledger.keys;
		most = WEIR_POLICY_OWN_KEYS_MAX;
		if (limit->sliding.given)
			most = WEIR_POLICY_RINGS_BYTES /
			       (weir_ring_capacity((uint32_t)limit->sliding.quota) *
				sizeof(uint64_t));
		if (wanted > most)
			wanted = most;
		if (wanted > WEIR_POLICY_OWN_KEYS_MAX)
			wanted = WEIR_POLICY_OWN_KEYS_MAX;
		if (wanted < WEIR_POLICY_OWN_KEYS_MIN)
			wanted = WEIR_POLICY_OWN_KEYS_MIN;
	}
	while (keys < wanted)
		keys *= 2;
	return keys;
}

bool weir_policy_equal(const struct weir_policy *a, const struct weir_policy *b)
{
	return weir_fields_equal(weir_policy_fields, a, b);
}

bool weir_policy_limit_equal(const struct weir_policy_limit *a, const struct weir_policy_limit *b)
{
	return weir_fields_equal(weir_policy_limit_fields, a, b);
}

int weir_policy_print(const struct weir_policy *policy, FILE *out)
{
	struct weir_policy view = *policy;

	/* The files stand for the prefixes that came from them. */
	view.lists.allow.prefixes.count = view.lists.allow.own;
	view.lists.deny.prefixes.count = view.lists.deny.own;
	weir_fields_print(weir_policy_fields, &view, 0, out);
	return fflush(out) || ferror(out) ? -EIO : 0;
}

json_t *weir_policy_json(const struct weir_policy *policy)
{
	json_t *json = weir_fields_json(weir_policy_fields, policy);

	json_object_set_new(json, "schema", json_integer(WEIR_POLICY_JSON_SCHEMA));
	return json;
}

/* One second of the rate, but never so small that a packet can't pass. */
static uint64_t default_burst(const struct weir_rate *rate)
{
	uint64_t least = rate->bytes ? WEIR_POLICY_BURST_BYTES_MIN : 1;
	uint64_t second = weir_rate_per_sec(rate);

	return second > least ? second : least;
}

void weir_policy_complete_limit(struct weir_policy_limit *limit)
{
	struct weir_rate *rate = &limit->bucket.rate;
	struct weir_amount *burst = &limit->bucket.burst;

	if (!limit->bucket.given)
		return;
	if (!rate->per_ns)
		rate->bytes = burst->given && burst->bytes;
	if (burst->given)
		return;
	burst->bytes = rate->bytes;
	burst->value = rate->per_ns ? default_burst(rate) : 1;
}

static void complete_governor(const struct weir_policy *policy,
			      struct weir_policy_governor *governor)
{
	const struct weir_policy_limit *limit = weir_policy_find_limit(policy, governor->control);

	if (!governor->start.amount)
		governor->start = governor->floor;
	if (governor->ceiling.amount || !limit)
		return;
	if (limit->kind == WEIR_POLICY_BUCKET)
		governor->ceiling = limit->bucket.rate;
	else
		governor->ceiling.amount = limit->gate.limit;
}

void weir_policy_complete(struct weir_policy *policy)
{
	uint64_t keys = 1024;

	while (keys < policy->ledger.keys)
		keys *= 2;
	policy->ledger.keys = keys;
	for (size_t i = 0; i < policy->limit_count; i++) {
		struct weir_policy_limit *limit = &policy->limits[i];

		limit->kind = limit->sliding.given  ? WEIR_POLICY_SLIDING
			      : limit->period.given ? WEIR_POLICY_PERIOD
			      : limit->gate.given   ? WEIR_POLICY_GATE
						    : WEIR_POLICY_BUCKET;
		weir_policy_complete_limit(limit);
	}
	for (size_t i = 0; i < policy->service_count; i++) {
		if (policy->services[i].governor.given)
			complete_governor(policy, &policy->services[i].governor);
	}
}
