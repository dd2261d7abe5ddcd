// SPDX-License-Identifier: GPL-2.0
/*
 * client: a well-behaved client that keeps count. From each of its addresses it makes requests
 * at a steady rate, over UDP or as TCP connections, to a server that echoes; it reports how
 * many were answered, how many were not, and how long the answers took.
 *
 * Request k leaves at k / (rate * addresses) after the start, from address k modulo their
 * number. A TCP request is connect, send, read the echo, close.
 */
#include "latency.h"
#include "tool.h"

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define SOURCES_MAX 64
#define CALLS_MAX 4096 /* TCP requests under way */
#define SIZE_MAX_BYTES 1400
#define REQUESTS_MAX 50000000ULL
#define EVENTS 64

static const char usage[] =
	"usage: client --to ADDR --port N --from ADDR,... --rate N --seconds S [--mode udp|tcp]\n"
	"              [--size BYTES] [--wait S] [--every S]\n"
	"rate: requests a second from each address. wait: how long an answer may take (2).\n"
	"One line of JSON at the end, with --every also one every S seconds.\n";

struct source {
	struct in6_addr addr;
	int fd; /* UDP */
	uint64_t sent, answered, duplicates, errors;
};

struct request {
	uint64_t number, sent_ns;
};

struct call {
	bool used, written;
	int fd;
	unsigned int got;
	struct source *source;
	uint64_t started_ns;
};

static struct {
	struct sockaddr_in6 to;
	struct source sources[SOURCES_MAX];
	unsigned int source_count, size;
	bool tcp;
	uint64_t rate, duration_ns, wait_ns, every_ns, start_ns, requests, next;
	uint8_t *seen; /* a bit a request: answered already */
	struct call *calls;
	unsigned int calls_open;
	struct latency latency;
	int epoll_fd;
} client = { .size = 32, .wait_ns = 2 * NS_PER_SEC };

static void parse_sources(char *text)
{
	char *rest = NULL;

	for (char *one = strtok_r(text, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
		if (client.source_count == SOURCES_MAX)
			die(TOOL_USAGE, "at most %d addresses", SOURCES_MAX);
		client.sources[client.source_count++].addr = tool_address("--from", one);
	}
}

static bool parse_mode(const char *text)
{
	bool tcp = strcmp(text, "tcp") == 0;

	if (!tcp && strcmp(text, "udp") != 0)
		die(TOOL_USAGE, "--mode '%s': give udp or tcp", text);
	return tcp;
}

static void parse_option(const char *name, char *value)
{
	if (strcmp(name, "--to") == 0)
		client.to.sin6_addr = tool_address(name, value);
	else if (strcmp(name, "--port") == 0)
		client.to.sin6_port = htons((uint16_t)tool_number(name, value, 1, 65535));
	else if (strcmp(name, "--from") == 0)
		parse_sources(value);
	else if (strcmp(name, "--rate") == 0)
		client.rate = tool_number(name, value, 1, 100000);
	else if (strcmp(name, "--seconds") == 0)
		client.duration_ns = tool_seconds(name, value);
	else if (strcmp(name, "--mode") == 0)
		client.tcp = parse_mode(value);
	else if (strcmp(name, "--size") == 0)
		client.size = (unsigned int)tool_number(name, value, sizeof(struct request),
							SIZE_MAX_BYTES);
	else if (strcmp(name, "--wait") == 0)
		client.wait_ns = tool_seconds(name, value);
	else if (strcmp(name, "--every") == 0)
		client.every_ns = tool_seconds(name, value);
	else
		die(TOOL_USAGE, "unknown '%s'\n%s", name, usage);
}

static void parse_arguments(int argc, char **argv)
{
	unsigned __int128 requests;

	client.to.sin6_family = AF_INET6;
	tool_options(argc, argv, usage, parse_option);
	if (!client.to.sin6_port || !client.source_count || !client.rate || !client.duration_ns)
		die(TOOL_USAGE, "--to, --port, --from, --rate, --seconds are needed\n%s", usage);
	client.rate *= client.source_count;
	requests = (unsigned __int128)client.rate * client.duration_ns + NS_PER_SEC - 1;
	requests /= NS_PER_SEC;
	if (requests > REQUESTS_MAX)
		die(TOOL_USAGE, "%" PRIu64 " a second for that long: at most %llu requests",
		    client.rate, REQUESTS_MAX);
	client.requests = (uint64_t)requests;
}

/* A socket that speaks from this address; it may not be up yet (errno says so). */
static int open_from(const struct in6_addr *addr, int type)
{
	struct sockaddr_in6 from = { .sin6_family = AF_INET6, .sin6_addr = *addr };
	int fd = socket(AF_INET6, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), yes = 1, no = 0;

	if (fd < 0)
		return -1;
	setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	if (type == SOCK_STREAM) /* the port is chosen at connect: as many as there are pairs */
		setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof(yes));
	if (bind(fd, (struct sockaddr *)&from, sizeof(from)) == 0 &&
	    (connect(fd, (struct sockaddr *)&client.to, sizeof(client.to)) == 0 ||
	     errno == EINPROGRESS))
		return fd;
	close(fd);
	return -1;
}

