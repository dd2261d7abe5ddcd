// SPDX-License-Identifier: GPL-2.0
/* Texts that YAML could bend come back as they were. */
#include "controller/policy.h"
#include "harness.h"
#include "policy_roundtrip.h"

#include <unistd.h>

static void comes_back(const char *text, const char *what)
{
	struct weir_policy *policy = NULL;
	struct weir_error err = { "" };
	const char *wrong = NULL;

	if (weir_policy_load_text(text, strlen(text), "w.yaml", &policy, &err))
		wrong = "does not load";
	else
		wrong = weir_roundtrip(policy, &err);
	if (wrong)
		printf("  %s: %s: %s\n", what, wrong, err.text);
	CU_ASSERT_PTR_NULL(wrong);
	weir_policy_free(policy);
}

/* Quotes, line separators, C1 controls, what is no character: as a path in double quotes. */
static void odd_paths_print_and_load_back(void)
{
	static const char *const units[] = { "\\\"",	"\\\\",	   "\\N",     "\\L",
					     "\\x81",	"\\uFFFE", "\\uFEFF", "\\U0001F600",
					     "\\u00E9", " ",	   "#",	      ": " };

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		char text[2048];
		int n = snprintf(text, sizeof(text),
				 "version: 1\nservices:\n  - name: s\n"
				 "    match: {proto: udp, to_port: 1}\n    cgroup: \"/");

		for (int j = 0; j < 60; j++)
			n += snprintf(text + n, sizeof(text) - (size_t)n, "%s", units[i]);
		snprintf(text + n, sizeof(text) - (size_t)n, "\"\n");
		comes_back(text, units[i]);
	}
}

static void the_longest_path_prints_and_loads_back(void)
{
	char path[WEIR_POLICY_TEXT_SIZE], text[512];
	int n = snprintf(path, sizeof(path), "/tmp/weir-%d-", (int)getpid());
	FILE *file;

	memset(path + n, '"', sizeof(path) - 1 - (size_t)n);
	path[sizeof(path) - 1] = 0;
	file = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fclose(file);
	snprintf(text, sizeof(text), "version: 1\nlists: {allow_files: '%s'}\n", path);
	comes_back(text, path);
	unlink(path);
}

/* Names that other YAML readers take for something else. */
static void names_that_look_like_values(void)
{
	comes_back("version: 1\ninterfaces: [{name: \"null\"}, {name: 'a,b'}, {name: '#'},\n"
		   " {name: '~'}, {name: '{}'}, {name: \"a'b\"}]\n"
		   "limits:\n  - {name: 1e3, key: none, bucket: {rate: 1pps}}\n"
		   "  - {name: null, key: none, bucket: {rate: 1pps}}\n"
		   "  - {name: true, key: none, bucket: {rate: 1pps}}\n",
		   "names");
}

/* What a governor may move, and how far, and where metrics may listen. */
static void services_of_every_shape(void)
{
	comes_back("version: 1\nmetrics: {listen: '[::1]:9477'}\nlimits:\n"
		   "  - {name: g, key: none, gate: {limit: 50}, match: {proto: tcp}}\n"
		   "  - {name: u, key: none, bucket: {rate: unlimited}}\n"
		   "  - {name: b, key: none, bucket: {rate: 8mbit}}\n"
		   "services:\n"
		   "  - {name: a, match: {proto: tcp, to_port: 1},"
		   " governor: {control: g, floor: 5}}\n"
		   "  - {name: c, match: {proto: tcp, to_port: 2},"
		   " governor: {control: u, floor: 5pps}}\n"
		   "  - {name: d, match: {proto: tcp, to_port: 3}, trust: report,"
		   " governor: {control: b, floor: 1mbit, start: 2mbit, ceiling: 1gbit}}\n",
		   "services");
	comes_back("version: 1\nmetrics: {listen: off}\n", "listen off");
	comes_back("version: 1\nmetrics: {dashboard: false, hosts: [a.example, b]}\n", "hosts");
}

static void json_is_in_base_units(void)
{
	static const char text[] =
		"version: 1\nlists: {deny: '2001:db8::/48'}\nlimits:\n"
		"  - {name: a, key: {source: {v4: 24}}, bucket: {rate: 600/min},\n"
		"     match: {proto: tcp, flags: 'syn,!ack', to_port: [53, 5300-5310]},\n"
		"     ban: {after: 100 refusals in 10s, for: 10m}}\n"
		"  - {name: b, key: none, bucket: {rate: 200mbit}, match: {proto: [99, udp]}}\n"
		"  - {name: c, key: none, bucket: {rate: block}}\n"
		"  - {name: d, key: none, gate: {limit: unlimited}, match: {proto: tcp}}\n"
		"services:\n  - {name: s, match: {proto: tcp, to_port: 1}, breaker: {}}\n";
	static const char *const parts[] = {
		"\"schema\":1",
		"\"deny\":[\"2001:db8::/48\"]",
		"\"bucket\":{\"burst\":10,\"rate\":{\"amount\":600,\"per_ns\":60000000000,"
		"\"unit\":\"packets\"}}",
		"\"rate\":{\"amount\":25000000,\"per_ns\":1000000000,\"unit\":\"bytes\"}",
		"\"rate\":\"block\"",
		"\"limit\":\"unlimited\"",
		"\"key\":{\"kind\":\"source\",\"v4\":24,\"v6\":64}",
		"\"key\":{\"kind\":\"none\"}",
		"\"flags\":[\"syn\",\"!ack\"]",
		"\"proto\":[\"udp\",\"99\"]",
		"\"to_port\":[[53,53],[5300,5310]]",
		"\"ban\":{\"after\":{\"refusals\":100,\"window_ns\":10000000000},"
		"\"for_ns\":600000000000}",
		"\"k\":1.5,",
		"\"ledger\":{\"keys\":262144}",
	};
	struct weir_policy *policy = NULL;
	struct weir_error err = { "" };
	json_t *json;
	char *dump;

	CU_ASSERT_EQUAL_FATAL(weir_policy_load_text(text, strlen(text), "w", &policy, &err), 0);
	json = weir_policy_json(policy);
	dump = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
	CU_ASSERT_PTR_NOT_NULL_FATAL(dump);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (!strstr(dump, parts[i]))
			printf("  no %s in %s\n", parts[i], dump);
		CU_ASSERT_PTR_NOT_NULL(strstr(dump, parts[i]));
	}
	CU_ASSERT_PTR_NULL(strstr(dump, "shedder"));
	free(dump);
	json_decref(json);
	weir_policy_free(policy);
}

WEIR_TESTS("policy_print", TEST(odd_paths_print_and_load_back),
	   TEST(the_longest_path_prints_and_loads_back), TEST(names_that_look_like_values),
	   TEST(services_of_every_shape), TEST(json_is_in_base_units))
