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
#define LINKS_MAX 16

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

/* Where a path leads, over links of the file's own name; nothing need be there. */
static int follow(const char *path, char target[static PATH_SIZE])
{
	char link[PATH_SIZE], folder[PATH_SIZE];
	const char *next = path;

	for (int i = 0; i < LINKS_MAX; i++) {
		ssize_t length;

		if (*next == '/' || i == 0)
			length = snprintf(target, PATH_SIZE, "%s", next);
		else
			length = snprintf(target, PATH_SIZE, "%s/%s", dirname(folder), next);
		if (length >= PATH_SIZE)
			return -ENAMETOOLONG;
		length = readlink(target, link, sizeof(link) - 1);
		if (length < 0)
			return 0;
		link[length] = '\0';
		memcpy(folder, target, PATH_SIZE);
		next = link;
	}
	return -ELOOP;
}

/* One name for it: what a save that was killed has left is found, and there is one at most. */
static int temporary_path(const char *path, char target[static PATH_SIZE],
			  char temporary[static PATH_SIZE + 8])
{
	int code = follow(path, target);

	snprintf(temporary, PATH_SIZE + 8, "%s.new", target);
	return code;
}

void weir_file_sweep(const char *path)
{
	char target[PATH_SIZE], temporary[PATH_SIZE + 8];

	if (!temporary_path(path, target, temporary))
		unlink(temporary);
}

int weir_file_replace(const char *path, const char *text)
{
	char temporary[PATH_SIZE + 8], target[PATH_SIZE], copy[PATH_SIZE];
	int fd, code = temporary_path(path, target, temporary);

	if (code)
		return code;
	memcpy(copy, target, sizeof(copy));
	if (mkdir(dirname(copy), 0755) && errno != EEXIST)
		return -errno;
	unlink(temporary);
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	code = write_all(fd, text);
	if (close(fd) && !code)
		code = -errno;
	if (!code && rename(temporary, target))
		code = -errno;
	/* Renamed it is saved, even if a power cut might still undo it: no reason not to act. */
	if (code)
		unlink(temporary);
	else
		sync_folder(target);
	return code;
}

int weir_file_remove(const char *path)
{
	if (!unlink(path))
		return sync_folder(path);
	return errno == ENOENT ? 0 : -errno;
}
