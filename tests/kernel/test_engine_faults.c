// SPDX-License-Identifier: GPL-2.0
/*
 * What the kernel or the file system refuses at any step of a start, a reload, a detach: it is
 * said, and what was there before stays. Descriptors are what a test can take away at each step.
 */
#include "harness.h"

#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "count_fds.h"
#include "engine_lab.h"
#include "store_trap.h"
#include "weir/abi.h"

#define W0_GENERIC "  - {name: w0, mode: generic}\n"

/* Every kind of thing that an engine opens. */
#define ALL_KINDS                                                                                  \
	TEN_A_DAY                                                                                  \
	"  - {name: ring, key: source, keys: 1024, sliding: {quota: 4, window: 1s}}\n"             \
	"  - {name: in, key: source, match: {hook: tc-ingress}, bucket: {rate: 1/d}}\n"            \
	"  - {name: out, key: source, match: {hook: tc-egress}, bucket: {rate: 1/d}}\n"            \
	"  - {name: conns, key: source, match: {proto: tcp}, gate: {limit: 5}}\n"                  \
	"services:\n  - {name: web, match: {proto: tcp, to_port: 80}, deadline: 2s}\n"

/* A start opens some 150 and each failing one takes a part of a second: not all are tried. */
#define STEPS_MAX 400
#define STRIDE 13

static rlim_t fds_allowed;

