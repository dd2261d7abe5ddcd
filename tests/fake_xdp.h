/* SPDX-License-Identifier: GPL-2.0 */
/*
 * XDP on one interface as a kernel with dispatchers and libxdp keep it, in plain memory, for tests
 * of what attaches programs. It defines what attach.c, look.c and programs.c call of libbpf and
 * libxdp, and weir_load_programs: the linker takes these. A descriptor is a file that says
 * what it is of, so the real close, dup and rename do what they should.
 */
#pragma once

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xdp/libxdp.h>

#include "controller/attach.h"
#include "controller/programs.h"
#include "harness.h"

#define FAKE_BOARD 77 /* the id of our board map */
#define FAKE_PROGRAMS 32
#define FAKE_LINK 1000 /* + the id of the program that hangs on a dispatcher */

enum fake_kind { FAKE_PROGRAM, FAKE_LINKED, FAKE_MAP };

struct fake_object {
	enum fake_kind kind;
	uint32_t id;
};

struct fake_program {
	const char *name;
	bool ours;	 /* uses the board */
	uint32_t inside; /* the dispatcher that calls it, by a link; 0: none */
};

struct bpf_program {
	int fd;
	bool autoload;
};

struct xdp_program {
	const char *name;
	uint32_t id; /* 0: not loaded */
	int fd;
	bool failed; /* perhaps half loaded: good for nothing any more */
};

static struct {
	struct fake_program programs[FAKE_PROGRAMS]; /* by id, from 1 */
	uint32_t last;
	uint32_t attached; /* id, 0: none */
	uint8_t mode;	   /* XDP_ATTACHED_DRV, _SKB, _HW */
	bool alone;	   /* libxdp finds no dispatcher here */
	bool sticks;	   /* what is detached stays, though the answer is 0 */
	struct bpf_program single, mute;
	/* -errno that the call returns; join_answering: of the program that may answer alone. */
	int query, native, generic, open, load, create, join, join_answering, leave, by_id;
	const char *words; /* what libxdp says when it refuses to join */
} fake;

static inline int fake_open(enum fake_kind kind, uint32_t id)
{
	const struct fake_object object = { kind, id };
	int fd = memfd_create("fake", MFD_CLOEXEC);

	CU_ASSERT_FATAL(write(fd, &object, sizeof(object)) == sizeof(object));
	return fd;
}

static inline struct fake_object fake_of(int fd)
{
	struct fake_object object = { 0 };

	(void)!pread(fd, &object, sizeof(object), 0);
	return object;
}

static inline uint32_t fake_program_add(const char *name, bool ours, uint32_t inside)
{
	CU_ASSERT_FATAL(fake.last + 1 < FAKE_PROGRAMS);
	fake.programs[++fake.last] = (struct fake_program){ name, ours, inside };
	return fake.last;
}

/* Attaches a new one in a mode (XDP_ATTACHED_*), alone. Its id. */
static inline uint32_t fake_attach_alone(const char *name, bool ours, uint8_t mode)
{
	fake.attached = fake_program_add(name, ours, 0);
	fake.mode = mode;
	return fake.attached;
}

/* Attaches one into the dispatcher there, or into a new one. Its id. */
static inline uint32_t fake_attach_inside(const char *name, bool ours)
{
	if (!fake.attached)
		fake_attach_alone("xdp_dispatcher", false, XDP_ATTACHED_DRV);
	return fake_program_add(name, ours, fake.attached);
}

/* How many of ours, or of others, the dispatcher that is attached calls. */
static inline unsigned int fake_inside(bool ours)
{
	unsigned int count = 0;

	for (uint32_t id = 1; id <= fake.last; id++)
		count += fake.attached && fake.programs[id].inside == fake.attached &&
			 fake.programs[id].ours == ours;
	return count;
}

static inline void fake_say(libbpf_print_fn_t print, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print(LIBBPF_WARN, format, args);
	va_end(args);
}

/* A warning, as the library prints it. */
static inline void fake_warn(const char *words)
{
	libbpf_print_fn_t print = libbpf_set_print(NULL);

	libbpf_set_print(print);
	if (words)
		fake_say(print, "%s", words);
}

/* ---- libbpf ---- */

int bpf_xdp_query(int ifindex, int flags, struct bpf_xdp_query_opts *answer)
{
	(void)ifindex;
	(void)flags;
	if (fake.query)
		return fake.query;
	answer->attach_mode = fake.attached ? fake.mode : XDP_ATTACHED_NONE;
	answer->prog_id = fake.attached;
	answer->drv_prog_id = fake.mode == XDP_ATTACHED_DRV ? fake.attached : 0;
	answer->skb_prog_id = fake.mode == XDP_ATTACHED_SKB ? fake.attached : 0;
	return 0;
}

