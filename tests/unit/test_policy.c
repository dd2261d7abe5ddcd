// SPDX-License-Identifier: GPL-2.0
#include "controller/policy.h"
#include "harness.h"
#include "policy_roundtrip.h"

#include <errno.h>
#include <unistd.h>

#define SEC 1000000000ULL
#define PARSED(text) parse(text, __LINE__)

static struct weir_policy *parse(const char *text, int line)
{
	struct weir_policy *policy = NULL;
	struct weir_error err = { "" };

	if (weir_policy_load_text(text, strlen(text), "w.yaml", &policy, &err))
		printf("  line %d: %s\n", line, err.text);
	CU_ASSERT_PTR_NOT_NULL_FATAL(policy);
	return policy;
}

/* The example of DESIGN §8, to the letter but for the file of prefixes. */
static const char design[] =
	"version: 1\n"
	"interfaces:\n"
	"  - {name: eth0, mode: auto}      # auto | native | generic\n"
	"lists:\n"
	"  allow: [192.0.2.0/24, \"2001:db8:1::/48\"]    # pass before any limit\n"
	"  deny: [198.51.100.0/24]\n"
	"limits:\n"
	"  - name: per-ip\n"
	"    key: source\n"
	"    bucket: {rate: 1000pps, burst: 2000}\n"
	"  - name: dns\n"
	"    match: {proto: udp, to_port: [53, 5300-5310], from: [0.0.0.0/0], hook: xdp}\n"
	"    key: source\n"
	"    sliding: {quota: 100, window: 1s}\n"
	"    mode: monitor                  # enforce (default) | monitor\n"
	"    untracked: drop\n"
	"  - name: upload\n"
	"    match: {hook: tc-egress}\n"
	"    key: none\n"
	"    bucket: {rate: 200mbit, burst: 1mbyte}\n"
	"  - name: daily\n"
	"    match: {proto: udp, to_port: 123}\n"
	"    key: {source: {v4: 24}}\n"
	"    period: {quota: 10000, period: 1d, align: true}\n"
	"  - name: conns\n"
	"    match: {proto: tcp, to_port: 443}\n"
	"    key: source\n"
	"    gate: {limit: 50}              # concurrent connections\n"
	"  - name: web-rate\n"
	"    key: destination\n"
	"    bucket: {rate: 500pps}\n"
	"    ban: {after: 100 refusals in 10s, for: 10m}\n"
	"services:\n"
	"  - name: web\n"
	"    match: {proto: tcp, to_port: 8080}\n"
	"    deadline: 2s\n"
	"    breaker: {}\n"
	"    shedder: {cpu: 850}\n"
	"    governor: {control: web-rate, start: 50pps, floor: 10pps, high: 5%, low: 1%, "
	"window: 2s}\n"
	"control: {socket: /run/weir/weir.sock, group: weir}\n"
	"metrics: {listen: 127.0.0.1:9477}\n";

