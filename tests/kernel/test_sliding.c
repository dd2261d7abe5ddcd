// SPDX-License-Identifier: GPL-2.0
/*
 * Sliding in the kernel: against its own code in user space; with two CPUs racing, no stretch
 * of one window ever holds more than the quota; live changes.
 */
#include "harness.h"
#include "kernel/rig_limits.h"
#include "random.h"

#include <linux/bpf.h>
#include <sched.h>

#define SECOND WEIR_NS_PER_SEC
#define SETS 2
#define CAPACITY 4096

static struct rig rig, both;

/* A limit with fresh state and rings of 4096. */
static struct weir_limit fresh(uint32_t quota, uint64_t window_ns)
{
	struct weir_limit limit = { .key = WEIR_KEY_SOURCE, RIG_SOURCE_MASKS,
				    .salt = rig_salt() };

	rig_sliding(&limit, quota, window_ns, SETS);
	limit.sliding.capacity = CAPACITY;
	return limit;
}

static void begin(void)
{
	rig_begin(&rig, RIG_WEIR, 1024);
	rig_own(&rig, 0, SETS, CAPACITY);
}

/* How many of n packets at one instant pass. */
static uint32_t passed_from(const char *address, uint32_t n)
{
	uint64_t before = rig_totals(&rig, 0).passed_packets;
	struct frame frame;

	rig_frame(&frame, address, IPPROTO_UDP, 0);
	CU_ASSERT_TRUE(rig_send(&rig, frame.bytes, frame.size, n) >= 0);
	return (uint32_t)(rig_totals(&rig, 0).passed_packets - before);
}

static uint32_t passed_of(uint32_t n)
{
	return passed_from("198.51.100.7", n);
}

/* ---- kernel and user space ---- */

#define PACKETS 20000
#define PACKETS_MAX 8 /* of one frame */
#define GROUPS 12     /* of sources, one after the other in the same 16 places */
#define GROUP 5

struct key_model {
	struct weir_sliding_state state;
	uint64_t ring[CAPACITY];
};

static struct key_model models[GROUPS * GROUP];

static struct weir_limit random_limit(uint64_t *seed)
{
	static const uint32_t quotas[] = { 0, 1, 2, 3, 5, 8, 15, 16, 17, 33 };
	static const uint32_t capacities[] = { 16, 64, 4096 };
	uint32_t quota = quotas[random_below(seed, 10)];
	uint64_t window_ns = 1 + random_below(seed, 1ULL << random_below(seed, 45));
	struct weir_limit limit = fresh(quota, window_ns);

	if (!random_below(seed, 3)) {
		limit.flags = WEIR_LIMIT_BYTES;
		limit.sliding.quota = 500 + (uint32_t)random_below(seed, 3597);
	}
	limit.slot = (uint16_t)random_below(seed, 3);
	while (capacities[limit.slot] < limit.sliding.quota)
		limit.slot++;
	limit.sliding.capacity = capacities[limit.slot];
	return limit;
}

/* So that a window sees a few times its quota, and stamps fall out one by one and all at once. */
static uint64_t random_gap(uint64_t *seed, const struct weir_limit *limit)
{
	uint64_t window_ns = (limit->sliding.window >> WEIR_TICK_SHIFT) + 1;

	switch (random_below(seed, 16)) {
	case 0:
		return window_ns;
	case 1:
		return window_ns - 1;
	case 2:
		return random_below(seed, 3 * window_ns);
	default:
		return random_below(seed, window_ns / 16 + 2);
	}
}

/* One packet from a source of the group: whether kernel and model agree, and on what. */
static bool agrees(const struct weir_limit *limit, size_t source, uint64_t *seed, bool *passed)
{
	uint32_t most = random_below(seed, 3) ? 1 : PACKETS_MAX;
	uint32_t packets = 1 + (uint32_t)random_below(seed, most);
	struct key_model *model = &models[source];
	struct frame frame;
	char address[32];

	snprintf(address, sizeof(address), "192.0.2.%zu", source);
	rig_frame_of(&frame, address, packets);
	*passed = weir_sliding_step(&model->state, &limit->sliding, model->ring,
				    RIG_TICKS(*rig.now_ns),
				    packets * (limit->flags ? RIG_PART_BYTES + 42 : 1));
	return rig_send(&rig, frame.bytes, frame.size, 1) == (*passed ? XDP_PASS : XDP_DROP);
}

