// SPDX-License-Identifier: GPL-2.0
/*
 * A `weir set` cut off by kill -9 between any two stores: each setting that is there on the way
 * must admit no more than the old one or no more than the new one. And what a reload begins anew.
 */
#include "harness.h"

#include "controller/compile.h"
#include "controller/generation.h"
#include "fake_dataplane.h"
#include "store_trap.h"

#define SECOND (1000000000ULL << WEIR_TICK_SHIFT)
#define WITHOUT_END UINT64_MAX
#define SETTINGS_MAX 16

/* The settings that a change goes through, each once, from the old one to the new one. */
static struct {
	struct weir_limit *live;
	struct weir_limit setting[SETTINGS_MAX];
	size_t count;
} way;

static struct weir_limit compiled(const char *kind)
{
	struct weir_policy *policy = NULL;
	struct weir_error err = { "" };
	struct weir_limit limit = { 0 };
	char text[256];

	snprintf(text, sizeof(text),
		 "version: 1\ninterfaces: [{name: w0}]\nlimits:\n"
		 "  - {name: per-ip, key: source, %s}\n",
		 kind);
	if (weir_policy_load_text(text, strlen(text), "test", &policy, &err) ||
	    weir_compile_limit(policy, policy->limits, 0, &limit, &err))
		printf("  %s\n", err.text), abort();
	weir_policy_free(policy);
	if (limit.kind == WEIR_KIND_SLIDING)
		limit.sliding.capacity = 1024;
	return limit;
}

static void note(void)
{
	if (way.count && !memcmp(&way.setting[way.count - 1], way.live, sizeof(*way.live)))
		return;
	if (way.count == SETTINGS_MAX)
		abort();
	way.setting[way.count++] = *way.live;
}

