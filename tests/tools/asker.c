// SPDX-License-Identifier: GPL-2.0
/*
 * asker: requests to weir's control socket over one connection, at an exact rate, the lines
 * given taken in turn. A line is sent when it is due and the one before has its answer.
 *
 * What it can't keep up with it reports: asked is how many were answered in the time.
 */
#include "tool.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LINES_MAX 16
#define ANSWER_MAX 65536
#define ANSWER_SECONDS 10

static const char usage[] =
	"usage: asker --socket PATH --seconds S --rate N --line JSON [--line JSON ...]\n"
	"Prints one line of JSON at the end: asked, refused, the slowest answer in microseconds "
	"and\n"
	"the last answer.\n";

static struct {
	const char *socket, *lines[LINES_MAX];
	unsigned int line_count;
	uint64_t duration_ns, rate;
	uint64_t asked, refused, slowest_ns;
	char answer[ANSWER_MAX];
} asker;

static void parse_arguments(int argc, char **argv)
{
	for (int i = 1; i < argc; i += 2) {
		const char *value = argv[i + 1];

		if (!value)
			die(TOOL_USAGE, "'%s' needs a value\n%s", argv[i], usage);
		if (strcmp(argv[i], "--socket") == 0)
			asker.socket = value;
		else if (strcmp(argv[i], "--seconds") == 0)
			asker.duration_ns = tool_seconds("--seconds", value);
		else if (strcmp(argv[i], "--rate") == 0)
			asker.rate = tool_number("--rate", value, 1, 100000);
		else if (strcmp(argv[i], "--line") == 0 && asker.line_count < LINES_MAX)
			asker.lines[asker.line_count++] = value;
		else
			die(TOOL_USAGE, "unknown '%s %s', or more than %d lines\n%s", argv[i],
			    value, LINES_MAX, usage);
	}
	if (!asker.socket || !asker.duration_ns || !asker.rate || !asker.line_count)
		die(TOOL_USAGE, "--socket, --seconds, --rate and --line are needed\n%s", usage);
}

static int join(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const struct timeval patience = { .tv_sec = ANSWER_SECONDS };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (strlen(asker.socket) >= sizeof(address.sun_path))
		die(TOOL_USAGE, "socket '%s': too long", asker.socket);
	strcpy(address.sun_path, asker.socket);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ||
	    connect(fd, (struct sockaddr *)&address, sizeof(address)))
		die(TOOL_SYSTEM, "socket '%s': %s", asker.socket, strerror(errno));
	return fd;
}

/* One answer is one line: nothing else comes before the next request. */
static void read_answer(int fd)
{
	size_t used = 0;

	while (!used || asker.answer[used - 1] != '\n') {
		ssize_t n = recv(fd, asker.answer + used, sizeof(asker.answer) - used, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			die(TOOL_SYSTEM, "no answer to request %" PRIu64 ": %s", asker.asked,
			    n				   ? strerror(errno)
			    : used == sizeof(asker.answer) ? "it is too long"
							   : "the socket was closed");
		used += (size_t)n;
	}
	asker.answer[used - 1] = '\0';
}

static void ask(int fd, const char *line)
{
	uint64_t start = tool_now_ns(), took;
	size_t length = strlen(line);

	if (send(fd, line, length, MSG_MORE) != (ssize_t)length || send(fd, "\n", 1, 0) != 1)
		die(TOOL_SYSTEM, "request %" PRIu64 ": %s", asker.asked, strerror(errno));
	read_answer(fd);
	took = tool_now_ns() - start;
	if (took > asker.slowest_ns)
		asker.slowest_ns = took;
	asker.asked++;
	if (strncmp(asker.answer, "{\"ok\":true", 10) != 0 &&
	    strncmp(asker.answer, "{\"ok\": true", 11) != 0)
		asker.refused++;
}

int main(int argc, char **argv)
{
	uint64_t start;
	int fd;

	tool_setup();
	parse_arguments(argc, argv);
	fd = join();
	start = tool_now_ns();
	for (uint64_t next = 0; !tool_stopped; next++) {
		uint64_t due = start + next * NS_PER_SEC / asker.rate;
		struct timespec until = { (time_t)(due / NS_PER_SEC), (long)(due % NS_PER_SEC) };

		if (due >= start + asker.duration_ns || tool_now_ns() >= start + asker.duration_ns)
			break;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
		ask(fd, asker.lines[next % asker.line_count]);
	}
	printf("{\"final\":true,\"elapsed_s\":%.3f,\"asked\":%" PRIu64 ",\"refused\":%" PRIu64
	       ",\"slowest_us\":%" PRIu64 ",\"last\":%s}\n",
	       (double)(tool_now_ns() - start) / 1e9, asker.asked, asker.refused,
	       asker.slowest_ns / 1000, asker.asked ? asker.answer : "null");
	close(fd);
	return 0;
}
