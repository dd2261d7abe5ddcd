// SPDX-License-Identifier: GPL-2.0
/*
 * A file that is replaced is the new one or the old one, whichever step fails. The linker takes the
 * calls from here.
 */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "controller/file.h"

#define OLD "old\n"
#define NEW "new and longer\n"

static char folder[] = "/tmp/weir-file-XXXXXX", path[64], temporary[80];

enum call { NONE, WRITE, FSYNC, FSYNC_FOLDER, RENAME };

static enum call failing;
static size_t write_most; /* bytes that one write takes, 0: all */

static bool fails(enum call call)
{
	errno = EIO;
	return failing == call;
}

ssize_t write(int fd, const void *bytes, size_t size)
{
	if (fails(WRITE))
		return -1;
	return syscall(SYS_write, fd, bytes, write_most && write_most < size ? write_most : size);
}

int fsync(int fd)
{
	struct stat st;

	return fstat(fd, &st) || fails(S_ISDIR(st.st_mode) ? FSYNC_FOLDER : FSYNC) ? -1 : 0;
}

int rename(const char *from, const char *to)
{
	return fails(RENAME) ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

static void begin(void)
{
	strcpy(folder + strlen(folder) - 6, "XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/f", folder);
	snprintf(temporary, sizeof(temporary), "%s.new", path);
	failing = NONE;
	write_most = 0;
}

static void end(void)
{
	failing = NONE;
	unlink(path);
	CU_ASSERT_EQUAL(rmdir(folder), 0);
}

static bool holds(const char *text)
{
	FILE *in = fopen(path, "r");
	char found[64] = "";
	size_t size = in ? fread(found, 1, sizeof(found) - 1, in) : 0;

	if (in)
		fclose(in);
	return in && size == strlen(text) && !memcmp(found, text, size);
}

static void is_written_whole(void)
{
	struct stat st;

	begin();
	/* As a file system does that is nearly full, or a signal makes it do. */
	write_most = 3;
	CU_ASSERT_EQUAL(weir_file_replace(path, NEW), 0);
	CU_ASSERT_TRUE(holds(NEW));
	CU_ASSERT_EQUAL(weir_file_replace(path, ""), 0);
	CU_ASSERT_TRUE(holds(""));
	CU_ASSERT_EQUAL(stat(path, &st), 0);
	CU_ASSERT_EQUAL(st.st_mode & 0777, 0600);
	end();
}

static void stays_as_it_was_where_a_step_fails(void)
{
	static const enum call calls[] = { WRITE, FSYNC, RENAME };

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		begin();
		CU_ASSERT_EQUAL(weir_file_replace(path, OLD), 0);
		failing = calls[i];
		CU_ASSERT_EQUAL(weir_file_replace(path, NEW), -EIO);
		CU_ASSERT_TRUE(holds(OLD));
		CU_ASSERT(access(temporary, F_OK) < 0);
		end();
	}
}

/* It is renamed by then: there is no way back, and no reason not to act on it. */
static void a_folder_that_is_not_synced_is_no_error(void)
{
	begin();
	failing = FSYNC_FOLDER;
	CU_ASSERT_EQUAL(weir_file_replace(path, NEW), 0);
	CU_ASSERT_TRUE(holds(NEW));
	/* But what is to be gone must be gone after a power cut too. */
	CU_ASSERT_EQUAL(weir_file_remove(path), -EIO);
	CU_ASSERT(access(path, F_OK) < 0);
	end();
}

static void follows_nobodys_link(void)
{
	char target[80];

	begin();
	snprintf(target, sizeof(target), "%s/target", folder);
	CU_ASSERT_EQUAL(symlink(target, temporary), 0);
	CU_ASSERT_EQUAL(weir_file_replace(path, NEW), 0);
	CU_ASSERT_TRUE(holds(NEW));
	CU_ASSERT(access(target, F_OK) < 0);
	end();
}

static void a_place_that_cannot_be_is_refused(void)
{
	char inside[80], far[5000];

	begin();
	CU_ASSERT_EQUAL(weir_file_remove(path), 0);
	CU_ASSERT_EQUAL(weir_file_replace(path, OLD), 0);
	snprintf(inside, sizeof(inside), "%s/sub/g", path);
	CU_ASSERT_EQUAL(weir_file_replace(inside, NEW), -ENOTDIR);
	snprintf(inside, sizeof(inside), "%s/g", path);
	CU_ASSERT_EQUAL(weir_file_replace(inside, NEW), -ENOTDIR);
	CU_ASSERT_EQUAL(weir_file_remove(inside), -ENOTDIR);
	memset(far, 'a', sizeof(far));
	far[sizeof(far) - 1] = '\0';
	CU_ASSERT_EQUAL(weir_file_replace(far, NEW), -ENAMETOOLONG);
	CU_ASSERT_TRUE(holds(OLD));
	CU_ASSERT_EQUAL(weir_file_remove(path), 0);
	CU_ASSERT(access(path, F_OK) < 0);
	end();
}

/* As where a volume is mounted for it: weir must not put a file in the link's place. */
static void what_a_link_leads_to_is_replaced(void)
{
	char target[80], second[80], left[96];
	struct stat st;

	begin();
	snprintf(target, sizeof(target), "%s/t", folder);
	snprintf(second, sizeof(second), "%s/s", folder);
	snprintf(left, sizeof(left), "%s.new", target);
	CU_ASSERT_EQUAL(symlink(second, path), 0);
	CU_ASSERT_EQUAL(symlink("t", second), 0);
	/* The first time there is nothing. */
	CU_ASSERT_EQUAL(weir_file_replace(path, OLD), 0);
	CU_ASSERT_EQUAL(weir_file_replace(path, NEW), 0);
	CU_ASSERT_TRUE(holds(NEW));
	CU_ASSERT_EQUAL(lstat(path, &st), 0);
	CU_ASSERT_TRUE(S_ISLNK(st.st_mode));
	CU_ASSERT_EQUAL(lstat(second, &st), 0);
	CU_ASSERT_TRUE(S_ISLNK(st.st_mode));
	CU_ASSERT_EQUAL(lstat(target, &st), 0);
	CU_ASSERT_TRUE(S_ISREG(st.st_mode));
	CU_ASSERT_EQUAL(rename(target, left), 0);
	weir_file_sweep(path);
	CU_ASSERT(access(left, F_OK) < 0);
	CU_ASSERT_EQUAL(symlink("s", target), 0);
	CU_ASSERT_EQUAL(weir_file_replace(path, NEW), -ELOOP);
	unlink(target);
	unlink(second);
	end();
}

WEIR_TESTS("file", TEST(is_written_whole), TEST(what_a_link_leads_to_is_replaced),
	   TEST(stays_as_it_was_where_a_step_fails),
	   TEST(a_folder_that_is_not_synced_is_no_error), TEST(follows_nobodys_link),
	   TEST(a_place_that_cannot_be_is_refused))
