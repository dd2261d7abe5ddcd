// SPDX-License-Identifier: GPL-2.0
/*
 * httpd: an HTTP server of known capacity, which keeps count. A request takes one of its slots,
 * burns CPU, waits (as for a database), is answered, and its connection closed; requests that
 * find no free slot wait in a queue, first come, first served. So it finishes at most
 * slots / wait a second, or one for each --cpu of CPU time that it gets. Like most servers it
 * works on for clients that have given up.
 *
 * What fails, and what finds the queue full, is closed without an answer.
 */
#include "latency.h"
#include "tool.h"

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define CALLS_MAX 32768
#define EVENTS 64
#define CHANGES_MAX 16
#define REQUEST_BYTES 2048

static const char usage[] =
	"usage: httpd --port N --slots N [--wait S] [--cpu S] [--queue N] [--at S:WHAT=N]...\n"
	"WHAT is slots, or fail: the percentage of requests that fail; S counts from the first\n"
	"connection. Prints {\"ready\":true} once it listens, a line of JSON every second from\n"
	"the first connection on, and the last one, \"final\":true, on SIGTERM or SIGINT.\n";

static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n"
			     "Connection: close\r\n\r\nok\n";

/* A request from its first byte to its answer; in one queue after the other. */
struct call {
	int fd;
	uint64_t began_ns, due_ns;
	unsigned int matched; /* how much of the blank line that ends a request has been seen */
	unsigned int read;
	struct call *next;
};

struct queue {
	struct call *first, **last;
	unsigned int count;
};

struct counts {
	uint64_t requests, served, failed, overflowed;
	struct latency latency;
};

struct change {
	uint64_t at_ns;
	bool fail;
	unsigned int to;
};

static struct {
	uint64_t port, wait_ns, cpu_ns, queue_most;
	unsigned int slots, fail_percent, failing;
	struct change changes[CHANGES_MAX];
	unsigned int change_count, changed;
	uint64_t first_ns, second;
	int listener, epoll_fd;
	struct queue waiting, working, idle;
	struct counts now, all;
} server = { .queue_most = CALLS_MAX };

/* ---- arguments ---- */

static void parse_change(char *text)
{
	struct change *change = &server.changes[server.change_count++];
	char *what = strchr(text, ':'), *to = what ? strchr(what, '=') : NULL;

	if (server.change_count > CHANGES_MAX)
		die(TOOL_USAGE, "--at: at most %d", CHANGES_MAX);
	if (!to)
		die(TOOL_USAGE, "--at '%s': give SECONDS:slots=N or SECONDS:fail=PERCENT", text);
	*what++ = *to++ = '\0';
	change->at_ns = tool_seconds("--at", text);
	change->fail = strcmp(what, "fail") == 0;
	if (!change->fail && strcmp(what, "slots") != 0)
		die(TOOL_USAGE, "--at '%s': give slots or fail", what);
	change->to = (unsigned int)tool_number(what, to, 0, change->fail ? 100 : CALLS_MAX);
}

static void parse_option(const char *name, char *value)
{
	if (strcmp(name, "--port") == 0)
		server.port = tool_number(name, value, 1, 65535);
	else if (strcmp(name, "--slots") == 0)
		server.slots = (unsigned int)tool_number(name, value, 1, CALLS_MAX);
	else if (strcmp(name, "--queue") == 0)
		server.queue_most = tool_number(name, value, 0, CALLS_MAX);
	else if (strcmp(name, "--wait") == 0)
		server.wait_ns = tool_seconds(name, value);
	else if (strcmp(name, "--cpu") == 0)
		server.cpu_ns = tool_seconds(name, value);
	else if (strcmp(name, "--at") == 0)
		parse_change(value);
	else
		die(TOOL_USAGE, "unknown '%s'\n%s", name, usage);
}

static void parse_arguments(int argc, char **argv)
{
	tool_options(argc, argv, usage, parse_option);
	if (!server.port || !server.slots)
		die(TOOL_USAGE, "--port and --slots are needed\n%s", usage);
}

