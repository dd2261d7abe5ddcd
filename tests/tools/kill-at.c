// SPDX-License-Identifier: GPL-2.0
/*
 * kill-at: SIGKILL for a process at the N-th system call by which it would change something, or
 * (--fail) an error for that call.
 *
 *	kill-at N [--fail ERRNO] [--until TEXT] -- COMMAND...	starts COMMAND and follows it
 *	kill-at N [--fail ERRNO] --pid PID [--to-end] -- COMMAND...
 *								follows PID while COMMAND runs
 *
 * The call is not made: 1 .. N-1 were, so N = 1, 2, ... until nothing is killed any more is a
 * fault between any two steps. What counts as a change: files made, renamed and removed, bytes
 * written to anything but stdout and stderr, maps and links of BPF, pins, programs attached,
 * requests to netlink that are no questions, sockets bound, mounts; with --fail also maps made,
 * programs loaded and pins opened, which a killed process leaves nothing of.
 *
 * With --until the process is let go, alive, when it writes TEXT to stdout or stderr, and waited
 * for; with --pid when COMMAND has ended, with --to-end not before PID has. A process that
 * kill-at started dies with kill-at.
 *
 * One line of JSON on stdout for each of: "started" (the process's id), "free" (it was let go),
 * and at the end "killed" or "ended"; "failed" says whether a call was made to, "exit" how the
 * process ended that kill-at started. COMMAND's own output goes to stderr.
 * Exit codes: 0 it was killed, or the call failed; 1 neither; 2 the system refuses; 64 usage.
 */
#include "tool.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/netlink.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEXT_MAX 4096

static const char usage[] = "usage: kill-at N [--fail ERRNO] [--until TEXT] -- COMMAND...\n"
			    "       kill-at N [--fail ERRNO] --pid PID [--to-end] -- COMMAND...\n";

static struct {
	uint64_t at, seen;
	const char *until;
	pid_t pid;     /* who is followed */
	pid_t command; /* who runs beside it, 0: nobody (any more) */
	int command_status;
	bool attached, to_end, killed, freed;
	int error; /* for the call, instead of a kill; 0: a kill */
	bool failing, failed;
	int exit;
	char call[64];
} run;

/* Calls that change something whatever their arguments are. */
static const struct {
	long number;
	const char *name;
} changing[] = {
#define CALL(name)                                                                                 \
	{                                                                                          \
		SYS_##name, #name                                                                  \
	}
	CALL(rename),	  CALL(renameat), CALL(renameat2), CALL(unlink),   CALL(unlinkat),
	CALL(mkdir),	  CALL(mkdirat),  CALL(rmdir),	   CALL(symlink),  CALL(symlinkat),
	CALL(link),	  CALL(linkat),	  CALL(chmod),	   CALL(fchmodat), CALL(chown),
	CALL(fchownat),	  CALL(mount),	  CALL(umount2),   CALL(listen),   CALL(ftruncate),
	CALL(fallocate),  CALL(fsync),	  CALL(flock),	   CALL(pwrite64), CALL(sendmsg),
	CALL(exit_group),
#undef CALL
};

static const char *const bpf_changing[] = {
	[BPF_MAP_UPDATE_ELEM] = "map update",
	[BPF_MAP_DELETE_ELEM] = "map delete",
	[BPF_MAP_UPDATE_BATCH] = "map update",
	[BPF_MAP_DELETE_BATCH] = "map delete",
	[BPF_OBJ_PIN] = "pin",
	[BPF_PROG_ATTACH] = "attach",
	[BPF_PROG_DETACH] = "detach",
	[BPF_RAW_TRACEPOINT_OPEN] = "tracepoint",
	[BPF_LINK_CREATE] = "link",
	[BPF_LINK_UPDATE] = "link update",
	[BPF_LINK_DETACH] = "link detach",
};

/* Refused for want of memory or descriptors. */
static const char *const bpf_failing[] = {
	[BPF_MAP_CREATE] = "map create",
	[BPF_PROG_LOAD] = "program load",
	[BPF_OBJ_GET] = "pin open",
	[BPF_BTF_LOAD] = "types load",
};

#define NAME_AT(names, i) ((i) < sizeof(names) / sizeof((names)[0]) ? (names)[i] : NULL)

/* ---- the process's memory ---- */

static bool peek(uint64_t address, void *to, size_t size)
{
	struct iovec here = { to, size }, there = { (void *)(uintptr_t)address, size };

	return process_vm_readv(run.pid, &here, 1, &there, 1, 0) == (ssize_t)size;
}

