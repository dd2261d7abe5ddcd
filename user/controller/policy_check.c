// SPDX-License-Identifier: GPL-2.0
#include "controller/policy_schema.h"

#include "weir/bucket.h"
#include "weir/place.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

/* Least burst of a byte rate: a full Ethernet frame with tags must fit, or nothing ever passes. */
#define BURST_BYTES_LEAST 1522U

static int limit_fail(const struct weir_policy *policy, const struct weir_policy_limit *limit,
		      struct weir_error *err)
{
	weir_error_prefix(err, "%s:%u: limit '%s': ", policy->file, limit->line, limit->name);
	return -EINVAL;
}

static int service_fail(const struct weir_policy *policy, const struct weir_policy_service *service,
			struct weir_error *err)
{
	weir_error_prefix(err, "%s:%u: service '%s': ", policy->file, service->line, service->name);
	return -EINVAL;
}

/* Whether any protocol is named, and none but those of `allowed`. */
static bool only_protocols(const struct weir_bits256 *protocols, const uint8_t *allowed,
			   size_t count)
{
	struct weir_bits256 rest = *protocols;
	uint64_t any = 0, left = 0;

	for (size_t i = 0; i < count; i++)
		rest.words[allowed[i] / 64] &= ~(1ULL << (allowed[i] % 64));
	for (size_t i = 0; i < 4; i++) {
		any |= protocols->words[i];
		left |= rest.words[i];
	}
	return any && !left;
}

static bool bits_any(const struct weir_bits256 *bits)
{
	return bits->words[0] | bits->words[1] | bits->words[2] | bits->words[3];
}

/* The largest burst that stands for no more than WEIR_BUCKET_SPAN_MAX ticks of its rate. */
static uint64_t burst_max(const struct weir_rate *rate)
{
	unsigned __int128 max =
		(unsigned __int128)WEIR_BUCKET_SPAN_MAX * rate->amount / rate->per_ns >>
		WEIR_TICK_SHIFT;

	return max > UINT64_MAX ? UINT64_MAX : (uint64_t)max;
}

static int check_bucket(const struct weir_policy_bucket *bucket, struct weir_error *err)
{
	char burst[WEIR_UNIT_TEXT], rate[WEIR_UNIT_TEXT];
	struct weir_amount most = { .bytes = bucket->rate.bytes };

	weir_amount_print(&bucket->burst, burst);
	weir_rate_print(&bucket->rate, rate);
	if (bucket->rate.per_ns)
		most.value = burst_max(&bucket->rate);
	if (bucket->rate.bytes && bucket->rate.per_ns && most.value < BURST_BYTES_LEAST)
		return weir_error_set(err, -ERANGE,
				      "field 'bucket.rate': '%s' is too slow, so that a frame "
				      "would take more than 2 years: write at least 2byte/d, or "
				      "block",
				      rate);
	if (bucket->burst.bytes != bucket->rate.bytes)
		return weir_error_set(
			err, -EINVAL,
			"field 'bucket.burst': '%s' is in %s but the rate '%s' in %s: "
			"write %s",
			burst, bucket->burst.bytes ? "bytes" : "packets", rate,
			bucket->rate.bytes ? "bytes" : "packets",
			bucket->rate.bytes ? "a size such as 1mbyte" : "a number such as 2000");
	if (bucket->rate.bytes && bucket->burst.value < BURST_BYTES_LEAST)
		return weir_error_set(err, -ERANGE,
				      "field 'bucket.burst': '%s' is smaller than a frame, so that "
				      "none would pass: write at least %ubyte",
				      burst, BURST_BYTES_LEAST);
	if (!bucket->rate.per_ns || bucket->burst.value <= most.value)
		return 0;
	weir_error_set(err, -ERANGE, ", which is 2 years of '%s'", rate);
	weir_error_prefix(err, "field 'bucket.burst': '%s' is too large: write at most %s", burst,
			  weir_amount_print(&most, rate));
	return -ERANGE;
}

static int check_match(const struct weir_policy *policy, const struct weir_policy_match *match,
		       struct weir_error *err)
{
	static const uint8_t with_ports[] = { IPPROTO_TCP, IPPROTO_UDP, IPPROTO_SCTP };
	static const uint8_t tcp = IPPROTO_TCP, icmp = IPPROTO_ICMP, icmpv6 = IPPROTO_ICMPV6;

