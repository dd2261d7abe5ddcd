// SPDX-License-Identifier: GPL-2.0
/* What outlives a reload and a restart, and where it is pinned. */
#include "harness.h"

#include "engine_lab.h"
#include "weir/abi.h"

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
	   TEST(B6_pins_of_another_version_are_refused),
	   TEST(B6_pins_of_another_size_are_refused),
	   TEST(another_ledger_size_waits_for_a_detach), TEST(B12_refused_reload_changes_nothing),
	   TEST(pins_elsewhere_are_refused), TEST(A15_a_missing_bpffs_is_mounted))
