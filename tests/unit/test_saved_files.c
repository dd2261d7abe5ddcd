// SPDX-License-Identifier: GPL-2.0
/*
 * The files that a controller keeps for the next one (overrides, a change that waits), cut off
 * at every byte and with bytes changed at random: read, or refused by the file's name.
 */
#include "harness.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compile_text.h"
#include "controller/confirm.h"
#include "controller/file.h"
#include "controller/overrides.h"
#include "random.h"

#define CHANGES 3000

static char folder[] = "/tmp/weir-saved-XXXXXX", path[64];
static unsigned int taken;

static void put(const char *bytes, size_t size)
{
	FILE *out = fopen(path, "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	CU_ASSERT_EQUAL(fwrite(bytes, 1, size, out), size);
	fclose(out);
}

/* How the file at `path` is read: 0 or a refusal that names it. */
typedef int (*reader)(struct weir_error *err);

static int read_overrides(struct weir_error *err)
{
	struct weir_policy *policy = load("version: 1\ninterfaces: [{name: e0}]\n"
					  "limits: [{name: per-ip, key: source, "
					  "bucket: {rate: 7pps}}]\n");
	int code = weir_overrides_apply(path, policy, NULL, NULL, err), frozen_code = 0;
	json_t *frozen = weir_overrides_frozen(path, &frozen_code, err);

	CU_ASSERT_EQUAL(code, frozen_code);
	json_decref(frozen);
	/* Whatever the file says, what comes of it is a limit. */
	CU_ASSERT_EQUAL(policy->limit_count, 1);
	weir_policy_free(policy);
	return code;
}

static int read_confirm(struct weir_error *err)
{
	struct weir_confirm *confirm = NULL;
	int code = weir_confirm_read(path, &confirm, err);

	CU_ASSERT_EQUAL(!code, confirm != NULL);
	weir_confirm_free(confirm);
	return code;
}

static void expect_read_or_refused(reader read, const char *bytes, size_t size)
{
	struct weir_error err = { "" };
	int code;

	put(bytes, size);
	code = read(&err);
	taken += !code;
	if (code && (code != -EINVAL || !strstr(err.text, path)))
		CU_FAIL("neither read nor refused by name");
}

static void maul(reader read, const char *good)
{
	size_t size = strlen(good);
	char *bytes = malloc(size);
	uint64_t random = 5;

	CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
	taken = 0;
	expect_read_or_refused(read, good, size);
	CU_ASSERT_EQUAL(taken, 1);
	for (size_t cut = 0; cut < size; cut++)
		expect_read_or_refused(read, good, cut);
	for (int i = 0; i < CHANGES; i++) {
		memcpy(bytes, good, size);
		for (uint64_t n = 1 + random_below(&random, 3); n; n--)
			bytes[random_below(&random, size)] = (char)random_next(&random);
		expect_read_or_refused(read, bytes, size);
	}
	/* A whole file, and those changes that leave one, but few of them all. */
	CU_ASSERT(taken > 1 && taken < CHANGES / 2);
	free(bytes);
}

static void begin(void)
{
	strcpy(folder + strlen(folder) - 6, "XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/overrides.json", folder);
}

static void end(void)
{
	unlink(path);
	CU_ASSERT_EQUAL(rmdir(folder), 0);
}

static void overrides(void)
{
	begin();
	maul(read_overrides,
	     "{\"version\": 1, \"limits\": {\"per-ip\": {\"rate\": \"500pps\", \"burst\": "
	     "\"1000\", \"mode\": \"monitor\"}, \"gone\": {\"rate\": \"1/d\"}}, \"frozen\": "
	     "{\"web\": [\"governor\", \"breaker\"]}}");
	end();
}

static void a_change_that_waits(void)
{
	begin();
	maul(read_confirm,
	     "{\"version\": 1, \"undone\": false, \"reload\": false, \"what\": \"weir set per-ip "
	     "rate=5pps\", \"within_ns\": 30000000000, \"boot_id\": \"b00t\", \"until_ns\": 5000, "
	     "\"before\": \"version: 1\\n\", \"after\": \"version: 1\\n\", \"save\": {\"limit\": "
	     "\"per-ip\", \"changes\": {\"rate\": \"5pps\"}}}");
	end();
}

/* What a save that was killed has left is no hindrance, and goes. */
static void a_save_that_was_killed(void)
{
	char beside[80];

	begin();
	snprintf(beside, sizeof(beside), "%s.new", path);
	CU_ASSERT_EQUAL(symlink("/nowhere/else", beside), 0);
	CU_ASSERT_EQUAL(weir_file_replace(path, "text"), 0);
	CU_ASSERT_EQUAL(access(path, R_OK), 0);
	put("half", 4);
	CU_ASSERT_EQUAL(rename(path, beside), 0);
	weir_file_sweep(path);
	CU_ASSERT_NOT_EQUAL(access(beside, F_OK), 0);
	end();
}

/* A FIFO that nobody writes to would hold the start up for ever. */
static void other_kinds_of_files_are_refused(void)
{
	struct weir_error err = { "" };

	begin();
	CU_ASSERT_EQUAL(mkfifo(path, 0600), 0);
	alarm(20);
	CU_ASSERT_EQUAL(read_overrides(&err), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, path));
	CU_ASSERT_EQUAL(read_confirm(&err), -EINVAL);
	alarm(0);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "is not a regular file"));
	unlink(path);
	CU_ASSERT_EQUAL(mkdir(path, 0700), 0);
	CU_ASSERT_EQUAL(read_overrides(&err), -EISDIR);
	CU_ASSERT_EQUAL(read_confirm(&err), -EISDIR);
	CU_ASSERT_EQUAL(rmdir(path), 0);
	end();
}

WEIR_TESTS("saved_files", TEST(overrides), TEST(a_change_that_waits), TEST(a_save_that_was_killed),
	   TEST(other_kinds_of_files_are_refused))