	if ((match->to_ports.count || match->from_ports.count) && bits_any(&match->protocols) &&
	    !only_protocols(&match->protocols, with_ports, sizeof(with_ports)))
		return weir_error_set(err, -EINVAL,
				      "field 'match.proto': only tcp, udp and sctp have ports: "
				      "remove the others, or to_port and from_port");
	if (match->flags_mask && !only_protocols(&match->protocols, &tcp, 1))
		return weir_error_set(err, -EINVAL,
				      "field 'match.flags': only TCP has them: write proto: tcp");
	if (bits_any(&match->icmp_types) && !only_protocols(&match->protocols, &icmp, 1) &&
	    !only_protocols(&match->protocols, &icmpv6, 1))
		return weir_error_set(err, -EINVAL,
				      "field 'match.icmp': types differ by version: write proto: "
				      "icmp, or proto: icmpv6");
	for (size_t i = 0; i < match->interfaces.count; i++) {
		bool known = false;

		for (size_t j = 0; j < policy->interface_count; j++)
			known |= !strcmp(match->interfaces.items[i], policy->interfaces[j].name);
		if (!known)
			return weir_error_set(err, -EINVAL,
					      "field 'match.interfaces': '%s' is not one of this "
					      "file's interfaces: add it there",
					      match->interfaces.items[i]);
	}
	return 0;
}

static int check_gate(const struct weir_policy_limit *limit, struct weir_error *err)
{
	static const uint8_t tcp = IPPROTO_TCP;

	if (!only_protocols(&limit->match.protocols, &tcp, 1))
		return weir_error_set(err, -EINVAL,
				      "field 'gate': counts TCP connections: write match: {proto: "
				      "tcp}");
	if (limit->key.kind == WEIR_POLICY_KEY_FLOW)
		return weir_error_set(err, -EINVAL,
				      "field 'key': 'flow' is one connection, so a gate would "
				      "never have two of a key: write source, destination or none");
	if (limit->match.hook == WEIR_POLICY_TC_EGRESS)
		return weir_error_set(err, -EINVAL,
				      "field 'gate': counts connections that come in: write hook: "
				      "xdp or hook: tc-ingress");
	return 0;
}

static int check_keys(const struct weir_policy_limit *limit, struct weir_error *err)
{
	uint64_t ring = limit->sliding.given ? sizeof(uint64_t) * weir_ring_capacity(
							(uint32_t)limit->sliding.quota)
					     : 1;
	uint64_t most = WEIR_POLICY_RINGS_BYTES_MAX / ring;

	if (!limit->keys)
		return 0;
	if (!limit->sliding.given && limit->key.kind != WEIR_POLICY_KEY_FLOW)
		return weir_error_set(err, -EINVAL,
				      "field 'keys': only a limit that is sliding or has key: flow "
				      "has a ledger of its own: remove it; ledger.keys is how many "
				      "keys the others share");
	if (limit->key.kind == WEIR_POLICY_KEY_NONE)
		return weir_error_set(err, -EINVAL,
				      "field 'keys': key: none is one key for all: remove it");
	if (limit->keys <= most)
		return 0;
	return weir_error_set(err, -ERANGE,
			      "field 'keys': '%llu' keys with a ring of %llu bytes each are more "
			      "than 4 GiB: write at most %llu",
			      (unsigned long long)limit->keys, (unsigned long long)ring,
			      (unsigned long long)most);
}

/* `weir show NAME` must mean one thing. */
static bool is_reserved(const char *name)
{
	static const char *const words[] = { "limits",   "lists",  "interfaces",
					     "services", "ledger", "bans" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!strcmp(words[i], name))
			return true;
	}
	return false;
}

static int check_limit(const struct weir_policy *policy, const struct weir_policy_limit *limit,
		       struct weir_error *err)
{
	int kinds = limit->bucket.given + limit->sliding.given + limit->period.given +
		    limit->gate.given;
	const struct weir_policy_limit *first = weir_policy_find_limit(policy, limit->name);
	int rc;

	if (first != limit)
		return weir_error_set(err, -EINVAL, "the name is there twice (first on line %u)",
				      first->line);
	if (is_reserved(limit->name))
		return weir_error_set(err, -EINVAL, "the name is a word of weir show: use another");
	if (kinds != 1)
		return weir_error_set(err, -EINVAL,
				      "has %s of bucket, sliding, period, gate: write exactly one",
				      kinds ? "more than one" : "none");
	rc = limit->bucket.given ? check_bucket(&limit->bucket, err) : 0;
	if (!rc && limit->gate.given)
		rc = check_gate(limit, err);
	if (!rc)
		rc = check_keys(limit, err);
	return rc ? rc : check_match(policy, &limit->match, err);
}

