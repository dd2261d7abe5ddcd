// SPDX-License-Identifier: GPL-2.0
/* Gates on TCP with real sockets: FIELD-NOTES C. */
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <sys/wait.h>

#include "gate_lab.h"
#include "harness.h"

static void a_cap_of_50_admits_50(void)
{
	CU_ASSERT_EQUAL_FATAL(begin(GATE("gate: {limit: 50}")), 0);
	for (int round = 0; round < 2; round++) {
		CU_ASSERT_EQUAL(sockets_try(&clients, "10.9.1.2", "10.9.1.1", 200, 50), 50);
		sockets_accept(&servers);
		CU_ASSERT_EQUAL(servers.count, 50);
		CU_ASSERT_EQUAL(inside(), 50);
		CU_ASSERT_EQUAL(pending(), 0);
		/* Another source has its own. */
		CU_ASSERT_EQUAL(sockets_try(&clients, "10.9.1.3", "10.9.1.1", 1, 1), 1);
		sockets_accept(&servers);
		CU_ASSERT_EQUAL(inside(), 51);
		sockets_close(&clients);
		sockets_close(&servers);
		CU_ASSERT_EQUAL(inside_soon(0, 1000), 0);
	}
	CU_ASSERT(lab_totals(engine, 0).refused_packets >= 300);
	end();
}

/* One that leaves makes room for one; data and FINs are not the gate's. */
static void a_place_for_a_place(void)
{
	struct weir_totals totals;

	CU_ASSERT_EQUAL_FATAL(begin(GATE("gate: {limit: 3}")), 0);
	hold(3);
	for (int i = 0; i < 20; i++)
		CU_ASSERT_EQUAL(send(clients.fd[0], "x", 1, MSG_NOSIGNAL), 1);
	CU_ASSERT_EQUAL(sockets_try(&clients, "10.9.1.2", "10.9.1.1", 1, 1), 0);
	close(clients.fd[--clients.count]);
	close(servers.fd[--servers.count]);
	usleep(20000);
	for (unsigned int i = 0; i < servers.count; i++)
		CU_ASSERT_EQUAL(send(servers.fd[i], "x", 1, MSG_NOSIGNAL), 1);
	totals = lab_totals(engine, 0);
	CU_ASSERT_EQUAL(totals.passed_packets, 3);
	end();
}