static void check_design_limits(const struct weir_policy *policy)
{
	const struct weir_policy_limit *l = policy->limits;

	CU_ASSERT_EQUAL_FATAL(policy->limit_count, 6);
	CU_ASSERT_STRING_EQUAL(l[0].name, "per-ip");
	CU_ASSERT_EQUAL(l[0].line, 8);
	CU_ASSERT_TRUE(l[0].kind == WEIR_POLICY_BUCKET && l[0].bucket.given);
	CU_ASSERT_TRUE(l[0].bucket.rate.amount == 1000 && l[0].bucket.rate.per_ns == SEC);
	CU_ASSERT_TRUE(l[0].bucket.burst.value == 2000 && !l[0].bucket.burst.bytes);
	CU_ASSERT_TRUE(l[0].key.kind == WEIR_POLICY_KEY_SOURCE && l[0].key.v4_length == 32 &&
		       l[0].key.v6_length == 64);
	CU_ASSERT_TRUE(l[0].mode == WEIR_POLICY_ENFORCE && l[0].untracked == WEIR_POLICY_PASS);
	CU_ASSERT_TRUE(l[1].kind == WEIR_POLICY_SLIDING && l[1].sliding.quota == 100);
	CU_ASSERT_EQUAL(l[1].sliding.window_ns, SEC);
	CU_ASSERT_TRUE(l[1].mode == WEIR_POLICY_MONITOR && l[1].untracked == WEIR_POLICY_DROP);
	CU_ASSERT_EQUAL_FATAL(l[1].match.to_ports.count, 2);
	CU_ASSERT_TRUE(l[1].match.to_ports.items[0].low == 53 &&
		       l[1].match.to_ports.items[0].high == 53);
	CU_ASSERT_TRUE(l[1].match.to_ports.items[1].low == 5300 &&
		       l[1].match.to_ports.items[1].high == 5310);
	CU_ASSERT_TRUE(weir_bits256_has(&l[1].match.protocols, 17));
	CU_ASSERT_FALSE(weir_bits256_has(&l[1].match.protocols, 6));
	CU_ASSERT_TRUE(l[1].match.from.count == 1 && l[1].match.from.items[0].length == 0);
	CU_ASSERT_TRUE(l[2].match.hook == WEIR_POLICY_TC_EGRESS && l[2].bucket.rate.bytes);
	CU_ASSERT_TRUE(l[2].bucket.rate.amount == 25000000 && l[2].bucket.burst.value == 1000000);
	CU_ASSERT_TRUE(l[2].key.kind == WEIR_POLICY_KEY_NONE && !l[2].key.v4_length);
	CU_ASSERT_TRUE(l[3].kind == WEIR_POLICY_PERIOD && l[3].period.align);
	CU_ASSERT_TRUE(l[3].period.quota == 10000 && l[3].period.period_ns == 86400 * SEC);
	CU_ASSERT_TRUE(l[3].key.v4_length == 24 && l[3].key.v6_length == 64);
	CU_ASSERT_TRUE(l[4].kind == WEIR_POLICY_GATE && l[4].gate.limit == 50);
	CU_ASSERT_TRUE(l[5].ban.after_count == 100 && l[5].ban.after_ns == 10 * SEC &&
		       l[5].ban.for_ns == 600 * SEC);
}

static void the_design_example_is_understood(void)
{
	struct weir_policy *policy = PARSED(design);
	const struct weir_policy_service *s = policy->services;

	check_design_limits(policy);
	CU_ASSERT_EQUAL(policy->interface_count, 1);
	CU_ASSERT_STRING_EQUAL(policy->interfaces[0].name, "eth0");
	CU_ASSERT_TRUE(policy->lists.allow.prefixes.count == 2 && policy->lists.allow.own == 2);
	CU_ASSERT_EQUAL(policy->lists.deny.prefixes.count, 1);
	CU_ASSERT_EQUAL_FATAL(policy->service_count, 1);
	CU_ASSERT_PTR_EQUAL(weir_policy_find_service(policy, "web"), s);
	CU_ASSERT_PTR_NULL(weir_policy_find_service(policy, "per-ip"));
	CU_ASSERT_PTR_EQUAL(weir_policy_find_limit(policy, "conns"), &policy->limits[4]);
	CU_ASSERT_PTR_NULL(weir_policy_find_limit(policy, "conn"));
	CU_ASSERT_TRUE(s->deadline_ns == 2 * SEC && s->trust == WEIR_POLICY_TRUST_KERNEL);
	/* The presets of the seeds, but for the one knob that was turned. */
	CU_ASSERT_TRUE(s->breaker.given && s->breaker.k == 1500000 && s->breaker.floor == 1100000 &&
		       s->breaker.protection == 5000000 && s->breaker.probe_ns == SEC &&
		       s->breaker.size == 40 && s->breaker.window_ns == 10 * SEC);
	CU_ASSERT_TRUE(s->shedder.given && s->shedder.cpu == 850 && s->shedder.size == 50 &&
		       s->shedder.window_ns == 5 * SEC && s->shedder.latency_ns == SEC &&
		       s->shedder.beta == 900000 && s->shedder.cool_ns == SEC &&
		       s->shedder.floor == 100000);
	CU_ASSERT_TRUE(s->governor.given && s->governor.high == 50000 && s->governor.low == 10000 &&
		       s->governor.floor.amount == 10 && s->governor.start.amount == 50 &&
		       s->governor.ceiling.amount == 500);
	CU_ASSERT_STRING_EQUAL(policy->metrics.listen, "127.0.0.1:9477");
	weir_policy_free(policy);
}

