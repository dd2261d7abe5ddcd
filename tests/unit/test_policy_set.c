// SPDX-License-Identifier: GPL-2.0
/* `weir set`: every settable field of every kind, and nothing changed when it is refused. */
#include "controller/policy.h"
#include "harness.h"
#include "policy_roundtrip.h"

#include <errno.h>

#define SEC 1000000000ULL

static const char text[] = "version: 1\n"
			   "limits:\n"
			   "  - {name: b, key: source, bucket: {rate: 1000pps}}\n"
			   "  - {name: bb, key: source, bucket: {rate: 1000pps, burst: 7}}\n"
			   "  - {name: u, key: none, bucket: {rate: 200mbit}}\n"
			   "  - {name: s, key: source, sliding: {quota: 100, window: 1s}}\n"
			   "  - {name: p, key: source, period: {quota: 100, period: 1d},\n"
			   "     ban: {after: 10 refusals in 1s, for: 1m}}\n"
			   "  - {name: g, key: source, gate: {limit: 50}, match: {proto: tcp}}\n"
			   "services:\n"
			   "  - {name: web, match: {proto: tcp, to_port: 80},\n"
			   "     governor: {control: b, floor: 10pps}}\n";

static struct weir_policy *load(void)
{
	struct weir_policy *policy = NULL;
	struct weir_error err = { "" };

	if (weir_policy_load_text(text, strlen(text), "w.yaml", &policy, &err))
		printf("  %s\n", err.text);
	CU_ASSERT_PTR_NOT_NULL_FATAL(policy);
	return policy;
}

static const struct {
	const char *limit, *field, *value;
	const char *printed; /* must then be in the printed policy */
} good[] = {
	{ "b", "rate", "500pps", "      rate: 500pps\n      # burst: 500 by default\n" },
	{ "b", "rate", "1/d", "      rate: 1/d\n      # burst: 1 by default\n" },
	{ "b", "rate", "block", "      rate: block\n" },
	{ "b", "rate", "unlimited", "      rate: unlimited\n" },
	{ "b", "burst", "77", "      rate: 1000pps\n      burst: 77\n" },
	{ "bb", "rate", "500pps", "      rate: 500pps\n      burst: 7\n" },
	{ "u", "rate", "8mbit", "      rate: 8mbit\n      # burst: 1mbyte by default\n" },
	{ "u", "rate", "block", "      rate: block\n      burst: 25mbyte\n" },
	{ "u", "burst", "64kbyte", "      burst: 64kbyte\n" },
	{ "s", "quota", "4096", "      quota: 4096\n      window: 1s\n" },
	{ "s", "window", "2m", "      quota: 100\n      window: 2m\n" },
	{ "p", "quota", "1M", "      quota: 1000000\n" },
	{ "p", "period", "1h", "      period: 1h\n" },
	{ "p", "align", "true", "      align: true\n" },
	{ "p", "ban.after", "5 refusals in 3s", "      after: 5 refusals in 3s\n" },
	{ "p", "ban.for", "2d", "      for: 2d\n" },
	{ "g", "limit", "51", "      limit: 51\n" },
	{ "g", "limit", "unlimited", "      limit: unlimited\n" },
	{ "g", "limit", "block", "      limit: block\n" },
	{ "g", "refuse", "reset", "      refuse: reset\n" },
	{ "g", "mode", "monitor", "    mode: monitor\n" },
	{ "s", "untracked", "drop", "    untracked: drop\n" },
};

static void every_field_of_every_kind_can_be_set(void)
{
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct weir_policy *policy = load(), *before = load();
		struct weir_error err = { "" };
		const char *wrong = NULL;
		char *printed;

		if (weir_policy_set_field(policy, good[i].limit, good[i].field, good[i].value,
					  &err))
			wrong = err.text;
		printed = weir_roundtrip_print(policy);
		if (!strstr(printed, good[i].printed))
			wrong = printed;
		if (weir_policy_equal(policy, before))
			wrong = "nothing changed";
		if (!wrong)
			wrong = weir_roundtrip(policy, &err);
		if (!wrong && (weir_policy_unset(policy, good[i].limit, &err) ||
			       !weir_policy_equal(policy, before)))
			wrong = "not as before after unset";
		if (wrong)
			printf("  %s %s=%s: %s\n", good[i].limit, good[i].field, good[i].value,
			       wrong);
		CU_ASSERT_PTR_NULL(wrong);
		free(printed);
		weir_policy_free(before);
		weir_policy_free(policy);
	}
}

