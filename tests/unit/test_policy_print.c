// SPDX-License-Identifier: GPL-2.0
/* Texts that YAML could bend come back as they were. */
#include "controller/policy.h"
#include "harness.h"
#include "policy_roundtrip.h"

#include <unistd.h>

static void comes_back(const char *text, const char *what)
{
	struct weir_policy *policy = NULL;
	struct weir_error err = { "" };
	const char *wrong = NULL;

	if (weir_policy_load_text(text, strlen(text), "w.yaml", &policy, &err))
		wrong = "does not load";
	else
		wrong = weir_roundtrip(policy, &err);
	if (wrong)
		printf("  %s: %s: %s\n", what, wrong, err.text);
	CU_ASSERT_PTR_NULL(wrong);
	weir_policy_free(policy);
}

/* Quotes, line separators, C1 controls, what is no character: as a path in double quotes. */
static void odd_paths_print_and_load_back(void)
{
	static const char *const units[] = { "\\\"",	"\\\\",	   "\\N",     "\\L",
					     "\\x81",	"\\uFFFE", "\\uFEFF", "\\U0001F600",
					     "\\u00E9", " ",	   "#",	      ": " };

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		char text[2048];
		int n = snprintf(text, sizeof(text),
				 "version: 1\nservices:\n  - name: s\n"
				 "    match: {proto: udp, to_port: 1}\n    cgroup: \"/");

		for (int j = 0; j < 60; j++)
			n += snprintf(text + n, sizeof(text) - (size_t)n, "%s", units[i]);
		snprintf(text + n, sizeof(text) - (size_t)n, "\"\n");
		comes_back(text, units[i]);
	}
}

static void the_longest_path_prints_and_loads_back(void)
{
	char path[WEIR_POLICY_TEXT_SIZE], text[512];
	int n = snprintf(path, sizeof(path), "/tmp/weir-%d-", (int)getpid());
	FILE *file;

	memset(path + n, '"', sizeof(path) - 1 - (size_t)n);
	path[sizeof(path) - 1] = 0;
	file = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fclose(file);
	snprintf(text, sizeof(text), "version: 1\nlists: {allow_files: '%s'}\n", path);
	comes_back(text, path);
	unlink(path);
}

/* Names that other YAML readers take for something else. */
static void names_that_look_like_values(void)
{
	comes_back("version: 1\ninterfaces: [{name: \"null\"}, {name: 'eth0:1'}, {name: '#'},\n"
		   " {name: '~'}, {name: '{}'}, {name: \"a'b\"}]\n"
		   "limits:\n  - {name: 1e3, key: none, bucket: {rate: 1pps}}\n"
		   "  - {name: null, key: none, bucket: {rate: 1pps}}\n"
		   "  - {name: true, key: none, bucket: {rate: 1pps}}\n",
		   "names");
}

WEIR_TESTS("policy_print", TEST(odd_paths_print_and_load_back),
	   TEST(the_longest_path_prints_and_loads_back), TEST(names_that_look_like_values))
