// SPDX-License-Identifier: GPL-2.0
/* The loops closed around a simulated service; g<N>_ tests are rows of the field notes (G). */
#include "service_sim.h"

static struct weir_service_conf conf_of(bool breaker, bool shedder, bool governor)
{
	struct weir_service_conf conf = sim_conf();

	conf.has[WEIR_LOOP_BREAKER] = breaker;
	conf.has[WEIR_LOOP_SHEDDER] = shedder;
	conf.has[WEIR_LOOP_GOVERNOR] = governor;
	return conf;
}

static struct weir_service_status status_of(const struct sim *sim)
{
	struct weir_service_status status;

	weir_service_status(sim->service, &status);
	return status;
}

/* ---- overload ---- */

static void overload_without_loops_collapses(void)
{
	struct sim *sim = sim_new(1);
	struct sim_result result;

	sim->load = 5 * sim_capacity(sim);
	sim_run(sim, 20);
	result = sim_run(sim, 60);
	CU_ASSERT(result.goodput < 0.1 * sim_capacity(sim));
	sim_free(sim);
}

/* At 5 times the capacity, whatever the shape: many slow workers or few, steady work or not. */
static void overload_with_shedder_keeps_goodput(void)
{
	for (int i = 0; i < 8; i++) {
		struct weir_service_conf conf = conf_of(false, true, false);
		struct sim *sim = sim_new(1 + (uint64_t)i);
		struct sim_result result;

		sim->workers = i & 1 ? 8 : 64;
		sim->work_ns = sim->workers * SECOND / 800;
		sim->steady_work = i & 2;
		conf.shedder.cpu = i & 4 ? 900 : 950;
		sim_protect(sim, &conf);
		sim->load = 400;
		result = sim_run(sim, 20);
		CU_ASSERT_DOUBLE_EQUAL(result.goodput, 400, 20);
		CU_ASSERT_EQUAL(result.shed, 0);
		sim->load = 5 * sim_capacity(sim);
		sim_run(sim, 30);
		result = sim_run(sim, 120);
		/* The preset's 900 thousandths are what it then makes of the CPU. */
		CU_ASSERT(result.goodput >= (i & 4 ? 0.85 : 0.9) * sim_capacity(sim));
		CU_ASSERT(result.p99_ns < 7ULL * (uint64_t)sim->work_ns);
		CU_ASSERT(result.failures < 0.01 * result.attempts);
		sim_free(sim);
	}
}

static void all_loops_together_keep_goodput(void)
{
	struct weir_service_conf conf = conf_of(true, true, true);
	struct sim *sim = sim_new(3);
	struct sim_result result;

	conf.shedder.cpu = 950;
	sim_protect(sim, &conf);
	sim->load = 5 * sim_capacity(sim);
	sim_run(sim, 60);
	result = sim_run(sim, 600);
	CU_ASSERT(result.goodput >= 0.9 * sim_capacity(sim));
	CU_ASSERT(result.p99_ns < 100 * MS);
	sim_free(sim);
}

/* A late or uneven tick must not make a bucket look busier than it was. */
static void late_ticks_change_nothing(void)
{
	struct weir_service_conf conf = conf_of(false, true, false);
	struct sim *sim = sim_new(5);
	double most = 0;

	sim->late = 3;
	sim->steady_work = true;
	sim_protect(sim, &conf);
	sim->load = 400;
	for (int i = 0; i < 300; i++) {
		sim_run(sim, 1);
		most = fmax(most, status_of(sim).capacity);
	}
	/* 400 a second of 10 ms: 4 in flight; the busiest of 50 buckets may hold half as many more.
	 */
	CU_ASSERT(most > 3.5 && most < 7);
	sim->load = 4000;
	sim_run(sim, 30);
	CU_ASSERT(sim_run(sim, 60).goodput >= 0.85 * sim_capacity(sim));
	sim_free(sim);
}

