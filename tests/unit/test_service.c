// SPDX-License-Identifier: GPL-2.0
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "controller/cpu.h"
#include "controller/service.h"
#include "harness.h"

#define MS 1000000LL
#define SECOND (1000 * MS)

/* A control and a listener. */
struct world {
	double limit;
	int pushes, refuse, movements;
	struct weir_movement last;
};

static int push(void *context, double offer)
{
	struct world *world = context;

	if (world->refuse)
		return world->refuse;
	world->pushes++;
	world->limit = offer;
	return 0;
}

static int read_limit(void *context, double *committed)
{
	*committed = ((struct world *)context)->limit;
	return 0;
}

static void moved(void *context, const struct weir_movement *movement)
{
	struct world *world = context;

	world->movements++;
	world->last = *movement;
}

static struct weir_service_conf conf_of(bool breaker, bool shedder, bool governor)
{
	return (struct weir_service_conf){
		.name = "web",
		.has = { breaker, shedder, governor },
		.breaker = weir_sre,
		.shedder = weir_shed,
		.governor = { 50, 10, 1000, 0.05, 0.01, 2 * SECOND },
	};
}

static struct weir_service *service_of(const struct weir_service_conf *conf, struct world *world)
{
	const struct weir_service_hooks hooks = {
		.control = { push, read_limit, NULL, world },
		.moved = moved,
		.context = world,
	};

	return weir_service_new(conf, &hooks, 0);
}

static struct weir_service_status status_of(const struct weir_service *service)
{
	struct weir_service_status status;

	weir_service_status(service, &status);
	return status;
}

static void add(struct weir_service_counts *counts, uint64_t passes, uint64_t fails,
		int64_t response_ns)
{
	counts->attempts += passes + fails;
	counts->success += passes;
	counts->failure += fails;
	counts->response_count += passes;
	counts->response_ns += passes * (uint64_t)response_ns;
	counts->response[weir_response_slot((uint64_t)response_ns)] += passes;
}

/* ---- differences ---- */

static void counts_before_the_first_tick_are_the_past(void)
{
	const struct weir_service_conf conf = conf_of(true, true, false);
	struct weir_service_counts counts = { .failure = 1000000, .dropped = 5 };
	struct world world = { 0 };
	struct weir_service *service = service_of(&conf, &world);

	weir_service_tick(service, 100 * MS, &counts, 0);
	CU_ASSERT_EQUAL(status_of(service).ratio, 0);
	counts.failure += 100;
	weir_service_tick(service, 200 * MS, &counts, 0);
	CU_ASSERT(status_of(service).ratio > 0.9);
	weir_service_free(service);
}

/* A counter that went back (programs replaced, a slot given away) is a new start. */
static void counts_that_go_back_are_a_new_start(void)
{
	const struct weir_service_conf conf = conf_of(true, true, true);
	struct weir_service_counts counts = { 0 };
	struct world world = { 0 };
	struct weir_service *service = service_of(&conf, &world);

	weir_service_tick(service, 100 * MS, &counts, 0);
	add(&counts, 100, 0, MS);
	weir_service_tick(service, 200 * MS, &counts, 0);
	counts = (struct weir_service_counts){ .success = 50, .failure = 50 };
	weir_service_tick(service, 300 * MS, &counts, 0);
	CU_ASSERT_EQUAL(status_of(service).ratio, 0);
	add(&counts, 0, 500, 0);
	weir_service_rebase(service);
	weir_service_tick(service, 400 * MS, &counts, 0);
	CU_ASSERT_EQUAL(status_of(service).ratio, 0);
	add(&counts, 0, 500, 0);
	/* A clock that goes back: no time passed. */
	weir_service_tick(service, 50 * MS, &counts, 0);
	CU_ASSERT(status_of(service).ratio > 0.5);
	weir_service_free(service);
}

/* drop = (total - protection - w * accepts) / (total + 1) * (size - working) / size */
static void g2_ratio_is_the_formula(void)
{
	const struct weir_service_conf conf = conf_of(true, false, false);
	struct weir_service_counts counts = { 0 };
	struct world world = { 0 };
	struct weir_service *service = service_of(&conf, &world);

	weir_service_tick(service, 1, &counts, 0);
	/* One bucket: 20 passed, 60 failed, 20 dropped; it ends neither run. */
	add(&counts, 20, 60, MS);
	counts.dropped += 20;
	/* What the shedder refused is not in it. */
	counts.shed += 1000;
	weir_service_tick(service, 100 * MS, &counts, 0);
	CU_ASSERT_DOUBLE_EQUAL(status_of(service).ratio, (100 - 5 - 1.5 * 20) / 101, 1e-12);
	/* A bucket of failures alone: failing is 1, k decays a fortieth of the way to the floor. */
	add(&counts, 0, 50, 0);
	weir_service_tick(service, 251 * MS, &counts, 0);
	weir_service_tick(service, 499 * MS, &counts, 0);
	CU_ASSERT_DOUBLE_EQUAL(status_of(service).ratio,
			       (150 - 5 - (1.5 - 0.4 * 1 / 40) * 20) / 151, 0.01);
	CU_ASSERT_EQUAL(weir_service_output(service)->drop, status_of(service).ratio);
	weir_service_free(service);
}

