// SPDX-License-Identifier: GPL-2.0
/* Exchanges of a TCP service with real sockets, and what newcomers of it get. */
#include <bpf/libbpf.h>
#include <linux/bpf.h>

#include "controller/engine_internal.h"
#include "harness.h"
#include "socket_lab.h"

static struct sockets clients, servers;
static struct weir_engine *engine;

static void begin(const char *deadline)
{
	char text[512];
	struct weir_error err;

	sockets_open();
	snprintf(text, sizeof(text),
		 "version: 1\nledger: {keys: 1024}\ninterfaces: [{name: w0, mode: native}]\n"
		 "services:\n  - {name: web, match: {proto: tcp, to_port: 8080}, deadline: %s}\n",
		 deadline);
	lab_write(lab.config, text);
	if (lab_start(&engine, &err))
		fprintf(stderr, "%s\n", err.text);
	CU_ASSERT_PTR_NOT_NULL_FATAL(engine);
}

static void end(void)
{
	sockets_abort(&clients);
	sockets_abort(&servers);
	weir_engine_stop(engine, true);
	engine = NULL;
	sockets_shut();
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * WEIR_NS_PER_SEC + (uint64_t)now.tv_nsec;
}

static struct weir_service_counts counts(void)
{
	struct weir_service_counts counts;

	weir_exchanges_read(&engine->exchanges, weir_exchanges_find(&engine->exchanges, "web"),
			    now_ns(), &counts);
	return counts;
}

static void open_some(unsigned int count)
{
	CU_ASSERT_EQUAL_FATAL(sockets_try(&clients, "", "10.9.1.1", count, count), count);
	for (int i = 0; i < 1000 && servers.count < clients.count; i++) {
		sockets_accept(&servers);
		usleep(1000);
	}
	CU_ASSERT_EQUAL_FATAL(servers.count, clients.count);
}

/* Sends all of the text and waits until it is there. */
static void pass(int from, int to, const char *text)
{
	struct pollfd wait = { .fd = to, .events = POLLIN };
	size_t size = strlen(text), got = 0;
	char buffer[256];

	CU_ASSERT_EQUAL(send(from, text, size, MSG_NOSIGNAL), (ssize_t)size);
	while (got < size && poll(&wait, 1, 2000) == 1) {
		ssize_t part = read(to, buffer, sizeof(buffer));

		if (part <= 0)
			break;
		got += (size_t)part;
	}
	CU_ASSERT_EQUAL(got, size);
}

/* Which server's end belongs to a client's. */
static int peer_of(int client)
{
	struct sockaddr_in name;
	struct sockaddr_in6 peer;
	socklen_t size = sizeof(name), peer_size;

	getsockname(client, (struct sockaddr *)&name, &size);
	for (unsigned int i = 0; i < servers.count; i++) {
		peer_size = sizeof(peer);
		getpeername(servers.fd[i], (struct sockaddr *)&peer, &peer_size);
		if (peer.sin6_port == name.sin_port)
			return servers.fd[i];
	}
	return -1;
}

static void kept_alive_connections(void)
{
	struct weir_service_counts seen;
	uint64_t times = 0;

	begin("2s");
	open_some(3);
	for (int i = 0; i < 30; i++) {
		int client = clients.fd[i % 3], server = peer_of(client);

		pass(client, server, "GET");
		CU_ASSERT_EQUAL(counts().in_flight, 1);
		usleep(2000);
		pass(server, client, "200 OK");
	}
	seen = counts();
	CU_ASSERT_EQUAL(seen.attempts, 30);
	CU_ASSERT_EQUAL(seen.success, 30);
	CU_ASSERT_EQUAL(seen.failure, 0);
	CU_ASSERT_EQUAL(seen.in_flight, 0);
	CU_ASSERT(seen.response_ns / 30 >= 2000000 && seen.response_ns / 30 < 200000000);
	for (uint32_t i = weir_response_slot(1600000); i < WEIR_RESPONSE_SLOTS; i++)
		times += seen.response[i];
	CU_ASSERT_EQUAL(times, 30);
	end();
}

