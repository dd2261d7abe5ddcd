// SPDX-License-Identifier: GPL-2.0
/* A governor's offer and the limit it moves, in every unit. */
#include "services_world.h"

/* What weir show says is what the limit has, whoever set it last, in whichever unit. */
static void g11_offer_shown_is_the_limit_in_force(void)
{
	static const struct {
		const char *governor, *limit;
		double start, set;
		const char *unit, *change, *value;
	} cases[] = {
		{ "{control: rate, start: 50pps, floor: 10pps, window: 1s}", "rate", 50, 77,
		  "packets", "rate", "77pps" },
		{ "{control: slow, start: 120/min, floor: 6/min, window: 1s}", "slow", 2, 0.5,
		  "packets", "rate", "30/min" },
		{ "{control: wide, start: 8mbit, floor: 1mbit, window: 1s}", "wide", 1e6, 2e6,
		  "bytes", "rate", "16mbit" },
		{ "{control: conns, start: 20, floor: 5, window: 1s}", "conns", 20, 33,
		  "connections", "limit", "33" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct weir_policy_change change = { cases[i].change, cases[i].value };
		char service[512];
		struct world world;
		double before;
		json_t *got;

		make(&world);
		snprintf(service, sizeof(service),
			 "  - {name: web, match: {proto: tcp, to_port: 80}, governor: %s}\n",
			 cases[i].governor);
		load(&world, service, "", 0);
		weir_services_tick(world.services, 0);
		got = show(&world, "web");
		CU_ASSERT_DOUBLE_EQUAL(at_number(got, "governor.offer"), cases[i].start, 1e-9);
		CU_ASSERT_STRING_EQUAL(text(got, "governor.unit"), cases[i].unit);
		json_decref(got);
		/* It climbs, and what is shown climbs with it. */
		world.counts[0].success = 100;
		weir_services_tick(world.services, 3 * SECOND);
		got = show(&world, "web");
		CU_ASSERT_DOUBLE_EQUAL(at_number(got, "governor.offer"), 2 * cases[i].start, 1e-9);
		json_decref(got);
		CU_ASSERT_EQUAL(set(&world, cases[i].limit, &change), 0);
		got = show(&world, "web");
		CU_ASSERT_DOUBLE_EQUAL(at_number(got, "governor.offer"), cases[i].set, 1e-9);
		json_decref(got);
		/* And the next step starts there. */
		world.counts[0].failure = 100;
		before = cases[i].set;
		weir_services_tick(world.services, 6 * SECOND);
		got = show(&world, "web");
		CU_ASSERT(at_number(got, "governor.offer") < before);
		CU_ASSERT(at_number(got, "governor.offer") >= at_number(got, "governor.floor"));
		json_decref(got);
		unmake(&world);
	}
}

static void unlimited_limit_is_shown_as_null(void)
{
	struct weir_policy_change change = { "rate", "unlimited" };
	struct world world;
	json_t *got;

	make(&world);
	load(&world, web, "", 0);
	CU_ASSERT_EQUAL(set(&world, "rate", &change), 0);
	got = show(&world, "web");
	CU_ASSERT_TRUE(json_is_null(at(got, "governor.offer")));
	json_decref(got);
	unmake(&world);
}

/* Without a ceiling it climbs to what a limit can be set to, and takes itself for nobody else. */
static void no_ceiling_ends_where_limits_do(void)
{
	static const char *const governors[] = {
		"{control: rate, start: 50pps, floor: 10pps, ceiling: unlimited, window: 1s}",
		"{control: slow, start: 50/min, floor: 10/min, ceiling: unlimited, window: 1s}",
		"{control: wide, start: 1mbit, floor: 1mbit, ceiling: unlimited, window: 1s}",
		"{control: conns, start: 20, floor: 5, ceiling: unlimited, window: 1s}",
	};

	for (size_t i = 0; i < 4; i++) {
		char service[512];
		struct world world;
		int before;

		make(&world);
		snprintf(service, sizeof(service),
			 "  - {name: web, match: {proto: tcp, to_port: 80}, governor: %s}\n",
			 governors[i]);
		load(&world, service, "", 0);
		for (int j = 0; j < 100; j++) {
			world.counts[0].success += 100;
			weir_services_tick(world.services, j * 2 * SECOND);
		}
		before = world.movements;
		CU_ASSERT(before > 20 && before < 60);
		for (int j = 100; j < 150; j++) {
			world.counts[0].success += 100;
			weir_services_tick(world.services, j * 2 * SECOND);
		}
		CU_ASSERT_EQUAL(world.movements, before);
		unmake(&world);
	}
}

static void governor_of_another_limit_starts_anew(void)
{
	static const char other[] =
		"  - name: web\n"
		"    match: {proto: tcp, to_port: 80}\n"
		"    breaker: {k: 2, probe: 3s}\n"
		"    shedder: {cpu: 800}\n"
		"    governor: {control: slow, start: 300/min, floor: 10/min}\n";
	struct world world;

	make(&world);
	load(&world, web, "", 0);
	load(&world, other, "", SECOND);
	CU_ASSERT_EQUAL(world.policy->limits[0].bucket.rate.amount, 1000);
	CU_ASSERT_EQUAL(world.policy->limits[1].bucket.rate.amount, 300);
	unmake(&world);
}

WEIR_TESTS("service offers", TEST(g11_offer_shown_is_the_limit_in_force),
	   TEST(unlimited_limit_is_shown_as_null), TEST(no_ceiling_ends_where_limits_do),
	   TEST(governor_of_another_limit_starts_anew))
