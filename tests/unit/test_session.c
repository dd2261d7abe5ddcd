// SPDX-License-Identifier: GPL-2.0
/* What a change would do to the ssh session that it is typed in. */
#include "harness.h"

#include <errno.h>

#include "compile_text.h"
#include "controller/session.h"

#define SESSION "192.0.2.7 50123 198.51.100.1 22"
#define SESSION6 "2001:db8::7 50123 2001:db8:1::1 22"
#define HEAD "version: 1\ninterfaces:\n  - {name: e0}\n  - {name: e1}\n"

/* ---- SSH_CONNECTION ---- */

static void reads_what_sshd_writes(void)
{
	static const uint8_t four[16] = { 192, 0, 2, 7 }, six[16] = { 0xfe, 0x80, [15] = 1 };
	struct weir_session session;
	struct weir_error err;

	CU_ASSERT_EQUAL_FATAL(weir_session_parse(SESSION, &session, &err), 0);
	CU_ASSERT_EQUAL(session.family, 4);
	CU_ASSERT_EQUAL(memcmp(session.peer, four, 16), 0);
	CU_ASSERT_EQUAL(session.peer_port, 50123);
	CU_ASSERT_EQUAL(session.own_port, 22);
	CU_ASSERT_EQUAL(
		weir_session_parse("::ffff:192.0.2.7 1 ::ffff:192.0.2.1 22", &session, &err), 0);
	CU_ASSERT_EQUAL(session.family, 4);
	CU_ASSERT_EQUAL(memcmp(session.peer, four, 16), 0);
	CU_ASSERT_EQUAL(weir_session_parse("fe80::1%eth0 65535 fe80::2%eth0 22", &session, &err),
			0);
	CU_ASSERT_EQUAL(session.family, 6);
	CU_ASSERT_EQUAL(memcmp(session.peer, six, 16), 0);
}

static void refuses_what_it_does_not(void)
{
	static const char *const bad[] = {
		"",
		"192.0.2.7",
		"192.0.2.7 1 192.0.2.1",
		"192.0.2.7 1 192.0.2.1 22 x",
		"192.0.2.7 0 192.0.2.1 22",
		"192.0.2.7 65536 192.0.2.1 22",
		"192.0.2.7 1 192.0.2.1 ssh",
		"192.0.2.7 1 2001:db8::1 22",
		"192.0.2.777 1 192.0.2.1 22",
		"UNKNOWN 65535 UNKNOWN 65535",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct weir_session session;
		struct weir_error err = { "" };

		CU_ASSERT_EQUAL(weir_session_parse(bad[i], &session, &err), -EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "--force"));
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, bad[i]));
	}
}

/* ---- policies ---- */

/* The sentence; "" where the session goes on. It comes in by e1 alone. `only`: see the header. */
static const char *verdict(const char *connection, const char *text, int only)
{
	static const bool by[] = { false, true };
	static struct weir_error err;
	struct weir_policy *policy = load(text);
	struct weir_list_table allow = { 0 }, deny = { 0 };
	struct weir_session session;
	int code;
	struct weir_compiled *compiled = compile(policy, NULL, &code, &err);
	const struct weir_session_ground ground = {
		.policy = policy,
		.compiled = compiled,
		.only = only,
		.allow = &allow,
		.deny = &deny,
		.slots = slots,
		.by = by,
		.now_ns = 1000,
	};

	CU_ASSERT_EQUAL_FATAL(code, 0);
	weir_list_build(&allow, &policy->lists.allow.prefixes, &allow);
	weir_list_build(&deny, &policy->lists.deny.prefixes, &deny);
	CU_ASSERT_EQUAL_FATAL(weir_session_parse(connection, &session, &err), 0);
	err.text[0] = '\0';
	code = weir_session_check(&session, &ground, &err);
	CU_ASSERT_EQUAL(code, *err.text ? -ECONNABORTED : 0);
	weir_list_free(&allow);
	weir_list_free(&deny);
	weir_compiled_free(compiled);
	weir_policy_free(policy);
	return err.text;
}

