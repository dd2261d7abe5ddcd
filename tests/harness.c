// SPDX-License-Identifier: GPL-2.0
#include "harness.h"

#include <CUnit/TestRun.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool run_one(CU_pSuite suite, const struct weir_test *test)
{
	CU_pTest registered = CU_add_test(suite, test->name, test->run);

	if (!registered || CU_run_test(suite, registered) != CUE_SUCCESS)
		return false;
	for (CU_pFailureRecord f = CU_get_failure_list(); f; f = f->pNext)
		printf("  %s:%u: %s\n", f->strFileName, f->uiLineNumber, f->strCondition);
	return CU_get_number_of_failures() == 0;
}

/* Why the file of WEIR_SKIP_TESTS leaves the test out, or with NULL the suite; NULL: it doesn't. */
static const char *reason_to_skip(const char *suite, const char *test)
{
	const char *path = getenv("WEIR_SKIP_TESTS");
	FILE *file = path ? fopen(path, "re") : NULL;
	static char line[256];
	const char *reason = NULL;
	char name[128];
	int length;

	if (!file)
		return NULL;
	length = snprintf(name, sizeof(name), "%s%s%s: ", suite, test ? "/" : "", test ? test : "");
	while (!reason && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, name, (size_t)length))
			reason = line + length;
	}
	fclose(file);
	return reason;
}

int weir_tests_run(const char *suite_name, const struct weir_test *tests, size_t count, int argc,
		   char **argv)
{
	const char *reason = reason_to_skip(suite_name, NULL);
	unsigned int passed = 0, failed = 0;
	CU_pSuite suite;

	if (reason) {
		printf("skip %s: %s\n0 passed, 0 failed\n", suite_name, reason);
		return 1;
	}
	if (CU_initialize_registry() != CUE_SUCCESS)
		return 1;
	suite = CU_add_suite(suite_name, NULL, NULL);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < count; i++) {
		bool ok;

		reason = reason_to_skip(suite_name, tests[i].name);
		if (argc > 1 && !strstr(tests[i].name, argv[1]))
			continue;
		if (reason) {
			printf("skip %s/%s: %s\n", suite_name, tests[i].name, reason);
			continue;
		}
		ok = suite && run_one(suite, &tests[i]);
		printf("%s %s/%s\n", ok ? "ok" : "FAIL", suite_name, tests[i].name);
		ok ? passed++ : failed++;
	}
	CU_cleanup_registry();
	printf("%u passed, %u failed\n", passed, failed);
	return failed || !passed;
}
