/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One test program a file: a table of tests, run by CUnit.
 *
 *	static void refuses_over_burst(void) { CU_ASSERT_FALSE(...); }
 *	WEIR_TESTS("bucket", TEST(refuses_over_burst))
 *
 * A test that is written but missing from the table does not build (-Wunused-function).
 * The program prints a line a test and closes with `N passed, N failed`; it exits 1 if any
 * failed. With an argument it runs only the tests whose name contains it. Those that the file
 * $WEIR_SKIP_TESTS has a line `SUITE/TEST: REASON` for, or `SUITE: REASON`, are left out, and it
 * says so.
 */
#pragma once

#include <CUnit/CUnit.h>
#include <stddef.h>

struct weir_test {
	const char *name;
	void (*run)(void);
};

#define TEST(function)                                                                             \
	{                                                                                          \
#function, function                                                                \
	}

int weir_tests_run(const char *suite, const struct weir_test *tests, size_t count, int argc,
		   char **argv);

#define WEIR_TESTS(suite, ...)                                                                     \
	int main(int argc, char **argv)                                                            \
	{                                                                                          \
		static const struct weir_test tests[] = { __VA_ARGS__ };                           \
		return weir_tests_run(suite, tests, sizeof(tests) / sizeof(tests[0]), argc, argv); \
	}
