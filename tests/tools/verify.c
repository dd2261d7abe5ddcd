// SPDX-License-Identifier: GPL-2.0
/*
 * verify [--budget FILE] OBJECT...: loads each program of BPF objects alone and says what the
 * running kernel's verifier made of it: how many instructions it walked, or its last words.
 * Nothing is attached. With a budget, lines `PROGRAM MOST`, a program that isn't in it, or that
 * makes the verifier walk more, has failed too. Exits 1 when one has.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/utsname.h>

#include "tool.h"

#define VERIFY_LINES 15
#define BUDGET_MAX 64

static char verify_log[16 << 20];

static struct {
	struct {
		char program[64];
		unsigned int most;
	} entries[BUDGET_MAX];
	unsigned int count;
	const char *path; /* NULL: none */
} budget;

static void read_budget(const char *path)
{
	FILE *file = fopen(path, "re");
	char line[256], rest;

	if (!file)
		die(TOOL_SYSTEM, "can't open %s: %s", path, strerror(errno));
	for (unsigned int number = 1; fgets(line, sizeof(line), file); number++) {
		if (line[0] == '#' || line[0] == '\n')
			continue;
		if (budget.count == BUDGET_MAX ||
		    sscanf(line, "%63s %u %c", budget.entries[budget.count].program,
			   &budget.entries[budget.count].most, &rest) != 2)
			die(TOOL_USAGE, "%s:%u: not a line PROGRAM MOST, or more than %d of them",
			    path, number, BUDGET_MAX);
		budget.count++;
	}
	fclose(file);
	budget.path = path;
}

/* Most instructions of the program; 0: the budget doesn't have it. */
static unsigned int budget_of(const char *program)
{
	for (unsigned int i = 0; i < budget.count; i++) {
		if (!strcmp(budget.entries[i].program, program))
			return budget.entries[i].most;
	}
	return 0;
}

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

/* What a program that loaded has to say: 1 within its budget, else 0. */
static int report(const char *name, const char *release, const struct bpf_prog_info *info)
{
	unsigned int most = budget_of(name);
	bool within = !budget.path || info->verified_insns <= most;

	printf("%s %s on %s: %u instructions walked, %u bytes of machine code",
	       within ? "ok" : "FAIL", name, release, info->verified_insns, info->jited_prog_len);
	if (!within && !most)
		printf(": %s has no line for it\n", budget.path);
	else if (!within)
		printf(": more than the %u of %s\n", most, budget.path);
	else
		printf("\n");
	return within;
}

/* 1: loaded, 0: refused or over its budget, -1: there is no program of that number. */
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
		code = !report(bpf_program__name(program), release, &info);
	bpf_object__close(object);
	return !code;
}

int main(int argc, char **argv)
{
	int passed = 0, failed = 0, first = 1, verdict;
	struct utsname kernel;

	tool_setup();
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 2 && !strcmp(argv[1], "--budget")) {
		read_budget(argv[2]);
		first = 3;
	}
	if (argc <= first)
		die(TOOL_USAGE, "usage: verify [--budget FILE] OBJECT...");
	uname(&kernel);
	for (int i = first; i < argc; i++)
		for (int n = 0; (verdict = verify_program(argv[i], n, kernel.release)) >= 0; n++) {
			passed += verdict;
			failed += !verdict;
		}
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
