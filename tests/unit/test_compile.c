// SPDX-License-Identifier: GPL-2.0
/* The policy compiler: conf, keys, what it refuses, and identities that last (A19). */
#include "harness.h"

#include <arpa/inet.h>
#include <errno.h>

#include "compile_text.h"

static void a_dimension_that_no_limit_uses_is_left_out(void)
{
	struct weir_error err;
	int code;
	struct weir_compiled *compiled =
		compile_text("version: 1\nlimits:\n"
			     "  - {name: a, key: source, bucket: {rate: 1pps}}\n"
			     "  - {name: b, key: source, bucket: {rate: 1pps}, match: "
			     "{to_port: 53}}\n",
			     &code, &err);

	CU_ASSERT_EQUAL_FATAL(code, 0);
	CU_ASSERT_EQUAL(compiled->head.dimensions, WEIR_BY_DESTINATION_PORT);
	CU_ASSERT_EQUAL(compiled->head.limits, 2);
	CU_ASSERT_EQUAL(compiled->prefix_count, 0);
	weir_compiled_free(compiled);
}

/* Every second port a limit of its own pattern: more kinds than rows must be told. */
static void too_many_kinds_of_ports_are_refused(void)
{
	struct text text = { 0 };
	struct weir_error err = { "" };
	int code;

	add(&text, "version: 1\nlimits:\n");
	for (int bit = 0; bit < 13; bit++) {
		add(&text, "  - {name: l%d, key: source, bucket: {rate: 1pps}, match: {to_port: [",
		    bit);
		for (int port = 1 << bit, first = 1; port < 8192; port++) {
			if (port >> bit & 1)
				add(&text, "%s%d", first ? "" : ", ", port), first = 0;
		}
		add(&text, "]}}\n");
	}
	CU_ASSERT_PTR_NULL(compile_text(text.bytes, &code, &err));
	CU_ASSERT_EQUAL(code, -E2BIG);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "match.to_port"));
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "4095"));
	free(text.bytes);
}

/* ---- conf ---- */