/* ---- calls ---- */

static void queue_init(struct queue *queue)
{
	*queue = (struct queue){ .last = &queue->first };
}

static void queue_add(struct queue *queue, struct call *call)
{
	call->next = NULL;
	*queue->last = call;
	queue->last = &call->next;
	queue->count++;
}

static struct call *queue_take(struct queue *queue)
{
	struct call *call = queue->first;

	queue->first = call->next;
	if (!queue->first)
		queue->last = &queue->first;
	queue->count--;
	return call;
}

static void call_close(struct call *call)
{
	close(call->fd);
	queue_add(&server.idle, call);
}

static void open_all(void)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6,
				   .sin6_port = htons((uint16_t)server.port) };
	struct rlimit files = { CALLS_MAX + 64, CALLS_MAX + 64 };
	struct epoll_event event = { .events = EPOLLIN };
	struct call *calls = calloc(CALLS_MAX, sizeof(*calls));
	int yes = 1;

	if (!calls)
		die(TOOL_SYSTEM, "no memory for %d calls", CALLS_MAX);
	queue_init(&server.waiting);
	queue_init(&server.working);
	queue_init(&server.idle);
	for (unsigned int i = 0; i < CALLS_MAX; i++)
		queue_add(&server.idle, &calls[i]);
	setrlimit(RLIMIT_NOFILE, &files);
	server.listener = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	setsockopt(server.listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	server.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (bind(server.listener, (struct sockaddr *)&at, sizeof(at)) ||
	    listen(server.listener, 4096) ||
	    epoll_ctl(server.epoll_fd, EPOLL_CTL_ADD, server.listener, &event))
		die(TOOL_SYSTEM, "can't listen on port %" PRIu64 ": %s", server.port,
		    strerror(errno));
}

