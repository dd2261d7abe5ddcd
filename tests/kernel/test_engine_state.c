// SPDX-License-Identifier: GPL-2.0
/* What outlives a reload, a restart, a `weir set`, and where it is pinned. */
#include "harness.h"

#include "engine_lab.h"
#include "store_trap.h"
#include "weir/abi.h"

static int set(struct weir_engine *engine, const char *field, const char *value, bool save)
{
	const struct weir_policy_change change = { field, value };
	const struct weir_terms terms = { .save = save };
	struct weir_error err;

	return weir_engine_set(engine, "per-ip", &change, 1, &terms, &err);
}

/* ---- B: state, reload ---- */

/* B2, B4: neither a reload nor a change of another limit moves a count or a bucket. */
static void B2_B4_counts_and_state_outlive_reloads(void)
{
	const char *more = "  - {name: other, key: source, match: {to_port: 99}, bucket: {rate: "
			   "%d/d}}\n" TEN_A_DAY;
	struct weir_totals before, after;
	struct weir_engine *engine;
	struct weir_error err;
	char limits[512];

	lab_open();
	lab_config(W0, TEN_A_DAY);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	lab_send(25, 1, 53);
	before = lab_await(engine, 0, 25);
	for (int i = 1; i <= 20; i++) {
		snprintf(limits, sizeof(limits), more, i);
		lab_config(W0, limits);
		CU_ASSERT_EQUAL(weir_engine_reload(engine, NULL, &err), 0);
	}
	after = lab_totals(engine, 1);
	CU_ASSERT_EQUAL(memcmp(&before, &after, sizeof(before)), 0);
	lab_send(5, 1, 53);
	CU_ASSERT_EQUAL(lab_await(engine, 1, 30).passed_packets, 10);
	CU_ASSERT_EQUAL(lab_totals(engine, 0).passed_packets, 0);
	weir_engine_stop(engine, true);
	lab_close();
}

/* A removed limit's slot starts from zero for the next one. */
static void a_slot_given_to_another_starts_from_zero(void)
{
	struct weir_engine *engine;
	struct weir_error err;
	uint32_t slot;

	lab_open();
	lab_config(W0, TEN_A_DAY);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	slot = weir_engine_slot(engine, 0);
	lab_send(25, 1, 53);
	lab_await(engine, 0, 25);
	lab_config(W0, "  - {name: b, key: source, bucket: {rate: 9/d, burst: 9}}\n");
	CU_ASSERT_EQUAL(weir_engine_reload(engine, NULL, &err), 0);
	lab_config(W0, "  - {name: c, key: source, bucket: {rate: 9/d, burst: 9}}\n");
	CU_ASSERT_EQUAL(weir_engine_reload(engine, NULL, &err), 0);
	CU_ASSERT_EQUAL(weir_engine_slot(engine, 0), slot);
	CU_ASSERT_EQUAL(lab_totals(engine, 0).passed_packets, 0);
	lab_send(4, 1, 53);
	CU_ASSERT_EQUAL(lab_await(engine, 0, 4).passed_packets, 4);
	weir_engine_stop(engine, true);
	lab_close();
}

/* What the pinned board says its version is. */
static void write_version(uint32_t version)
{
	static struct weir_board board;
	uint32_t zero = 0;
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/weir_board", lab.pins);
	fd = bpf_obj_get(path);
	CU_ASSERT_EQUAL(bpf_map_lookup_elem(fd, &zero, &board), 0);
	board.active.abi_version = version;
	CU_ASSERT_EQUAL(bpf_map_update_elem(fd, &zero, &board, BPF_ANY), 0);
	close(fd);
}

