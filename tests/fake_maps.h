/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Maps of the kernel in plain memory, for tests of what writes them: by key, found by brute force.
 * The linker takes these calls of libbpf from here. A descriptor is the map's index + FAKE_FD.
 */
#pragma once

#include <bpf/bpf.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "harness.h"

#define FAKE_FD 1000
#define FAKE_MAPS 8
#define FAKE_KEY 32
#define FAKE_VALUE 48

struct fake_entry {
	unsigned char key[FAKE_KEY];
	unsigned char value[FAKE_VALUE];
};

struct fake_map {
	size_t key_size, value_size; /* at most FAKE_KEY, FAKE_VALUE */
	bool of_maps;		     /* given a descriptor it keeps an id: the file's inode */
	struct fake_entry *entries;
	size_t count, room;
};

static struct {
	struct fake_map maps[FAKE_MAPS];
	unsigned int changes; /* by a call */
	unsigned int fail_at; /* the change that fails, from 1; 0: none */
	bool fail_on;	      /* and those after it too */
	int error;	      /* of those that fail; 0: ENOMEM */
	bool unreadable;
	void (*before_change)(void); /* NULL: nobody looks */
} kernel;

static inline struct fake_map *fake_at(int fd)
{
	CU_ASSERT_FATAL(fd >= FAKE_FD && fd < FAKE_FD + FAKE_MAPS);
	return &kernel.maps[fd - FAKE_FD];
}

static inline void fake_maps_free(void)
{
	for (int i = 0; i < FAKE_MAPS; i++)
		free(kernel.maps[i].entries);
	memset(&kernel, 0, sizeof(kernel));
}

static inline bool fake_fails(void)
{
	if (kernel.before_change)
		kernel.before_change();
	errno = kernel.error ? kernel.error : ENOMEM;
	kernel.changes++;
	return kernel.fail_at && (kernel.changes == kernel.fail_at ||
				  (kernel.fail_on && kernel.changes > kernel.fail_at));
}

static inline struct fake_entry *fake_find(const struct fake_map *map, const void *key)
{
	for (size_t i = 0; i < map->count; i++) {
		if (!memcmp(map->entries[i].key, key, map->key_size))
			return &map->entries[i];
	}
	return NULL;
}

static inline uint32_t fake_inode(int fd)
{
	struct stat st;

	CU_ASSERT_EQUAL(fstat(fd, &st), 0);
	return (uint32_t)st.st_ino;
}

static inline void fake_put(struct fake_map *map, const void *key, const void *value)
{
	struct fake_entry *entry = fake_find(map, key);

	if (!entry && map->count == map->room) {
		map->room = 2 * map->room + 16;
		map->entries = realloc(map->entries, map->room * sizeof(*map->entries));
		CU_ASSERT_PTR_NOT_NULL_FATAL(map->entries);
	}
	if (!entry)
		entry = &map->entries[map->count++];
	memcpy(entry->key, key, map->key_size);
	memcpy(entry->value, value, map->value_size);
}

/* Whether both have the same entries, in any order. */
static inline bool fake_same(const struct fake_map *a, const struct fake_map *b)
{
	bool same = a->count == b->count;

	for (size_t i = 0; i < a->count && same; i++) {
		const struct fake_entry *there = fake_find(b, a->entries[i].key);

		same = there && !memcmp(there->value, a->entries[i].value, a->value_size);
	}
	return same;
}

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	const struct fake_map *map = fake_at(fd);
	const struct fake_entry *entry = fake_find(map, key);

	errno = kernel.unreadable ? EPERM : ENOENT;
	if (!entry || kernel.unreadable)
		return -1;
	memcpy(value, entry->value, map->value_size);
	return 0;
}

int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	struct fake_map *map = fake_at(fd);
	uint32_t id;

	CU_ASSERT_EQUAL(flags, BPF_ANY);
	if (fake_fails())
		return -1;
	id = map->of_maps ? fake_inode(*(const int *)value) : 0;
	fake_put(map, key, map->of_maps ? (const void *)&id : value);
	return 0;
}

int bpf_map_delete_elem(int fd, const void *key)
{
	struct fake_map *map = fake_at(fd);
	struct fake_entry *entry = fake_find(map, key);

	if (fake_fails())
		return -1;
	errno = ENOENT;
	if (!entry)
		return -1;
	*entry = map->entries[--map->count];
	return 0;
}

/* Stores half of them where it fails, as the kernel does that runs out of memory over it. */
int bpf_map_update_batch(int fd, const void *keys, const void *values, __u32 *count,
			 const struct bpf_map_batch_opts *options)
{
	struct fake_map *map = fake_at(fd);
	bool fails = fake_fails();

	(void)options;
	if (fails)
		*count /= 2;
	for (__u32 i = 0; i < *count; i++)
		fake_put(map, (const char *)keys + i * map->key_size,
			 (const char *)values + i * map->value_size);
	return fails ? -1 : 0;
}

int bpf_map_lookup_batch(int fd, void *from, void *next, void *keys, void *values, __u32 *count,
			 const struct bpf_map_batch_opts *options)
{
	const struct fake_map *map = fake_at(fd);
	uint32_t at = 0, got = 0;

	(void)options;
	errno = EPERM;
	if (kernel.unreadable)
		return -1;
	if (from)
		memcpy(&at, from, sizeof(at));
	for (; got < *count && at < map->count; got++, at++) {
		memcpy((char *)keys + got * map->key_size, map->entries[at].key, map->key_size);
		memcpy((char *)values + got * map->value_size, map->entries[at].value,
		       map->value_size);
	}
	*count = got;
	memcpy(next, &at, sizeof(at));
	errno = ENOENT;
	return at < map->count ? 0 : -1;
}
