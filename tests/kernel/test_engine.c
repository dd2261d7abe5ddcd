// SPDX-License-Identifier: GPL-2.0
/* The engine on a real interface. Names tell the rows of FIELD-NOTES that a test stands for. */
#include "harness.h"

#include <linux/rtnetlink.h>
#include <sys/resource.h>

#include "engine_lab.h"
#include "weir/abi.h"

#define W0_NATIVE "  - {name: w0, mode: native}\n"
#define W0_GENERIC "  - {name: w0, mode: generic}\n"

/* ---- it limits ---- */

static void limits_and_stops(void)
{
	struct weir_engine *engine;
	struct weir_totals totals;
	struct weir_error err;

	lab_open();
	lab_config(W0, TEN_A_DAY);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	CU_ASSERT_EQUAL(weir_engine_interface(engine, 0)->attached, WEIR_ATTACHED_NATIVE);
	CU_ASSERT_STRING_EQUAL(weir_engine_interface(engine, 0)->reason, "");
	lab_send(50, 1, 53);
	lab_send(4, 2, 53);
	totals = lab_await(engine, 0, 54);
	CU_ASSERT_EQUAL(totals.passed_packets, 14);
	CU_ASSERT_EQUAL(totals.refused_packets, 40);
	weir_engine_stop(engine, false);
	CU_ASSERT_NOT_EQUAL(lab_program("w0"), 0);
	CU_ASSERT_EQUAL(weir_engine_detach_pins(lab.pins, &err), 0);
	CU_ASSERT_EQUAL(lab_program("w0"), 0);
	CU_ASSERT_FALSE(lab_has_pins());
	CU_ASSERT_EQUAL(weir_engine_detach_pins(lab.pins, &err), -ENOENT);
	lab_close();
}

/* Each limit at its own match, all of them checked before any is charged. */
static void several_limits_match(void)
{
	struct weir_engine *engine;
	struct weir_totals totals;
	struct weir_error err;

	lab_open();
	lab_config(W0, TEN_A_DAY "  - {name: dns, key: source, match: {proto: udp, to_port: 53, "
				 "from: [10.9.0.0/24]}, bucket: {rate: 1/d, burst: 3}}\n");
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	lab_send(5, 1, 53);
	lab_send(20, 1, 54);
	totals = lab_await(engine, 0, 22);
	CU_ASSERT_EQUAL(totals.passed_packets, 10);
	totals = lab_await(engine, 1, 5);
	CU_ASSERT_EQUAL(totals.passed_packets, 3);
	CU_ASSERT_EQUAL(totals.refused_packets, 2);
	weir_engine_stop(engine, true);
	lab_close();
}

/* ---- A: attach, detach, life ---- */

/* A1, A2: what a killed engine left is adopted: state, totals, one program. */
static void A1_A2_killed_engine_is_adopted(void)
{
	struct weir_engine *engine;
	struct weir_totals totals;
	struct weir_error err;
	uint32_t before;

	lab_open();
	lab_config(W0, TEN_A_DAY);
	CU_ASSERT_TRUE_FATAL(lab_start_and_be_killed());
	before = lab_program("w0");
	CU_ASSERT_NOT_EQUAL(before, 0);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	CU_ASSERT_NOT_EQUAL(lab_program("w0"), before);
	totals = lab_totals(engine, 0);
	CU_ASSERT_EQUAL(totals.passed_packets, 10);
	CU_ASSERT_EQUAL(totals.refused_packets, 5);
	/* The bucket is as empty as it was; a second source has its own. */
	lab_send(6, 1, 53);
	lab_send(6, 2, 53);
	totals = lab_await(engine, 0, 27);
	CU_ASSERT_EQUAL(totals.passed_packets, 16);
	CU_ASSERT_EQUAL(totals.refused_packets, 11);
	weir_engine_stop(engine, true);
	CU_ASSERT_EQUAL(lab_program("w0"), 0);
	CU_ASSERT_FALSE(lab_has_pins());
	lab_close();
}

