// SPDX-License-Identifier: GPL-2.0
#include "controller/load.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "controller/dataplane.h"
#include "controller/pins.h"

/* Before 5.11 maps count as locked memory. Where it may not be raised the load will tell. */
static void raise_memlock(void)
{
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };

	setrlimit(RLIMIT_MEMLOCK, &all);
}

/* What of the programs' needs came last, and with which kernel. */
static const struct {
	enum bpf_func_id helper;
	const char *name, *since;
} needs[] = {
	{ BPF_FUNC_loop, "bpf_loop", "5.17" },
	{ BPF_FUNC_xdp_get_buff_len, "bpf_xdp_get_buff_len", "5.18" },
};

/* A probe that isn't allowed finds nothing missing: making the maps will tell. */
static int check_kernel(struct weir_error *err)
{
	struct utsname kernel;

	for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
		if (libbpf_probe_bpf_helper(BPF_PROG_TYPE_XDP, needs[i].helper, NULL))
			continue;
		uname(&kernel);
		return weir_error_set(err, -ENOSYS,
				      "kernel %s has no %s for XDP (Linux has it since %s): weir "
				      "needs Linux " WEIR_KERNEL_MIN " or later",
				      kernel.release, needs[i].name, needs[i].since);
	}
	return 0;
}

/* ---- adoption ---- */

static int layout_differs(const char *pins, const char *name, struct weir_error *err)
{
	return weir_error_set(
		err, -EPROTO,
		"pinned map %s/%s has another size or type than this weir needs, or "
		"is missing: run `weir stop --detach` with the weir that made it (its "
		"state will be lost), then start again",
		pins, name);
}

static int adopt_map(const char *pins, struct bpf_map *map, struct weir_error *err)
{
	const char *name = weir_map_pin_name(map);
	char path[WEIR_PINS_SIZE + 64];
	struct bpf_map_info info = { 0 };
	uint32_t size = sizeof(info);
	int fd, code;

	snprintf(path, sizeof(path), "%s/%s", pins, name);
	fd = bpf_obj_get(path);
	if (fd < 0)
		return errno == ENOENT ? layout_differs(pins, name, err)
				       : weir_error_set(err, -errno, "can't open %s: %s", path,
							strerror(errno));
	code = bpf_obj_get_info_by_fd(fd, &info, &size) ? -errno : 0;
	if (code)
		weir_error_set(err, code, "can't look at %s: %s", path, strerror(-code));
	else if (info.type != bpf_map__type(map) || info.key_size != bpf_map__key_size(map) ||
		 info.value_size != bpf_map__value_size(map) ||
		 info.max_entries != bpf_map__max_entries(map) ||
		 info.map_flags != bpf_map__map_flags(map))
		code = layout_differs(pins, name, err);
	else
		code = bpf_map__reuse_fd(map, fd);
	close(fd);
	return code;
}

static int adopt(struct weir_load *load, uint32_t keys, struct weir_error *note,
		 struct weir_error *err)
{
	struct weir_shape fresh;
	struct bpf_map *map;
	struct weir_switch found;
	int code = weir_pins_switch(load->pins, &found, err);

	if (code)
		return code;
	code = weir_shape_draw(&fresh, keys);
	if (code)
		return weir_error_set(err, code, "can't draw the shape of a ledger: %s",
				      strerror(-code));
	load->shape = found.shape;
	if (fresh.sets != found.shape.sets)
		weir_error_set(note, 0,
			       "ledger.keys is %u, but the ledger in use has %u places and keeps "
			       "them: `weir stop --detach`, then a start, makes it anew",
			       fresh.sets * WEIR_WAYS, found.shape.sets * WEIR_WAYS);
	if (fresh.cpus != found.shape.cpus)
		return weir_error_set(err, -EPROTO,
				      "the pins in %s are for %u CPUs, this machine has %u: run "
				      "`weir stop --detach`, then start again",
				      load->pins, found.shape.cpus, fresh.cpus);
	code = weir_dataplane_prepare(load->skeleton->obj, &load->shape);
	if (code)
		return weir_error_set(err, code, "can't size the maps: %s", strerror(-code));
	bpf_object__for_each_map(map, load->skeleton->obj)
	{
		code = weir_map_pin_name(map) ? adopt_map(load->pins, map, err) : 0;
		if (code)
			return code;
	}
	return 0;
}

