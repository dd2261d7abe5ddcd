// SPDX-License-Identifier: GPL-2.0
/* Limits of every kind from the file to the packet, and what becomes of their maps. */
#include "harness.h"

#include "controller/report.h"
#include "engine_lab.h"

#define SLIDE_5 "  - {name: slide, key: source, keys: 1024, sliding: {quota: 5, window: 1h}}\n"
#define SLIDE_100 "  - {name: slide, key: source, keys: 1024, sliding: {quota: 100, window: 1h}}\n"
#define FLOW "  - {name: flow, key: flow, keys: 1024, bucket: {rate: 1/d, burst: 3}}\n"
#define DAILY "  - {name: daily, key: source, period: {quota: 4, period: 1d, align: true}}\n"
#define FROM "  - {name: from, key: source, match: {from: [10.9.0.0/24]}, bucket: {rate: 1Mpps}}\n"
#define ALL_KINDS DAILY FLOW SLIDE_5

static void expect(struct weir_engine *engine, size_t limit, uint64_t passed, uint64_t refused)
{
	struct weir_totals totals = lab_await(engine, limit, passed + refused);

	CU_ASSERT_EQUAL(totals.passed_packets, passed);
	CU_ASSERT_EQUAL(totals.refused_packets, refused);
	if (totals.passed_packets != passed || totals.refused_packets != refused)
		printf("  limit %zu: %llu passed, %llu refused\n", limit,
		       (unsigned long long)totals.passed_packets,
		       (unsigned long long)totals.refused_packets);
}

/* The maps that the limits have of their own. */
struct own_maps {
	uint32_t ids[WEIR_OWN_MAPS * WEIR_LIMITS_MAX];
	unsigned int count;
};

static struct own_maps own_maps(struct weir_engine *engine)
{
	const struct weir_dataplane *dataplane = weir_engine_dataplane(engine);
	struct own_maps maps = { .count = 0 };

	for (int map = 0; map < WEIR_OWN_MAPS; map++) {
		for (uint32_t slot = 0; slot < WEIR_LIMITS_MAX; slot++)
			maps.count += !bpf_map_lookup_elem(dataplane->own_fds[map], &slot,
							   &maps.ids[maps.count]);
	}
	return maps;
}

/* How many are still in the kernel, once it had time to free them. */
static unsigned int still_there(const struct own_maps *maps, unsigned int wanted)
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	unsigned int there = 0;

	for (int i = 0; i < 2000; i++) {
		there = 0;
		for (unsigned int j = 0; j < maps->count; j++) {
			int fd = bpf_map_get_fd_by_id(maps->ids[j]);

			there += fd >= 0;
			if (fd >= 0)
				close(fd);
		}
		if (there == wanted)
			break;
		nanosleep(&ms, NULL);
	}
	return there;
}

static void each_kind_limits(void)
{
	struct weir_engine *engine;
	struct weir_error err;
	struct own_maps maps;

	lab_open();
	lab_config(W0, ALL_KINDS);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	/* The daily quota of 4, of which the flow lets 3 pass at one port. */
	lab_send(10, 1, 53);
	expect(engine, 1, 3, 7);
	expect(engine, 0, 3, 0);
	lab_send(10, 1, 54);
	expect(engine, 0, 4, 9);
	expect(engine, 2, 4, 0);
	maps = own_maps(engine);
	CU_ASSERT_EQUAL(maps.count, 5);
	CU_ASSERT_EQUAL(still_there(&maps, 5), 5);
	weir_engine_stop(engine, true);
	CU_ASSERT_EQUAL(still_there(&maps, 0), 0);
	lab_close();
}

