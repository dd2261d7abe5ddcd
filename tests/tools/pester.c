// SPDX-License-Identifier: GPL-2.0
/*
 * Bad clients of a Unix stream socket, as many at once as there is room for, and new ones where
 * the server ended some. Prints a line when it has begun, then {"opened", "ended", "bytes"}.
 *
 *	pester --socket PATH --count N --seconds S --manner MANNER
 *
 *	half      begins a request and says no more
 *	huge      sends a line without an end, until N MiB are sent
 *	wrong     sends what is no request, line after line
 *	deaf      asks to see everything, again and again, and reads nothing
 *	watch     subscribes to the refusals and reads nothing
 *
 * N is how many connections in all (of huge: MiB; it opens a new one where it is cut off).
 */
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tools/tool.h"

#define COUNT_MAX 20000
#define OPEN_MAX 1000 /* at once */

static const struct manner {
	const char *name, *says;
	bool again; /* says it as long as it is taken */
} manners[] = {
	{ "half", "{\"command\":", false },
	{ "huge", NULL, true },
	{ "wrong", "{\"command\": 1}\n\xff\n[[[[\n{\"command\":\"show\",\"arguments\":[]}\n",
	  true },
	{ "deaf", "{\"command\":\"show\"}\n", true },
	{ "watch", "{\"command\":\"watch\"}\n", false },
};

static struct sockaddr_un address = { .sun_family = AF_UNIX };
static const struct manner *manner;
static struct pollfd fds[OPEN_MAX];
static size_t open_now, opened, ended;
static uint64_t bytes;

/* False: the queue is full, or nobody listens. */
static bool open_one(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		die(TOOL_SYSTEM, "socket: %s", strerror(errno));
	if (connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		if (errno != EAGAIN)
			die(TOOL_SYSTEM, "connect: %s", strerror(errno));
		close(fd);
		return false;
	}
	/* An end by the server is seen without reading anything. */
	fds[open_now++] = (struct pollfd){ .fd = fd, .events = POLLOUT | POLLRDHUP };
	opened++;
	return true;
}

static bool say(int fd)
{
	static char filler[65536];
	const char *text = manner->says ? manner->says : memset(filler, 'z', sizeof(filler));
	ssize_t sent = send(fd, text, manner->says ? strlen(text) : sizeof(filler), MSG_NOSIGNAL);

	if (sent > 0)
		bytes += (uint64_t)sent;
	return sent > 0 || errno == EAGAIN;
}

static void attend(size_t i)
{
	bool over = fds[i].revents & (POLLRDHUP | POLLHUP | POLLERR);

	if (!over && fds[i].revents & POLLOUT) {
		over = !say(fds[i].fd);
		if (!manner->again)
			fds[i].events = POLLRDHUP;
	}
	if (!over)
		return;
	close(fds[i].fd);
	ended++;
	fds[i] = fds[--open_now];
}

static void run(size_t count, uint64_t until_ns)
{
	bool huge = !manner->says;

	puts("{\"ready\": true}");
	while (!tool_stopped && tool_now_ns() < until_ns) {
		size_t most = huge ? 1 : OPEN_MAX;

		if (huge && bytes >= (uint64_t)count << 20)
			break;
		while (open_now < most && (huge || opened < count) && open_one())
			;
		if (poll(fds, open_now, 10) <= 0)
			continue;
		for (size_t i = open_now; i-- > 0;) {
			if (fds[i].revents)
				attend(i);
		}
	}
	printf("{\"opened\": %zu, \"ended\": %zu, \"bytes\": %" PRIu64 "}\n", opened, ended, bytes);
}

static const struct manner *manner_of(const char *text)
{
	for (size_t i = 0; i < sizeof(manners) / sizeof(manners[0]); i++) {
		if (!strcmp(manners[i].name, text))
			return &manners[i];
	}
	die(TOOL_USAGE, "manner '%s': give half, huge, wrong, deaf or watch", text);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "socket", required_argument, NULL, 'u' },
		{ "count", required_argument, NULL, 'c' },
		{ "seconds", required_argument, NULL, 's' },
		{ "manner", required_argument, NULL, 'm' },
		{ 0 },
	};
	const struct rlimit files = { OPEN_MAX + 100, OPEN_MAX + 100 };
	uint64_t count = 0, ns = 0;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'u':
			if (strlen(optarg) >= sizeof(address.sun_path))
				die(TOOL_USAGE, "--socket '%s': too long", optarg);
			strcpy(address.sun_path, optarg);
			break;
		case 'c':
			count = tool_number("--count", optarg, 1, COUNT_MAX);
			break;
		case 's':
			ns = tool_seconds("--seconds", optarg);
			break;
		case 'm':
			manner = manner_of(optarg);
			break;
		default:
			return TOOL_USAGE;
		}
	}
	if (!*address.sun_path || !count || !ns || !manner)
		die(TOOL_USAGE, "give --socket, --count, --seconds, --manner");
	setrlimit(RLIMIT_NOFILE, &files);
	tool_setup();
	run(count, tool_now_ns() + ns);
	return 0;
}
