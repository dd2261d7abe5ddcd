// SPDX-License-Identifier: GPL-2.0
/*
 * screen: runs a program on a terminal of its own (a pseudo-terminal with an emulator behind
 * it), types, resizes, and shows what is on the screen. Says at the end how the program left.
 */
#include "emulator.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <utmp.h>

static const char usage[] =
	"usage: screen --size WxH [STEP...] -- COMMAND [ARGUMENT...]\n"
	"steps, in their order:\n"
	"  until=TEXT     until the screen has TEXT (10 s at most, else it fails)\n"
	"  gone=TEXT      until it has not\n"
	"  wait=SECONDS\n"
	"  type=TEXT      ^[ is Escape, ^M is Enter\n"
	"  resize=WxH\n"
	"  dump=FILE      the screen, as text\n"
	"  signal=NUMBER  to the program\n"
	"The program must then end within 5 s. Prints {\"exit\", \"signal\", \"ended_ms\", "
	"\"restored\"}:\nhow it ended, after how long, and whether the terminal is as it was.\n";

#define PATIENCE_NS (10 * NS_PER_SEC)
#define END_NS (5 * NS_PER_SEC)
#define SETTLE_MS 100

static struct emulator term;
static int terminal;
static pid_t program;
static bool ended;
static char text[EMULATOR_ROWS * EMULATOR_COLUMNS * 3];

/* Reads what the program writes within so many milliseconds; whether there was anything. */
static bool listen_for(int ms)
{
	struct pollfd poll_fd = { .fd = terminal, .events = POLLIN };
	uint8_t bytes[4096];
	ssize_t got;

	if (ended || poll(&poll_fd, 1, ms) <= 0)
		return false;
	got = read(terminal, bytes, sizeof(bytes));
	/* EIO is the end: nobody has the other side open. */
	if (got <= 0) {
		ended = true;
		return false;
	}
	for (ssize_t i = 0; i < got; i++)
		emulator_feed(&term, bytes[i]);
	return true;
}

/* Until all of a picture is there: nothing new for a while. */
static void settle(void)
{
	uint64_t end_ns = tool_now_ns() + PATIENCE_NS;

	while (listen_for(SETTLE_MS)) {
		if (tool_now_ns() > end_ns)
			die(1, "the screen doesn't come to rest");
	}
}

static bool has(const char *wanted)
{
	emulator_dump(&term, text, sizeof(text));
	return strstr(text, wanted);
}

static void wait_until(const char *wanted, bool there)
{
	uint64_t end_ns = tool_now_ns() + PATIENCE_NS;

	while (has(wanted) != there && !ended && tool_now_ns() < end_ns)
		listen_for(50);
	if (has(wanted) != there)
		die(1, "'%s' is %s the screen:\n%s", wanted, there ? "not on" : "still on", text);
}

static void wait_for(const char *seconds)
{
	uint64_t end_ns = tool_now_ns() + tool_seconds("wait", seconds);

	while (!ended && tool_now_ns() < end_ns)
		listen_for(50);
}

static void type(const char *what)
{
	for (; *what; what++) {
		char byte = *what;

		if (byte == '^' && what[1])
			byte = (char)(*++what & 0x1f);
		if (write(terminal, &byte, 1) != 1)
			die(TOOL_SYSTEM, "can't type: %s", strerror(errno));
	}
}

static void read_size(const char *size, int *columns, int *rows)
{
	if (sscanf(size, "%dx%d", columns, rows) != 2)
		die(TOOL_USAGE, "'%s' is no size: write 80x24", size);
}

static void resize(const char *size)
{
	int columns, rows;
	struct winsize to;

	read_size(size, &columns, &rows);
	settle();
	emulator_resize(&term, columns, rows);
	to = (struct winsize){ .ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns };
	if (ioctl(terminal, TIOCSWINSZ, &to))
		die(TOOL_SYSTEM, "can't resize: %s", strerror(errno));
}

