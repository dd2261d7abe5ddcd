// SPDX-License-Identifier: GPL-2.0
/* The lists from the file and the command to the packet. */
#include "harness.h"

#include "engine_lab.h"

#define MS 1000000ULL
#define SECOND (1000 * MS)
#define MANY 1000000

/* A configuration with lists, and the limit of 10 a day. */
static void config(const char *lists)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "version: 1\nledger: {keys: 1024}\ninterfaces:\n" W0 "%slimits:\n" TEN_A_DAY,
		 lists);
	lab_write(lab.config, text);
}

static uint64_t frames(struct weir_engine *engine, enum weir_path path)
{
	return weir_dataplane_traffic(weir_engine_dataplane(engine),
				      weir_engine_interface(engine, 0)->slot, WEIR_HOOK_XDP)
		.frames[path];
}

/* Sends and tells what became of all: allowed, denied. */
static bool became(struct weir_engine *engine, unsigned int count, uint8_t last,
		   enum weir_path path)
{
	const struct timespec ms = { .tv_nsec = MS };
	uint64_t before = frames(engine, path);

	lab_send(count, last, 53);
	for (int i = 0; i < 200 && frames(engine, path) < before + count; i++)
		nanosleep(&ms, NULL);
	return frames(engine, path) == before + count;
}

static void the_files_lists_act(void)
{
	struct weir_engine *engine;
	struct weir_error err;
	char file[128], text[512];

	lab_open();
	snprintf(file, sizeof(file), "%s/deny.txt", lab.folder);
	lab_write(file, "10.9.0.3\n# nobody\n2001:db8::/32\n");
	snprintf(text, sizeof(text),
		 "lists: {allow: [10.9.0.0/30], deny: [10.9.0.2, 10.9.0.4/30], deny_files: [%s]}\n",
		 file);
	config(text);
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	/* Allow wins over a longer deny. */
	CU_ASSERT_TRUE(became(engine, 20, 2, WEIR_PATH_ALLOWED));
	CU_ASSERT_TRUE(became(engine, 5, 5, WEIR_PATH_DENIED));
	CU_ASSERT_TRUE(became(engine, 5, 9, WEIR_PATH_LIMITS));
	CU_ASSERT_EQUAL(weir_engine_dataplane(engine)->board->lists_live.used,
			WEIR_LIST_ALLOW4 | WEIR_LIST_DENY4 | WEIR_LIST_DENY6);
	/* The allowance goes by a reload; the file's entry is there. */
	snprintf(text, sizeof(text), "lists: {deny_files: [%s]}\n", file);
	config(text);
	CU_ASSERT_EQUAL(weir_engine_reload(engine, NULL, &err), 0);
	CU_ASSERT_TRUE(became(engine, 5, 3, WEIR_PATH_DENIED));
	CU_ASSERT_TRUE(became(engine, 5, 2, WEIR_PATH_LIMITS));
	CU_ASSERT_TRUE(became(engine, 5, 5, WEIR_PATH_LIMITS));
	/* B12: a bad line in a file: nothing is changed. */
	lab_write(file, "10.9.0.300\n");
	CU_ASSERT_NOT_EQUAL(weir_engine_reload(engine, NULL, &err), 0);
	CU_ASSERT_TRUE(became(engine, 5, 3, WEIR_PATH_DENIED));
	weir_engine_stop(engine, true);
	lab_close();
}

