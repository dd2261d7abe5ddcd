// SPDX-License-Identifier: GPL-2.0
/* Period in the kernel: against its own code in user space, both CPUs at once, live changes. */
#include "harness.h"
#include "kernel/rig_limits.h"
#include "random.h"

#include <linux/bpf.h>

#define SECOND WEIR_NS_PER_SEC
#define SOURCES 6
#define PACKETS 20000
#define PACKETS_MAX 8 /* of one frame */

static struct rig rig, both;

/* A limit with fresh state. */
static struct weir_limit fresh(uint32_t quota, uint64_t period_ns)
{
	struct weir_limit limit = { .key = WEIR_KEY_SOURCE, RIG_SOURCE_MASKS,
				    .salt = rig_salt() };

	rig_period(&limit, quota, period_ns);
	return limit;
}

/* How many of n packets at one instant pass. */
static uint32_t passed_of(uint32_t n)
{
	uint64_t before = rig_totals(&rig, 0).passed_packets;
	struct frame frame;

	rig_frame(&frame, "198.51.100.7", IPPROTO_UDP, 0);
	CU_ASSERT_TRUE(rig_send(&rig, frame.bytes, frame.size, n) >= 0);
	return (uint32_t)(rig_totals(&rig, 0).passed_packets - before);
}

/* ---- kernel and user space ---- */

static struct weir_limit random_limit(uint64_t *seed)
{
	uint64_t longest_ns = 1ULL << random_below(seed, 50);
	struct weir_limit limit = fresh((uint32_t)random_below(seed, 10),
					1 + random_below(seed, longest_ns));

	if (!random_below(seed, 10))
		limit.period.quota = (uint32_t)random_below(seed, 100);
	limit.period.align = random_below(seed, 2);
	if (limit.period.align)
		limit.period.phase = random_below(seed, limit.period.period);
	if (random_below(seed, 2)) {
		limit.flags = WEIR_LIMIT_BYTES;
		limit.period.quota *= 500;
	}
	return limit;
}

/* So that a period sees a few times its quota, now and then one passes without a packet. */
static uint64_t random_gap(uint64_t *seed, const struct weir_limit *limit)
{
	uint64_t period_ns = (limit->period.period >> WEIR_TICK_SHIFT) + 1;

	switch (random_below(seed, 16)) {
	case 0:
		return period_ns;
	case 1:
		return period_ns - 1;
	case 2:
		return random_below(seed, 3 * period_ns);
	default:
		return random_below(seed, period_ns / 16 + 2);
	}
}

static bool model(struct weir_period_state *state, const struct weir_limit *limit,
		  uint64_t now_ticks, uint64_t n)
{
	if (weir_period_peek(state, &limit->period, now_ticks, n) == WEIR_QUOTA_OVER)
		return false;
	weir_period_step(state, &limit->period, now_ticks, n);
	return true;
}

static void agrees_with_user_space(void)
{
	static const char *const addresses[SOURCES] = { "192.0.2.1", "192.0.2.2", "203.0.113.9",
							"198.18.0.1", "198.18.0.2", "198.18.0.3" };
	struct weir_period_state states[SOURCES];
	uint64_t seed = 7, verdicts[2] = { 0 }, wrong = 0;
	struct weir_limit limit;

	rig_begin(&rig, RIG_WEIR, 4096);
	rig_cut_frames(&rig, true);
	for (int i = 0; i < PACKETS; i++) {
		uint32_t most = random_below(&seed, 3) ? 1 : PACKETS_MAX;
		uint32_t packets = 1 + (uint32_t)random_below(&seed, most);
		size_t source = random_below(&seed, SOURCES);
		struct frame frame;
		uint64_t cost;
		bool expected;

		if (i % 200 == 0) {
			*rig.now_ns = RIG_START_NS;
			limit = random_limit(&seed);
			rig_put(&rig, &limit, 1);
			memset(states, 0, sizeof(states));
		}
		*rig.now_ns += random_gap(&seed, &limit);
		cost = packets * (limit.flags ? RIG_PART_BYTES + 42 : 1);
		expected = model(&states[source], &limit, RIG_TICKS(*rig.now_ns), cost);
		rig_frame_of(&frame, addresses[source], packets);
		wrong += rig_send(&rig, frame.bytes, frame.size, 1) !=
			 (expected ? XDP_PASS : XDP_DROP);
		verdicts[expected]++;
	}
	rig_cut_frames(&rig, false);
	printf("  %d packets: %" PRIu64 " passed, %" PRIu64 " refused, %" PRIu64 " differ\n",
	       PACKETS, verdicts[1], verdicts[0], wrong);
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_TRUE(verdicts[0] > PACKETS / 10 && verdicts[1] > PACKETS / 10);
}