static const struct {
	const char *limit, *field, *value;
	int code;
	const char *says;
} bad[] = {
	{ "x", "rate", "1pps", -ENOENT, "there is no limit 'x': see weir show limits" },
	{ "web", "deadline", "3s", -ENOENT, "'web' is a service, and set changes limits: change" },
	{ "b", "quota", "1", -ENOENT,
	  "limit 'b' has no field 'quota' to set: it has rate, burst, mode, untracked" },
	{ "s", "rate", "1pps", -ENOENT, "it has quota, window, mode, untracked" },
	{ "p", "rate", "1pps", -ENOENT,
	  "it has quota, period, align, ban.after, ban.for, mode, untracked" },
	{ "g", "burst", "1", -ENOENT, "it has limit, refuse, mode, untracked" },
	{ "b", "name", "c", -ENOENT, "no field 'name' to set" },
	{ "b", "key", "flow", -ENOENT, "no field 'key' to set" },
	{ "b", "bucket", "{}", -ENOENT, "no field 'bucket' to set" },
	{ "b", "ban.for", "1m", -ENOENT, "no field 'ban.for' to set" },
	{ "b", "", "", -ENOENT, "no field '' to set" },
	{ "b", "rate", "10bps", -EINVAL, "limit 'b': field 'rate': '10bps': bps means bits" },
	{ "b", "rate", "", -EINVAL, "limit 'b': field 'rate': '' is empty" },
	{ "b", "rate", "0pps", -ERANGE, "'0pps' is zero" },
	{ "b", "rate", "1mbit", -EINVAL,
	  "this limit counts packets: to count bytes, change the file and reload" },
	{ "u", "rate", "1pps", -EINVAL, "this limit counts bytes: to count packets" },
	{ "b", "burst", "1mbyte", -EINVAL, "'1mbyte' is in bytes but the rate '1000pps' in pack" },
	{ "u", "burst", "1byte", -EINVAL, "smaller than a frame" },
	{ "bb", "burst", "-1", -ERANGE, "'-1' is negative" },
	{ "s", "quota", "4097", -ERANGE, "'4097' is out of range: write 1 to 4096" },
	{ "s", "window", "0s", -ERANGE, "'0s' is zero" },
	{ "p", "align", "1", -EINVAL, "write true or false" },
	{ "p", "ban.after", "never", -EINVAL, "write 100 refusals in 10s" },
	{ "g", "limit", "2147483648", -ERANGE, "write 1 to 2147483647, unlimited or block" },
	{ "g", "mode", "off", -EINVAL, "write one of enforce, monitor" },
};

static void a_refused_set_changes_nothing(void)
{
	struct weir_policy *policy = load(), *before = load();

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct weir_error err = { "" };
		int rc = weir_policy_set_field(policy, bad[i].limit, bad[i].field, bad[i].value,
					       &err);

		if (rc != bad[i].code || !strstr(err.text, bad[i].says))
			printf("  %s %s=%s: %d %s\n", bad[i].limit, bad[i].field, bad[i].value, rc,
			       err.text);
		CU_ASSERT_EQUAL(rc, bad[i].code);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, bad[i].says));
		CU_ASSERT_TRUE(weir_policy_equal(policy, before));
	}
	weir_policy_free(before);
	weir_policy_free(policy);
}