static void walk(const struct weir_limit *from, const struct weir_limit *to)
{
	const struct weir_label label = { .name = "per-ip" };
	struct weir_dataplane fake;
	struct weir_generation generation = { &fake, -1, -1 };

	fake_dataplane_make(&fake, 8, 64);
	free(fake.board);
	fake.board = mmap(NULL, sizeof(*fake.board), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CU_ASSERT_FATAL(fake.board != MAP_FAILED);
	way.live = fake_limit_add(&fake, "per-ip", "", 0);
	*way.live = *from;
	way.count = 0;
	note();
	store_trap_on(way.live, sizeof(*way.live), note);
	weir_generation_set(&generation, 0, to, &label);
	store_trap_off();
	munmap(fake.board, sizeof(*fake.board));
	fake.board = NULL;
	fake_dataplane_free(&fake);
}

/* What a key that is new gets in a stretch of so many ticks. */
static uint64_t admits(const struct weir_limit *limit, uint64_t ticks)
{
	uint64_t cost;

	if (limit->flags & WEIR_LIMIT_BLOCK)
		return 0;
	if (limit->flags & (WEIR_LIMIT_UNLIMITED | WEIR_LIMIT_MONITOR))
		return WITHOUT_END;
	switch (limit->kind) {
	case WEIR_KIND_BUCKET:
		cost = weir_bucket_cost(&limit->bucket, 1);
		return cost ? (limit->bucket.burst_ticks + ticks) / cost : WITHOUT_END;
	case WEIR_KIND_SLIDING:
		return limit->sliding.quota * (1 + ticks / limit->sliding.window);
	case WEIR_KIND_PERIOD:
		CU_ASSERT(limit->period.phase < limit->period.period);
		return limit->period.quota * (1 + ticks / limit->period.period);
	default:
		return limit->gate.limit;
	}
}

static const uint64_t stretches[] = { 0, SECOND / 100, SECOND, 3600 * SECOND };

static void both_ways(const char *a, const char *b)
{
	const struct weir_limit limits[] = { compiled(a), compiled(b) };

	for (int i = 0; i < 2; i++) {
		const struct weir_limit *first = way.setting, *last;

		walk(&limits[i], &limits[!i]);
		CU_ASSERT_FATAL(way.count > 2);
		last = first + way.count - 1;
		CU_ASSERT(!memcmp(last->words, limits[!i].words, sizeof(last->words)));
		CU_ASSERT_EQUAL(last->flags, limits[!i].flags);
		CU_ASSERT_EQUAL(last->revision, first->revision + 1);
		for (size_t at = 1; at + 1 < way.count; at++) {
			const struct weir_limit *half = first + at;
			bool as_old = true, as_new = true;

			for (size_t j = 0; j < sizeof(stretches) / sizeof(stretches[0]); j++) {
				uint64_t got = admits(half, stretches[j]);

				as_old &= got <= admits(first, stretches[j]);
				as_new &= got <= admits(last, stretches[j]);
			}
			CU_ASSERT(as_old || as_new);
			if (!as_old && !as_new)
				printf("  %s, %s: setting %zu of %zu\n", i ? b : a, i ? a : b, at,
				       way.count);
		}
	}
}

static void half_a_bucket_admits_no_more(void)
{
	both_ways("bucket: {rate: 1000pps, burst: 1000}", "bucket: {rate: 1/s, burst: 1000}");
	both_ways("bucket: {rate: 1000pps, burst: 1000}", "bucket: {rate: 900pps, burst: 9}");
	both_ways("bucket: {rate: 1000pps, burst: 1000}", "bucket: {rate: 1000pps, burst: 50}");
	both_ways("bucket: {rate: 1000pps, burst: 10}", "bucket: {rate: 900pps, burst: 9000}");
	both_ways("bucket: {rate: 10gbit, burst: 1mbyte}", "bucket: {rate: 9kbit, burst: 9kbyte}");
}

static void half_a_block_admits_no_more(void)
{
	both_ways("bucket: {rate: 1000pps, burst: 1000}", "bucket: {rate: block}");
	both_ways("bucket: {rate: 1000pps, burst: 1000}", "bucket: {rate: unlimited}");
	both_ways("bucket: {rate: block}, mode: monitor", "bucket: {rate: 10pps, burst: 10}");
	both_ways("gate: {limit: 50}, match: {proto: tcp}",
		  "gate: {limit: block}, match: {proto: tcp}");
}

static void half_a_window_admits_no_more(void)
{
	both_ways("sliding: {quota: 10, window: 1s}", "sliding: {quota: 1000, window: 1h}");
	both_ways("sliding: {quota: 10, window: 1h}", "sliding: {quota: 1000, window: 1s}");
	both_ways("period: {quota: 10, period: 1m}", "period: {quota: 1000, period: 1d}");
	both_ways("period: {quota: 10, period: 1m, align: true}",
		  "period: {quota: 1000, period: 1d, align: true}");
}

/* ---- samples ---- */

static void apply(struct weir_generation *generation, const char *sample)
{
	const struct weir_compiled_before nothing = { 0 };
	const uint32_t slots[] = { 0 };
	struct weir_compiled *compiled = NULL;
	struct weir_policy *policy = NULL;
	struct weir_error err = { "" };
	char text[256];

	snprintf(text, sizeof(text),
		 "version: 1\nsample: %s\ninterfaces: [{name: w0}]\nlimits:\n"
		 "  - {name: per-ip, key: source, bucket: {rate: 10pps}}\n",
		 sample);
	CU_ASSERT_EQUAL_FATAL(weir_policy_load_text(text, strlen(text), "test", &policy, &err), 0);
	CU_ASSERT_EQUAL_FATAL(weir_compile(policy, &nothing, slots, 1, 0, &compiled, &err), 0);
	CU_ASSERT_EQUAL(weir_generation_apply(generation, compiled, &err), 0);
	weir_compiled_free(compiled);
	weir_policy_free(policy);
}

/* A sampler that waits for the next event of the old policy, a day off or never, has a new one. */
static void another_sample_acts_at_once(void)
{
	const uint64_t later = 86400ULL * 1000000000;
	struct weir_dataplane fake;
	struct weir_generation generation = { &fake, -1, -1 };

	fake_dataplane_make(&fake, 8, 64);
	fake.rows = calloc(2 * WEIR_ROWS, sizeof(*fake.rows));
	fake.ports = calloc((size_t)4 * WEIR_PORT_WORDS, sizeof(*fake.ports));
	apply(&generation, "block");
	for (int cpu = 0; cpu < FAKE_CPUS; cpu++)
		CU_ASSERT_TRUE(fake.cpus[cpu].sampler.next_ns > 100 * 366 * later);
	apply(&generation, "1/d");
	for (int cpu = 0; cpu < FAKE_CPUS; cpu++) {
		CU_ASSERT_EQUAL(fake.cpus[cpu].sampler.next_ns, 0);
		fake.cpus[cpu].sampler.next_ns = later;
		fake.cpus[cpu].sampler.suppressed = 7;
	}
	apply(&generation, "100pps");
	for (int cpu = 0; cpu < FAKE_CPUS; cpu++) {
		CU_ASSERT_EQUAL(fake.cpus[cpu].sampler.next_ns, 0);
		CU_ASSERT_EQUAL(fake.cpus[cpu].sampler.suppressed, 7);
	}
	free(fake.rows);
	free(fake.ports);
	fake_dataplane_free(&fake);
}

WEIR_TESTS("generation", TEST(half_a_bucket_admits_no_more), TEST(half_a_block_admits_no_more),
	   TEST(half_a_window_admits_no_more), TEST(another_sample_acts_at_once))
