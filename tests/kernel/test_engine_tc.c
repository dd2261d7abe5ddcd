// SPDX-License-Identifier: GPL-2.0
/* The engine at TC: TCX links where the kernel has them, and clsact by itself. */
#include "harness.h"

#include "controller/clsact.h"
#include "controller/tc.h"
#include "engine_lab.h"

#define W1 "  - {name: w1}\n"
#define AT(hook)                                                                                   \
	"  - {name: per-ip, key: source, match: {hook: " hook                                      \
	"}, bucket: {rate: 10/d, burst: 10}}\n"

#define TCX_INGRESS 46
#define TCX_EGRESS 47

/* Programs of TCX on an interface; -1 where the kernel has none. */
static int tcx_count(const char *interface, int type)
{
	uint32_t ids[16], count = 16, flags = 0;

	if (bpf_prog_query((int)if_nametoindex(interface), (enum bpf_attach_type)type, 0, &flags,
			   ids, &count))
		return -1;
	return (int)count;
}

/* Ours at a hook: TCX links or, on kernels before 6.6, filters of clsact. */
static int programs_at(const char *interface, int type)
{
	int count = tcx_count(interface, type);

	return count >= 0 ? count :
			    WEXITSTATUS(lab_run("exit $(tc filter show dev %s %s | grep -c weir_)",
						interface,
						type == TCX_INGRESS ? "ingress" : "egress"));
}

static void limits_at(const char *interfaces, const char *limits, const char *interface, int type)
{
	struct weir_engine *engine;
	struct weir_totals totals;
	struct weir_error err;

	lab_open();
	lab_config(interfaces, limits);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	CU_ASSERT_EQUAL(weir_engine_interface(engine, 0)->at_ingress, type == TCX_INGRESS);
	CU_ASSERT_EQUAL(weir_engine_interface(engine, 0)->at_egress, type == TCX_EGRESS);
	lab_send(25, 1, 53);
	totals = lab_await(engine, 0, 25);
	CU_ASSERT_EQUAL(totals.passed_packets, 10);
	CU_ASSERT_EQUAL(totals.refused_packets, 15);
	weir_engine_stop(engine, false);
	CU_ASSERT_EQUAL(programs_at(interface, type), 1);
	CU_ASSERT_EQUAL(weir_engine_detach_pins(lab.pins, &err), 0);
	CU_ASSERT_EQUAL(programs_at(interface, type), 0);
	CU_ASSERT_FALSE(lab_has_pins());
	lab_close();
}

static void limits_at_ingress(void)
{
	limits_at(W0, AT("tc-ingress"), "w0", TCX_INGRESS);
}

static void limits_at_egress(void)
{
	limits_at(W1, AT("tc-egress"), "w1", TCX_EGRESS);
}

/* A8: one program a hook, however often; none once no limit is there. */
static void A8_reloads_and_restarts_leave_one_program(void)
{
	struct weir_engine *engine;
	struct weir_error err;

	lab_open();
	lab_config(W0, AT("tc-ingress"));
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	for (int i = 0; i < 5; i++)
		CU_ASSERT_EQUAL(weir_engine_reload(engine, NULL, &err), 0);
	CU_ASSERT_EQUAL(programs_at("w0", TCX_INGRESS), 1);
	weir_engine_stop(engine, false);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	CU_ASSERT_EQUAL(programs_at("w0", TCX_INGRESS), 1);
	lab_send(25, 1, 53);
	CU_ASSERT_EQUAL(lab_await(engine, 0, 25).passed_packets, 10);
	lab_config(W0, AT("xdp"));
	CU_ASSERT_EQUAL(weir_engine_reload(engine, NULL, &err), 0);
	CU_ASSERT_EQUAL(programs_at("w0", TCX_INGRESS), 0);
	CU_ASSERT_FALSE(weir_engine_interface(engine, 0)->at_ingress);
	weir_engine_stop(engine, true);
	lab_close();
}

