// SPDX-License-Identifier: GPL-2.0
/*
 * Programs and maps on a kernel that refuses them: said in words that tell what to do, and what was
 * begun is taken back. The linker takes from here what load.c calls of the kernel and of pins.c;
 * the skeleton is the real one.
 */
#include "harness.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "controller/dataplane.h"
#include "controller/load.h"
#include "controller/pins.h"

#define PINS "/tmp/weir-load/pins"
#define KEYS 4096

static struct {
	/* what it answers: -errno */
	int lacks; /* enum bpf_func_id */
	int mount, look, switch_, lock, mkdir, rename, load, open_pin, look_at_pin, pin;
	struct weir_switch board;
	bool poor_types;
	const struct btf *types;
	const char *words; /* of libbpf, over a load */
	/* what it was asked for */
	int lock_fd;
	unsigned int pinned, cleared, removed, unmounted, loads;
} kernel;

static struct weir_load load;
static struct weir_error note, err;

int libbpf_probe_bpf_helper(enum bpf_prog_type type, enum bpf_func_id helper, const void *options)
{
	CU_ASSERT_EQUAL(type, BPF_PROG_TYPE_XDP);
	(void)options;
	return (int)helper != kernel.lacks;
}

static void say(libbpf_print_fn_t print, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print(LIBBPF_WARN, format, args);
	va_end(args);
}

int bpf_object__load_skeleton(struct bpf_object_skeleton *skeleton)
{
	libbpf_print_fn_t print = libbpf_set_print(NULL);

	(void)skeleton;
	libbpf_set_print(print);
	kernel.loads++;
	if (kernel.words)
		say(print, "libbpf: %s\n", kernel.words);
	return kernel.load;
}

static int answer(int code)
{
	errno = -code;
	return code ? -1 : 0;
}

int bpf_obj_pin(int fd, const char *path)
{
	(void)fd;
	CU_ASSERT_EQUAL(strncmp(path, PINS "-new/weir_", strlen(PINS "-new/weir_")), 0);
	kernel.pinned++;
	return answer(kernel.pin);
}

int bpf_obj_get(const char *path)
{
	CU_ASSERT_EQUAL(strncmp(path, PINS "/weir_", strlen(PINS "/weir_")), 0);
	return answer(kernel.open_pin) ? -1 : dup(1);
}

/* The kernel took the types as they are in our object, or poorer ones. */
int bpf_object__btf_fd(const struct bpf_object *object)
{
	kernel.types = bpf_object__btf(object);
	return kernel.poor_types ? -1 : 1;
}

static int tell_types(struct bpf_btf_info *info)
{
	uint32_t size;
	const void *bytes = btf__raw_data(kernel.types, &size);

	if (info->btf)
		memcpy((void *)(uintptr_t)info->btf, bytes, size);
	info->btf_size = size;
	return 0;
}

int bpf_obj_get_info_by_fd(int fd, void *info, __u32 *size)
{
	(void)fd;
	if (*size == sizeof(struct bpf_btf_info))
		return tell_types(info);
	memset(info, 0, *size);
	return answer(kernel.look_at_pin);
}

int mkdir(const char *path, mode_t mode)
{
	CU_ASSERT_EQUAL(mode, 0700);
	CU_ASSERT_STRING_EQUAL(path, PINS "-new");
	return answer(kernel.mkdir);
}

int rename(const char *from, const char *to)
{
	CU_ASSERT_STRING_EQUAL(from, PINS "-new");
	CU_ASSERT_STRING_EQUAL(to, PINS);
	return answer(kernel.rename);
}

/* ---- pins.c ---- */

int weir_pins_mount(const char *pins, bool *mounted, struct weir_error *to)
{
	(void)pins;
	*mounted = !kernel.mount;
	return kernel.mount ? weir_error_set(to, kernel.mount, "no mount") : 0;
}

void weir_pins_unmount(const char *pins)
{
	(void)pins;
	kernel.unmounted++;
}

int weir_pins_look(const char *pins, struct weir_error *to)
{
	(void)pins;
	return kernel.look < 0 ? weir_error_set(to, kernel.look, "not ours") : kernel.look;
}

int weir_pins_lock(const char *folder, struct weir_error *to)
{
	CU_ASSERT_STRING_EQUAL(folder, kernel.look ? PINS : PINS "-new");
	kernel.lock_fd = kernel.lock ? kernel.lock : dup(1);
	return kernel.lock ? weir_error_set(to, kernel.lock, "held") : kernel.lock_fd;
}

int weir_pins_switch(const char *pins, struct weir_switch *found, struct weir_error *to)
{
	(void)pins;
	*found = kernel.board;
	return kernel.switch_ ? weir_error_set(to, kernel.switch_, "another version") : 0;
}

