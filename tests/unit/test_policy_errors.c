// SPDX-License-Identifier: GPL-2.0
/* What is refused, and in which words: U12, U13 (a bad value never becomes a default), U15 (no
 * crash on the way out), D18 (zero and its kin). Each row is a whole file. */
#include "controller/policy.h"
#include "harness.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define V "version: 1\n"
#define LIMIT(body) V "limits:\n  - name: x\n    key: source\n" body
#define BUCKET "    bucket: {rate: 10pps}\n"
#define MATCH(body) LIMIT(BUCKET "    match: {" body "}\n")
#define SERVICE(body)                                                                              \
	MATCH("proto: tcp") "services:\n  - name: s\n    match: {proto: tcp, to_port: 80}\n" body

struct row {
	const char *text;
	const char *says;
};

static void expect(bool ok, const char *text, const char *why)
{
	if (!ok)
		printf("---\n%s---\n  %s\n", text, why);
	CU_ASSERT_TRUE(ok);
}

static void check_rows(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct weir_policy *policy = NULL;
		struct weir_error err = { "" };
		int rc = weir_policy_load_text(rows[i].text, strlen(rows[i].text), "w.yaml",
					       &policy, &err);

		expect(rc < 0 && !policy, rows[i].text, "was accepted");
		expect(strstr(err.text, rows[i].says), rows[i].text, err.text);
		weir_policy_free(policy);
	}
}

#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof(rows[0]))

static void the_yaml_itself(void)
{
	static const struct row rows[] = {
		{ "", "w.yaml:1: the file is empty: it must at least say 'version: 1'" },
		{ "# nothing\n", "w.yaml:1: the file is empty" },
		{ "version\n", "w.yaml:1: a mapping belongs here, such as version: VALUE" },
		{ "- 1\n", "w.yaml:1: a mapping belongs here" },
		{ "mode: enforce\n", "w.yaml:1: field 'version': is missing: add it" },
		{ "version:\n", "w.yaml:1: field 'version': 'version' has no value" },
		{ "version: 2\n", "w.yaml:1: field 'version': '2' is not known: write 1" },
		{ "version: 0\n", "field 'version': '0' is not known: write 1" },
		{ "version: 1.0\n", "field 'version': '1.0' is not known: write 1" },
		{ V "limit: []\n", "w.yaml:2: 'limit' is not known here: write one of version," },
		{ V V, "w.yaml:2: 'version' is there twice (first on line 1): keep one" },
		{ LIMIT(BUCKET BUCKET), "w.yaml:6: 'bucket' is there twice (first on line 5)" },
		{ V "a: &a [1]\nb: *a\n", "w.yaml:2: '&a': anchors are not used here" },
		{ V "b: *a\n", "w.yaml:2: aliases are not used here" },
		{ V "<<: *a\n", "w.yaml:2: aliases are not used here" },
		{ V "mode: !!str monitor\n", "': tags are not used here" },
		{ V "? [a]\n: b\n", "w.yaml:2: a key must be a word" },
		{ V "---\nversion: 1\n", "w.yaml:2: a second document" },
		{ V "mode: \"moni\\0tor\"\n", "w.yaml:2: 'moni' is followed by a NUL" },
		{ V "limits: [\n", "w.yaml:3: not valid YAML: while parsing a flow node" },
		{ V "limits: {a: \"b\n", "not valid YAML" },
		{ V "\tmode: monitor\n", "not valid YAML" },
		{ V "mode: \x01\n", "not YAML in UTF-8: control characters are not allowed" },
		{ V "mode: \xff\n", "not YAML in UTF-8" },
		{ V "x: [[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]\n", "w.yaml:2: nested more than 12 deep" },
	};

	CHECK_ROWS(rows);
}

