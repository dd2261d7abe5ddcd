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

static void confs_of_the_other_kinds(void)
{
	struct weir_error err;
	int code;
	struct weir_compiled *compiled = compile_text(
		"version: 1\nledger: {keys: 4096}\nlimits:\n"
		"  - {name: s, key: destination, sliding: {quota: 100, window: 2s}}\n"
		"  - {name: p, key: source+port, period: {quota: 7, period: 1h},"
		" ban: {after: 100 refusals in 10s, for: 10m}}\n"
		"  - {name: f, key: flow, keys: 5000, bucket: {rate: 1pps}}\n"
		"  - {name: n, key: none, sliding: {quota: 4096, window: 1us}}\n"
		"  - {name: g, key: source, gate: {limit: 50}, match: {proto: tcp}}\n"
		"  - {name: u, key: source, gate: {limit: unlimited}, match: {proto: tcp}}\n",
		&code, &err);
	const struct weir_limit *limit = compiled->limits;

	CU_ASSERT_EQUAL_FATAL(code, 0);
	CU_ASSERT_EQUAL(limit[0].kind, WEIR_KIND_SLIDING);
	CU_ASSERT_EQUAL(limit[0].key, WEIR_KEY_DESTINATION);
	CU_ASSERT_EQUAL(limit[0].sliding.window, 32000000000ULL);
	CU_ASSERT_EQUAL(limit[0].sliding.quota, 100);
	CU_ASSERT_EQUAL(limit[0].sliding.capacity, 128);
	CU_ASSERT_EQUAL(limit[0].own_sets, 512);
	CU_ASSERT_EQUAL(limit[1].kind, WEIR_KIND_PERIOD);
	CU_ASSERT_EQUAL(limit[1].key, WEIR_KEY_SOURCE | WEIR_KEY_SOURCE_PORT);
	CU_ASSERT_EQUAL(limit[1].period.period, 57600000000000ULL);
	CU_ASSERT_EQUAL(limit[1].period.quota, 7);
	CU_ASSERT_EQUAL(limit[1].period.phase, 0);
	CU_ASSERT_EQUAL(limit[1].period.align, 0);
	CU_ASSERT_EQUAL(limit[1].ban_after, 100);
	CU_ASSERT_EQUAL(limit[1].ban_window_ticks, 160000000000ULL);
	CU_ASSERT_EQUAL(limit[1].ban_ticks, 9600000000000ULL);
	CU_ASSERT_EQUAL(limit[1].own_sets, 0);
	CU_ASSERT_EQUAL(limit[2].own_sets, 1024);
	CU_ASSERT_EQUAL(limit[3].own_sets, 2);
	CU_ASSERT_EQUAL(limit[3].sliding.capacity, 4096);
	CU_ASSERT_EQUAL(limit[3].sliding.window, 16000);
	CU_ASSERT_EQUAL(limit[4].gate.limit, 50);
	CU_ASSERT_EQUAL(limit[5].flags, WEIR_LIMIT_UNLIMITED);
	CU_ASSERT_STRING_EQUAL(compiled->labels[0].setting, "sliding quota 100 window 2s");
	CU_ASSERT_STRING_EQUAL(compiled->labels[1].setting,
			       "period quota 7 period 1h align false");
	weir_compiled_free(compiled);
}

/* Every end of an aligned period is a multiple of it on the wall clock, midnight UTC for 1d. */
static void aligned_periods_end_with_the_wall_clocks(void)
{
	static const uint64_t periods_ns[] = { 1000000, 3600000000000, 86400000000000,
					       86400000000000 * 366 };
	static const uint64_t aheads_ns[] = { 0, 1, 86399999999999, 1700000000123456789,
					      4000000000000000000 };

	for (size_t i = 0; i < sizeof(periods_ns) / sizeof(*periods_ns); i++) {
		for (size_t j = 0; j < sizeof(aheads_ns) / sizeof(*aheads_ns); j++) {
			uint64_t period = periods_ns[i] << WEIR_TICK_SHIFT;
			struct weir_period_conf conf = {
				.period = period,
				.phase = weir_compile_phase(period, aheads_ns[j]),
				.align = 1,
			};
			uint64_t end = weir_period_ending(&conf, 123456789012345ULL << 4);

			CU_ASSERT(conf.phase < period);
			CU_ASSERT_EQUAL(end & 15, 0);
			CU_ASSERT_EQUAL(((end >> 4) + aheads_ns[j]) % periods_ns[i], 0);
		}
	}
	CU_ASSERT_TRUE(weir_compile_phase_is_near(5, 57600000000000 - 5, 57600000000000));
	CU_ASSERT_FALSE(weir_compile_phase_is_near(5, 20000000, 57600000000000));
}