void weir_pins_new_path(const char *pins, char *path, size_t size)
{
	snprintf(path, size, "%s-new", pins);
}

void weir_pins_empty(const char *folder)
{
	CU_ASSERT_STRING_EQUAL(folder, PINS "-new");
}

int weir_pins_clear(const char *folder)
{
	CU_ASSERT_STRING_EQUAL(folder, PINS "-new");
	kernel.cleared++;
	return 0;
}

int weir_pins_remove(const char *pins)
{
	CU_ASSERT_STRING_EQUAL(pins, PINS);
	kernel.removed++;
	return 0;
}

/* ---- tests ---- */

static void begin(void)
{
	memset(&kernel, 0, sizeof(kernel));
	kernel.lacks = -1;
	kernel.lock_fd = -1;
	note.text[0] = err.text[0] = '\0';
}

static int start(void)
{
	return weir_load_open(&load, PINS, KEYS, &note, &err);
}

/* A start that is refused in these words, and of which nothing is left. */
static void refused(int code, const char *words)
{
	CU_ASSERT_EQUAL(start(), code);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, words));
	if (!strstr(err.text, words))
		printf("  says: %s\n", err.text);
	CU_ASSERT_PTR_NULL(load.skeleton);
	CU_ASSERT(kernel.lock_fd < 0 || close(kernel.lock_fd) < 0);
	CU_ASSERT_EQUAL(kernel.pinned, 0);
}

static void an_old_kernel_is_refused_by_name(void)
{
	begin();
	kernel.lacks = BPF_FUNC_loop;
	refused(-ENOSYS, "has no bpf_loop for XDP (Linux has it since 5.17): weir needs Linux");
	kernel.lacks = BPF_FUNC_xdp_get_buff_len;
	refused(-ENOSYS, "has no bpf_xdp_get_buff_len for XDP (Linux has it since 5.18)");
	CU_ASSERT_EQUAL(kernel.loads, 0);
}

static void a_new_set_is_pinned_and_then_named(void)
{
	begin();
	CU_ASSERT_EQUAL_FATAL(start(), 0);
	CU_ASSERT_FALSE(load.adopted);
	CU_ASSERT_EQUAL(kernel.loads, 1);
	CU_ASSERT_EQUAL(weir_load_publish(&load, &err), 0);
	CU_ASSERT(kernel.pinned > 10);
	/* Once. */
	kernel.pinned = 0;
	CU_ASSERT_EQUAL(weir_load_publish(&load, &err), 0);
	CU_ASSERT_EQUAL(kernel.pinned, 0);
	weir_load_close(&load, true);
	CU_ASSERT_EQUAL(kernel.removed, 1);
	CU_ASSERT_EQUAL(kernel.unmounted, 1);
	begin();
	CU_ASSERT_EQUAL_FATAL(start(), 0);
	CU_ASSERT_EQUAL(weir_load_publish(&load, &err), 0);
	weir_load_close(&load, false);
	CU_ASSERT_EQUAL(kernel.removed + kernel.cleared + kernel.unmounted, 0);
}

static void what_cannot_be_published_is_taken_back(void)
{
	begin();
	CU_ASSERT_EQUAL_FATAL(start(), 0);
	kernel.pin = -ENOSPC;
	CU_ASSERT_EQUAL(weir_load_publish(&load, &err), -ENOSPC);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "can't pin " PINS "-new/weir_"));
	kernel.pin = 0;
	kernel.rename = -ENOTEMPTY;
	CU_ASSERT_EQUAL(weir_load_publish(&load, &err), -ENOTEMPTY);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "can't rename " PINS "-new to " PINS));
	weir_load_close(&load, true);
	CU_ASSERT_EQUAL(kernel.cleared, 1);
	CU_ASSERT_EQUAL(kernel.removed, 0);
}

static void a_place_that_cannot_be_had_is_refused(void)
{
	char longer[WEIR_PINS_SIZE + 1];

	begin();
	kernel.mount = -ENOTDIR;
	refused(-ENOTDIR, "no mount");
	CU_ASSERT_EQUAL(kernel.unmounted, 0);
	begin();
	kernel.look = -EEXIST;
	refused(-EEXIST, "not ours");
	CU_ASSERT_EQUAL(kernel.unmounted, 1);
	begin();
	kernel.mkdir = -EROFS;
	refused(-EROFS, "can't make " PINS "-new: Read-only");
	begin();
	/* Of one that another engine has, nothing is taken away. */
	kernel.lock = -EBUSY;
	kernel.mkdir = -EEXIST;
	refused(-EBUSY, "held");
	CU_ASSERT_EQUAL(kernel.cleared + kernel.removed, 0);
	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	CU_ASSERT_EQUAL(weir_load_open(&load, longer, KEYS, &note, &err), -ENAMETOOLONG);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "longer than 199 bytes"));
}