static void the_top_level(void)
{
	static const struct row rows[] = {
		{ V "mode: off\n",
		  "w.yaml:2: field 'mode': 'off' is not known: write one of enforce, "
		  "monitor" },
		{ V "mode: [monitor]\n", "w.yaml:2: field 'mode': a list where one value belongs" },
		{ V "mode: {a: b}\n", "field 'mode': a mapping where one value belongs" },
		{ V "limits:\n", "w.yaml:2: field 'limits': 'limits' has no value: write one" },
		{ V "limits: x\n", "w.yaml:2: field 'limits': a list belongs here" },
		{ V "limits: {name: x}\n", "field 'limits': a list belongs here" },
		{ V "limits: [x]\n", "w.yaml:2: field 'limits[1]': a mapping belongs here" },
		{ V "ledger: {keys: 1023}\n", "field 'ledger.keys': '1023' is out of range: write "
					      "1024 to 16777216" },
		{ V "ledger: {keys: 17M}\n", "field 'ledger.keys': '17M' is out of range" },
		{ V "sample: 0\n", "field 'sample': '0' is zero" },
		{ V "sample: 100\n", "field 'sample': '100' has no unit" },
		{ V "sample: 1Mpps\n", "write less than 100000pps" },
		{ V "sample: 1mbit\n", "field 'sample': '1mbit' is out of range" },
		{ V "sample: unlimited\n", "field 'sample': 'unlimited' is out of range" },
		{ V "interfaces: [{name: eth0}, {name: eth1}, {name: eth0}]\n",
		  "w.yaml:2: interface 'eth0' is there twice" },
		{ V "interfaces: [{mode: auto}]\n", "field 'interfaces[1].name': is missing" },
		{ V "interfaces: [{name: sixteen-letters-}]\n",
		  "is too long: at most 15 characters" },
		{ V "interfaces: [{name: a/b}]\n",
		  "'a/b' can't be used: write the name of a network "
		  "interface" },
		{ V "interfaces: [{name: \"eth0:1\"}]\n",
		  "'eth0:1' can't be used: write the name of a network interface" },
		{ V "limits: [{name: a, key: none, bucket: {rate: 1byte/d}}]\n",
		  "field 'bucket.rate': '8bit/d' is too slow, so that a frame would take more "
		  "than 2 years: write at least 2byte/d" },
		{ V "interfaces: [{name: \"\"}]\n",
		  "field 'interfaces[1].name': '' can't be used" },
		{ V "interfaces: [{name: eth0, mode: skb}]\n",
		  "field 'interfaces[eth0].mode': 'skb' is not known: write one of auto, native" },
		/* U12: a bad address in a list refuses the file. */
		{ V "lists:\n  allow:\n    - 192.0.2.1\n    - 2001:db8:::1\n",
		  "w.yaml:5: field 'lists.allow': '2001:db8:::1' is not an address or prefix" },
		{ V "lists: {deny: 192.0.2.1/24}\n",
		  "w.yaml:2: field 'lists.deny': '192.0.2.1/24' has bits set behind its length" },
		{ V "lists: {deny: 192.0.2.0/33}\n",
		  "field 'lists.deny': '192.0.2.0/33' has the prefix" },
		{ V "lists: {deny: [[192.0.2.0/24]]}\n",
		  "field 'lists.deny': a list where one value" },
		{ V "lists: {deny_files: deny.txt}\n",
		  "'deny.txt' can't be used: write an absolute" },
		{ V "lists:\n  deny_files:\n    - /nonexistent/deny\n",
		  "w.yaml:4: field 'lists.deny_files': /nonexistent/deny: can't be opened: No "
		  "such" },
		{ V "control: {socket: run/x}\n", "field 'control.socket': 'run/x' can't be used" },
		{ V "control: {group: Weir}\n", "'Weir' can't be used: write the name of a group" },
		{ V "control: {mode: 0600}\n",
		  "field 'control': 'mode' is not known here: write one "
		  "of socket, group" },
		{ V "metrics: {listen: 9477}\n", "'9477' is not an address and port: write" },
		{ V "metrics: {listen: 127.0.0.1:0}\n", "is not an address and port" },
		{ V "metrics: {listen: 127.0.0.1:65536}\n", "is not an address and port" },
		{ V "metrics: {listen: localhost:9477}\n", "is not an address and port" },
		{ V "metrics: {listen: \"::1:9477x\"}\n", "is not an address and port" },
		{ V "metrics: {hosts: [a, A]}\n", "'A' can't be used: write the name of" },
		{ V "metrics: {hosts: [\"a:80\"]}\n", "'a:80' can't be used: write the name of" },
		{ V "metrics: {hosts: [a, a]}\n", "'a' is there twice" },
		{ V "metrics: {hosts: [\"\"]}\n", "'' can't be used: write the name of" },
		{ V "metrics: {dashboard: off}\n", "'off' is not known: write true or false" },
	};

	CHECK_ROWS(rows);
}

