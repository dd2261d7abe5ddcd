// SPDX-License-Identifier: GPL-2.0
#include "controller/own.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const uint32_t value_sizes[WEIR_OWN_MAPS] = {
	[WEIR_OWN_LEDGER] = sizeof(struct weir_set),
	[WEIR_OWN_KEYS] = sizeof(struct weir_own_record),
	[WEIR_OWN_RINGS] = sizeof(uint64_t),
};

uint64_t weir_own_bytes(uint64_t sets, uint64_t capacity)
{
	return sets * (sizeof(struct weir_set) +
		       WEIR_WAYS * (sizeof(struct weir_own_record) + capacity * sizeof(uint64_t)));
}

static uint64_t entries_of(const struct weir_limit *limit, int map)
{
	uint64_t places = (uint64_t)limit->own_sets * WEIR_WAYS;

	switch (map) {
	case WEIR_OWN_LEDGER:
		return limit->own_sets;
	case WEIR_OWN_KEYS:
		return places;
	default:
		return limit->kind == WEIR_KIND_SLIDING ? places * limit->sliding.capacity : 0;
	}
}

/* ---- what there is ---- */

/* The id of the map in a slot, 0 for none. */
static uint32_t id_at(const struct weir_dataplane *dataplane, int map, uint32_t slot)
{
	uint32_t id = 0;

	return bpf_map_lookup_elem(dataplane->own_fds[map], &slot, &id) ? 0 : id;
}

int weir_own_open(struct weir_own *own, const struct weir_dataplane *dataplane,
		  const struct weir_compiled_before *now, struct weir_error *err)
{
	uint32_t id, zero = 0;

	*own = (struct weir_own){ .dataplane = dataplane };
	for (int map = 0; map < WEIR_OWN_MAPS; map++) {
		if (bpf_map_lookup_elem(dataplane->own_fds[map], &zero, &id) && errno != ENOENT)
			return weir_error_set(err, -errno, "can't look at the limits' own maps: %s",
					      strerror(errno));
		for (uint32_t slot = 0; slot < WEIR_LIMITS_MAX; slot++)
			own->present[slot][map] = id_at(dataplane, map, slot);
	}
	weir_own_release(own, now);
	return 0;
}

/* ---- making and taking away ---- */

static int make(struct weir_own *own, uint32_t slot, int map, uint32_t entries)
{
	static const char *const names[] = { "weir_own_ledger", "weir_own_keys", "weir_own_rings" };
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE | BPF_F_INNER_MAP);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, names[map], sizeof(uint32_t), value_sizes[map],
				entries, &options);
	int code = 0;

	if (fd < 0)
		return -errno;
	if (bpf_map_update_elem(own->dataplane->own_fds[map], &slot, &fd, BPF_ANY))
		code = -errno;
	else
		own->present[slot][map] = true;
	close(fd);
	return code;
}

int weir_own_provide(struct weir_own *own, const struct weir_compiled *compiled,
		     const struct weir_compiled_before *now, struct weir_error *err)
{
	for (uint32_t i = 0; i < compiled->head.limits; i++) {
		const struct weir_limit *limit = &compiled->limits[i];
		int code = 0;

		if (!limit->own_sets)
			continue;
		for (int map = 0; map < WEIR_OWN_MAPS && !code; map++) {
			uint64_t entries = entries_of(limit, map);

			if (entries && !own->present[limit->slot][map])
				code = make(own, limit->slot, map, (uint32_t)entries);
		}
		if (!code)
			continue;
		weir_own_release(own, now);
		return weir_error_set(
			err, code,
			"limit %s: can't make its own ledger of %u keys (%.1f MB): %s: lower its "
			"keys%s",
			compiled->labels[i].name, limit->own_sets * WEIR_WAYS,
			(double)weir_own_bytes(limit->own_sets,
					       limit->kind == WEIR_KIND_SLIDING
						       ? limit->sliding.capacity
						       : 0) / 1e6,
			strerror(-code), limit->kind == WEIR_KIND_SLIDING ? " or its quota" : "");
	}
	return 0;
}

void weir_own_release(struct weir_own *own, const struct weir_compiled_before *now)
{
	bool kept[WEIR_LIMITS_MAX] = { 0 };

	for (size_t i = 0; i < now->count; i++)
		kept[now->limits[i].slot % WEIR_LIMITS_MAX] = now->limits[i].own_sets;
	for (uint32_t slot = 0; slot < WEIR_LIMITS_MAX; slot++) {
		for (int map = 0; map < WEIR_OWN_MAPS && !kept[slot]; map++) {
			if (own->present[slot][map] &&
			    !bpf_map_delete_elem(own->dataplane->own_fds[map], &slot))
				own->present[slot][map] = false;
		}
	}
}

/* ---- looking ---- */

static int map_one(struct weir_own_view *view, const struct weir_dataplane *dataplane, int map,
		   uint32_t slot, const void **address, uint32_t *entries)
{
	uint32_t id = id_at(dataplane, map, slot), size = sizeof(struct bpf_map_info);
	struct bpf_map_info info = { 0 };
	void *mapped;
	int fd, code = 0;

	if (!id)
		return -ENOENT;
	fd = bpf_map_get_fd_by_id(id);
	if (fd < 0)
		return -errno;
	if (bpf_obj_get_info_by_fd(fd, &info, &size)) {
		code = -errno;
		goto out;
	}
	mapped = mmap(NULL, (size_t)value_sizes[map] * info.max_entries, PROT_READ, MAP_SHARED, fd,
		      0);
	if (mapped == MAP_FAILED) {
		code = -errno;
		goto out;
	}
	view->bytes[map] = (size_t)value_sizes[map] * info.max_entries;
	*address = mapped;
	*entries = info.max_entries;
	if (map == WEIR_OWN_LEDGER)
		view->id = id;
out:
	close(fd);
	return code;
}

int weir_own_view_open(struct weir_own_view *view, const struct weir_dataplane *dataplane,
		       uint32_t slot)
{
	const void *ledger = NULL, *keys = NULL, *rings = NULL;
	uint32_t places = 0, stamps = 0;
	int code;

	*view = (struct weir_own_view){ 0 };
	code = map_one(view, dataplane, WEIR_OWN_LEDGER, slot, &ledger, &view->sets);
	view->ledger = ledger;
	if (!code)
		code = map_one(view, dataplane, WEIR_OWN_KEYS, slot, &keys, &places);
	view->keys = keys;
	if (!code)
		code = map_one(view, dataplane, WEIR_OWN_RINGS, slot, &rings, &stamps);
	view->rings = rings;
	if (code == -ENOENT && view->keys)
		code = 0;
	if (!code && (!places || places != view->sets * WEIR_WAYS || stamps % places))
		code = -EAGAIN;
	if (code)
		weir_own_view_close(view);
	else
		view->capacity = stamps / places;
	return code;
}

void weir_own_view_close(struct weir_own_view *view)
{
	const void *const addresses[] = { view->ledger, view->keys, view->rings };

	for (int map = 0; map < WEIR_OWN_MAPS; map++) {
		if (addresses[map])
			munmap((void *)addresses[map], view->bytes[map]);
	}
	*view = (struct weir_own_view){ 0 };
}
