// SPDX-License-Identifier: GPL-2.0
/*
 * httpload: an open-loop HTTP load, which keeps count. Requests arrive at random (Poisson, the
 * same ones every run) at their rate, whatever became of those before: each a connection of its
 * own, from one address after the other. One that is not answered with 200, in full, within the
 * timeout has failed, and its client is gone.
 */
#include "latency.h"
#include "tool.h"

#include <math.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define SOURCES_MAX 64
#define CALLS_MAX 16384
#define CHANGES_MAX 16
#define EVENTS 64
#define ANSWER_BYTES 1024

static const char usage[] =
	"usage: httpload --to ADDR --port N --from ADDR,... --rate N --seconds S [--timeout S]\n"
	"                [--at S:N]... [--settled S]\n"
	"rate: requests a second, and from --at's second on. timeout: 1 s. settled: the last "
	"line's\n"
	"percentiles are of what is answered from that second on. A line of JSON every second, by\n"
	"when a request ended, and a last one, \"final\":true, of all.\n";

static const char request[] = "GET / HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n";

struct call {
	int fd;
	bool open, written;
	uint64_t began_ns;
	unsigned int got;
	char answer[ANSWER_BYTES];
	struct call *older, *newer; /* by when they began, hence by when they are over */
	struct call *free;
};

struct counts {
	uint64_t sent, ok, timeouts, closed,
		refused;	/* closed: without an answer, or not with 200 */
	struct latency latency; /* of those that are ok */
};

static struct {
	struct sockaddr_in6 to;
	struct in6_addr sources[SOURCES_MAX];
	unsigned int source_count;
	uint64_t rate, duration_ns, timeout_ns, settled_ns;
	struct {
		uint64_t at_ns, rate;
	} changes[CHANGES_MAX];
	unsigned int change_count, changed;
	uint64_t start_ns, next_ns, arrivals, second;
	struct call *oldest, *newest, *idle;
	int epoll_fd;
	struct counts now, all;
} load = { .timeout_ns = NS_PER_SEC };

/* ---- arguments ---- */

static void parse_sources(char *text)
{
	char *rest = NULL;

	for (char *one = strtok_r(text, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
		if (load.source_count == SOURCES_MAX)
			die(TOOL_USAGE, "--from: at most %d addresses", SOURCES_MAX);
		load.sources[load.source_count++] = tool_address("--from", one);
	}
}

static void parse_change(char *text)
{
	char *rate = strchr(text, ':');

	if (!rate)
		die(TOOL_USAGE, "--at '%s': give SECONDS:RATE", text);
	if (load.change_count == CHANGES_MAX)
		die(TOOL_USAGE, "--at: at most %d", CHANGES_MAX);
	*rate++ = '\0';
	load.changes[load.change_count].at_ns = tool_seconds("--at", text);
	load.changes[load.change_count++].rate = tool_number("--at", rate, 1, 20000);
}

static void parse_option(const char *name, char *value)
{
	if (strcmp(name, "--to") == 0)
		load.to.sin6_addr = tool_address(name, value);
	else if (strcmp(name, "--port") == 0)
		load.to.sin6_port = htons((uint16_t)tool_number(name, value, 1, 65535));
	else if (strcmp(name, "--from") == 0)
		parse_sources(value);
	else if (strcmp(name, "--rate") == 0)
		load.rate = tool_number(name, value, 1, 20000);
	else if (strcmp(name, "--seconds") == 0)
		load.duration_ns = tool_seconds(name, value);
	else if (strcmp(name, "--timeout") == 0)
		load.timeout_ns = tool_seconds(name, value);
	else if (strcmp(name, "--settled") == 0)
		load.settled_ns = tool_seconds(name, value);
	else if (strcmp(name, "--at") == 0)
		parse_change(value);
	else
		die(TOOL_USAGE, "unknown '%s'\n%s", name, usage);
}

static void parse_arguments(int argc, char **argv)
{
	load.to.sin6_family = AF_INET6;
	tool_options(argc, argv, usage, parse_option);
	if (!load.to.sin6_port || !load.source_count || !load.rate || !load.duration_ns)
		die(TOOL_USAGE, "--to, --port, --from, --rate, --seconds are needed\n%s", usage);
}

static void open_all(void)
{
	struct rlimit files = { CALLS_MAX + 64, CALLS_MAX + 64 };
	struct call *calls = calloc(CALLS_MAX, sizeof(*calls));

	setrlimit(RLIMIT_NOFILE, &files);
	load.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (!calls || load.epoll_fd < 0)
		die(TOOL_SYSTEM, "no memory for %d calls", CALLS_MAX);
	for (unsigned int i = 0; i < CALLS_MAX; i++) {
		calls[i].free = load.idle;
		load.idle = &calls[i];
	}
}

/* ---- a call ---- */

/* A socket on its way from this address: the descriptor, or -1 and errno. */
static int open_from(const struct in6_addr *addr)
{
	struct sockaddr_in6 from = { .sin6_family = AF_INET6, .sin6_addr = *addr };
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), yes = 1, no = 0;

	if (fd < 0)
		return -1;
	setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	/* The port is chosen at connect: as many as there are pairs of addresses. */
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof(yes));
	if (bind(fd, (struct sockaddr *)&from, sizeof(from)) == 0 &&
	    (connect(fd, (struct sockaddr *)&load.to, sizeof(load.to)) == 0 ||
	     errno == EINPROGRESS))
		return fd;
	close(fd);
	return -1;
}

static void watch(struct call *call, uint32_t events, int op)
{
	struct epoll_event event = { .events = events, .data.ptr = call };

	if (epoll_ctl(load.epoll_fd, op, call->fd, &event))
		die(TOOL_SYSTEM, "epoll: %s", strerror(errno));
}

