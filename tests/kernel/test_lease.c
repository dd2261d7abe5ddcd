// SPDX-License-Identifier: GPL-2.0
/* Leases of a bucket with one key for all: two CPUs never pass more than the bucket has. */
#include "harness.h"
#include "kernel/rig_limits.h"

#include <linux/bpf.h>
#include <sched.h>

#define SECOND WEIR_NS_PER_SEC

static struct rig rig, both;

static struct weir_limit fresh(double rate, double burst)
{
	struct weir_limit limit = { .salt = rig_salt() };

	rig_bucket(&limit, rate, burst);
	return limit;
}

static uint64_t cost_of(const struct weir_limit *limit)
{
	return weir_bucket_cost(&limit->bucket, 1);
}

/* ---- both CPUs ---- */

static uint64_t most_outstanding, samples;

static uint64_t outstanding(const struct rig *racing)
{
	uint64_t sum = 0;

	for (uint32_t cpu = 0; cpu < racing->plane.shape.cpus; cpu++)
		sum += *(volatile uint64_t *)&racing->plane.cpus[cpu].leases[0].left_ticks;
	return sum;
}

/* Looks at the leases while both CPUs send. */
static void watch(struct rig *racing)
{
	int cpus[2];

	CU_ASSERT_EQUAL_FATAL(rig_cpus(cpus), 0);
	for (;;) {
		const volatile struct drive_cpu *a = &racing->drive[cpus[0]];
		const volatile struct drive_cpu *b = &racing->drive[cpus[1]];
		uint64_t sum;

		if (a->sent >= a->until && b->sent >= b->until)
			return;
		for (int i = 0; i < 50; i++) {
			sum = outstanding(racing);
			most_outstanding = sum > most_outstanding ? sum : most_outstanding;
			samples++;
		}
		sched_yield();
	}
}

static void race(double rate, double burst, uint64_t packets, uint64_t step_ns)
{
	struct weir_limit limit = fresh(rate, burst);
	struct drive_cpu plan = { .count = 1000, .stride = 1, .step_ns = step_ns };
	uint64_t passed, paid_ticks, had_ticks, left_ticks;
	struct weir_totals totals;

	rig_begin(&both, RIG_DRIVE, 1024);
	rig_reset(&both);
	most_outstanding = samples = 0;
	rig_put(&both, &limit, 1);
	rig_plan(&both, &plan);
	CU_ASSERT_EQUAL(rig_drive_both(&both, packets, watch), 0);
	passed = rig_sum(&both).passed;
	totals = rig_totals(&both, 0);
	left_ticks = outstanding(&both);
	paid_ticks = passed * cost_of(&limit);
	had_ticks = limit.bucket.burst_ticks + RIG_TICKS(*both.now_ns - RIG_START_NS);
	printf("  both CPUs, %.0f/s, burst %.0f: %" PRIu64 " passed of %.0f, most on lease %.3f%% of a "
	       "burst in %" PRIu64 " looks, %" PRIu64 " contended\n",
	       rate, burst, passed, (double)had_ticks / (double)cost_of(&limit),
	       100 * (double)most_outstanding / (double)limit.bucket.burst_ticks, samples,
	       totals.contended_packets);
	CU_ASSERT_EQUAL(passed, totals.passed_packets);
	CU_ASSERT_TRUE(paid_ticks + left_ticks <= had_ticks);
	CU_ASSERT_TRUE(most_outstanding <= limit.bucket.burst_ticks / WEIR_LEASE_SHARE);
	/* Offered more than that all the time, so nothing else may be missing. */
	CU_ASSERT_TRUE(paid_ticks + left_ticks + 64 * cost_of(&limit) +
			       limit.bucket.burst_ticks / WEIR_LEASE_SHARE >= had_ticks);
}

static void never_more_than_the_bucket_has(void)
{
	bool seen = false;

	/* Room for leases half of the time; one is taken when the two get in each other's way. */
	for (int i = 0; i < 10 && !seen; i++) {
		race(4e5, 200000, 200000, 1000);
		seen = most_outstanding > 0;
	}
	CU_ASSERT_TRUE(seen);
	race(5e6, 100000, 200000, 100);
	race(9e6, 2000, 200000, 100);
	race(5e6, 100, 100000, 100); /* too little for a lease */
}

/* ---- one lease, as the CPU may have been left with it ---- */

static uint32_t passed_of(uint32_t n)
{
	uint32_t passed = 0;
	struct frame frame;

	rig_frame(&frame, "192.0.2.1", IPPROTO_UDP, 0);
	for (uint32_t i = 0; i < n; i++)
		passed += rig_send(&rig, frame.bytes, frame.size, 1) == XDP_PASS;
	return passed;
}

/* An empty bucket of 1000 a second and 1000, and a lease of this CPU's for 5 more. */
static struct weir_limit begin(cpu_set_t *before)
{
	struct weir_limit limit = fresh(1000, 1000);
	int cpus[2] = { 0 };

	sched_getaffinity(0, sizeof(*before), before);
	rig_cpus(cpus);
	CU_ASSERT_EQUAL(rig_pin(cpus[0]), 0);
	rig_begin(&rig, RIG_WEIR, 1024);
	rig_reset(&rig);
	rig_put(&rig, &limit, 1);
	CU_ASSERT_EQUAL(passed_of(1000), 1000);
	rig.plane.cpus[cpus[0]].leases[0] = (struct weir_lease){
		.left_ticks = 5 * cost_of(&limit),
		.expires_ticks = RIG_TICKS(*rig.now_ns + WEIR_LEASE_NS),
		.revision = rig_limit(&rig, 0)->revision,
	};
	return limit;
}

static void a_lease_pays_until_it_expires(void)
{
	cpu_set_t before;

	begin(&before);
	CU_ASSERT_EQUAL(passed_of(3), 3);
	*rig.now_ns += WEIR_LEASE_NS - 1;
	CU_ASSERT_EQUAL(passed_of(9), 2);
	sched_setaffinity(0, sizeof(before), &before);
}

static void what_is_left_goes_back(void)
{
	cpu_set_t before;

	begin(&before);
	CU_ASSERT_EQUAL(passed_of(3), 3);
	*rig.now_ns += WEIR_LEASE_NS;
	/* One token of the time that passed, two that come back. */
	CU_ASSERT_EQUAL(passed_of(9), 3);
	CU_ASSERT_EQUAL(rig_totals(&rig, 0).passed_packets, 1000 + 3 + 3);
	sched_setaffinity(0, sizeof(before), &before);
}

/* The tokens of another revision may have been worth more: they are gone. */
static void a_change_ends_a_lease(void)
{
	struct weir_limit limit;
	cpu_set_t before;

	limit = begin(&before);
	rig_put(&rig, &limit, 1);
	CU_ASSERT_EQUAL(passed_of(9), 0);
	*rig.now_ns += WEIR_LEASE_NS;
	CU_ASSERT_EQUAL(passed_of(9), 1);
	sched_setaffinity(0, sizeof(before), &before);
}

WEIR_TESTS("kernel lease", TEST(never_more_than_the_bucket_has),
	   TEST(a_lease_pays_until_it_expires), TEST(what_is_left_goes_back),
	   TEST(a_change_ends_a_lease))
