// SPDX-License-Identifier: GPL-2.0
#include "controller/policy_schema.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define US 1000ULL
#define MS (1000 * US)
#define SEC (1000 * MS)
#define HOUR (3600 * SEC)
#define DAY (24 * HOUR)

#define FIELD(object, member, text, kind, ...)                                                     \
	{                                                                                          \
		.name = text, .type = WEIR_FIELD_##kind,                                           \
		.offset = offsetof(struct object, member),                                         \
		.size = sizeof(((struct object *)NULL)->member), ##__VA_ARGS__                     \
	}
#define RANGE(low, high) .min = (low), .max = (high)
#define FLAGS(...) .flags = (__VA_ARGS__)
#define REQUIRED WEIR_FIELD_REQUIRED
#define SET WEIR_FIELD_SET
#define GIVEN WEIR_FIELD_GIVEN
#define END                                                                                        \
	{                                                                                          \
		.name = NULL                                                                       \
	}

static const char *const attach_words[] = { "auto", "native", "generic", NULL };
static const char *const mode_words[] = { "enforce", "monitor", NULL };
static const char *const hook_words[] = { "xdp", "tc-ingress", "tc-egress", NULL };
static const char *const untracked_words[] = { "pass", "drop", NULL };
static const char *const refuse_words[] = { "drop", "reset", NULL };
static const char *const trust_words[] = { "kernel", "report", NULL };
static const char *const kind_words[] = { "bucket", "sliding", "period", "gate", NULL };
static const char *const key_words[] = { "source", "destination", "source+port",
					 "flow",   "none",	  NULL };

const char *weir_policy_hook_name(enum weir_policy_hook hook)
{
	return hook_words[hook];
}

const char *weir_policy_kind_name(enum weir_policy_kind kind)
{
	return kind_words[kind];
}

const char *weir_policy_key_name(enum weir_policy_key_kind kind)
{
	return key_words[kind];
}

const char *weir_policy_mode_name(enum weir_policy_mode mode)
{
	return mode_words[mode];
}

_Static_assert(WEIR_FIELD_TEXT > 3 * WEIR_POLICY_TEXT_SIZE, "the longest text, quoted, fits");

/* The key: a word, or {word: {v4: 24, v6: 56}}. */

struct key_lengths {
	uint64_t v4, v6;
};

static const struct weir_field key_fields[] = {
	FIELD(key_lengths, v4, "v4", COUNT, RANGE(1, 32)),
	FIELD(key_lengths, v6, "v6", COUNT, RANGE(1, 128)),
	END,
};

static bool key_has_lengths(enum weir_policy_key_kind kind)
{
	return kind <= WEIR_POLICY_KEY_SOURCE_PORT;
}

static int key_load(struct weir_field_context *context, const struct weir_node *node, void *value)
{
	struct weir_field word = { .name = "key", .type = WEIR_FIELD_WORD, .words = key_words };
	bool map = node->kind == WEIR_NODE_MAP && node->count == 1;
	struct key_lengths lengths = { 32, 64 };
	struct weir_policy_key *key = value;
	const char *text = map ? node->children[0].key : node->text;
	size_t path = strlen(context->path);
	unsigned int kind;
	int rc;

	if (!text) {
		weir_error_set(
			context->err, 0,
			"can't be read: write key: source, or key: {source: {v4: 24, v6: 56}}");
		return weir_field_fail(context, node->line, "key", -EINVAL);
	}
	rc = weir_field_parse(&word, text, &kind, context->err);
	if (rc)
		return weir_field_fail(context, node->line, "key", rc);
	if (map && !key_has_lengths(kind)) {
		weir_error_set(context->err, 0, "'%s' has no prefix lengths: write key: %s", text,
			       text);
		return weir_field_fail(context, node->line, "key", -EINVAL);
	}
	if (map) {
		weir_field_push(context, "key", NULL);
		weir_field_push(context, text, NULL);
		rc = weir_fields_load(key_fields, &node->children[0], &lengths, context);
		context->path[path] = 0;
	}
	*key = (struct weir_policy_key){ .kind = kind };
	if (key_has_lengths(kind)) {
		key->v4_length = (uint8_t)lengths.v4;
		key->v6_length = (uint8_t)lengths.v6;
	}
	return rc;
}

static void key_print(const void *value, int indent, FILE *out)
{
	const struct weir_policy_key *key = value;

	fprintf(out, "%*skey: ", indent, "");
	if (key_has_lengths(key->kind))
		fprintf(out, "{%s: {v4: %u, v6: %u}}\n", key_words[key->kind], key->v4_length,
			key->v6_length);
	else
		fprintf(out, "%s\n", key_words[key->kind]);
}