static void count_up(bool agreed, bool passed, uint64_t *wrong, uint64_t verdicts[2])
{
	*wrong += !agreed;
	verdicts[passed]++;
}

static void report(uint64_t wrong, const uint64_t verdicts[2])
{
	printf("  %d packets: %" PRIu64 " passed, %" PRIu64 " refused, %" PRIu64 " differ\n",
	       PACKETS, verdicts[1], verdicts[0], wrong);
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_TRUE(verdicts[0] > PACKETS / 10 && verdicts[1] > PACKETS / 10);
}

/* Groups of sources take over each other's places, rings and all. */
static void agrees_with_user_space(void)
{
	static const uint32_t capacities[] = { 16, 64, 4096 };
	uint64_t seed = 7, verdicts[2] = { 0 }, wrong = 0;
	struct weir_limit limit;
	bool passed;

	begin();
	for (uint32_t slot = 0; slot < 3; slot++)
		rig_own(&rig, slot, SETS, capacities[slot]);
	rig_cut_frames(&rig, true);
	for (int i = 0; i < PACKETS; i++) {
		size_t group = (size_t)i / 40 % GROUPS;

		if (i % 400 == 0) {
			*rig.now_ns += RIG_START_NS;
			limit = random_limit(&seed);
			rig_put(&rig, &limit, 1);
			memset(models, 0, sizeof(models));
		}
		if (i % 40 == 0)
			*rig.now_ns += (limit.sliding.window >> WEIR_TICK_SHIFT) + 1;
		*rig.now_ns += random_gap(&seed, &limit);
		count_up(agrees(&limit, group * GROUP + random_below(&seed, GROUP), &seed, &passed),
			 passed, &wrong, verdicts);
	}
	report(wrong, verdicts);
}

/* Quota and window change every 50 packets, both ways; the ring stays. */
static void b5_agrees_over_live_changes(void)
{
	struct weir_limit limit, other;
	uint64_t seed = 11, verdicts[2] = { 0 }, wrong = 0;
	bool passed;

	begin();
	rig_cut_frames(&rig, true);
	memset(models, 0, sizeof(models));
	limit = fresh(10, SECOND);
	for (int i = 0; i < PACKETS; i++) {
		if (i % 50 == 0) {
			other = fresh(1 + (uint32_t)random_below(&seed, 20),
				      SECOND / 4 + random_below(&seed, SECOND));
			limit.sliding = other.sliding;
			rig_put(&rig, &limit, 1);
		}
		*rig.now_ns += random_gap(&seed, &limit);
		count_up(agrees(&limit, random_below(&seed, GROUP), &seed, &passed), passed, &wrong,
			 verdicts);
	}
	report(wrong, verdicts);
}

/* ---- edges ---- */

static void d4_d7_no_double_at_the_boundary(void)
{
	static const uint32_t quotas[] = { 1, 2, 7, 1000, 4095, 4096 };

	begin();
	for (size_t i = 0; i < sizeof(quotas) / sizeof(quotas[0]); i++) {
		struct weir_limit limit = fresh(quotas[i], SECOND);

		rig_put(&rig, &limit, 1);
		for (int window = 0; window < 3; window++) {
			CU_ASSERT_EQUAL(passed_of(quotas[i]), quotas[i]);
			*rig.now_ns += SECOND / 10;
			CU_ASSERT_EQUAL(passed_of(5), 0);
			*rig.now_ns += SECOND - SECOND / 10 - 1;
			CU_ASSERT_EQUAL(passed_of(5), 0);
			*rig.now_ns += 1;
		}
	}
}