static const struct {
	const char *limits; /* and lists */
	const char *says;   /* a part of the sentence; NULL: the session goes on */
} cases[] = {
	/* ---- limits ---- */
	{ "limits: [{name: a, key: source, bucket: {rate: 1000pps}}]\n", NULL },
	{ "limits: [{name: a, key: source, bucket: {rate: block}}]\n", "test:5: limit a (bucket" },
	{ "limits: [{name: a, key: source, bucket: {rate: block}, mode: monitor}]\n", NULL },
	{ "mode: monitor\nlimits: [{name: a, key: source, bucket: {rate: block}}]\n", NULL },
	{ "limits: [{name: a, key: source, bucket: {rate: unlimited}}]\n", NULL },
	{ "limits: [{name: a, key: source, bucket: {rate: 10pps}}]\n", NULL },
	{ "limits: [{name: a, key: source, bucket: {rate: 9pps}}]\n", "too slow" },
	{ "limits: [{name: a, key: source, bucket: {rate: 600/min}}]\n", NULL },
	{ "limits: [{name: a, key: source, bucket: {rate: 599/min}}]\n", "too slow" },
	{ "limits: [{name: a, key: source, bucket: {rate: 8kbit}}]\n", NULL },
	{ "limits: [{name: a, key: source, bucket: {rate: 7kbit}}]\n", "too slow" },
	{ "limits: [{name: a, key: source, sliding: {quota: 100, window: 10s}}]\n", NULL },
	{ "limits: [{name: a, key: source, sliding: {quota: 99, window: 10s}}]\n", "too slow" },
	{ "limits: [{name: a, key: source, period: {quota: 600, period: 1m}}]\n", NULL },
	{ "limits: [{name: a, key: source, period: {quota: 599, period: 1m}}]\n", "too slow" },
	{ "limits: [{name: a, key: source, match: {proto: tcp}, gate: {limit: 1}}]\n", NULL },
	{ "limits: [{name: a, key: source, match: {proto: tcp}, gate: {limit: block}}]\n",
	  "refuses new connections" },
	/* ---- what they match ---- */
	{ "limits: [{name: a, key: source, match: {proto: udp}, bucket: {rate: block}}]\n", NULL },
	{ "limits: [{name: a, key: source, match: {proto: tcp, to_port: 80}, bucket: {rate: "
	  "block}}]\n",
	  NULL },
	{ "limits: [{name: a, key: source, match: {proto: tcp, to_port: 20-25}, bucket: {rate: "
	  "block}}]\n",
	  "limit a" },
	{ "limits: [{name: a, key: source, match: {proto: tcp, from_port: 50123}, bucket: {rate: "
	  "block}}]\n",
	  "limit a" },
	{ "limits: [{name: a, key: source, match: {from: 192.0.2.0/24}, bucket: {rate: block}}]\n",
	  "limit a" },
	{ "limits: [{name: a, key: source, match: {from: 192.0.3.0/24}, bucket: {rate: block}}]\n",
	  NULL },
	{ "limits: [{name: a, key: source, match: {to: 198.51.100.1}, bucket: {rate: block}}]\n",
	  "limit a" },
	{ "limits: [{name: a, key: source, match: {interfaces: [e0]}, bucket: {rate: block}}]\n",
	  NULL },
	{ "limits: [{name: a, key: source, match: {interfaces: [e1]}, bucket: {rate: block}}]\n",
	  "limit a" },
	{ "limits: [{name: a, key: source, match: {hook: tc-ingress}, bucket: {rate: block}}]\n",
	  "limit a" },
	/* Outwards the roles are turned. */
	{ "limits: [{name: a, key: source, match: {hook: tc-egress, to: 192.0.2.7}, bucket: {rate: "
	  "block}}]\n",
	  "limit a" },
	{ "limits: [{name: a, key: source, match: {hook: tc-egress, from: 192.0.2.7}, bucket: "
	  "{rate: block}}]\n",
	  NULL },
	/* SYN alone may be slow, but not blocked: one couldn't come back. */
	{ "limits: [{name: a, key: source, match: {proto: tcp, flags: [syn, \"!ack\"]}, bucket: "
	  "{rate: 1pps}}]\n",
	  NULL },
	{ "limits: [{name: a, key: source, match: {proto: tcp, flags: [syn, \"!ack\"]}, bucket: "
	  "{rate: block}}]\n",
	  "refuses new connections" },
	{ "limits: [{name: a, key: source, match: {vlan: 7}, bucket: {rate: block}}]\n",
	  "limit a" },
	/* ---- lists ---- */
	{ "lists: {deny: [192.0.2.0/24]}\n", "the deny list has 192.0.2.0/24" },
	{ "lists: {deny: [192.0.3.0/24]}\n", NULL },
	{ "lists: {deny: [192.0.2.0/24], allow: [192.0.2.7]}\n", NULL },
	{ "lists: {allow: [192.0.2.7]}\nlimits: [{name: a, key: source, bucket: {rate: block}}]\n",
	  NULL },
	/* What goes out has our own address as its source, which the lists look at. */
	{ "lists: {allow: [192.0.2.7]}\nlimits: [{name: a, key: source, match: {hook: tc-egress}, "
	  "bucket: {rate: block}}]\n",
	  "limit a" },
	{ "lists: {deny: [198.51.100.1]}\n", NULL },
	{ "lists: {deny: [198.51.100.1]}\nlimits: [{name: a, key: source, match: {hook: "
	  "tc-egress}, bucket: {rate: 1kpps}}]\n",
	  "the deny list has 198.51.100.1/32" },
};

