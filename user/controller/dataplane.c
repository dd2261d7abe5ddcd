// SPDX-License-Identifier: GPL-2.0
#include "dataplane.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "controller/cpu.h"

/* 8 bytes of front a place of the ledger, over all CPUs, within these bounds a CPU. */
#define FRONT_SLOTS_MIN 256
#define FRONT_SLOTS_MAX (1 << 16)

static uint32_t power_of_two_up(uint64_t n)
{
	uint32_t power = 1;

	while (power < n && power < 1U << 31)
		power <<= 1;
	return power;
}

static uint32_t front_slots(uint32_t places, uint32_t cpus)
{
	uint64_t slots = (uint64_t)places * 8 / sizeof(struct weir_front_slot) / cpus;

	if (slots < FRONT_SLOTS_MIN)
		slots = FRONT_SLOTS_MIN;
	if (slots > FRONT_SLOTS_MAX)
		slots = FRONT_SLOTS_MAX;
	/* The greatest power of two that is not above it. */
	return power_of_two_up(slots / 2 + 1);
}

int weir_shape_draw(struct weir_shape *shape, uint32_t keys)
{
	int cpus = weir_cpu_numbers("");
	uint32_t places;

	if (cpus < 0)
		return cpus;
	if (keys < WEIR_KEYS_MIN)
		keys = WEIR_KEYS_MIN;
	if (keys > WEIR_KEYS_MAX)
		keys = WEIR_KEYS_MAX;
	places = power_of_two_up(keys);
	*shape = (struct weir_shape){
		.sets = places / WEIR_WAYS,
		.cpus = (uint32_t)cpus,
		.front_slots = front_slots(places, (uint32_t)cpus),
	};
	if (getrandom(&shape->seeds, sizeof(shape->seeds), 0) != sizeof(shape->seeds))
		return -errno;
	for (int i = 0; i < WEIR_KEY_WORDS; i++)
		shape->seeds.word[i] |= 1;
	shape->seeds.second |= 1;
	return 0;
}

uint64_t weir_shape_bytes(const struct weir_shape *shape)
{
	uint64_t places = (uint64_t)shape->sets * WEIR_WAYS;

	return shape->sets * sizeof(struct weir_set) + places * sizeof(struct weir_key_record) +
	       (uint64_t)shape->cpus * shape->front_slots * sizeof(struct weir_front_slot);
}

/* The initial bytes of a constant of the object, or NULL. */
static void *constant(struct bpf_object *object, const char *name, size_t size)
{
	struct btf *btf = bpf_object__btf(object);
	int section = btf ? btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC) : -ENOENT;
	const struct btf_type *type = section > 0 ? btf__type_by_id(btf, (uint32_t)section) : NULL;
	struct bpf_map *map;

	if (!type)
		return NULL;
	for (uint16_t i = 0; i < btf_vlen(type); i++) {
		const struct btf_var_secinfo *info = btf_var_secinfos(type) + i;
		const struct btf_type *variable = btf__type_by_id(btf, info->type);

		if (strcmp(btf__name_by_offset(btf, variable->name_off), name) ||
		    info->size != size)
			continue;
		bpf_object__for_each_map(map, object)
		{
			size_t bytes;
			char *start;

			if (!strstr(bpf_map__name(map), ".rodata"))
				continue;
			start = (char *)bpf_map__initial_value(map, &bytes);
			return start && info->offset + size <= bytes ? start + info->offset : NULL;
		}
	}
	return NULL;
}

int weir_dataplane_prepare(struct bpf_object *object, const struct weir_shape *shape)
{
	const struct {
		const char *name;
		uint64_t entries;
	} sizes[] = {
		{ "weir_ledger", shape->sets },
		{ "weir_keys", (uint64_t)shape->sets * WEIR_WAYS },
		{ "weir_front", (uint64_t)shape->cpus * shape->front_slots },
		{ "weir_cpus", shape->cpus },
		{ "weir_exchanges", (uint64_t)shape->cpus * WEIR_SERVICES_MAX },
	};
	struct weir_shape *programs = constant(object, "weir_shape", sizeof(*shape));

	if (!programs)
		return -ENOENT;
	*programs = *shape;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct bpf_map *map = bpf_object__find_map_by_name(object, sizes[i].name);
		int err = map ? bpf_map__set_max_entries(map, (uint32_t)sizes[i].entries) : -ENOENT;

		if (err)
			return err;
	}
	return 0;
}