static bool key_equal(const void *a, const void *b)
{
	const struct weir_policy_key *x = a, *y = b;

	return x->kind == y->kind && x->v4_length == y->v4_length && x->v6_length == y->v6_length;
}

static json_t *key_json(const void *value)
{
	const struct weir_policy_key *key = value;
	json_t *json = json_pack("{s:s}", "kind", key_words[key->kind]);

	if (key_has_lengths(key->kind)) {
		json_object_set_new(json, "v4", json_integer(key->v4_length));
		json_object_set_new(json, "v6", json_integer(key->v6_length));
	}
	return json;
}

static const struct weir_field_custom key_custom = { key_load, key_print, key_equal, key_json };

/* The limits. */

static const struct weir_field bucket_fields[] = {
	FIELD(weir_policy_bucket, rate, "rate", RATE, FLAGS(REQUIRED | SET)),
	FIELD(weir_policy_bucket, burst, "burst", AMOUNT, FLAGS(SET)),
	END,
};
static const struct weir_field sliding_fields[] = {
	FIELD(weir_policy_sliding, quota, "quota", COUNT, RANGE(1, WEIR_POLICY_QUOTA_MAX),
	      FLAGS(REQUIRED | SET)),
	FIELD(weir_policy_sliding, window_ns, "window", TIME, RANGE(1 * US, 30 * DAY),
	      FLAGS(REQUIRED | SET)),
	END,
};
static const struct weir_field period_fields[] = {
	FIELD(weir_policy_period, quota, "quota", COUNT, RANGE(1, WEIR_POLICY_COUNT_MAX),
	      FLAGS(REQUIRED | SET)),
	FIELD(weir_policy_period, period_ns, "period", TIME, RANGE(1 * MS, 366 * DAY),
	      FLAGS(REQUIRED | SET)),
	FIELD(weir_policy_period, align, "align", BOOL, FLAGS(SET)),
	END,
};
static const struct weir_field gate_fields[] = {
	FIELD(weir_policy_gate, limit, "limit", LEVEL, RANGE(1, WEIR_POLICY_COUNT_MAX),
	      FLAGS(REQUIRED | SET)),
	FIELD(weir_policy_gate, refuse, "refuse", WORD, FLAGS(SET), .words = refuse_words),
	END,
};
static const struct weir_field ban_fields[] = {
	{ .name = "after",
	  .type = WEIR_FIELD_AFTER,
	  FLAGS(REQUIRED | SET),
	  .offset = offsetof(struct weir_policy_ban, after_count) },
	FIELD(weir_policy_ban, for_ns, "for", TIME, RANGE(1 * SEC, 366 * DAY),
	      FLAGS(REQUIRED | SET)),
	END,
};
static const struct weir_field match_fields[] = {
	FIELD(weir_policy_match, hook, "hook", WORD, .words = hook_words),
	FIELD(weir_policy_match, protocols, "proto", PROTOCOLS),
	FIELD(weir_policy_match, to_ports, "to_port", RANGES, RANGE(0, 65535)),
	FIELD(weir_policy_match, from_ports, "from_port", RANGES, RANGE(0, 65535)),
	FIELD(weir_policy_match, from, "from", PREFIXES),
	FIELD(weir_policy_match, to, "to", PREFIXES),
	{ .name = "flags",
	  .type = WEIR_FIELD_FLAGS,
	  .offset = offsetof(struct weir_policy_match, flags_mask) },
	FIELD(weir_policy_match, icmp_types, "icmp", BITS),
	FIELD(weir_policy_match, vlans, "vlan", RANGES, RANGE(0, 4094)),
	{ .name = "interfaces",
	  .type = WEIR_FIELD_IFNAMES,
	  .size = WEIR_POLICY_IFNAME_SIZE,
	  .offset = offsetof(struct weir_policy_match, interfaces) },
	END,
};
const struct weir_field weir_policy_limit_fields[] = {
	FIELD(weir_policy_limit, name, "name", NAME, FLAGS(REQUIRED)),
	FIELD(weir_policy_limit, match, "match", MAP, .fields = match_fields),
	FIELD(weir_policy_limit, key, "key", CUSTOM, FLAGS(REQUIRED), .custom = &key_custom),
	FIELD(weir_policy_limit, bucket, "bucket", MAP, FLAGS(GIVEN), .fields = bucket_fields),
	FIELD(weir_policy_limit, sliding, "sliding", MAP, FLAGS(GIVEN), .fields = sliding_fields),
	FIELD(weir_policy_limit, period, "period", MAP, FLAGS(GIVEN), .fields = period_fields),
	FIELD(weir_policy_limit, gate, "gate", MAP, FLAGS(GIVEN), .fields = gate_fields),
	FIELD(weir_policy_limit, mode, "mode", WORD, FLAGS(SET), .words = mode_words),
	FIELD(weir_policy_limit, untracked, "untracked", WORD, FLAGS(SET),
	      .words = untracked_words),
	FIELD(weir_policy_limit, keys, "keys", COUNT,
	      RANGE(WEIR_POLICY_OWN_KEYS_MIN, WEIR_POLICY_OWN_KEYS_MAX)),
	FIELD(weir_policy_limit, ban, "ban", MAP, FLAGS(GIVEN), .fields = ban_fields),
	END,
};