/* An idle CPU with a long queue is not what the shedder is for, nor a hot one without a queue. */
static void shedder_takes_both_hot_and_full(void)
{
	struct weir_service_conf conf = conf_of(false, true, false);
	struct sim *sim = sim_new(6);

	sim->fixed_cpu = true;
	sim->cpu = WEIR_CPU_UNKNOWN;
	sim_protect(sim, &conf);
	sim->load = 4000;
	CU_ASSERT_EQUAL(sim_run(sim, 20).shed, 0);
	CU_ASSERT_TRUE(status_of(sim).full);
	CU_ASSERT_FALSE(status_of(sim).hot);
	sim_free(sim);
	sim = sim_new(6);
	sim->fixed_cpu = true;
	sim->cpu = 899;
	sim_protect(sim, &conf);
	sim->load = 400;
	CU_ASSERT_EQUAL(sim_run(sim, 20).shed, 0);
	CU_ASSERT_EQUAL(status_of(sim).output.ceiling, WEIR_SERVICE_NO_CEILING);
	sim->cpu = 900;
	sim_run(sim, 1);
	CU_ASSERT(status_of(sim).output.ceiling >= 2);
	CU_ASSERT(status_of(sim).output.ceiling < 12);
	sim_free(sim);
}

/* ---- the breaker ---- */

/* Fails for `outage` seconds, heals; returns the seconds until nothing is dropped any more. */
static int recover(double load, double outage, uint64_t seed)
{
	struct weir_service_conf conf = conf_of(true, false, false);
	struct sim *sim = sim_new(seed);
	struct sim_result result;
	int seconds = 0;

	sim_protect(sim, &conf);
	sim->load = load;
	CU_ASSERT_EQUAL(sim_run(sim, 30).dropped, 0);
	sim->failing = 1;
	sim_run(sim, outage - 30);
	result = sim_run(sim, 30);
	if (load >= 50) {
		/* It drops nearly all, and tries one a second (± a tenth) even so. */
		CU_ASSERT(status_of(sim).output.drop > 0.9);
		CU_ASSERT(result.dropped > 0.8 * load);
	}
	CU_ASSERT(result.attempts >= 0.8);
	sim->failing = 0;
	while (seconds < 100 && status_of(sim).output.drop > 0) {
		sim_run(sim, 1);
		seconds++;
	}
	CU_ASSERT_EQUAL(sim_run(sim, 30).dropped, 0);
	sim_free(sim);
	return seconds;
}

/* Recovers within the window and half of it, after a minute as after a quarter of an hour. */
static void g1_own_refusals_are_no_failures(void)
{
	static const double loads[] = { 2, 10, 50, 200, 700 };

	for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++) {
		CU_ASSERT(recover(loads[i], 60, i + 1) <= 15);
		CU_ASSERT(recover(loads[i], 900, i + 1) <= 15);
	}
}

/* k calls are paid for by a success: while more than 1 in k succeeds nothing is refused; below,
 * what is let through falls window by window to the probes. */
static void breaker_acts_below_one_in_k(void)
{
	struct weir_service_conf conf = conf_of(true, false, false);
	struct sim *sim = sim_new(8);
	struct sim_result result;

	sim_protect(sim, &conf);
	sim->load = 300;
	sim->failing = 0.25;
	CU_ASSERT(sim_run(sim, 300).dropped < 1);
	sim->failing = 0.45;
	sim_run(sim, 10);
	CU_ASSERT(status_of(sim).output.drop > 0.05 && status_of(sim).output.drop < 0.5);
	sim_run(sim, 300);
	result = sim_run(sim, 60);
	CU_ASSERT(status_of(sim).output.drop > 0.9);
	CU_ASSERT(result.attempts >= 0.8);
	sim_free(sim);
}

