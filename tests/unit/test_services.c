// SPDX-License-Identifier: GPL-2.0
#include "controller/journal.h"
#include "services_world.h"

/* ---- nothing ---- */

static void no_services_cost_nothing(void)
{
	struct world world;
	json_t *array;

	make(&world);
	CU_ASSERT_EQUAL(weir_services_tick_ns(world.services), 0);
	load(&world, "", "", 0);
	CU_ASSERT_EQUAL(weir_services_tick_ns(world.services), 0);
	weir_services_tick(world.services, SECOND);
	CU_ASSERT_EQUAL(world.reads + world.writes + world.lines + world.movements, 0);
	array = shown(&world);
	CU_ASSERT_EQUAL(json_array_size(array), 0);
	json_decref(array);
	unmake(&world);
}

/* ---- a service ---- */

static void policy_becomes_loops(void)
{
	struct world world;
	json_t *got;

	make(&world);
	load(&world, web, "", 0);
	/* A governor pushes its start: the limit has it. */
	CU_ASSERT_EQUAL(world.policy->limits[0].bucket.rate.amount, 50);
	CU_ASSERT_EQUAL(weir_services_tick_ns(world.services), 100 * MS);
	for (int i = 0; i < 30; i++)
		weir_services_tick(world.services, i * 100 * MS);
	CU_ASSERT_EQUAL(world.reads, 30);
	CU_ASSERT_EQUAL(world.writes, 3); /* nothing changed: once a second */
	/* No /proc there: said once, and the CPU is not known. */
	CU_ASSERT_PTR_NOT_NULL(strstr(world.line, "the host's CPU is not known"));
	CU_ASSERT_EQUAL(world.lines, 1);
	world.counts[0] = (struct weir_service_counts){ .attempts = 1000,
							.failure = 900,
							.success = 50,
							.response_count = 50,
							.response_ns = 50 * 7 * MS,
							.in_flight = 50 };
	world.counts[0].response[weir_response_slot(7 * MS)] = 50;
	weir_services_tick(world.services, 3 * SECOND);
	CU_ASSERT_DOUBLE_EQUAL(world.written[0].drop, (950 - 5 - 2 * 50) / 951.0, 1e-9);
	CU_ASSERT_EQUAL(world.written[0].ceiling, WEIR_SERVICE_NO_CEILING);
	CU_ASSERT(world.written[0].probe_ns >= 2700 * MS && world.written[0].probe_ns <= 3300 * MS);
	got = show(&world, "web");
	CU_ASSERT_STRING_EQUAL(text(got, "trust"), "kernel");
	CU_ASSERT_EQUAL(number(got, "attempts"), 1000);
	CU_ASSERT_EQUAL(number(got, "ok"), 50);
	CU_ASSERT_EQUAL(number(got, "failed"), 900);
	CU_ASSERT_EQUAL(number(got, "in_flight"), 50);
	CU_ASSERT(number(got, "median_ns") >= 7 * MS && number(got, "median_ns") < 9 * MS);
	CU_ASSERT_DOUBLE_EQUAL(at_number(got, "breaker.drop"), world.written[0].drop, 1e-12);
	CU_ASSERT_TRUE(json_is_null(at(got, "shedder.cpu")));
	CU_ASSERT_EQUAL(number(got, "shedder.cpu_hot"), 800);
	CU_ASSERT_TRUE(json_is_null(at(got, "shedder.ceiling")));
	CU_ASSERT_EQUAL(at_number(got, "governor.ceiling"), 1000);
	CU_ASSERT_TRUE(json_is_false(at(got, "governor.frozen")));
	json_decref(got);
	unmake(&world);
}

static void monitor_enforces_nothing_and_the_end_lets_go(void)
{
	struct world world;
	json_t *got;

	make(&world);
	load(&world, web, "", 0);
	weir_services_tick(world.services, 0);
	world.counts[0].failure = 1000;
	weir_services_tick(world.services, SECOND);
	CU_ASSERT(world.written[0].drop > 0.9);
	world.policy->mode = WEIR_POLICY_MONITOR;
	CU_ASSERT_EQUAL(weir_services_apply(world.services, world.policy, SECOND, NULL), 0);
	weir_services_tick(world.services, 1100 * MS);
	CU_ASSERT_EQUAL(world.written[0].drop, 0);
	got = show(&world, "web");
	CU_ASSERT(at_number(got, "breaker.drop") > 0.9); /* what it would */
	json_decref(got);
	world.policy->mode = WEIR_POLICY_ENFORCE;
	CU_ASSERT_EQUAL(weir_services_apply(world.services, world.policy, SECOND, NULL), 0);
	weir_services_tick(world.services, 1200 * MS);
	CU_ASSERT(world.written[0].drop > 0.9);
	weir_services_free(world.services);
	CU_ASSERT_EQUAL(world.written[0].drop, 0);
	CU_ASSERT_EQUAL(world.written[0].ceiling, WEIR_SERVICE_NO_CEILING);
	weir_policy_free(world.policy);
}

