// SPDX-License-Identifier: GPL-2.0
/* Gates on connections that are forwarded to another network namespace of the host. */
#include <bpf/libbpf.h>
#include <linux/bpf.h>

#include "gate_lab.h"
#include "harness.h"

/* ---- a server in a third namespace, behind ours ---- */

/* 10.10.0.2 in a namespace of its own, to which ours forwards; its listener. */
static int behind_us(void)
{
	const struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(SOCKET_PORT) };
	int ns, listener;

	CU_ASSERT_EQUAL_FATAL(unshare(CLONE_NEWNET), 0);
	ns = sockets_namespace();
	lab_run("ip link set lo up");
	listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	sockets_enter(ends.server_ns);
	if (lab_run("ip link add c0 type veth peer name c1 netns /proc/%d/fd/%d", getpid(), ns) ||
	    lab_run("ip addr add 10.10.0.1/24 dev c0") || lab_run("ip link set c0 up") ||
	    lab_run("sysctl -w net.ipv4.ip_forward=1"))
		abort();
	sockets_enter(ns);
	if (lab_run("ip addr add 10.10.0.2/24 dev c1") || lab_run("ip link set c1 up") ||
	    lab_run("ip route add default via 10.10.0.1"))
		abort();
	sockets_enter(ends.client_ns);
	if (lab_run("ip route add 10.10.0.0/24 via 10.9.1.1"))
		abort();
	sockets_enter(ends.server_ns);
	CU_ASSERT_EQUAL(bind(listener, (const struct sockaddr *)&any, sizeof(any)), 0);
	CU_ASSERT_EQUAL(listen(listener, SOCKETS_MAX), 0);
	close(ns);
	return listener;
}

static void accept_at(int listener)
{
	int fd;

	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
		servers.fd[servers.count++] = fd;
}

/* They count once, are held to the cap, and a recount neither loses nor doubles them. */
static void forwarded_ones_count_once(void)
{
	struct weir_recounted recounted;
	struct weir_error err;
	int listener;

	CU_ASSERT_EQUAL_FATAL(begin(GATE("gate: {limit: 5}")), 0);
	listener = behind_us();
	hold(2);
	CU_ASSERT_EQUAL(sockets_try(&clients, "10.9.1.2", "10.10.0.2", 10, 3), 3);
	accept_at(listener);
	CU_ASSERT_EQUAL(inside_soon(5, 500), 5);
	CU_ASSERT_EQUAL(pending(), 0);
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(weir_connections_recount(engine->connections, &recounted, &err),
				0);
		CU_ASSERT_EQUAL(recounted.healed, 0);
		CU_ASSERT_EQUAL(recounted.adopted, 0);
		CU_ASSERT_EQUAL(inside(), 5);
	}
	/* What is off is put right, by both walks together. */
	tamper(4);
	CU_ASSERT_EQUAL(weir_connections_recount(engine->connections, &recounted, &err), 0);
	CU_ASSERT_EQUAL(recounted.healed, 4);
	CU_ASSERT_EQUAL(inside(), 5);
	sockets_close(&clients);
	sockets_close(&servers);
	CU_ASSERT_EQUAL(inside_soon(0, 1000), 0);
	close(listener);
	end();
}

/* They outlive the controller; one that came while it was away is counted too. */
static void forwarded_ones_outlive_a_restart(void)
{
	struct weir_error err;
	int listener;

	CU_ASSERT_EQUAL_FATAL(begin(GATE("gate: {limit: 4}")), 0);
	listener = behind_us();
	CU_ASSERT_EQUAL(sockets_try(&clients, "10.9.1.2", "10.10.0.2", 2, 2), 2);
	CU_ASSERT_EQUAL(inside_soon(2, 500), 2);
	weir_engine_stop(engine, false);
	CU_ASSERT_EQUAL(sockets_try(&clients, "10.9.1.2", "10.10.0.2", 1, 1), 1);
	lab.log[0] = '\0';
	CU_ASSERT_EQUAL_FATAL(lab_start(&engine, &err), 0);
	CU_ASSERT_EQUAL(inside(), 3);
	CU_ASSERT_FALSE(lab_said("gates:"));
	CU_ASSERT_EQUAL(sockets_try(&clients, "10.9.1.2", "10.10.0.2", 5, 1), 1);
	accept_at(listener);
	close(listener);
	end();
}

WEIR_TESTS("forwarded", TEST(forwarded_ones_count_once), TEST(forwarded_ones_outlive_a_restart))