static void the_limits(void)
{
	static const struct row rows[] = {
		{ V "limits:\n  - key: source\n" BUCKET,
		  "w.yaml:3: field 'limits[1].name': is miss" },
		{ V "limits:\n  - name: x\n" BUCKET,
		  "w.yaml:3: field 'limits[x].key': is missing" },
		{ LIMIT(""),
		  "w.yaml:3: limit 'x': has none of bucket, sliding, period, gate: write "
		  "exactly one" },
		{ LIMIT(BUCKET "    sliding: {quota: 1, window: 1s}\n"), "has more than one of" },
		{ LIMIT(BUCKET) "  - name: x\n    key: none\n" BUCKET,
		  "w.yaml:6: limit 'x': the name is there twice (first on line 3)" },
		{ V "limits:\n  - name: limits\n    key: none\n" BUCKET, "is a word of weir show" },
		{ V "limits:\n  - name: Per-IP\n    key: none\n" BUCKET,
		  "w.yaml:3: field 'limits[Per-IP].name': 'Per-IP' can't be used: write a-z, 0-9" },
		{ V "limits:\n  - name: -x\n    key: none\n" BUCKET, "'-x' can't be used" },
		{ V "limits:\n  - name: a2345678901234567890123456789012\n    key: none\n" BUCKET,
		  "is too long: at most 31 characters" },
		{ LIMIT("    bucket: {burst: 5}\n"), "field 'limits[x].bucket.rate': is missing" },
		{ LIMIT("    bucket: 10pps\n"),
		  "field 'limits[x].bucket': a mapping belongs here" },
		{ LIMIT("    bucket: {rate: 10bps}\n"),
		  "w.yaml:5: field 'limits[x].bucket.rate': '10bps': bps means bits to some" },
		{ LIMIT("    bucket: {rate: 0pps}\n"), "'0pps' is zero" },
		{ LIMIT("    bucket: {rate: -1mbit}\n"), "'-1mbit' is negative" },
		{ LIMIT("    bucket: {rate: 1e3}\n"), "'1e3' has an unknown unit" },
		{ LIMIT("    bucket: {rate: 10/0s}\n"), "'10/0s' has an unknown unit" },
		{ LIMIT("    bucket: {rate: ''}\n"), "'' is empty" },
		{ LIMIT("    bucket: {rate: 10pps, burst: 0}\n"), "'0' is zero" },
		{ LIMIT("    bucket: {rate: 10pps, burts: 1}\n"),
		  "field 'limits[x].bucket': 'burts' is not known here: write one of rate, burst" },
		{ LIMIT("    bucket: {rate: 10pps, burst: 1mbyte}\n"),
		  "w.yaml:3: limit 'x': field 'bucket.burst': '1mbyte' is in bytes but the rate "
		  "'10pps' in packets: write a number such as 2000" },
		{ LIMIT("    bucket: {rate: 10mbit, burst: 2000}\n"),
		  "write a size such as 1mbyte" },
		{ LIMIT("    bucket: {rate: 10mbit, burst: 1521byte}\n"), "smaller than a frame" },
		{ LIMIT("    bucket: {rate: 10mbit, burst: 8mbit}\n"), "is in bits: write bytes" },
		{ LIMIT("    bucket: {rate: 1/d, burst: 834}\n"),
		  "'834' is too large: write at most 833, which is 2 years of '1/d'" },
		{ LIMIT("    sliding: {quota: 4097, window: 1s}\n"), "write 1 to 4096" },
		{ LIMIT("    sliding: {quota: 1}\n"),
		  "field 'limits[x].sliding.window': is missing" },
		{ LIMIT("    sliding: {quota: 1, window: 1}\n"),
		  "'1' has no unit: write a time such as 500ns, 10us, 100ms, 1s, 5m, 2h or 1d, "
		  "from 1us to 30d" },
		{ LIMIT("    sliding: {quota: 0, window: 1s}\n"), "2k, 3M or 1G, from 1 to 4096" },
		{ "version: x\n", "w.yaml:1: field 'version': 'x' is not known: write 1" },
		{ SERVICE("    shedder: {beta: x}\n"), "write 1.5 or 0.1, from 0 to 0.999999" },
		{ LIMIT("    sliding: {quota: 1, window: 31d}\n"),
		  "out of range: write 1us to 30d" },
		{ LIMIT("    period: {quota: 1, period: 1d, align: yes}\n"),
		  "write true or false" },
		{ LIMIT("    gate: {limit: 0}\n"),
		  "'0' is not a limit: write 1 to 2147483647, unl" },
		{ LIMIT("    gate: {limit: 5}\n"),
		  "counts TCP connections: write match: {proto: tcp}" },
		{ V "limits:\n  - {name: x, key: flow, match: {proto: tcp}, gate: {limit: 5}}\n",
		  "field 'key': 'flow' is one connection" },
		{ LIMIT("    gate: {limit: 5, refuse: rst}\n"), "write one of drop, reset" },
		{ LIMIT("    gate: {limit: 5}\n    match: {proto: tcp, hook: tc-egress}\n"),
		  "counts connections that come in" },
		{ LIMIT(BUCKET "    mode: dry\n"), "write one of enforce, monitor" },
		{ LIMIT(BUCKET "    untracked: refuse\n"), "write one of pass, drop" },
		{ LIMIT(BUCKET "    ban: {for: 10m}\n"),
		  "field 'limits[x].ban.after': is missing" },
		{ LIMIT(BUCKET "    ban: {after: 100 in 10s, for: 10m}\n"),
		  "'100 in 10s' is not known: write 100 refusals in 10s" },
		{ LIMIT(BUCKET "    ban: {after: 0 refusals in 10s, for: 10m}\n"), "'0' is zero" },
		{ LIMIT(BUCKET "    ban: {after: 1 refusals in 2d, for: 10m}\n"), "1ms to 1d" },
		{ LIMIT(BUCKET "    ban: {after: 1 refusals in 1s, for: 1ms}\n"),
		  "write 1s to 366d" },
	};

	CHECK_ROWS(rows);
}