/* ---- edges ---- */

static void d4_d7_every_period_has_its_quota(void)
{
	static const uint32_t quotas[] = { 1, 2, 7, 1000, 4096 };

	rig_begin(&rig, RIG_WEIR, 4096);
	for (size_t i = 0; i < sizeof(quotas) / sizeof(quotas[0]); i++) {
		struct weir_limit limit = fresh(quotas[i], SECOND);

		rig_put(&rig, &limit, 1);
		for (int period = 0; period < 4; period++) {
			CU_ASSERT_EQUAL(passed_of(quotas[i]), quotas[i]);
			*rig.now_ns += SECOND - 1;
			CU_ASSERT_EQUAL(passed_of(5), 0);
			*rig.now_ns += 1;
		}
	}
}

/* D14: 60 s and a day, packet by packet over many of them. */
static void d14_long_periods_end(void)
{
	static const uint64_t periods[] = { 60 * SECOND, 86400 * SECOND };

	rig_begin(&rig, RIG_WEIR, 4096);
	for (int i = 0; i < 2; i++) {
		struct weir_limit limit = fresh(10, periods[i]);
		uint32_t passed = 0;

		rig_put(&rig, &limit, 1);
		for (int step = 0; step < 3000; step++) {
			passed += passed_of(1);
			*rig.now_ns += periods[i] / 30;
		}
		CU_ASSERT_EQUAL(passed, 100 * 10);
	}
}

/* 1d with align ends at midnight: the phase is where midnight falls on the kernel's clock. */
static void aligned_periods_end_at_their_phase(void)
{
	struct weir_limit limit = fresh(5, 100 * SECOND);

	rig_begin(&rig, RIG_WEIR, 4096);
	limit.period.align = 1;
	limit.period.phase = RIG_TICKS(30 * SECOND);
	*rig.now_ns = 1050 * SECOND;
	rig_put(&rig, &limit, 1);
	CU_ASSERT_EQUAL(passed_of(9), 5);
	*rig.now_ns = 1130 * SECOND - 1;
	CU_ASSERT_EQUAL(passed_of(9), 0);
	*rig.now_ns += 1;
	CU_ASSERT_EQUAL(passed_of(9), 5);
	*rig.now_ns = 1230 * SECOND - 1;
	CU_ASSERT_EQUAL(passed_of(9), 0);
	/* The wall clock was set: midnight is 20 s later from now on. */
	limit.period.phase = RIG_TICKS(50 * SECOND);
	rig_put(&rig, &limit, 1);
	*rig.now_ns = 1250 * SECOND - 1;
	CU_ASSERT_EQUAL(passed_of(9), 5);
	*rig.now_ns += 1;
	CU_ASSERT_EQUAL(passed_of(9), 5);
}

static void b5_changes_act_at_once(void)
{
	struct weir_limit limit = fresh(10, 86400 * SECOND);

	rig_begin(&rig, RIG_WEIR, 4096);
	rig_put(&rig, &limit, 1);
	CU_ASSERT_EQUAL(passed_of(20), 10);
	limit.period.quota = 15;
	rig_put(&rig, &limit, 1);
	CU_ASSERT_EQUAL(passed_of(20), 5);
	limit.period.quota = 3;
	rig_put(&rig, &limit, 1);
	CU_ASSERT_EQUAL(passed_of(20), 0);
	/* A shorter period begins with the change, and its end does not move on with refusals. */
	limit.period.period = RIG_TICKS(SECOND);
	rig_put(&rig, &limit, 1);
	for (int i = 0; i < 10; i++) {
		CU_ASSERT_EQUAL(passed_of(2), 0);
		*rig.now_ns += SECOND / 10;
	}
	CU_ASSERT_EQUAL(passed_of(20), 3);
	/* A longer one is that of the next. */
	limit.period.period = RIG_TICKS(10 * SECOND);
	rig_put(&rig, &limit, 1);
	*rig.now_ns += SECOND;
	CU_ASSERT_EQUAL(passed_of(20), 3);
	*rig.now_ns += 10 * SECOND - 1;
	CU_ASSERT_EQUAL(passed_of(20), 0);
	*rig.now_ns += 1;
	CU_ASSERT_EQUAL(passed_of(20), 3);
}

