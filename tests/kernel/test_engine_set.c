// SPDX-License-Identifier: GPL-2.0
/* `weir set` and `unset`: what acts, what is kept. */
#include "harness.h"

#include "engine_lab.h"

static int set(struct weir_engine *engine, const char *field, const char *value, bool save)
{
	const struct weir_policy_change change = { field, value };
	const struct weir_terms terms = { .save = save };
	struct weir_error err;

	return weir_engine_set(engine, "per-ip", &change, 1, &terms, &err);
}

/* B1, B5: acts at once, and a thousand sets give no more than one new burst. */
static void B1_B5_set_acts_and_refills_nothing(void)
{
	struct weir_engine *engine;
	struct weir_error err;

	lab_open();
	lab_config(W0, TEN_A_DAY);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	lab_send(15, 1, 53);
	CU_ASSERT_EQUAL(lab_await(engine, 0, 15).passed_packets, 10);
	for (int i = 0; i < 1000; i++)
		CU_ASSERT_EQUAL(set(engine, "burst", "10", false), 0);
	lab_send(15, 1, 53);
	CU_ASSERT_EQUAL(lab_await(engine, 0, 30).passed_packets, 10);
	lab.log[0] = '\0';
	/* Tokens are kept: an empty bucket stays empty, one that nobody used has the new burst. */
	CU_ASSERT_EQUAL(set(engine, "burst", "14", false), 0);
	lab_send(15, 1, 53);
	CU_ASSERT_EQUAL(lab_await(engine, 0, 45).passed_packets, 10);
	CU_ASSERT_EQUAL(set(engine, "burst", "5", false), 0);
	lab_send(9, 2, 53);
	CU_ASSERT_EQUAL(lab_await(engine, 0, 54).passed_packets, 15);
	CU_ASSERT_EQUAL(set(engine, "rate", "block", false), 0);
	lab_send(5, 3, 53);
	CU_ASSERT_EQUAL(lab_await(engine, 0, 59).passed_packets, 15);
	CU_ASSERT_EQUAL(set(engine, "rate", "unlimited", false), 0);
	lab_send(5, 1, 53);
	CU_ASSERT_EQUAL(lab_await(engine, 0, 64).passed_packets, 20);
	CU_ASSERT_TRUE(lab_said("limit per-ip: burst=14 (weir set)"));
	weir_engine_stop(engine, true);
	lab_close();
}

/* B1 in the middle of a flood: sets as fast as they go, between two prices of the same depth. */
static void B1_sets_under_a_flood_refill_nothing(void)
{
	const struct weir_policy_change slow[] = { { "rate", "10/d" }, { "burst", "10" } };
	const struct weir_policy_change fast[] = { { "rate", "20/d" }, { "burst", "20" } };
	struct weir_engine *engine;
	struct weir_totals totals;
	struct weir_error err;
	int sets = 0, status;
	pid_t child;

	lab_open();
	lab_config(W0, TEN_A_DAY);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	child = fork();
	if (!child) {
		lab_send(50000, 1, 53);
		_exit(0);
	}
	while (!waitpid(child, &status, WNOHANG)) {
		CU_ASSERT_EQUAL(
			weir_engine_set(engine, "per-ip", sets % 2 ? slow : fast, 2, NULL, &err),
			0);
		sets++;
	}
	totals = lab_await(engine, 0, 50000);
	CU_ASSERT(sets > 100);
	CU_ASSERT(totals.refused_packets > 40000);
	CU_ASSERT(totals.passed_packets >= 10 && totals.passed_packets <= 20);
	weir_engine_stop(engine, true);
	lab_close();
}

static void refused_set_changes_nothing(void)
{
	const struct weir_terms saved = { .save = true };
	struct weir_policy_change changes[] = { { "burst", "400000" }, { "rate", "1/d" } };
	struct weir_engine *engine;
	struct weir_error err;

	lab_open();
	lab_config(W0, TEN_A_DAY);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	CU_ASSERT_NOT_EQUAL(weir_engine_set(engine, "per-ip", changes, 2, &saved, &err), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "2 years"));
	CU_ASSERT_EQUAL(weir_engine_set(engine, "nobody", changes, 1, &saved, &err), -ENOENT);
	CU_ASSERT_EQUAL(weir_engine_policy(engine)->limits[0].bucket.burst.value, 10);
	CU_ASSERT_NOT_EQUAL(access(lab.overrides, F_OK), 0);
	/* What can't be saved is not done either. */
	lab_run("touch %s/var", lab.folder);
	CU_ASSERT_EQUAL(set(engine, "burst", "20", true), -ENOTDIR);
	CU_ASSERT_EQUAL(weir_engine_policy(engine)->limits[0].bucket.burst.value, 10);
	lab_send(20, 1, 53);
	CU_ASSERT_EQUAL(lab_await(engine, 0, 20).passed_packets, 10);
	weir_engine_stop(engine, true);
	lab_close();
}

static uint64_t burst_of(struct weir_engine *engine)
{
	return weir_engine_policy(engine)->limits[0].bucket.burst.value;
}

