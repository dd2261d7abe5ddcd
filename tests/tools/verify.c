// SPDX-License-Identifier: GPL-2.0
/*
 * verify OBJECT...: loads each program of BPF objects alone and says what the running kernel's
 * verifier made of it: how many instructions it walked, or its last words. Nothing is attached.
 * Exits 1 when a program was refused.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/utsname.h>

#include "tool.h"

#define VERIFY_LINES 15

static char verify_log[16 << 20];

static const char *last_lines(const char *text, int lines)
{
	const char *from = text + strlen(text);

	while (from > text && lines >= 0)
		lines -= *--from == '\n';
	return from > text ? from + 1 : text;
}

static struct bpf_program *only_program(struct bpf_object *object, int number)
{
	struct bpf_program *program, *only = NULL;

	bpf_object__for_each_program(program, object)
	{
		if (!number--)
			only = program;
		bpf_program__set_autoload(program, only == program);
	}
	return only;
}

/* 1: loaded, 0: refused, -1: there is no program of that number. */
static int verify_program(const char *path, int number, const char *release)
{
	struct bpf_object *object = bpf_object__open_file(path, NULL);
	struct bpf_prog_info info = { 0 };
	struct bpf_program *program;
	uint32_t size = sizeof(info);
	int code;

	if (!object)
		die(TOOL_SYSTEM, "can't open %s: %s", path, strerror(errno));
	program = only_program(object, number);
	if (!program) {
		bpf_object__close(object);
		return -1;
	}
	verify_log[0] = '\0';
	bpf_program__set_log_buf(program, verify_log, sizeof(verify_log));
	code = bpf_object__load(object);
	if (!code && bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size))
		code = -errno;
	if (code)
		printf("FAIL %s on %s: %s\n%s", bpf_program__name(program), release,
		       strerror(-code), last_lines(verify_log, VERIFY_LINES));
	else
		printf("ok %s on %s: %u instructions walked, %u bytes of machine code\n",
		       bpf_program__name(program), release, info.verified_insns,
		       info.jited_prog_len);
	bpf_object__close(object);
	return !code;
}

int main(int argc, char **argv)
{
	int passed = 0, failed = 0, verdict;
	struct utsname kernel;

	tool_setup();
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 2)
		die(TOOL_USAGE, "give the BPF objects to load");
	uname(&kernel);
	for (int i = 1; i < argc; i++)
		for (int n = 0; (verdict = verify_program(argv[i], n, kernel.release)) >= 0; n++) {
			passed += verdict;
			failed += !verdict;
		}
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
