// SPDX-License-Identifier: GPL-2.0
/*
 * sink: a server that counts. UDP datagrams and TCP connections on one port, IPv4 and IPv6, by
 * source address; with --echo it answers with what it got, from the address it was asked at.
 *
 * What it can't take in it reports (socket_drops): a test that reads fewer datagrams than were
 * sent knows whether the limiter or the server lost them. Sources beyond the table's size are
 * counted together, as "other".
 */
#include "tool.h"

#include <linux/sock_diag.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define BATCH 64
#define DATAGRAM_MAX 9216
#define DRAIN_MAX 10000
#define CHUNK 4096
#define CONNECTIONS_MAX 4096
#define SOURCES_DEFAULT 65536
#define LISTED_MAX 256 /* sources named in a periodic line; the final one names all */

static const char usage[] =
	"usage: sink --port N [--echo yes] [--only udp|tcp] [--every S] [--sources N]\n"
	"            [--buffer BYTES]\n"
	"Prints {\"ready\":true} once it listens, a line of JSON every S seconds if asked, and\n"
	"the last one, with \"final\":true, on SIGTERM or SIGINT.\n";

struct source {
	struct in6_addr addr;
	bool used;
	uint64_t datagrams, connections;
};

/* A TCP connection and what of its data is still to be sent back. */
struct connection {
	int fd;
	unsigned int from, to;
	struct connection *next_free;
	char data[CHUNK];
};

static struct {
	uint16_t port;
	bool echo, udp, tcp;
	uint64_t every_ns, start_ns;
	int buffer_bytes;
	uint64_t source_max, source_count;
	struct source *sources, other; /* open addressing, half of it empty at the least */
	uint64_t source_mask;
	struct connection *connections, *free_connections;
	uint64_t datagrams, bytes, echoed, accepted, open, refused, tcp_bytes;
	int udp_fd, tcp_fd, epoll_fd;
} sink = { .udp = true, .tcp = true, .source_max = SOURCES_DEFAULT, .buffer_bytes = 64 << 20 };

static void parse_arguments(int argc, char **argv)
{
	for (int i = 1; i < argc; i += 2) {
		const char *value = argv[i + 1];

		if (!value)
			die(TOOL_USAGE, "'%s' needs a value\n%s", argv[i], usage);
		if (strcmp(argv[i], "--port") == 0)
			sink.port = (uint16_t)tool_number("--port", value, 1, 65535);
		else if (strcmp(argv[i], "--every") == 0)
			sink.every_ns = tool_seconds("--every", value);
		else if (strcmp(argv[i], "--sources") == 0)
			sink.source_max = tool_number("--sources", value, 1, 1 << 24);
		else if (strcmp(argv[i], "--buffer") == 0)
			sink.buffer_bytes = (int)tool_number("--buffer", value, 4096, 1 << 28);
		else if (strcmp(argv[i], "--echo") == 0 && strcmp(value, "yes") == 0)
			sink.echo = true;
		else if (strcmp(argv[i], "--only") == 0 && strcmp(value, "udp") == 0)
			sink.tcp = false;
		else if (strcmp(argv[i], "--only") == 0 && strcmp(value, "tcp") == 0)
			sink.udp = false;
		else
			die(TOOL_USAGE, "unknown '%s %s'\n%s", argv[i], value, usage);
	}
	if (!sink.port)
		die(TOOL_USAGE, "--port is needed\n%s", usage);
}

static void make_tables(void)
{
	uint64_t size = 2;

	while (size < 2 * sink.source_max)
		size *= 2;
	sink.source_mask = size - 1;
	sink.sources = calloc(size, sizeof(*sink.sources));
	sink.connections = calloc(CONNECTIONS_MAX, sizeof(*sink.connections));
	if (!sink.sources || !sink.connections)
		die(TOOL_SYSTEM, "no memory for %" PRIu64 " sources", sink.source_max);
	for (unsigned int i = 0; i < CONNECTIONS_MAX; i++) {
		sink.connections[i].next_free = sink.free_connections;
		sink.free_connections = &sink.connections[i];
	}
}

static struct source *find_source(const struct in6_addr *addr)
{
	uint64_t halves[2], at;