/* A2: killed between pins; the half set is swept away. */
static void A2_half_a_set_of_pins_is_swept_away(void)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "half", 4, 4, 1, NULL);
	struct weir_engine *engine;
	struct weir_error err;
	char path[128];

	lab_open();
	lab_config(W0, TEN_A_DAY);
	snprintf(path, sizeof(path), "%s-new", lab.pins);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s-new/weir_board", lab.pins);
	CU_ASSERT_EQUAL_FATAL(bpf_obj_pin(fd, path), 0);
	close(fd);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	CU_ASSERT_NOT_EQUAL(access(path, F_OK), 0);
	weir_engine_stop(engine, true);
	CU_ASSERT_FALSE(lab_has_pins());
	lab_close();
}

static void A3_generic_is_taken_off_in_its_mode(void)
{
	struct weir_engine *engine;
	struct weir_error err;

	lab_open();
	lab_config(W0_GENERIC, TEN_A_DAY);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	CU_ASSERT_TRUE(lab_is_generic("w0"));
	CU_ASSERT_EQUAL(weir_engine_interface(engine, 0)->attached, WEIR_ATTACHED_GENERIC);
	weir_engine_stop(engine, false);
	/* The configuration asks for another mode meanwhile. */
	lab_config(W0_NATIVE, TEN_A_DAY);
	CU_ASSERT_EQUAL(weir_engine_detach_pins(lab.pins, &err), 0);
	CU_ASSERT_EQUAL(lab_program("w0"), 0);
	lab_close();
}

static void the_mode_follows_a_reload(void)
{
	struct weir_engine *engine;
	struct weir_error err;

	lab_open();
	lab_config(W0_GENERIC, TEN_A_DAY);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	lab_config(W0_NATIVE, TEN_A_DAY);
	CU_ASSERT_EQUAL(weir_engine_reload(engine, NULL, &err), 0);
	CU_ASSERT_FALSE(lab_is_generic("w0"));
	CU_ASSERT_EQUAL(weir_engine_interface(engine, 0)->attached, WEIR_ATTACHED_NATIVE);
	CU_ASSERT_NOT_EQUAL(lab_program("w0"), 0);
	weir_engine_stop(engine, true);
	lab_close();
}

/* A4, A5: named in the error, and left alone. */
static void A4_A5_foreign_program_is_named_and_left(void)
{
	struct weir_engine *engine;
	struct weir_error err;
	char id[32];
	uint32_t stranger;

	lab_open();
	lab_config(W0, TEN_A_DAY);
	stranger = lab_attach_foreign("w0");
	CU_ASSERT_EQUAL(lab_start(&engine, &err), -EBUSY);
	snprintf(id, sizeof(id), "id %u,", stranger);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, id));
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "stranger"));
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "bpftool prog show id"));
	CU_ASSERT_EQUAL(lab_program("w0"), stranger);
	CU_ASSERT_FALSE(lab_has_pins());
	lab_close();
}

/* Called as libxdp's is, but nothing hangs on it. */
static void A5_a_dispatcher_by_name_alone_is_a_stranger(void)
{
	struct weir_engine *engine;
	struct weir_error err;
	uint32_t stranger;

	lab_open();
	lab_config(W0, TEN_A_DAY);
	stranger = lab_attach_named("w0", "xdp_dispatcher");
	CU_ASSERT_EQUAL(lab_start(&engine, &err), -EBUSY);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "somebody else"));
	CU_ASSERT_EQUAL(lab_program("w0"), stranger);
	CU_ASSERT_FALSE(lab_has_pins());
	lab_close();
}

/* A4: beside one that can be had; neither looks, reloads nor a stop touch the stranger. */
static void A4_foreign_program_survives_ours(void)
{
	struct weir_engine *engine;
	struct weir_error err;
	uint32_t stranger;

	lab_open();
	lab_config("  - {name: w1}\n" W0, TEN_A_DAY);
	stranger = lab_attach_foreign("w1");
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	CU_ASSERT_EQUAL(weir_engine_interface(engine, 0)->attached, WEIR_ATTACHED_NOT);
	CU_ASSERT_PTR_NOT_NULL(strstr(weir_engine_interface(engine, 0)->reason, "stranger"));
	CU_ASSERT_EQUAL(weir_engine_interface(engine, 1)->attached, WEIR_ATTACHED_NATIVE);
	for (int i = 0; i < 65; i++)
		weir_engine_tick(engine);
	CU_ASSERT_EQUAL(weir_engine_reload(engine, NULL, &err), 0);
	CU_ASSERT_EQUAL(lab_program("w1"), stranger);
	weir_engine_stop(engine, true);
	CU_ASSERT_EQUAL(lab_program("w1"), stranger);
	CU_ASSERT_EQUAL(lab_program("w0"), 0);
	lab_close();
}