/* Every map that is mapped into memory: where its address goes, and who may write. */
static const struct mapping {
	const char *name;
	size_t at;
	bool ours; /* written by user space */
} mappings[] = {
#define MAPPING(map, field, ours) { map, offsetof(struct weir_dataplane, field), ours }
	MAPPING("weir_board", board, true),
	MAPPING("weir_rows", rows, true),
	MAPPING("weir_ports", ports, true),
	MAPPING("weir_labels", labels, true),
	MAPPING("weir_services", services, false),
	MAPPING("weir_ledger", ledger, false),
	MAPPING("weir_keys", keys, false),
	MAPPING("weir_front", front, false),
	MAPPING("weir_cpus", cpus, true),
#undef MAPPING
};
_Static_assert(sizeof(mappings) / sizeof(mappings[0]) == WEIR_DATAPLANE_MAPPINGS, "bytes[]");

/* The maps that are asked by descriptor. */
static const struct {
	const char *name;
	size_t at;
} fds[] = {
#define FD(map, field) { map, offsetof(struct weir_dataplane, field) }
	FD("weir_prefixes", prefixes_fd),
	FD("weir_events", events_fd),
	FD("weir_bans", bans_fd),
	FD("weir_live", live_fd),
	FD("weir_own_ledgers", own_fds[WEIR_OWN_LEDGER]),
	FD("weir_own_keys", own_fds[WEIR_OWN_KEYS]),
	FD("weir_rings", own_fds[WEIR_OWN_RINGS]),
	FD("weir_allow4", list_fds[WEIR_TRIE_ALLOW4]),
	FD("weir_allow6", list_fds[WEIR_TRIE_ALLOW6]),
	FD("weir_deny4", list_fds[WEIR_TRIE_DENY4]),
	FD("weir_deny6", list_fds[WEIR_TRIE_DENY6]),
#undef FD
};
#define FDS (sizeof(fds) / sizeof(fds[0]))

static int *fd_of(struct weir_dataplane *dataplane, size_t i)
{
	return (int *)((char *)dataplane + fds[i].at);
}

void weir_dataplane_init(struct weir_dataplane *dataplane)
{
	*dataplane = (struct weir_dataplane){ 0 };
	for (size_t i = 0; i < FDS; i++)
		*fd_of(dataplane, i) = -1;
}

static void **address_of(struct weir_dataplane *dataplane, size_t i)
{
	return (void **)((char *)dataplane + mappings[i].at);
}

static int map_one(struct weir_dataplane *dataplane, size_t i, int fd, bool read_only)
{
	int protection = mappings[i].ours && !read_only ? PROT_READ | PROT_WRITE : PROT_READ;
	struct bpf_map_info info = { 0 };
	uint32_t size = sizeof(info);
	void *address;

	if (bpf_obj_get_info_by_fd(fd, &info, &size))
		return -errno;
	dataplane->bytes[i] = (size_t)((info.value_size + 7) & ~7U) * info.max_entries;
	address = mmap(NULL, dataplane->bytes[i], protection, MAP_SHARED, fd, 0);
	if (address == MAP_FAILED)
		return -errno;
	*address_of(dataplane, i) = address;
	return 0;
}

const char *weir_map_pin_name(const struct bpf_map *map)
{
	const char *name = bpf_map__name(map);

	if (!strcmp(name, ".data.board"))
		return "weir_board";
	return strchr(name, '.') ? NULL : name;
}

/* Where the maps come from: a loaded object, or a folder of pins. */
struct source {
	struct bpf_object *object;
	const char *pins;
};