/* One packet of 16 fills a ring of 16 with one instant: no different from any other 16. */
static void a_ring_of_one_instant_opens_again(void)
{
	struct weir_limit limit = fresh(16, SECOND);
	struct frame frame;

	begin();
	rig_own(&rig, 0, SETS, 16);
	limit.sliding.capacity = 16;
	rig_cut_frames(&rig, true);
	rig_put(&rig, &limit, 1);
	rig_frame_of(&frame, "198.51.100.7", 16);
	for (int window = 0; window < 5; window++) {
		CU_ASSERT_EQUAL(rig_send(&rig, frame.bytes, frame.size, 1), XDP_PASS);
		CU_ASSERT_EQUAL(rig_send(&rig, frame.bytes, frame.size, 1), XDP_DROP);
		*rig.now_ns += SECOND - 1;
		CU_ASSERT_EQUAL(rig_send(&rig, frame.bytes, frame.size, 1), XDP_DROP);
		*rig.now_ns += 1;
	}
}

static void d14_long_windows_slide_on(void)
{
	struct weir_limit limit = fresh(10, 60 * SECOND);
	uint32_t passed = 0;

	begin();
	rig_put(&rig, &limit, 1);
	for (int step = 0; step < 3000; step++) {
		passed += passed_of(1);
		*rig.now_ns += 2 * SECOND;
	}
	CU_ASSERT_EQUAL(passed, 100 * 10);
}

static void b1_pushes_refill_nothing(void)
{
	struct weir_limit limit = fresh(50, SECOND);
	uint32_t passed = 0;

	begin();
	for (int i = 0; i < 1000; i++) {
		rig_put(&rig, &limit, 1);
		passed += passed_of(2);
		*rig.now_ns += SECOND / 1000;
	}
	CU_ASSERT_EQUAL(passed, 50);
}

/* Back: what came before the step stays in the window by as much longer. */
static void d15_clock_steps(void)
{
	struct weir_limit limit = fresh(10, SECOND);

	begin();
	rig_put(&rig, &limit, 1);
	CU_ASSERT_EQUAL(passed_of(20), 10);
	*rig.now_ns -= SECOND;
	CU_ASSERT_EQUAL(passed_of(20), 0);
	*rig.now_ns += 2 * SECOND - 1;
	CU_ASSERT_EQUAL(passed_of(20), 0);
	*rig.now_ns += 1;
	CU_ASSERT_EQUAL(passed_of(20), 10);
	*rig.now_ns += 3600 * SECOND;
	CU_ASSERT_EQUAL(passed_of(20), 10);
}

/* D8: a key whose window is not over keeps its place; with all taken, newcomers are untracked. */
static void d8_nobody_in_the_window_is_forgotten(void)
{
	struct weir_limit limit = fresh(1, SECOND);
	struct weir_totals before, after;
	struct frame frame;
	char address[32];

	begin();
	rig_put(&rig, &limit, 1);
	before = rig_totals(&rig, 0);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 40; i++) {
			snprintf(address, sizeof(address), "203.0.113.%d", i);
			rig_frame(&frame, address, IPPROTO_UDP, 0);
			rig_send(&rig, frame.bytes, frame.size, 1);
		}
	}
	after = rig_totals(&rig, 0);
	CU_ASSERT_EQUAL(after.new_keys - before.new_keys, SETS * WEIR_WAYS);
	CU_ASSERT_EQUAL(after.refused_packets - before.refused_packets, SETS * WEIR_WAYS);
	CU_ASSERT_EQUAL(after.untracked_packets - before.untracked_packets,
			2 * (40 - SETS * WEIR_WAYS));
}

/*
 * A place that goes to another key keeps the ring of the one before. After the window was
 * lengthened its stamps are in the window again: they must not be charged to the newcomer.
 */
static void a_longer_window_charges_nobody_for_others(void)
{
	struct weir_limit limit = fresh(5, SECOND);
	char address[32];

	begin();
	rig_put(&rig, &limit, 1);
	for (int source = 0; source < 64; source++) {
		snprintf(address, sizeof(address), "192.0.2.%d", source);
		CU_ASSERT_EQUAL(passed_from(address, 7), 5);
		*rig.now_ns += SECOND / 4;
	}
	*rig.now_ns += SECOND;
	limit.sliding.window = RIG_TICKS(3600 * SECOND);
	rig_put(&rig, &limit, 1);
	for (int source = 100; source < 108; source++) {
		snprintf(address, sizeof(address), "192.0.2.%d", source);
		CU_ASSERT_EQUAL(passed_from(address, 3), 3);
		*rig.now_ns += SECOND;
		CU_ASSERT_EQUAL(passed_from(address, 7), 2);
	}
}

