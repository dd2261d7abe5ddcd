// SPDX-License-Identifier: GPL-2.0
/* The ledger in the kernel: two CPUs at once, more sources than places. */
#include "harness.h"
#include "kernel/rig.h"
#include "weir/place.h"

#include <sched.h>

#define SECOND WEIR_NS_PER_SEC
#define NEVER (1.0 / 86400) /* a rate that gives nothing back during a test */

static void open_with(struct rig *rig, uint32_t keys, const struct rig_limit *limit)
{
	rig_open(rig, RIG_DRIVE, keys);
	CU_ASSERT_EQUAL_FATAL(rig_set(rig, limit), 0);
}

static struct weir_totals totals_of(const struct rig *rig)
{
	return weir_dataplane_totals(&rig->plane, 0);
}

/* ---- one source, both CPUs ---- */

#define STEP_NS (SECOND / 10)
#define STEP_PACKETS 400 /* a CPU between two steps: more than a step gives back */
static uint32_t steps;

/* Moves the clock while both CPUs send, as fast as they keep the bucket empty. */
static void step_clock(struct rig *rig)
{
	int cpus[2];

	steps = 0;
	CU_ASSERT_EQUAL_FATAL(rig_cpus(cpus), 0);
	for (;;) {
		const volatile struct drive_cpu *a = &rig->drive[cpus[0]];
		const volatile struct drive_cpu *b = &rig->drive[cpus[1]];
		uint64_t next_a = a->sent + STEP_PACKETS, next_b = b->sent + STEP_PACKETS;

		if (next_a + STEP_PACKETS > a->until || next_b + STEP_PACKETS > b->until)
			return;
		while (a->sent < next_a || b->sent < next_b)
			sched_yield();
		*rig->now_ns += STEP_NS;
		steps++;
	}
}

static void d11_both_cpus_share_one_bucket(void)
{
	struct rig_limit limit = { .rate = 1000, .burst = 500, .key = WEIR_KEY_SOURCE };
	struct drive_cpu plan = { .count = 1 };
	struct rig rig;
	uint64_t expected;

	open_with(&rig, 1024, &limit);
	rig_plan(&rig, &plan);
	CU_ASSERT_EQUAL(rig_drive_both(&rig, 6000000, step_clock), 0);
	expected = 500 + 100 * (uint64_t)steps;
	printf("  both CPUs, one source, %u steps of the clock: %u passed, %" PRIu64
	       " = burst + rate * t, %" PRIu64 " contended\n",
	       steps, rig_verdict(&rig, 0).passed, expected, totals_of(&rig).contended_packets);
	CU_ASSERT_TRUE(steps > 2); /* hundreds, but at a load of 12 once 20 */
	CU_ASSERT_TRUE(rig_verdict(&rig, 0).passed >= expected - 1);
	CU_ASSERT_TRUE(rig_verdict(&rig, 0).passed <= expected + 1);
	CU_ASSERT_EQUAL(rig_ledger_check(&rig), 1);
	rig_close(&rig);
}

/* The instant at which the bucket is full again, from both CPUs. */
static void d3_burst_at_the_edge(void)
{
	struct rig_limit limit = { .rate = 1000, .burst = 200, .key = WEIR_KEY_SOURCE };
	struct drive_cpu plan = { .count = 1 };
	struct rig rig;

	open_with(&rig, 1024, &limit);
	for (int i = 0; i < 5; i++) {
		rig_plan(&rig, &plan);
		CU_ASSERT_EQUAL(rig_drive_both(&rig, 20000, NULL), 0);
		CU_ASSERT_EQUAL(rig_verdict(&rig, 0).passed, 200);
		*rig.now_ns += SECOND / 5;
	}
	rig_close(&rig);
}

/* A key's own counts, in its place and in the fronts, are exact too. */
static void d2_counts_of_a_key_are_exact(void)
{
	struct rig_limit limit = { .rate = NEVER, .burst = 300, .key = WEIR_KEY_SOURCE };
	struct drive_cpu plan = { .count = 1 };
	uint64_t passed = 0, refused = 0;
	struct rig rig;

	open_with(&rig, 1024, &limit);
	rig_plan(&rig, &plan);
	CU_ASSERT_EQUAL(rig_drive_both(&rig, 200000, NULL), 0);
	for (uint32_t i = 0; i < rig.plane.shape.sets; i++) {
		for (int way = 0; way < WEIR_WAYS; way++) {
			passed += weir_passed_count(rig.plane.ledger[i].counts[way].passed);
			refused += rig.plane.ledger[i].counts[way].refused;
		}
	}
	for (uint32_t i = 0; i < rig.plane.shape.front_slots * rig.plane.shape.cpus; i++)
		refused += rig.plane.front[i].refused;
	CU_ASSERT_EQUAL(passed, 300);
	CU_ASSERT_EQUAL(passed + refused + totals_of(&rig).contended_packets, 400000);
	rig_close(&rig);
}

/* ---- the same new keys from both CPUs ---- */

#define SHARED_KEYS 100000
#define SHARED_ROUNDS 4