static void accept_all(uint64_t now)
{
	struct epoll_event event = { .events = EPOLLIN };
	int fd;

	while (server.idle.count &&
	       (fd = accept4(server.listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		struct call *call = queue_take(&server.idle);

		if (!server.first_ns)
			server.first_ns = now;
		*call = (struct call){ .fd = fd, .began_ns = now };
		event.data.ptr = call;
		if (epoll_ctl(server.epoll_fd, EPOLL_CTL_ADD, fd, &event))
			die(TOOL_SYSTEM, "epoll: %s", strerror(errno));
	}
}

/* Whether the request has been read to its end; nobody looks at the socket from then on. */
static bool is_whole(struct call *call, const char *data, ssize_t size)
{
	static const char end[] = "\r\n\r\n";

	for (ssize_t i = 0; i < size && call->matched < 4; i++)
		call->matched = data[i] == end[call->matched] ? call->matched + 1 : data[i] == '\r';
	call->read += (unsigned int)size;
	return call->matched == 4;
}

static void read_request(struct call *call)
{
	char data[REQUEST_BYTES];
	ssize_t size = recv(call->fd, data, sizeof(data), 0);

	if (size < 0 && errno == EAGAIN)
		return;
	if (size <= 0 || (!is_whole(call, data, size) && call->read >= REQUEST_BYTES)) {
		call_close(call);
	} else if (call->matched == 4) {
		server.now.requests++;
		epoll_ctl(server.epoll_fd, EPOLL_CTL_DEL, call->fd, NULL);
		if (server.waiting.count + server.working.count <
		    server.slots + server.queue_most) {
			queue_add(&server.waiting, call);
		} else {
			server.now.overflowed++;
			call_close(call);
		}
	}
}

/* ---- work ---- */

static uint64_t cpu_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

static void burn(void)
{
	uint64_t until = cpu_now_ns() + server.cpu_ns;

	while (server.cpu_ns && cpu_now_ns() < until)
		;
}

/* One at a time: between two the clients are looked after. */
static void begin_one(void)
{
	struct call *call;

	if (!server.waiting.count || server.working.count >= server.slots)
		return;
	call = queue_take(&server.waiting);
	burn();
	call->due_ns = tool_now_ns() + server.wait_ns;
	queue_add(&server.working, call);
}

/* Spread evenly: of 100 requests in a row, as many fail as the percentage says. */
static bool fails(void)
{
	server.failing += server.fail_percent;
	if (server.failing < 100)
		return false;
	server.failing -= 100;
	return true;
}

static void finish_due(uint64_t now)
{
	while (server.working.count && server.working.first->due_ns <= now) {
		struct call *call = queue_take(&server.working);

		if (fails()) {
			server.now.failed++;
		} else {
			/* Who is gone doesn't hear it; the work was done. */
			(void)!send(call->fd, answer, sizeof(answer) - 1, MSG_NOSIGNAL);
			server.now.served++;
			latency_add(&server.now.latency, (now - call->began_ns) / 1000);
		}
		call_close(call);
	}
}

/* ---- time ---- */

static void change_due(uint64_t now)
{
	for (unsigned int i = server.changed; i < server.change_count; i++) {
		const struct change *change = &server.changes[i];

		if (!server.first_ns || now < server.first_ns + change->at_ns)
			return;
		server.changed = i + 1;
		if (change->fail)
			server.fail_percent = change->to;
		else
			server.slots = change->to;
	}
}

static void report(bool final, const struct counts *counts)
{
	printf("{\"final\":%s,\"second\":%" PRIu64 ",\"requests\":%" PRIu64 ",\"served\":%" PRIu64
	       ",\"failed\":%" PRIu64 ",\"overflowed\":%" PRIu64
	       ",\"waiting\":%u,\"slots\":%u,\"fail_percent\":%u,\"p50_us\":%" PRIu64
	       ",\"p99_us\":%" PRIu64 "}\n",
	       final ? "true" : "false", server.second, counts->requests, counts->served,
	       counts->failed, counts->overflowed, server.waiting.count, server.slots,
	       server.fail_percent, latency_us(&counts->latency, 500),
	       latency_us(&counts->latency, 990));
	fflush(stdout);
}

static void add_up(void)
{
	server.all.requests += server.now.requests;
	server.all.served += server.now.served;
	server.all.failed += server.now.failed;
	server.all.overflowed += server.now.overflowed;
	latency_join(&server.all.latency, &server.now.latency);
}

static void report_due(uint64_t now)
{
	while (server.first_ns && now >= server.first_ns + (server.second + 1) * NS_PER_SEC) {
		server.second++;
		report(false, &server.now);
		add_up();
		memset(&server.now, 0, sizeof(server.now));
	}
}

/* Milliseconds until the next answer is due; 0 while there is work to begin. */
static struct timespec rest(uint64_t now)
{
	uint64_t ns = 20000000;

	if (server.waiting.count && server.working.count < server.slots)
		ns = 0;
	else if (server.working.count && server.working.first->due_ns < now + ns)
		ns = server.working.first->due_ns > now ? server.working.first->due_ns - now : 0;
	return (struct timespec){ .tv_nsec = (long)ns };
}

static void serve_once(void)
{
	struct epoll_event events[EVENTS];
	struct timespec timeout = rest(tool_now_ns());
	int count = epoll_pwait2(server.epoll_fd, events, EVENTS, &timeout, NULL);
	uint64_t now = tool_now_ns();

	change_due(now);
	for (int i = 0; i < count; i++) {
		if (events[i].data.ptr)
			read_request(events[i].data.ptr);
		else
			accept_all(now);
	}
	begin_one();
	now = tool_now_ns();
	finish_due(now);
	report_due(now);
}

int main(int argc, char **argv)
{
	tool_setup();
	parse_arguments(argc, argv);
	open_all();
	puts("{\"ready\":true}");
	while (!tool_stopped)
		serve_once();
	add_up();
	report(true, &server.all);
	return 0;
}