static void what_is_left_out_has_its_default(void)
{
	struct weir_policy *policy = PARSED("version: 1\n");

	CU_ASSERT_EQUAL(policy->ledger.keys, 262144);
	CU_ASSERT_TRUE(policy->sample.amount == 100 && policy->sample.per_ns == SEC);
	CU_ASSERT_EQUAL(policy->mode, WEIR_POLICY_ENFORCE);
	CU_ASSERT_TRUE(!policy->interface_count && !policy->limit_count && !policy->service_count);
	CU_ASSERT_STRING_EQUAL(policy->control.socket, "/run/weir/weir.sock");
	CU_ASSERT_STRING_EQUAL(policy->control.group, "weir");
	CU_ASSERT_STRING_EQUAL(policy->metrics.listen, "127.0.0.1:9477");
	CU_ASSERT_TRUE(policy->metrics.dashboard && !policy->metrics.hosts.count);
	weir_policy_free(policy);
	weir_policy_free(NULL);
}

static void ledger_keys_round_up_to_a_power_of_two(void)
{
	static const struct {
		const char *text;
		uint64_t keys;
	} rows[] = { { "version: 1\nledger: {keys: 1024}\n", 1024 },
		     { "version: 1\nledger: {keys: 1025}\n", 2048 },
		     { "version: 1\nledger: {keys: 256k}\n", 262144 },
		     { "version: 1\nledger: {keys: 16M}\n", 16777216 } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct weir_policy *policy = PARSED(rows[i].text);

		CU_ASSERT_EQUAL(policy->ledger.keys, rows[i].keys);
		weir_policy_free(policy);
	}
}