/* What a write or writev would write, as a text. */
static void peek_text(uint64_t number, const uint64_t *args, char text[static TEXT_MAX])
{
	struct iovec part = { (void *)(uintptr_t)args[1], args[2] };

	text[0] = '\0';
	if (number == SYS_writev && !peek(args[1], &part, sizeof(part)))
		return;
	if (part.iov_len >= TEXT_MAX)
		part.iov_len = TEXT_MAX - 1;
	if (peek((uintptr_t)part.iov_base, text, part.iov_len))
		text[part.iov_len] = '\0';
}

/* ---- what a call is ---- */

/* A request to netlink that only asks: RTM_GET..., by rtnetlink's numbering. */
static bool is_question(uint64_t address, uint64_t size)
{
	struct nlmsghdr head;

	return size >= sizeof(head) && peek(address, &head, sizeof(head)) &&
	       head.nlmsg_len == size && head.nlmsg_type >= 16 && (head.nlmsg_type & 3) == 2;
}

static bool is_netlink(uint64_t address)
{
	uint16_t family;

	return peek(address, &family, sizeof(family)) && family == AF_NETLINK;
}

static const char *bpf_change_of(uint64_t command)
{
	const char *name = NAME_AT(bpf_changing, command);

	return name || !run.error ? name : NAME_AT(bpf_failing, command);
}

/* The name of what the call would change, or NULL. */
static const char *change_of(uint64_t number, const uint64_t *args)
{
	switch (number) {
	case SYS_bpf:
		return bpf_change_of(args[0]);
	case SYS_openat:
		return args[2] & O_CREAT ? "create" : NULL;
	case SYS_write:
	case SYS_writev:
		return args[0] > STDERR_FILENO ? "write" : NULL;
	case SYS_sendto:
		return is_question(args[1], args[2]) ? NULL : "send";
	case SYS_bind:
		return is_netlink(args[1]) ? NULL : "bind";
	default:
		break;
	}
	for (size_t i = 0; i < sizeof(changing) / sizeof(changing[0]); i++) {
		if ((uint64_t)changing[i].number == number)
			return changing[i].name;
	}
	return NULL;
}

/* ---- following ---- */

static void say(const char *what)
{
	printf("{\"event\":\"%s\",\"pid\":%d,\"changes\":%" PRIu64
	       ",\"call\":\"%s\",\"failed\":%s,\"exit\":%d,\"command_exit\":%d}\n",
	       what, run.pid, run.seen, run.call, run.failed ? "true" : "false", run.exit,
	       run.command_status);
	fflush(stdout);
}

static bool is_until(uint64_t number, const uint64_t *args)
{
	char text[TEXT_MAX];

	if (!run.until || (number != SYS_write && number != SYS_writev) || args[0] > STDERR_FILENO)
		return false;
	peek_text(number, args, text);
	return strstr(text, run.until);
}

static void let_go(void)
{
	ptrace(PTRACE_DETACH, run.pid, 0, 0);
	run.freed = true;
	say("free");
}

#ifdef __x86_64__
/* No call has this number, so none is made. */
static void skip_call(void)
{
	struct user_regs_struct registers;

	ptrace(PTRACE_GETREGS, run.pid, 0, &registers);
	registers.orig_rax = (unsigned long long)-1;
	ptrace(PTRACE_SETREGS, run.pid, 0, &registers);
	run.failing = true;
}

static void give_error(void)
{
	struct user_regs_struct registers;

	ptrace(PTRACE_GETREGS, run.pid, 0, &registers);
	registers.rax = (unsigned long long)-run.error;
	ptrace(PTRACE_SETREGS, run.pid, 0, &registers);
	run.failing = false;
	run.failed = true;
}
#else
static void skip_call(void)
{
	die(TOOL_SYSTEM, "--fail knows the registers of x86-64 only");
}

static void give_error(void)
{
}
#endif

/* The process is stopped where it enters a call. Whether it may go on, still followed. */
static bool on_entry(const struct __ptrace_syscall_info *info)
{
	const uint64_t *args = (const uint64_t *)info->entry.args;
	const char *change = change_of(info->entry.nr, args);

	if (is_until(info->entry.nr, args)) {
		let_go();
		return false;
	}
	if (!change)
		return true;
	if (++run.seen != run.at)
		return true;
	snprintf(run.call, sizeof(run.call), "%s", change);
	if (run.error) {
		skip_call();
		return true;
	}
	run.killed = true;
	kill(run.pid, SIGKILL);
	return false;
}