static void several_changes_are_one(void)
{
	struct weir_policy_change changes[] = { { "rate", "500pps" }, { "burst", "1000" } };
	struct weir_policy *policy = load(), *before = load();
	struct weir_error err = { "" };

	CU_ASSERT_EQUAL(weir_policy_set(policy, "b", changes, 2, &err), 0);
	CU_ASSERT_EQUAL(policy->limits[0].bucket.rate.amount, 500);
	CU_ASSERT_EQUAL(policy->limits[0].bucket.burst.value, 1000);
	weir_policy_free(policy);

	policy = load();
	changes[1].value = "0";
	CU_ASSERT_EQUAL(weir_policy_set(policy, "b", changes, 2, &err), -ERANGE);
	CU_ASSERT_TRUE(weir_policy_equal(policy, before));
	/* 1/d alone would be fine; with this burst it would stand for too long a time. */
	changes[0].value = "1/d";
	changes[1].value = "834";
	CU_ASSERT_EQUAL(weir_policy_set(policy, "b", changes, 2, &err), -EINVAL);
	CU_ASSERT_TRUE(weir_policy_equal(policy, before));
	weir_policy_free(before);
	weir_policy_free(policy);
}

static void a_word_remembers_the_unit(void)
{
	struct weir_policy *policy = load();
	struct weir_error err = { "" };
	const struct weir_policy_limit *u = weir_policy_find_limit(policy, "u");

	CU_ASSERT_EQUAL(weir_policy_set_field(policy, "u", "rate", "unlimited", &err), 0);
	CU_ASSERT_TRUE(u->bucket.rate.bytes && u->bucket.burst.bytes);
	CU_ASSERT_NOT_EQUAL(weir_policy_set_field(policy, "u", "rate", "5pps", &err), 0);
	CU_ASSERT_EQUAL(weir_policy_set_field(policy, "u", "rate", "80mbit", &err), 0);
	CU_ASSERT_TRUE(u->bucket.rate.bytes && u->bucket.rate.amount == 10000000);
	CU_ASSERT_EQUAL(weir_policy_set_field(policy, "b", "rate", "block", &err), 0);
	CU_ASSERT_EQUAL(weir_policy_set_field(policy, "b", "rate", "9pps", &err), 0);
	CU_ASSERT_EQUAL(policy->limits[0].bucket.burst.value, 9);
	weir_policy_free(policy);
}

/* A policy that was kept elsewhere than in the file goes back to what the file says. */
static void unset_goes_by_the_file(void)
{
	static const char kept[] = "version: 1\n"
				   "limits:\n"
				   "  - {name: b, mode: monitor, key: source,\n"
				   "     bucket: {rate: 9pps}}\n"
				   "  - {name: s, key: source, bucket: {rate: 8pps}}\n"
				   "  - {name: gone, key: source, bucket: {rate: 7pps}}\n";
	struct weir_policy *policy = NULL, *file = load();
	struct weir_error err = { "" };

	CU_ASSERT_EQUAL_FATAL(
		weir_policy_load_text(kept, strlen(kept), "kept", &policy, &err), 0);
	weir_policy_write_as(policy, file);
	weir_policy_free(file);
	CU_ASSERT_EQUAL(weir_policy_unset(policy, "b", &err), 0);
	CU_ASSERT_EQUAL(policy->limits[0].bucket.rate.amount, 1000);
	CU_ASSERT_EQUAL(policy->limits[0].mode, WEIR_POLICY_ENFORCE);
	CU_ASSERT_EQUAL(weir_policy_unset(policy, "s", &err), 0);
	CU_ASSERT_EQUAL(policy->limits[1].bucket.rate.amount, 8);
	CU_ASSERT_EQUAL(weir_policy_unset(policy, "gone", &err), 0);
	CU_ASSERT_EQUAL(policy->limits[2].bucket.rate.amount, 7);
	CU_ASSERT_EQUAL(weir_policy_unset(policy, "x", &err), -ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "there is no limit 'x'"));
	weir_policy_free(policy);
}

WEIR_TESTS("policy_set", TEST(every_field_of_every_kind_can_be_set),
	   TEST(a_refused_set_changes_nothing), TEST(several_changes_are_one),
	   TEST(a_word_remembers_the_unit), TEST(unset_goes_by_the_file))