/* ---- reload ---- */

static void reload_keeps_what_did_not_change(void)
{
	struct world world;
	json_t *got;

	make(&world);
	load(&world, web, api, 0);
	weir_services_tick(world.services, 0);
	for (int i = 1; i <= 40; i++) {
		world.counts[0].success += 100;
		weir_services_tick(world.services, i * 100 * MS);
	}
	CU_ASSERT(world.policy->limits[0].bucket.rate.amount >= 200);
	weir_services_freeze(world.services, "web", "breaker", true, NULL);
	/* The order changes, a service goes; the file's 1000pps gives way to the offer. */
	load(&world, web, "", 4 * SECOND);
	CU_ASSERT(world.policy->limits[0].bucket.rate.amount >= 200);
	CU_ASSERT(world.policy->limits[0].bucket.rate.amount < 1000);
	CU_ASSERT_EQUAL(world.policy->limits[3].gate.limit, 200);
	got = show(&world, "web");
	CU_ASSERT_EQUAL(number(got, "ok"), 4000);
	CU_ASSERT_TRUE(json_is_true(at(got, "breaker.frozen")));
	json_decref(got);
	load(&world, api, web, 5 * SECOND);
	CU_ASSERT(world.policy->limits[0].bucket.rate.amount >= 200);
	CU_ASSERT_EQUAL(world.policy->limits[3].gate.limit, 20);
	load(&world, "", "", 6 * SECOND);
	CU_ASSERT_EQUAL(weir_services_tick_ns(world.services), 0);
	unmake(&world);
}

/* ---- reports ---- */

static void reports_count_for_who_trusts_them(void)
{
	struct weir_error err;
	struct world world;
	json_t *got;

	make(&world);
	load(&world, web, api, 0);
	weir_services_tick(world.services, 0);
	for (int i = 0; i < 200; i++)
		CU_ASSERT_EQUAL(weir_services_outcome(world.services, "api", i % 2, 12 * MS, &err),
				0);
	CU_ASSERT_EQUAL(weir_services_outcome(world.services, "api", true, 0, &err), 0);
	CU_ASSERT_EQUAL(weir_services_outcome(world.services, "none", true, 0, &err), -ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "'none'"));
	CU_ASSERT_EQUAL(weir_services_outcome(world.services, "web", true, 0, &err), -EOPNOTSUPP);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "trust: report"));
	weir_services_malformed(world.services);
	/* The kernel's own view of its exchanges doesn't count, its refusals and places do. */
	world.counts[1] = (struct weir_service_counts){
		.success = 9999, .dropped = 7, .shed = 8, .in_flight = 9
	};
	weir_services_tick(world.services, 5 * SECOND);
	got = show(&world, "api");
	CU_ASSERT_STRING_EQUAL(text(got, "trust"), "report");
	CU_ASSERT_EQUAL(number(got, "ok"), 101);
	CU_ASSERT_EQUAL(number(got, "failed"), 100);
	CU_ASSERT_EQUAL(number(got, "dropped"), 7);
	CU_ASSERT_EQUAL(number(got, "shed"), 8);
	CU_ASSERT_EQUAL(number(got, "in_flight"), 9);
	CU_ASSERT(number(got, "p99_ns") >= 12 * MS && number(got, "p99_ns") <= 15 * MS);
	/* Half failed: the gate was lowered. */
	CU_ASSERT_EQUAL(world.policy->limits[3].gate.limit, 10);
	json_decref(got);
	got = weir_services_reports_json(world.services);
	CU_ASSERT_EQUAL(number(got, "received"), 204);
	CU_ASSERT_EQUAL(number(got, "unknown"), 1);
	CU_ASSERT_EQUAL(number(got, "malformed"), 1);
	json_decref(got);
	unmake(&world);
}