static int check_governor(const struct weir_policy *policy,
			  const struct weir_policy_service *service, struct weir_error *err)
{
	const struct weir_policy_governor *g = &service->governor;
	const struct weir_policy_limit *limit = weir_policy_find_limit(policy, g->control);
	const struct weir_rate *levels[] = { &g->floor, &g->start, &g->ceiling };

	if (!limit || (!limit->bucket.given && !limit->gate.given))
		return weir_error_set(
			err, -EINVAL,
			"field 'governor.control': '%s' is not a limit with a bucket or "
			"a gate: write the name of one",
			g->control);
	for (const struct weir_policy_service *s = policy->services; s != service; s++) {
		if (s->governor.given && !strcmp(s->governor.control, g->control))
			return weir_error_set(err, -EINVAL,
					      "field 'governor.control': '%s' is already moved by "
					      "service '%s': one governor a limit",
					      g->control, s->name);
	}
	for (size_t i = 0; i < 3; i++) {
		char text[WEIR_UNIT_TEXT];

		if (weir_rate_is_unlimited(levels[i]) && i == 2)
			continue;
		if (!levels[i]->amount || weir_rate_is_unlimited(levels[i]) ||
		    !levels[i]->per_ns != limit->gate.given ||
		    levels[i]->bytes != (limit->bucket.given && limit->bucket.rate.bytes))
			return weir_error_set(
				err, -EINVAL,
				"field 'governor.%s': '%s' does not fit '%s': write %s",
				i == 0	 ? "floor"
				: i == 1 ? "start"
					 : "ceiling",
				weir_rate_print(levels[i], text), g->control,
				limit->gate.given	   ? "a number of connections, such as 50"
				: limit->bucket.rate.bytes ? "a rate in bytes, such as 10mbit"
							   : "a rate in packets, such as 50pps");
	}
	if (weir_rate_compare(&g->floor, &g->start) > 0 ||
	    weir_rate_compare(&g->start, &g->ceiling) > 0)
		return weir_error_set(err, -EINVAL,
				      "field 'governor': write floor <= start <= ceiling (the "
				      "ceiling is the limit's own rate unless given)");
	if (g->low >= g->high)
		return weir_error_set(err, -EINVAL, "field 'governor.low': write less than high");
	return 0;
}

static bool ranges_meet(const struct weir_ranges *a, const struct weir_ranges *b, uint16_t *port)
{
	for (size_t i = 0; i < a->count; i++) {
		for (size_t j = 0; j < b->count; j++) {
			*port = a->items[i].low > b->items[j].low ? a->items[i].low :
								    b->items[j].low;
			if (*port <= a->items[i].high && *port <= b->items[j].high)
				return true;
		}
	}
	return false;
}

/* A packet finds its service by its port. */
static int check_service_ports(const struct weir_policy *policy,
			       const struct weir_policy_service *service, struct weir_error *err)
{
	uint16_t port;

	for (const struct weir_policy_service *s = policy->services; s != service; s++) {
		if (ranges_meet(&s->match.to_ports, &service->match.to_ports, &port))
			return weir_error_set(err, -EINVAL,
					      "field 'match.to_port': %u is a port of service '%s' "
					      "(line %u): a port is of one service, whatever the "
					      "protocol and the addresses",
					      port, s->name, s->line);
	}
	return 0;
}

static int check_service(const struct weir_policy *policy,
			 const struct weir_policy_service *service, struct weir_error *err)
{
	static const uint8_t protocols[] = { IPPROTO_TCP, IPPROTO_UDP };
	const struct weir_policy_service *first = weir_policy_find_service(policy, service->name);
	int rc;

	if (first != service)
		return weir_error_set(err, -EINVAL, "the name is there twice (first on line %u)",
				      first->line);
	if (is_reserved(service->name) || weir_policy_find_limit(policy, service->name))
		return weir_error_set(err, -EINVAL,
				      "the name is that of a limit or a word of weir show: use "
				      "another");
	if (!only_protocols(&service->match.protocols, protocols, sizeof(protocols)))
		return weir_error_set(err, -EINVAL, "field 'match.proto': write tcp or udp");
	rc = check_service_ports(policy, service, err);
	if (rc)
		return rc;
	if (service->breaker.given && service->breaker.floor > service->breaker.k)
		return weir_error_set(err, -EINVAL,
				      "field 'breaker.floor': is above k: write at most k");
	return service->governor.given ? check_governor(policy, service, err) : 0;
}

static int check_interface(const struct weir_policy *policy, size_t index, struct weir_error *err)
{
	const struct weir_policy_interface *interface = &policy->interfaces[index];

	for (size_t i = 0; i < index; i++) {
		if (!strcmp(policy->interfaces[i].name, interface->name))
			return weir_error_set(err, -EINVAL,
					      "%s:%u: interface '%s' is there twice (first on line "
					      "%u): keep one",
					      policy->file, interface->line, interface->name,
					      policy->interfaces[i].line);
	}
	return 0;
}

int weir_policy_check_limit(const struct weir_policy *policy, const struct weir_policy_limit *limit,
			    struct weir_error *err)
{
	if (!check_limit(policy, limit, err))
		return 0;
	weir_error_prefix(err, "limit '%s': ", limit->name);
	return -EINVAL;
}

int weir_policy_check(const struct weir_policy *policy, struct weir_error *err)
{
	for (size_t i = 0; i < policy->interface_count; i++) {
		if (check_interface(policy, i, err))
			return -EINVAL;
	}
	for (size_t i = 0; i < policy->limit_count; i++) {
		if (check_limit(policy, &policy->limits[i], err))
			return limit_fail(policy, &policy->limits[i], err);
	}
	for (size_t i = 0; i < policy->service_count; i++) {
		if (check_service(policy, &policy->services[i], err))
			return service_fail(policy, &policy->services[i], err);
	}
	return 0;
}