static void the_keys(void)
{
	static const struct row rows[] = {
		{ V "limits:\n  - name: x\n    key: src\n" BUCKET,
		  "w.yaml:4: field 'limits[x].key': 'src' is not known: write one of source, "
		  "destination, source+port, flow, none" },
		{ V "limits:\n\t- {name: x}\n",
		  "found character that cannot start any token (a tab? indent by spaces)" },
		{ V "limits:\n  - name: x\n    key: [source]\n" BUCKET,
		  "can't be read: write key: " },
		{ V "limits:\n  - name: x\n    key: {}\n" BUCKET,
		  "can't be read: write key: source" },
		{ V "limits:\n  - name: x\n    key: {flow: {v4: 24}}\n" BUCKET,
		  "'flow' has no prefix lengths: write key: flow" },
		{ V "limits:\n  - name: x\n    key: {source: {v4: 33}}\n" BUCKET,
		  "field 'limits[x].key.source.v4': '33' is out of range: write 1 to 32" },
		{ V "limits:\n  - name: x\n    key: {source: {v4: 0}}\n" BUCKET, "'0' is zero" },
		{ V "limits:\n  - name: x\n    key: {source: {v6: 129}}\n" BUCKET,
		  "write 1 to 128" },
		{ V "limits:\n  - name: x\n    key: {source: {v5: 1}}\n" BUCKET,
		  "write one of v4, v6" },
		{ V "limits:\n  - name: x\n    key: {source: 24}\n" BUCKET,
		  "a mapping belongs here" },
		{ V "limits:\n  - name: x\n    key: source\n    keys: 2048\n" BUCKET,
		  "field 'keys': only a limit that is sliding or has key: flow" },
		{ V "limits:\n  - name: x\n    key: flow\n    keys: 1000\n" BUCKET,
		  "field 'limits[x].keys': '1000' is out of range: write 1024 to 1048576" },
		{ V "limits:\n  - {name: x, key: none, keys: 1024, sliding: {quota: 1, window: 1s}}"
		    "\n",
		  "field 'keys': key: none is one key for all: remove it" },
		{ V "limits:\n  - {name: x, key: flow, keys: 1M, sliding: {quota: 4000, window: "
		    "1s}}\n",
		  "field 'keys': '1000000' keys with a ring of 32768 bytes each are more than 4 "
		  "GiB: "
		  "write at most 131072" },
		{ V "limits:\n  - name: bans\n    key: none\n" BUCKET,
		  "the name is a word of weir show" },
		{ V "limits:\n  - name: ledger\n    key: none\n" BUCKET,
		  "the name is a word of weir show" },
	};

	CHECK_ROWS(rows);
}