static void finds_what_would_refuse_it(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[1024];
		const char *said;
		bool right;

		snprintf(text, sizeof(text), HEAD "%s", cases[i].limits);
		said = verdict(SESSION, text, -1);
		right = cases[i].says ? strstr(said, cases[i].says) && strstr(said, "--force") &&
						strstr(said, "192.0.2.7") :
					!*said;
		CU_ASSERT(right);
		if (!right)
			printf("  case %zu: %s  says: %s\n", i, cases[i].limits, said);
	}
}

static void knows_both_families(void)
{
	const char *six = HEAD "limits: [{name: a, key: source, match: {from: \"2001:db8::/32\"}, "
			       "bucket: {rate: block}}]\n";

	CU_ASSERT_PTR_NOT_NULL(strstr(verdict(SESSION6, six, -1), "2001:db8::7"));
	CU_ASSERT_STRING_EQUAL(verdict(SESSION, six, -1), "");
	CU_ASSERT_PTR_NOT_NULL(strstr(
		verdict(SESSION6, HEAD "lists: {deny: [\"2001:db8::/48\"]}\n", -1), "deny list"));
}

/* A set is held to what it changes; what was forced before is not asked of again. */
static void a_set_is_asked_of_its_own_limit(void)
{
	const char *two = HEAD "lists: {deny: [192.0.2.7]}\n"
			       "limits:\n"
			       "  - {name: a, key: source, bucket: {rate: block}}\n"
			       "  - {name: b, key: source, bucket: {rate: 1kpps}}\n";

	CU_ASSERT_PTR_NOT_NULL(strstr(verdict(SESSION, two, -1), "deny list"));
	CU_ASSERT_PTR_NOT_NULL(strstr(verdict(SESSION, two, 0), "limit a"));
	CU_ASSERT_STRING_EQUAL(verdict(SESSION, two, 1), "");
}

/* ---- interfaces ---- */

static void knows_the_interfaces(void)
{
	struct weir_policy *policy = load("version: 1\ninterfaces: [{name: lo}, {name: eth9}]\n");
	struct weir_session session;
	struct weir_error err;
	bool by[2] = { true, true };

	/* From the host to itself it crosses nothing. */
	weir_session_parse("127.0.0.1 4000 127.0.0.1 22", &session, &err);
	weir_session_interfaces(&session, policy, by);
	CU_ASSERT_FALSE(by[0] || by[1]);
	/* Nobody here has that address: it was translated, so by any of them. */
	weir_session_parse("192.0.2.7 4000 203.0.113.77 22", &session, &err);
	weir_session_interfaces(&session, policy, by);
	CU_ASSERT(by[0] && by[1]);
	weir_policy_free(policy);
}

WEIR_TESTS("session", TEST(reads_what_sshd_writes), TEST(refuses_what_it_does_not),
	   TEST(finds_what_would_refuse_it), TEST(knows_both_families),
	   TEST(a_set_is_asked_of_its_own_limit), TEST(knows_the_interfaces))
