/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Real connections for the tests of gates and services. On top of engine_lab.h: its namespace
 * is the server's, w0 has 10.9.1.1 and fd09::1; w1 is moved into a client's namespace of its
 * own with 10.9.1.2, 10.9.1.3 and fd09::2. One process holds the sockets of both ends.
 */
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include "engine_lab.h"

#define SOCKET_PORT 8080
#define SOCKETS_MAX 256

struct sockets {
	int fd[SOCKETS_MAX];
	unsigned int count;
};

static struct {
	int server_ns, client_ns;
	int listener;
} ends = { -1, -1, -1 };

static inline void sockets_enter(int ns)
{
	if (setns(ns, CLONE_NEWNET))
		abort();
}

static inline int sockets_namespace(void)
{
	return open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
}

static inline void sockets_close(struct sockets *sockets)
{
	for (unsigned int i = 0; i < sockets->count; i++)
		close(sockets->fd[i]);
	sockets->count = 0;
}

/* Closes with a RST, so that nothing lingers. */
static inline void sockets_abort(struct sockets *sockets)
{
	const struct linger now = { .l_onoff = 1 };

	for (unsigned int i = 0; i < sockets->count; i++)
		setsockopt(sockets->fd[i], SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	sockets_close(sockets);
}

static inline void sockets_open(void)
{
	const struct sockaddr_in6 any = { .sin6_family = AF_INET6,
					  .sin6_port = htons(SOCKET_PORT) };
	int on = 1;

	lab_open();
	ends.server_ns = sockets_namespace();
	if (unshare(CLONE_NEWNET))
		abort();
	ends.client_ns = sockets_namespace();
	lab_run("ip link set lo up");
	sockets_enter(ends.server_ns);
	if (lab_run("ip link set w1 netns /proc/%d/fd/%d", getpid(), ends.client_ns) ||
	    lab_run("ip link set lo up") || lab_run("ip addr add 10.9.1.1/24 dev w0") ||
	    lab_run("sysctl -w net.ipv6.conf.w0.disable_ipv6=0") ||
	    lab_run("ip addr add fd09::1/64 dev w0 nodad"))
		abort();
	sockets_enter(ends.client_ns);
	lab_run("ip link set w1 up");
	/* A veth takes what XDP_TX sends only where it has an XDP program itself. */
	lab_attach_foreign("w1");
	if (lab_run("ip addr add 10.9.1.2/24 dev w1") ||
	    lab_run("ip addr add 10.9.1.3/24 dev w1") ||
	    lab_run("sysctl -w net.ipv6.conf.w1.disable_ipv6=0") ||
	    lab_run("ip addr add fd09::2/64 dev w1 nodad"))
		abort();
	sockets_enter(ends.server_ns);
	ends.listener = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	setsockopt(ends.listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(ends.listener, (const struct sockaddr *)&any, sizeof(any)) ||
	    listen(ends.listener, SOCKETS_MAX))
		abort();
}

static inline void sockets_shut(void)
{
	close(ends.listener);
	close(ends.client_ns);
	close(ends.server_ns);
	ends.listener = -1;
	lab_close();
}

/* A client's socket on its way from `from` ("": any) to `to`, the server. */
static inline int sockets_connect(const char *from, const char *to)
{
	bool v6 = strchr(to, ':');
	struct sockaddr_in6 to6 = { .sin6_family = AF_INET6, .sin6_port = htons(SOCKET_PORT) };
	struct sockaddr_in to4 = { .sin_family = AF_INET, .sin_port = htons(SOCKET_PORT) };
	struct sockaddr_in from4 = { .sin_family = AF_INET };
	int fd;

	sockets_enter(ends.client_ns);
	fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	sockets_enter(ends.server_ns);
	inet_pton(v6 ? AF_INET6 : AF_INET, to, v6 ? (void *)&to6.sin6_addr : &to4.sin_addr);
	if (*from && (inet_pton(AF_INET, from, &from4.sin_addr) != 1 ||
		      bind(fd, (struct sockaddr *)&from4, sizeof(from4))))
		abort();
	if (connect(fd, v6 ? (void *)&to6 : (void *)&to4, v6 ? sizeof(to6) : sizeof(to4)) &&
	    errno != EINPROGRESS)
		abort();
	return fd;
}

/* Milliseconds of a clock that only goes on. */
static inline int64_t sockets_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* 1: connected; 0: still on its way after `ms`; else -errno. */
static inline int sockets_outcome(int fd, int ms)
{
	struct pollfd wait = { .fd = fd, .events = POLLOUT };
	int error = 0;
	socklen_t size = sizeof(error);

	if (poll(&wait, 1, ms) != 1)
		return 0;
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
	return error ? -error : 1;
}

/*
 * `tries` at once; those that are connected stay in *clients, the others are closed. Waits for
 * the first `expected`, and 100 ms for more.
 */
static inline unsigned int sockets_try(struct sockets *clients, const char *from, const char *to,
				       unsigned int tries, unsigned int expected)
{
	struct sockets new = { .count = tries };
	unsigned int connected = 0;
	int64_t until = sockets_now_ms() + 3000;
	bool done[SOCKETS_MAX] = { 0 };

	for (unsigned int i = 0; i < tries; i++)
		new.fd[i] = sockets_connect(from, to);
	while (sockets_now_ms() < until) {
		for (unsigned int i = 0; i < tries; i++) {
			if (done[i] || sockets_outcome(new.fd[i], 0) != 1)
				continue;
			done[i] = true;
			connected++;
		}
		if (connected >= expected && until > sockets_now_ms() + 100)
			until = sockets_now_ms() + 100;
		usleep(2000);
	}
	for (unsigned int i = 0; i < tries; i++) {
		if (done[i])
			clients->fd[clients->count++] = new.fd[i];
		else
			close(new.fd[i]);
	}
	return connected;
}

/* Everything that waits to be accepted. */
static inline void sockets_accept(struct sockets *servers)
{
	int fd;

	while ((fd = accept4(ends.listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
		servers->fd[servers->count++] = fd;
}
