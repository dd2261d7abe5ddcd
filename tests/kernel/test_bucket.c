// SPDX-License-Identifier: GPL-2.0
/* The bucket in the kernel: against its own code in user space, and live changes. */
#include "harness.h"
#include "kernel/bucket_bench.h"
#include "weir/place.h"
#include "random.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <math.h>

#define SECOND WEIR_NS_PER_SEC
#define DAY (86400 * SECOND)

/* ---- kernel and user space ---- */

#define SOURCES 6
#define PACKETS 20000

static struct rig_limit random_limit(uint64_t *seed)
{
	/* 1 a day to 100 Gbit/s in bytes; a burst takes from a packet's time to a year. */
	struct rig_limit limit = { .key = WEIR_KEY_SOURCE, .salt = 77 };

	limit.flags = random_below(seed, 2) ? WEIR_LIMIT_BYTES : 0;
	limit.rate = log_uniform(seed, 1.0 / 86400, limit.flags ? 12.5e9 : 2e9);
	limit.grain = limit.flags ? 64 : 1;
	limit.burst = log_uniform(seed, 1, 1e6);
	if (limit.burst > limit.rate * 3e7)
		limit.burst = limit.rate * 3e7;
	return limit;
}

static const struct weir_bucket_conf *conf_of(const struct rig *rig)
{
	const struct weir_board *board = rig->plane.board;

	return &board->limits[board->active.generation * WEIR_LIMITS_MAX].bucket;
}

/* The time between packets: around what the last one cost, so that both verdicts occur. */
static uint64_t random_gap(uint64_t *seed, const struct weir_bucket_conf *conf, uint64_t cost)
{
	uint64_t around = (cost < conf->burst_ticks ? cost : conf->burst_ticks) >> WEIR_TICK_SHIFT;

	switch (random_below(seed, 8)) {
	case 0:
		return 0;
	case 1:
		return around;
	case 2:
		return around + 1;
	case 3:
		return random_below(seed, (conf->burst_ticks >> WEIR_TICK_SHIFT) / 4 + 2);
	default:
		return random_below(seed, around / 2 + 2);
	}
}

/* What user space knows of a source: its TAT, and the conf that this is counted in. */
struct model {
	uint64_t tat;
	struct weir_bucket_conf conf;
};

/* The limit is changed: the tokens stay, as far as the new burst holds them. */
static void models_change(struct model *models, const struct weir_bucket_conf *conf,
			  uint64_t now_ticks)
{
	for (int i = 0; i < SOURCES; i++) {
		const struct weir_bucket_conf old = models[i].conf;
		uint64_t owed = models[i].tat - now_ticks, tokens = 0;

		models[i].conf = *conf;
		if (models[i].tat <= now_ticks)
			continue;
		if (owed < old.burst_ticks)
			tokens = weir_ticks_convert(old.burst_ticks - owed, old.cost_mantissa,
						    old.cost_left - old.cost_right,
						    conf->cost_mantissa,
						    conf->cost_left - conf->cost_right,
						    conf->burst_ticks);
		models[i].tat = now_ticks + conf->burst_ticks - tokens;
	}
}

static void agree_with_user_space(bool long_way)
{
	static const char *const addresses[SOURCES] = {
		"192.0.2.1",	 "192.0.2.2",	  "203.0.113.9", /* and three /64s */
		"2001:db8:1::1", "2001:db8:2::1", "2001:db8:2:1::1",
	};
	uint64_t seed = 20000, verdicts[2] = { 0 }, wrong = 0;
	struct model models[SOURCES] = { 0 };
	struct rig rig;

	rig_open(&rig, RIG_WEIR, 1024);
	for (int i = 0; i < PACKETS; i++) {
		uint32_t size = 82 + (uint32_t)random_below(&seed, 1400);
		size_t source = random_below(&seed, SOURCES);
		struct rig_limit limit;
		struct frame frame;
		uint64_t now_ticks, cost, next, *tat;
		bool expected;

		if (i % 100 == 0) {
			/* Back: 20,000 packets at one a day would outlast the clock. */
			*rig.now_ns = RIG_START_NS;
			limit = random_limit(&seed);
			limit.long_way = long_way;
			CU_ASSERT_EQUAL_FATAL(rig_set(&rig, &limit), 0);
			models_change(models, conf_of(&rig), *rig.now_ns << WEIR_TICK_SHIFT);
		}
		cost = weir_bucket_cost(conf_of(&rig), limit.flags ? size : 1);
		*rig.now_ns += random_gap(&seed, conf_of(&rig), cost);
		now_ticks = *rig.now_ns << WEIR_TICK_SHIFT;
		rig_frame(&frame, addresses[source], IPPROTO_UDP, size);
		tat = &models[source].tat;
		expected = weir_bucket_step(*tat, conf_of(&rig), now_ticks, cost, &next);
		*tat = expected ? next : weir_bucket_clamp(*tat, conf_of(&rig), now_ticks);
		wrong += rig_send(&rig, frame.bytes, frame.size, 1) !=
			 (expected ? XDP_PASS : XDP_DROP);
		verdicts[expected]++;
	}
	printf("  %d packets: %" PRIu64 " passed, %" PRIu64 " refused, %" PRIu64 " differ\n",
	       PACKETS, verdicts[1], verdicts[0], wrong);
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_TRUE(verdicts[0] > PACKETS / 10);
	CU_ASSERT_TRUE(verdicts[1] > PACKETS / 10);
	rig_close(&rig);
}