static void watch(int fd, void *what, uint32_t events, int op)
{
	struct epoll_event event = { .events = events, .data.ptr = what };

	if (epoll_ctl(client.epoll_fd, op, fd, &event))
		die(TOOL_SYSTEM, "epoll: %s", strerror(errno));
}

static void open_all(void)
{
	struct rlimit files = { CALLS_MAX + 64, CALLS_MAX + 64 };
	char text[46];

	setrlimit(RLIMIT_NOFILE, &files);
	client.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	client.seen = calloc(client.requests / 8 + 1, 1);
	client.calls = calloc(CALLS_MAX, sizeof(*client.calls));
	if (client.epoll_fd < 0 || !client.seen || !client.calls)
		die(TOOL_SYSTEM, "no memory for %" PRIu64 " requests", client.requests);
	for (unsigned int i = 0; i < client.source_count && !client.tcp; i++) {
		struct source *s = &client.sources[i];

		s->fd = open_from(&s->addr, SOCK_DGRAM);
		if (s->fd < 0)
			die(TOOL_SYSTEM, "from '%s': %s", tool_address_text(&s->addr, text),
			    strerror(errno));
		watch(s->fd, s, EPOLLIN, EPOLL_CTL_ADD);
	}
}

static void count_answer(struct source *source, uint64_t started_ns)
{
	source->answered++;
	latency_add(&client.latency, (tool_now_ns() - started_ns) / 1000);
}

static void send_datagram(struct source *source, uint64_t number)
{
	char data[SIZE_MAX_BYTES] = { 0 };
	struct request request = { number, tool_now_ns() };

	memcpy(data, &request, sizeof(request));
	source->sent++;
	if (send(source->fd, data, client.size, 0) < 0)
		source->errors++;
}

static void read_answers(struct source *source)
{
	char data[SIZE_MAX_BYTES];
	struct request request;
	ssize_t n;

	while ((n = recv(source->fd, data, sizeof(data), 0)) != -1 || errno == ECONNREFUSED) {
		if (n != (ssize_t)client.size) {
			source->errors++;
			continue;
		}
		memcpy(&request, data, sizeof(request));
		if (request.number >= client.next) {
			source->errors++;
		} else if (client.seen[request.number / 8] & 1 << request.number % 8) {
			source->duplicates++;
		} else {
			client.seen[request.number / 8] |= (uint8_t)(1 << request.number % 8);
			count_answer(source, request.sent_ns);
		}
	}
}

static void start_call(struct source *source)
{
	struct call *call = client.calls;

	source->sent++;
	while (call < client.calls + CALLS_MAX && call->used)
		call++;
	if (call == client.calls + CALLS_MAX) {
		source->errors++;
		return;
	}
	*call = (struct call){ .source = source, .started_ns = tool_now_ns() };
	call->fd = open_from(&source->addr, SOCK_STREAM);
	if (call->fd < 0) {
		source->errors++;
		return;
	}
	call->used = true;
	client.calls_open++;
	watch(call->fd, call, EPOLLOUT, EPOLL_CTL_ADD);
}

static void end_call(struct call *call, bool answered)
{
	if (answered)
		count_answer(call->source, call->started_ns);
	else
		call->source->errors++;
	close(call->fd);
	call->used = false;
	client.calls_open--;
}