/* The services. */

#define RATIO(n) ((uint64_t)((n)*WEIR_MILLION))

static const struct weir_field breaker_fields[] = {
	FIELD(weir_policy_breaker, k, "k", RATIO, RANGE(RATIO(1), RATIO(100))),
	FIELD(weir_policy_breaker, floor, "floor", RATIO, RANGE(RATIO(1), RATIO(100))),
	FIELD(weir_policy_breaker, protection, "protection", RATIO, RANGE(0, RATIO(1000000))),
	FIELD(weir_policy_breaker, probe_ns, "probe", TIME, RANGE(1 * MS, HOUR)),
	FIELD(weir_policy_breaker, size, "size", COUNT, RANGE(1, 1000)),
	FIELD(weir_policy_breaker, window_ns, "window", TIME, RANGE(100 * MS, HOUR)),
	END,
};
static const struct weir_field shedder_fields[] = {
	FIELD(weir_policy_shedder, size, "size", COUNT, RANGE(1, 1000)),
	FIELD(weir_policy_shedder, window_ns, "window", TIME, RANGE(100 * MS, HOUR)),
	FIELD(weir_policy_shedder, cpu, "cpu", COUNT, RANGE(1, 1000)),
	FIELD(weir_policy_shedder, latency_ns, "latency", TIME, RANGE(1 * US, HOUR)),
	FIELD(weir_policy_shedder, beta, "beta", RATIO, RANGE(0, RATIO(1) - 1)),
	FIELD(weir_policy_shedder, cool_ns, "cool", TIME, RANGE(1 * MS, HOUR)),
	FIELD(weir_policy_shedder, floor, "floor", RATIO, RANGE(1, RATIO(1))),
	END,
};
static const struct weir_field governor_fields[] = {
	FIELD(weir_policy_governor, control, "control", NAME, FLAGS(REQUIRED)),
	FIELD(weir_policy_governor, start, "start", OFFER),
	FIELD(weir_policy_governor, floor, "floor", OFFER, FLAGS(REQUIRED)),
	FIELD(weir_policy_governor, ceiling, "ceiling", OFFER),
	FIELD(weir_policy_governor, high, "high", PERCENT, RANGE(1, RATIO(1))),
	FIELD(weir_policy_governor, low, "low", PERCENT, RANGE(0, RATIO(1))),
	FIELD(weir_policy_governor, window_ns, "window", TIME, RANGE(100 * MS, HOUR)),
	END,
};
static const struct weir_field service_match_fields[] = {
	FIELD(weir_policy_match, protocols, "proto", PROTOCOLS, FLAGS(REQUIRED)),
	FIELD(weir_policy_match, to_ports, "to_port", RANGES, FLAGS(REQUIRED), RANGE(1, 65535)),
	FIELD(weir_policy_match, to, "to", PREFIXES),
	END,
};
static const struct weir_field service_fields[] = {
	FIELD(weir_policy_service, name, "name", NAME, FLAGS(REQUIRED)),
	FIELD(weir_policy_service, match, "match", MAP, FLAGS(REQUIRED),
	      .fields = service_match_fields),
	FIELD(weir_policy_service, deadline_ns, "deadline", TIME, RANGE(1 * MS, HOUR)),
	FIELD(weir_policy_service, cgroup, "cgroup", PATH),
	FIELD(weir_policy_service, trust, "trust", WORD, .words = trust_words),
	FIELD(weir_policy_service, breaker, "breaker", MAP, FLAGS(GIVEN), .fields = breaker_fields),
	FIELD(weir_policy_service, shedder, "shedder", MAP, FLAGS(GIVEN), .fields = shedder_fields),
	FIELD(weir_policy_service, governor, "governor", MAP, FLAGS(GIVEN),
	      .fields = governor_fields),
	END,
};
static const struct weir_policy_service service_defaults = {
	.breaker = { .k = RATIO(1.5),
		     .floor = RATIO(1.1),
		     .protection = RATIO(5),
		     .probe_ns = SEC,
		     .size = 40,
		     .window_ns = 10 * SEC },
	.shedder = { .size = 50,
		     .window_ns = 5 * SEC,
		     .cpu = 900,
		     .latency_ns = SEC,
		     .beta = RATIO(0.9),
		     .cool_ns = SEC,
		     .floor = RATIO(0.1) },
	.governor = { .high = RATIO(0.05), .low = RATIO(0.01), .window_ns = 2 * SEC },
};