static void the_matches(void)
{
	static const struct row rows[] = {
		{ MATCH("proto: tcpp"),
		  "w.yaml:6: field 'limits[x].match.proto': 'tcpp' is not known: "
		  "write tcp, udp, icmp, icmpv6, sctp or a number from 0 to 255" },
		{ MATCH("proto: 256"), "'256' is not known" },
		{ MATCH("proto: []"), "'[]' is empty: remove the line, or list a value" },
		{ MATCH("to_port: 65536"), "'65536' is not a number or range: write 0 to 65535" },
		{ MATCH("to_port: 10-5"), "'10-5' is not a number or range" },
		{ MATCH("to_port: -5"), "'-5' is not a number or range" },
		{ MATCH("to_port: 5-"), "'5-' is not a number or range" },
		{ MATCH("to_port: 5-6-7"), "'5-6-7' is not a number or range" },
		{ MATCH("to_port: http"), "'http' is not a number or range" },
		{ MATCH("to_port: 053"), "'053' is not a number or range" },
		{ MATCH("to_port: [53, 70000]"), "field 'limits[x].match.to_port': '70000'" },
		{ MATCH("from_port: 1e3"), "'1e3' is not a number or range" },
		{ MATCH("proto: [tcp, icmp], to_port: 53"), "only tcp, udp and sctp have ports" },
		{ MATCH("from: 10.0.0.1/8"), "has bits set behind its length: write 10.0.0.0/8" },
		{ MATCH("flags: syn"), "only TCP has them: write proto: tcp" },
		{ MATCH("proto: tcp, flags: sin"),
		  "'sin' are no TCP flags: write names of fin syn" },
		{ MATCH("proto: tcp, flags: 'syn,'"), "'syn,' are no TCP flags" },
		{ MATCH("proto: tcp, flags: 'syn,!syn'"), "syn is there twice" },
		{ MATCH("proto: tcp, flags: '!!syn'"), "are no TCP flags" },
		{ MATCH("icmp: 8"),
		  "types differ by version: write proto: icmp, or proto: icmpv6" },
		{ MATCH("proto: [icmp, icmpv6], icmp: 8"), "types differ by version" },
		{ MATCH("proto: icmp, icmp: echo"),
		  "'echo' is not known: write a number from 0 to" },
		{ MATCH("vlan: 4095"), "write 0 to 4094" },
		{ MATCH("interfaces: eth9"), "'eth9' is not one of this file's interfaces" },
		{ MATCH("interfaces: [eth9, eth9]"), "'eth9' is there twice: keep one" },
		{ MATCH("hook: ingress"), "write one of xdp, tc-ingress, tc-egress" },
		{ MATCH("hook: [xdp]"), "a list where one value belongs" },
		{ MATCH("port: 53"),
		  "field 'limits[x].match': 'port' is not known here: write one of" },
	};

	CHECK_ROWS(rows);
}

