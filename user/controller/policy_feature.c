// SPDX-License-Identifier: GPL-2.0
#include "controller/policy_schema.h"

#include <errno.h>

/* Named as the field that asks for it. */
static const char *const names[WEIR_FEATURE_COUNT] = {
	[WEIR_FEATURE_BUCKET] = "bucket",
	[WEIR_FEATURE_BYTES] = "bucket.rate in bytes",
	[WEIR_FEATURE_SLIDING] = "sliding",
	[WEIR_FEATURE_PERIOD] = "period",
	[WEIR_FEATURE_PERIOD_ALIGN] = "period.align",
	[WEIR_FEATURE_GATE] = "gate",
	[WEIR_FEATURE_GATE_RESET] = "gate.refuse: reset",
	[WEIR_FEATURE_KEY_SOURCE] = "key: source",
	[WEIR_FEATURE_KEY_DESTINATION] = "key: destination",
	[WEIR_FEATURE_KEY_SOURCE_PORT] = "key: source+port",
	[WEIR_FEATURE_KEY_FLOW] = "key: flow",
	[WEIR_FEATURE_KEY_NONE] = "key: none",
	[WEIR_FEATURE_MATCH_PROTO] = "match.proto",
	[WEIR_FEATURE_MATCH_TO_PORT] = "match.to_port",
	[WEIR_FEATURE_MATCH_FROM_PORT] = "match.from_port",
	[WEIR_FEATURE_MATCH_FROM] = "match.from",
	[WEIR_FEATURE_MATCH_TO] = "match.to",
	[WEIR_FEATURE_MATCH_FLAGS] = "match.flags",
	[WEIR_FEATURE_MATCH_ICMP] = "match.icmp",
	[WEIR_FEATURE_MATCH_VLAN] = "match.vlan",
	[WEIR_FEATURE_MATCH_INTERFACE] = "match.interfaces",
	[WEIR_FEATURE_HOOK_TC_INGRESS] = "match.hook: tc-ingress",
	[WEIR_FEATURE_HOOK_TC_EGRESS] = "match.hook: tc-egress",
	[WEIR_FEATURE_MONITOR] = "mode: monitor",
	[WEIR_FEATURE_BAN] = "ban",
	[WEIR_FEATURE_MANY_LIMITS] = "limits with more than one item",
	[WEIR_FEATURE_LISTS] = "lists",
	[WEIR_FEATURE_SERVICES] = "services",
	[WEIR_FEATURE_EXCHANGES] = "trust: kernel (the default)",
	[WEIR_FEATURE_BREAKER] = "breaker",
	[WEIR_FEATURE_SHEDDER] = "shedder",
	[WEIR_FEATURE_GOVERNOR] = "governor",
	[WEIR_FEATURE_REPORT] = "trust: report",
};

#define IF(condition, feature) ((uint64_t) !!(condition) << WEIR_FEATURE_##feature)

static uint64_t match_features(const struct weir_policy_match *match)
{
	uint64_t protocols = 0, icmp = 0;

	for (size_t i = 0; i < 4; i++) {
		protocols |= match->protocols.words[i];
		icmp |= match->icmp_types.words[i];
	}
	return IF(protocols, MATCH_PROTO) | IF(icmp, MATCH_ICMP) |
	       IF(match->to_ports.count, MATCH_TO_PORT) |
	       IF(match->from_ports.count, MATCH_FROM_PORT) | IF(match->from.count, MATCH_FROM) |
	       IF(match->to.count, MATCH_TO) | IF(match->flags_mask, MATCH_FLAGS) |
	       IF(match->vlans.count, MATCH_VLAN) | IF(match->interfaces.count, MATCH_INTERFACE) |
	       IF(match->hook == WEIR_POLICY_TC_INGRESS, HOOK_TC_INGRESS) |
	       IF(match->hook == WEIR_POLICY_TC_EGRESS, HOOK_TC_EGRESS);
}

static uint64_t limit_features(const struct weir_policy_limit *limit)
{
	return match_features(&limit->match) | IF(limit->bucket.given, BUCKET) |
	       IF(limit->bucket.given && limit->bucket.rate.bytes, BYTES) |
	       IF(limit->sliding.given, SLIDING) | IF(limit->period.given, PERIOD) |
	       IF(limit->period.align, PERIOD_ALIGN) | IF(limit->gate.given, GATE) |
	       IF(limit->gate.refuse == WEIR_POLICY_REFUSE_RESET, GATE_RESET) |
	       IF(limit->mode == WEIR_POLICY_MONITOR, MONITOR) | IF(limit->ban.given, BAN) |
	       WEIR_FEATURE_BIT(WEIR_FEATURE_KEY_SOURCE + limit->key.kind);
}

static uint64_t service_features(const struct weir_policy_service *service)
{
	return IF(true, SERVICES) | IF(service->breaker.given, BREAKER) |
	       IF(service->shedder.given, SHEDDER) | IF(service->governor.given, GOVERNOR) |
	       IF(service->trust == WEIR_POLICY_TRUST_KERNEL, EXCHANGES) |
	       IF(service->trust == WEIR_POLICY_TRUST_REPORT, REPORT);
}

/* The sentence for the first feature that is wanted and not there; name is NULL at the top. */
static int check(const struct weir_policy *policy, uint64_t missing, uint32_t line,
		 const char *what, const char *name, struct weir_error *err)
{
	const char *feature;

	if (!missing)
		return 0;
	feature = names[__builtin_ctzll(missing)];
	if (!name)
		return weir_error_set(err, -EOPNOTSUPP,
				      "%s:%u: field '%s' is not built yet: remove it", policy->file,
				      line, feature);
	return weir_error_set(err, -EOPNOTSUPP,
			      "%s:%u: %s '%s': field '%s' is not built yet: remove it",
			      policy->file, line, what, name, feature);
}

static int check_top(const struct weir_policy *policy, uint64_t supported, struct weir_error *err)
{
	const struct weir_policy_list *allow = &policy->lists.allow, *deny = &policy->lists.deny;
	const struct {
		uint64_t wanted;
		uint32_t line;
	} sections[] = {
		{ IF(policy->mode == WEIR_POLICY_MONITOR, MONITOR), policy->lines.mode },
		{ IF(allow->prefixes.count || allow->files.count || deny->prefixes.count ||
			     deny->files.count,
		     LISTS),
		  policy->lines.lists },
		{ IF(policy->limit_count > 1, MANY_LIMITS), policy->lines.limits },
	};
	int rc = 0;

	for (size_t i = 0; !rc && i < sizeof(sections) / sizeof(sections[0]); i++)
		rc = check(policy, sections[i].wanted & ~supported, sections[i].line, NULL, NULL,
			   err);
	return rc;
}

int weir_policy_check_features(const struct weir_policy *policy, uint64_t supported,
			       struct weir_error *err)
{
	int rc = check_top(policy, supported, err);

	for (size_t i = 0; !rc && i < policy->limit_count; i++) {
		const struct weir_policy_limit *limit = &policy->limits[i];

		rc = check(policy, limit_features(limit) & ~supported, limit->line, "limit",
			   limit->name, err);
	}
	for (size_t i = 0; !rc && i < policy->service_count; i++) {
		const struct weir_policy_service *service = &policy->services[i];

		rc = check(policy, service_features(service) & ~supported, service->line, "service",
			   service->name, err);
	}
	return rc;
}