static void g7_probe_and_floors_are_separate_knobs(void)
{
	static const int64_t probes[] = { 200 * MS, SECOND, 5 * SECOND };

	for (size_t i = 0; i < 3; i++) {
		struct weir_service_conf conf = conf_of(true, true, true);
		struct sim *sim = sim_new(9);
		struct weir_service_status status;

		conf.breaker.probe_ns = probes[i];
		conf.governor.floor = 77;
		conf.shedder.floor = 0.5;
		sim->load = 200;
		sim_protect(sim, &conf);
		sim->failing = 1;
		sim_run(sim, 60);
		status = status_of(sim);
		CU_ASSERT_DOUBLE_EQUAL((double)status.output.probe_ns, (double)probes[i],
				       0.1 * (double)probes[i]);
		CU_ASSERT_EQUAL(status.offer, 77);
		CU_ASSERT_EQUAL(sim->limit, 77);
		CU_ASSERT(status.output.drop > 0.9);
		sim_free(sim);
	}
}

/* Of services that begin together, neither the probes nor the governors' windows coincide. */
static void g8_probes_and_windows_are_spread(void)
{
	enum { SERVICES = 20 };
	struct sim *sims[SERVICES];
	int64_t probes[SERVICES];
	int same_probe = 0, same_window = 0;

	for (int i = 0; i < SERVICES; i++) {
		struct weir_service_conf conf = conf_of(true, false, true);

		conf.seed = (uint64_t)i;
		sims[i] = sim_new(1);
		sims[i]->load = 100;
		sim_protect(sims[i], &conf);
	}
	for (int i = 0; i < SERVICES; i++) {
		while (sims[i]->pushes < 2)
			sim_step(sims[i]);
		probes[i] = status_of(sims[i]).output.probe_ns;
		for (int j = 0; j < i; j++) {
			same_probe += probes[i] == probes[j];
			same_window += sims[i]->now_ns == sims[j]->now_ns;
		}
	}
	CU_ASSERT_EQUAL(same_probe, 0);
	/* Seen at ticks of 250 ms over 2 s: 190 pairs, 8 ticks. */
	CU_ASSERT(same_window < 60);
	for (int i = 0; i < SERVICES; i++)
		sim_free(sims[i]);
}

/* ---- hours ---- */

static void g5_baseline_does_not_ratchet(void)
{
	struct weir_service_conf conf = conf_of(false, true, false);
	struct sim *sim = sim_new(11);
	double early = 0, late = 0;
	struct sim_result result;

	sim_protect(sim, &conf);
	sim->load = 2 * sim_capacity(sim);
	sim_run(sim, 60);
	for (int i = 0; i < 120; i++) {
		sim_run(sim, 1);
		early += status_of(sim).capacity / 120;
	}
	sim_run(sim, 3600);
	for (int i = 0; i < 120; i++) {
		result = sim_run(sim, 1);
		late += status_of(sim).capacity / 120;
	}
	CU_ASSERT_DOUBLE_EQUAL(late, early, 0.15 * early);
	CU_ASSERT(result.p99_ns < 100 * MS);
	sim_free(sim);
}

/* Slow and cold for a minute, then fast: the bad baseline is gone a window later. */
static void g6_not_stuck_after_a_bad_baseline(void)
{
	struct weir_service_conf conf = conf_of(true, true, true);
	struct sim *sim = sim_new(12);
	struct sim_result result;

	conf.shedder.cpu = 950;
	sim_protect(sim, &conf);
	sim->work_ns = 400 * MS;
	sim->load = 800;
	sim_run(sim, 60);
	CU_ASSERT(status_of(sim).offer < 100);
	sim->work_ns = 10 * MS;
	sim->load = 4000;
	sim_run(sim, 90);
	result = sim_run(sim, 120);
	CU_ASSERT(result.goodput >= 0.9 * sim_capacity(sim));
	sim_free(sim);
}

