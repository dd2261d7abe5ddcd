// SPDX-License-Identifier: GPL-2.0
/*
 * Many connections to an HTTP server at once, each a bad client. Prints {"opened", "ended"}: of
 * the connections, how many were let in, how many the server ended; a line when all are begun.
 *
 *	crowd --to ADDRESS --port PORT --count N --seconds S --manner MANNER [--path PATH]
 *
 *	idle      says nothing
 *	trickle   sends a header line's byte from time to time, and no end
 *	deaf      asks, many times in a row, and reads nothing
 *	eager     asks again as soon as it has the answer
 */
#include <fcntl.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/tool.h"

#define COUNT_MAX 4000
#define IN_A_ROW 50

enum manner { IDLE, TRICKLE, DEAF, EAGER };

static struct in6_addr to;
static uint16_t port;
static char request[512];
static enum manner manner;
static struct pollfd fds[COUNT_MAX];
static bool opened[COUNT_MAX];

static int open_one(void)
{
	struct sockaddr_in6 address = { .sin6_family = AF_INET6,
					.sin6_addr = to,
					.sin6_port = htons(port) };
	int off = 0, little = 2048;
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		die(TOOL_SYSTEM, "socket: %s", strerror(errno));
	setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (manner == DEAF)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little));
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) && errno != EINPROGRESS)
		die(TOOL_SYSTEM, "connect: %s", strerror(errno));
	return fd;
}

static void speak(int fd)
{
	if (manner == TRICKLE) {
		send(fd, "GET / HTTP/1.1\r\nX: ", 19, MSG_NOSIGNAL);
	} else if (manner == EAGER) {
		send(fd, request, strlen(request), MSG_NOSIGNAL);
	} else if (manner == DEAF) {
		for (int i = 0; i < IN_A_ROW; i++)
			send(fd, request, strlen(request), MSG_NOSIGNAL);
	}
}

/* Ended by the server: what is left isn't looked at any more. */
static void end_one(size_t i)
{
	close(fds[i].fd);
	fds[i].fd = -1;
}

static void attend(size_t i)
{
	char text[65536];
	ssize_t got;

	if (!opened[i] && fds[i].revents & POLLOUT && !(fds[i].revents & (POLLERR | POLLHUP))) {
		opened[i] = true;
		fds[i].events = manner == DEAF ? 0 : POLLIN;
		speak(fds[i].fd);
	} else if (fds[i].revents & (POLLERR | POLLHUP)) {
		end_one(i);
	} else if (fds[i].revents & POLLIN) {
		got = recv(fds[i].fd, text, sizeof(text), 0);
		if (!got || (got < 0 && errno != EAGAIN))
			end_one(i);
		else if (manner == EAGER)
			speak(fds[i].fd);
	}
}

static void run(size_t count, uint64_t until_ns)
{
	uint64_t trickled_ns = 0;
	size_t were_open = 0, ended = 0;

	for (size_t i = 0; i < count; i++)
		fds[i] = (struct pollfd){ .fd = open_one(), .events = POLLOUT };
	puts("{\"ready\": true}");
	while (!tool_stopped && tool_now_ns() < until_ns) {
		poll(fds, count, 50);
		for (size_t i = 0; i < count; i++) {
			if (fds[i].fd >= 0 && fds[i].revents)
				attend(i);
		}
		if (manner != TRICKLE || tool_now_ns() - trickled_ns < NS_PER_SEC / 4)
			continue;
		trickled_ns = tool_now_ns();
		for (size_t i = 0; i < count; i++) {
			if (fds[i].fd >= 0 && opened[i])
				send(fds[i].fd, "x", 1, MSG_NOSIGNAL);
		}
	}
	for (size_t i = 0; i < count; i++) {
		were_open += opened[i];
		ended += fds[i].fd < 0;
	}
	printf("{\"opened\": %zu, \"ended\": %zu}\n", were_open, ended);
}

static enum manner manner_of(const char *text)
{
	static const char *const names[] = { "idle", "trickle", "deaf", "eager" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(names[i], text))
			return (enum manner)i;
	}
	die(TOOL_USAGE, "manner '%s': give idle, trickle, deaf or eager", text);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "to", required_argument, NULL, 't' },
		{ "port", required_argument, NULL, 'p' },
		{ "count", required_argument, NULL, 'c' },
		{ "seconds", required_argument, NULL, 's' },
		{ "manner", required_argument, NULL, 'm' },
		{ "path", required_argument, NULL, 'u' },
		{ 0 },
	};
	const struct rlimit files = { COUNT_MAX + 100, COUNT_MAX + 100 };
	uint64_t count = 0, ns = 0;
	const char *path = "/";
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 't': to = tool_address("--to", optarg); break;
		case 'p': port = (uint16_t)tool_number("--port", optarg, 1, 65535); break;
		case 'c': count = tool_number("--count", optarg, 1, COUNT_MAX); break;
		case 's': ns = tool_seconds("--seconds", optarg); break;
		case 'm': manner = manner_of(optarg); break;
		case 'u': path = optarg; break;
		default: return TOOL_USAGE;
		}
	}
	if (!port || !count || !ns)
		die(TOOL_USAGE, "give --to, --port, --count, --seconds, --manner");
	snprintf(request, sizeof(request), "GET %.400s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", path);
	setrlimit(RLIMIT_NOFILE, &files);
	tool_setup();
	run(count, tool_now_ns() + ns);
	return 0;
}