static void A6_a_second_engine_is_refused(void)
{
	struct weir_engine *engine, *second;
	struct weir_error err;
	uint32_t program;

	lab_open();
	lab_config(W0, TEN_A_DAY);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	program = lab_program("w0");
	CU_ASSERT_EQUAL(lab_start(&second, &err), -EBUSY);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "another weir controller"));
	CU_ASSERT_EQUAL(weir_engine_detach_pins(lab.pins, &err), -EBUSY);
	CU_ASSERT_EQUAL(lab_program("w0"), program);
	CU_ASSERT_TRUE(lab_has_pins());
	weir_engine_stop(engine, true);
	CU_ASSERT_EQUAL(lab_program("w0"), 0);
	lab_close();
}

static void A11_interface_made_again_is_limited_again(void)
{
	struct weir_engine *engine;
	struct weir_error err;
	uint32_t slot;

	lab_open();
	lab_config(W0, TEN_A_DAY);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	slot = weir_engine_interface(engine, 0)->slot;
	lab_send(3, 1, 53);
	lab_await(engine, 0, 3);
	lab_run("ip link del w0");
	weir_engine_tick(engine);
	CU_ASSERT_EQUAL(weir_engine_interface(engine, 0)->attached, WEIR_ATTACHED_NOT);
	CU_ASSERT_EQUAL(weir_engine_interface(engine, 0)->ifindex, 0);
	lab_run("ip link add w0 type veth peer name w1");
	lab_run("ip link set w0 up; ip link set w1 up");
	weir_engine_tick(engine);
	CU_ASSERT_EQUAL(weir_engine_interface(engine, 0)->attached, WEIR_ATTACHED_NATIVE);
	CU_ASSERT_EQUAL(weir_engine_interface(engine, 0)->ifindex, if_nametoindex("w0"));
	CU_ASSERT_EQUAL(weir_engine_interface(engine, 0)->slot, slot);
	lab_send(20, 1, 53);
	CU_ASSERT_EQUAL(lab_await(engine, 0, 23).passed_packets, 10);
	weir_engine_stop(engine, true);
	lab_close();
}

/* A12: with buffers of several pages a large MTU is no obstacle to native mode. */
static void A12_large_mtu_is_limited_natively(void)
{
	struct weir_engine *engine;
	struct weir_error err;

	lab_open();
	lab_run("ip link set w1 mtu 3507; ip link set w0 mtu 3507");
	lab_config(W0_NATIVE, TEN_A_DAY);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	CU_ASSERT_EQUAL(weir_engine_interface(engine, 0)->attached, WEIR_ATTACHED_NATIVE);
	lab_send(20, 1, 53);
	CU_ASSERT_EQUAL(lab_await(engine, 0, 20).passed_packets, 10);
	weir_engine_stop(engine, true);
	lab_close();
}

/* A12: where the driver refuses, the sentence says what it said and what to do. */
static void A12_refused_native_mode_is_explained(void)
{
	struct weir_engine *engine;
	struct weir_error err;

	lab_open();
	lab_run("ip link add d0 mtu 3507 type ifb; ip link set d0 up");
	lab_config("  - {name: d0, mode: native}\n", TEN_A_DAY);
	CU_ASSERT_NOT_EQUAL(lab_start(&engine, &err), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "interface d0: native mode refused"));
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "MTU is 3507"));
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "driver does not support XDP in native mode"));
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "mode: auto or generic"));
	CU_ASSERT_FALSE(lab_has_pins());
	lab_config("  - {name: d0, mode: auto}\n", TEN_A_DAY);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	CU_ASSERT_EQUAL(weir_engine_interface(engine, 0)->attached, WEIR_ATTACHED_GENERIC);
	CU_ASSERT_PTR_NOT_NULL(strstr(weir_engine_interface(engine, 0)->reason, "MTU is 3507"));
	CU_ASSERT_TRUE(lab_said("d0: limited in GENERIC mode"));
	CU_ASSERT_TRUE(lab_is_generic("d0"));
	weir_engine_stop(engine, true);
	CU_ASSERT_EQUAL(lab_program("d0"), 0);
	lab_close();
}