/* D17: a rate below one a second still lets one packet through. */
static void a_default_burst_is_a_second_of_the_rate_D17(void)
{
	static const struct {
		const char *bucket;
		uint64_t burst;
		bool bytes;
	} rows[] = {
		{ "{rate: 1000pps}", 1000, false },
		{ "{rate: 1/d}", 1, false },
		{ "{rate: 59/min}", 1, false },
		{ "{rate: 121/min}", 2, false },
		{ "{rate: 200mbit}", 25000000, true },
		{ "{rate: 1bit}", 65536, true },
		{ "{rate: 8kbit}", 65536, true },
		{ "{rate: block}", 1, false },
		{ "{rate: unlimited}", 1, false },
		{ "{rate: block, burst: 1mbyte}", 1000000, true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct weir_error err = { "" };
		struct weir_policy *policy;
		char text[160];

		snprintf(text, sizeof(text),
			 "version: 1\nlimits: [{name: x, key: none, bucket: %s}]", rows[i].bucket);
		policy = PARSED(text);
		CU_ASSERT_EQUAL(policy->limits[0].bucket.burst.value, rows[i].burst);
		CU_ASSERT_EQUAL(policy->limits[0].bucket.burst.bytes, rows[i].bytes);
		CU_ASSERT_EQUAL(policy->limits[0].bucket.rate.bytes, rows[i].bytes);
		CU_ASSERT_PTR_NULL(weir_roundtrip(policy, &err));
		weir_policy_free(policy);
	}
}

static void one_value_is_a_list_of_one(void)
{
	static const char one[] =
		"version: 1\ninterfaces: [{name: a}]\nlists: {allow: 192.0.2.1}\n"
		"limits: [{name: x, key: none, bucket: {rate: 1pps}, match: {proto: 6, to_port: 53,"
		" from_port: 1-2, from: 10.0.0.0/8, to: '::/0', vlan: 7, interfaces: a,"
		" flags: 'syn,!ack'}}]\n";
	static const char many[] =
		"version: 1\ninterfaces: [{name: a}]\nlists: {allow: [192.0.2.1/32]}\n"
		"limits: [{name: x, key: none, bucket: {rate: 1/s}, match: {proto: [tcp],"
		" to_port: [53-53], from_port: [1-2], from: [10.0.0.0/8], to: ['::/0'], vlan: [7],"
		" interfaces: [a], flags: ['!ack', syn]}}]\n";
	struct weir_policy *a = PARSED(one), *b = PARSED(many);

	CU_ASSERT_TRUE(weir_policy_equal(a, b));
	CU_ASSERT_EQUAL(a->limits[0].match.flags_mask, 0x12);
	CU_ASSERT_EQUAL(a->limits[0].match.flags_value, 0x02);
	CU_ASSERT_EQUAL(b->limits[0].match.vlans.items[0].high, 7);
	weir_policy_free(a);
	weir_policy_free(b);
}

/* As Notepad saves it. */
static void a_byte_order_mark_and_crlf_change_nothing(void)
{
	struct weir_policy *policy =
		PARSED("\xef\xbb\xbfversion: 1\r\nmode: monitor\r\nlimits:\r\n"
		       "  - name: x\r\n    key: none\r\n    bucket: {rate: 1pps}\r\n");

	CU_ASSERT_EQUAL(policy->mode, WEIR_POLICY_MONITOR);
	CU_ASSERT_EQUAL(policy->limits[0].line, 4);
	weir_policy_free(policy);
}

static void a_policy_prints_and_loads_back(void)
{
	struct weir_policy *policy = PARSED(design);
	struct weir_error err = { "" };
	const char *wrong = weir_roundtrip(policy, &err);
	char *text = weir_roundtrip_print(policy);

	if (wrong)
		printf("  %s: %s\n", wrong, err.text);
	CU_ASSERT_PTR_NULL(wrong);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "    bucket:\n      rate: 500pps\n"
					    "      # burst: 500 by default\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "      to_port: [53, 5300-5310]\n"));
	free(text);
	weir_policy_free(policy);
}

/* Every single change of the design's example is seen by equal. */
static void equal_sees_every_difference(void)
{
	static const char *const changes[][2] = {
		{ "mode: auto", "mode: native" },
		{ "eth0", "eth1" },
		{ "192.0.2.0/24", "192.0.2.0/25" },
		{ "1:9477", "1:9478" },
		{ "1000pps", "1001pps" },
		{ "burst: 2000", "burst: 2001" },
		{ "udp", "tcp" },
		{ "5310", "5311" },
		{ "0.0.0.0/0", "0.0.0.0/1" },
		{ "quota: 100,", "quota: 101," },
		{ "window: 1s", "window: 2s" },
		{ "mode: monitor", "mode: enforce" },
		{ "untracked: drop", "untracked: pass" },
		{ "hook: tc-egress", "hook: tc-ingress" },
		{ "key: none", "key: flow" },
		{ "v4: 24", "v4: 25" },
		{ "align: true", "align: false" },
		{ "limit: 50", "limit: 51" },
		{ "limit: 50", "limit: unlimited" },
		{ "100 refusals", "101 refusals" },
		{ "in 10s", "in 11s" },
		{ "for: 10m", "for: 11m" },
		{ "deadline: 2s", "deadline: 3s" },
		{ "breaker: {}", "breaker: {k: 1.6}" },
		{ "cpu: 850", "cpu: 851" },
		{ "start: 50pps", "start: 51pps" },
		{ "high: 5%", "high: 6%" },
		{ "weir.sock", "weir.sok" },
		{ "group: weir", "group: wheel" },
		{ "    breaker: {}\n", "" },
		{ "name: dns", "name: dnt" },
		{ "period: 1d", "period: 2d" },
	};
	struct weir_policy *policy = PARSED(design);

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		const char *at = strstr(design, changes[i][0]);
		struct weir_policy *other;
		char text[sizeof(design) + 32];

		CU_ASSERT_PTR_NOT_NULL_FATAL(at);
		snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - design), design, changes[i][1],
			 at + strlen(changes[i][0]));
		other = PARSED(text);
		if (weir_policy_equal(policy, other))
			printf("  '%s' and '%s' are alike\n", changes[i][0], changes[i][1]);
		CU_ASSERT_FALSE(weir_policy_equal(policy, other));
		weir_policy_free(other);
	}
	CU_ASSERT_TRUE(weir_policy_equal(policy, policy));
	CU_ASSERT_TRUE(weir_policy_limit_equal(&policy->limits[0], &policy->limits[0]));
	CU_ASSERT_FALSE(weir_policy_limit_equal(&policy->limits[0], &policy->limits[5]));
	weir_policy_free(policy);
}