int bpf_xdp_attach(int ifindex, int fd, __u32 flags, const struct bpf_xdp_attach_opts *options)
{
	uint8_t mode = flags & XDP_FLAGS_SKB_MODE ? XDP_ATTACHED_SKB : XDP_ATTACHED_DRV;
	int refusal = mode == XDP_ATTACHED_SKB ? fake.generic : fake.native;

	(void)ifindex;
	if (fd >= 0 && refusal) {
		fake_warn(fake.words);
		return refusal;
	}
	if (flags & XDP_FLAGS_UPDATE_IF_NOEXIST && fake.attached)
		return -EBUSY;
	if (flags & XDP_FLAGS_REPLACE) {
		/* In another mode there is nothing, so nothing is to be taken off. */
		if (mode != fake.mode)
			return fd < 0 ? 0 : -EEXIST;
		if (fake_of(options->old_prog_fd).id != fake.attached)
			return -EEXIST;
	}
	if (fake.sticks)
		return 0;
	fake.attached = fd < 0 ? 0 : fake_of(fd).id;
	fake.mode = mode;
	return 0;
}

int bpf_xdp_detach(int ifindex, __u32 flags, const struct bpf_xdp_attach_opts *options)
{
	return bpf_xdp_attach(ifindex, -1, flags, options);
}

int bpf_prog_get_fd_by_id(__u32 id)
{
	errno = fake.by_id ? -fake.by_id : ENOENT;
	return fake.by_id || !id || id > fake.last ? -1 : fake_open(FAKE_PROGRAM, id);
}

int bpf_link_get_next_id(__u32 start, __u32 *next)
{
	for (uint32_t id = start < FAKE_LINK ? 0 : start - FAKE_LINK + 1; id <= fake.last; id++) {
		/* Id 0: somebody's link on something else. */
		if (!id || fake.programs[id].inside) {
			*next = FAKE_LINK + id;
			return 0;
		}
	}
	errno = ENOENT;
	return -1;
}

int bpf_link_get_fd_by_id(__u32 id)
{
	errno = EPERM;
	return fake.by_id ? -1 : fake_open(FAKE_LINKED, id);
}

static inline void fake_link_info(uint32_t id, struct bpf_link_info *info)
{
	/* Somebody's: of another type, whose members lie where these do. */
	info->type = id ? BPF_LINK_TYPE_TRACING : BPF_LINK_TYPE_XDP;
	info->id = FAKE_LINK + id;
	info->prog_id = id ? id : fake.attached;
	info->tracing.target_obj_id = id ? fake.programs[id].inside : fake.attached;
}

static inline void fake_program_info(uint32_t id, struct bpf_prog_info *info)
{
	uint32_t *ids = (uint32_t *)(uintptr_t)info->map_ids;

	if (ids) {
		ids[0] = 5;
		ids[1] = FAKE_BOARD;
		info->nr_map_ids = fake.programs[id].ours ? 2 : 1;
	}
	info->id = id;
	info->tag[0] = (uint8_t)id;
	snprintf(info->name, sizeof(info->name), "%s", fake.programs[id].name);
}

int bpf_obj_get_info_by_fd(int fd, void *info, __u32 *size)
{
	struct fake_object object = fake_of(fd);

	(void)size;
	errno = EBADF;
	if (object.kind == FAKE_PROGRAM && object.id)
		fake_program_info(object.id, info);
	else if (object.kind == FAKE_LINKED)
		fake_link_info(object.id - FAKE_LINK, info);
	else
		return -1;
	return 0;
}

/* A pin is a file with the same in it. */
int bpf_obj_get(const char *path)
{
	return open(path, O_RDONLY | O_CLOEXEC);
}

int bpf_obj_pin(int fd, const char *path)
{
	struct fake_object object = fake_of(fd);
	FILE *out = fopen(path, "wx");

	if (!out)
		return -1;
	fwrite(&object, sizeof(object), 1, out);
	return fclose(out);
}

int bpf_program__fd(const struct bpf_program *program)
{
	return program->fd;
}

int bpf_program__set_autoload(struct bpf_program *program, bool autoload)
{
	program->autoload = autoload;
	return 0;
}

/* ---- weir's programs ---- */

struct weir_bpf *weir_load_programs_open(const struct weir_load *load, uint32_t hooks)
{
	struct weir_bpf *programs = fake.open ? NULL : calloc(1, sizeof(*programs));