/* So many descriptors more than are open. */
static void fds_allow(unsigned int more)
{
	struct rlimit limit;
	int next = dup(0);

	close(next);
	getrlimit(RLIMIT_NOFILE, &limit);
	fds_allowed = limit.rlim_cur;
	limit.rlim_cur = (rlim_t)next + more;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void fds_allow_all(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = fds_allowed;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* A start and an end: what libbpf finds out of the kernel once a process, it finds out here. */
static void warm_up(void)
{
	struct weir_engine *engine;
	struct weir_error err;

	lab_config(W0, ALL_KINDS);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	weir_engine_stop(engine, true);
}

static void a_start_that_fails_at_any_step_leaves_nothing(void)
{
	struct weir_engine *engine;
	struct weir_error err;
	unsigned int more;
	int fds, code = -1;

	lab_open();
	warm_up();
	fds = count_fds();
	for (more = 0; code && more < STEPS_MAX; more += STRIDE) {
		fds_allow(more);
		code = lab_start(&engine, &err);
		fds_allow_all();
		if (!code)
			break;
		CU_ASSERT(code < 0 && *err.text);
		CU_ASSERT_EQUAL(count_fds(), fds);
		CU_ASSERT_FALSE(lab_has_pins());
		CU_ASSERT_EQUAL(lab_program("w0"), 0);
	}
	CU_ASSERT(more > 10 * STRIDE);
	CU_ASSERT_EQUAL_FATAL(code, 0);
	weir_engine_stop(engine, true);
	CU_ASSERT_EQUAL(count_fds(), fds);
	lab_close();
}

static void a_reload_that_fails_at_any_step_changes_nothing(void)
{
	struct weir_engine *engine;
	struct weir_error err;
	unsigned int more;
	uint32_t program;
	int code = -1;

	lab_open();
	warm_up();
	lab_config(W0, TEN_A_DAY);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	program = lab_program("w0");
	lab_send(15, 1, 53);
	lab_await(engine, 0, 15);
	lab_config(W0, ALL_KINDS);
	for (more = 0; code && more < STEPS_MAX; more += 4) {
		fds_allow(more);
		code = weir_engine_reload(engine, NULL, &err);
		fds_allow_all();
		if (!code)
			break;
		CU_ASSERT(code < 0 && *err.text);
		CU_ASSERT_EQUAL(weir_engine_policy(engine)->limit_count, 1);
		CU_ASSERT_EQUAL(lab_program("w0"), program);
	}
	CU_ASSERT(more > 5);
	CU_ASSERT_EQUAL_FATAL(code, 0);
	/* What it had no descriptor for comes with the next one. */
	CU_ASSERT_EQUAL(weir_engine_reload(engine, NULL, &err), 0);
	CU_ASSERT_TRUE(weir_engine_interface(engine, 0)->at_ingress);
	CU_ASSERT_TRUE(weir_engine_interface(engine, 0)->at_egress);
	lab_send(5, 1, 53);
	CU_ASSERT_EQUAL(lab_await(engine, 0, 20).passed_packets, 10);
	weir_engine_stop(engine, true);
	lab_close();
}

static void a_detach_that_fails_can_be_tried_again(void)
{
	struct weir_engine *engine;
	struct weir_error err;
	unsigned int more;
	int code = -1;

	lab_open();
	lab_config(W0, TEN_A_DAY);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	weir_engine_stop(engine, false);
	for (more = 0; code && more < STEPS_MAX; more++) {
		err.text[0] = '\0';
		fds_allow(more);
		code = weir_engine_detach_pins(lab.pins, &err);
		fds_allow_all();
		CU_ASSERT(!code || (*err.text && lab_has_pins()));
	}
	CU_ASSERT(more > 2);
	CU_ASSERT_EQUAL(code, 0);
	CU_ASSERT_EQUAL(lab_program("w0"), 0);
	CU_ASSERT_FALSE(lab_has_pins());
	lab_close();
}

/* ---- privileges ---- */

/* In a child with these capabilities and no others: its result. It may clean up at its exit. */
static int with_capabilities(uint64_t keep, int (*run)(void))
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { 0 }, { 0 } };
	int status = -1;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		for (int i = 0; i < 2; i++)
			data[i].effective = data[i].permitted = (uint32_t)(keep >> 32 * i);
		exit(syscall(SYS_capset, &head, data) ? 100 : run());
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define CAN(capability) (1ULL << CAP_##capability)

static int start_is_not_permitted(void)
{
	struct weir_engine *engine;
	struct weir_error err;

	return lab_start(&engine, &err) == -EPERM && strstr(err.text, "CAP_BPF") ? 0 : 1;
}

static void a_start_without_privileges_names_them(void)
{
	lab_open();
	lab_config(W0, TEN_A_DAY);
	CU_ASSERT_EQUAL(with_capabilities(CAN(DAC_OVERRIDE), start_is_not_permitted), 0);
	CU_ASSERT_FALSE(lab_has_pins());
	lab_close();
}

/* Programs are opened by what was pinned: by their ids the kernel opens them for root alone. */
static int starts_twice_and_detaches(void)
{
	struct weir_engine *engine;
	struct weir_error err;
	uint32_t first;

	if (lab_begin(&engine, &err))
		return 1;
	first = lab_program("w0");
	weir_engine_stop(engine, false);
	if (!first || lab_begin(&engine, &err))
		return 2;
	if (lab_program("w0") == first)
		return 3;
	weir_engine_stop(engine, true);
	return lab_program("w0") || lab_has_pins() ? 4 : 0;
}

static void three_capabilities_are_enough(void)
{
	lab_open();
	lab_config(W0, TEN_A_DAY);
	CU_ASSERT_EQUAL(with_capabilities(CAN(BPF) | CAN(NET_ADMIN) | CAN(PERFMON),
					  starts_twice_and_detaches),
			0);
	lab_close();
}

/* ---- modes ---- */

static void native_refused_leaves_generic_in_force(void)
{
	struct weir_engine *engine;
	struct weir_error err;

	lab_open();
	/* A driver without XDP. */
	lab_run("ip link add d0 type ifb; ip link set d0 up");
	lab_config("  - {name: d0, mode: generic}\n", TEN_A_DAY);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	lab_config("  - {name: d0, mode: native}\n", TEN_A_DAY);
	weir_engine_reload(engine, NULL, &err);
	CU_ASSERT_TRUE(lab_said("native mode refused"));
	CU_ASSERT_TRUE(lab_is_generic("d0"));
	CU_ASSERT_EQUAL(weir_engine_interface(engine, 0)->attached, WEIR_ATTACHED_GENERIC);
	weir_engine_stop(engine, true);
	lab_close();
}

static void generic_of_before_is_kept_and_named(void)
{
	struct weir_engine *engine;
	struct weir_error err;

	lab_open();
	lab_config(W0_GENERIC, TEN_A_DAY);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	weir_engine_stop(engine, false);
	lab_config(W0, TEN_A_DAY);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	CU_ASSERT_TRUE(lab_is_generic("w0"));
	CU_ASSERT_PTR_NOT_NULL(strstr(weir_engine_interface(engine, 0)->reason,
				      "since an earlier start"));
	weir_engine_stop(engine, true);
	lab_close();
}

/* ---- pins ---- */

static void pins_for_other_cpus_are_refused(void)
{
	static struct weir_board board;
	struct weir_engine *engine;
	struct weir_error err;
	uint32_t zero = 0;
	char path[128];
	int fd;

	lab_open();
	lab_config(W0, TEN_A_DAY);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	weir_engine_stop(engine, false);
	snprintf(path, sizeof(path), "%s/weir_board", lab.pins);
	fd = bpf_obj_get(path);
	bpf_map_lookup_elem(fd, &zero, &board);
	board.active.shape.cpus++;
	bpf_map_update_elem(fd, &zero, &board, BPF_ANY);
	close(fd);
	CU_ASSERT_EQUAL(lab_start(&engine, &err), -EPROTO);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "CPUs, this machine has"));
	CU_ASSERT_NOT_EQUAL(lab_program("w0"), 0);
	lab_close();
}