static void dump(const char *path)
{
	FILE *file = fopen(path, "w");

	if (!file)
		die(TOOL_SYSTEM, "%s: %s", path, strerror(errno));
	settle();
	emulator_dump(&term, text, sizeof(text));
	fputs(text, file);
	fclose(file);
}

static const char *value_of(const char *step, const char *name)
{
	size_t length = strlen(name);

	return strncmp(step, name, length) || step[length] != '=' ? NULL : step + length + 1;
}

static void take(const char *step)
{
	const char *value;

	if ((value = value_of(step, "until")))
		wait_until(value, true);
	else if ((value = value_of(step, "gone")))
		wait_until(value, false);
	else if ((value = value_of(step, "wait")))
		wait_for(value);
	else if ((value = value_of(step, "type")))
		type(value);
	else if ((value = value_of(step, "resize")))
		resize(value);
	else if ((value = value_of(step, "dump")))
		dump(value);
	else if ((value = value_of(step, "signal")))
		kill(program, (int)tool_number("signal", value, 1, 64));
	else
		die(TOOL_USAGE, "unknown step '%s'\n%s", step, usage);
}

/* Modes of the line that a program in raw mode changes. */
static bool same_modes(const struct termios *a, const struct termios *b)
{
	return a->c_lflag == b->c_lflag && a->c_iflag == b->c_iflag && a->c_oflag == b->c_oflag;
}

static void finish(const struct termios *before, int held)
{
	uint64_t begun_ns = tool_now_ns();
	struct termios after;
	int status = 0;
	pid_t got = 0;

	while (!got && tool_now_ns() - begun_ns < END_NS) {
		listen_for(10);
		got = waitpid(program, &status, WNOHANG);
	}
	while (listen_for(10))
		;
	if (!got) {
		kill(program, SIGKILL);
		waitpid(program, NULL, 0);
		die(1, "the program didn't end");
	}
	if (tcgetattr(held, &after))
		die(TOOL_SYSTEM, "tcgetattr: %s", strerror(errno));
	printf("{\"exit\": %d, \"signal\": %d, \"ended_ms\": %llu, \"restored\": %s}\n",
	       WIFEXITED(status) ? WEXITSTATUS(status) : -1,
	       WIFSIGNALED(status) ? WTERMSIG(status) : 0,
	       (unsigned long long)((tool_now_ns() - begun_ns) / 1000000),
	       same_modes(before, &after) && !term.other_screen && !term.cursor_hidden ? "true"
										       : "false");
}

static void end_program(void)
{
	if (program > 0)
		kill(program, SIGKILL);
}

int main(int argc, char **argv)
{
	int first = 3, command = 3, columns, rows, held;
	struct termios before;
	struct winsize size;

	if (argc < 5 || strcmp(argv[1], "--size"))
		die(TOOL_USAGE, "%s", usage);
	read_size(argv[2], &columns, &rows);
	emulator_resize(&term, columns, rows);
	while (command < argc && strcmp(argv[command], "--"))
		command++;
	if (command + 1 >= argc)
		die(TOOL_USAGE, "%s", usage);
	size = (struct winsize){ .ws_row = (unsigned short)rows,
				 .ws_col = (unsigned short)columns };
	/* Our own hold on its side, so that its modes can be asked for at the end. */
	if (openpty(&terminal, &held, NULL, NULL, &size) || tcgetattr(held, &before))
		die(TOOL_SYSTEM, "no pseudo-terminal: %s", strerror(errno));
	fcntl(terminal, F_SETFD, FD_CLOEXEC);
	program = fork();
	if (!program) {
		login_tty(held);
		execvp(argv[command + 1], argv + command + 1);
		die(127, "%s: %s", argv[command + 1], strerror(errno));
	}
	atexit(end_program);
	for (; first < command; first++)
		take(argv[first]);
	finish(&before, held);
	program = 0;
	return 0;
}