/* What the kernel had counted before is no news then. */
static void whom_a_service_trusts_may_change(void)
{
	static const char same[] = "  - name: api\n"
				   "    match: {proto: tcp, to_port: 81}\n"
				   "    governor: {control: conns, start: 20, floor: 5}\n";
	struct world world;

	make(&world);
	load(&world, api, "", 0);
	weir_services_tick(world.services, 0);
	world.counts[0] = (struct weir_service_counts){ .success = 5000, .failure = 5000 };
	for (int i = 1; i <= 20; i++)
		weir_services_tick(world.services, i * SECOND);
	CU_ASSERT_EQUAL(world.policy->limits[3].gate.limit, 20);
	load(&world, same, "", 20 * SECOND);
	for (int i = 21; i <= 40; i++)
		weir_services_tick(world.services, i * SECOND);
	CU_ASSERT_EQUAL(world.policy->limits[3].gate.limit, 20);
	/* But what comes from now on is. */
	for (int i = 41; i <= 60; i++) {
		world.counts[0].failure += 100;
		weir_services_tick(world.services, i * SECOND);
	}
	CU_ASSERT_EQUAL(world.policy->limits[3].gate.limit, 5);
	unmake(&world);
}

/* ---- freeze, failures ---- */

static void freeze_takes_one_loop_or_all(void)
{
	struct weir_error err;
	struct world world;
	json_t *got;

	make(&world);
	load(&world, web, api, 0);
	CU_ASSERT_EQUAL(weir_services_freeze(world.services, "web", "shedder", true, &err), 0);
	CU_ASSERT_STRING_EQUAL(world.line, "service web: shedder frozen (weir freeze)");
	got = show(&world, "web");
	CU_ASSERT_TRUE(json_is_true(at(got, "shedder.frozen")));
	CU_ASSERT_TRUE(json_is_false(at(got, "governor.frozen")));
	json_decref(got);
	CU_ASSERT_EQUAL(weir_services_freeze(world.services, "web", NULL, true, &err), 0);
	got = show(&world, "web");
	CU_ASSERT_TRUE(json_is_true(at(got, "governor.frozen")));
	json_decref(got);
	CU_ASSERT_EQUAL(weir_services_freeze(world.services, "web", NULL, false, &err), 0);
	CU_ASSERT_EQUAL(weir_services_freeze(world.services, "no", NULL, true, &err), -ENOENT);
	CU_ASSERT_EQUAL(weir_services_freeze(world.services, "web", "x", true, &err), -EINVAL);
	CU_ASSERT_EQUAL(weir_services_freeze(world.services, "api", "breaker", true, &err),
			-ENOENT);
	CU_ASSERT_STRING_EQUAL(err.text, "service 'api' has no breaker");
	unmake(&world);
}

static void counts_that_cannot_be_read_are_said_once(void)
{
	struct world world;

	make(&world);
	load(&world, api, "", 0);
	world.read_error = -EIO;
	for (int i = 0; i < 10; i++)
		weir_services_tick(world.services, i * SECOND);
	CU_ASSERT_EQUAL(world.lines, 1);
	CU_ASSERT_EQUAL(world.writes, 0);
	world.read_error = 0;
	weir_services_tick(world.services, 10 * SECOND);
	CU_ASSERT_PTR_NOT_NULL(strstr(world.line, "works again"));
	unmake(&world);
}

static void journal_has_movements_beside_their_text(void)
{
	struct weir_movement movement = { .service = "web",
					  .loop = WEIR_LOOP_SHEDDER,
					  .from = INFINITY,
					  .to = 24,
					  .signal = "cpu",
					  .figures = "cpu 950" };
	struct weir_journal *journal = weir_journal_new();
	json_t *lines;

	weir_journal_add(journal, 1, "hello");
	weir_journal_add_movement(journal, 2, &movement);
	lines = weir_journal_json(journal, 10);
	CU_ASSERT_PTR_NULL(json_object_get(json_array_get(lines, 0), "movement"));
	CU_ASSERT_STRING_EQUAL(text(json_array_get(lines, 1), "text"),
			       "service web: shedder: ceiling none -> 24 (cpu: cpu 950)");
	CU_ASSERT_TRUE(json_is_null(at(json_array_get(lines, 1), "movement.from")));
	CU_ASSERT_EQUAL(at_number(json_array_get(lines, 1), "movement.to"), 24);
	CU_ASSERT_STRING_EQUAL(text(json_array_get(lines, 1), "movement.signal"), "cpu");
	json_decref(lines);
	weir_journal_free(journal);
}

WEIR_TESTS("services", TEST(no_services_cost_nothing), TEST(policy_becomes_loops),
	   TEST(monitor_enforces_nothing_and_the_end_lets_go),
	   TEST(reload_keeps_what_did_not_change), TEST(reports_count_for_who_trusts_them),
	   TEST(whom_a_service_trusts_may_change), TEST(freeze_takes_one_loop_or_all),
	   TEST(counts_that_cannot_be_read_are_said_once),
	   TEST(journal_has_movements_beside_their_text))