static void the_services(void)
{
	static const struct row rows[] = {
		{ MATCH("proto: tcp") "services:\n  - name: s\n",
		  "field 'services[s].match': is miss" },
		{ MATCH("proto: tcp") "services:\n  - name: x\n    match: {proto: tcp, to_port: "
				      "1}\n",
		  "w.yaml:8: service 'x': the name is that of a limit" },
		{ MATCH("proto: tcp") "services:\n  - name: s\n    match: {proto: icmp, to_port: "
				      "1}\n",
		  "write tcp or udp" },
		{ MATCH("proto: tcp") "services:\n  - name: s\n    match: {proto: tcp, to_port: 1, "
				      "from: 10.0.0.1}\n",
		  "'from' is not known here: write one of proto, to_port, to" },
		{ SERVICE("  - name: t\n    match: {proto: udp, to_port: [10-100, 7]}\n"),
		  "service 't': field 'match.to_port': 80 is a port of service 's' (line 8)" },
		{ SERVICE("  - name: s\n    match: {proto: tcp, to_port: 81}\n"),
		  "w.yaml:10: service 's': the name is there twice (first on line 8)" },
		{ SERVICE("    cgroup: \"/a\\x01\"\n"), "write a path without control characters" },
		{ SERVICE("    governor: {control: x, floor: 1pps, ceiling: 5}\n"),
		  "field 'governor.ceiling': '5' does not fit 'x'" },
		{ SERVICE("    deadline: 2h\n"), "out of range: write 1ms to 1h" },
		{ SERVICE("    cgroup: a\n"), "write an absolute path" },
		{ SERVICE("    trust: app\n"), "write one of kernel, report" },
		{ SERVICE("    breaker:\n"), "'breaker' has no value" },
		{ SERVICE("    breaker: {k: 0.5}\n"), "'0.5' is out of range: write 1 to 100" },
		{ SERVICE("    breaker: {floor: 1.6}\n"), "is above k" },
		{ SERVICE("    breaker: {k: nan}\n"), "'nan' is not a number" },
		{ SERVICE("    shedder: {cpu: 1001}\n"), "write 1 to 1000" },
		{ SERVICE("    shedder: {beta: 1}\n"), "write 0 to 0.999999" },
		{ SERVICE("    governor: {floor: 1pps}\n"), "governor.control': is missing" },
		{ SERVICE("    governor: {control: x}\n"), "governor.floor': is missing" },
		{ SERVICE("    governor: {control: y, floor: 1pps}\n"),
		  "'y' is not a limit with a" },
		{ SERVICE("    governor: {control: x, floor: 1mbit}\n"),
		  "field 'governor.floor': '1mbit' does not fit 'x': write a rate in packets" },
		{ SERVICE("    governor: {control: x, floor: 5}\n"), "'5' does not fit 'x'" },
		{ SERVICE("    governor: {control: x, floor: block}\n"),
		  "'block' can't be a governor" },
		{ SERVICE("    governor: {control: x, floor: unlimited}\n"), "does not fit 'x'" },
		{ SERVICE("    governor: {control: x, floor: 11pps}\n"),
		  "floor <= start <= ceiling" },
		{ SERVICE("    governor: {control: x, floor: 2pps, start: 1pps}\n"),
		  "floor <= start" },
		{ SERVICE("    governor: {control: x, floor: 1pps, high: 1%}\n"),
		  "less than high" },
		{ SERVICE("    governor: {control: x, floor: 1pps, high: 0.05}\n"), "write 5% or" },
		{ SERVICE("    governor: {control: x, floor: 1pps}\n"
			  "  - name: t\n    match: {proto: tcp, to_port: 81}\n"
			  "    governor: {control: x, floor: 1pps}\n"),
		  "service 't': field 'governor.control': 'x' is already moved by service 's'" },
	};

	CHECK_ROWS(rows);
}

