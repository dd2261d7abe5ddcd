// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "controller/cpu.h"
#include "controller/journal.h"
#include "controller/offer.h"
#include "controller/services.h"
#include "harness.h"
#include "json_path.h"

#define MS 1000000LL
#define SECOND (1000 * MS)

static const char head[] =
	"version: 1\n"
	"limits:\n"
	"  - {name: rate, key: none, bucket: {rate: 1000pps}, match: {proto: tcp, to_port: 80}}\n"
	"  - {name: slow, key: none, bucket: {rate: 600/min}}\n"
	"  - {name: wide, key: none, bucket: {rate: 80mbit}}\n"
	"  - {name: conns, key: source, gate: {limit: 200}, match: {proto: tcp}}\n"
	"services:\n";
static const char web[] = "  - name: web\n"
			  "    match: {proto: tcp, to_port: 80}\n"
			  "    breaker: {k: 2, probe: 3s}\n"
			  "    shedder: {cpu: 800}\n"
			  "    governor: {control: rate, start: 50pps, floor: 10pps, window: 1s}\n";
static const char api[] = "  - name: api\n"
			  "    match: {proto: tcp, to_port: 81}\n"
			  "    trust: report\n"
			  "    governor: {control: conns, start: 20, floor: 5}\n";

/* A controller: the policy in force, a kernel's counts, what was written. */
struct world {
	struct weir_policy *policy;
	struct weir_service_counts counts[4];
	struct weir_service_output written[4];
	int reads, writes, read_error, lines, movements;
	char line[512];
	struct weir_services *services;
};

static int read_counts(void *context, size_t service, struct weir_service_counts *counts)
{
	struct world *world = context;

	world->reads++;
	*counts = world->counts[service];
	return world->read_error;
}

static int write_output(void *context, size_t service, const struct weir_service_output *output)
{
	struct world *world = context;

	world->writes++;
	world->written[service] = *output;
	return 0;
}

static const struct weir_policy_limit *limit(void *context, const char *name)
{
	return weir_policy_find_limit(((struct world *)context)->policy, name);
}

static int set(void *context, const char *name, const struct weir_policy_change *change)
{
	struct weir_error err = { 0 };
	int rc = weir_policy_set(((struct world *)context)->policy, name, change, 1, &err);

	if (rc)
		printf("  %s\n", err.text);
	return rc;
}

static void moved(void *context, const struct weir_movement *movement)
{
	(void)movement;
	((struct world *)context)->movements++;
}

static void note(void *context, const char *line)
{
	struct world *world = context;

	world->lines++;
	snprintf(world->line, sizeof(world->line), "%s", line);
}

static void load(struct world *world, const char *a, const char *b, int64_t now_ns)
{
	struct weir_policy *policy = NULL;
	struct weir_error err = { 0 };
	char text[4096];

	snprintf(text, sizeof(text), "%s%s%s%s", head, a, b, *a || *b ? "" : "  []\n");
	CU_ASSERT_EQUAL_FATAL(
		weir_policy_load_text(text, strlen(text), "w.yaml", &policy, &err), 0);
	weir_policy_free(world->policy);
	world->policy = policy;
	CU_ASSERT_EQUAL(weir_services_apply(world->services, policy, now_ns, &err), 0);
}

static void make(struct world *world)
{
	const struct weir_services_io io = { read_counts, write_output, limit,
					     set,	  moved,	note,
					     "/nonexistent", world };

	*world = (struct world){ 0 };
	world->services = weir_services_new(&io);
	CU_ASSERT_PTR_NOT_NULL_FATAL(world->services);
}

static void unmake(struct world *world)
{
	weir_services_free(world->services);
	weir_policy_free(world->policy);
}

static json_t *shown(const struct world *world)
{
	int rc;
	json_t *array = weir_services_json(world->services, NULL, &rc);

	CU_ASSERT_EQUAL_FATAL(rc, 0);
	return array;
}

static json_t *show(const struct world *world, const char *name)
{
	int rc;
	json_t *array = weir_services_json(world->services, name, &rc), *one;

	CU_ASSERT_EQUAL_FATAL(rc, 0);
	CU_ASSERT_EQUAL(json_array_size(array), 1);
	one = json_incref(json_array_get(array, 0));
	json_decref(array);
	return one;
}

static double at_number(json_t *object, const char *path)
{
	return json_number_value(at(object, path));
}

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

static void governor_of_another_limit_starts_anew(void)
{
	static const char other[] = "  - name: web\n"
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
	world.counts[1] = (struct weir_service_counts){ .success = 9999, .dropped = 7,
							.shed = 8, .in_flight = 9 };
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
	   TEST(g11_offer_shown_is_the_limit_in_force), TEST(unlimited_limit_is_shown_as_null),
	   TEST(reload_keeps_what_did_not_change), TEST(governor_of_another_limit_starts_anew),
	   TEST(reports_count_for_who_trusts_them), TEST(freeze_takes_one_loop_or_all),
	   TEST(counts_that_cannot_be_read_are_said_once),
	   TEST(journal_has_movements_beside_their_text))
