// SPDX-License-Identifier: GPL-2.0
/*
 * Ledgers of limits' own, where the kernel refuses any one step: none is left half made. Maps of
 * maps by fake_maps.h; an inner map is a file in memory, for the real mmap, dup and close.
 */
#include "fake_maps.h"

#include <sys/mman.h>
#include <unistd.h>

#include "controller/own.h"
#include "count_fds.h"

#define SLIDING 3 /* slots */
#define FLOW 7
#define INNER_MAX 16

static struct weir_dataplane plane;
static struct weir_own own;
static struct weir_error err;
static struct weir_compiled compiled;
static struct weir_limit limits[2];
static const struct weir_compiled_before nothing;
static int fds_before;

/* The inner maps: what the kernel keeps of them. */
static struct {
	int fd;
	uint32_t entries, value_size;
} inner[INNER_MAX];
static size_t inner_count;
static int look_error; /* of bpf_obj_get_info_by_fd */

int bpf_map_create(enum bpf_map_type type, const char *name, __u32 key_size, __u32 value_size,
		   __u32 entries, const struct bpf_map_create_opts *options)
{
	int fd;

	CU_ASSERT_EQUAL(type, BPF_MAP_TYPE_ARRAY);
	CU_ASSERT_EQUAL(key_size, 4);
	CU_ASSERT(options->map_flags & BPF_F_MMAPABLE && options->map_flags & BPF_F_INNER_MAP);
	CU_ASSERT_FATAL(inner_count < INNER_MAX);
	if (fake_fails())
		return -1;
	fd = memfd_create(name, MFD_CLOEXEC);
	CU_ASSERT_EQUAL_FATAL(ftruncate(fd, (off_t)value_size * entries), 0);
	inner[inner_count].fd = dup(fd);
	inner[inner_count].entries = entries;
	inner[inner_count++].value_size = value_size;
	return fd;
}

static size_t inner_of(uint32_t id)
{
	size_t i = 0;

	while (i < inner_count && fake_inode(inner[i].fd) != id)
		i++;
	return i;
}

int bpf_map_get_fd_by_id(__u32 id)
{
	size_t i = inner_of(id);

	errno = kernel.unreadable ? EPERM : ENOENT;
	return i < inner_count && !kernel.unreadable ? dup(inner[i].fd) : -1;
}

int bpf_obj_get_info_by_fd(int fd, void *info, __u32 *size)
{
	size_t i = inner_of(fake_inode(fd));

	CU_ASSERT_EQUAL(*size, sizeof(struct bpf_map_info));
	errno = look_error;
	if (look_error || i == inner_count)
		return -1;
	((struct bpf_map_info *)info)->max_entries = inner[i].entries;
	return 0;
}

/* Inner maps that are mapped into memory. */
static int count_mapped(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	int count = 0;

	while (maps && fgets(line, sizeof(line), maps))
		count += !!strstr(line, "/memfd:weir_own");
	fclose(maps);
	return count;
}

/* A sliding limit and one by flow, both in force. */
static void begin(void)
{
	fds_before = count_fds();
	weir_dataplane_init(&plane);
	for (int map = 0; map < WEIR_OWN_MAPS; map++) {
		kernel.maps[map] =
			(struct fake_map){ .key_size = 4, .value_size = 4, .of_maps = true };
		plane.own_fds[map] = FAKE_FD + map;
	}
	limits[0] = (struct weir_limit){
		.slot = SLIDING, .kind = WEIR_KIND_SLIDING, .own_sets = 4, .sliding.capacity = 16
	};
	limits[1] = (struct weir_limit){ .slot = FLOW, .own_sets = 2 };
	compiled.head.limits = 2;
	memcpy(compiled.limits, limits, sizeof(limits));
	strcpy(compiled.labels[0].name, "ring");
	strcpy(compiled.labels[1].name, "flow");
	CU_ASSERT_EQUAL_FATAL(weir_own_open(&own, &plane, &nothing, &err), 0);
}

static void end(void)
{
	fake_maps_free();
	while (inner_count)
		close(inner[--inner_count].fd);
	look_error = 0;
	CU_ASSERT_EQUAL(count_mapped(), 0);
	CU_ASSERT_EQUAL(count_fds(), fds_before);
}

static int provide(void)
{
	return weir_own_provide(&own, &compiled, &nothing, &err);
}

static size_t stored(void)
{
	return kernel.maps[WEIR_OWN_LEDGER].count + kernel.maps[WEIR_OWN_KEYS].count +
	       kernel.maps[WEIR_OWN_RINGS].count;
}

static int look(uint32_t slot)
{
	struct weir_own_view view;
	int code = weir_own_view_open(&view, &plane, slot);

	if (!code)
		weir_own_view_close(&view);
	return code;
}

