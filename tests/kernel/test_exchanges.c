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
static void newcomers_get_what_they_are_told(void)
{
	struct weir_service_output output = { .drop = 1, .ceiling = WEIR_SERVICE_NO_CEILING };
	int place;

	begin("60s");
	place = weir_exchanges_find(&engine->exchanges, "web");
	weir_exchanges_steer(&engine->exchanges, place, now_ns(), &output);
	CU_ASSERT_EQUAL(sockets_try(&clients, "", "10.9.1.1", 20, 1), 0);
	CU_ASSERT(counts().dropped >= 20);
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
	weir_exchanges_steer(&engine->exchanges, place, now_ns() - WEIR_STEER_NS, &output);
	CU_ASSERT_EQUAL(sockets_try(&clients, "", "10.9.1.1", 3, 3), 3);
	CU_ASSERT_EQUAL(counts().failure, 0);
	end();
}

WEIR_TESTS("exchanges", TEST(kept_alive_connections), TEST(pipelined_requests),
	   TEST(resets_are_failures), TEST(a_hanging_one_fails_once),
	   TEST(newcomers_get_what_they_are_told))