/* 10,000 windows of turns for the worse and the better: it still moves, within its bounds. */
static void g9_moves_after_ten_thousand_cycles(void)
{
	struct weir_service_conf conf = conf_of(true, true, true);
	struct weir_service_counts counts = { 0 };
	struct sim *sim = sim_new(13);
	double before = 0;
	uint64_t moved = 0;

	conf.governor.ceiling = 3000;
	sim_protect(sim, &conf);
	for (int cycle = 0; cycle < 10000; cycle++) {
		for (int tick = 0; tick < 20; tick++) {
			sim->now_ns += 100 * MS;
			counts.success += 100;
			counts.failure += cycle / 7 % 2 ? 30 : 0;
			weir_service_tick(sim->service, sim->now_ns, &counts, 500);
		}
		CU_ASSERT(sim->limit >= conf.governor.floor);
		CU_ASSERT(sim->limit <= conf.governor.ceiling);
		moved += sim->limit != before;
		before = sim->limit;
	}
	CU_ASSERT(moved > 7000);
	CU_ASSERT(sim->pushes > 7000);
	for (int tick = 0; tick < 400; tick++) {
		sim->now_ns += 100 * MS;
		counts.success += 100;
		weir_service_tick(sim->service, sim->now_ns, &counts, 500);
	}
	CU_ASSERT_EQUAL(sim->limit, conf.governor.ceiling);
	CU_ASSERT_EQUAL(status_of(sim).output.drop, 0);
	sim_free(sim);
}

/* An hour at 1.2 times the capacity: neither the ceiling nor the times creep up. */
static void g10_mild_overload_does_not_creep(void)
{
	struct weir_service_conf conf = conf_of(false, true, false);
	struct sim *sim = sim_new(14);
	struct sim_result result;

	sim_protect(sim, &conf);
	sim->load = 1.2 * sim_capacity(sim);
	sim_run(sim, 60);
	for (int i = 0; i < 60; i++) {
		result = sim_run(sim, 60);
		CU_ASSERT(result.p99_ns < 150 * MS);
		CU_ASSERT(result.goodput >= 0.8 * sim_capacity(sim));
	}
	sim_free(sim);
	/* The governor: failures of 3% lie in the dead band, and the offer stays for an hour. */
	conf = conf_of(false, false, true);
	sim = sim_new(14);
	sim->load = 5000;
	sim->wall = 400;
	sim_protect(sim, &conf);
	sim_run(sim, 60);
	for (int i = 0; i < 60; i++) {
		sim_run(sim, 60);
		CU_ASSERT(sim->limit < 1.06 * sim->wall);
	}
	sim_free(sim);
}

/* A trickle of one call a second, slow or fast as it may be, doesn't decide what comes after. */
static void g10_low_traffic_does_not_poison(void)
{
	for (int i = 0; i < 2; i++) {
		struct weir_service_conf conf = conf_of(true, true, false);
		struct sim *sim = sim_new(15);

		conf.shedder.cpu = 950;
		sim_protect(sim, &conf);
		sim->load = 1;
		sim->work_ns = i ? 300 * MS : 1 * MS;
		sim_run(sim, 600);
		sim->work_ns = 10 * MS;
		sim->load = 4000;
		sim_run(sim, 60);
		CU_ASSERT(sim_run(sim, 60).goodput >= 0.9 * sim_capacity(sim));
		sim_free(sim);
	}
}

/* From 50 a second to 700 in half a minute where nothing is in the way. */
static void g10_ramp_is_not_slow(void)
{
	struct weir_service_conf conf = conf_of(false, false, true);
	struct sim *sim = sim_new(16);

	sim_protect(sim, &conf);
	sim->load = 700;
	CU_ASSERT_EQUAL(sim->limit, 50);
	sim_run(sim, 15);
	CU_ASSERT(sim_run(sim, 10).goodput > 0.95 * 700);
	sim_free(sim);
}

/* ---- the governor at a wall that moves ---- */