/* A stop of the process: by a call, by a signal for it, by us. */
static void on_stop(int status)
{
	struct __ptrace_syscall_info info;
	int signal = WSTOPSIG(status);

	if (signal == (SIGTRAP | 0x80)) {
		signal = 0;
		if (run.failing)
			give_error();
		else if (ptrace(PTRACE_GET_SYSCALL_INFO, run.pid, sizeof(info), &info) > 0 &&
			 info.op == PTRACE_SYSCALL_INFO_ENTRY && !on_entry(&info))
			return;
	} else if (signal == SIGTRAP || status >> 16) {
		signal = 0;
	}
	/* The command is over, and only what it asked for counts. */
	if (run.attached && !run.to_end && !run.command)
		let_go();
	else
		ptrace(PTRACE_SYSCALL, run.pid, 0, signal);
}

static int exit_of(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Until the process is gone, or was let go and is none of ours; and the command too. */
static void follow(void)
{
	bool gone = false;

	while (!gone || run.command) {
		int status;
		pid_t pid = waitpid(-1, &status, __WALL);

		if (pid < 0 && errno == EINTR && !tool_stopped)
			continue;
		if (pid < 0)
			break;
		if (pid == run.pid && WIFSTOPPED(status)) {
			on_stop(status);
		} else if (pid == run.pid) {
			gone = true;
			run.exit = exit_of(status);
		} else if (pid == run.command) {
			run.command = 0;
			run.command_status = exit_of(status);
			if (!gone && !run.to_end && !run.killed)
				ptrace(PTRACE_INTERRUPT, run.pid, 0, 0);
		}
		gone |= run.attached && run.freed;
	}
}

/* ---- start ---- */

static pid_t start(char **command, bool traced)
{
	pid_t pid = fork();

	if (pid < 0)
		die(TOOL_SYSTEM, "can't fork: %s", strerror(errno));
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(STDERR_FILENO, STDOUT_FILENO);
	if (traced) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
	}
	execvp(command[0], command);
	fprintf(stderr, "kill-at: %s: %s\n", command[0], strerror(errno));
	_exit(TOOL_SYSTEM);
}

static void start_followed(char **command)
{
	int status;

	run.pid = start(command, true);
	if (waitpid(run.pid, &status, 0) < 0 || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_SETOPTIONS, run.pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL))
		die(TOOL_SYSTEM, "can't follow %s: %s", command[0], strerror(errno));
	say("started");
	ptrace(PTRACE_SYSCALL, run.pid, 0, 0);
}

static void attach(char **command)
{
	int status;

	if (ptrace(PTRACE_SEIZE, run.pid, 0, PTRACE_O_TRACESYSGOOD) ||
	    ptrace(PTRACE_INTERRUPT, run.pid, 0, 0) || waitpid(run.pid, &status, __WALL) < 0)
		die(TOOL_SYSTEM, "can't follow process %d: %s", run.pid, strerror(errno));
	ptrace(PTRACE_SYSCALL, run.pid, 0, 0);
	run.command = start(command, false);
}

static char **parse_arguments(int argc, char **argv)
{
	int i = 2;

	if (argc < 2)
		die(TOOL_USAGE, "how many calls?\n%s", usage);
	run.at = tool_number("N", argv[1], 1, UINT32_MAX);
	for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (strcmp(argv[i], "--to-end") == 0) {
			run.to_end = true;
		} else if (i + 1 < argc && strcmp(argv[i], "--until") == 0) {
			run.until = argv[++i];
		} else if (i + 1 < argc && strcmp(argv[i], "--fail") == 0) {
			run.error = (int)tool_number("--fail", argv[++i], 1, 4095);
		} else if (i + 1 < argc && strcmp(argv[i], "--pid") == 0) {
			run.pid = (pid_t)tool_number("--pid", argv[++i], 1, INT32_MAX);
			run.attached = true;
		} else {
			die(TOOL_USAGE, "unknown '%s'\n%s", argv[i], usage);
		}
	}
	if (i + 1 >= argc)
		die(TOOL_USAGE, "-- COMMAND is needed\n%s", usage);
	return argv + i + 1;
}

int main(int argc, char **argv)
{
	char **command = parse_arguments(argc, argv);

	tool_setup();
	if (run.attached)
		attach(command);
	else
		start_followed(command);
	follow();
	if (!run.freed)
		say(run.killed ? "killed" : "ended");
	return !run.killed && !run.failed;
}
