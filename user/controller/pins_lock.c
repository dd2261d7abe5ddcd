// SPDX-License-Identifier: GPL-2.0
#include "controller/pins_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether the folder that was locked is still the one of this name: `stop --detach` of another
 * controller may have taken it away in between. */
static bool still_there(int fd, const char *pins)
{
	struct stat locked, named;

	return !fstat(fd, &locked) && !stat(pins, &named) && locked.st_dev == named.st_dev &&
	       locked.st_ino == named.st_ino;
}

static int lock_once(struct weir_pins_lock *lock, const char *pins, struct weir_error *err)
{
	int rc;

	if (!mkdir(pins, 0700))
		lock->made = true;
	else if (errno != EEXIST)
		return weir_error_set(err, -errno,
				      "pins '%s': %s: give a folder on a BPF file system, "
				      "such as /sys/fs/bpf/weir",
				      pins, strerror(errno));
	lock->fd = open(pins, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (lock->fd < 0)
		return errno == ENOENT ? -EAGAIN
				       : weir_error_set(err, -errno, "pins '%s': %s", pins,
							strerror(errno));
	if (flock(lock->fd, LOCK_EX | LOCK_NB)) {
		rc = errno == EWOULDBLOCK ? -EBUSY : -errno;
		close(lock->fd);
		lock->fd = -1;
		return weir_error_set(err, rc,
				      rc == -EBUSY ? "pins '%s': another controller has them: "
						     "end it with `weir stop`, or give other --pins"
						   : "pins '%s': can't be locked",
				      pins);
	}
	if (still_there(lock->fd, pins))
		return 0;
	close(lock->fd);
	lock->fd = -1;
	return -EAGAIN;
}

int weir_pins_lock(struct weir_pins_lock *lock, const char *pins, struct weir_error *err)
{
	int rc = -EAGAIN;

	*lock = (struct weir_pins_lock){ .fd = -1 };
	for (int tries = 0; rc == -EAGAIN && tries < 10; tries++)
		rc = lock_once(lock, pins, err);
	if (rc == -EAGAIN)
		return weir_error_set(err, -EBUSY, "pins '%s': comes and goes: try again", pins);
	return rc;
}

void weir_pins_unlock(struct weir_pins_lock *lock, const char *pins)
{
	if (lock->made)
		rmdir(pins);
	if (lock->fd >= 0)
		close(lock->fd);
	lock->fd = -1;
}