/* Requests without a wait between are one exchange; further answers belong to none. */
static void pipelined_requests(void)
{
	int server;

	begin("2s");
	open_some(1);
	server = peer_of(clients.fd[0]);
	for (int i = 0; i < 3; i++)
		pass(clients.fd[0], server, "GET");
	for (int i = 0; i < 3; i++)
		pass(server, clients.fd[0], "200 OK");
	CU_ASSERT_EQUAL(counts().attempts, 1);
	CU_ASSERT_EQUAL(counts().success, 1);
	end();
}

/* A reset by the server, one by the client, and a close of one that waits for nothing. */
static void resets_are_failures(void)
{
	const struct linger now = { .l_onoff = 1 };

	begin("2s");
	open_some(3);
	for (int i = 0; i < 2; i++) {
		int client = clients.fd[i], server = peer_of(client);

		pass(client, server, "GET");
		setsockopt(i ? client : server, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
		shutdown(i ? client : server, SHUT_RD);
	}
	CU_ASSERT_EQUAL(counts().in_flight, 2);
	sockets_abort(&servers);
	sockets_abort(&clients);
	usleep(50000);
	CU_ASSERT_EQUAL(counts().attempts, 2);
	CU_ASSERT_EQUAL(counts().failure, 2);
	CU_ASSERT_EQUAL(counts().success, 0);
	CU_ASSERT_EQUAL(counts().in_flight, 0);
	end();
}

/* Failed while it hangs, once: its end adds nothing. */
static void a_hanging_one_fails_once(void)
{
	int server;

	begin("200ms");
	open_some(2);
	server = peer_of(clients.fd[0]);
	pass(clients.fd[0], server, "GET");
	CU_ASSERT_EQUAL(counts().failure, 0);
	usleep(300000);
	CU_ASSERT_EQUAL(counts().failure, 1);
	CU_ASSERT_EQUAL(counts().in_flight, 1);
	/* Longer than the ring of slices, and with others going on. */
	usleep(300000);
	pass(clients.fd[1], peer_of(clients.fd[1]), "GET");
	CU_ASSERT_EQUAL(counts().failure, 1);
	pass(peer_of(clients.fd[1]), clients.fd[1], "200");
	pass(server, clients.fd[0], "200 OK");
	CU_ASSERT_EQUAL(counts().failure, 1);
	CU_ASSERT_EQUAL(counts().success, 1);
	CU_ASSERT_EQUAL(counts().attempts, 2);
	CU_ASSERT_EQUAL(counts().in_flight, 0);
	end();
}

/* A breaker's word: all are refused but a probe; it does not outlast the controller. */
static int note_slot(void *context, void *data, size_t size)
{
	uint16_t *slot = context;

	if (size >= sizeof(struct weir_event))
		*slot = ((const struct weir_event *)data)->slot;
	return 0;
}

/* Who the last sampled refusal says it was refused by. */
static uint16_t refused_by(void)
{
	uint16_t slot = 0;
	struct ring_buffer *ring = ring_buffer__new(weir_engine_dataplane(engine)->events_fd,
						    note_slot, &slot, NULL);

	ring_buffer__consume(ring);
	ring_buffer__free(ring);
	return slot;
}

static void newcomers_get_what_they_are_told(void)
{
	struct weir_service_output output = { .drop = 1, .ceiling = WEIR_SERVICE_NO_CEILING };
	int place;

	begin("60s");
	place = weir_exchanges_find(&engine->exchanges, "web");
	weir_exchanges_steer(&engine->exchanges, place, now_ns(), &output);
	CU_ASSERT_EQUAL(sockets_try(&clients, "", "10.9.1.1", 20, 1), 0);
	CU_ASSERT(counts().dropped >= 20);
	CU_ASSERT_EQUAL(refused_by(), WEIR_BY_SERVICE | place);
	output.probe_ns = 1;
	weir_exchanges_steer(&engine->exchanges, place, now_ns(), &output);
	CU_ASSERT_EQUAL(sockets_try(&clients, "", "10.9.1.1", 5, 5), 5);
	output.drop = 0;
	output.ceiling = 1;
	weir_exchanges_steer(&engine->exchanges, place, now_ns(), &output);
	sockets_accept(&servers);
	pass(clients.fd[0], peer_of(clients.fd[0]), "GET");
	CU_ASSERT_EQUAL(sockets_try(&clients, "", "10.9.1.1", 3, 1), 0);
	CU_ASSERT(counts().shed >= 3);
	CU_ASSERT_EQUAL(refused_by(), WEIR_BY_SERVICE | WEIR_BY_SHEDDER | place);
	weir_exchanges_steer(&engine->exchanges, place, now_ns() - WEIR_STEER_NS, &output);
	CU_ASSERT_EQUAL(sockets_try(&clients, "", "10.9.1.1", 3, 3), 3);
	CU_ASSERT_EQUAL(counts().failure, 0);
	end();
}

static void write_services(const char *services)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "version: 1\nledger: {keys: 1024}\ninterfaces: [{name: w0, mode: native}]\n"
		 "services:\n%s",
		 services);
	lab_write(lab.config, text);
}

