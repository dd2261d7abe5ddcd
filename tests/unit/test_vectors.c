// SPDX-License-Identifier: GPL-2.0
/*
 * replay-vectors over our own samples (tests/vectors) and over the shared ones: those of
 * WEIR_VECTORS, else ../shared/vectors, else /work/shared/vectors. Run from the repository root.
 */
#include <ctype.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "random.h"

#define SAMPLES "tests/vectors"
#define LINES 4096

static const char *shared_vectors(void)
{
	const char *named = getenv("WEIR_VECTORS");

	if (named)
		return named;
	if (!access("../shared/vectors", R_OK))
		return "../shared/vectors";
	return access("/work/shared/vectors", R_OK) ? NULL : "/work/shared/vectors";
}

/* Run replay-vectors: its exit code, and all it said (cut to fit) in `said`. */
static int replay(const char *files, char *said, size_t room)
{
	char command[4096];
	size_t length;
	FILE *pipe;

	snprintf(command, sizeof(command), "build/tests/replay-vectors %s 2>&1", files);
	pipe = popen(command, "r");
	if (!pipe)
		return -1;
	length = fread(said, 1, room - 1, pipe);
	said[length] = '\0';
	while (fgetc(pipe) != EOF)
		;
	return WEXITSTATUS(pclose(pipe));
}

static void passes(const char *folder)
{
	char files[1024], said[4096];
	int code;

	snprintf(files, sizeof(files), "%s/[a-z]*.txt", folder);
	code = replay(files, said, sizeof(said));
	printf("  %s: %s", folder, said);
	CU_ASSERT_EQUAL(code, 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, " lines, 0 wrong\n"));
	CU_ASSERT_PTR_NULL(strstr(said, " 0 lines,"));
}

static void samples_pass(void)
{
	passes(SAMPLES);
}

static void shared_pass(void)
{
	if (shared_vectors())
		passes(shared_vectors());
	else
		printf("skip vectors/shared_pass: no shared vectors (WEIR_VECTORS is not set, "
		       "../shared/vectors is not there)\n");
}

static char *lines[LINES];

static size_t read_lines(const char *path)
{
	FILE *file = fopen(path, "r");
	size_t room = 0, count = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	while (count < LINES && getline(&lines[count], &room, file) >= 0) {
		count++;
		room = 0;
	}
	free(lines[count]);
	lines[count] = NULL;
	fclose(file);
	return count;
}

/* Change the first digit of the last answer of line `at`: no tolerance reaches so far. */
static bool change_digit(char *line)
{
	char *answer = strstr(line, " = "), *digit;

	if (!answer)
		return false;
	digit = strrchr(answer, ' ') + 1;
	while (*digit && !isdigit((unsigned char)*digit))
		digit++;
	/* Below the tolerance whatever the digit. */
	if (!*digit || strstr(digit, "e-"))
		return false;
	/* Two off, so that "one nanosecond off" is no excuse. */
	*digit = *digit < '5' ? (char)(*digit + 2) : (char)(*digit - 2);
	return true;
}

static void write_lines(const char *path, size_t count)
{
	FILE *file = fopen(path, "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	for (size_t i = 0; i < count; i++)
		fputs(lines[i], file);
	fclose(file);
}

/* Up to `most` lines of the file, each in turn with one digit of its answer changed. */
static int changed_digits_fail(const char *path, int most, uint64_t *seed)
{
	size_t count = read_lines(path);
	char scratch[] = "/tmp/weir-vectors-XXXXXX", said[4096];
	int fd = mkstemp(scratch), tried = 0;

	CU_ASSERT_FATAL(fd >= 0 && count > 0);
	close(fd);
	for (size_t i = 0; i < count && tried < most; i++) {
		size_t at = most < 100 ? random_below(seed, count) : i;
		char *kept = strdup(lines[at]);

		if (change_digit(lines[at])) {
			write_lines(scratch, count);
			if (replay(scratch, said, sizeof(said)) != 1) {
				printf("  passes, in %s: %s", path, lines[at]);
				CU_FAIL("a changed digit passes");
			}
			/* A 0/1 answer that became a 2 can't be parsed; all else is wrong. */
			CU_ASSERT(strstr(said, ", 1 wrong") || strstr(said, "can't parse"));
			tried++;
		}
		free(lines[at]);
		lines[at] = kept;
	}
	for (size_t i = 0; i < count; i++)
		free(lines[i]);
	memset(lines, 0, sizeof(lines));
	unlink(scratch);
	return tried;
}

static int changed_in(const char *folder, int most)
{
	uint64_t seed = 12;
	char pattern[1024];
	glob_t found = { 0 };
	int tried = 0;

	snprintf(pattern, sizeof(pattern), "%s/[a-z]*.txt", folder);
	CU_ASSERT_EQUAL_FATAL(glob(pattern, 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++)
		tried += changed_digits_fail(found.gl_pathv[i], most, &seed);
	globfree(&found);
	return tried;
}

static void one_digit_changed_fails(void)
{
	CU_ASSERT(changed_in(SAMPLES, 1000) > 60);
	if (shared_vectors())
		CU_ASSERT(changed_in(shared_vectors(), 5) >= 30);
}

static void what_cannot_be_parsed_is_an_error(void)
{
	static const char *const bad[] = {
		"gat 3",
		"gate",
		"gate 3 4",
		"gate x",
		"gate 3000000000",
		"gate 3 = 1",
		"gate  3",
		" gate 3",
		"gate 3\ngate",
		"gate 3\nenter",
		"gate 3\nenter = 2",
		"gate 3\nenter =",
		"gate 3\nheld = 0x0",
		"gate 3\ntake 5 = 1",
		"enter = 1",
		"# comment",
		"gate 3\r",
		"bucket 10 0 0\ntake 0 1,5 = 1",
		"bucket 10 0 0\ntake 1e3 1 = 1",
		"bucket 0x1p3 0 0",
		"bucket 10 0 99999999999999999999",
		"period 1 5 2",
		"period 1 5 1\ntake 1 = under",
		"backoff 1 2 3 4 none 0",
		"window 1 5 0\nadd 0 X",
		"window 1 5 0\neach 0 1 = 0:0:0",
		"shedder 1 1 1 1 0 1 0 0\npass 0 5",
		"breaker 1 1 1 1 1 1 1\npass 0",
		"governor 1 1 9 0.05 0.01 5 0\ntick 0 -1 0 = wait 1",
		"deadline 5 0\nremaining 1 = -4",
	};
	char scratch[] = "/tmp/weir-vectors-XXXXXX", said[4096], where[64];
	int fd = mkstemp(scratch);

	CU_ASSERT_FATAL(fd >= 0);
	close(fd);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		FILE *file = fopen(scratch, "w");
		int line = strchr(bad[i], '\n') ? 2 : 1;

		fprintf(file, "%s\n", bad[i]);
		fclose(file);
		snprintf(where, sizeof(where), "%s:%d: can't parse", scratch, line);
		CU_ASSERT_EQUAL(replay(scratch, said, sizeof(said)), 1);
		if (!strstr(said, where))
			printf("  \"%s\" gave: %s", bad[i], said);
		CU_ASSERT_PTR_NOT_NULL(strstr(said, where));
	}
	unlink(scratch);
	CU_ASSERT_EQUAL(replay("/nonexistent/file", said, sizeof(said)), 1);
	CU_ASSERT_EQUAL(replay("", said, sizeof(said)), 64);
}

WEIR_TESTS("vectors", TEST(samples_pass), TEST(shared_pass), TEST(one_digit_changed_fails),
	   TEST(what_cannot_be_parsed_is_an_error))