static void new_keys_once(uint64_t salt)
{
	struct rig_limit limit = {
		.rate = NEVER, .burst = 3, .key = WEIR_KEY_SOURCE, .salt = salt
	};
	/* The clock moves: a place given back is free again from the next tick on. */
	struct drive_cpu plan = { .count = SHARED_KEYS, .stride = 1, .step_ns = 1 };
	struct weir_totals totals;
	uint64_t wrong = 0;
	struct rig rig;

	open_with(&rig, WEIR_KEYS_DEFAULT, &limit);
	rig_plan(&rig, &plan);
	CU_ASSERT_EQUAL(rig_drive_both(&rig, SHARED_KEYS * SHARED_ROUNDS, NULL), 0);
	for (uint32_t i = 0; i < SHARED_KEYS; i++)
		wrong += rig_verdict(&rig, i).passed != 3 ||
			 rig_verdict(&rig, i).refused != 2 * SHARED_ROUNDS - 3;
	totals = totals_of(&rig);
	printf("  both CPUs, the same %d new keys: %" PRIu64 " not admitted exactly 3 times, "
	       "%" PRIu64 " contended\n",
	       SHARED_KEYS, wrong, totals.contended_packets);
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_EQUAL(rig_ledger_check(&rig), SHARED_KEYS);
	CU_ASSERT_EQUAL(totals.new_keys, SHARED_KEYS);
	CU_ASSERT_EQUAL(totals.passed_packets, 3 * SHARED_KEYS);
	CU_ASSERT_EQUAL(totals.untracked_packets, 0);
	rig_close(&rig);
}

static void new_keys_from_both_cpus_get_one_place(void)
{
	new_keys_once(1);
	new_keys_once(2);
}

/* ---- more sources than places ---- */

#define SPOOFED 1000000

static void offender_among(double rate, uint64_t *untracked)
{
	struct rig_limit limit = { .rate = rate, .burst = 10, .key = WEIR_KEY_SOURCE };
	struct drive_cpu plan = {
		.from = 1, .count = SPOOFED, .stride = 1, .hot_every = 11, .step_ns = 1000
	};
	uint64_t packets = SPOOFED / 10 * 11;
	double seconds = (double)packets * 1e-6;
	struct weir_totals totals;
	struct rig_sum sum;
	struct rig rig;

	open_with(&rig, 4096, &limit);
	rig_plan(&rig, &plan);
	CU_ASSERT_EQUAL(rig_drive(&rig, packets), 0);
	totals = totals_of(&rig);
	sum = rig_sum(&rig);
	*untracked = totals.untracked_packets;
	printf("  %d spoofed sources through 4096 places, %.0f pps each: the offender sent %u, "
	       "passed %u, %" PRIu64 " untracked\n",
	       SPOOFED, rate, rig_verdict(&rig, 0).passed + rig_verdict(&rig, 0).refused,
	       rig_verdict(&rig, 0).passed, *untracked);
	CU_ASSERT_TRUE(rig_verdict(&rig, 0).passed <= 10 + rate * seconds + 1);
	CU_ASSERT_TRUE(rig_verdict(&rig, 0).passed >= 10 + rate * seconds - 1);
	CU_ASSERT_EQUAL(sum.passed, SPOOFED + rig_verdict(&rig, 0).passed);
	CU_ASSERT_EQUAL(sum.passed, totals.passed_packets);
	CU_ASSERT_EQUAL(sum.refused, totals.refused_packets);
	CU_ASSERT_EQUAL(totals.contended_packets, 0);
	rig_close(&rig);
}

static void d8_offender_stays_refused_among_a_million(void)
{
	uint64_t untracked;

	/* A spoofed source is forgotten after 1 ms: some 900 at a time hold a place. */
	offender_among(1000, &untracked);
	CU_ASSERT_TRUE(untracked <= SPOOFED / 1000);
	/* After 10 ms: twice what there is room for. */
	offender_among(100, &untracked);
	CU_ASSERT_TRUE(untracked > SPOOFED / 3);
}

static void untracked_follows(uint8_t flags)
{
	struct rig_limit limit = {
		.rate = NEVER, .burst = 1, .key = WEIR_KEY_SOURCE, .flags = flags
	};
	struct drive_cpu plan = { .count = 5000, .stride = 1 };
	struct weir_totals totals;
	uint64_t places, left_out;
	struct rig rig;

	open_with(&rig, 1024, &limit);
	rig_plan(&rig, &plan);
	places = (uint64_t)rig.plane.shape.sets * WEIR_WAYS;
	CU_ASSERT_EQUAL(rig_drive(&rig, 5000), 0);
	totals = totals_of(&rig);
	left_out = totals.untracked_packets;
	CU_ASSERT_EQUAL(places, 1024);
	CU_ASSERT_EQUAL(totals.new_keys, 5000 - left_out);
	CU_ASSERT_EQUAL(rig_ledger_check(&rig), (long)totals.new_keys);
	CU_ASSERT_TRUE(totals.new_keys <= places && totals.new_keys > places * 95 / 100);
	CU_ASSERT_EQUAL(totals.refused_packets, flags ? left_out : 0);
	CU_ASSERT_EQUAL(totals.passed_packets, flags ? totals.new_keys : 5000);
	/* Once more: who has a place is over its limit, the rest is still untracked. */
	CU_ASSERT_EQUAL(rig_drive(&rig, 5000), 0);
	totals = totals_of(&rig);
	CU_ASSERT_EQUAL(totals.untracked_packets, 2 * left_out);
	CU_ASSERT_EQUAL(totals.passed_packets, flags ? totals.new_keys : 5000 + left_out);
	rig_close(&rig);
}