static int reload(const char *services)
{
	struct weir_error err = { "" };
	int code;

	write_services(services);
	code = weir_engine_reload(engine, NULL, &err);
	if (code)
		printf("  %s\n", err.text);
	return code;
}

/* One exchange from each client: how many the service took for its own. */
static uint64_t taken(const char *server)
{
	const char *const froms[] = { "10.9.1.2", "10.9.1.3" };
	uint64_t before = counts().attempts;

	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL_FATAL(sockets_try(&clients, strchr(server, ':') ? "" : froms[i],
						  server, 1, 1),
				      1);
		for (int j = 0; j < 1000 && !servers.count; j++) {
			sockets_accept(&servers);
			usleep(1000);
		}
		pass(clients.fd[0], servers.fd[0], "GET");
		pass(servers.fd[0], clients.fd[0], "200 OK");
		sockets_close(&clients);
		sockets_close(&servers);
	}
	return counts().attempts - before;
}

/* Of those that come to its port, a service's are those of its addresses. */
static void addresses_tell_a_service(void)
{
	static const struct {
		const char *match;
		uint64_t four, six; /* of two exchanges each */
	} cases[] = {
		{ "to: 10.9.1.1", 2, 0 },
		{ "to: 10.9.1.7", 0, 0 },
		{ "to: [10.9.0.0/16, \"fd09::/16\"]", 2, 2 },
		{ "to: \"fd09::1\"", 0, 2 },
	};

	begin("60s");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[256];
		uint64_t four, six;

		snprintf(text, sizeof(text),
			 "  - {name: web, match: {proto: tcp, to_port: 8080, %s}}\n",
			 cases[i].match);
		CU_ASSERT_EQUAL_FATAL(reload(text), 0);
		four = taken("10.9.1.1");
		six = taken("fd09::1");
		CU_ASSERT_EQUAL(four, cases[i].four);
		CU_ASSERT_EQUAL(six, cases[i].six);
		if (four != cases[i].four || six != cases[i].six)
			printf("  %s: %llu, %llu\n", cases[i].match, (unsigned long long)four,
			       (unsigned long long)six);
	}
	end();
}

/* What it refuses, too. */
static void addresses_tell_newcomers(void)
{
	const struct weir_service_output output = { .drop = 1, .ceiling = WEIR_SERVICE_NO_CEILING };
	int place;

	begin("60s");
	CU_ASSERT_EQUAL_FATAL(
		reload("  - {name: web, match: {proto: tcp, to_port: 8080, to: 10.9.1.1}}\n"), 0);
	place = weir_exchanges_find(&engine->exchanges, "web");
	weir_exchanges_steer(&engine->exchanges, place, now_ns(), &output);
	CU_ASSERT_EQUAL(sockets_try(&clients, "", "fd09::1", 3, 3), 3);
	CU_ASSERT_EQUAL(counts().dropped, 0);
	CU_ASSERT_EQUAL(sockets_try(&clients, "10.9.1.3", "10.9.1.1", 3, 1), 0);
	CU_ASSERT(counts().dropped >= 3);
	end();
}

static bool same_ports(const uint64_t *before)
{
	return !memcmp(before, engine->exchanges.ports, WEIR_PORT_WORDS * sizeof(*before));
}

