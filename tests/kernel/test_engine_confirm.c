// SPDX-License-Identifier: GPL-2.0
/* A change with --confirm: it stays, it goes back, and a kill -9 in between changes nothing. */
#include "harness.h"

#include "engine_lab.h"
#include "weir/abi.h"

#define SECOND 1000000000ULL
#define SLOW "  - {name: per-ip, key: source, bucket: {rate: 3/d, burst: 3}}\n"

static uint64_t boot_now = 1000 * SECOND;

static uint64_t boot_ns(void)
{
	return boot_now;
}

static int start(struct weir_engine **engine)
{
	const struct weir_engine_options options = {
		.config = lab.config,
		.pins = lab.pins,
		.overrides = lab.overrides,
		.log = lab_note,
		.log_context = &lab,
		.boot_ns = boot_ns,
	};
	struct weir_error err = { "" };
	int code;

	*engine = NULL;
	code = weir_engine_start(engine, &options, &err);
	if (code)
		printf("  %s\n", err.text);
	return code;
}

static int set(struct weir_engine *engine, const char *rate, bool save, uint64_t confirm_s)
{
	const struct weir_terms terms = { .save = save, .confirm_ns = confirm_s * SECOND };
	const struct weir_policy_change change = { "rate", rate };
	struct weir_error err = { "" };

	return weir_engine_set(engine, "per-ip", &change, 1, &terms, &err);
}

static int reload(struct weir_engine *engine, uint64_t confirm_s)
{
	const struct weir_terms terms = { .confirm_ns = confirm_s * SECOND };
	struct weir_error err = { "" };

	return weir_engine_reload(engine, &terms, &err);
}

/* The rate in force, as the label says it. */
static bool has_rate(struct weir_engine *engine, const char *rate)
{
	const struct weir_dataplane *dataplane = weir_engine_dataplane(engine);
	const char *setting = dataplane->labels[weir_engine_slot(engine, 0)].setting;
	char want[64];

	snprintf(want, sizeof(want), "bucket rate %s burst", rate);
	return !strncmp(setting, want, strlen(want));
}

static bool is_noted(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s.confirm", lab.overrides);
	return !access(path, F_OK);
}

static bool is_saved(void)
{
	return !access(lab.overrides, F_OK);
}

/* With nothing on file of the test before. */
static void open_lab(void)
{
	lab_open();
	lab_run("rm -rf %s/var", lab.folder);
	lab_config(W0, TEN_A_DAY);
}

static void begin(struct weir_engine **engine)
{
	open_lab();
	CU_ASSERT_EQUAL_FATAL(start(engine), 0);
}

static void a_set_waits_and_stays(void)
{
	struct weir_engine *engine;
	struct weir_error err;

	begin(&engine);
	CU_ASSERT_EQUAL(weir_engine_confirm(engine, &err), -ENOENT);
	CU_ASSERT_EQUAL(set(engine, "3/d", true, 30), 0);
	CU_ASSERT(has_rate(engine, "3/d") && is_noted() && !is_saved());
	CU_ASSERT_EQUAL(weir_engine_waiting(engine).state, WEIR_WAITING);
	CU_ASSERT_STRING_EQUAL(weir_engine_waiting(engine).what, "weir set per-ip rate=3/d");
	boot_now += 10 * SECOND;
	CU_ASSERT_EQUAL(weir_engine_waiting(engine).left_ns, 20 * SECOND);
	/* Nothing else changes meanwhile. */
	CU_ASSERT_EQUAL(set(engine, "4/d", false, 0), -EALREADY);
	CU_ASSERT_EQUAL(reload(engine, 0), -EALREADY);
	CU_ASSERT_EQUAL(weir_engine_confirm(engine, &err), 0);
	CU_ASSERT(has_rate(engine, "3/d") && !is_noted() && is_saved());
	CU_ASSERT_EQUAL(weir_engine_waiting(engine).state, WEIR_WAITING_NOTHING);
	CU_ASSERT(lab_said("waits for weir confirm: in 30s"));
	CU_ASSERT(lab_said("rate=3/d: confirmed and saved"));
	CU_ASSERT_EQUAL(set(engine, "4/d", false, 0), 0);
	weir_engine_stop(engine, true);
}