static int source_fd(const struct source *source, const char *name)
{
	char path[256];

	if (source->object)
		return bpf_object__find_map_fd_by_name(
			source->object, strcmp(name, "weir_board") ? name : ".data.board");
	if (snprintf(path, sizeof(path), "%s/%s", source->pins, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	return bpf_obj_get(path);
}

static int map_all(struct weir_dataplane *dataplane, const struct source *source)
{
	bool read_only = !source->object;
	int err = 0;

	for (size_t i = 0; i < WEIR_DATAPLANE_MAPPINGS && !err; i++) {
		int fd = source_fd(source, mappings[i].name);

		err = fd < 0 ? fd : map_one(dataplane, i, fd, read_only);
		if (read_only && fd >= 0)
			close(fd);
	}
	dataplane->owns_fds = read_only;
	for (size_t i = 0; i < FDS && !err; i++) {
		*fd_of(dataplane, i) = source_fd(source, fds[i].name);
		if (*fd_of(dataplane, i) < 0)
			err = read_only ? -errno : *fd_of(dataplane, i);
	}
	return err;
}

int weir_dataplane_map(struct weir_dataplane *dataplane, struct bpf_object *object)
{
	const struct weir_shape *programs = constant(object, "weir_shape", sizeof(*programs));
	int err;

	weir_dataplane_init(dataplane);
	err = map_all(dataplane, &(struct source){ .object = object });
	if (!err && !dataplane->board->active.abi_version) {
		dataplane->board->active.shape = *programs;
		dataplane->board->active.abi_version = WEIR_ABI_VERSION;
	}
	if (!err && (dataplane->board->active.abi_version != WEIR_ABI_VERSION ||
		     memcmp(&dataplane->board->active.shape, programs, sizeof(*programs))))
		err = -EPROTO;
	if (err)
		weir_dataplane_unmap(dataplane);
	else
		dataplane->shape = dataplane->board->active.shape;
	return err;
}

int weir_dataplane_open(struct weir_dataplane *dataplane, const char *pins)
{
	int err;

	weir_dataplane_init(dataplane);
	err = map_all(dataplane, &(struct source){ .pins = pins });
	if (!err && dataplane->board->active.abi_version != WEIR_ABI_VERSION)
		err = -EPROTO;
	if (err)
		weir_dataplane_unmap(dataplane);
	else
		dataplane->shape = dataplane->board->active.shape;
	return err;
}

void weir_dataplane_unmap(struct weir_dataplane *dataplane)
{
	for (size_t i = 0; i < WEIR_DATAPLANE_MAPPINGS; i++) {
		void **address = address_of(dataplane, i);

		if (*address)
			munmap(*address, dataplane->bytes[i]);
		*address = NULL;
	}
	for (size_t i = 0; i < FDS; i++) {
		if (dataplane->owns_fds && *fd_of(dataplane, i) >= 0)
			close(*fd_of(dataplane, i));
		*fd_of(dataplane, i) = -1;
	}
}

void weir_dataplane_remember(struct weir_dataplane *dataplane, const struct weir_limit *limit,
			     uint64_t now_ns)
{
	uint32_t at = limit->revision % WEIR_PAST_REVISIONS;

	if (limit->kind != WEIR_KIND_BUCKET)
		return;
	dataplane->board->past[limit->slot][at] = (struct weir_past){
		.revision = limit->revision,
		.cost_mantissa = limit->bucket.cost_mantissa,
		.cost_exponent = limit->bucket.cost_left - limit->bucket.cost_right,
		.burst_ticks = limit->bucket.burst_ticks,
		.until_ticks = now_ns << WEIR_TICK_SHIFT,
	};
}

/* Adds up what each CPU has in its struct weir_cpu where the first one has `first`. */
static void add_up(uint64_t *sum, const void *first, uint32_t cpus, size_t count)
{
	for (uint32_t cpu = 0; cpu < cpus; cpu++) {
		const volatile uint64_t *words =
			(const volatile uint64_t *)((const char *)first +
						   cpu * sizeof(struct weir_cpu));

		for (size_t i = 0; i < count; i++)
			sum[i] += words[i];
	}
}

struct weir_totals weir_dataplane_totals(const struct weir_dataplane *dataplane, uint32_t slot)
{
	struct weir_totals sum = { 0 };

	add_up((uint64_t *)&sum, &dataplane->cpus[0].totals[slot], dataplane->shape.cpus,
	       sizeof(sum) / sizeof(uint64_t));
	return sum;
}

struct weir_traffic weir_dataplane_traffic(const struct weir_dataplane *dataplane,
					   uint32_t interface, enum weir_hook hook)
{
	struct weir_traffic sum = { 0 };

	add_up((uint64_t *)&sum, &dataplane->cpus[0].traffic[interface][hook],
	       dataplane->shape.cpus, sizeof(sum) / sizeof(uint64_t));
	return sum;
}