/* How many times links were said to have changed since the last call. */
static int link_news(int fd)
{
	char buffer[8192];
	int count = 0;

	while (recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT) > 0)
		count++;
	return count;
}

/* A14: a detach of nothing resets some drivers: the kernel would tell of the link. */
static void A14_nothing_is_detached_where_nothing_is(void)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK };
	struct weir_engine *engine;
	struct weir_error err;
	int fd;

	lab_open();
	fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	CU_ASSERT_EQUAL_FATAL(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	lab_config(W0, TEN_A_DAY);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	lab_run("ip link set dev w0 xdp off");
	CU_ASSERT(link_news(fd) > 0);
	weir_engine_stop(engine, false);
	CU_ASSERT_EQUAL(weir_engine_detach_pins(lab.pins, &err), 0);
	CU_ASSERT_EQUAL(link_news(fd), 0);
	close(fd);
	lab_close();
}

/* A19: the middle interface goes; the others keep their counts, a new one starts from 0. */
static void A19_interfaces_keep_their_slots(void)
{
	struct weir_engine *engine;
	struct weir_error err;
	struct weir_traffic traffic;
	uint32_t x0, w0;

	lab_open();
	lab_run("ip link add x0 type veth peer name x1");
	lab_config("  - {name: x1}\n  - {name: x0}\n" W0, TEN_A_DAY);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	x0 = weir_engine_interface(engine, 1)->slot;
	w0 = weir_engine_interface(engine, 2)->slot;
	lab_send(7, 1, 53);
	lab_await(engine, 0, 7);
	traffic = weir_dataplane_traffic(weir_engine_dataplane(engine), w0, WEIR_HOOK_XDP);
	CU_ASSERT_EQUAL(traffic.frames[WEIR_PATH_LIMITS], 7);
	lab_config("  - {name: x1}\n" W0, TEN_A_DAY);
	CU_ASSERT_EQUAL(weir_engine_reload(engine, NULL, &err), 0);
	CU_ASSERT_EQUAL(lab_program("x0"), 0);
	CU_ASSERT_EQUAL(weir_engine_interface(engine, 1)->slot, w0);
	/* w0 goes, then x0 comes: it may get w0's slot, but not its counts. */
	lab_config("  - {name: x1}\n", TEN_A_DAY);
	CU_ASSERT_EQUAL(weir_engine_reload(engine, NULL, &err), 0);
	lab_config("  - {name: x1}\n  - {name: lo, mode: generic}\n  - {name: x0}\n", TEN_A_DAY);
	CU_ASSERT_EQUAL(weir_engine_reload(engine, NULL, &err), 0);
	CU_ASSERT_EQUAL(weir_engine_interface(engine, 1)->slot, x0);
	CU_ASSERT_EQUAL(weir_engine_interface(engine, 2)->slot, w0);
	traffic = weir_dataplane_traffic(weir_engine_dataplane(engine), w0, WEIR_HOOK_XDP);
	CU_ASSERT_EQUAL(traffic.frames[WEIR_PATH_LIMITS], 0);
	weir_engine_stop(engine, true);
	lab_close();
}

/* A20: whatever step of the start has no descriptor left, nothing stays behind. */
/* A start with so few descriptors, in a child: libbpf keeps what a probe that had none has found.
 * 0: it started, and is off again; 1: it failed and said why; else it said nothing. */