/* ---- a new set ---- */

static int make_new(struct weir_load *load, uint32_t keys, struct weir_error *err)
{
	int code = weir_shape_draw(&load->shape, keys);

	if (!code)
		code = weir_dataplane_prepare(load->skeleton->obj, &load->shape);
	return code ? weir_error_set(err, code, "can't size the maps: %s", strerror(-code)) : 0;
}

static int pin_new(struct weir_load *load, struct weir_error *err)
{
	char folder[WEIR_PINS_SIZE + 8], path[WEIR_PINS_SIZE + 64];
	struct bpf_map *map;

	weir_pins_new_path(load->pins, folder, sizeof(folder));
	bpf_object__for_each_map(map, load->skeleton->obj)
	{
		const char *name = weir_map_pin_name(map);

		if (!name)
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, name);
		if (bpf_obj_pin(bpf_map__fd(map), path))
			return weir_error_set(err, -errno, "can't pin %s: %s", path,
					      strerror(errno));
	}
	return 0;
}

int weir_load_publish(struct weir_load *load, struct weir_error *err)
{
	char folder[WEIR_PINS_SIZE + 8];
	int code;

	if (load->adopted || load->published)
		return 0;
	code = pin_new(load, err);
	if (code)
		return code;
	weir_pins_new_path(load->pins, folder, sizeof(folder));
	if (rename(folder, load->pins))
		return weir_error_set(err, -errno, "can't rename %s to %s: %s", folder, load->pins,
				      strerror(errno));
	load->published = true;
	return 0;
}

/* ---- both ---- */

static int load_maps(struct weir_load *load, struct weir_error *err)
{
	struct bpf_program *program;
	int code;

	bpf_object__for_each_program(program, load->skeleton->obj)
		bpf_program__set_autoload(program, false);
	weir_kernel_words_clear();
	code = weir_bpf__load(load->skeleton);
	if (!code)
		return 0;
	if (code == -ENOMEM)
		return weir_error_set(err, code,
				      "no memory for a ledger of %u places (%llu MB): lower "
				      "ledger.keys",
				      load->shape.sets * WEIR_WAYS,
				      (unsigned long long)weir_shape_bytes(&load->shape) >> 20);
	if (code == -EPERM)
		return weir_error_set(err, code,
				      "the kernel lets us make no maps: weir needs root, or "
				      "CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON");
	return weir_error_set(err, code, "can't make weir's maps: %s (%s)", strerror(-code),
			      weir_kernel_words());
}

/* The types of our object as the kernel has them, or NULL. */
static struct btf *loaded_types(const struct weir_load *load)
{
	struct bpf_btf_info info = { 0 };
	uint32_t size = sizeof(info);
	int fd = bpf_object__btf_fd(load->skeleton->obj);
	struct btf *types = NULL;
	void *bytes;

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size))
		return NULL;
	bytes = malloc(info.btf_size);
	info = (struct bpf_btf_info){ .btf = (uintptr_t)bytes, .btf_size = info.btf_size };
	size = sizeof(info);
	if (bytes && !bpf_obj_get_info_by_fd(fd, &info, &size))
		types = btf__new(bytes, info.btf_size);
	free(bytes);
	return types;
}

/*
 * libbpf takes a probe of the kernel that failed, for want of memory too, for a kernel that lacks
 * the feature, and goes on with poorer types. Without global functions the verifier walks each
 * function anew wherever it is called: that takes minutes, and ends in a refusal.
 */
static int check_types(const struct weir_load *load, struct weir_error *err)
{
	struct btf *types = loaded_types(load);
	bool global = false;

	for (uint32_t id = 1; types && id < btf__type_cnt(types); id++) {
		const struct btf_type *type = btf__type_by_id(types, id);

		global |= btf_is_func(type) && btf_vlen(type) == BTF_FUNC_GLOBAL;
	}
	btf__free(types);
	return global ? 0 : weir_error_set(err, -ENOMEM,
					   "the kernel didn't take the types of weir's programs: "
					   "it may be short of memory; start again");
}