static void agrees_with_user_space(void)
{
	agree_with_user_space(false);
}

static void agrees_with_user_space_the_long_way(void)
{
	agree_with_user_space(true);
}

/* ---- the limit's edge ---- */

static void holds_the_limit_to_one_packet(void)
{
	static const uint32_t bursts[] = { 1, 2, 3, 10, 1000, 65535 };

	for (size_t i = 0; i < sizeof(bursts) / sizeof(bursts[0]); i++) {
		struct rig_limit limit = { .rate = 1000,
					   .burst = bursts[i],
					   .key = WEIR_KEY_SOURCE };
		struct bench bench;

		bench_open(&bench, &limit);
		if (bursts[i] > 1)
			CU_ASSERT_EQUAL(passed_of(&bench, bursts[i] - 1), bursts[i] - 1);
		CU_ASSERT_TRUE(passes(&bench));
		CU_ASSERT_FALSE(passes(&bench));
		*bench.rig.now_ns += 999999;
		CU_ASSERT_FALSE(passes(&bench));
		*bench.rig.now_ns += 1;
		CU_ASSERT_TRUE(passes(&bench));
		CU_ASSERT_FALSE(passes(&bench));
		}
}

static void charges_bytes(void)
{
	struct rig_limit limit = { .rate = 1e6,
				   .burst = 1000,
				   .grain = 64,
				   .flags = WEIR_LIMIT_BYTES,
				   .key = WEIR_KEY_SOURCE };
	struct frame large;
	struct bench bench;

	bench_open(&bench, &limit);
	/* 60 bytes each: 16 of them are 960, the 17th would be 1020. */
	CU_ASSERT_EQUAL(passed_of(&bench, 100), 16);
	*bench.rig.now_ns += 20 * 1000;
	CU_ASSERT_EQUAL(passed_of(&bench, 100), 1);
	CU_ASSERT_EQUAL(weir_dataplane_totals(&bench.rig.plane, 0).passed_bytes, 17 * 60);
	CU_ASSERT_EQUAL(weir_dataplane_totals(&bench.rig.plane, 0).refused_bytes, 183 * 60);
	/* More than the burst never passes, whoever sends it, and takes nothing. */
	*bench.rig.now_ns += SECOND;
	rig_frame(&large, "198.51.100.7", IPPROTO_UDP, 1100);
	CU_ASSERT_EQUAL(rig_send(&bench.rig, large.bytes, large.size, 1), XDP_DROP);
	rig_frame(&large, "198.51.100.8", IPPROTO_UDP, 1100);
	CU_ASSERT_EQUAL(rig_send(&bench.rig, large.bytes, large.size, 1), XDP_DROP);
	CU_ASSERT_EQUAL(passed_of(&bench, 100), 16);
}

static void monitor_counts_and_lets_pass(void)
{
	struct rig_limit limit = {
		.rate = 10, .burst = 5, .flags = WEIR_LIMIT_MONITOR, .key = WEIR_KEY_SOURCE
	};
	struct weir_totals totals;
	struct bench bench;

	bench_open(&bench, &limit);
	for (int i = 0; i < 20; i++)
		CU_ASSERT_EQUAL(rig_send(&bench.rig, bench.frame.bytes, bench.frame.size, 1),
				XDP_PASS);
	totals = weir_dataplane_totals(&bench.rig.plane, 0);
	CU_ASSERT_EQUAL(totals.passed_packets, 5);
	CU_ASSERT_EQUAL(totals.would_refuse_packets, 15);
	CU_ASSERT_EQUAL(totals.refused_packets, 0);
	CU_ASSERT_EQUAL(totals.new_keys, 1);
}