static void what_is_no_file_is_named_U15(void)
{
	struct weir_policy *policy = NULL;
	struct weir_error err = { "" };
	char path[64];
	FILE *file;

	CU_ASSERT_EQUAL(weir_policy_load_file("/nonexistent/w", &policy, &err), -ENOENT);
	CU_ASSERT_STRING_EQUAL(err.text,
			       "/nonexistent/w: can't be opened: No such file or directory");
	CU_ASSERT_EQUAL(weir_policy_load_file("/tmp", &policy, &err), -EISDIR);
	CU_ASSERT_STRING_EQUAL(err.text, "/tmp: is not a regular file");
	CU_ASSERT_EQUAL(weir_policy_load_file("/dev/zero", &policy, &err), -EINVAL);
	snprintf(path, sizeof(path), "/tmp/weir-policy-%d", (int)getpid());
	CU_ASSERT_EQUAL(mkfifo(path, 0600), 0);
	CU_ASSERT_EQUAL(weir_policy_load_file(path, &policy, &err), -EINVAL);
	unlink(path);
	file = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	CU_ASSERT_EQUAL(ftruncate(fileno(file), WEIR_POLICY_FILE_MAX + 1), 0);
	fclose(file);
	CU_ASSERT_EQUAL(weir_policy_load_file(path, &policy, &err), -EFBIG);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "16777217 bytes, at most 16777216 are read"));
	CU_ASSERT_EQUAL(truncate(path, 0), 0);
	CU_ASSERT_EQUAL(weir_policy_load_file(path, &policy, &err), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, ":1: the file is empty"));
	CU_ASSERT_EQUAL(truncate(path, 4096), 0);
	CU_ASSERT_EQUAL(weir_policy_load_file(path, &policy, &err), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "control characters are not allowed"));
	CU_ASSERT_EQUAL(weir_policy_load_text("", WEIR_POLICY_FILE_MAX + 1, "w", &policy, &err),
			-EFBIG);
	CU_ASSERT_PTR_NULL(policy);
	unlink(path);
}

/* The advice is still in the sentence. */
static void a_long_value_is_quoted_in_part(void)
{
	static const char *const heads[] = {
		"mode: ",
		"sample: ",
		"interfaces: [{name: ",
		"lists: {allow: ",
		"metrics: {listen: ",
		"lists: {deny_files: ",
		"control: {socket: ",
	};
	char text[6000], a[5000];

	memset(a, 'a', sizeof(a) - 1);
	a[sizeof(a) - 1] = 0;
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		struct row row = { text, "aaa...' is too long: at most " };

		snprintf(text, sizeof(text), V "%s%s%s\n", heads[i], a,
			 strchr(heads[i], '[')	 ? "}]"
			 : strchr(heads[i], '{') ? "}"
						 : "");
		check_rows(&row, 1);
	}
}

static void too_much_of_anything(void)
{
	static char text[1 << 17];
	struct weir_policy *policy = NULL;
	struct weir_error err;
	int n = snprintf(text, sizeof(text), V "limits:\n");

	for (int i = 0; i < 257; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n,
			      "  - {name: l%d, key: none, bucket: {rate: 1pps}}\n", i);
	CU_ASSERT_EQUAL(weir_policy_load_text(text, (size_t)n, "w", &policy, &err), -EINVAL);
	CU_ASSERT_STRING_EQUAL(err.text,
			       "w:3: field 'limits': 257 items, at most 256 are possible");
	n = snprintf(text, sizeof(text), V);
	for (int i = 0; i < 64; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "k%d: 1\n", i);
	CU_ASSERT_EQUAL(weir_policy_load_text(text, (size_t)n, "w", &policy, &err), -EINVAL);
	CU_ASSERT_STRING_EQUAL(err.text, "w:65: 'k63': more than 64 keys in one mapping");
}

WEIR_TESTS("policy_errors", TEST(the_yaml_itself), TEST(the_top_level), TEST(the_limits),
	   TEST(the_keys), TEST(the_matches), TEST(the_services),
	   TEST(what_is_no_file_is_named_U15), TEST(a_long_value_is_quoted_in_part),
	   TEST(too_much_of_anything))