static void maps_that_are_refused_are_said_why(void)
{
	static const struct {
		int code;
		const char *words, *says;
	} cases[] = {
		{ -ENOMEM, NULL, "no memory for a ledger of 4096 places" },
		{ -EPERM, NULL, "weir needs root, or CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON" },
		{ -EINVAL, "map 'weir_x': no", "Invalid argument (map 'weir_x': no)" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin();
		kernel.load = cases[i].code;
		kernel.words = cases[i].words;
		refused(cases[i].code, cases[i].says);
		CU_ASSERT_EQUAL(kernel.cleared, 1);
		CU_ASSERT_EQUAL(kernel.unmounted, 1);
	}
}

static void types_that_the_kernel_did_not_take_end_the_start(void)
{
	begin();
	kernel.poor_types = true;
	refused(-ENOMEM, "didn't take the types of weir's programs");
	CU_ASSERT_EQUAL(kernel.cleared, 1);
}

/* Pins of an earlier engine, as they would be on this machine. */
static void begin_adoption(void)
{
	begin();
	kernel.look = 1;
	CU_ASSERT_EQUAL_FATAL(weir_shape_draw(&kernel.board.shape, KEYS), 0);
}

static void pins_that_do_not_fit_are_left_alone(void)
{
	char words[64];

	begin_adoption();
	kernel.switch_ = -EPROTO;
	refused(-EPROTO, "another version");
	begin_adoption();
	kernel.board.shape.cpus++;
	snprintf(words, sizeof(words), "are for %u CPUs, this machine has %u",
		 kernel.board.shape.cpus, kernel.board.shape.cpus - 1);
	refused(-EPROTO, words);
	begin_adoption();
	refused(-EPROTO, "has another size or type than this weir needs");
	begin_adoption();
	kernel.open_pin = -ENOENT;
	refused(-EPROTO, "or is missing: run `weir stop --detach`");
	begin_adoption();
	kernel.open_pin = -EACCES;
	refused(-EACCES, "can't open " PINS "/weir_");
	begin_adoption();
	kernel.look_at_pin = -EPERM;
	refused(-EPERM, "can't look at " PINS "/weir_");
	CU_ASSERT_EQUAL(kernel.cleared + kernel.removed, 0);
	CU_ASSERT_EQUAL(kernel.loads, 0);
}

static void another_size_of_the_ledger_is_noted(void)
{
	begin_adoption();
	kernel.board.shape.sets *= 4;
	kernel.open_pin = -ENOENT;
	refused(-EPROTO, "is missing");
	CU_ASSERT_PTR_NOT_NULL(strstr(note.text, "ledger.keys is 4096, but the ledger in use has "
						 "16384 places"));
}

static void programs_that_are_refused_are_said_why(void)
{
	struct weir_bpf *programs;

	begin();
	CU_ASSERT_EQUAL_FATAL(start(), 0);
	/* On maps that are not there: there are none here. */
	errno = 0;
	CU_ASSERT_PTR_NULL(weir_load_programs_open(&load, 1U << WEIR_HOOK_XDP));
	CU_ASSERT_EQUAL(errno, EBADF);
	programs = weir_bpf__open();
	CU_ASSERT_PTR_NOT_NULL_FATAL(programs);
	kernel.load = -EPERM;
	CU_ASSERT_EQUAL(weir_load_programs(programs, &err), -EPERM);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "lets us load no programs: weir needs root"));
	kernel.load = -EACCES;
	kernel.words = "invalid access to packet";
	CU_ASSERT_EQUAL(weir_load_programs(programs, &err), -EACCES);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "refused weir's programs: Permission denied "
						"(invalid access to packet)"));
	weir_bpf__destroy(programs);
	weir_load_close(&load, true);
}

WEIR_TESTS("load", TEST(an_old_kernel_is_refused_by_name), TEST(a_new_set_is_pinned_and_then_named),
	   TEST(what_cannot_be_published_is_taken_back),
	   TEST(a_place_that_cannot_be_had_is_refused), TEST(maps_that_are_refused_are_said_why),
	   TEST(types_that_the_kernel_did_not_take_end_the_start),
	   TEST(pins_that_do_not_fit_are_left_alone), TEST(another_size_of_the_ledger_is_noted),
	   TEST(programs_that_are_refused_are_said_why))