static void live_entries_come_and_go(void)
{
	struct weir_engine *engine;
	struct weir_error err;
	uint64_t until;

	lab_open();
	config("lists: {deny: [10.9.0.7]}\n");
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	CU_ASSERT_EQUAL(weir_engine_list_add(engine, WEIR_DENY, "10.9.0.0/24", 0, &until, &err), 0);
	CU_ASSERT_EQUAL(until, 0);
	CU_ASSERT_TRUE(became(engine, 5, 1, WEIR_PATH_DENIED));
	CU_ASSERT_EQUAL(weir_engine_list_add(engine, WEIR_ALLOW, "10.9.0.1", 60 * SECOND, &until,
					     &err), 0);
	CU_ASSERT_TRUE(became(engine, 5, 1, WEIR_PATH_ALLOWED));
	CU_ASSERT_EQUAL(weir_engine_list_del(engine, WEIR_ALLOW, "10.9.0.1", &err), 0);
	CU_ASSERT_TRUE(became(engine, 5, 1, WEIR_PATH_DENIED));
	CU_ASSERT_EQUAL(weir_engine_list_del(engine, WEIR_DENY, "10.9.0.0/24", &err), 0);
	CU_ASSERT_TRUE(became(engine, 5, 1, WEIR_PATH_LIMITS));
	CU_ASSERT_TRUE(became(engine, 5, 7, WEIR_PATH_DENIED));
	CU_ASSERT_EQUAL(weir_engine_list_del(engine, WEIR_DENY, "10.9.0.7", &err), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "by the configuration"));
	CU_ASSERT_EQUAL(weir_engine_list_del(engine, WEIR_DENY, "10.9.0.8", &err), -ENOENT);
	CU_ASSERT_EQUAL(weir_engine_list_add(engine, WEIR_DENY, "0", 0, &until, &err), -EINVAL);
	CU_ASSERT_EQUAL(weir_engine_list_add(engine, WEIR_DENY, "10.9.0.1/24", 0, &until, &err),
			-EINVAL);
	CU_ASSERT_EQUAL(weir_engine_list_add(engine, WEIR_DENY, "10.9.0.0/33", 0, &until, &err),
			-EINVAL);
	weir_engine_stop(engine, true);
	lab_close();
}

/* B8: an entry ends when it says, also one within a longer-lived one, and again extends. */
static void B8_entries_end_when_they_say(void)
{
	const struct timespec wait = { .tv_nsec = 120 * MS };
	struct weir_engine *engine;
	struct weir_error err;
	uint64_t until;

	lab_open();
	config("");
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	weir_engine_list_add(engine, WEIR_DENY, "10.9.0.0/29", 60 * SECOND, &until, &err);
	weir_engine_list_add(engine, WEIR_DENY, "10.9.0.1", 100 * MS, &until, &err);
	weir_engine_list_add(engine, WEIR_DENY, "10.9.0.9", 100 * MS, &until, &err);
	weir_engine_list_add(engine, WEIR_DENY, "10.9.0.10", 100 * MS, &until, &err);
	weir_engine_list_add(engine, WEIR_DENY, "10.9.0.10", 60 * SECOND, &until, &err);
	CU_ASSERT_TRUE(became(engine, 2, 9, WEIR_PATH_DENIED));
	nanosleep(&wait, NULL);
	CU_ASSERT_TRUE(became(engine, 2, 9, WEIR_PATH_LIMITS));
	CU_ASSERT_TRUE(became(engine, 2, 1, WEIR_PATH_DENIED));
	CU_ASSERT_TRUE(became(engine, 2, 10, WEIR_PATH_DENIED));
	CU_ASSERT_EQUAL(weir_engine_list(engine, WEIR_DENY)->count, 4);
	weir_engine_tick(engine);
	CU_ASSERT_EQUAL(weir_engine_list(engine, WEIR_DENY)->count, 2);
	CU_ASSERT_TRUE(became(engine, 2, 1, WEIR_PATH_DENIED));
	weir_engine_stop(engine, true);
	lab_close();
}