/* U16: every entry of a long list arrives, from the file itself and from the files it names. */
static void long_lists_arrive_whole_U16(void)
{
	enum { LINES = 100000 };
	struct weir_policy *policy = NULL;
	struct weir_error err = { "" };
	char list[64], config[64];
	FILE *file;

	snprintf(list, sizeof(list), "/tmp/weir-list-%d", (int)getpid());
	snprintf(config, sizeof(config), "/tmp/weir-config-%d", (int)getpid());
	file = fopen(list, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	for (int i = 0; i < LINES; i++)
		fprintf(file, "10.%d.%d.%d\n", i >> 16, i >> 8 & 255, i & 255);
	fclose(file);
	file = fopen(config, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fprintf(file, "version: 1\nlists:\n  deny_files: %s\n  deny:\n", list);
	for (int i = 0; i < LINES; i++)
		fprintf(file, "    - 11.%d.%d.%d\n", i >> 16, i >> 8 & 255, i & 255);
	fclose(file);
	CU_ASSERT_EQUAL_FATAL(weir_policy_load_file(config, &policy, &err), 0);
	CU_ASSERT_EQUAL(policy->lists.deny.own, LINES);
	CU_ASSERT_EQUAL(policy->lists.deny.prefixes.count, 2 * LINES);
	CU_ASSERT_EQUAL(policy->lists.deny.prefixes.items[2 * LINES - 1].address[0], 10);
	CU_ASSERT_PTR_NULL(weir_roundtrip(policy, &err));
	weir_policy_free(policy);
	unlink(list);
	unlink(config);
}

static void what_is_not_built_is_refused_by_name(void)
{
	static const struct {
		enum weir_feature missing;
		const char *says;
	} rows[] = {
		{ WEIR_FEATURE_LISTS, "w.yaml:4: field 'lists' is not built yet: remove it" },
		{ WEIR_FEATURE_MANY_LIMITS, "w.yaml:7: field 'limits with more than one item'" },
		{ WEIR_FEATURE_BUCKET, "w.yaml:8: limit 'per-ip': field 'bucket' is not" },
		{ WEIR_FEATURE_KEY_SOURCE, "w.yaml:8: limit 'per-ip': field 'key: source'" },
		{ WEIR_FEATURE_SLIDING, "w.yaml:11: limit 'dns': field 'sliding'" },
		{ WEIR_FEATURE_MATCH_PROTO, "w.yaml:11: limit 'dns': field 'match.proto'" },
		{ WEIR_FEATURE_MATCH_TO_PORT, "limit 'dns': field 'match.to_port'" },
		{ WEIR_FEATURE_MATCH_FROM, "limit 'dns': field 'match.from'" },
		{ WEIR_FEATURE_MONITOR, "limit 'dns': field 'mode: monitor'" },
		{ WEIR_FEATURE_BYTES, "limit 'upload': field 'bucket.rate in bytes'" },
		{ WEIR_FEATURE_HOOK_TC_EGRESS, "limit 'upload': field 'match.hook: tc-egress'" },
		{ WEIR_FEATURE_KEY_NONE, "limit 'upload': field 'key: none'" },
		{ WEIR_FEATURE_PERIOD, "limit 'daily': field 'period'" },
		{ WEIR_FEATURE_PERIOD_ALIGN, "limit 'daily': field 'period.align'" },
		{ WEIR_FEATURE_GATE, "limit 'conns': field 'gate'" },
		{ WEIR_FEATURE_BAN, "limit 'web-rate': field 'ban'" },
		{ WEIR_FEATURE_KEY_DESTINATION, "limit 'web-rate': field 'key: destination'" },
		{ WEIR_FEATURE_SERVICES, "service 'web': field 'services'" },
		{ WEIR_FEATURE_BREAKER, "service 'web': field 'breaker'" },
		{ WEIR_FEATURE_SHEDDER, "service 'web': field 'shedder'" },
		{ WEIR_FEATURE_GOVERNOR, "service 'web': field 'governor'" },
	};
	struct weir_policy *policy = PARSED(design);
	struct weir_error err = { "" };

	CU_ASSERT_EQUAL(weir_policy_check_features(policy, WEIR_FEATURE_ALL, &err), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t mask = WEIR_FEATURE_ALL & ~WEIR_FEATURE_BIT(rows[i].missing);

		CU_ASSERT_EQUAL(weir_policy_check_features(policy, mask, &err), -EOPNOTSUPP);
		if (!strstr(err.text, rows[i].says))
			printf("  wanted %s: %s\n", rows[i].says, err.text);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, rows[i].says));
	}
	weir_policy_free(policy);
}