static void bucket_conf_agrees_with_the_library(void)
{
	static const struct {
		struct weir_rate rate;
		uint64_t burst;
	} rows[] = {
		{ { 1, 86400 * WEIR_NS_PER_SEC, false }, 1 },
		{ { 1, 3600 * WEIR_NS_PER_SEC, false }, 5 },
		{ { 3, WEIR_NS_PER_SEC, false }, 3 },
		{ { 1000, WEIR_NS_PER_SEC, false }, 2000 },
		{ { 1000000007, WEIR_NS_PER_SEC, false }, 1000000 },
		{ { 12500000000, WEIR_NS_PER_SEC, true }, 1000000 },
		{ { 25000000, WEIR_NS_PER_SEC, true }, 65536 },
		{ { 1, 8 * WEIR_NS_PER_SEC, true }, 65536 },
		{ { 1, WEIR_NS_PER_SEC, true }, 1 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct weir_rate *rate = &rows[i].rate;
		struct weir_bucket_conf ours, library;
		struct weir_error err;

		CU_ASSERT_EQUAL(weir_compile_bucket(rate, rows[i].burst, &ours, &err), 0);
		CU_ASSERT_EQUAL(weir_bucket_conf_init(
					&library, (double)rate->amount * 1e9 / (double)rate->per_ns,
					(double)rows[i].burst, rate->bytes ? 64 : 1),
				0);
		CU_ASSERT_EQUAL(ours.burst_ticks, library.burst_ticks);
		for (uint64_t n = 1; n < 100000; n = n * 7 + 1)
			CU_ASSERT_EQUAL(weir_bucket_cost(&ours, n), weir_bucket_cost(&library, n));
	}
}

/* 1pps has a token of 16e9 ticks exactly; 3pps one that no number of ticks is. */
static void bucket_conf_is_exact(void)
{
	struct weir_bucket_conf conf;
	struct weir_error err;

	weir_compile_bucket(&(struct weir_rate){ 1, WEIR_NS_PER_SEC, false }, 7, &conf, &err);
	CU_ASSERT_EQUAL(weir_bucket_cost(&conf, 1), 16000000000ULL);
	CU_ASSERT_EQUAL(conf.burst_ticks, 7 * 16000000000ULL);
	weir_compile_bucket(&(struct weir_rate){ 16000000000, WEIR_NS_PER_SEC, false }, 1, &conf,
			    &err);
	CU_ASSERT_EQUAL(weir_bucket_cost(&conf, 12345), 12345);
	weir_compile_bucket(&(struct weir_rate){ 3, WEIR_NS_PER_SEC, false }, 1, &conf, &err);
	CU_ASSERT(weir_bucket_cost(&conf, 3000000) <= 16000000000000000ULL);
	CU_ASSERT(weir_bucket_cost(&conf, 3000000) >= 16000000000000000ULL - 8000000);
}

static void words_block_and_unlimited(void)
{
	struct weir_rate block = { 0 }, unlimited = { .amount = UINT64_MAX };
	struct weir_bucket_conf conf;
	struct weir_error err;
	uint64_t next;

	CU_ASSERT_EQUAL(weir_compile_bucket(&block, 1, &conf, &err), 0);
	CU_ASSERT_FALSE(weir_bucket_step(0, &conf, 1000, weir_bucket_cost(&conf, 1), &next));
	CU_ASSERT_EQUAL(weir_compile_bucket(&unlimited, 1, &conf, &err), 0);
	CU_ASSERT_TRUE(weir_bucket_step(0, &conf, 1000, weir_bucket_cost(&conf, 9999), &next));
}

/* D17: a burst that takes longer than the state can say is refused with its words. */
static void too_long_a_burst_is_refused(void)
{
	struct weir_rate rate = { 1, 86400 * WEIR_NS_PER_SEC, false };
	struct weir_bucket_conf conf;
	struct weir_error err = { "" };
	uint64_t most = WEIR_BUCKET_SPAN_MAX / (86400 * WEIR_NS_PER_SEC * 16);

	CU_ASSERT_EQUAL(weir_compile_bucket(&rate, most, &conf, &err), 0);
	CU_ASSERT_EQUAL(weir_compile_bucket(&rate, most + 1, &conf, &err), -ERANGE);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "1/d"));
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "2 years"));
	CU_ASSERT_EQUAL(weir_compile_bucket(&rate, UINT64_MAX, &conf, &err), -ERANGE);
}

static void keys_and_flags(void)
{
	struct weir_error err;
	int code;
	struct weir_compiled *compiled =
		compile_text("version: 1\nlimits:\n"
			     "  - {name: a, key: {source: {v4: 24, v6: 56}}, bucket: {rate: "
			     "8mbit}, mode: monitor}\n"
			     "  - {name: b, key: flow, bucket: {rate: block}, untracked: drop}\n"
			     "  - {name: c, key: none, bucket: {rate: unlimited}}\n",
			     &code, &err);
	const struct weir_limit *a, *b, *c;

	CU_ASSERT_EQUAL_FATAL(code, 0);
	a = &compiled->limits[0], b = &compiled->limits[1], c = &compiled->limits[2];
	CU_ASSERT_EQUAL(a->mask4, htonl(0xffffff00));
	CU_ASSERT_EQUAL(a->mask6[0], UINT32_MAX);
	CU_ASSERT_EQUAL(a->mask6[1], htonl(0xffffff00));
	CU_ASSERT_EQUAL(a->mask6[2], 0);
	CU_ASSERT_EQUAL(a->flags, WEIR_LIMIT_BYTES | WEIR_LIMIT_MONITOR);
	CU_ASSERT_EQUAL(a->key, WEIR_KEY_SOURCE);
	CU_ASSERT_EQUAL(b->key, 31);
	CU_ASSERT_EQUAL(b->mask6[3], UINT32_MAX);
	CU_ASSERT_EQUAL(b->flags, WEIR_LIMIT_BLOCK | WEIR_LIMIT_UNTRACKED_DROPS);
	CU_ASSERT_EQUAL(c->key, 0);
	CU_ASSERT_EQUAL(c->mask4, 0);
	CU_ASSERT_EQUAL(c->flags, WEIR_LIMIT_UNLIMITED);
	CU_ASSERT_STRING_EQUAL(compiled->labels[2].name, "c");
	weir_compiled_free(compiled);
}

