// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "controller/outcomes.h"
#include "harness.h"
#include "random.h"

#define MS 1000000ULL

static int parse(const char *text, struct weir_outcome_line *line)
{
	struct weir_error err = { 0 };
	int rc = weir_outcome_parse(text, strlen(text), line, &err);

	/* What is refused is said. */
	CU_ASSERT(!rc == !*err.text);
	return rc;
}

static void lines_are_parsed(void)
{
	struct weir_outcome_line line;

	CU_ASSERT_EQUAL(parse("web pass", &line), 0);
	CU_ASSERT(!strcmp(line.name, "web") && line.pass && !line.response_ns);
	CU_ASSERT_EQUAL(parse("web fail\n", &line), 0);
	CU_ASSERT(!strcmp(line.name, "web") && !line.pass);
	CU_ASSERT_EQUAL(parse("a-b_9  pass rt=12ms\n", &line), 0);
	CU_ASSERT(!strcmp(line.name, "a-b_9") && line.response_ns == 12 * MS);
	CU_ASSERT_EQUAL(parse("web fail rt=2s", &line), 0);
}

static void everything_else_is_malformed(void)
{
	static const char *const bad[] = {
		"",
		"\n",
		"web",
		"pass",
		"web ok",
		"web PASS",
		"web pass 12ms",
		"web pass rt=",
		"web pass rt=0ms",
		"web pass rt=-1ms",
		"web pass rt=12",
		"web pass rt=1ms x",
		"web pass\nweb pass",
		"web pass rt=99999999999d",
		"0123456789012345678901234567890123456789 pass",
	};
	struct weir_outcome_line line;
	struct weir_error err;
	char longest[WEIR_OUTCOME_MAX + 3];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CU_ASSERT_NOT_EQUAL(parse(bad[i], &line), 0);
	}
	CU_ASSERT_EQUAL(weir_outcome_parse("web\0pass", 8, &line, &err), -EINVAL);
	memset(longest, ' ', sizeof(longest));
	memcpy(longest, "web pass", 8);
	CU_ASSERT_EQUAL(weir_outcome_parse(longest, WEIR_OUTCOME_MAX, &line, &err), 0);
	CU_ASSERT_EQUAL(weir_outcome_parse(longest, WEIR_OUTCOME_MAX + 1, &line, &err), -EINVAL);
}

static void random_bytes_do_no_harm(void)
{
	static const char letters[] = "webpasfilrt=12m \n\0\xff";
	uint64_t seed = 3;

	for (int i = 0; i < 50000; i++) {
		size_t length = random_below(&seed, WEIR_OUTCOME_MAX + 3);
		char *text = malloc(length + 1);
		struct weir_outcome_line line;
		struct weir_error err;

		for (size_t j = 0; j < length; j++)
			text[j] = letters[random_below(&seed, sizeof(letters) - 1)];
		weir_outcome_parse(text, length, &line, &err);
		free(text);
	}
}

/* ---- the socket ---- */

static char folder[40], path[64], address[80];
static int taken, malformed;
static struct weir_outcome_line last;

static void take(void *context, const struct weir_outcome_line *line)
{
	(void)context;
	if (!line) {
		malformed++;
		return;
	}
	taken++;
	last = *line;
}

static void make_folder(void)
{
	strcpy(folder, "/tmp/weir-outcomes-XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/s", folder);
	snprintf(address, sizeof(address), "%s.report", path);
	taken = malformed = 0;
}

static int connected(void)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	strcpy(to.sun_path, address);
	CU_ASSERT_EQUAL_FATAL(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static void datagrams_arrive_and_bad_ones_are_counted(void)
{
	struct event_base *base = event_base_new();
	struct weir_outcomes *outcomes = NULL;
	struct weir_error err;
	char big[5000];
	struct stat status;
	int fd;

	make_folder();
	CU_ASSERT_EQUAL_FATAL(
		weir_outcomes_start(&outcomes, base, path, getegid(), take, NULL, &err), 0);
	CU_ASSERT_EQUAL(stat(address, &status), 0);
	CU_ASSERT_EQUAL(status.st_mode & 0777, 0660);
	fd = connected();
	memset(big, ' ', sizeof(big));
	memcpy(big, "web pass", 8);
	for (int i = 0; i < 2000; i++) {
		CU_ASSERT_EQUAL(send(fd, "web pass rt=3ms\n", 16, 0), 16);
		if (i % 5 == 4)
			event_base_loop(base, EVLOOP_NONBLOCK);
	}
	send(fd, "nonsense", 8, 0);
	/* A long one is cut off by the kernel: what is left must not pass for a report. */
	send(fd, big, sizeof(big), 0);
	send(fd, "", 0, 0);
	for (int i = 0; i < 10; i++)
		event_base_loop(base, EVLOOP_NONBLOCK);
	CU_ASSERT_EQUAL(taken, 2000);
	CU_ASSERT_EQUAL(last.response_ns, 3 * MS);
	CU_ASSERT_EQUAL(malformed, 3);
	close(fd);
	weir_outcomes_stop(outcomes);
	event_base_free(base);
	CU_ASSERT_EQUAL(rmdir(folder), 0);
}

static void only_a_socket_is_replaced(void)
{
	struct event_base *base = event_base_new();
	struct weir_outcomes *first = NULL, *second = NULL;
	char too_long[200];
	struct weir_error err;
	FILE *file;

	make_folder();
	file = fopen(address, "w");
	fclose(file);
	CU_ASSERT_EQUAL(weir_outcomes_start(&first, base, path, getegid(), take, NULL, &err),
			-EEXIST);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "something else"));
	unlink(address);
	CU_ASSERT_EQUAL(weir_outcomes_start(&first, base, path, getegid(), take, NULL, &err), 0);
	CU_ASSERT_EQUAL(weir_outcomes_start(&second, base, path, getegid(), take, NULL, &err), 0);
	weir_outcomes_stop(first);
	weir_outcomes_stop(second);
	memset(too_long, 'x', sizeof(too_long) - 1);
	too_long[sizeof(too_long) - 1] = '\0';
	CU_ASSERT_EQUAL(weir_outcomes_start(&first, base, too_long, getegid(), take, NULL, &err),
			-ENAMETOOLONG);
	weir_outcomes_stop(NULL);
	event_base_free(base);
	CU_ASSERT_EQUAL(rmdir(folder), 0);
}

WEIR_TESTS("outcomes", TEST(lines_are_parsed), TEST(everything_else_is_malformed),
	   TEST(random_bytes_do_no_harm), TEST(datagrams_arrive_and_bad_ones_are_counted),
	   TEST(only_a_socket_is_replaced))