static int take_folder(struct weir_load *load, struct weir_error *err)
{
	char folder[WEIR_PINS_SIZE + 8];
	int code = weir_pins_look(load->pins, err);

	if (code < 0)
		return code;
	load->adopted = code;
	snprintf(folder, sizeof(folder), "%s", load->pins);
	if (!load->adopted) {
		weir_pins_new_path(load->pins, folder, sizeof(folder));
		if (mkdir(folder, 0700) && errno != EEXIST)
			return weir_error_set(err, -errno, "can't make %s: %s", folder,
					      strerror(errno));
	}
	load->lock_fd = weir_pins_lock(folder, err);
	if (load->lock_fd < 0) {
		/* Another's that is starting has something in it, or is about to. */
		if (!load->adopted && load->lock_fd != -EBUSY)
			rmdir(folder);
		return load->lock_fd;
	}
	if (!load->adopted)
		weir_pins_empty(folder);
	return 0;
}

int weir_load_open(struct weir_load *load, const char *pins, uint32_t keys, struct weir_error *note,
		   struct weir_error *err)
{
	int code;

	*load = (struct weir_load){ .lock_fd = -1 };
	note->text[0] = '\0';
	if (strlen(pins) >= sizeof(load->pins))
		return weir_error_set(err, -ENAMETOOLONG, "pins folder '%s': longer than %d bytes",
				      pins, WEIR_PINS_SIZE - 1);
	strcpy(load->pins, pins);
	weir_kernel_words_listen();
	raise_memlock();
	code = check_kernel(err);
	if (!code)
		code = weir_pins_mount(pins, &load->mounted, err);
	if (!code)
		code = take_folder(load, err);
	if (!code) {
		load->skeleton = weir_bpf__open();
		if (!load->skeleton)
			code = weir_error_set(err, -errno, "can't open weir's own programs: %s",
					      strerror(errno));
	}
	if (!code)
		code = load->adopted ? adopt(load, keys, note, err) : make_new(load, keys, err);
	if (!code)
		code = load_maps(load, err);
	if (!code)
		code = check_types(load, err);
	if (code)
		weir_load_close(load, true);
	return code;
}

int weir_load_close(struct weir_load *load, bool undo)
{
	char folder[WEIR_PINS_SIZE + 8];
	int code = 0;

	weir_bpf__destroy(load->skeleton);
	load->skeleton = NULL;
	if (undo && !load->adopted && load->lock_fd >= 0) {
		weir_pins_new_path(load->pins, folder, sizeof(folder));
		if (load->published)
			code = weir_pins_remove(load->pins);
		else
			weir_pins_clear(folder);
	}
	if (load->lock_fd >= 0)
		close(load->lock_fd);
	load->lock_fd = -1;
	if (undo && load->mounted)
		weir_pins_unmount(load->pins);
	return code;
}

struct weir_bpf *weir_load_programs_open(const struct weir_load *load, uint32_t hooks)
{
	struct weir_bpf *programs = weir_bpf__open();
	struct bpf_map *map, *ours;
	int code;

	if (!programs)
		return NULL;
	code = weir_dataplane_prepare(programs->obj, &load->shape);
	bpf_object__for_each_map(map, programs->obj)
	{
		ours = bpf_object__find_map_by_name(load->skeleton->obj, bpf_map__name(map));
		if (!code && weir_map_pin_name(map))
			code = bpf_map__reuse_fd(map, bpf_map__fd(ours));
	}
	bpf_program__set_autoload(programs->progs.weir_xdp, hooks >> WEIR_HOOK_XDP & 1);
	bpf_program__set_autoload(programs->progs.weir_ingress, hooks >> WEIR_HOOK_TC_INGRESS & 1);
	bpf_program__set_autoload(programs->progs.weir_egress, hooks >> WEIR_HOOK_TC_EGRESS & 1);
	if (!code)
		return programs;
	weir_bpf__destroy(programs);
	errno = -code;
	return NULL;
}

int weir_load_programs(struct weir_bpf *programs, struct weir_error *err)
{
	int code;

	weir_kernel_words_clear();
	code = weir_bpf__load(programs);
	if (!code)
		return 0;
	if (code == -EPERM)
		return weir_error_set(err, code,
				      "the kernel lets us load no programs: weir needs root, or "
				      "CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON");
	return weir_error_set(err, code, "the kernel refused weir's programs: %s (%s)",
			      strerror(-code), weir_kernel_words());
}