static void governor_settles_under_the_wall_and_climbs_after_it(void)
{
	struct weir_service_conf conf = conf_of(false, false, true);
	struct sim *sim = sim_new(17);
	struct sim_result result;
	static const double walls[] = { 400, 200, 1000, 150 };

	sim->workers = 64;
	sim->load = 5000;
	sim->wall = walls[0];
	sim_protect(sim, &conf);
	for (size_t i = 0; i < 4; i++) {
		sim->wall = walls[i];
		sim_run(sim, 120);
		result = sim_run(sim, 600);
		CU_ASSERT(result.goodput >= 0.9 * walls[i]);
		CU_ASSERT(result.failures <= 0.06 * result.attempts);
		CU_ASSERT(status_of(sim).last_bad >= sim->limit);
	}
	sim->wall = 0;
	sim_run(sim, 120);
	CU_ASSERT(sim_run(sim, 10).goodput > 0.95 * 5000);
	CU_ASSERT(isnan(status_of(sim).last_bad));
	sim_free(sim);
}

/* An operator's value is where it goes on from; it isn't fought. */
static void governor_honours_an_outside_writer(void)
{
	struct weir_service_conf conf = conf_of(false, false, true);
	struct sim *sim = sim_new(18);

	sim->workers = 64;
	sim->load = 5000;
	sim->wall = 400;
	sim_protect(sim, &conf);
	sim_run(sim, 120);
	sim->limit = 100;
	sim_run(sim, 2.3);
	CU_ASSERT_EQUAL(sim->last.loop, WEIR_LOOP_GOVERNOR);
	CU_ASSERT(sim->limit >= 100 && sim->limit <= 150);
	sim_run(sim, 60);
	CU_ASSERT(sim->limit > 350);
	/* Parked by a word: nothing is stepped from "no limit" or "block". */
	sim->limit = INFINITY;
	sim_run(sim, 30);
	CU_ASSERT(isinf(sim->limit));
	sim_free(sim);
}

/* ---- the harness itself ---- */

static void same_seed_same_hour(void)
{
	struct weir_service_conf conf = conf_of(true, true, true);
	struct weir_service_counts counts[3];

	for (int i = 0; i < 3; i++) {
		struct sim *sim = sim_new(i < 2 ? 21 : 22);

		sim_protect(sim, &conf);
		for (int minute = 0; minute < 60; minute++) {
			sim->load = 100 + 100 * (minute * 7 % 13);
			sim->failing = minute % 10 == 3 ? 0.6 : 0;
			sim_run(sim, 60);
		}
		counts[i] = sim->counts;
		sim_free(sim);
	}
	CU_ASSERT_EQUAL(memcmp(&counts[0], &counts[1], sizeof(counts[0])), 0);
	CU_ASSERT_NOT_EQUAL(memcmp(&counts[0], &counts[2], sizeof(counts[0])), 0);
}

WEIR_TESTS("service simulation", TEST(overload_without_loops_collapses),
	   TEST(overload_with_shedder_keeps_goodput), TEST(all_loops_together_keep_goodput),
	   TEST(late_ticks_change_nothing), TEST(shedder_takes_both_hot_and_full),
	   TEST(g1_own_refusals_are_no_failures), TEST(breaker_acts_below_one_in_k),
	   TEST(g7_probe_and_floors_are_separate_knobs), TEST(g8_probes_and_windows_are_spread),
	   TEST(g5_baseline_does_not_ratchet), TEST(g6_not_stuck_after_a_bad_baseline),
	   TEST(g9_moves_after_ten_thousand_cycles), TEST(g10_mild_overload_does_not_creep),
	   TEST(g10_low_traffic_does_not_poison), TEST(g10_ramp_is_not_slow),
	   TEST(governor_settles_under_the_wall_and_climbs_after_it),
	   TEST(governor_honours_an_outside_writer), TEST(same_seed_same_hour))