static void serve_call(struct call *call)
{
	char data[SIZE_MAX_BYTES] = { 0 };
	ssize_t n;

	if (!call->written) {
		n = send(call->fd, data, client.size, 0); /* fails if connecting did */
		if (n != (ssize_t)client.size) {
			end_call(call, false);
			return;
		}
		call->written = true;
		watch(call->fd, call, EPOLLIN, EPOLL_CTL_MOD);
		return;
	}
	n = recv(call->fd, data, sizeof(data), 0);
	if (n > 0)
		call->got += (unsigned int)n;
	if (call->got >= client.size)
		end_call(call, true);
	else if (n == 0 || (n < 0 && errno != EAGAIN))
		end_call(call, false);
}

static void end_late_calls(uint64_t now)
{
	for (unsigned int i = 0; client.calls_open && i < CALLS_MAX; i++)
		if (client.calls[i].used && now - client.calls[i].started_ns > client.wait_ns)
			end_call(&client.calls[i], false);
}

static void report(bool final)
{
	uint64_t sent = 0, answered = 0, duplicates = 0, errors = 0;
	char text[46];

	for (unsigned int i = 0; i < client.source_count; i++) {
		sent += client.sources[i].sent;
		answered += client.sources[i].answered;
		duplicates += client.sources[i].duplicates;
		errors += client.sources[i].errors;
	}
	printf("{\"final\":%s,\"elapsed_s\":%.3f,\"sent\":%" PRIu64 ",\"answered\":%" PRIu64
	       ",\"lost\":%" PRIu64 ",\"lost_percent\":%.4f,\"duplicates\":%" PRIu64
	       ",\"errors\":%" PRIu64,
	       final ? "true" : "false", (double)(tool_now_ns() - client.start_ns) / 1e9, sent,
	       answered, sent - answered,
	       sent ? 100.0 * (double)(sent - answered) / (double)sent : 0.0, duplicates, errors);
	printf(",\"latency_us\":{\"p50\":%" PRIu64 ",\"p90\":%" PRIu64 ",\"p99\":%" PRIu64
	       ",\"max\":%" PRIu64 "},\"per_source\":{",
	       latency_us(&client.latency, 500), latency_us(&client.latency, 900),
	       latency_us(&client.latency, 990), client.latency.max_us);
	for (unsigned int i = 0; i < client.source_count; i++)
		printf("%s\"%s\":{\"sent\":%" PRIu64 ",\"answered\":%" PRIu64 "}", i ? "," : "",
		       tool_address_text(&client.sources[i].addr, text), client.sources[i].sent,
		       client.sources[i].answered);
	printf("}}\n");
	fflush(stdout);
}

/* Sends what is due. Returns the instant of the next thing to do by the clock. */
static uint64_t send_due(uint64_t now)
{
	uint64_t due;

	for (; client.next < client.requests; client.next++) {
		struct source *source = &client.sources[client.next % client.source_count];

		due = client.start_ns + client.next * NS_PER_SEC / client.rate;
		if (due > now)
			return due;
		if (client.tcp)
			start_call(source);
		else
			send_datagram(source, client.next);
	}
	return client.start_ns + client.duration_ns + client.wait_ns;
}

static bool all_answered(void)
{
	uint64_t answered = 0;

	if (client.next < client.requests || client.calls_open)
		return false;
	for (unsigned int i = 0; i < client.source_count; i++)
		answered += client.sources[i].answered;
	return client.tcp || answered == client.requests;
}

static void wait_until(uint64_t until, uint64_t now)
{
	struct epoll_event events[EVENTS];
	uint64_t ns = until <= now ? 0 : until - now;
	struct timespec timeout = { 0, (long)(ns < 100000000 ? ns : 100000000) };
	int count = epoll_pwait2(client.epoll_fd, events, EVENTS, &timeout, NULL);

	for (int i = 0; i < count; i++) {
		if (client.tcp)
			serve_call(events[i].data.ptr);
		else
			read_answers(events[i].data.ptr);
	}
}

int main(int argc, char **argv)
{
	uint64_t now, next, report_at, end;

	tool_setup();
	setvbuf(stdout, NULL, _IOFBF, 1 << 14);
	parse_arguments(argc, argv);
	open_all();
	client.start_ns = now = tool_now_ns();
	report_at = client.start_ns + client.every_ns;
	end = client.start_ns + client.duration_ns + client.wait_ns;
	while (!tool_stopped && now < end && !all_answered()) {
		next = send_due(now);
		wait_until(next, tool_now_ns());
		now = tool_now_ns();
		if (client.tcp)
			end_late_calls(now);
		if (client.every_ns && now >= report_at) {
			report(false);
			report_at += client.every_ns;
		}
	}
	report(true);
	return 0;
}