/* Writes a state into every place that holds a key. */
static void force_states(const struct rig *rig, uint64_t state)
{
	int fd = rig_map_fd(rig, "weir_ledger");

	for (uint32_t i = 0; i < rig->plane.shape.sets; i++) {
		struct weir_set set = rig->plane.ledger[i];

		for (int way = 0; way < WEIR_WAYS; way++)
			if (set.tag[way])
				set.state[way] = state;
		CU_ASSERT_EQUAL(bpf_map_update_elem(fd, &i, &set, BPF_ANY), 0);
	}
}

static void contended_is_refused_and_counted(void)
{
	struct rig_limit limit = { .rate = 10, .burst = 5, .key = WEIR_KEY_SOURCE };
	struct weir_totals totals;
	struct bench bench;

	bench_open(&bench, &limit);
	CU_ASSERT_TRUE(passes(&bench));
	force_states(&bench.rig, WEIR_STATE_BUSY);
	CU_ASSERT_FALSE(passes(&bench));
	totals = weir_dataplane_totals(&bench.rig.plane, 0);
	CU_ASSERT_EQUAL(totals.contended_packets, 1);
	CU_ASSERT_EQUAL(totals.refused_packets, 1);
	force_states(&bench.rig, 0);
	CU_ASSERT_EQUAL(passed_of(&bench, 9), 5);
	CU_ASSERT_EQUAL(weir_dataplane_totals(&bench.rig.plane, 0).contended_packets, 1);
}

/* ---- live changes ---- */

static void b5_change_acts_at_once(void)
{
	struct rig_limit limit = { .rate = 1.0 / 3600, .burst = 100, .key = WEIR_KEY_SOURCE };
	struct bench bench;

	bench_open(&bench, &limit);
	CU_ASSERT_EQUAL(passed_of(&bench, 1000), 100);
	/* Up: the debt of 100 hours is not held against the new limit, nothing is given either. */
	limit.rate = 1000;
	CU_ASSERT_EQUAL(rig_set(&bench.rig, &limit), 0);
	CU_ASSERT_FALSE(passes(&bench));
	*bench.rig.now_ns += 10 * SECOND / 1000;
	CU_ASSERT_EQUAL(passed_of(&bench, 1000), 10);
	/* A lower burst. */
	*bench.rig.now_ns += SECOND;
	limit.burst = 7;
	CU_ASSERT_EQUAL(rig_set(&bench.rig, &limit), 0);
	CU_ASSERT_EQUAL(passed_of(&bench, 1000), 7);
}

/* ---- arithmetic and time ---- */

static void d6_small_refills_keep_the_remainder(void)
{
	struct rig_limit limit = { .rate = 3000, .burst = 1, .key = WEIR_KEY_SOURCE };
	struct bench bench;
	uint64_t passed = 0;

	bench_open(&bench, &limit);
	/* A packet every 7 us for a second, where one token takes 333.3 us. */
	for (int i = 0; i < 142857; i += 1) {
		passed += rig_send(&bench.rig, bench.frame.bytes, bench.frame.size, 1) == XDP_PASS;
		*bench.rig.now_ns += 7000;
	}
	printf("  3000 a second, asked every 7 us: %" PRIu64 " passed in 1 s\n", passed);
	/* Each take comes up to 7 us late; a burst of 1 can't make up for it: 1 / 336 us. */
	CU_ASSERT_TRUE(passed >= 2976 && passed <= 3001);
}

static void d12_idle_for_years(void)
{
	static const uint64_t idle_days[] = { 7, 30, 600, 3650 };
	static const double rates[] = { 1.0 / 86400, 1, 1e6, 2e9 };

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		struct rig_limit limit = { .rate = rates[i], .burst = 5, .key = WEIR_KEY_SOURCE };
		struct bench bench;

		bench_open(&bench, &limit);
		CU_ASSERT_EQUAL(passed_of(&bench, 100), 5);
		for (size_t j = 0; j < sizeof(idle_days) / sizeof(idle_days[0]); j++) {
			*bench.rig.now_ns += idle_days[j] * DAY;
			CU_ASSERT_EQUAL(passed_of(&bench, 100), 5);
		}
		}
}