/* What was set before, and not saved, is what it goes back to; and nobody's bucket is filled. */
static void a_set_goes_back(void)
{
	struct weir_engine *engine;
	struct weir_error err;

	begin(&engine);
	CU_ASSERT_EQUAL(set(engine, "5/d", false, 0), 0);
	lab_send(15, 1, 53);
	CU_ASSERT_EQUAL(lab_await(engine, 0, 15).passed_packets, 10);
	CU_ASSERT_EQUAL(set(engine, "3/d", true, 30), 0);
	boot_now += 30 * SECOND;
	CU_ASSERT_EQUAL(weir_engine_waiting(engine).left_ns, 0);
	CU_ASSERT_EQUAL(weir_engine_undo(engine, &err), 0);
	CU_ASSERT(has_rate(engine, "5/d") && !is_noted() && !is_saved());
	CU_ASSERT(lab_said("gone back (nobody confirmed it)"));
	lab_send(5, 1, 53);
	CU_ASSERT_EQUAL(lab_await(engine, 0, 20).passed_packets, 10);
	CU_ASSERT_EQUAL(weir_engine_undo(engine, &err), -ENOENT);
	weir_engine_stop(engine, true);
}

static void a_refused_change_does_not_wait(void)
{
	struct weir_engine *engine;

	begin(&engine);
	CU_ASSERT_NOT_EQUAL(set(engine, "nonsense", false, 30), 0);
	CU_ASSERT(!is_noted() && has_rate(engine, "10/d"));
	lab_config(W0, "  - {name: per-ip}\n");
	CU_ASSERT_NOT_EQUAL(reload(engine, 30), 0);
	CU_ASSERT(!is_noted() && has_rate(engine, "10/d"));
	CU_ASSERT_EQUAL(weir_engine_waiting(engine).state, WEIR_WAITING_NOTHING);
	weir_engine_stop(engine, true);
}

/* Without a place for the note there is no way back, so nothing changes. */
static void no_note_no_change(void)
{
	struct weir_engine *engine;

	begin(&engine);
	lab_run("mkdir -p %s.confirm/x", lab.overrides);
	CU_ASSERT_NOT_EQUAL(set(engine, "3/d", false, 30), 0);
	CU_ASSERT(has_rate(engine, "10/d"));
	lab_config(W0, SLOW);
	CU_ASSERT_NOT_EQUAL(reload(engine, 30), 0);
	CU_ASSERT(has_rate(engine, "10/d"));
	CU_ASSERT_EQUAL(set(engine, "3/d", false, 0), 0);
	weir_engine_stop(engine, true);
}

/* Lists, limits that are gone, and live entries, which are nobody's change. */
static void a_reload_goes_back(void)
{
	const char *lists = "version: 1\nledger: {keys: 1024}\ninterfaces: [{name: w0}]\n"
			    "lists: {%s: [10.9.0.3]}\nlimits:\n%s";
	struct weir_engine *engine;
	struct weir_error err;
	uint64_t until;
	char text[512];

	begin(&engine);
	snprintf(text, sizeof(text), lists, "deny", TEN_A_DAY);
	lab_write(lab.config, text);
	CU_ASSERT_EQUAL(reload(engine, 0), 0);
	snprintf(text, sizeof(text), lists, "allow",
		 "  - {name: other, key: none, bucket: {rate: block}}\n");
	lab_write(lab.config, text);
	CU_ASSERT_EQUAL(reload(engine, 30), 0);
	CU_ASSERT_STRING_EQUAL(weir_engine_policy(engine)->limits[0].name, "other");
	CU_ASSERT_EQUAL(weir_engine_list(engine, WEIR_DENY)->count, 0);
	CU_ASSERT_EQUAL(weir_engine_list_add(engine, WEIR_DENY, "10.9.0.4", 0, &until, &err), 0);
	CU_ASSERT_EQUAL(weir_engine_undo(engine, &err), 0);
	CU_ASSERT_STRING_EQUAL(weir_engine_policy(engine)->limits[0].name, "per-ip");
	CU_ASSERT_EQUAL(weir_engine_list(engine, WEIR_DENY)->count, 2);
	CU_ASSERT_EQUAL(weir_engine_list(engine, WEIR_ALLOW)->count, 0);
	lab_send(1, 3, 53);
	lab_send(2, 5, 53);
	CU_ASSERT_EQUAL(lab_await(engine, 0, 2).passed_packets, 2);
	/* The file still says the other thing: that is remembered, until a reload. */
	CU_ASSERT_EQUAL(weir_engine_waiting(engine).state, WEIR_UNDONE);
	CU_ASSERT(is_noted());
	CU_ASSERT_EQUAL(set(engine, "3/d", false, 30), -EALREADY);
	CU_ASSERT_EQUAL(set(engine, "3/d", false, 0), 0);
	CU_ASSERT_EQUAL(reload(engine, 0), 0);
	CU_ASSERT_STRING_EQUAL(weir_engine_policy(engine)->limits[0].name, "other");
	CU_ASSERT(!is_noted());
	weir_engine_stop(engine, true);
}