/* ---- both CPUs at once ---- */

#define STEP_NS 100
#define BOTH_PACKETS 60000

/* The clock moves with every packet, and now and then a third thread makes it jump. */
static void jump(struct rig *racing)
{
	uint64_t seed = 3;
	int cpus[2];

	CU_ASSERT_EQUAL_FATAL(rig_cpus(cpus), 0);
	for (;;) {
		const volatile struct drive_cpu *a = &racing->drive[cpus[0]];
		const volatile struct drive_cpu *b = &racing->drive[cpus[1]];

		if (a->sent >= a->until && b->sent >= b->until)
			return;
		__atomic_fetch_add(racing->now_ns, random_below(&seed, 50000), __ATOMIC_RELAXED);
		sched_yield();
	}
}

/* More frames of `packets` each in a stretch of one window than the quota has room for. */
static uint64_t overfull(uint32_t quota, uint64_t window_ns, uint32_t packets, size_t *count)
{
	size_t frames = quota / packets;
	uint64_t *times, wrong = 0;

	*count = rig_log(&both, &times);
	for (size_t i = 0; i + frames < *count; i++)
		wrong += times[i + frames] - times[i] < window_ns;
	free(times);
	return wrong;
}

static void race(uint32_t quota, uint32_t capacity, uint32_t packets)
{
	uint64_t window_ns = (uint64_t)quota * 4 * STEP_NS / packets + STEP_NS, wrong, elapsed_ns;
	struct weir_limit limit = fresh(quota, window_ns);
	struct drive_cpu plan = { .count = 1, .step_ns = STEP_NS };
	struct weir_totals before, after;
	size_t count;

	rig_begin(&both, RIG_DRIVE, 1024);
	rig_own(&both, 0, SETS, capacity);
	limit.sliding.capacity = capacity;
	if (packets > 1) /* of a frame of 60 bytes with 42 of headers */
		both.plane.board->interfaces[1].frame_bytes[0] = 42 + 18 / packets;
	rig_put(&both, &limit, 1);
	before = rig_totals(&both, 0);
	rig_plan(&both, &plan);
	CU_ASSERT_EQUAL(rig_drive_both(&both, BOTH_PACKETS, jump), 0);
	after = rig_totals(&both, 0);
	elapsed_ns = *both.now_ns - RIG_START_NS;
	wrong = overfull(quota, window_ns, packets, &count);
	printf("  both CPUs, quota %u, ring %u, %u packets a frame: %zu frames passed in %" PRIu64
	       " windows, %" PRIu64 " too early, %" PRIu64 " contended\n",
	       quota, capacity, packets, count, elapsed_ns / window_ns, wrong,
	       after.contended_packets - before.contended_packets);
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_EQUAL(count * packets, after.passed_packets - before.passed_packets);
	CU_ASSERT_TRUE(count > quota / packets);
}

static void no_window_holds_more_than_its_quota(void)
{
	static const uint32_t rows[][2] = {
		{ 1, 16 },  { 2, 16 },	  { 5, 16 },	  { 16, 16 },
		{ 17, 32 }, { 100, 128 }, { 1000, 4096 }, { 4096, 4096 }
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		race(rows[i][0], rows[i][1], 1);
}

static void no_window_holds_more_with_packets_of_several(void)
{
	race(3, 16, 3);
	race(16, 16, 3);
	race(40, 64, 9);
	race(1000, 1024, 2);
}

WEIR_TESTS("kernel sliding", TEST(agrees_with_user_space), TEST(b5_agrees_over_live_changes),
	   TEST(d4_d7_no_double_at_the_boundary),
	   TEST(a_ring_of_one_instant_opens_again), TEST(d14_long_windows_slide_on),
	   TEST(b1_pushes_refill_nothing), TEST(d15_clock_steps),
	   TEST(d8_nobody_in_the_window_is_forgotten),
	   TEST(a_longer_window_charges_nobody_for_others),
	   TEST(no_window_holds_more_than_its_quota),
	   TEST(no_window_holds_more_with_packets_of_several))