static void d8_full_sets_follow_untracked(void)
{
	untracked_follows(0);
	untracked_follows(WEIR_LIMIT_UNTRACKED_DROPS);
}

/* Totals don't come from the table: they stay right while it turns over. */
static void d1_d10_totals_equal_what_was_sent(void)
{
	struct rig_limit limit = { .rate = 1000, .burst = 1, .key = WEIR_KEY_SOURCE };
	struct drive_cpu plan = { .count = 50000, .stride = 7919, .step_ns = 100 };
	struct weir_traffic traffic;
	struct weir_totals totals;
	struct rig_sum sum;
	struct rig rig;

	open_with(&rig, 1024, &limit);
	rig_plan(&rig, &plan);
	CU_ASSERT_EQUAL(rig_drive_both(&rig, 500000, NULL), 0);
	totals = totals_of(&rig);
	traffic = weir_dataplane_traffic(&rig.plane, 0, WEIR_HOOK_XDP);
	sum = rig_sum(&rig);
	CU_ASSERT_EQUAL(sum.passed + sum.refused, 1000000);
	CU_ASSERT_EQUAL(totals.passed_packets, sum.passed);
	CU_ASSERT_EQUAL(totals.refused_packets, sum.refused);
	CU_ASSERT_EQUAL(totals.passed_bytes + totals.refused_bytes, 60 * 1000000);
	CU_ASSERT_EQUAL(traffic.frames[WEIR_PATH_LIMITS], sum.passed);
	CU_ASSERT_EQUAL(traffic.frames[WEIR_PATH_REFUSED], sum.refused);
	CU_ASSERT_TRUE(totals.new_keys > 50000);
	CU_ASSERT_TRUE(rig_ledger_check(&rig) > 0);
	rig_close(&rig);
}

/* ---- room ---- */

#define NEWCOMERS 100000
#define ROOM_KEYS (64 * 1024)

/* The share of newcomers without a place, with `percent` of the places held for ever. */
static double share_untracked(unsigned int percent)
{
	struct rig_limit keep = { .rate = NEVER, .burst = 1, .key = WEIR_KEY_SOURCE, .salt = 1 };
	struct rig_limit pass = { .rate = 1e9, .burst = 1, .key = WEIR_KEY_SOURCE, .salt = 2 };
	struct drive_cpu plan = { .count = ROOM_KEYS, .stride = 1 };
	uint32_t goal = ROOM_KEYS / 100 * percent, taken;
	uint64_t before;
	struct rig rig;

	open_with(&rig, ROOM_KEYS, &keep);
	rig_plan(&rig, &plan);
	while ((taken = rig_ledger_taken(&rig)) < goal)
		CU_ASSERT_EQUAL_FATAL(rig_drive(&rig, goal - taken), 0);
	before = totals_of(&rig).untracked_packets;
	plan = (struct drive_cpu){ .count = NEWCOMERS, .stride = 1, .step_ns = 1000 };
	rig_plan(&rig, &plan);
	CU_ASSERT_EQUAL(rig_set(&rig, &pass), 0);
	CU_ASSERT_EQUAL(rig_drive(&rig, NEWCOMERS), 0);
	CU_ASSERT_EQUAL(rig_ledger_taken(&rig) / 10, taken / 10);
	before = totals_of(&rig).untracked_packets - before;
	rig_close(&rig);
	return (double)before / NEWCOMERS;
}

static void newcomers_find_room(void)
{
	static const struct {
		unsigned int percent;
		double most;
	} rows[] = { { 50, 0.0001 }, { 70, 0.001 }, { 80, 0.03 }, { 90, 0.3 } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		double share = share_untracked(rows[i].percent);

		printf("  %u%% held by keys that can't be forgotten: %.4f%% of newcomers "
		       "untracked\n",
		       rows[i].percent, share * 100);
		CU_ASSERT_TRUE(share <= rows[i].most);
	}
}

WEIR_TESTS("kernel ledger", TEST(d11_both_cpus_share_one_bucket), TEST(d3_burst_at_the_edge),
	   TEST(d2_counts_of_a_key_are_exact), TEST(new_keys_from_both_cpus_get_one_place),
	   TEST(d8_offender_stays_refused_among_a_million), TEST(d8_full_sets_follow_untracked),
	   TEST(d1_d10_totals_equal_what_was_sent), TEST(newcomers_find_room))