static void d13_rates_above_one_a_nanosecond(void)
{
	/* 100 Gbit/s; a frame of 60 bytes takes 76.8 ticks, rounded up to 77. */
	struct rig_limit limit = { .rate = 12.5e9,
				   .burst = 60000,
				   .grain = 60,
				   .flags = WEIR_LIMIT_BYTES,
				   .key = WEIR_KEY_SOURCE };
	struct bench bench;

	bench_open(&bench, &limit);
	CU_ASSERT_EQUAL(passed_of(&bench, 3000), 1000);
	*bench.rig.now_ns += 482; /* 7712 ticks */
	CU_ASSERT_EQUAL(passed_of(&bench, 3000), 100);
}

static void d15_clock_steps(void)
{
	struct rig_limit limit = { .rate = 100, .burst = 20, .key = WEIR_KEY_SOURCE };
	struct bench bench;

	bench_open(&bench, &limit);
	CU_ASSERT_EQUAL(passed_of(&bench, 100), 20);
	/* Back: the bucket is empty, and fills at its rate from there on. */
	*bench.rig.now_ns -= SECOND;
	CU_ASSERT_EQUAL(passed_of(&bench, 100), 0);
	*bench.rig.now_ns += SECOND / 20;
	CU_ASSERT_EQUAL(passed_of(&bench, 100), 5);
	/* Forward: one burst. */
	*bench.rig.now_ns += 3600 * SECOND;
	CU_ASSERT_EQUAL(passed_of(&bench, 100), 20);
}

/* What no limit may touch passes whatever the bucket says; the two families share no key. */
static void p16_other_traffic_passes(void)
{
	struct rig_limit limit = { .rate = 1.0 / 86400, .burst = 1, .key = WEIR_KEY_SOURCE };
	uint8_t arp[60] = { [12] = 0x08, [13] = 0x06 }, lldp[60] = { [12] = 0x88, [13] = 0xcc };
	struct weir_traffic traffic;
	struct frame v6;
	struct bench bench;

	bench_open(&bench, &limit);
	rig_frame(&v6, "2001:db8::1", IPPROTO_TCP, 0);
	for (int i = 0; i < 3; i++) {
		int verdict = i ? XDP_DROP : XDP_PASS;

		CU_ASSERT_EQUAL(rig_send(&bench.rig, arp, sizeof(arp), 1), XDP_PASS);
		CU_ASSERT_EQUAL(rig_send(&bench.rig, lldp, sizeof(lldp), 1), XDP_PASS);
		CU_ASSERT_EQUAL(rig_send(&bench.rig, bench.frame.bytes, 20, 1), XDP_PASS);
		CU_ASSERT_EQUAL(rig_send(&bench.rig, bench.frame.bytes, bench.frame.size, 1),
				verdict);
		CU_ASSERT_EQUAL(rig_send(&bench.rig, v6.bytes, v6.size, 1), verdict);
	}
	traffic = weir_dataplane_traffic(&bench.rig.plane, 0, WEIR_HOOK_XDP);
	CU_ASSERT_EQUAL(traffic.frames[WEIR_PATH_EXEMPT], 3);
	CU_ASSERT_EQUAL(traffic.frames[WEIR_PATH_NOT_IP], 3);
	CU_ASSERT_EQUAL(traffic.frames[WEIR_PATH_MALFORMED], 3);
	CU_ASSERT_EQUAL(traffic.frames[WEIR_PATH_LIMITS], 2);
	CU_ASSERT_EQUAL(traffic.frames[WEIR_PATH_REFUSED], 4);
	CU_ASSERT_EQUAL(traffic.bytes[WEIR_PATH_LIMITS], 60 + v6.size);
}

WEIR_TESTS("kernel bucket", TEST(agrees_with_user_space), TEST(agrees_with_user_space_the_long_way),
	   TEST(holds_the_limit_to_one_packet), TEST(charges_bytes),
	   TEST(monitor_counts_and_lets_pass), TEST(contended_is_refused_and_counted),
	   TEST(b5_change_acts_at_once),
	   TEST(d6_small_refills_keep_the_remainder), TEST(d12_idle_for_years),
	   TEST(d13_rates_above_one_a_nanosecond), TEST(d15_clock_steps),
	   TEST(p16_other_traffic_passes))