/* ---- identity ---- */

/* Labels go by slot, as they do in the map. */
static struct weir_compiled *next_of(const struct weir_compiled *old, const char *text, int *code,
				     struct weir_error *err)
{
	static struct weir_label by_slot[WEIR_LIMITS_MAX];
	struct weir_compiled_before before = { old->limits, old->head.limits, by_slot };
	struct weir_policy *policy = load(text);
	struct weir_compiled *compiled;

	memset(by_slot, 0, sizeof(by_slot));
	for (size_t i = 0; i < old->head.limits; i++)
		by_slot[old->limits[i].slot] = old->labels[i];
	compiled = compile(policy, &before, code, err);
	weir_policy_free(policy);
	return compiled;
}

/* A19: the middle limit goes; those behind keep their slot, salt and so their state. */
static void A19_limits_keep_slot_and_salt(void)
{
	struct weir_error err;
	int code;
	struct weir_compiled *old =
		compile_text("version: 1\nlimits:\n"
			     "  - {name: a, key: source, bucket: {rate: 1pps}}\n"
			     "  - {name: b, key: source, bucket: {rate: 2pps}}\n"
			     "  - {name: c, key: source, bucket: {rate: 3pps}}\n"
			     "  - {name: d, key: source, bucket: {rate: 3pps}}\n",
			     &code, &err);
	struct weir_compiled *new = next_of(old,
					    "version: 1\nlimits:\n"
					    "  - {name: e, key: source, bucket: {rate: 9pps}}\n"
					    "  - {name: a, key: source, bucket: {rate: 1pps}}\n"
					    "  - {name: c, key: source, bucket: {rate: 4pps}}\n"
					    "  - {name: d, key: none, bucket: {rate: 3pps}}\n",
					    &code, &err);

	CU_ASSERT_PTR_NOT_NULL_FATAL(new);
	CU_ASSERT_EQUAL(memcmp(&new->limits[1], &old->limits[0], sizeof(old->limits[0])), 0);
	CU_ASSERT_EQUAL(new->limits[2].slot, old->limits[2].slot);
	CU_ASSERT_EQUAL(new->limits[2].salt, old->limits[2].salt);
	CU_ASSERT_EQUAL(new->limits[2].revision, old->limits[2].revision + 1);
	/* Another key: another state, the same totals. */
	CU_ASSERT_EQUAL(new->limits[3].slot, old->limits[3].slot);
	CU_ASSERT_NOT_EQUAL(new->limits[3].salt, old->limits[3].salt);
	/* A newcomer gets nobody's slot, the removed one's neither while it may still count. */
	CU_ASSERT_EQUAL(new->limits[0].slot, 4);
	weir_compiled_free(old);
	weir_compiled_free(new);
}

static void too_many_old_and_new_limits_are_refused(void)
{
	struct text first = { 0 }, second = { 0 };
	struct weir_error err = { "" };
	struct weir_compiled *old;
	int code;

	add(&first, "version: 1\nlimits:\n");
	add(&second, "version: 1\nlimits:\n");
	for (int i = 0; i < 200; i++) {
		add(&first, "  - {name: a%d, key: source, bucket: {rate: 1pps}}\n", i);
		add(&second, "  - {name: b%d, key: source, bucket: {rate: 1pps}}\n", i);
	}
	old = compile_text(first.bytes, &code, &err);
	CU_ASSERT_PTR_NULL(next_of(old, second.bytes, &code, &err));
	CU_ASSERT_EQUAL(code, -E2BIG);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "limit b56:"));
	weir_compiled_free(old);
	free(first.bytes);
	free(second.bytes);
}

WEIR_TESTS("compile", TEST(a_dimension_that_no_limit_uses_is_left_out),
	   TEST(too_many_kinds_of_ports_are_refused), TEST(bucket_conf_agrees_with_the_library),
	   TEST(bucket_conf_is_exact), TEST(words_block_and_unlimited),
	   TEST(too_long_a_burst_is_refused), TEST(keys_and_flags),
	   TEST(A19_limits_keep_slot_and_salt), TEST(too_many_old_and_new_limits_are_refused))
