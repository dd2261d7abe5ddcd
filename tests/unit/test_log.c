// SPDX-License-Identifier: GPL-2.0
/* The rate limit of the controller's log on stderr. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

#include "cli/log.h"
#include "controller/loop.h"

#define NOW_NS 1000000000000LL
#define SECOND 1000000000LL

static struct weir_log logged;
static char *text;
static size_t size;

static void setup(void)
{
	weir_log_open(&logged, open_memstream(&text, &size), NOW_NS);
	CU_ASSERT_PTR_NOT_NULL_FATAL(logged.to);
}

static void teardown(void)
{
	fclose(logged.to);
	free(text);
}

static void say(unsigned int lines, int64_t now_ns)
{
	for (unsigned int i = 0; i < lines; i++)
		weir_log_line(&logged, "a line", now_ns);
	fflush(logged.to);
}

static unsigned int written(void)
{
	unsigned int lines = 0;

	for (size_t i = 0; i < size; i++)
		lines += text[i] == '\n';
	return lines;
}

static void so_many_at_once_and_a_second(void)
{
	setup();
	say(WEIR_LOG_BURST + 100, NOW_NS);
	CU_ASSERT_EQUAL(written(), WEIR_LOG_BURST);
	CU_ASSERT_PTR_NULL(strstr(text, "left out"));
	say(WEIR_LOG_RATE + 5, NOW_NS + SECOND);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\n100 lines left out: see weir events\na line\n"));
	CU_ASSERT_EQUAL(written(), WEIR_LOG_BURST + 1 + WEIR_LOG_RATE);
	teardown();
}

/* A start with more limits than lines: whoever waits for the last one must not wait for ever. */
static void ready_is_never_left_out(void)
{
	setup();
	say(WEIR_LOG_BURST + 56, NOW_NS);
	weir_log_line(&logged, WEIR_LOOP_READY "/run/weir/weir.sock", NOW_NS);
	say(1, NOW_NS);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "a line\n56 lines left out: see weir events\n"
					    "ready: /run/weir/weir.sock\n"));
	CU_ASSERT_EQUAL(written(), WEIR_LOG_BURST + 2);
	CU_ASSERT_EQUAL(logged.left_out, 1);
	teardown();
}

WEIR_TESTS("log", TEST(so_many_at_once_and_a_second), TEST(ready_is_never_left_out))