/* One late tick over three buckets is three ticks of a bucket each. */
static void late_tick_equals_the_ticks_it_missed(void)
{
	const struct weir_service_conf conf = conf_of(true, true, false);
	struct weir_service_counts counts = { 0 };
	struct world world = { 0 };
	struct weir_service *late = service_of(&conf, &world), *prompt = service_of(&conf, &world);
	int64_t now = 0;

	weir_service_tick(late, now, &counts, 0);
	weir_service_tick(prompt, now, &counts, 0);
	for (int i = 0; i < 40; i++) {
		for (int j = 0; j < 3; j++) {
			now += 100 * MS;
			add(&counts, 40, 0, 50 * MS);
			weir_service_tick(prompt, now, &counts, 0);
		}
		weir_service_tick(late, now, &counts, 0);
		CU_ASSERT_DOUBLE_EQUAL(status_of(late).capacity, status_of(prompt).capacity, 1e-9);
	}
	CU_ASSERT_DOUBLE_EQUAL(status_of(late).capacity, 20, 1e-9);
	/* An hour late: what is older than the window has aged out. */
	now += 3600 * SECOND;
	add(&counts, 40 * 36000, 0, 50 * MS);
	weir_service_tick(late, now, &counts, 0);
	CU_ASSERT_DOUBLE_EQUAL(status_of(late).capacity, 20, 0.6);
	weir_service_free(late);
	weir_service_free(prompt);
}

/* ---- freezing, settings ---- */

static void frozen_loop_keeps_its_output(void)
{
	const struct weir_service_conf conf = conf_of(true, true, true);
	struct weir_service_counts counts = { 0 };
	struct world world = { 0 };
	struct weir_service *service = service_of(&conf, &world);
	int64_t now = 0;

	for (int i = 0; i < 3; i++)
		CU_ASSERT_TRUE(weir_service_freeze(service, i, true));
	CU_ASSERT_EQUAL(world.pushes, 1);
	for (int i = 0; i < 100; i++) {
		add(&counts, 1, 50, 900 * MS);
		counts.in_flight = 80;
		weir_service_tick(service, now += 100 * MS, &counts, 1000);
	}
	CU_ASSERT_EQUAL(weir_service_output(service)->drop, 0);
	CU_ASSERT_EQUAL(weir_service_output(service)->ceiling, WEIR_SERVICE_NO_CEILING);
	CU_ASSERT_EQUAL(world.pushes, 1);
	CU_ASSERT(status_of(service).ratio > 0.5 && status_of(service).hot);
	CU_ASSERT_TRUE(status_of(service).frozen[WEIR_LOOP_BREAKER]);
	/* A reload that put the limit back doesn't end the freeze, nor does the freeze lose it. */
	world.limit = 1000;
	weir_service_push(service);
	CU_ASSERT_EQUAL(world.limit, 50);
	for (int i = 0; i < 3; i++)
		weir_service_freeze(service, i, false);
	for (int i = 0; i < 40; i++) {
		add(&counts, 1, 50, 900 * MS);
		weir_service_tick(service, now += 100 * MS, &counts, 1000);
	}
	CU_ASSERT(weir_service_output(service)->drop > 0.5);
	CU_ASSERT(weir_service_output(service)->ceiling < 100);
	CU_ASSERT_EQUAL(world.limit, 10);
	weir_service_free(service);
}

