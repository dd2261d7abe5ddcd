// SPDX-License-Identifier: GPL-2.0
#include "controller/pins.h"

#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "weir/abi.h"

#define PATH_SIZE 320

static bool is_empty_folder(const char *path)
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	bool empty = folder;

	while (folder && (entry = readdir(folder)))
		empty &= !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
	if (folder)
		closedir(folder);
	return empty;
}

static void parent_of(const char *pins, char *parent)
{
	char copy[PATH_SIZE];

	snprintf(copy, sizeof(copy), "%s", pins);
	snprintf(parent, PATH_SIZE, "%s", dirname(copy));
}

int weir_pins_mount(const char *pins, bool *mounted, struct weir_error *err)
{
	char parent[PATH_SIZE];
	struct statfs fs;

	parent_of(pins, parent);
	*mounted = false;
	if (statfs(parent, &fs))
		return weir_error_set(err, -errno, "pins folder '%s': %s: %s", pins, parent,
				      strerror(errno));
	if (fs.f_type == BPF_FS_MAGIC)
		return 0;
	if (!is_empty_folder(parent))
		return weir_error_set(err, -ENOTDIR,
				      "pins folder '%s': %s is not on a bpffs and not empty: "
				      "`mount -t bpf bpf FOLDER` on an empty one and pin there",
				      pins, parent);
	if (mount("bpf", parent, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700"))
		return weir_error_set(err, -errno, "can't mount a bpffs on %s: %s", parent,
				      strerror(errno));
	mount(NULL, parent, NULL, MS_PRIVATE, NULL);
	*mounted = true;
	return 0;
}

void weir_pins_unmount(const char *pins)
{
	char parent[PATH_SIZE];

	parent_of(pins, parent);
	umount2(parent, MNT_DETACH);
}

int weir_pins_look(const char *pins, struct weir_error *err)
{
	char path[PATH_SIZE];
	struct stat st;

	snprintf(path, sizeof(path), "%s/weir_board", pins);
	if (!stat(path, &st))
		return 1;
	if (stat(pins, &st))
		return errno == ENOENT ? 0
				       : weir_error_set(err, -errno, "pins folder '%s': %s", pins,
							strerror(errno));
	if (is_empty_folder(pins))
		return 0;
	return weir_error_set(err, -EEXIST,
			      "pins folder '%s' holds things that are not weir's: choose another "
			      "folder, or empty it (`weir stop --detach` takes away what is left "
			      "of an old weir)",
			      pins);
}

/* Whether the open folder is what the path leads to, not one that was renamed or removed. */
static bool is_still(int fd, const char *folder)
{
	struct stat held, named;

	return !fstat(fd, &held) && !stat(folder, &named) && held.st_dev == named.st_dev &&
	       held.st_ino == named.st_ino;
}

int weir_pins_lock(const char *folder, struct weir_error *err)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int code;

	if (fd < 0)
		return weir_error_set(err, -errno, "can't open %s: %s", folder, strerror(errno));
	if (!flock(fd, LOCK_EX | LOCK_NB)) {
		if (is_still(fd, folder))
			return fd;
		close(fd);
		return weir_error_set(err, -EBUSY,
				      "another weir took %s away meanwhile: try again", folder);
	}
	code = errno == EWOULDBLOCK ? -EBUSY : -errno;
	close(fd);
	if (code != -EBUSY)
		return weir_error_set(err, code, "can't lock %s: %s", folder, strerror(-code));
	return weir_error_set(err, code,
			      "another weir controller holds %s: stop it first (`weir stop`), or "
			      "give this one its own folder of pins",
			      folder);
}

int weir_pins_switch(const char *pins, struct weir_switch *found, struct weir_error *err)
{
	struct bpf_map_info info = { 0 };
	uint32_t size = sizeof(info), zero = 0;
	char path[PATH_SIZE];
	void *value = NULL;
	int fd, code = 0;

	snprintf(path, sizeof(path), "%s/weir_board", pins);
	fd = bpf_obj_get(path);
	if (fd < 0)
		return weir_error_set(err, -errno, "can't open %s: %s", path, strerror(errno));
	if (!bpf_obj_get_info_by_fd(fd, &info, &size) && info.key_size == sizeof(zero) &&
	    info.value_size >= sizeof(*found))
		value = malloc(info.value_size);
	if (!value || bpf_map_lookup_elem(fd, &zero, value))
		code = weir_error_set(err, -EPROTO, "%s is not a map that weir made", path);
	else
		memcpy(found, value, sizeof(*found));
	if (!code && found->abi_version != WEIR_ABI_VERSION)
		code = weir_error_set(err, -EPROTO,
				      "the pins in %s are of ABI version %u, this weir is of %u: "
				      "run `weir stop --detach` with the weir that made them (its "
				      "state will be lost), then start this one",
				      pins, found->abi_version, WEIR_ABI_VERSION);
	free(value);
	close(fd);
	return code;
}

void weir_pins_new_path(const char *pins, char *path, size_t size)
{
	snprintf(path, size, "%s-new", pins);
}

int weir_pins_replace(int fd, const char *path)
{
	char next[PATH_SIZE];

	snprintf(next, sizeof(next), "%s_next", path);
	unlink(next);
	if (bpf_obj_pin(fd, next))
		return -errno;
	return rename(next, path) ? -errno : 0;
}

static bool is_ours(const char *name)
{
	return !strncmp(name, "weir_", 5);
}

static bool holds_ours(const char *path)
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	bool found = false;

	while (folder && (entry = readdir(folder)))
		found |= is_ours(entry->d_name);
	if (folder)
		closedir(folder);
	return found;
}

void weir_pins_empty(const char *folder)
{
	DIR *entries = opendir(folder);
	struct dirent *entry;

	while (entries && (entry = readdir(entries))) {
		if (is_ours(entry->d_name))
			unlinkat(dirfd(entries), entry->d_name, 0);
	}
	if (entries)
		closedir(entries);
}

int weir_pins_clear(const char *folder)
{
	weir_pins_empty(folder);
	return rmdir(folder) ? -errno : 0;
}

/* 1: it held something of ours, which is gone; 0: there is none. */
static int remove_remains(const char *folder, struct weir_error *err)
{
	int lock, code;

	if (!holds_ours(folder) && !is_empty_folder(folder))
		return 0;
	lock = weir_pins_lock(folder, err);
	if (lock < 0)
		return lock;
	code = weir_pins_clear(folder);
	close(lock);
	return code ? weir_error_set(err, code, "can't remove %s: %s", folder, strerror(-code)) : 1;
}

int weir_pins_remove(const char *pins)
{
	char folder[PATH_SIZE];
	struct weir_error err;
	int code;

	weir_pins_new_path(pins, folder, sizeof(folder));
	code = remove_remains(folder, &err);
	/* A start that began before there were pins: it will find that it can't have them. */
	if (code == -EBUSY)
		return code;
	if (rename(pins, folder))
		return -errno;
	code = weir_pins_clear(folder);
	/* Somebody's own things are in it: they stay where they were put. */
	if (code && !holds_ours(folder))
		rename(folder, pins);
	return code;
}

int weir_pins_remove_remains(const char *pins, struct weir_error *err)
{
	char folder[PATH_SIZE];
	int fresh, old;

	weir_pins_new_path(pins, folder, sizeof(folder));
	fresh = remove_remains(folder, err);
	old = fresh < 0 ? fresh : remove_remains(pins, err);
	return old ? old : fresh;
}