/* The whole. */

static const struct weir_field interface_fields[] = {
	FIELD(weir_policy_interface, name, "name", IFNAME, FLAGS(REQUIRED)),
	FIELD(weir_policy_interface, mode, "mode", WORD, .words = attach_words),
	END,
};
static const struct weir_field ledger_fields[] = {
	FIELD(weir_policy, ledger.keys, "keys", COUNT, RANGE(1024, 16 << 20)),
	END,
};
#define LIST(member, text, kind)                                                                   \
	FIELD(weir_policy, lists.member, text, kind, FLAGS(WEIR_FIELD_EMPTY))
#define FILES(member, text)                                                                        \
	{                                                                                          \
		.name = text, .type = WEIR_FIELD_PATHS, .size = WEIR_POLICY_TEXT_SIZE,             \
		FLAGS(WEIR_FIELD_EMPTY), .offset = offsetof(struct weir_policy, lists.member)      \
	}
static const struct weir_field list_fields[] = {
	LIST(allow.prefixes, "allow", PREFIXES),
	LIST(deny.prefixes, "deny", PREFIXES),
	FILES(allow.files, "allow_files"),
	FILES(deny.files, "deny_files"),
	END,
};
static const struct weir_field control_fields[] = {
	FIELD(weir_policy, control.socket, "socket", PATH),
	FIELD(weir_policy, control.group, "group", GROUP),
	END,
};
static const struct weir_field metrics_fields[] = {
	FIELD(weir_policy, metrics.listen, "listen", LISTEN),
	FIELD(weir_policy, metrics.dashboard, "dashboard", BOOL),
	{ .name = "hosts",
	  .type = WEIR_FIELD_HOSTS,
	  .offset = offsetof(struct weir_policy, metrics.hosts),
	  .size = WEIR_POLICY_TEXT_SIZE,
	  FLAGS(WEIR_FIELD_EMPTY) },
	END,
};

#define ITEMS(member, count, text, item, most, ...)                                                \
	{                                                                                          \
		.name = text, .type = WEIR_FIELD_ITEMS, .size = sizeof(struct item),               \
		.offset = offsetof(struct weir_policy, member), .max = (most),                     \
		.count_offset = offsetof(struct weir_policy, count),                               \
		.line_offset = offsetof(struct item, line), __VA_ARGS__                            \
	}
#define SECTION(text, table)                                                                       \
	{                                                                                          \
		.name = text, .type = WEIR_FIELD_MAP, .fields = table                              \
	}

/* Services come after limits: a governor names one. */
const struct weir_field weir_policy_fields[] = {
	FIELD(weir_policy, version, "version", COUNT, FLAGS(REQUIRED),
	      RANGE(WEIR_POLICY_VERSION, WEIR_POLICY_VERSION)),
	FIELD(weir_policy, mode, "mode", WORD, .words = mode_words),
	SECTION("ledger", ledger_fields),
	FIELD(weir_policy, sample, "sample", EVENTS, .max = 100000),
	ITEMS(interfaces, interface_count, "interfaces", weir_policy_interface,
	      WEIR_POLICY_INTERFACES_MAX, .fields = interface_fields),
	SECTION("lists", list_fields),
	ITEMS(limits, limit_count, "limits", weir_policy_limit, WEIR_POLICY_LIMITS_MAX,
	      .fields = weir_policy_limit_fields),
	ITEMS(services, service_count, "services", weir_policy_service, WEIR_POLICY_SERVICES_MAX,
	      .fields = service_fields, .defaults = &service_defaults),
	SECTION("control", control_fields),
	SECTION("metrics", metrics_fields),
	END,
};

const struct weir_policy weir_policy_defaults = {
	.version = WEIR_POLICY_VERSION,
	.ledger = { .keys = 262144 },
	.sample = { .amount = 100, .per_ns = SEC },
	.control = { .socket = "/run/weir/weir.sock", .group = "weir" },
	.metrics = { .listen = "127.0.0.1:9477", .dashboard = true },
};