static void unchanged_loops_go_on_over_new_settings(void)
{
	struct weir_service_conf conf = conf_of(true, false, true);
	struct weir_service_counts counts = { 0 };
	struct world world = { 0 };
	struct weir_service *service = service_of(&conf, &world);
	int64_t now = 0;

	weir_service_tick(service, now, &counts, 0);
	for (int i = 0; i < 100; i++) {
		add(&counts, 100, i < 50 ? 0 : 900, MS);
		weir_service_tick(service, now += 100 * MS, &counts, 0);
	}
	CU_ASSERT(status_of(service).ratio > 0.5);
	CU_ASSERT(world.limit != 50);
	/* A shedder comes, the breaker's knob changes: the governor doesn't start again. */
	conf.has[WEIR_LOOP_SHEDDER] = true;
	conf.breaker.k = 2;
	world.pushes = 0;
	CU_ASSERT_EQUAL(weir_service_configure(service, &conf, now), 0);
	CU_ASSERT_EQUAL(status_of(service).ratio, 0);
	CU_ASSERT_EQUAL(world.pushes, 0);
	/* Its own does. */
	conf.governor.floor = 20;
	weir_service_freeze(service, WEIR_LOOP_GOVERNOR, true);
	CU_ASSERT_EQUAL(weir_service_configure(service, &conf, now), 0);
	CU_ASSERT_EQUAL(world.limit, 50);
	CU_ASSERT_TRUE(status_of(service).frozen[WEIR_LOOP_GOVERNOR]);
	/* And goes. */
	conf.has[WEIR_LOOP_GOVERNOR] = false;
	CU_ASSERT_EQUAL(weir_service_configure(service, &conf, now), 0);
	CU_ASSERT_FALSE(status_of(service).has[WEIR_LOOP_GOVERNOR]);
	CU_ASSERT_FALSE(weir_service_freeze(service, WEIR_LOOP_GOVERNOR, true));
	weir_service_tick(service, now += 100 * MS, &counts, 0);
	weir_service_free(service);
}

static void tick_is_the_narrower_bucket(void)
{
	struct weir_service_conf conf = conf_of(true, true, true);
	struct world world = { 0 };
	struct weir_service *service = service_of(&conf, &world);

	CU_ASSERT_EQUAL(weir_service_tick_ns(service), 100 * MS);
	conf.has[WEIR_LOOP_SHEDDER] = false;
	weir_service_configure(service, &conf, 0);
	CU_ASSERT_EQUAL(weir_service_tick_ns(service), 250 * MS);
	conf.has[WEIR_LOOP_BREAKER] = false;
	weir_service_configure(service, &conf, 0);
	CU_ASSERT_EQUAL(weir_service_tick_ns(service), 500 * MS);
	conf.has[WEIR_LOOP_GOVERNOR] = false;
	weir_service_configure(service, &conf, 0);
	CU_ASSERT_EQUAL(weir_service_tick_ns(service), SECOND);
	conf.has[WEIR_LOOP_SHEDDER] = true;
	conf.shedder.size = 1000;
	conf.shedder.window_ns = 100 * MS;
	weir_service_configure(service, &conf, 0);
	CU_ASSERT_EQUAL(weir_service_tick_ns(service), WEIR_SERVICE_TICK_MIN_NS);
	weir_service_free(service);
}

/* ---- what is said ---- */

static void every_movement_names_its_signal(void)
{
	const struct weir_service_conf conf = conf_of(true, true, true);
	struct weir_service_counts counts = { 0 };
	struct world world = { .limit = 1000 };
	struct weir_service *service = service_of(&conf, &world);
	char text[512];
	int64_t now = 0;
	json_t *json;

	weir_movement_print(&world.last, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, "service web: governor: offer 1000 -> 50 (start: floor 10, "
				     "ceiling 1000)");
	weir_service_tick(service, now, &counts, 950);
	weir_movement_print(&world.last, text, sizeof(text));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "service web: shedder: ceiling none -> "));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "(cpu: cpu 950 of 900 thousandths, capacity "));
	weir_service_freeze(service, WEIR_LOOP_SHEDDER, true);
	add(&counts, 20, 80, MS);
	weir_service_tick(service, now += 100 * MS, &counts, 950);
	CU_ASSERT_EQUAL(world.last.loop, WEIR_LOOP_BREAKER);
	weir_movement_print(&world.last, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, "service web: breaker: drop 0% -> 64.4% (failures: 80 failed, "
				     "20 ok, 0 dropped since the last)");
	json = weir_movement_json(&world.last);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(json, "signal")), "failures");
	CU_ASSERT_DOUBLE_EQUAL(json_real_value(json_object_get(json, "to")), 65.0 / 101, 1e-9);
	json_decref(json);
	/* One line, not one a tick: it stays where it is. */
	world.movements = 0;
	weir_service_tick(service, now += 100 * MS, &counts, 950);
	CU_ASSERT_EQUAL(world.movements, 0);
	weir_service_tick(service, now += 4 * SECOND, &counts, 950);
	CU_ASSERT_EQUAL(world.last.loop, WEIR_LOOP_GOVERNOR);
	weir_movement_print(&world.last, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, "service web: governor: offer 50 -> 12.5 (attempt failures: "
				     "80% of 100, above 5%)");
	weir_service_free(service);
}

