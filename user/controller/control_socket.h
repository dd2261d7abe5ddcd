/* SPDX-License-Identifier: GPL-2.0 */
/* The listening end of the control socket: where it is, who may come in. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "controller/error.h"

/*
 * Binds and listens, mode 0660, group `group`; makes the path's last folder (0755) if it is
 * missing. A socket that nobody listens on is replaced. The descriptor, non-blocking and
 * close-on-exec, or -EADDRINUSE (it answers), -EEXIST (no socket), -ENAMETOOLONG, -errno.
 */
int weir_control_listen(const char *path, gid_t group, struct weir_error *err);

/* Takes away a socket that nobody listens on. -EADDRINUSE: somebody does; -EEXIST: no socket. */
int weir_control_remove_dead(const char *path, struct weir_error *err);

/* Whether the peer is root, our own user, or has `group` among its groups, by the kernel's
 * record of its credentials. Asks no name service, so it can't block. */
bool weir_control_peer_allowed(int fd, gid_t group);

/* The id of a group by its name; false, and our own group (root's 0), where the system has none. */
bool weir_control_group(const char *name, gid_t *group);