static void other_features_are_told_apart(void)
{
	static const struct {
		enum weir_feature feature;
		const char *rest;
	} rows[] = {
		{ WEIR_FEATURE_KEY_SOURCE_PORT, "key: source+port, bucket: {rate: 1pps}" },
		{ WEIR_FEATURE_KEY_FLOW, "key: flow, bucket: {rate: 1pps}" },
		{ WEIR_FEATURE_MATCH_FROM_PORT,
		  "key: none, bucket: {rate: 1pps}, match: {from_port: 1}" },
		{ WEIR_FEATURE_MATCH_TO, "key: none, bucket: {rate: 1pps}, match: {to: 1.2.3.4}" },
		{ WEIR_FEATURE_MATCH_VLAN, "key: none, bucket: {rate: 1pps}, match: {vlan: 0}" },
		{ WEIR_FEATURE_MATCH_FLAGS,
		  "key: none, bucket: {rate: 1pps}, match: {proto: tcp, flags: '!syn'}" },
		{ WEIR_FEATURE_MATCH_ICMP,
		  "key: none, bucket: {rate: 1pps}, match: {proto: icmp, icmp: 0}" },
		{ WEIR_FEATURE_MATCH_INTERFACE,
		  "key: none, bucket: {rate: 1pps}, match: {interfaces: a}" },
		{ WEIR_FEATURE_HOOK_TC_INGRESS,
		  "key: none, bucket: {rate: 1pps}, match: {hook: tc-ingress}" },
		{ WEIR_FEATURE_GATE_RESET,
		  "key: none, gate: {limit: 1, refuse: reset}, match: {proto: tcp}" },
	};
	struct weir_error err = { "" };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t mask = WEIR_FEATURE_ALL & ~WEIR_FEATURE_BIT(rows[i].feature);
		struct weir_policy *policy;
		char text[256];

		snprintf(text, sizeof(text),
			 "version: 1\ninterfaces: [{name: a}]\nlimits: [{name: x, %s}]",
			 rows[i].rest);
		policy = PARSED(text);
		CU_ASSERT_EQUAL(weir_policy_check_features(policy, WEIR_FEATURE_ALL, &err), 0);
		CU_ASSERT_EQUAL(weir_policy_check_features(policy, mask, &err), -EOPNOTSUPP);
		CU_ASSERT_PTR_NULL(weir_roundtrip(policy, &err));
		weir_policy_free(policy);
	}
}

static void the_shipped_files_load(void)
{
	static const char *const paths[] = { "packaging/weir.yaml", "packaging/examples/dns.yaml",
					     "packaging/examples/ntp.yaml",
					     "packaging/examples/web.yaml" };

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct weir_policy *policy = NULL;
		struct weir_error err = { "" };

		if (weir_policy_load_file(paths[i], &policy, &err))
			printf("  %s\n", err.text);
		CU_ASSERT_PTR_NOT_NULL_FATAL(policy);
		CU_ASSERT_PTR_NULL(weir_roundtrip(policy, &err));
		weir_policy_free(policy);
	}
}

static void every_enum_has_its_word(void)
{
	CU_ASSERT_STRING_EQUAL(weir_policy_hook_name(WEIR_POLICY_TC_INGRESS), "tc-ingress");
	CU_ASSERT_STRING_EQUAL(weir_policy_kind_name(WEIR_POLICY_GATE), "gate");
	CU_ASSERT_STRING_EQUAL(weir_policy_key_name(WEIR_POLICY_KEY_SOURCE_PORT), "source+port");
	CU_ASSERT_STRING_EQUAL(weir_policy_mode_name(WEIR_POLICY_MONITOR), "monitor");
}

WEIR_TESTS("policy", TEST(the_design_example_is_understood), TEST(what_is_left_out_has_its_default),
	   TEST(ledger_keys_round_up_to_a_power_of_two),
	   TEST(a_default_burst_is_a_second_of_the_rate_D17), TEST(one_value_is_a_list_of_one),
	   TEST(a_byte_order_mark_and_crlf_change_nothing),
	   TEST(a_policy_prints_and_loads_back), TEST(equal_sees_every_difference),
	   TEST(long_lists_arrive_whole_U16), TEST(what_is_not_built_is_refused_by_name),
	   TEST(other_features_are_told_apart), TEST(the_shipped_files_load),
	   TEST(every_enum_has_its_word))