static void set_lasts_only_if_saved(void)
{
	struct weir_engine *engine;
	struct weir_error err;

	lab_open();
	lab_config(W0, TEN_A_DAY);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	CU_ASSERT_EQUAL(set(engine, "burst", "7", false), 0);
	CU_ASSERT_EQUAL(weir_engine_reload(engine, NULL, &err), 0);
	CU_ASSERT_EQUAL(burst_of(engine), 10);
	CU_ASSERT_EQUAL(set(engine, "burst", "6", true), 0);
	CU_ASSERT_EQUAL(set(engine, "mode", "monitor", true), 0);
	CU_ASSERT_EQUAL(weir_engine_reload(engine, NULL, &err), 0);
	CU_ASSERT_EQUAL(burst_of(engine), 6);
	weir_engine_stop(engine, true);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	CU_ASSERT_EQUAL(burst_of(engine), 6);
	CU_ASSERT_EQUAL(weir_engine_policy(engine)->limits[0].mode, WEIR_POLICY_MONITOR);
	CU_ASSERT_TRUE(lab_said("(kept by weir set --save"));
	weir_engine_stop(engine, true);
	lab_close();
}

/* weir unset: what is in force and what is kept, both. */
static void unset_goes_back_to_the_file(void)
{
	const struct weir_terms kept = { .save = true };
	struct weir_engine *engine;
	struct weir_error err;

	lab_open();
	lab_config(W0, TEN_A_DAY);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	CU_ASSERT_EQUAL(set(engine, "burst", "6", true), 0);
	CU_ASSERT_EQUAL(set(engine, "burst", "5", false), 0);
	CU_ASSERT_EQUAL(set(engine, "mode", "monitor", false), 0);
	CU_ASSERT_EQUAL(weir_engine_set(engine, "nobody", NULL, 0, &kept, &err), -ENOENT);
	CU_ASSERT_EQUAL(burst_of(engine), 5);
	CU_ASSERT_EQUAL(weir_engine_set(engine, "per-ip", NULL, 0, &kept, &err), 0);
	CU_ASSERT_EQUAL(burst_of(engine), 10);
	CU_ASSERT_EQUAL(weir_engine_policy(engine)->limits[0].mode, WEIR_POLICY_ENFORCE);
	CU_ASSERT_TRUE(lab_said("limit per-ip: as in the file (weir unset), before: "));
	CU_ASSERT_EQUAL(weir_engine_reload(engine, NULL, &err), 0);
	CU_ASSERT_EQUAL(burst_of(engine), 10);
	weir_engine_stop(engine, true);
	lab_close();
}

/* Rings that were made for the kept quota hold no more: the next reload makes others. */
static void unset_of_small_rings_waits_for_a_reload(void)
{
	const struct weir_policy_change small = { "quota", "5" };
	const struct weir_terms kept = { .save = true };
	struct weir_engine *engine;
	struct weir_error err;

	lab_open();
	lab_config(W0, "  - {name: per-ip, key: source, sliding: {quota: 50, window: 1d}}\n");
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	CU_ASSERT_EQUAL(weir_engine_set(engine, "per-ip", &small, 1, &kept, &err), 0);
	weir_engine_stop(engine, true);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	CU_ASSERT_EQUAL(weir_engine_set(engine, "per-ip", NULL, 0, &kept, &err), -ERANGE);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "weir reload brings what the file says"));
	CU_ASSERT_EQUAL(weir_engine_policy(engine)->limits[0].sliding.quota, 5);
	CU_ASSERT_EQUAL(weir_engine_reload(engine, NULL, &err), 0);
	CU_ASSERT_EQUAL(weir_engine_policy(engine)->limits[0].sliding.quota, 50);
	weir_engine_stop(engine, true);
	lab_close();
}

static void overrides_that_are_none_are_refused(void)
{
	static const char *const bad[] = {
		"",
		"{",
		"[]",
		"{\"version\": 2, \"limits\": {}}",
		"{\"version\": 1, \"limits\": {\"per-ip\": 5}}",
		"{\"version\": 1, \"limits\": {\"per-ip\": {\"burst\": 5}}}"
	};
	struct weir_engine *engine;
	struct weir_error err;
	char path[128];

	lab_open();
	lab_config(W0, TEN_A_DAY);
	snprintf(path, sizeof(path), "%s/var", lab.folder);
	mkdir(path, 0700);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		lab_write(lab.overrides, bad[i]);
		CU_ASSERT_EQUAL(lab_start(&engine, &err), -EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, lab.overrides));
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "delete it"));
		CU_ASSERT_FALSE(lab_has_pins());
	}
	/* What the configuration no longer has is left out, aloud. */
	lab_write(lab.overrides, "{\"version\": 1, \"limits\": {\"gone\": {\"burst\": \"5\"}}}");
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	CU_ASSERT_TRUE(lab_said("left out: burst=5"));
	weir_engine_stop(engine, true);
	lab_close();
}

WEIR_TESTS("engine_set", TEST(B1_B5_set_acts_and_refills_nothing),
	   TEST(B1_sets_under_a_flood_refill_nothing), TEST(refused_set_changes_nothing),
	   TEST(set_lasts_only_if_saved), TEST(unset_goes_back_to_the_file),
	   TEST(unset_of_small_rings_waits_for_a_reload),
	   TEST(overrides_that_are_none_are_refused))