/* B6: pins of the version before, of a newer one; and of another size. */
static void B6_pins_of_another_version_are_refused(void)
{
	static const uint32_t versions[] = { WEIR_ABI_VERSION - 1, WEIR_ABI_VERSION + 1, 99 };
	struct weir_engine *engine;
	struct weir_error err;
	uint32_t program;
	char words[32];

	lab_open();
	lab_config(W0, TEN_A_DAY);
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		CU_ASSERT_TRUE_FATAL(lab_start_and_be_killed());
		program = lab_program("w0");
		write_version(versions[i]);
		snprintf(words, sizeof(words), "ABI version %u,", versions[i]);
		CU_ASSERT_EQUAL(lab_start(&engine, &err), -EPROTO);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, words));
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "weir stop --detach"));
		CU_ASSERT_EQUAL(lab_program("w0"), program);
		/* What the sentence advises works, whatever the version. */
		CU_ASSERT_EQUAL(weir_engine_detach_pins(lab.pins, &err), 0);
		CU_ASSERT_EQUAL(lab_program("w0"), 0);
	}
	CU_ASSERT_EQUAL(lab_start(&engine, &err), 0);
	weir_engine_stop(engine, true);
	lab_close();
}

static void B6_pins_of_another_size_are_refused(void)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "weir_labels", 4, 64, 2, NULL);
	struct weir_engine *engine;
	struct weir_error err;
	char path[128];

	lab_open();
	lab_config(W0, TEN_A_DAY);
	CU_ASSERT_TRUE_FATAL(lab_start_and_be_killed());
	snprintf(path, sizeof(path), "%s/weir_labels", lab.pins);
	unlink(path);
	CU_ASSERT_EQUAL_FATAL(bpf_obj_pin(fd, path), 0);
	close(fd);
	CU_ASSERT_EQUAL(lab_start(&engine, &err), -EPROTO);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "weir_labels"));
	CU_ASSERT_NOT_EQUAL(lab_program("w0"), 0);
	lab_close();
}

static void another_ledger_size_waits_for_a_detach(void)
{
	struct weir_engine *engine;
	struct weir_error err;
	uint32_t sets;

	lab_open();
	lab_config(W0, TEN_A_DAY);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	sets = weir_engine_dataplane(engine)->shape.sets;
	weir_engine_stop(engine, false);
	lab.keys = 4096;
	lab_config(W0, TEN_A_DAY);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	CU_ASSERT_EQUAL(weir_engine_dataplane(engine)->shape.sets, sets);
	CU_ASSERT_TRUE(lab_said("ledger.keys is 4096"));
	weir_engine_stop(engine, true);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	CU_ASSERT_EQUAL(weir_engine_dataplane(engine)->shape.sets, 4 * sets);
	weir_engine_stop(engine, true);
	lab_close();
}

/* B12: a file that is refused changes nothing. */
static void B12_refused_reload_changes_nothing(void)
{
	struct weir_engine *engine;
	struct weir_error err;

	lab_open();
	lab_config(W0, TEN_A_DAY);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	lab_config("", "  - {name: per-ip, key: source, bucket: {rate: -1}}\n");
	CU_ASSERT_EQUAL(weir_engine_reload(engine, NULL, &err), -EINVAL);
	lab_send(20, 1, 53);
	CU_ASSERT_EQUAL(lab_await(engine, 0, 20).passed_packets, 10);
	CU_ASSERT_EQUAL(weir_engine_policy(engine)->limits[0].bucket.burst.value, 10);
	weir_engine_stop(engine, true);
	lab_close();
}

/* ---- set ---- */

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

static int stores_left;

static void die_in_time(void)
{
	if (!--stores_left)
		kill(getpid(), SIGKILL);
}

