// SPDX-License-Identifier: GPL-2.0
#include "controller/connections.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "controller/pins.h"

#include "connections.skel.h"

#define PIN "weir_watch_sockets"
static const char *const PIN_PAYLOAD[] = { "weir_watch_in", "weir_watch_out" };

/* Between the two looks at a drift: far more than an event takes from one count to the other. */
#define LOOKS_APART_NS 2000000L

/* Keys at once; more than a bucket of the kernel's map ever has. */
#define BATCH 1024

struct weir_connections {
	struct connections_bpf *programs;
	struct bpf_link *events;
	struct bpf_link *walk, *walk_elsewhere;
	struct bpf_link *payload[2]; /* in, out */
	struct weir_generation *generation;
	uint64_t *listening; /* bitmap of ports */
	size_t listening_bytes;
};

/* ---- open ---- */

static int open_programs(struct weir_connections *connections, const struct weir_load *load,
			 struct weir_error *err)
{
	struct connections_bpf *programs = connections_bpf__open();
	struct bpf_map *map, *ours;
	int code;

	if (!programs)
		return weir_error_set(err, -errno, "can't open the programs that watch sockets: %s",
				      strerror(errno));
	connections->programs = programs;
	code = weir_dataplane_prepare(programs->obj, &load->shape);
	bpf_object__for_each_map(map, programs->obj) {
		ours = bpf_object__find_map_by_name(load->skeleton->obj, bpf_map__name(map));
		if (!code && ours && weir_map_pin_name(map))
			code = bpf_map__reuse_fd(map, bpf_map__fd(ours));
	}
	weir_kernel_words_clear();
	if (!code)
		code = connections_bpf__load(programs);
	if (!code)
		return 0;
	return weir_error_set(err, code,
			      "the kernel refused the programs that watch sockets, which gates "
			      "need: %s (%s)",
			      strerror(-code), weir_kernel_words());
}

static int map_listening(struct weir_connections *connections, struct weir_error *err)
{
	struct bpf_map *map = connections->programs->maps.weir_listening;
	size_t bytes = (size_t)bpf_map__value_size(map) * bpf_map__max_entries(map);
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	if (at == MAP_FAILED)
		return weir_error_set(err, -errno, "can't map weir_listening into memory: %s",
				      strerror(errno));
	connections->listening = at;
	connections->listening_bytes = bytes;
	return 0;
}

/* Replaces the link that was pinned so. */
static int pin(struct bpf_link *link, const struct weir_load *load, const char *name,
	       struct weir_error *err)
{
	char path[WEIR_PINS_SIZE + 64];
	int code;

	snprintf(path, sizeof(path), "%s/%s", load->pins, name);
	code = weir_pins_replace(bpf_link__fd(link), path);
	return code ? weir_error_set(err, code, "can't pin %s: %s", path, strerror(-code)) : 0;
}

/* The new link first, then away with the old one: both see an event once more, which is once. */
static int attach(struct weir_connections *connections, const struct weir_load *load,
		  struct weir_error *err)
{
	union bpf_iter_link_info sockets = {
		.map.map_fd = (uint32_t)bpf_map__fd(connections->programs->maps.weir_sockets),
	};
	LIBBPF_OPTS(bpf_iter_attach_opts, elsewhere, .link_info = &sockets,
		    .link_info_len = sizeof(sockets));

	connections->events = bpf_program__attach(connections->programs->progs.weir_sock_state);
	if (!connections->events)
		return weir_error_set(err, -errno, "can't watch the states of sockets: %s",
				      strerror(errno));
	connections->walk = bpf_program__attach_iter(connections->programs->progs.weir_walk_tcp,
						     NULL);
	if (connections->walk)
		connections->walk_elsewhere = bpf_program__attach_iter(
			connections->programs->progs.weir_walk_elsewhere, &elsewhere);
	if (!connections->walk_elsewhere)
		return weir_error_set(err, -errno, "can't walk over sockets: %s", strerror(errno));
	return pin(connections->events, load, PIN, err);
}