/* A7: the filters of others stay, and so does the qdisc that they made. */
static void A7_foreign_filter_survives_ours(void)
{
	struct weir_engine *engine;
	struct weir_error err;

	lab_open();
	lab_config(W0, AT("tc-ingress"));
	CU_ASSERT_EQUAL(lab_run("tc qdisc add dev w0 clsact"), 0);
	lab_attach_foreign_filter("w0", BPF_TC_INGRESS);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	lab_send(25, 1, 53);
	CU_ASSERT_EQUAL(lab_await(engine, 0, 25).passed_packets, 10);
	weir_engine_stop(engine, true);
	CU_ASSERT_EQUAL(lab_run("tc filter show dev w0 ingress | grep -q stranger"), 0);
	lab_close();
}

static void take_off(const char *interface)
{
	char path[160];
	int link;

	snprintf(path, sizeof(path), "%s/weir_tcx_%u_in", lab.pins, if_nametoindex(interface));
	link = bpf_obj_get(path);
	if (link < 0) {
		CU_ASSERT_EQUAL_FATAL(lab_run("tc filter del dev %s ingress", interface), 0);
		return;
	}
	CU_ASSERT_EQUAL_FATAL(bpf_link_detach(link), 0);
	close(link);
}

/* B10 */
static void B10_lost_link_is_made_again(void)
{
	struct weir_engine *engine;
	struct weir_error err;

	lab_open();
	lab_config(W0, AT("tc-ingress"));
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	take_off("w0");
	CU_ASSERT_EQUAL(programs_at("w0", TCX_INGRESS), 0);
	weir_engine_tick(engine);
	CU_ASSERT_EQUAL(programs_at("w0", TCX_INGRESS), 1);
	CU_ASSERT_TRUE(lab_said("our TC program was taken off"));
	weir_engine_stop(engine, true);
	CU_ASSERT_EQUAL(programs_at("w0", TCX_INGRESS), 0);
	lab_close();
}

/* A11 */
static void A11_interface_made_again_gets_its_link(void)
{
	struct weir_engine *engine;
	struct weir_error err;

	lab_open();
	lab_config(W0, AT("tc-ingress"));
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	lab_run("ip link del w0");
	lab_run("ip link add w0 type veth peer name w1; ip link set w0 up; ip link set w1 up");
	weir_engine_tick(engine);
	CU_ASSERT_EQUAL(programs_at("w0", TCX_INGRESS), 1);
	CU_ASSERT_TRUE(weir_engine_interface(engine, 0)->at_ingress);
	weir_engine_stop(engine, true);
	CU_ASSERT_FALSE(lab_has_pins());
	lab_close();
}

/* ---- clsact, as on kernels before 6.6 ---- */

struct clsact {
	struct weir_load load;
	struct weir_bpf *programs;
	struct weir_interface_status status;
	uint32_t board_id;
};

static void clsact_open(struct clsact *clsact)
{
	struct weir_error note, err;

	lab_open();
	*clsact = (struct clsact){ .status = { .name = "w0", .ifindex = if_nametoindex("w0") } };
	CU_ASSERT_EQUAL_FATAL(weir_load_open(&clsact->load, lab.pins, 1024, &note, &err), 0);
	CU_ASSERT_EQUAL_FATAL(weir_load_publish(&clsact->load, &err), 0);
	clsact->programs = weir_load_programs_open(&clsact->load, 1U << WEIR_HOOK_TC_INGRESS);
	CU_ASSERT_EQUAL_FATAL(weir_load_programs(clsact->programs, &err), 0);
	clsact->board_id = weir_map_id(
		bpf_object__find_map_fd_by_name(clsact->load.skeleton->obj, ".data.board"));
}

static int clsact_ensure(struct clsact *clsact, uint32_t board_id, struct weir_error *err)
{
	return weir_clsact_ensure(lab.pins, board_id, &clsact->status, WEIR_HOOK_TC_INGRESS,
				  bpf_program__fd(clsact->programs->progs.weir_ingress), err);
}

static void clsact_close(struct clsact *clsact)
{
	weir_bpf__destroy(clsact->programs);
	weir_load_close(&clsact->load, true);
	lab_close();
}

static int count_ours(void)
{
	return lab_run("test $(tc filter show dev w0 ingress | grep -c weir_ingress) = 1");
}