	(void)load;
	CU_ASSERT_EQUAL(hooks, 1U << WEIR_HOOK_XDP);
	errno = -fake.open;
	if (programs)
		programs->progs.weir_xdp = &fake.single;
	if (programs)
		programs->progs.weir_xdp_mute = &fake.mute;
	return programs;
}

int weir_load_programs(struct weir_bpf *programs, struct weir_error *err)
{
	if (fake.load)
		return weir_error_set(err, fake.load, "refused");
	programs->progs.weir_xdp->fd =
		fake_open(FAKE_PROGRAM, fake_program_add("weir_xdp", true, 0));
	return 0;
}

/* ---- libxdp ---- */

static inline struct xdp_program *fake_xdp_program(const char *name, uint32_t id)
{
	struct xdp_program *program = calloc(1, sizeof(*program));

	CU_ASSERT_PTR_NOT_NULL_FATAL(program);
	*program = (struct xdp_program){ .name = name, .id = id, .fd = -1 };
	return program;
}

struct xdp_program *xdp_program__create(struct xdp_program_opts *options)
{
	const char *name = fake.mute.autoload ? "weir_xdp_mute" : "weir_xdp";

	/* The one that is loaded, and no other. */
	CU_ASSERT_STRING_EQUAL(options->prog_name, name);
	CU_ASSERT_NOT_EQUAL(fake.mute.autoload, fake.single.autoload);
	return fake.create ? (void *)(intptr_t)fake.create : fake_xdp_program(name, 0);
}

struct xdp_program *xdp_program__from_fd(int fd)
{
	uint32_t id = fake_of(fd).id;

	return fake.create ? (void *)(intptr_t)fake.create :
			     fake_xdp_program(fake.programs[id].name, id);
}

int xdp_program__fd(const struct xdp_program *program)
{
	return program->fd;
}

void xdp_program__close(struct xdp_program *program)
{
	if (program->fd >= 0)
		close(program->fd);
	free(program);
}

/* Every change makes another dispatcher, which the others move to. */
static inline void fake_new_dispatcher(uint8_t mode)
{
	uint32_t old = fake.attached, dispatcher = fake_attach_alone("xdp_dispatcher", false, mode);

	for (uint32_t id = 1; id <= fake.last; id++) {
		if (old && fake.programs[id].inside == old)
			fake.programs[id].inside = dispatcher;
	}
}

int xdp_program__attach(struct xdp_program *program, int ifindex, enum xdp_attach_mode mode,
			unsigned int flags)
{
	uint8_t attached = mode == XDP_MODE_SKB ? XDP_ATTACHED_SKB : XDP_ATTACHED_DRV;
	bool answers = strcmp(program->name, "weir_xdp_mute") != 0;
	int refusal = fake.join			     ? fake.join
		      : answers && fake.join_answering ? fake.join_answering
		      : attached == XDP_ATTACHED_SKB ? fake.generic
						     : fake.native;

	(void)ifindex;
	CU_ASSERT_EQUAL(flags, 0);
	CU_ASSERT_FALSE(program->failed);
	if (refusal) {
		fake_warn(fake.words);
		program->failed = true;
		return refusal;
	}
	if (fake.attached && (fake.alone || attached != fake.mode ||
			      strcmp(fake.programs[fake.attached].name, "xdp_dispatcher") != 0))
		return -EBUSY;
	if (!program->id) {
		program->id = fake_program_add(program->name, true, 0);
		program->fd = fake_open(FAKE_PROGRAM, program->id);
	}
	if (fake.alone) {
		fake.attached = program->id;
		fake.mode = attached;
		return 0;
	}
	fake_new_dispatcher(attached);
	fake.programs[program->id].inside = fake.attached;
	return 0;
}

int xdp_program__detach(struct xdp_program *program, int ifindex, enum xdp_attach_mode mode,
			unsigned int flags)
{
	uint8_t attached = mode == XDP_MODE_SKB ? XDP_ATTACHED_SKB : XDP_ATTACHED_DRV;

	(void)ifindex;
	CU_ASSERT_EQUAL(flags, 0);
	if (fake.leave)
		return fake.leave;
	if (attached != fake.mode || !fake.attached ||
	    fake.programs[program->id].inside != fake.attached)
		return -ENOENT;
	if (fake.sticks)
		return 0;
	fake.programs[program->id].inside = 0;
	if (fake_inside(true) + fake_inside(false))
		fake_new_dispatcher(attached);
	else
		fake.attached = 0;
	return 0;
}
