// SPDX-License-Identifier: GPL-2.0
#include "controller/control_socket.h"

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 128

bool weir_control_group(const char *name, gid_t *group)
{
	const struct group *found = getgrnam(name);

	*group = found ? found->gr_gid : getegid();
	return found;
}

static bool has_group(int fd, gid_t group)
{
	gid_t few[64], *groups = few;
	socklen_t size = sizeof(few);
	bool found = false;
	int rc = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, few, &size);

	if (rc && errno == ERANGE) {
		groups = malloc(size);
		rc = groups ? getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) : -1;
	}
	for (size_t i = 0; !rc && i < size / sizeof(*groups); i++)
		found |= groups[i] == group;
	if (groups != few)
		free(groups);
	return found;
}

bool weir_control_peer_allowed(int fd, gid_t group)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size))
		return false;
	return !peer.uid || peer.uid == geteuid() || peer.gid == group || has_group(fd, group);
}

/* Connecting doesn't wait: a full queue is a living listener too. */
static int clear(const struct sockaddr_un *address, struct weir_error *err)
{
	struct stat status;
	int fd, rc;

	if (lstat(address->sun_path, &status))
		return errno == ENOENT ? 0
				       : weir_error_set(err, -errno, "socket '%s': %s",
							address->sun_path, strerror(errno));
	if (!S_ISSOCK(status.st_mode))
		return weir_error_set(err, -EEXIST,
				      "socket '%s': there is something else of this name: "
				      "remove it or give another path",
				      address->sun_path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return weir_error_set(err, -errno, "socket '%s': %s", address->sun_path,
				      strerror(errno));
	rc = connect(fd, (const struct sockaddr *)address, sizeof(*address));
	rc = rc ? errno : 0;
	close(fd);
	if (rc != ECONNREFUSED && rc != ENOENT)
		return weir_error_set(err, -EADDRINUSE,
				      "socket '%s': another controller answers there: "
				      "end it with `weir stop`, or give another --socket",
				      address->sun_path);
	unlink(address->sun_path);
	return 0;
}

static int set_address(struct sockaddr_un *address, const char *path, struct weir_error *err)
{
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof(address->sun_path))
		return weir_error_set(err, -ENAMETOOLONG, "socket '%s': at most %zu characters",
				      path, sizeof(address->sun_path) - 1);
	memcpy(address->sun_path, path, strlen(path) + 1);
	return 0;
}

int weir_control_remove_dead(const char *path, struct weir_error *err)
{
	struct sockaddr_un address;
	int rc = set_address(&address, path, err);

	return rc ? rc : clear(&address, err);
}

static void make_folder(const char *path)
{
	char folder[sizeof(((struct sockaddr_un *)0)->sun_path)];
	char *slash;

	memcpy(folder, path, strlen(path) + 1);
	slash = strrchr(folder, '/');
	if (slash && slash != folder) {
		*slash = '\0';
		/* If that fails, bind says what is wrong. */
		(void)!mkdir(folder, 0755);
	}
}

int weir_control_listen(const char *path, gid_t group, struct weir_error *err)
{
	struct sockaddr_un address;
	mode_t old;
	int fd, rc;

	rc = set_address(&address, path, err);
	if (rc)
		return rc;
	make_folder(path);
	rc = clear(&address, err);
	if (rc)
		return rc;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return weir_error_set(err, -errno, "socket '%s': %s", path, strerror(errno));
	/* 0660 by its making, and no links are followed: who may write to the folder can't have
	 * another file given away. Nobody gets in before listen. */
	old = umask(0117);
	rc = bind(fd, (struct sockaddr *)&address, sizeof(address));
	umask(old);
	if (rc || lchown(path, (uid_t)-1, group) || listen(fd, BACKLOG)) {
		int bound = !rc;

		rc = -errno;
		close(fd);
		if (bound)
			unlink(path);
		return weir_error_set(err, rc, "socket '%s': %s%s", path, strerror(-rc),
				      rc == -EPERM ? ": the controller must be in control.group "
						     "(SupplementaryGroups= in its unit)"
						   : "");
	}
	return fd;
}