static void call_begin(uint64_t now)
{
	struct call *call = load.idle;
	int fd = open_from(&load.sources[load.arrivals % load.source_count]);

	/* Fewer than were asked for would be another load than the one that is reported. */
	if (!call || fd < 0)
		die(TOOL_SYSTEM, "no connection for request %" PRIu64 ": %s", load.arrivals,
		    call ? strerror(errno) : "too many are open");
	load.idle = call->free;
	*call = (struct call){ .fd = fd, .open = true, .began_ns = now, .older = load.newest };
	*(load.newest ? &load.newest->newer : &load.oldest) = call;
	load.newest = call;
	load.now.sent++;
	watch(call, EPOLLOUT, EPOLL_CTL_ADD);
}

static void call_end(struct call *call, uint64_t *count)
{
	++*count;
	close(call->fd);
	call->open = false;
	*(call->older ? &call->older->newer : &load.oldest) = call->newer;
	*(call->newer ? &call->newer->older : &load.newest) = call->older;
	call->free = load.idle;
	load.idle = call;
}

/* The answer is whole when the server closes: it says so by Connection: close. */
static bool is_answered(const struct call *call)
{
	return call->got > 12 && strncmp(call->answer, "HTTP/1.1 200", 12) == 0 &&
	       strstr(call->answer, "\r\n\r\nok\n");
}

static void call_read(struct call *call)
{
	ssize_t size = recv(call->fd, call->answer + call->got, ANSWER_BYTES - 1 - call->got, 0);

	if (size < 0 && errno == EAGAIN)
		return;
	if (size > 0) {
		call->got += (unsigned int)size;
		return;
	}
	if (size < 0 || !is_answered(call)) {
		call_end(call, &load.now.closed);
		return;
	}
	latency_add(&load.now.latency, (tool_now_ns() - call->began_ns) / 1000);
	call_end(call, &load.now.ok);
}

static void call_go_on(struct call *call)
{
	ssize_t size;

	if (!call->open)
		return;
	if (call->written) {
		call_read(call);
		return;
	}
	size = send(call->fd, request, sizeof(request) - 1, MSG_NOSIGNAL);
	if (size != (ssize_t)sizeof(request) - 1) {
		call_end(call, &load.now.refused);
		return;
	}
	call->written = true;
	watch(call, EPOLLIN, EPOLL_CTL_MOD);
}

/* ---- time ---- */

static void report(bool final, const struct counts *counts)
{
	printf("{\"final\":%s,\"second\":%" PRIu64 ",\"rate\":%" PRIu64 ",\"sent\":%" PRIu64
	       ",\"ok\":%" PRIu64 ",\"failed\":%" PRIu64 ",\"timeouts\":%" PRIu64
	       ",\"closed\":%" PRIu64 ",\"refused\":%" PRIu64 ",\"p50_us\":%" PRIu64
	       ",\"p99_us\":%" PRIu64 "}\n",
	       final ? "true" : "false", load.second, load.rate, counts->sent, counts->ok,
	       counts->timeouts + counts->closed + counts->refused, counts->timeouts,
	       counts->closed, counts->refused, latency_us(&counts->latency, 500),
	       latency_us(&counts->latency, 990));
	fflush(stdout);
}

static void end_second(void)
{
	struct counts *now = &load.now, *all = &load.all;

	load.second++;
	report(false, now);
	all->sent += now->sent;
	all->ok += now->ok;
	all->timeouts += now->timeouts;
	all->closed += now->closed;
	all->refused += now->refused;
	if (load.second * NS_PER_SEC > load.settled_ns)
		latency_join(&all->latency, &now->latency);
	memset(now, 0, sizeof(*now));
}

static double draw(void)
{
	return ((double)(tool_scramble(load.arrivals) >> 11) + 0.5) / 9007199254740992.0;
}

/* Begins what has arrived. Late arrivals are not left out: the rate holds on a busy machine. */
static void begin_due(uint64_t now)
{
	while (load.next_ns <= now && load.next_ns < load.start_ns + load.duration_ns) {
		while (load.changed < load.change_count &&
		       load.next_ns >= load.start_ns + load.changes[load.changed].at_ns)
			load.rate = load.changes[load.changed++].rate;
		call_begin(tool_now_ns());
		load.arrivals++;
		load.next_ns += (uint64_t)(-log(draw()) * 1e9 / (double)load.rate);
	}
}

static void end_late(uint64_t now)
{
	while (load.oldest && now - load.oldest->began_ns > load.timeout_ns)
		call_end(load.oldest, &load.now.timeouts);
}

static void wait_for_next(uint64_t now)
{
	struct epoll_event events[EVENTS];
	uint64_t ns = load.next_ns > now ? load.next_ns - now : 0;
	struct timespec timeout = { 0, (long)(ns < 10000000 ? ns : 10000000) };
	int count = epoll_pwait2(load.epoll_fd, events, EVENTS, &timeout, NULL);

	for (int i = 0; i < count; i++)
		call_go_on(events[i].data.ptr);
}

int main(int argc, char **argv)
{
	uint64_t now, end;

	tool_setup();
	parse_arguments(argc, argv);
	open_all();
	load.start_ns = load.next_ns = now = tool_now_ns();
	end = load.start_ns + load.duration_ns;
	while (!tool_stopped && now < end) {
		begin_due(now);
		wait_for_next(tool_now_ns());
		now = tool_now_ns();
		end_late(now);
		while (now >= load.start_ns + (load.second + 1) * NS_PER_SEC)
			end_second();
	}
	report(true, &load.all);
	return 0;
}