static void live_entries_outlive_reloads_and_the_controller(void)
{
	struct weir_engine *engine;
	const struct weir_list_table *table;
	struct weir_error err;
	uint64_t until, outer;

	lab_open();
	config("lists: {deny: [10.9.0.4]}\n");
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	weir_engine_list_add(engine, WEIR_DENY, "10.9.0.0/29", 0, &outer, &err);
	weir_engine_list_add(engine, WEIR_DENY, "10.9.0.1", 60 * SECOND, &until, &err);
	weir_engine_list_add(engine, WEIR_DENY, "10.9.0.2", 50 * MS, &outer, &err);
	CU_ASSERT_EQUAL(weir_engine_reload(engine, NULL, &err), 0);
	CU_ASSERT_TRUE(became(engine, 5, 1, WEIR_PATH_DENIED));
	weir_engine_stop(engine, false);
	config("lists: {deny: [10.9.0.6]}\n");
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	CU_ASSERT_TRUE(became(engine, 5, 1, WEIR_PATH_DENIED));
	nanosleep(&(struct timespec){ .tv_nsec = 60 * MS }, NULL);
	weir_engine_tick(engine);
	table = weir_engine_list(engine, WEIR_DENY);
	/* The outer, .1 by its own expiry though it lies in one for ever, and the file's .6. */
	CU_ASSERT_EQUAL_FATAL(table->count, 3);
	CU_ASSERT_TRUE(table->entries[0].live);
	CU_ASSERT_EQUAL(table->entries[1].expires_ns, until);
	CU_ASSERT_TRUE(table->entries[2].file);
	CU_ASSERT_EQUAL(weir_engine_list_del(engine, WEIR_DENY, "10.9.0.0/29", &err), 0);
	CU_ASSERT_TRUE(became(engine, 5, 1, WEIR_PATH_DENIED));
	CU_ASSERT_TRUE(became(engine, 5, 2, WEIR_PATH_LIMITS));
	weir_engine_stop(engine, true);
	lab_close();
}

/* ---- a million ---- */

static double seconds(void)
{
	struct timespec now;

	/* Of this process: others may use the CPUs too. */
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void a_million_prefixes_load_in_time(void)
{
	struct weir_engine *engine;
	struct weir_error err;
	char file[128], text[512];
	double begun, start, reload, restart;
	uint64_t until;
	FILE *out;

	lab_open();
	snprintf(file, sizeof(file), "%s/deny.txt", lab.folder);
	out = fopen(file, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	for (uint32_t i = 0; i < MANY; i++) {
		uint32_t mixed = i * 2654435761U >> 8;

		fprintf(out, "%u.%u.%u.%u\n", 11 + i % 100, mixed & 255, mixed >> 8 & 255,
			i / 3907 & 255);
	}
	fclose(out);
	snprintf(text, sizeof(text), "lists: {deny: [10.9.0.0/28], deny_files: [%s]}\n", file);
	config(text);
	begun = seconds();
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	start = seconds() - begun;
	CU_ASSERT_TRUE(became(engine, 5, 1, WEIR_PATH_DENIED));
	begun = seconds();
	CU_ASSERT_EQUAL(weir_engine_list_add(engine, WEIR_DENY, "10.9.0.99", 0, &until, &err), 0);
	printf("  one more: %.1f ms\n", (seconds() - begun) * 1e3);
	begun = seconds();
	CU_ASSERT_EQUAL(weir_engine_reload(engine, NULL, &err), 0);
	reload = seconds() - begun;
	weir_engine_stop(engine, false);
	begun = seconds();
	CU_ASSERT_EQUAL_FATAL(lab_begin(&engine, &err), 0);
	restart = seconds() - begun;
	printf("  %zu prefixes: start %.1f s, reload %.1f s, restart %.1f s\n",
	       weir_engine_list(engine, WEIR_DENY)->count, start, reload, restart);
	CU_ASSERT(start < 5 && reload < 5 && restart < 5);
	CU_ASSERT_TRUE(became(engine, 5, 99, WEIR_PATH_DENIED));
	weir_engine_stop(engine, true);
	lab_close();
}

WEIR_TESTS("engine_lists", TEST(the_files_lists_act), TEST(live_entries_come_and_go),
	   TEST(B8_entries_end_when_they_say),
	   TEST(live_entries_outlive_reloads_and_the_controller),
	   TEST(a_million_prefixes_load_in_time))
