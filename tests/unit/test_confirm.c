// SPDX-License-Identifier: GPL-2.0
/* The note of a change that waits: it survives on disk, and knows when its time is over. */
#include "harness.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compile_text.h"
#include "controller/confirm.h"

static char folder[] = "/tmp/weir-confirm-XXXXXX", path[64], list[64];

static void put(const char *file, const char *text)
{
	FILE *out = fopen(file, "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	fputs(text, out);
	fclose(out);
}

static void begin(void)
{
	strcpy(folder + strlen(folder) - 6, "XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/o.json.confirm", folder);
	snprintf(list, sizeof(list), "%s/deny.txt", folder);
}

static void end(void)
{
	unlink(path);
	unlink(list);
	/* Nothing else: no temporary file is left. */
	CU_ASSERT_EQUAL(rmdir(folder), 0);
}

static struct weir_confirm sample(void)
{
	return (struct weir_confirm){
		.reload = true,
		.what = "weir reload",
		.within_ns = 30000000000,
		.boot_id = "b00t",
		.until_ns = 5000,
		.before = (char *)"version: 1\n# \xc3\xa4\n",
		.after = (char *)"version: 1\n",
	};
}

static void survives_on_disk(void)
{
	struct weir_confirm note = sample(), *back = NULL;
	struct weir_error err = { "" };
	struct stat status;

	begin();
	CU_ASSERT_EQUAL(weir_confirm_read(path, &back, &err), 0);
	CU_ASSERT_PTR_NULL(back);
	note.save_limit = (char *)"per-ip";
	note.save_changes = json_pack("{s:s}", "rate", "5pps");
	CU_ASSERT_EQUAL(weir_confirm_write(path, &note, &err), 0);
	CU_ASSERT_EQUAL(stat(path, &status), 0);
	CU_ASSERT_EQUAL(status.st_mode & 07777, 0600);
	CU_ASSERT_EQUAL_FATAL(weir_confirm_read(path, &back, &err), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(back);
	CU_ASSERT(back->reload && !back->undone);
	CU_ASSERT_STRING_EQUAL(back->what, note.what);
	CU_ASSERT_STRING_EQUAL(back->boot_id, "b00t");
	CU_ASSERT_STRING_EQUAL(back->before, note.before);
	CU_ASSERT_STRING_EQUAL(back->after, note.after);
	CU_ASSERT_EQUAL(back->within_ns, 30000000000);
	CU_ASSERT_EQUAL(back->until_ns, 5000);
	CU_ASSERT_STRING_EQUAL(back->save_limit, "per-ip");
	CU_ASSERT(json_equal(back->save_changes, note.save_changes));
	weir_confirm_free(back);
	json_decref(note.save_changes);
	CU_ASSERT_EQUAL(weir_confirm_remove(path, &err), 0);
	CU_ASSERT_EQUAL(weir_confirm_remove(path, &err), 0);
	CU_ASSERT_NOT_EQUAL(access(path, F_OK), 0);
	end();
}

static void says_what_is_no_note(void)
{
	static const char *const bad[] = {
		"",
		"{",
		"[]",
		"{\"version\": 2}",
		"{\"version\": 1, \"undone\": false, \"reload\": true, \"what\": \"w\", "
		"\"within_ns\": -1, \"boot_id\": \"\", \"until_ns\": 0, \"before\": \"\", "
		"\"after\": \"\"}",
		"{\"version\": 1, \"undone\": false, \"reload\": true, \"what\": \"w\", "
		"\"within_ns\": 1, \"boot_id\": \"\", \"until_ns\": 0, \"before\": \"\", "
		"\"after\": \"\", \"save\": {\"limit\": \"a\", \"changes\": []}}",
	};

	begin();
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct weir_confirm *note = NULL;
		struct weir_error err = { "" };

		put(path, bad[i]);
		CU_ASSERT_EQUAL(weir_confirm_read(path, &note, &err), -EINVAL);
		CU_ASSERT_PTR_NULL(note);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, path));
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "delete it"));
	}
	end();
}

static void time_is_boot_time_of_one_boot(void)
{
	struct weir_confirm note = sample();
	char boot_id[WEIR_BOOT_ID];

	CU_ASSERT_EQUAL(weir_confirm_left_ns(&note, "b00t", 0), 5000);
	CU_ASSERT_EQUAL(weir_confirm_left_ns(&note, "b00t", 4999), 1);
	CU_ASSERT_EQUAL(weir_confirm_left_ns(&note, "b00t", 5000), 0);
	CU_ASSERT_EQUAL(weir_confirm_left_ns(&note, "b00t", UINT64_MAX), 0);
	/* After a reboot the clock begins anew, and nobody has confirmed. */
	CU_ASSERT_EQUAL(weir_confirm_left_ns(&note, "another", 10), 0);
	note.undone = true;
	CU_ASSERT_EQUAL(weir_confirm_left_ns(&note, "b00t", 0), 0);
	weir_confirm_boot_id(boot_id);
	CU_ASSERT_EQUAL(strlen(boot_id), 36);
}

/* The lists' files may change while a change waits; what they said is kept. */
static void a_policy_is_kept_with_its_files(void)
{
	struct weir_policy *policy, *back = NULL;
	struct weir_error err = { "" };
	char text[512], *kept;
	int code;

	begin();
	put(list, "203.0.113.0/24\n2001:db8::/32\n");
	snprintf(text, sizeof(text),
		 "version: 1\ninterfaces: [{name: e0}]\n"
		 "lists: {deny: [192.0.2.0/24], deny_files: [%s]}\n"
		 "limits: [{name: a, key: source, bucket: {rate: 7pps}}]\n",
		 list);
	policy = load(text);
	kept = weir_confirm_policy_text(policy, &code, &err);
	CU_ASSERT_PTR_NOT_NULL_FATAL(kept);
	put(list, "not a prefix\n");
	CU_ASSERT_EQUAL_FATAL(weir_policy_load_text(kept, strlen(kept), "kept", &back, &err), 0);
	CU_ASSERT_EQUAL(back->lists.deny.prefixes.count, 3);
	for (size_t i = 0; i < 3; i++)
		CU_ASSERT(weir_prefix_equal(&back->lists.deny.prefixes.items[i],
					    &policy->lists.deny.prefixes.items[i]));
	CU_ASSERT(weir_policy_limit_equal(&back->limits[0], &policy->limits[0]));
	free(kept);
	weir_policy_free(back);
	weir_policy_free(policy);
	end();
}

WEIR_TESTS("confirm", TEST(survives_on_disk), TEST(says_what_is_no_note),
	   TEST(time_is_boot_time_of_one_boot), TEST(a_policy_is_kept_with_its_files))