/* ---- kill -9 while it waits ---- */

/* A child that starts, changes the rate to 3/d by set or reload and is killed. */
static bool change_and_be_killed(bool by_set)
{
	pid_t child = fork();
	int status;

	if (!child) {
		struct weir_engine *engine;

		if (start(&engine))
			_exit(1);
		if (by_set ? set(engine, "5/d", false, 0) || set(engine, "3/d", true, 30) :
			     (lab_config(W0, SLOW), reload(engine, 30)))
			_exit(1);
		lab_send(15, 1, 53);
		lab_await(engine, 0, 15);
		kill(getpid(), SIGKILL);
	}
	waitpid(child, &status, 0);
	return WIFSIGNALED(status);
}

static void killed_it_waits_the_rest(void)
{
	struct weir_engine *engine;
	struct weir_error err;

	open_lab();
	CU_ASSERT_FATAL(change_and_be_killed(true));
	CU_ASSERT(is_noted() && !is_saved());
	boot_now += 12 * SECOND;
	CU_ASSERT_EQUAL_FATAL(start(&engine), 0);
	CU_ASSERT(has_rate(engine, "3/d"));
	CU_ASSERT_EQUAL(weir_engine_waiting(engine).left_ns, 18 * SECOND);
	CU_ASSERT(lab_said("still waits for weir confirm"));
	CU_ASSERT_EQUAL(weir_engine_confirm(engine, &err), 0);
	CU_ASSERT(is_saved() && !is_noted());
	weir_engine_stop(engine, false);
	CU_ASSERT_EQUAL_FATAL(start(&engine), 0);
	CU_ASSERT(has_rate(engine, "3/d"));
	weir_engine_stop(engine, true);
}

static void killed_too_long_it_goes_back(void)
{
	struct weir_engine *engine;

	open_lab();
	CU_ASSERT_FATAL(change_and_be_killed(true));
	boot_now += 31 * SECOND;
	CU_ASSERT_EQUAL_FATAL(start(&engine), 0);
	CU_ASSERT(has_rate(engine, "5/d") && !is_noted() && !is_saved());
	CU_ASSERT(lab_said("gone back (nobody confirmed it)"));
	/* State is kept, there and back. */
	lab_send(5, 1, 53);
	CU_ASSERT_EQUAL(lab_await(engine, 0, 20).passed_packets, 10);
	weir_engine_stop(engine, true);
}