static int start_with_few(rlim_t few)
{
	const struct rlimit files = { few, few };
	pid_t child = fork();
	int status;

	if (!child) {
		struct weir_engine *engine;
		struct weir_error err;
		int code;

		setrlimit(RLIMIT_NOFILE, &files);
		code = lab_start(&engine, &err);
		if (!code)
			weir_engine_stop(engine, true);
		_exit(!code ? 0 : *err.text ? 1 : 2);
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void A20_failed_start_leaves_nothing(void)
{
	int failed = 0, code = 1;

	lab_open();
	lab_config(W0, TEN_A_DAY);
	for (rlim_t few = 4; few < 200 && code; few++) {
		code = start_with_few(few);
		failed += code == 1;
		CU_ASSERT(code == 0 || code == 1);
		CU_ASSERT_FALSE(lab_has_pins());
		CU_ASSERT_EQUAL(lab_program("w0"), 0);
	}
	CU_ASSERT(failed > 10);
	CU_ASSERT_EQUAL(code, 0);
	lab_close();
}

/* A20: a start that fails beside a running data plane leaves that as it is. */
static void A20_failed_restart_leaves_the_old_policy(void)
{
	struct weir_engine *engine;
	struct weir_error err;

	lab_open();
	lab_config(W0, TEN_A_DAY);
	CU_ASSERT_TRUE_FATAL(lab_start_and_be_killed());
	lab_config("  - {name: nowhere}\n",
		   "  - {name: per-ip, key: source, bucket: {rate: 9pps}}\n");
	CU_ASSERT_EQUAL(lab_start(&engine, &err), -ENODEV);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "nowhere"));
	CU_ASSERT_NOT_EQUAL(lab_program("w0"), 0);
	lab_config(W0, TEN_A_DAY);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	lab_send(5, 1, 53);
	CU_ASSERT_EQUAL(lab_await(engine, 0, 20).refused_packets, 10);
	weir_engine_stop(engine, true);
	lab_close();
}

/* B10: taken off, and replaced, behind our back. */
static void B10_lost_program_is_noticed(void)
{
	struct weir_engine *engine;
	struct weir_error err;
	uint32_t stranger;

	lab_open();
	lab_config(W0, TEN_A_DAY);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	lab_run("ip link set dev w0 xdp off");
	CU_ASSERT_EQUAL(lab_program("w0"), 0);
	weir_engine_tick(engine);
	CU_ASSERT_NOT_EQUAL(lab_program("w0"), 0);
	CU_ASSERT_TRUE(lab_said("w0: our program was taken off"));
	stranger = lab_attach_foreign("w0");
	weir_engine_tick(engine);
	CU_ASSERT_EQUAL(lab_program("w0"), stranger);
	CU_ASSERT_EQUAL(weir_engine_interface(engine, 0)->attached, WEIR_ATTACHED_NOT);
	CU_ASSERT_TRUE(lab_said("our program was replaced by somebody's"));
	lab_run("ip link set dev w0 xdp off");
	weir_engine_tick(engine);
	CU_ASSERT_EQUAL(weir_engine_interface(engine, 0)->attached, WEIR_ATTACHED_NATIVE);
	weir_engine_stop(engine, true);
	lab_close();
}

WEIR_TESTS("engine", TEST(limits_and_stops), TEST(several_limits_match),
	   TEST(A1_A2_killed_engine_is_adopted), TEST(A2_half_a_set_of_pins_is_swept_away),
	   TEST(A3_generic_is_taken_off_in_its_mode), TEST(the_mode_follows_a_reload),
	   TEST(A4_A5_foreign_program_is_named_and_left), TEST(A4_foreign_program_survives_ours),
	   TEST(A5_a_dispatcher_by_name_alone_is_a_stranger), TEST(A6_a_second_engine_is_refused),
	   TEST(A11_interface_made_again_is_limited_again), TEST(A12_large_mtu_is_limited_natively),
	   TEST(A12_refused_native_mode_is_explained),
	   TEST(A14_nothing_is_detached_where_nothing_is), TEST(A19_interfaces_keep_their_slots),
	   TEST(A20_failed_start_leaves_nothing), TEST(A20_failed_restart_leaves_the_old_policy),
	   TEST(B10_lost_program_is_noticed))