/* `count` TCP frames from 10.9.1.`last`:port to the server, as a forger sends them. */
static void forge(unsigned int count, uint8_t last, uint16_t port, uint8_t flags, uint32_t seq)
{
	uint8_t frame[60] = { [12] = 8, [14] = 0x45, [17] = 40, [22] = 64, [23] = 6,
			      [26] = 10, 9, 1, last, 10, 9, 1, 1,
			      (uint8_t)(port >> 8), (uint8_t)port, SOCKET_PORT >> 8,
			      SOCKET_PORT & 0xff, (uint8_t)(seq >> 24), (uint8_t)(seq >> 16),
			      (uint8_t)(seq >> 8), (uint8_t)seq, [46] = 0x50, [47] = flags,
			      [48] = 0x20 };
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_halen = 6 };
	uint32_t sum = 0;
	int fd;

	for (int i = 14; i < 34; i += 2)
		sum += (uint32_t)frame[i] << 8 | frame[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	frame[24] = (uint8_t)(~sum >> 8);
	frame[25] = (uint8_t)~sum;
	sum = 6 + 20;
	for (int i = 26; i < 54; i += 2)
		sum += (uint32_t)frame[i] << 8 | frame[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	frame[50] = (uint8_t)(~sum >> 8);
	frame[51] = (uint8_t)~sum;
	lab_mac("w0", frame);
	sockets_enter(ends.client_ns);
	fd = socket(AF_PACKET, SOCK_RAW, 0);
	lab_mac("w1", frame + 6);
	to.sll_ifindex = (int)if_nametoindex("w1");
	for (unsigned int i = 0; i < count; i++) {
		if (sendto(fd, frame, sizeof(frame), 0, (struct sockaddr *)&to, sizeof(to)) < 0)
			abort();
	}
	close(fd);
	sockets_enter(ends.server_ns);
}

static void C5_a_repeated_syn_is_one(void)
{
	CU_ASSERT_EQUAL_FATAL(begin(GATE("gate: {limit: 3}")), 0);
	forge(5, 77, 1000, 2, 1);
	CU_ASSERT_EQUAL(lab_await(engine, 0, 5).passed_packets, 5);
	CU_ASSERT_EQUAL(pending(), 1);
	forge(5, 77, 1001, 2, 1);
	forge(5, 77, 1002, 2, 1);
	CU_ASSERT_EQUAL(lab_await(engine, 0, 15).passed_packets, 15);
	CU_ASSERT_EQUAL(pending(), 3);
	forge(2, 77, 1003, 2, 1);
	CU_ASSERT_EQUAL(lab_await(engine, 0, 17).refused_packets, 2);
	forge(1, 77, 1000, 2, 1);
	CU_ASSERT_EQUAL(lab_await(engine, 0, 18).passed_packets, 16);
	/* Nobody answered: the places come back, and the refused one is looked at again. */
	CU_ASSERT_EQUAL(inside(), 0);
	for (int i = 0; i < 50 && pending(); i++)
		usleep(100000);
	CU_ASSERT_EQUAL(pending(), 0);
	forge(1, 77, 1003, 2, 1);
	CU_ASSERT_EQUAL(lab_await(engine, 0, 19).passed_packets, 17);
	end();
}

static uint16_t port_of(int fd)
{
	struct sockaddr_in name = { 0 };
	socklen_t size = sizeof(name);

	getsockname(fd, (struct sockaddr *)&name, &size);
	return ntohs(name.sin_port);
}

static void C1_a_forged_rst_frees_nothing(void)
{
	CU_ASSERT_EQUAL_FATAL(begin(GATE("gate: {limit: 10}")), 0);
	hold(10);
	for (unsigned int i = 0; i < 10; i++)
		forge(3, 2, port_of(clients.fd[i]), 4, 0x12345678);
	usleep(20000);
	CU_ASSERT_EQUAL(inside(), 10);
	CU_ASSERT_EQUAL(sockets_try(&clients, "10.9.1.2", "10.9.1.1", 5, 1), 0);
	end();
}

/* The client's host is gone from one moment to the next: namespace, sockets, cable. */
static void lose_client(void)
{
	sockets_enter(ends.client_ns);
	CU_ASSERT_EQUAL(lab_run("ip link set w1 down"), 0);
	sockets_enter(ends.server_ns);
	/* Nothing of it gets out, and no socket keeps the namespace alive. */
	sockets_abort(&clients);
	close(ends.client_ns);
	ends.client_ns = -1;
	for (int i = 0; i < 1000 && if_nametoindex("w0"); i++)
		usleep(10000);
	CU_ASSERT_EQUAL(if_nametoindex("w0"), 0);
}

/* The server's own timeouts notice, nothing else can. */
static void C10_a_lost_client_gives_back(void)
{
	unsigned int timeout_ms = 1500;
	int one = 1;

	CU_ASSERT_EQUAL_FATAL(begin(GATE("gate: {limit: 100}")), 0);
	hold(100);
	lose_client();
	CU_ASSERT_EQUAL(inside(), 100);
	for (unsigned int i = 0; i < servers.count; i++) {
		setsockopt(servers.fd[i], IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms,
			   sizeof(timeout_ms));
		setsockopt(servers.fd[i], IPPROTO_TCP, TCP_KEEPIDLE, &one, sizeof(one));
		setsockopt(servers.fd[i], IPPROTO_TCP, TCP_KEEPINTVL, &one, sizeof(one));
		setsockopt(servers.fd[i], SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	}
	CU_ASSERT_EQUAL(inside_soon(0, 15000), 0);
	end();
}

/* Open before weir, while it was away, and closed while it was away. */
static void a_restart_keeps_the_count(void)
{
	struct weir_error err;

	sockets_open();
	CU_ASSERT_EQUAL(sockets_try(&clients, "10.9.1.2", "10.9.1.1", 4, 4), 4);
	sockets_accept(&servers);
	CU_ASSERT_EQUAL_FATAL(begin(GATE("gate: {limit: 6}")), 0);
	CU_ASSERT_EQUAL(inside(), 4);
	CU_ASSERT(lab_said("gates: 4 entries of connections open before, 0 places"));
	CU_ASSERT_EQUAL(sockets_try(&clients, "10.9.1.2", "10.9.1.1", 5, 2), 2);
	sockets_accept(&servers);
	CU_ASSERT_EQUAL(inside(), 6);
	weir_engine_stop(engine, false);
	close(clients.fd[--clients.count]);
	close(servers.fd[--servers.count]);
	close(clients.fd[--clients.count]);
	close(servers.fd[--servers.count]);
	CU_ASSERT_EQUAL(sockets_try(&clients, "10.9.1.2", "10.9.1.1", 5, 2), 2);
	sockets_accept(&servers);
	lab.log[0] = '\0';
	CU_ASSERT_EQUAL_FATAL(lab_start(&engine, &err), 0);
	CU_ASSERT_EQUAL(inside(), 6);
	CU_ASSERT_FALSE(lab_said("gates:"));
	CU_ASSERT_EQUAL(sockets_try(&clients, "10.9.1.2", "10.9.1.1", 3, 1), 0);
	sockets_close(&clients);
	sockets_close(&servers);
	CU_ASSERT_EQUAL(inside_soon(0, 1000), 0);
	end();
}

/* And a limit that comes later counts whom it finds. */
static void C6_a_reload_keeps_the_count(void)
{
	struct weir_error err;

	CU_ASSERT_EQUAL_FATAL(begin(GATE("gate: {limit: 5}")), 0);
	hold(5);
	lab_config(NATIVE, "  - {name: other, key: none, bucket: {rate: 1Mpps, burst: 1M}}\n"
		       GATE("gate: {limit: 5}")
		       "  - {name: all, key: none, match: {proto: tcp}, gate: {limit: 5}}\n");
	CU_ASSERT_EQUAL(weir_engine_reload(engine, NULL, &err), 0);
	CU_ASSERT_EQUAL(inside(), 10);
	CU_ASSERT_EQUAL(sockets_try(&clients, "10.9.1.3", "10.9.1.1", 2, 1), 0);
	lab_config(NATIVE, GATE("gate: {limit: 7}"));
	CU_ASSERT_EQUAL(weir_engine_reload(engine, NULL, &err), 0);
	CU_ASSERT_EQUAL(sockets_try(&clients, "10.9.1.2", "10.9.1.1", 5, 2), 2);
	sockets_accept(&servers);
	sockets_close(&clients);
	sockets_close(&servers);
	CU_ASSERT_EQUAL(inside_soon(0, 1000), 0);
	end();
}

/* Who is open for long outlives any number of changes of the gate's key, and of the gate. */
static void a_gate_of_another_key_finds_them_again(void)
{
	char limits[256];
	struct weir_error err;

	CU_ASSERT_EQUAL_FATAL(begin(GATE("gate: {limit: 50}")), 0);
	hold(5);
	for (int change = 0; change < 12; change++) {
		snprintf(limits, sizeof(limits),
			 "  - {name: conns, key: {source: {v4: %d}}, "
			 "match: {proto: tcp, to_port: 8080}, gate: {limit: 50}}\n"
			 "  - {name: all%d, key: none, match: {proto: tcp}, gate: {limit: 5}}\n",
			 20 + change, change);
		lab_config(NATIVE, limits);
		CU_ASSERT_EQUAL(weir_engine_reload(engine, NULL, &err), 0);
		CU_ASSERT_EQUAL(inside(), 10);
		CU_ASSERT_EQUAL(sockets_try(&clients, "10.9.1.3", "10.9.1.1", 1, 1), 0);
	}
	CU_ASSERT_EQUAL(weir_connections_counts(engine->connections).uncounted, 0);
	sockets_close(&clients);
	sockets_close(&servers);
	CU_ASSERT_EQUAL(inside_soon(0, 1000), 0);
	end();
}

static void a_recount_heals(void)
{
	const int64_t drifts[] = { 7, -2, 1000, 0 };
	struct weir_recounted recounted;
	struct weir_error err;

	CU_ASSERT_EQUAL_FATAL(begin(GATE("gate: {limit: 50}")), 0);
	hold(5);
	for (size_t i = 0; i < sizeof(drifts) / sizeof(drifts[0]); i++) {
		tamper(drifts[i]);
		CU_ASSERT_EQUAL(weir_connections_recount(engine->connections, &recounted, &err),
				0);
		CU_ASSERT_EQUAL(recounted.adopted, 0);
		CU_ASSERT_EQUAL(recounted.healed, (uint64_t)llabs(drifts[i]));
		CU_ASSERT_EQUAL(inside(), 5);
	}
	sockets_close(&clients);
	sockets_close(&servers);
	CU_ASSERT_EQUAL(inside_soon(0, 1000), 0);
	end();
}

/* News of links, such as containers make, is no reason: a recount of a large gate takes long. */
static void ticks_in_a_row_recount_no_sooner(void)
{
	uint32_t walks;

	CU_ASSERT_EQUAL_FATAL(begin(GATE("gate: {limit: 50}")), 0);
	walks = engine->dataplane.board->where.walks;
	for (int i = 0; i < 200; i++)
		weir_engine_tick(engine);
	CU_ASSERT_EQUAL(engine->dataplane.board->where.walks, walks);
	engine->recounted_ns = 0;
	weir_engine_tick(engine);
	CU_ASSERT_EQUAL(engine->dataplane.board->where.walks, walks + 1);
	end();
}

/* Connections come and go all the time that recounts run: nothing is lost, nothing healed. */
static void a_recount_disturbs_nobody(void)
{
	struct weir_connection_counts counts;
	struct weir_recounted recounted;
	struct weir_error err;
	pid_t busy;

	CU_ASSERT_EQUAL_FATAL(begin(GATE("gate: {limit: 200}")), 0);
	hold(20);
	busy = fork();
	if (!busy) {
		for (int round = 0; round < 30; round++) {
			clients.count = servers.count = 0;
			sockets_try(&clients, "10.9.1.2", "10.9.1.1", 20, 20);
			sockets_accept(&servers);
			sockets_abort(&clients);
			sockets_abort(&servers);
		}
		_exit(0);
	}
	for (int i = 0; i < 40; i++) {
		CU_ASSERT_EQUAL(weir_connections_recount(engine->connections, &recounted, &err),
				0);
		CU_ASSERT_EQUAL(recounted.healed, 0);
	}
	CU_ASSERT_EQUAL(waitpid(busy, NULL, 0), busy);
	CU_ASSERT_EQUAL(inside_soon(20, 1000), 20);
	counts = weir_connections_counts(engine->connections);
	CU_ASSERT_EQUAL(counts.entered, counts.left + 20);
	CU_ASSERT(counts.entered > 500);
	end();
}

static void C3_who_is_allowed_takes_no_place(void)
{
	struct weir_recounted recounted;
	struct weir_error err;

	CU_ASSERT_EQUAL_FATAL(
		begin("  - {name: all, key: none, match: {proto: tcp}, gate: {limit: 3}}\n"
		      "lists: {allow: [10.9.1.3/32]}\n"), 0);
	CU_ASSERT_EQUAL(sockets_try(&clients, "10.9.1.3", "10.9.1.1", 10, 10), 10);
	CU_ASSERT_EQUAL(inside(), 0);
	CU_ASSERT_EQUAL(weir_connections_recount(engine->connections, &recounted, &err), 0);
	CU_ASSERT_EQUAL(recounted.adopted, 0);
	CU_ASSERT_EQUAL(sockets_try(&clients, "10.9.1.2", "10.9.1.1", 5, 3), 3);
	CU_ASSERT_EQUAL(inside(), 3);
	sockets_accept(&servers);
	end();
}

/* Over the cap, connect() fails at once. */
static void C4_a_reset_is_heard(void)
{
	const char *const servers_at[] = { "10.9.1.1", "fd09::1" };

	CU_ASSERT_EQUAL_FATAL(begin(GATE("gate: {limit: 2, refuse: reset}")), 0);
	for (int i = 0; i < 2; i++) {
		int64_t start;
		int fd;

		CU_ASSERT_EQUAL(sockets_try(&clients, "", servers_at[i], 2, 2), 2);
		sockets_accept(&servers);
		start = sockets_now_ms();
		fd = sockets_connect("", servers_at[i]);
		CU_ASSERT_EQUAL(sockets_outcome(fd, 3000), -ECONNREFUSED);
		CU_ASSERT(sockets_now_ms() - start < 1000);
		close(fd);
	}
	CU_ASSERT_EQUAL(inside(), 4);
	end();
}

/* A socket of another namespace is not behind our interfaces. */
static void elsewhere_does_not_count(void)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_port = htons(SOCKET_PORT),
				   .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int listener, client;

	CU_ASSERT_EQUAL_FATAL(begin(GATE("gate: {limit: 2}")), 0);
	sockets_enter(ends.client_ns);
	listener = socket(AF_INET6, SOCK_STREAM, 0);
	client = socket(AF_INET6, SOCK_STREAM, 0);
	sockets_enter(ends.server_ns);
	CU_ASSERT_EQUAL(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	CU_ASSERT_EQUAL(listen(listener, 5), 0);
	CU_ASSERT_EQUAL(connect(client, (struct sockaddr *)&at, sizeof(at)), 0);
	CU_ASSERT_EQUAL(inside(), 0);
	close(client);
	/* Ours on the loopback does, once. */
	client = socket(AF_INET6, SOCK_STREAM, 0);
	CU_ASSERT_EQUAL(connect(client, (struct sockaddr *)&at, sizeof(at)), 0);
	CU_ASSERT_EQUAL(inside_soon(1, 500), 1);
	close(client);
	close(listener);
	sockets_accept(&servers);
	end();
}

WEIR_TESTS("connections", TEST(a_cap_of_50_admits_50), TEST(a_place_for_a_place),
	   TEST(C5_a_repeated_syn_is_one), TEST(C1_a_forged_rst_frees_nothing),
	   TEST(C10_a_lost_client_gives_back), TEST(a_restart_keeps_the_count),
	   TEST(C6_a_reload_keeps_the_count),
	   TEST(a_gate_of_another_key_finds_them_again), TEST(a_recount_heals),
	   TEST(ticks_in_a_row_recount_no_sooner),
	   TEST(a_recount_disturbs_nobody), TEST(C3_who_is_allowed_takes_no_place),
	   TEST(C4_a_reset_is_heard), TEST(elsewhere_does_not_count))
