// SPDX-License-Identifier: GPL-2.0
#include "harness.h"

#include <CUnit/TestRun.h>
#include <stdbool.h>
#include <stdio.h>
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

int weir_tests_run(const char *suite_name, const struct weir_test *tests, size_t count, int argc,
		   char **argv)
{
	unsigned int passed = 0, failed = 0;
	CU_pSuite suite;

	if (CU_initialize_registry() != CUE_SUCCESS)
		return 1;
	suite = CU_add_suite(suite_name, NULL, NULL);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < count; i++) {
		bool ok;

		if (argc > 1 && !strstr(tests[i].name, argv[1]))
			continue;
		ok = suite && run_one(suite, &tests[i]);
		printf("%s %s/%s\n", ok ? "ok" : "FAIL", suite_name, tests[i].name);
		ok ? passed++ : failed++;
	}
	CU_cleanup_registry();
	printf("%u passed, %u failed\n", passed, failed);
	return failed || !passed;
}