/* The cgroup v2 tree: a file descriptor, or -errno. */
static int open_cgroup(struct weir_error *err)
{
	FILE *mounts = setmntent("/proc/self/mounts", "r");
	struct mntent *mount;
	int fd = -ENOENT;

	while (mounts && (mount = getmntent(mounts))) {
		if (strcmp(mount->mnt_type, "cgroup2"))
			continue;
		fd = open(mount->mnt_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		fd = fd < 0 ? -errno : fd;
		break;
	}
	if (mounts)
		endmntent(mounts);
	return fd >= 0 ? fd :
			 weir_error_set(err, fd,
					"services need a cgroup v2 tree to see their traffic: none "
					"can be opened (%s): `mount -t cgroup2 none FOLDER`",
					strerror(-fd));
}

int weir_connections_watch_payload(struct weir_connections *connections,
				   const struct weir_load *load, struct weir_error *err)
{
	struct bpf_program *const programs[] = { connections->programs->progs.weir_payload_in,
						 connections->programs->progs.weir_payload_out };
	int cgroup, code = 0;

	if (connections->payload[1])
		return 0;
	cgroup = open_cgroup(err);
	if (cgroup < 0)
		return cgroup;
	for (int i = 0; i < 2 && !code; i++) {
		connections->payload[i] = bpf_program__attach_cgroup(programs[i], cgroup);
		if (!connections->payload[i])
			code = weir_error_set(err, -errno,
					      "can't watch the traffic of services: %s",
					      strerror(errno));
		else
			code = pin(connections->payload[i], load, PIN_PAYLOAD[i], err);
	}
	close(cgroup);
	return code;
}

static int note_namespace(struct weir_connections *connections, struct weir_error *err)
{
	struct weir_where *where = &connections->generation->dataplane->board->where;
	struct stat st;

	if (stat("/proc/self/ns/net", &st))
		return weir_error_set(err, -errno, "can't look at /proc/self/ns/net: %s",
				      strerror(errno));
	where->netns = (uint32_t)st.st_ino;
	return 0;
}

int weir_connections_open(struct weir_connections **out, const struct weir_load *load,
			  struct weir_generation *generation, struct weir_error *err)
{
	struct weir_connections *connections = calloc(1, sizeof(*connections));
	int code;

	if (!connections)
		return weir_error_set(err, -ENOMEM, "no memory to watch sockets");
	connections->generation = generation;
	code = open_programs(connections, load, err);
	if (!code)
		code = map_listening(connections, err);
	if (!code)
		code = note_namespace(connections, err);
	if (!code)
		code = attach(connections, load, err);
	if (code)
		weir_connections_close(connections);
	else
		*out = connections;
	return code;
}

void weir_connections_close(struct weir_connections *connections)
{
	if (!connections)
		return;
	bpf_link__destroy(connections->payload[0]);
	bpf_link__destroy(connections->payload[1]);
	bpf_link__destroy(connections->walk_elsewhere);
	bpf_link__destroy(connections->walk);
	bpf_link__destroy(connections->events);
	if (connections->listening)
		munmap(connections->listening, connections->listening_bytes);
	connections_bpf__destroy(connections->programs);
	free(connections);
}

/* ---- recount ---- */

struct weir_connection_counts weir_connections_counts(const struct weir_connections *connections)
{
	struct weir_connection_counts counts = { 0 };
	uint32_t zero = 0;

	bpf_map_lookup_elem(bpf_map__fd(connections->programs->maps.weir_connections), &zero,
			    &counts);
	return counts;
}

static void set_walk(struct weir_connections *connections, uint32_t walk)
{
	__atomic_store_n(&connections->generation->dataplane->board->where.walk, walk,
			 __ATOMIC_RELEASE);
}

/* By batches: to look for the first key over and over walks over all buckets that are empty. */
static void empty_recounts(const struct weir_connections *connections)
{
	int fd = bpf_map__fd(connections->programs->maps.weir_recounts), code;
	struct weir_recount values[BATCH];
	uint64_t tags[BATCH], next;
	bool first = true;
	uint32_t count;

	do {
		count = BATCH;
		code = bpf_map_lookup_and_delete_batch(fd, first ? NULL : &next, &next, tags,
						       values, &count, NULL);
		first = false;
	} while (!code);
}

/* No event counts into the map of before any more, and it is empty. */
static void begin(struct weir_connections *connections)
{
	struct weir_where *where = &connections->generation->dataplane->board->where;

	set_walk(connections, 0);
	weir_generation_wait(connections->generation);
	empty_recounts(connections);
	memset(connections->listening, 0, connections->listening_bytes);
	if (!++where->walks)
		where->walks = 1;
	set_walk(connections, where->walks);
}

static int walk(const struct bpf_link *link)
{
	int fd = bpf_iter_create(bpf_link__fd(link));
	char nothing[64];
	ssize_t got;

	if (fd < 0)
		return -errno;
	do
		got = read(fd, nothing, sizeof(nothing));
	while (got > 0 || (got < 0 && errno == EAGAIN));
	close(fd);
	return got < 0 ? -errno : 0;
}

static int settle(const struct weir_connections *connections, bool heal, uint64_t *keys)
{
	struct weir_settle what = {
		.sets = connections->generation->dataplane->shape.sets,
		.heal = heal,
	};
	LIBBPF_OPTS(bpf_test_run_opts, options, .ctx_in = &what, .ctx_size_in = sizeof(what));
	int code = bpf_prog_test_run_opts(
		bpf_program__fd(connections->programs->progs.weir_settle_ledger), &options);

	*keys = what.keys;
	return code;
}

/* A difference counts if it is there twice: an event may be between its two counts. */
static int compare(const struct weir_connections *connections)
{
	const struct timespec apart = { .tv_nsec = LOOKS_APART_NS };
	uint64_t keys = 0;
	int code = settle(connections, false, &keys);

	if (code || !keys)
		return code;
	nanosleep(&apart, NULL);
	return settle(connections, true, &keys);
}

int weir_connections_recount(struct weir_connections *connections,
			     struct weir_recounted *recounted, struct weir_error *err)
{
	struct weir_connection_counts before = weir_connections_counts(connections), after;
	int code;

	begin(connections);
	code = walk(connections->walk);
	if (!code)
		code = walk(connections->walk_elsewhere);
	after = weir_connections_counts(connections);
	if (!code && after.overflowed != before.overflowed)
		code = -ENOSPC;
	if (!code)
		code = compare(connections);
	set_walk(connections, 0);
	after = weir_connections_counts(connections);
	*recounted = (struct weir_recounted){
		.adopted = after.adopted - before.adopted,
		.healed = after.recounted - before.recounted,
	};
	return code ? weir_error_set(err, code, "can't recount the connections: %s",
				     code == -ENOSPC ? "more sources have some open than there is "
						       "room to count" :
						       strerror(-code)) :
		      0;
}
