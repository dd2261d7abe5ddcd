// SPDX-License-Identifier: GPL-2.0
#include "controller/programs.h"
#include "controller/pins.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define KNOWN_MAX 5U /* of this run, of the one before, and what that was about to attach */
#define PATH_SIZE 256

static struct {
	int fds[KNOWN_MAX];
	unsigned int count;
} known;

uint32_t weir_program_id(int fd)
{
	struct bpf_prog_info info = { 0 };
	uint32_t size = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &size) ? 0 : info.id;
}

int weir_program_open(uint32_t id)
{
	int fd = bpf_prog_get_fd_by_id(id), code = fd < 0 ? -errno : 0;

	for (unsigned int i = 0; code == -EPERM && i < known.count; i++) {
		if (weir_program_id(known.fds[i]) == id)
			return fcntl(known.fds[i], F_DUPFD_CLOEXEC, 0);
	}
	return code ? code : fd;
}

void weir_program_know(int fd)
{
	int copy = known.count < KNOWN_MAX ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;

	if (copy >= 0)
		known.fds[known.count++] = copy;
}

static void pin_path(const char *pins, char *path)
{
	snprintf(path, PATH_SIZE, "%s/weir_xdp", pins);
}

/* As weir_pins_replace names it. */
static void next_path(const char *pins, char *path)
{
	snprintf(path, PATH_SIZE, "%s/weir_xdp_next", pins);
}

static void recall(const char *path)
{
	int fd = bpf_obj_get(path);

	if (fd < 0)
		return;
	weir_program_know(fd);
	close(fd);
}

void weir_programs_recall(const char *pins)
{
	char path[PATH_SIZE];

	pin_path(pins, path);
	recall(path);
	next_path(pins, path);
	recall(path);
}

void weir_programs_forget(void)
{
	while (known.count)
		close(known.fds[--known.count]);
}

void weir_program_pin(int fd, const char *pins)
{
	char path[PATH_SIZE], next[PATH_SIZE];
	int there;

	pin_path(pins, path);
	next_path(pins, next);
	there = bpf_obj_get(next);
	if (there >= 0 && weir_program_id(there) == weir_program_id(fd))
		rename(next, path);
	else
		weir_pins_replace(fd, path);
	if (there >= 0)
		close(there);
}

void weir_program_pin_next(int fd, const char *pins)
{
	char next[PATH_SIZE];

	next_path(pins, next);
	unlink(next);
	(void)!bpf_obj_pin(fd, next);
}