/* 64 MiB of rings by default, at least 1024 keys, at most what the shared ledger has. */
static void own_ledgers_are_of_a_sensible_size(void)
{
	struct weir_policy *policy =
		load("version: 1\nlimits:\n"
		     "  - {name: a, key: source, sliding: {quota: 16, window: 1s}}\n"
		     "  - {name: b, key: source, sliding: {quota: 1000, window: 1s}}\n"
		     "  - {name: c, key: source, sliding: {quota: 4096, window: 1s}}\n"
		     "  - {name: d, key: flow, bucket: {rate: 1pps}}\n"
		     "  - {name: e, key: source, bucket: {rate: 1pps}}\n"
		     "  - {name: f, key: flow, keys: 1M, bucket: {rate: 1pps}}\n");
	static const uint64_t keys[] = { 262144, 8192, 2048, 262144, 0, 1048576 };

	for (size_t i = 0; i < policy->limit_count; i++)
		CU_ASSERT_EQUAL(weir_policy_own_keys(policy, &policy->limits[i]), keys[i]);
	weir_policy_free(policy);
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

/* The clock was read a little differently; then it was set. A ring of another size begins anew. */
static void phases_and_rings_stay_while_they_can(void)
{
	static const char text[] =
		"version: 1\nlimits:\n"
		"  - {name: p, key: source, period: {quota: 7, period: 1h, align: true}}\n"
		"  - {name: s, key: source, keys: 1024, sliding: {quota: 20, window: 1s}}\n";
	static const char other[] =
		"version: 1\nlimits:\n"
		"  - {name: p, key: source, period: {quota: 8, period: 1h, align: true}}\n"
		"  - {name: s, key: source, keys: 1024, sliding: {quota: 33, window: 1s}}\n";
	struct weir_compiled *old, *same, *moved;
	uint64_t before_ns = wall_ns;
	struct weir_error err;
	int code;

	old = compile_text(text, &code, &err);
	wall_ns += 900000;
	same = next_of(old, text, &code, &err);
	CU_ASSERT_EQUAL(memcmp(same->limits, old->limits, sizeof(old->limits)), 0);
	wall_ns += 200000;
	moved = next_of(same, other, &code, &err);
	CU_ASSERT_NOT_EQUAL(moved->limits[0].period.phase, old->limits[0].period.phase);
	CU_ASSERT_EQUAL(moved->limits[0].salt, old->limits[0].salt);
	CU_ASSERT_EQUAL(moved->limits[0].revision, old->limits[0].revision + 1);
	CU_ASSERT_NOT_EQUAL(moved->limits[1].salt, old->limits[1].salt);
	CU_ASSERT_NOT_EQUAL(moved->limits[1].slot, old->limits[1].slot);
	wall_ns = before_ns;
	weir_compiled_free(old);
	weir_compiled_free(same);
	weir_compiled_free(moved);
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

/* And one bucket for each source stays plain beside them. */
static void services_are_told_by_their_protocols(void)
{
	static const struct {
		const char *protocols;
		uint32_t services;
	} cases[] = { { "tcp", WEIR_SERVICE_TCP },
		      { "udp", WEIR_SERVICE_UDP },
		      { "[tcp, udp]", WEIR_SERVICE_TCP | WEIR_SERVICE_UDP } };
	struct weir_compiled *compiled;
	struct weir_error err;
	char text[256];
	int code;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(text, sizeof(text),
			 "version: 1\nlimits:\n"
			 "  - {name: a, key: source, bucket: {rate: 1pps}}\n"
			 "services:\n  - {name: web, match: {proto: %s, to_port: 80}}\n",
			 cases[i].protocols);
		compiled = compile_text(text, &code, &err);
		CU_ASSERT_EQUAL_FATAL(code, 0);
		CU_ASSERT_EQUAL(compiled->head.services, cases[i].services);
		CU_ASSERT_EQUAL(compiled->head.plain[WEIR_HOOK_XDP], 1);
		weir_compiled_free(compiled);
	}
}

WEIR_TESTS("compile", TEST(services_are_told_by_their_protocols),
	   TEST(a_dimension_that_no_limit_uses_is_left_out),
	   TEST(too_many_kinds_of_ports_are_refused), TEST(bucket_conf_agrees_with_the_library),
	   TEST(bucket_conf_is_exact), TEST(words_block_and_unlimited),
	   TEST(too_long_a_burst_is_refused), TEST(keys_and_flags), TEST(confs_of_the_other_kinds),
	   TEST(aligned_periods_end_with_the_wall_clocks),
	   TEST(own_ledgers_are_of_a_sensible_size), TEST(phases_and_rings_stay_while_they_can),
	   TEST(A19_limits_keep_slot_and_salt), TEST(too_many_old_and_new_limits_are_refused))
