// SPDX-License-Identifier: GPL-2.0
/*
 * hold: opens very many TCP connections and holds them, or is who they are opened to. The opener
 * spreads them over sources (which must be its host's: `ip route add local`) and over the
 * server's ports; with --chatter it sends a byte on one after the other, which is echoed. Both
 * print {"ready":true,"open":N} once as many are open as --count says, and hold them until
 * SIGTERM or SIGINT.
 */
#include "tool.h"

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define COUNT_MAX 1000000
#define PORTS_MAX 1000
#define AT_ONCE 200 /* fewer than what a listener's queue takes */
#define EVENTS 64
#define LISTENER (1ULL << 32) /* beside the descriptor, in what epoll knows of it */

static const char usage[] =
	"usage: hold --listen yes --port N --ports N --count N\n"
	"       hold --to ADDR --from ADDR --sources N --port N --ports N --count N\n"
	"            [--chatter N]\n"
	"from: the first of the sources, IPv4; port: the first of the ports.\n"
	"chatter: bytes a second, over all connections.\n";

static struct {
	bool listen;
	struct in6_addr to, from;
	uint64_t port, ports, sources, count, chatter;
	unsigned int open;
	int epoll_fd;
	int *fds; /* the opener's */
} hold = { .ports = 1, .sources = 1 };

static void parse_option(const char *name, char *value)
{
	if (strcmp(name, "--listen") == 0)
		hold.listen = strcmp(value, "yes") == 0;
	else if (strcmp(name, "--to") == 0)
		hold.to = tool_address(name, value);
	else if (strcmp(name, "--from") == 0)
		hold.from = tool_address(name, value);
	else if (strcmp(name, "--sources") == 0)
		hold.sources = tool_number(name, value, 1, COUNT_MAX);
	else if (strcmp(name, "--port") == 0)
		hold.port = tool_number(name, value, 1, 65535);
	else if (strcmp(name, "--ports") == 0)
		hold.ports = tool_number(name, value, 1, PORTS_MAX);
	else if (strcmp(name, "--count") == 0)
		hold.count = tool_number(name, value, 1, COUNT_MAX);
	else if (strcmp(name, "--chatter") == 0)
		hold.chatter = tool_number(name, value, 1, 100000);
	else
		die(TOOL_USAGE, "unknown '%s'\n%s", name, usage);
}

static void parse_arguments(int argc, char **argv)
{
	tool_options(argc, argv, usage, parse_option);
	if (!hold.port || !hold.count)
		die(TOOL_USAGE, "--port and --count are needed\n%s", usage);
}

static void allow_files(void)
{
	struct rlimit files = { hold.count + 1100, hold.count + 1100 };

	if (setrlimit(RLIMIT_NOFILE, &files))
		die(TOOL_SYSTEM, "can't have %" PRIu64 " files open: %s", hold.count,
		    strerror(errno));
}

static void say_ready(void)
{
	printf("{\"ready\":true,\"open\":%u}\n", hold.open);
}

/* ---- who they are opened to ---- */

static void listen_on(uint16_t port)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), yes = 1;
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = LISTENER | (unsigned int)fd };

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 4096) ||
	    epoll_ctl(hold.epoll_fd, EPOLL_CTL_ADD, fd, &event))
		die(TOOL_SYSTEM, "can't listen on port %u: %s", port, strerror(errno));
}

static void accept_from(int listener)
{
	struct epoll_event event = { .events = EPOLLIN };
	int fd;

	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		event.data.u64 = (unsigned int)fd;
		if (epoll_ctl(hold.epoll_fd, EPOLL_CTL_ADD, fd, &event))
			die(TOOL_SYSTEM, "epoll: %s", strerror(errno));
		if (++hold.open == hold.count)
			say_ready();
	}
}

static void echo(int fd)
{
	char data[64];
	ssize_t size = recv(fd, data, sizeof(data), 0);

	if (size == 0 || (size < 0 && errno != EAGAIN))
		close(fd);
	else if (size > 0)
		(void)!send(fd, data, (size_t)size, MSG_NOSIGNAL);
}

static void serve(void)
{
	struct epoll_event events[EVENTS];

	for (uint64_t i = 0; i < hold.ports; i++)
		listen_on((uint16_t)(hold.port + i));
	puts("{\"listening\":true}");
	while (!tool_stopped) {
		int count = epoll_wait(hold.epoll_fd, events, EVENTS, 100);

		for (int i = 0; i < count; i++) {
			if (events[i].data.u64 & LISTENER)
				accept_from(events[i].data.fd);
			else
				echo(events[i].data.fd);
		}
	}
}

/* ---- who opens them ---- */

static void connect_one(uint64_t number)
{
	struct sockaddr_in6 from = { .sin6_family = AF_INET6, .sin6_addr = hold.from };
	struct sockaddr_in6 to = { .sin6_family = AF_INET6, .sin6_addr = hold.to };
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), yes = 1, no = 0;
	struct epoll_event event = { .events = EPOLLOUT | EPOLLONESHOT, .data.fd = fd };
	uint32_t *last = &from.sin6_addr.s6_addr32[3];

	*last = htonl(ntohl(*last) + (uint32_t)(number % hold.sources));
	to.sin6_port = htons((uint16_t)(hold.port + number % hold.ports));
	setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof(yes));
	if (bind(fd, (struct sockaddr *)&from, sizeof(from)) ||
	    (connect(fd, (struct sockaddr *)&to, sizeof(to)) && errno != EINPROGRESS) ||
	    epoll_ctl(hold.epoll_fd, EPOLL_CTL_ADD, fd, &event))
		die(TOOL_SYSTEM, "connection %" PRIu64 ": %s", number, strerror(errno));
	hold.fds[number] = fd;
}

static void check_connected(int fd)
{
	int error = 0;
	socklen_t size = sizeof(error);

	getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
	if (error)
		die(TOOL_SYSTEM, "connection %u: %s", hold.open, strerror(error));
}

static void connect_all(void)
{
	struct epoll_event events[EVENTS];
	uint64_t begun = 0;

	while (!tool_stopped && hold.open < hold.count) {
		int count;

		while (begun < hold.count && begun - hold.open < AT_ONCE)
			connect_one(begun++);
		count = epoll_wait(hold.epoll_fd, events, EVENTS, 100);
		for (int i = 0; i < count; i++) {
			check_connected(events[i].data.fd);
			hold.open++;
		}
	}
}

/* A byte on one connection after the other; what came back on it since is thrown away. */
static void chatter(void)
{
	const struct timespec gap = { .tv_nsec = (long)((NS_PER_SEC - 1) /
							(hold.chatter ? hold.chatter : 1)) };
	char data[64];

	for (uint64_t i = 0; !tool_stopped; i++) {
		int fd = hold.fds[i % hold.count];

		while (recv(fd, data, sizeof(data), 0) > 0)
			;
		if (hold.chatter && send(fd, "?", 1, MSG_NOSIGNAL) < 0)
			die(TOOL_SYSTEM, "a connection was lost: %s", strerror(errno));
		nanosleep(&gap, NULL);
	}
}

int main(int argc, char **argv)
{
	tool_setup();
	parse_arguments(argc, argv);
	allow_files();
	hold.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	hold.fds = calloc(hold.count, sizeof(*hold.fds));
	if (hold.epoll_fd < 0 || !hold.fds)
		die(TOOL_SYSTEM, "no memory for %" PRIu64 " connections", hold.count);
	if (hold.listen) {
		serve();
	} else {
		connect_all();
		say_ready();
		chatter();
	}
	return 0;
}
