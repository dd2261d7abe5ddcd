// SPDX-License-Identifier: GPL-2.0
#include "controller/programs.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define KNOWN_MAX 4U /* of this run and of the one before */
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

void weir_programs_recall(const char *pins)
{
	char path[PATH_SIZE];
	int fd;

	pin_path(pins, path);
	fd = bpf_obj_get(path);
	if (fd < 0)
		return;
	weir_program_know(fd);
	close(fd);
}

void weir_programs_forget(void)
{
	while (known.count)
		close(known.fds[--known.count]);
}

void weir_program_pin(int fd, const char *pins)
{
	char path[PATH_SIZE];

	pin_path(pins, path);
	unlink(path);
	(void)!bpf_obj_pin(fd, path);
}