/* The file that nobody confirmed does not come in by a second restart. */
static void a_killed_reload_stays_undone(void)
{
	struct weir_engine *engine;

	open_lab();
	CU_ASSERT_FATAL(change_and_be_killed(false));
	boot_now += 31 * SECOND;
	CU_ASSERT_EQUAL_FATAL(start(&engine), 0);
	CU_ASSERT(has_rate(engine, "10/d") && is_noted());
	weir_engine_stop(engine, false);
	CU_ASSERT_EQUAL_FATAL(start(&engine), 0);
	CU_ASSERT(has_rate(engine, "10/d"));
	CU_ASSERT(lab_said("is as it was when nobody confirmed it"));
	CU_ASSERT_EQUAL(weir_engine_waiting(engine).state, WEIR_UNDONE);
	/* An override would make of the file another one than was gone back from. */
	set(engine, "4/d", true, 0);
	weir_engine_stop(engine, false);
	CU_ASSERT_EQUAL_FATAL(start(&engine), 0);
	CU_ASSERT(has_rate(engine, "10/d") && is_noted());
	CU_ASSERT_EQUAL(set(engine, "4/d", true, 0), -EALREADY);
	weir_engine_stop(engine, false);
	/* Put right, it counts again. */
	lab_config(W0, "  - {name: per-ip, key: source, bucket: {rate: 7/d, burst: 7}}\n");
	CU_ASSERT_EQUAL_FATAL(start(&engine), 0);
	CU_ASSERT(has_rate(engine, "7/d") && !is_noted());
	weir_engine_stop(engine, true);
}

static void a_broken_note_is_named(void)
{
	struct weir_engine *engine = NULL;
	struct weir_error err;
	char path[128];

	open_lab();
	lab_run("mkdir -p %s/var", lab.folder);
	snprintf(path, sizeof(path), "%s.confirm", lab.overrides);
	lab_write(path, "{\"version\": 1");
	CU_ASSERT_EQUAL(lab_start(&engine, &err), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, path));
	CU_ASSERT_FALSE(lab_has_pins());
}

/* ---- the session ---- */

static void a_change_spares_the_session(void)
{
	struct weir_session session;
	struct weir_terms terms = { .session = &session };
	const struct weir_policy_change block = { "rate", "block" }, wide = { "rate", "1kpps" };
	struct weir_engine *engine;
	struct weir_error err;
	uint64_t until;

	begin(&engine);
	lab_run("ip address add 10.9.1.1/16 dev w0");
	CU_ASSERT_EQUAL(weir_session_parse("10.9.0.1 4000 10.9.1.1 22", &session, &err), 0);
	CU_ASSERT_EQUAL(weir_engine_reload(engine, &terms, &err), -ECONNABORTED);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "limit per-ip"));
	CU_ASSERT_EQUAL(weir_engine_set(engine, "per-ip", &block, 1, &terms, &err), -ECONNABORTED);
	CU_ASSERT(has_rate(engine, "10/d"));
	CU_ASSERT_EQUAL(weir_engine_policy(engine)->limits[0].bucket.rate.amount, 10);
	CU_ASSERT_EQUAL(weir_engine_set(engine, "per-ip", &wide, 1, &terms, &err), 0);
	CU_ASSERT_EQUAL(weir_engine_list_check(engine, WEIR_DENY, true, "10.9.0.0/24", &session,
					       &err),
			-ECONNABORTED);
	CU_ASSERT_EQUAL(weir_engine_list_check(engine, WEIR_DENY, true, "10.8.0.0/24", &session,
					       &err),
			0);
	/* On the allow list nothing cuts it off, but to be taken off it. */
	weir_engine_list_add(engine, WEIR_ALLOW, "10.9.0.1", 0, &until, &err);
	CU_ASSERT_EQUAL(weir_engine_set(engine, "per-ip", &block, 1, &terms, &err), 0);
	CU_ASSERT_EQUAL(weir_engine_list_check(engine, WEIR_ALLOW, false, "10.9.0.1", &session,
					       &err),
			-ECONNABORTED);
	weir_engine_list_add(engine, WEIR_ALLOW, "10.9.0.0/24", 0, &until, &err);
	CU_ASSERT_EQUAL(weir_engine_list_check(engine, WEIR_ALLOW, false, "10.9.0.1", &session,
					       &err),
			0);
	weir_engine_stop(engine, true);
}

WEIR_TESTS("engine_confirm", TEST(a_set_waits_and_stays), TEST(a_set_goes_back),
	   TEST(a_refused_change_does_not_wait), TEST(no_note_no_change), TEST(a_reload_goes_back),
	   TEST(killed_it_waits_the_rest), TEST(killed_too_long_it_goes_back),
	   TEST(a_killed_reload_stays_undone), TEST(a_broken_note_is_named),
	   TEST(a_change_spares_the_session))