static void a_pin_that_is_missing_is_named(void)
{
	struct weir_engine *engine;
	struct weir_error err;
	char path[128];

	lab_open();
	lab_config(W0, TEN_A_DAY);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	weir_engine_stop(engine, false);
	snprintf(path, sizeof(path), "%s/weir_labels", lab.pins);
	unlink(path);
	CU_ASSERT_EQUAL(lab_start(&engine, &err), -EPROTO);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "weir_labels"));
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "is missing"));
	lab_close();
}

static void pins_that_can_not_be_made_are_named(void)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "stranger", 4, 4, 1, NULL);
	char path[128], pins[96], longer[512];
	struct weir_engine_options options;
	struct weir_engine *engine;
	struct weir_error err;

	lab_open();
	lab_config(W0, TEN_A_DAY);
	/* Somebody's pin where the new ones are made: it stays. */
	snprintf(path, sizeof(path), "%s-new", lab.pins);
	CU_ASSERT_EQUAL_FATAL(bpf_obj_pin(fd, path), 0);
	close(fd);
	CU_ASSERT_EQUAL(lab_start(&engine, &err), -ENOTDIR);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, path));
	CU_ASSERT_EQUAL(access(path, F_OK), 0);
	unlink(path);
	memset(longer, 'x', sizeof(longer) - 1);
	longer[0] = '/';
	longer[sizeof(longer) - 1] = '\0';
	CU_ASSERT_EQUAL(weir_engine_detach_pins(longer, &err), -ENAMETOOLONG);
	options = (struct weir_engine_options){ .config = lab.config,
						.pins = longer,
						.overrides = lab.overrides };
	CU_ASSERT_EQUAL(weir_engine_start(&engine, &options, &err), -ENAMETOOLONG);
	strcpy(pins, lab.pins);
	snprintf(lab.pins, sizeof(lab.pins), "/nowhere/at/all");
	CU_ASSERT_EQUAL(lab_start(&engine, &err), -ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "/nowhere/at"));
	strcpy(lab.pins, pins);
	lab_close();
}

/* A folder in the way of a link's pin: the reload is refused, the limits of before stay. */
static void a_link_that_can_not_be_pinned_refuses_the_reload(void)
{
	struct weir_engine *engine;
	struct weir_error err;
	char path[128];

	lab_open();
	lab_config(W0, TEN_A_DAY);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	snprintf(path, sizeof(path), "%s/weir_watch_sockets", lab.pins);
	CU_ASSERT_EQUAL_FATAL(mkdir(path, 0700), 0);
	lab_config(W0, ALL_KINDS);
	CU_ASSERT_NOT_EQUAL(weir_engine_reload(engine, NULL, &err), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, path));
	CU_ASSERT_EQUAL(weir_engine_policy(engine)->limit_count, 1);
	CU_ASSERT_EQUAL(rmdir(path), 0);
	CU_ASSERT_EQUAL(weir_engine_reload(engine, NULL, &err), 0);
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

WEIR_TESTS("engine_faults", TEST(a_start_that_fails_at_any_step_leaves_nothing),
	   TEST(a_reload_that_fails_at_any_step_changes_nothing),
	   TEST(a_detach_that_fails_can_be_tried_again),
	   TEST(a_start_without_privileges_names_them), TEST(three_capabilities_are_enough),
	   TEST(native_refused_leaves_generic_in_force),
	   TEST(generic_of_before_is_kept_and_named),
	   TEST(pins_for_other_cpus_are_refused),
	   TEST(a_pin_that_is_missing_is_named), TEST(pins_that_can_not_be_made_are_named),
	   TEST(a_link_that_can_not_be_pinned_refuses_the_reload),
	   TEST(a_set_killed_at_any_store_is_put_right))
