// SPDX-License-Identifier: GPL-2.0
#include "controller/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_SIZE 4096

/* What is in the folder of a path. */
static int sync_folder(const char *path)
{
	char copy[PATH_SIZE];
	int fd, code;

	snprintf(copy, sizeof(copy), "%s", path);
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	code = fsync(fd) ? -errno : 0;
	close(fd);
	return code;
}

static int write_all(int fd, const char *text)
{
	size_t left = strlen(text);

	while (left) {
		ssize_t wrote = write(fd, text, left);

		if (wrote < 0)
			return -errno;
		text += wrote;
		left -= (size_t)wrote;
	}
	return fsync(fd) ? -errno : 0;
}

/* One name for it: what a save that was killed has left is found, and there is one at most. */
static void temporary_path(const char *path, char temporary[static PATH_SIZE + 8])
{
	snprintf(temporary, PATH_SIZE + 8, "%s.new", path);
}

void weir_file_sweep(const char *path)
{
	char temporary[PATH_SIZE + 8];

	temporary_path(path, temporary);
	unlink(temporary);
}

int weir_file_replace(const char *path, const char *text)
{
	char temporary[PATH_SIZE + 8], copy[PATH_SIZE];
	int fd, code;

	if (strlen(path) >= PATH_SIZE)
		return -ENAMETOOLONG;
	snprintf(copy, sizeof(copy), "%s", path);
	temporary_path(path, temporary);
	if (mkdir(dirname(copy), 0755) && errno != EEXIST)
		return -errno;
	unlink(temporary);
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	code = write_all(fd, text);
	if (close(fd) && !code)
		code = -errno;
	if (!code && rename(temporary, path))
		code = -errno;
	/* Renamed it is saved, even if a power cut might still undo it: no reason not to act. */
	if (code)
		unlink(temporary);
	else
		sync_folder(path);
	return code;
}

int weir_file_remove(const char *path)
{
	if (!unlink(path))
		return sync_folder(path);
	return errno == ENOENT ? 0 : -errno;
}
