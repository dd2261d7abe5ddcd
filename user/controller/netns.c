// SPDX-License-Identifier: GPL-2.0
#include "controller/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Files that are namespaces: those with names, and those of processes. */
static const char *const places[] = { "/run/netns/*", "/proc/[0-9]*/ns/net" };

struct walk {
	int own_fd;
	struct stat *seen;
	size_t count;
};

/* Whether it was seen before; it is from now on. */
static bool is_seen(struct walk *walk, const struct stat *it)
{
	struct stat *more;

	for (size_t i = 0; i < walk->count; i++) {
		if (walk->seen[i].st_ino == it->st_ino && walk->seen[i].st_dev == it->st_dev)
			return true;
	}
	more = realloc(walk->seen, (walk->count + 1) * sizeof(*more));
	if (!more)
		return false; /* seen twice, then */
	walk->seen = more;
	walk->seen[walk->count++] = *it;
	return false;
}

static int visit_one(struct walk *walk, const char *path, void (*visit)(void *context),
		     void *context)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), code = 0;
	struct stat it;

	/* It has gone, or is not for us. */
	if (fd < 0)
		return errno == EMFILE || errno == ENFILE ? -errno : 0;
	if (!fstat(fd, &it) && !is_seen(walk, &it) && !setns(fd, CLONE_NEWNET)) {
		visit(context);
		code = setns(walk->own_fd, CLONE_NEWNET) ? -errno : 0;
	}
	close(fd);
	return code;
}

int weir_netns_each(void (*visit)(void *context), void *context)
{
	struct walk walk = { .own_fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC) };
	struct stat own;
	int code = 0;

	if (walk.own_fd < 0)
		return -errno;
	visit(context);
	if (!fstat(walk.own_fd, &own))
		is_seen(&walk, &own);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !code; i++) {
		glob_t found;

		if (glob(places[i], GLOB_NOSORT, NULL, &found))
			continue;
		for (size_t j = 0; j < found.gl_pathc && !code; j++)
			code = visit_one(&walk, found.gl_pathv[j], visit, context);
		globfree(&found);
	}
	free(walk.seen);
	close(walk.own_fd);
	return code;
}