static void a_sliding_window_and_its_set(void)
{
	const struct weir_policy_change quota = { "quota", "7" }, more = { "quota", "17" };
	struct weir_engine *engine;
	struct weir_error err;
	struct own_maps maps;

	lab_open();
	lab_config(W0, SLIDE_5);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	maps = own_maps(engine);
	lab_send(20, 1, 53);
	expect(engine, 0, 5, 15);
	CU_ASSERT_EQUAL(weir_engine_set(engine, "slide", &quota, 1, NULL, &err), 0);
	lab_send(10, 1, 53);
	expect(engine, 0, 7, 23);
	/* The ring holds 16. */
	CU_ASSERT_EQUAL(weir_engine_set(engine, "slide", &more, 1, NULL, &err), -ERANGE);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "at most 16"));
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "reload"));
	CU_ASSERT_EQUAL(weir_engine_policy(engine)->limits[0].sliding.quota, 7);
	CU_ASSERT_EQUAL(weir_engine_reload(engine, NULL, &err), 0);
	lab_send(10, 1, 53);
	expect(engine, 0, 7, 33);
	/* A new ring, and a new slot with it. */
	lab_config(W0, SLIDE_100);
	CU_ASSERT_EQUAL(weir_engine_reload(engine, NULL, &err), 0);
	lab_send(120, 1, 53);
	expect(engine, 0, 100, 20);
	CU_ASSERT_EQUAL(maps.count, 3);
	CU_ASSERT_EQUAL(still_there(&maps, 0), 0);
	CU_ASSERT_EQUAL(own_maps(engine).count, 3);
	weir_engine_stop(engine, true);
	lab_close();
}

static void rings_outlive_the_controller(void)
{
	struct weir_engine *engine;
	struct weir_error err;
	struct own_maps maps;

	lab_open();
	lab_config(W0, SLIDE_5);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	maps = own_maps(engine);
	lab_send(3, 1, 53);
	expect(engine, 0, 3, 0);
	weir_engine_stop(engine, false);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	lab_send(3, 1, 53);
	expect(engine, 0, 5, 1);
	CU_ASSERT_EQUAL(still_there(&maps, 3), 3);
	lab_config(W0, TEN_A_DAY);
	CU_ASSERT_EQUAL(weir_engine_reload(engine, NULL, &err), 0);
	CU_ASSERT_EQUAL(still_there(&maps, 0), 0);
	weir_engine_stop(engine, true);
	lab_close();
}

/* ---- aligned periods and the wall clock ---- */

static uint64_t ahead_ns;

static uint64_t fake_wall_ns(void)
{
	return ahead_ns;
}

static int start_with_fake_clock(struct weir_engine **engine, struct weir_error *err)
{
	const struct weir_engine_options options = { .config = lab.config,
						     .pins = lab.pins,
						     .overrides = lab.overrides,
						     .log = lab_note,
						     .log_context = &lab,
						     .wall_ns = fake_wall_ns };

	return weir_engine_start(engine, &options, err);
}

#define DAY_NS 86400000000000ULL

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

/* Midnight is an hour away; the clock is set to just after it: the quota is there again. */
static void aligned_periods_follow_the_wall_clock(void)
{
	struct weir_engine *engine;
	struct weir_error err;
	uint64_t now_ns = monotonic_ns();

	lab_open();
	lab_config(W0, DAILY);
	ahead_ns = 20000 * DAY_NS - 3600000000000ULL - now_ns;
	CU_ASSERT_EQUAL_FATAL(start_with_fake_clock(&engine, &err), 0);
	lab_send(6, 1, 53);
	expect(engine, 0, 4, 2);
	ahead_ns += 1000;
	weir_engine_tick(engine);
	CU_ASSERT_FALSE(lab_said("wall clock"));
	/* Set so that midnight is in 50 ms: the open period now ends there. */
	ahead_ns = 20000 * DAY_NS - monotonic_ns() - 50000000;
	weir_engine_tick(engine);
	CU_ASSERT_TRUE(lab_said("the wall clock was set by"));
	lab_send(2, 1, 53);
	expect(engine, 0, 4, 4);
	nanosleep(&(struct timespec){ .tv_nsec = 60000000 }, NULL);
	lab_send(6, 1, 53);
	expect(engine, 0, 8, 6);
	weir_engine_stop(engine, true);
	lab_close();
}

/* ---- removed limits ---- */

static unsigned int held_places(struct weir_engine *engine)
{
	const struct weir_dataplane *dataplane = weir_engine_dataplane(engine);
	uint64_t now_ticks = monotonic_ns() << WEIR_TICK_SHIFT;
	unsigned int held = 0;

	for (uint32_t i = 0; i < dataplane->shape.sets * WEIR_WAYS; i++)
		held += !weir_neutral(dataplane->ledger[i / WEIR_WAYS].state[i % WEIR_WAYS],
				      now_ticks);
	return held;
}