/* B1: pushes of the same setting, a thousand in one period. */
static void b1_pushes_refill_nothing(void)
{
	struct weir_limit limit = fresh(50, SECOND);
	uint32_t passed = 0;

	rig_begin(&rig, RIG_WEIR, 4096);
	for (int i = 0; i < 1000; i++) {
		rig_put(&rig, &limit, 1);
		passed += passed_of(2);
		*rig.now_ns += SECOND / 1000;
	}
	CU_ASSERT_EQUAL(passed, 50);
}

static void d15_clock_steps(void)
{
	struct weir_limit limit = fresh(10, SECOND);

	rig_begin(&rig, RIG_WEIR, 4096);
	rig_put(&rig, &limit, 1);
	CU_ASSERT_EQUAL(passed_of(20), 10);
	/* Back: the period that was open goes on, for no longer than one. */
	*rig.now_ns -= 5 * SECOND;
	CU_ASSERT_EQUAL(passed_of(20), 0);
	*rig.now_ns += SECOND;
	CU_ASSERT_EQUAL(passed_of(20), 10);
	*rig.now_ns += 3600 * SECOND;
	CU_ASSERT_EQUAL(passed_of(20), 10);
}

/* ---- both CPUs at once, the clock going on all the time ---- */

#define BOTH_PACKETS 999999 /* a CPU: the last one is just within a period */
#define BOTH_STEP_NS 100
#define BOTH_PERIOD_NS 10000
#define BOTH_QUOTA 20

/* D3: what both CPUs pass of one key in many periods, none of them idle; and how many those are. */
static uint64_t flood(bool align, uint64_t *periods)
{
	struct weir_limit limit = fresh(BOTH_QUOTA, BOTH_PERIOD_NS);
	struct drive_cpu plan = { .count = 1, .step_ns = BOTH_STEP_NS };
	struct weir_totals before, after;

	rig_begin(&both, RIG_DRIVE, 1024);
	limit.period.align = align;
	rig_put(&both, &limit, 1);
	before = rig_totals(&both, 0);
	rig_plan(&both, &plan);
	CU_ASSERT_EQUAL(rig_drive_both(&both, BOTH_PACKETS, NULL), 0);
	after = rig_totals(&both, 0);
	*periods = (*both.now_ns - RIG_START_NS + BOTH_PERIOD_NS - 1) / BOTH_PERIOD_NS;
	printf("  both CPUs, %s: %u passed in %" PRIu64 " periods of %d, %" PRIu64 " contended\n",
	       align ? "aligned" : "not aligned", rig_verdict(&both, 0).passed, *periods, BOTH_QUOTA,
	       after.contended_packets - before.contended_packets);
	CU_ASSERT_EQUAL(after.passed_packets - before.passed_packets, rig_verdict(&both, 0).passed);
	return rig_verdict(&both, 0).passed;
}

static void d3_both_cpus_share_aligned_periods(void)
{
	uint64_t periods, passed = flood(true, &periods);

	CU_ASSERT_EQUAL(passed, periods * BOTH_QUOTA);
}

/* A period opens with a packet, so up to one step of each CPU late. */
static void d3_both_cpus_share_periods(void)
{
	uint64_t periods, passed = flood(false, &periods);

	CU_ASSERT_TRUE(passed <= periods * BOTH_QUOTA);
	CU_ASSERT_TRUE(passed >= periods * BOTH_QUOTA * 95 / 100);
}

static void zero_admits_nothing(void)
{
	struct weir_limit limit = fresh(0, SECOND);

	rig_begin(&rig, RIG_WEIR, 4096);
	rig_put(&rig, &limit, 1);
	CU_ASSERT_EQUAL(passed_of(20), 0);
}

WEIR_TESTS("kernel period", TEST(agrees_with_user_space),
	   TEST(d4_d7_every_period_has_its_quota), TEST(d14_long_periods_end),
	   TEST(aligned_periods_end_at_their_phase), TEST(b5_changes_act_at_once),
	   TEST(b1_pushes_refill_nothing), TEST(d15_clock_steps),
	   TEST(d3_both_cpus_share_aligned_periods), TEST(d3_both_cpus_share_periods),
	   TEST(zero_admits_nothing))