/* The CPU of a busy host goes up and down around the threshold: weir events has 1000 lines. */
static void a_ceiling_that_refuses_nobody_is_not_said_all_the_time(void)
{
	const struct weir_service_conf conf = conf_of(false, true, false);
	struct weir_service_counts counts = { 0 };
	struct world world = { 0 };
	struct weir_service *service = service_of(&conf, &world);
	int64_t now_ns = 0;

	for (int i = 0; i < 600; i++) {
		now_ns += 100 * MS;
		weir_service_tick(service, now_ns, &counts, i & 2 ? 950 : 850);
	}
	CU_ASSERT(world.movements > 0 && world.movements <= 6);
	/* Where it stays it is said, a little later. */
	for (int i = 0; i < 120; i++) {
		now_ns += 100 * MS;
		weir_service_tick(service, now_ns, &counts, 100);
	}
	CU_ASSERT(isinf(world.last.to));
	/* One that refuses is said at once, however often. */
	world.movements = 0;
	for (int i = 0; i < 10; i++) {
		for (int j = 0; j < 2; j++) {
			counts.shed++;
			now_ns += 100 * MS;
			weir_service_tick(service, now_ns, &counts, 950);
		}
		now_ns += 5 * SECOND;
		weir_service_tick(service, now_ns, &counts, 100);
	}
	CU_ASSERT_EQUAL(world.movements, 20);
	weir_service_free(service);
}

static void refused_push_is_said_and_made_again(void)
{
	const struct weir_service_conf conf = conf_of(false, false, true);
	struct weir_service_counts counts = { 0 };
	struct world world = { .limit = 50 };
	struct weir_service *service = service_of(&conf, &world);
	char text[512];
	int64_t now = 0;

	weir_service_tick(service, now, &counts, 0);
	world.refuse = -5;
	add(&counts, 100, 0, MS);
	weir_service_tick(service, now += 5 * SECOND, &counts, 0);
	weir_movement_print(&world.last, text, sizeof(text));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "offer stays 50 (control: push of 100 refused"));
	world.refuse = 0;
	weir_service_tick(service, now += 5 * SECOND, &counts, 0);
	CU_ASSERT_EQUAL(world.limit, 100);
	weir_service_free(service);
}

static void response_times_are_of_the_last_seconds(void)
{
	const struct weir_service_conf conf = conf_of(false, false, false);
	struct weir_service_counts counts = { 0 };
	struct world world = { 0 };
	struct weir_service *service = service_of(&conf, &world);
	struct weir_service_status status;
	int64_t now = 0;

	weir_service_tick(service, now, &counts, -1);
	CU_ASSERT_EQUAL(status_of(service).median_ns, 0);
	for (int i = 0; i < 5; i++) {
		add(&counts, 98, 0, 10 * MS);
		add(&counts, 2, 0, 300 * MS);
		weir_service_tick(service, now += SECOND, &counts, -1);
	}
	status = status_of(service);
	CU_ASSERT(status.median_ns >= 10 * MS && status.median_ns <= 12.5 * MS);
	CU_ASSERT(status.p99_ns >= 300 * MS && status.p99_ns <= 375 * MS);
	for (int i = 0; i < 25; i++) {
		add(&counts, 10, 0, 1 * MS);
		weir_service_tick(service, now += SECOND, &counts, -1);
	}
	CU_ASSERT(status_of(service).p99_ns <= 1.25 * MS);
	CU_ASSERT_EQUAL(weir_service_output(service)->drop, 0);
	weir_service_free(service);
}

static void slots_hold_what_they_say(void)
{
	for (uint64_t ns = 0; ns < 1ULL << 42; ns += 1 + ns / 37) {
		uint32_t slot = weir_response_slot(ns);

		CU_ASSERT(slot < WEIR_RESPONSE_SLOTS);
		CU_ASSERT(weir_response_least(slot) <= ns);
		CU_ASSERT(slot == WEIR_RESPONSE_SLOTS - 1 || ns < weir_response_least(slot + 1));
	}
	CU_ASSERT_EQUAL(weir_response_slot(UINT64_MAX), WEIR_RESPONSE_SLOTS - 1);
	CU_ASSERT_EQUAL(weir_response_least(WEIR_RESPONSE_SLOTS - 1), 7ULL << 38);
}

WEIR_TESTS("service", TEST(counts_before_the_first_tick_are_the_past),
	   TEST(counts_that_go_back_are_a_new_start), TEST(g2_ratio_is_the_formula),
	   TEST(late_tick_equals_the_ticks_it_missed), TEST(frozen_loop_keeps_its_output),
	   TEST(unchanged_loops_go_on_over_new_settings), TEST(tick_is_the_narrower_bucket),
	   TEST(every_movement_names_its_signal),
	   TEST(a_ceiling_that_refuses_nobody_is_not_said_all_the_time),
	   TEST(refused_push_is_said_and_made_again),
	   TEST(response_times_are_of_the_last_seconds), TEST(slots_hold_what_they_say))