static void a_limit_gets_what_its_kind_needs(void)
{
	struct weir_own_view view;

	begin();
	CU_ASSERT_EQUAL(provide(), 0);
	CU_ASSERT_EQUAL(stored(), 5);
	CU_ASSERT_EQUAL_FATAL(weir_own_view_open(&view, &plane, SLIDING), 0);
	CU_ASSERT_EQUAL(view.sets, 4);
	CU_ASSERT_EQUAL(view.capacity, 16);
	CU_ASSERT_EQUAL(view.rings[4 * WEIR_WAYS * 16 - 1], 0);
	CU_ASSERT_EQUAL(view.keys[4 * WEIR_WAYS - 1].key.slot, 0);
	CU_ASSERT_EQUAL(count_mapped(), 3);
	weir_own_view_close(&view);
	CU_ASSERT_EQUAL_FATAL(weir_own_view_open(&view, &plane, FLOW), 0);
	CU_ASSERT_EQUAL(view.capacity, 0);
	CU_ASSERT_PTR_NULL(view.rings);
	weir_own_view_close(&view);
	CU_ASSERT_EQUAL(look(1), -ENOENT);
	/* What is there stays: its state is in it. */
	kernel.changes = 0;
	CU_ASSERT_EQUAL(provide(), 0);
	CU_ASSERT_EQUAL(kernel.changes, 0);
	end();
}

static void what_fails_at_any_step_is_not_half_there(void)
{
	unsigned int at;
	int code = -1;

	for (at = 1; code && at < 30; at++) {
		begin();
		kernel.changes = 0;
		kernel.fail_at = at;
		code = provide();
		kernel.fail_at = 0;
		if (code) {
			CU_ASSERT_EQUAL(code, -ENOMEM);
			CU_ASSERT_EQUAL(stored(), 0);
			CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "can't make its own ledger of"));
			CU_ASSERT_EQUAL(!!strstr(err.text, "limit ring: "), at <= 6);
			CU_ASSERT_EQUAL(!!strstr(err.text, "lower its keys or its quota"), at <= 6);
			CU_ASSERT_EQUAL(provide(), 0);
			CU_ASSERT_EQUAL(look(SLIDING), 0);
			CU_ASSERT_EQUAL(look(FLOW), 0);
		}
		end();
	}
	/* Five maps, each made and put in its place. */
	CU_ASSERT_EQUAL(at, 12);
	CU_ASSERT_EQUAL(code, 0);
}

static void what_no_limit_has_any_more_goes(void)
{
	const struct weir_compiled_before now = { .limits = &limits[1], .count = 1 };

	begin();
	CU_ASSERT_EQUAL(provide(), 0);
	weir_own_release(&own, &now);
	CU_ASSERT_EQUAL(look(SLIDING), -ENOENT);
	CU_ASSERT_EQUAL(look(FLOW), 0);
	/* Also what a controller left that was killed; and it may be made again. */
	CU_ASSERT_EQUAL(provide(), 0);
	CU_ASSERT_EQUAL(weir_own_open(&own, &plane, &now, &err), 0);
	CU_ASSERT_EQUAL(stored(), 2);
	CU_ASSERT_EQUAL(look(FLOW), 0);
	end();
}

static void what_cannot_be_looked_at_is_an_error(void)
{
	begin();
	CU_ASSERT_EQUAL(provide(), 0);
	look_error = EACCES;
	CU_ASSERT_EQUAL(look(SLIDING), -EACCES);
	look_error = 0;
	/* Its map goes between two looks, or another one comes: it changes hands. */
	inner[1].entries = 1;
	CU_ASSERT_EQUAL(look(SLIDING), -EAGAIN);
	inner[1].entries = 0;
	CU_ASSERT_EQUAL(look(SLIDING), -EINVAL);
	kernel.unreadable = true;
	CU_ASSERT_EQUAL(weir_own_open(&own, &plane, &nothing, &err), -EPERM);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "can't look at the limits' own maps: Operation"));
	kernel.unreadable = false;
	close(inner[0].fd);
	inner[0].fd = memfd_create("another", 0);
	CU_ASSERT_EQUAL(look(SLIDING), -ENOENT);
	end();
}

static void says_what_memory_it_takes(void)
{
	CU_ASSERT_EQUAL(weir_own_bytes(1, 0),
			sizeof(struct weir_set) + WEIR_WAYS * sizeof(struct weir_own_record));
	CU_ASSERT_EQUAL(weir_own_bytes(1000, 16) - weir_own_bytes(1000, 0),
			1000 * WEIR_WAYS * 16 * 8);
}

WEIR_TESTS("own", TEST(a_limit_gets_what_its_kind_needs),
	   TEST(what_fails_at_any_step_is_not_half_there), TEST(what_no_limit_has_any_more_goes),
	   TEST(what_cannot_be_looked_at_is_an_error), TEST(says_what_memory_it_takes))