static void A8_clsact_has_one_filter_and_takes_its_qdisc_along(void)
{
	struct clsact clsact;
	struct weir_error err;

	clsact_open(&clsact);
	CU_ASSERT_EQUAL(clsact_ensure(&clsact, clsact.board_id, &err), 1);
	CU_ASSERT_EQUAL(clsact_ensure(&clsact, clsact.board_id, &err), 0);
	CU_ASSERT_EQUAL(count_ours(), 0);
	/* Another load of the programs, as after a restart: exchanged, not added. */
	weir_bpf__destroy(clsact.programs);
	clsact.programs = weir_load_programs_open(&clsact.load, 1U << WEIR_HOOK_TC_INGRESS);
	CU_ASSERT_EQUAL_FATAL(weir_load_programs(clsact.programs, &err), 0);
	CU_ASSERT_EQUAL(clsact_ensure(&clsact, clsact.board_id, &err), 1);
	CU_ASSERT_EQUAL(count_ours(), 0);
	weir_tc_remove(lab.pins, clsact.board_id, clsact.status.ifindex, WEIR_TC_HOOKS);
	CU_ASSERT_NOT_EQUAL(lab_run("tc qdisc show dev w0 | grep clsact"), 0);
	clsact_close(&clsact);
}

/* A7: a qdisc that others use, or made, stays; so does a filter at our handle. */
static void A7_clsact_of_others_stays(void)
{
	struct clsact clsact;
	struct weir_error err = { "" };

	clsact_open(&clsact);
	CU_ASSERT_EQUAL(clsact_ensure(&clsact, clsact.board_id, &err), 1);
	lab_attach_foreign_filter("w0", BPF_TC_EGRESS);
	/* To somebody with other maps that filter is not ours. */
	CU_ASSERT_EQUAL(clsact_ensure(&clsact, clsact.board_id, &err), 0);
	weir_tc_remove(lab.pins, 0, clsact.status.ifindex, WEIR_TC_HOOKS);
	CU_ASSERT_EQUAL(count_ours(), 0);
	weir_tc_remove(lab.pins, clsact.board_id, clsact.status.ifindex, WEIR_TC_HOOKS);
	CU_ASSERT_NOT_EQUAL(count_ours(), 0);
	CU_ASSERT_EQUAL(lab_run("tc filter show dev w0 egress | grep -q stranger"), 0);
	lab_run("tc filter del dev w0 egress; tc qdisc del dev w0 clsact; tc qdisc add dev w0 "
		"clsact");
	lab_run("rm -f %s/weir_clsact_*", lab.pins);
	CU_ASSERT_EQUAL(clsact_ensure(&clsact, clsact.board_id, &err), 1);
	weir_tc_remove(lab.pins, clsact.board_id, clsact.status.ifindex, WEIR_TC_HOOKS);
	CU_ASSERT_EQUAL(lab_run("tc qdisc show dev w0 | grep clsact"), 0);
	clsact_close(&clsact);
}

static void A4_foreign_filter_at_our_handle_is_named(void)
{
	struct clsact clsact;
	struct weir_error err = { "" };

	clsact_open(&clsact);
	CU_ASSERT_EQUAL(clsact_ensure(&clsact, clsact.board_id, &err), 1);
	weir_bpf__destroy(clsact.programs);
	clsact.programs = weir_load_programs_open(&clsact.load, 1U << WEIR_HOOK_TC_INGRESS);
	CU_ASSERT_EQUAL_FATAL(weir_load_programs(clsact.programs, &err), 0);
	CU_ASSERT_EQUAL(clsact_ensure(&clsact, 0, &err), -EBUSY);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "bpftool prog show id"));
	clsact_close(&clsact);
}

WEIR_TESTS("engine_tc", TEST(limits_at_ingress), TEST(limits_at_egress),
	   TEST(A8_reloads_and_restarts_leave_one_program), TEST(A7_foreign_filter_survives_ours),
	   TEST(B10_lost_link_is_made_again), TEST(A11_interface_made_again_gets_its_link),
	   TEST(A8_clsact_has_one_filter_and_takes_its_qdisc_along),
	   TEST(A7_clsact_of_others_stays), TEST(A4_foreign_filter_at_our_handle_is_named))