/* A child that starts an engine and is killed after so many stores of a set; false if not. */
static bool set_and_be_killed(int stores)
{
	const struct weir_policy_change changes[] = { { "rate", "1/d" }, { "burst", "12" } };
	pid_t child = fork();
	int status;

	if (!child) {
		struct weir_engine *engine;
		struct weir_board *board;
		struct weir_limit *limit;
		struct weir_error err;

		if (lab_begin(&engine, &err))
			_exit(1);
		board = weir_engine_dataplane(engine)->board;
		limit = board->limits + (board->active.generation & 1) * WEIR_LIMITS_MAX;
		stores_left = stores;
		store_trap_on(limit, sizeof(*limit), die_in_time);
		weir_engine_set(engine, "per-ip", changes, 2, NULL, &err);
		_exit(0);
	}
	waitpid(child, &status, 0);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

/*
 * Until the next start no more passes than the larger of both allows, and it puts all right.
 * (Each of the stores, without a start: tests/unit/test_generation.c.)
 */
static void a_set_killed_at_any_store_is_put_right(void)
{
	static const int stores[] = { 1, 2, 3, 1000 };

	lab_open();
	lab_config(W0, "  - {name: per-ip, key: source, bucket: {rate: 100/d, burst: 10}}\n");
	for (int i = 0; i < 4; i++) {
		struct weir_engine *engine;
		struct weir_totals totals;
		struct weir_error err;

		CU_ASSERT_EQUAL_FATAL(set_and_be_killed(stores[i]), i < 3);
		lab_send(50, 1, 53);
		CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
		totals = lab_await(engine, 0, 50);
		CU_ASSERT(totals.passed_packets <= 12);
		CU_ASSERT_EQUAL(totals.passed_packets + totals.refused_packets, 50);
		lab_send(15, 2, 53);
		CU_ASSERT_EQUAL(lab_await(engine, 0, 65).passed_packets,
				totals.passed_packets + 10);
		/* Who was refused all at the new price has what the file grants, once. */
		lab_send(15, 1, 53);
		CU_ASSERT(lab_await(engine, 0, 80).passed_packets <= 12 + 10);
		weir_engine_stop(engine, true);
	}
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

/* ---- pins ---- */

static void pins_elsewhere_are_refused(void)
{
	struct weir_engine *engine;
	struct weir_error err;
	char pins[96];

	lab_open();
	lab_config(W0, TEN_A_DAY);
	strcpy(pins, lab.pins);
	snprintf(lab.pins, sizeof(lab.pins), "%s/weir", lab.folder);
	CU_ASSERT_EQUAL(lab_start(&engine, &err), -ENOTDIR);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "not on a bpffs"));
	strcpy(lab.pins, pins);
	mkdir(pins, 0700);
	snprintf(pins, sizeof(pins), "%s/other", lab.pins);
	mkdir(pins, 0700);
	CU_ASSERT_EQUAL(lab_start(&engine, &err), -EEXIST);
	CU_ASSERT_EQUAL(access(pins, F_OK), 0);
	lab_close();
}

/* A15: no bpffs where the pins go (ip netns exec): one is mounted, here and for us only. */
static void A15_a_missing_bpffs_is_mounted(void)
{
	char folder[128], pins[96];
	struct weir_engine *engine;
	struct weir_error err;

	lab_open();
	lab_config(W0, TEN_A_DAY);
	strcpy(pins, lab.pins);
	snprintf(folder, sizeof(folder), "%s/bpf", lab.folder);
	mkdir(folder, 0700);
	snprintf(lab.pins, sizeof(lab.pins), "%s/bpf/weir", lab.folder);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	CU_ASSERT_TRUE(lab_has_pins());
	weir_engine_stop(engine, true);
	CU_ASSERT_EQUAL(rmdir(folder), 0);
	strcpy(lab.pins, pins);
	lab_close();
}

WEIR_TESTS("engine_state", TEST(B2_B4_counts_and_state_outlive_reloads),
	   TEST(a_slot_given_to_another_starts_from_zero),
	   TEST(B6_pins_of_another_version_are_refused), TEST(B6_pins_of_another_size_are_refused),
	   TEST(another_ledger_size_waits_for_a_detach), TEST(B12_refused_reload_changes_nothing),
	   TEST(B1_B5_set_acts_and_refills_nothing), TEST(B1_sets_under_a_flood_refill_nothing),
	   TEST(a_set_killed_at_any_store_is_put_right), TEST(refused_set_changes_nothing),
	   TEST(set_lasts_only_if_saved), TEST(unset_goes_back_to_the_file),
	   TEST(unset_of_small_rings_waits_for_a_reload),
	   TEST(overrides_that_are_none_are_refused), TEST(pins_elsewhere_are_refused),
	   TEST(A15_a_missing_bpffs_is_mounted))