	memcpy(halves, addr, sizeof(halves));
	at = tool_scramble(halves[0] ^ tool_scramble(halves[1]));
	for (;; at++) {
		struct source *source = &sink.sources[at & sink.source_mask];

		if (source->used && memcmp(&source->addr, addr, sizeof(*addr)) == 0)
			return source;
		if (source->used)
			continue;
		if (sink.source_count == sink.source_max)
			return &sink.other;
		sink.source_count++;
		source->used = true;
		source->addr = *addr;
		return source;
	}
}

static int listen_on(int type)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(sink.port) };
	int fd = socket(AF_INET6, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int yes = 1, no = 0, size = sink.buffer_bytes;

	if (fd < 0)
		die(TOOL_SYSTEM, "socket: %s", strerror(errno));
	setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (type == SOCK_DGRAM) {
		setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &yes, sizeof(yes));
		if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
			setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	}
	if (bind(fd, (struct sockaddr *)&any, sizeof(any)) ||
	    (type == SOCK_STREAM && listen(fd, 1024)))
		die(TOOL_SYSTEM, "port %u: %s", sink.port, strerror(errno));
	return fd;
}

static void watch(int fd, void *what, uint32_t events, int op)
{
	struct epoll_event event = { .events = events, .data.ptr = what };

	if (epoll_ctl(sink.epoll_fd, op, fd, &event))
		die(TOOL_SYSTEM, "epoll: %s", strerror(errno));
}

/*
 * The control data a datagram came with goes back with the answer: it holds one thing, the
 * address the datagram was sent to, which so becomes the answer's source.
 */
static int read_datagrams(void)
{
	static char data[BATCH][DATAGRAM_MAX];
	static char control[BATCH][CMSG_SPACE(sizeof(struct in6_pktinfo))];
	struct sockaddr_in6 from[BATCH];
	struct mmsghdr messages[BATCH];
	struct iovec parts[BATCH];
	int count, done = 0;

	for (int i = 0; i < BATCH; i++) {
		parts[i] = (struct iovec){ data[i], DATAGRAM_MAX };
		messages[i].msg_hdr = (struct msghdr){
			.msg_name = &from[i],
			.msg_namelen = sizeof(from[i]),
			.msg_iov = &parts[i],
			.msg_iovlen = 1,
			.msg_control = control[i],
			.msg_controllen = sizeof(control[i]),
		};
	}
	count = recvmmsg(sink.udp_fd, messages, BATCH, MSG_DONTWAIT, NULL);
	for (int i = 0; i < count; i++) {
		find_source(&from[i].sin6_addr)->datagrams++;
		sink.datagrams++;
		sink.bytes += messages[i].msg_len;
		parts[i].iov_len = messages[i].msg_len;
		messages[i].msg_hdr.msg_flags = 0;
	}
	while (sink.echo && done < count) {
		int n = sendmmsg(sink.udp_fd, messages + done, (unsigned int)(count - done),
				 MSG_DONTWAIT);

		if (n > 0)
			sink.echoed += (unsigned int)n;
		done += n > 0 ? n : 1; /* what can't be sent is lost, as with any server */
	}
	return count;
}