static void a_removed_limit_holds_no_place(void)
{
	struct weir_engine *engine;
	struct weir_error err;

	lab_open();
	lab_config(W0, DAILY TEN_A_DAY);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	for (uint8_t last = 1; last <= 100; last++)
		lab_send(1, last, 53);
	expect(engine, 1, 100, 0);
	CU_ASSERT_EQUAL(held_places(engine), 200);
	lab_config(W0, TEN_A_DAY);
	CU_ASSERT_EQUAL(weir_engine_reload(engine, NULL, &err), 0);
	CU_ASSERT_EQUAL(held_places(engine), 100);
	/* Those of the other are as they were. */
	lab_send(10, 1, 53);
	expect(engine, 0, 109, 1);
	/* Another key under the same name. */
	lab_config(W0, "  - {name: per-ip, key: none, bucket: {rate: 10/d, burst: 10}}\n");
	CU_ASSERT_EQUAL(weir_engine_reload(engine, NULL, &err), 0);
	CU_ASSERT_EQUAL(held_places(engine), 0);
	weir_engine_stop(engine, true);
	lab_close();
}

/* ---- many reloads ---- */

static unsigned int open_fds(void)
{
	unsigned int count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* In the match of either generation. */
static unsigned int prefixes_of(struct weir_engine *engine)
{
	struct weir_prefix_key key, *at = NULL;
	unsigned int count = 0;

	while (!bpf_map_get_next_key(weir_engine_dataplane(engine)->prefixes_fd, at, &key)) {
		at = &key;
		count++;
	}
	return count;
}

/* Reloads of the same files, which are most, are fast: the limits' own maps are kept. */
static void reloads_that_change_nothing(void)
{
	struct weir_engine *engine;
	struct weir_error err;
	uint64_t begun_ns;

	lab_open();
	lab_config(W0, ALL_KINDS);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	lab_send(20, 1, 53);
	expect(engine, 1, 3, 17);
	begun_ns = monotonic_ns();
	for (int i = 0; i < 100; i++)
		CU_ASSERT_EQUAL(weir_engine_reload(engine, NULL, &err), 0);
	printf("  100 reloads: %.0f ms\n", (double)(monotonic_ns() - begun_ns) / 1e6);
	lab_send(5, 1, 53);
	expect(engine, 1, 3, 22);
	expect(engine, 2, 3, 0);
	weir_engine_stop(engine, true);
	lab_close();
}

/* B3: 100 reloads a second for 2 s under a flood; nothing is leaked, nothing forgotten. */
static void B3_reloads_under_a_flood_leak_nothing(void)
{
	static const char *const files[] = { DAILY SLIDE_5 FLOW FROM,
					 SLIDE_5 TEN_A_DAY DAILY };
	struct weir_engine *engine;
	struct weir_totals totals;
	struct weir_error err;
	unsigned int fds, reloads = 0, prefixes;
	struct own_maps maps;
	uint64_t end_ns;
	pid_t flood;

	lab_open();
	lab_config(W0, files[0]);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	lab_send(20, 1, 53);
	expect(engine, 0, 3, 0);
	fds = open_fds();
	prefixes = prefixes_of(engine);
	CU_ASSERT_EQUAL(prefixes, 1);
	flood = fork();
	if (!flood) {
		for (;;)
			lab_send(1000, 1, 53);
	}
	for (end_ns = monotonic_ns() + 2000000000; monotonic_ns() < end_ns || reloads % 2;) {
		lab_config(W0, files[++reloads % 2]);
		lab.log[0] = '\0';
		CU_ASSERT_EQUAL(weir_engine_reload(engine, NULL, &err), 0);
	}
	kill(flood, SIGKILL);
	waitpid(flood, NULL, 0);
	printf("  %u reloads in 2 s\n", reloads);
	CU_ASSERT_EQUAL(open_fds(), fds);
	CU_ASSERT_EQUAL(prefixes_of(engine), prefixes);
	maps = own_maps(engine);
	CU_ASSERT_EQUAL(maps.count, 5);
	/* One source: 4 a day at most, whatever was reloaded meanwhile. */
	totals = lab_totals(engine, 0);
	CU_ASSERT(totals.passed_packets <= 4);
	totals = lab_totals(engine, 1);
	CU_ASSERT(totals.passed_packets <= 5);
	weir_engine_stop(engine, true);
	CU_ASSERT_EQUAL(still_there(&maps, 0), 0);
	lab_close();
}

/* ---- bans ---- */

static void a_ban_outlives_the_controller(void)
{
	struct weir_engine *engine;
	struct weir_totals totals;
	struct weir_error err;
	struct weir_bans bans;

	lab_open();
	lab_config(W0, "  - {name: strict, key: source, bucket: {rate: 1000pps, burst: 1}, "
		       "ban: {after: 5 refusals in 10s, for: 10m}}\n");
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	lab_send(50, 1, 53);
	totals = lab_await(engine, 0, 50);
	CU_ASSERT(totals.banned_packets > 0);
	weir_engine_stop(engine, false);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	lab_send(1, 1, 53);
	lab_send(1, 2, 53);
	totals = lab_await(engine, 0, 52);
	CU_ASSERT(totals.passed_packets > 0);
	CU_ASSERT_EQUAL(weir_bans_read(&bans, weir_engine_dataplane(engine)), 0);
	CU_ASSERT_EQUAL(bans.count, 1);
	weir_bans_free(&bans);
	/* With its limit it goes. */
	lab_config(W0, TEN_A_DAY);
	CU_ASSERT_EQUAL(weir_engine_reload(engine, NULL, &err), 0);
	CU_ASSERT_EQUAL(weir_bans_read(&bans, weir_engine_dataplane(engine)), 0);
	CU_ASSERT_EQUAL(bans.count, 0);
	weir_bans_free(&bans);
	weir_engine_stop(engine, true);
	lab_close();
}

/* By its address or its key, at once, and its refusals of before are forgotten. */
static void a_ban_is_lifted_by_hand(void)
{
	static const char *const keys[] = { "10.9.0.1", "10.9.0.0/24" };
	struct weir_engine *engine;
	struct weir_totals totals;
	struct weir_error err;
	size_t lifted;

	lab_open();
	lab_config(W0, "  - {name: strict, key: {source: {v4: 24}}, bucket: {rate: 1/d, burst: 1}, "
		       "ban: {after: 5 refusals in 1h, for: 1h}}\n");
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	CU_ASSERT_EQUAL(weir_engine_unban(engine, "10.9.0.1", &lifted, &err), -ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "10.9.0.1"));
	for (size_t i = 0; i < 2; i++) {
		totals = lab_totals(engine, 0);
		lab_send(10, 1, 53);
		lab_await(engine, 0, totals.passed_packets + totals.refused_packets + 10);
		CU_ASSERT(lab_totals(engine, 0).banned_packets > totals.banned_packets);
		CU_ASSERT_EQUAL(weir_engine_unban(engine, "10.8.0.1", &lifted, &err), -ENOENT);
		CU_ASSERT_EQUAL(weir_engine_unban(engine, keys[i], &lifted, &err), 0);
		CU_ASSERT_EQUAL(lifted, 1);
		/* Four more are refused, but not for a ban. */
		totals = lab_totals(engine, 0);
		lab_send(4, 1, 53);
		lab_await(engine, 0, totals.passed_packets + totals.refused_packets + 4);
		CU_ASSERT_EQUAL(lab_totals(engine, 0).banned_packets, totals.banned_packets);
		CU_ASSERT_EQUAL(weir_engine_unban(engine, keys[i], &lifted, &err), -ENOENT);
	}
	CU_ASSERT(lab_said("limit strict: ban of 10.9.0.1 lifted"));
	weir_engine_stop(engine, true);
	lab_close();
}