/* A reload that fails late leaves no port, no address and no service. */
static void a_refused_reload_leaves_nothing(void)
{
	static uint64_t before[WEIR_PORT_WORDS];
	struct weir_service_prefix key;

	begin("60s");
	memcpy(before, engine->exchanges.ports, sizeof(before));
	/* Its note can't be written: that is the last that can fail before it acts. */
	lab_run("mkdir -p %s.confirm/x", lab.overrides);
	write_services("  - {name: dns, match: {proto: udp, to_port: 53, to: 10.9.1.1}}\n");
	{
		const struct weir_terms terms = { .confirm_ns = 30000000000 };
		struct weir_error err = { "" };

		CU_ASSERT_NOT_EQUAL(weir_engine_reload(engine, &terms, &err), 0);
	}
	CU_ASSERT(same_ports(before));
	CU_ASSERT_EQUAL(weir_exchanges_find(&engine->exchanges, "dns"), -ENOENT);
	CU_ASSERT(weir_exchanges_find(&engine->exchanges, "web") >= 0);
	CU_ASSERT_NOT_EQUAL(bpf_map_get_next_key(engine->exchanges.prefixes_fd, NULL, &key), 0);
	lab_run("rm -r %s.confirm", lab.overrides);
	CU_ASSERT_EQUAL(
		reload("  - {name: dns, match: {proto: udp, to_port: 53, to: 10.9.1.1}}\n"), 0);
	CU_ASSERT_FALSE(same_ports(before));
	CU_ASSERT_EQUAL(bpf_map_get_next_key(engine->exchanges.prefixes_fd, NULL, &key), 0);
	/* And what no service names goes. */
	CU_ASSERT_EQUAL(reload("  - {name: dns, match: {proto: udp, to_port: 53}}\n"), 0);
	CU_ASSERT_NOT_EQUAL(bpf_map_get_next_key(engine->exchanges.prefixes_fd, NULL, &key), 0);
	end();
}

/* One before it goes, one after it comes: it is found at its new index, with its counts. */
static void counts_follow_a_service_that_moves_in_the_file(void)
{
	static const char *const files[] = {
		"  - {name: old, match: {proto: tcp, to_port: 81}, deadline: 2s}\n"
		"  - {name: web, match: {proto: tcp, to_port: 8080}, deadline: 2s}\n",
		"  - {name: web, match: {proto: tcp, to_port: 8080}, deadline: 2s}\n"
		"  - {name: new, match: {proto: tcp, to_port: 81}, deadline: 2s}\n",
	};
	const struct weir_service_output output = { .ceiling = 7 };
	struct weir_service_counts seen;
	struct weir_error err;
	char text[512];

	begin("2s");
	open_some(1);
	pass(clients.fd[0], peer_of(clients.fd[0]), "GET");
	pass(peer_of(clients.fd[0]), clients.fd[0], "200");
	for (size_t i = 0; i < 2; i++) {
		snprintf(text, sizeof(text),
			 "version: 1\nledger: {keys: 1024}\n"
			 "interfaces: [{name: w0, mode: native}]\nservices:\n%s",
			 files[i]);
		lab_write(lab.config, text);
		CU_ASSERT_EQUAL(weir_engine_reload(engine, NULL, &err), 0);
		CU_ASSERT_EQUAL(weir_engine_service_read(engine, 1 - i, now_ns(), &seen), 0);
		CU_ASSERT_EQUAL(seen.success, 1);
		CU_ASSERT_EQUAL(weir_engine_service_read(engine, i, now_ns(), &seen), 0);
		CU_ASSERT_EQUAL(seen.success, 0);
	}
	CU_ASSERT_EQUAL(weir_engine_service_read(engine, 2, now_ns(), &seen), -ENOENT);
	CU_ASSERT_EQUAL(weir_engine_service_steer(engine, 2, now_ns(), &output), -ENOENT);
	CU_ASSERT_EQUAL(weir_engine_service_steer(engine, 0, now_ns(), &output), 0);
	CU_ASSERT_EQUAL(engine->exchanges.services[weir_exchanges_find(&engine->exchanges, "web")]
				.ceiling,
			7);
	CU_ASSERT_EQUAL(weir_exchanges_find(&engine->exchanges, "old"), -ENOENT);
	end();
}

WEIR_TESTS("exchanges", TEST(kept_alive_connections), TEST(pipelined_requests),
	   TEST(resets_are_failures), TEST(a_hanging_one_fails_once),
	   TEST(newcomers_get_what_they_are_told),
	   TEST(counts_follow_a_service_that_moves_in_the_file), TEST(addresses_tell_a_service),
	   TEST(addresses_tell_newcomers), TEST(a_refused_reload_leaves_nothing))