static void accept_all(void)
{
	struct sockaddr_in6 from;
	socklen_t size = sizeof(from);
	struct connection *c;
	int fd;

	while ((fd = accept4(sink.tcp_fd, (struct sockaddr *)&from, &size,
			     SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		find_source(&from.sin6_addr)->connections++;
		sink.accepted++;
		c = sink.free_connections;
		if (!c) {
			sink.refused++;
			close(fd);
			continue;
		}
		sink.free_connections = c->next_free;
		sink.open++;
		c->fd = fd;
		c->from = c->to = 0;
		watch(fd, c, EPOLLIN, EPOLL_CTL_ADD);
		size = sizeof(from);
	}
}

static void end_connection(struct connection *c)
{
	close(c->fd);
	c->next_free = sink.free_connections;
	sink.free_connections = c;
	sink.open--;
}

/* Sends back what is held; while some of it is left, nothing more is read. */
static void serve_connection(struct connection *c)
{
	ssize_t n;

	if (c->from == c->to) {
		n = recv(c->fd, c->data, sizeof(c->data), 0);
		if (n <= 0) {
			if (n == 0 || errno != EAGAIN)
				end_connection(c);
			return;
		}
		sink.tcp_bytes += (uint64_t)n;
		c->from = 0;
		c->to = sink.echo ? (unsigned int)n : 0;
	}
	if (c->from < c->to) {
		n = send(c->fd, c->data + c->from, c->to - c->from, 0);
		if (n < 0 && errno != EAGAIN) {
			end_connection(c);
			return;
		}
		c->from += n > 0 ? (unsigned int)n : 0;
	}
	watch(c->fd, c, c->from < c->to ? EPOLLOUT : EPOLLIN, EPOLL_CTL_MOD);
}

static uint64_t socket_drops(void)
{
	uint32_t memory[SK_MEMINFO_VARS] = { 0 };
	socklen_t size = sizeof(memory);

	if (!sink.udp || getsockopt(sink.udp_fd, SOL_SOCKET, SO_MEMINFO, memory, &size))
		return 0;
	return memory[SK_MEMINFO_DROPS];
}

static void report_sources(void)
{
	const char *comma = "";
	char text[46];

	printf(",\"per_source\":{");
	for (uint64_t i = 0; i <= sink.source_mask; i++) {
		const struct source *s = &sink.sources[i];

		if (!s->used)
			continue;
		printf("%s\"%s\":{\"udp\":%" PRIu64 ",\"tcp\":%" PRIu64 "}", comma,
		       tool_address_text(&s->addr, text), s->datagrams, s->connections);
		comma = ",";
	}
	printf("}");
}

static void report(bool final)
{
	printf("{\"final\":%s,\"elapsed_s\":%.3f", final ? "true" : "false",
	       (double)(tool_now_ns() - sink.start_ns) / 1e9);
	printf(",\"udp\":{\"received\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"echoed\":%" PRIu64
	       ",\"socket_drops\":%" PRIu64 "}",
	       sink.datagrams, sink.bytes, sink.echoed, socket_drops());
	printf(",\"tcp\":{\"accepted\":%" PRIu64 ",\"open\":%" PRIu64 ",\"refused\":%" PRIu64
	       ",\"bytes\":%" PRIu64 "}",
	       sink.accepted, sink.open, sink.refused, sink.tcp_bytes);
	printf(",\"sources\":%" PRIu64 ",\"other\":{\"udp\":%" PRIu64 ",\"tcp\":%" PRIu64 "}",
	       sink.source_count, sink.other.datagrams, sink.other.connections);
	if (final || sink.source_count <= LISTED_MAX)
		report_sources();
	printf("}\n");
	fflush(stdout);
}

static void open_sockets(void)
{
	struct rlimit files = { CONNECTIONS_MAX + 64, CONNECTIONS_MAX + 64 };

	setrlimit(RLIMIT_NOFILE, &files);
	sink.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (sink.epoll_fd < 0)
		die(TOOL_SYSTEM, "epoll: %s", strerror(errno));
	if (sink.udp) {
		sink.udp_fd = listen_on(SOCK_DGRAM);
		watch(sink.udp_fd, &sink.udp_fd, EPOLLIN, EPOLL_CTL_ADD);
	}
	if (sink.tcp) {
		sink.tcp_fd = listen_on(SOCK_STREAM);
		watch(sink.tcp_fd, &sink.tcp_fd, EPOLLIN, EPOLL_CTL_ADD);
	}
	sink.start_ns = tool_now_ns();
	printf("{\"ready\":true,\"port\":%u}\n", sink.port);
	fflush(stdout);
}

static int wait_ms(uint64_t next_ns)
{
	uint64_t now = tool_now_ns();

	if (!sink.every_ns)
		return 1000; /* a signal between the test and the wait is seen a second later */
	return next_ns <= now ? 0 : (int)((next_ns - now) / 1000000 + 1);
}

int main(int argc, char **argv)
{
	struct epoll_event events[BATCH];
	uint64_t next;

	tool_setup();
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	parse_arguments(argc, argv);
	make_tables();
	open_sockets();
	next = sink.start_ns + sink.every_ns;
	while (!tool_stopped) {
		int count = epoll_wait(sink.epoll_fd, events, BATCH, wait_ms(next));

		for (int i = 0; i < count; i++) {
			if (events[i].data.ptr == &sink.udp_fd)
				read_datagrams();
			else if (events[i].data.ptr == &sink.tcp_fd)
				accept_all();
			else
				serve_connection(events[i].data.ptr);
		}
		if (sink.every_ns && tool_now_ns() >= next) {
			report(false);
			next += sink.every_ns;
		}
	}
	for (unsigned int i = 0; sink.udp && i < DRAIN_MAX && read_datagrams() > 0; i++)
		; /* what had arrived before the signal counts */
	report(true);
	return 0;
}
