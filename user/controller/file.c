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

int weir_file_open(const char *path, FILE **file, struct weir_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), code = 0;
	struct stat info;

	*file = NULL;
	if (fd < 0)
		return weir_error_set(err, -errno, "%s: can't be opened: %s", path,
				      strerror(errno));
	if (fstat(fd, &info))
		code = weir_error_set(err, -errno, "%s: can't be read: %s", path, strerror(errno));
	else if (!S_ISREG(info.st_mode))
		code = weir_error_set(err, S_ISDIR(info.st_mode) ? -EISDIR : -EINVAL,
				      "%s: is not a regular file", path);
	if (!code)
		*file = fdopen(fd, "r");
	if (*file)
		return 0;
	close(fd);
	return code ? code : weir_error_set(err, -ENOMEM, "%s: out of memory", path);
}

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