/* ---- what is told about them ---- */

static json_t *told(json_t *report, const char *array, size_t i, const char *field)
{
	return json_object_get(json_array_get(json_object_get(report, array), i), field);
}

static void why_and_top_see_own_ledgers(void)
{
	const uint8_t address[16] = { 10, 9, 0, 1 };
	struct weir_engine *engine;
	struct weir_limits_view limits;
	struct weir_scan *scan;
	struct weir_error err;
	struct weir_top top, *tops[] = { &top };
	struct weir_view view;
	uint64_t until;
	json_t *report;

	lab_open();
	lab_config(W0, SLIDE_5 FLOW);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	lab_send(2, 1, 53);
	lab_send(9, 1, 54);
	expect(engine, 0, 5, 6);
	weir_engine_list_add(engine, WEIR_ALLOW, "10.9.0.0/24", 3600000000000ULL, &until, &err);
	view = (struct weir_view){ .dataplane = weir_engine_dataplane(engine),
				   .now_ns = monotonic_ns() };
	report = weir_report_why(&view, 4, address);
	CU_ASSERT_PTR_NOT_NULL_FATAL(report);
	CU_ASSERT_EQUAL(json_integer_value(told(report, "limits", 0, "admitted")), 5);
	CU_ASSERT_EQUAL(json_real_value(told(report, "limits", 0, "left")), 0);
	CU_ASSERT_TRUE(json_is_true(told(report, "limits", 0, "refused_now")));
	until = (uint64_t)json_integer_value(told(report, "limits", 0, "refused_for_ns"));
	CU_ASSERT(until > 3500000000000ULL && until <= 3600000000000ULL);
	CU_ASSERT_TRUE(json_is_null(told(report, "limits", 1, "in_ledger")));
	CU_ASSERT_TRUE(json_is_object(json_object_get(json_object_get(report, "lists"), "allow")));
	CU_ASSERT_TRUE(json_is_null(json_object_get(json_object_get(report, "lists"), "deny")));
	json_decref(report);

	report = json_pack("{s:o}", "own", weir_report_own(&view));
	CU_ASSERT_STRING_EQUAL(json_string_value(told(report, "own", 0, "limit")), "slide");
	CU_ASSERT_STRING_EQUAL(json_string_value(told(report, "own", 1, "limit")), "flow");
	CU_ASSERT_EQUAL(json_integer_value(told(report, "own", 1, "places")) *
				json_real_value(told(report, "own", 1, "known_percent")),
			200);
	json_decref(report);

	CU_ASSERT_EQUAL_FATAL(weir_scan_new(&scan, view.dataplane, false), 0);
	CU_ASSERT_EQUAL(weir_top_init(&top, 10, WEIR_NO_LIMIT, false), 0);
	weir_scan_run(scan, tops, 1);
	weir_top_sort(&top);
	CU_ASSERT_EQUAL(top.count, 3);
	limits = *weir_scan_limits(scan);
	report = json_pack("{s:o}", "keys",
			   weir_report_top(view.dataplane, &top, &limits, 0, 10, 0));
	/* Of the refusals most are still held by the fronts. */
	CU_ASSERT_STRING_EQUAL(json_string_value(told(report, "keys", 0, "limit")), "slide");
	CU_ASSERT_STRING_EQUAL(json_string_value(told(report, "keys", 0, "key")), "10.9.0.1");
	CU_ASSERT_EQUAL(json_integer_value(told(report, "keys", 0, "admitted")), 5);
	CU_ASSERT_EQUAL(json_integer_value(told(report, "keys", 0, "refused")), 6);
	CU_ASSERT_STRING_EQUAL(json_string_value(told(report, "keys", 1, "key")),
			       "udp 10.9.0.1:2313 > 10.9.1.1:54");
	CU_ASSERT_EQUAL(json_integer_value(told(report, "keys", 1, "admitted")), 3);
	CU_ASSERT_EQUAL(json_integer_value(told(report, "keys", 2, "admitted")), 2);
	json_decref(report);
	weir_top_free(&top);
	weir_scan_free(scan);
	weir_engine_stop(engine, true);
	lab_close();
}

WEIR_TESTS("engine_limits", TEST(reloads_that_change_nothing), TEST(why_and_top_see_own_ledgers),
	   TEST(each_kind_limits), TEST(a_sliding_window_and_its_set),
	   TEST(rings_outlive_the_controller), TEST(aligned_periods_follow_the_wall_clock),
	   TEST(a_removed_limit_holds_no_place), TEST(B3_reloads_under_a_flood_leak_nothing),
	   TEST(a_ban_outlives_the_controller), TEST(a_ban_is_lifted_by_hand))
