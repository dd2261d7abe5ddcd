// SPDX-License-Identifier: GPL-2.0
#include "controller/http_listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "controller/http.h"

#define BACKLOG 128
#define SEND_BYTES (128 * 1024) /* that the kernel holds of an answer, for each connection */

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* "127.0.0.1:9477", "[::1]:9477": the policy has checked it. Its size, 0 for what is neither. */
static socklen_t parse(const char *listen, union address *address)
{
	const char *colon = strrchr(listen, ':');
	size_t length = colon ? (size_t)(colon - listen) : 0;
	char host[64];
	in_port_t port = colon ? htons((uint16_t)strtoul(colon + 1, NULL, 10)) : 0;

	*address = (union address){ 0 };
	if (!length || length >= sizeof(host))
		return 0;
	memcpy(host, listen, length);
	host[length] = '\0';
	if (inet_pton(AF_INET, host, &address->v4.sin_addr) == 1) {
		address->v4.sin_family = AF_INET;
		address->v4.sin_port = port;
		return sizeof(address->v4);
	}
	host[length - 1] = '\0';
	if (*host != '[' || inet_pton(AF_INET6, host + 1, &address->v6.sin6_addr) != 1)
		return 0;
	address->v6.sin6_family = AF_INET6;
	address->v6.sin6_port = port;
	return sizeof(address->v6);
}

bool weir_http_is_loopback(const char *listen)
{
	union address address;

	if (!parse(listen, &address))
		return false;
	if (address.any.sa_family == AF_INET)
		return ntohl(address.v4.sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&address.v6.sin6_addr);
}

int weir_http_listen(const char *listen_on, struct weir_error *err)
{
	union address address;
	socklen_t size = parse(listen_on, &address);
	const int on = 1, send_bytes = SEND_BYTES;
	int fd, rc;

	if (!size)
		return weir_error_set(err, -EINVAL, "metrics.listen '%s' is no address and port",
				      listen_on);
	fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return weir_error_set(err, -errno, "metrics.listen '%s': %s", listen_on,
				      strerror(errno));
	/* Connections of a controller before this one may still be closing. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	/* Else it grows to megabytes for who doesn't read. Accepted connections inherit it. */
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_bytes, sizeof(send_bytes));
	if (address.any.sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (!bind(fd, &address.any, size) && !listen(fd, BACKLOG))
		return fd;
	rc = -errno;
	close(fd);
	if (rc == -EADDRINUSE)
		return weir_error_set(err, rc,
				      "metrics.listen '%s': another program has this port: end it, "
				      "or write another port, or off",
				      listen_on);
	return weir_error_set(err, rc, "metrics.listen '%s': %s: write %s", listen_on,
			      strerror(-rc),
			      rc == -EACCES ? "a port from 1024 on" : "an address of this machine");
}

/* ---- Host ---- */

/* Where the port, if there is one, begins; NULL for what is no host with a port. */
static const char *end_of_host(const char *host)
{
	const char *end = *host == '[' ? strchr(host, ']') : host + strcspn(host, ":");

	if (end && *end == ']')
		end++;
	if (!end || (*end && *end != ':'))
		return NULL;
	if (*end && end[1 + strspn(end + 1, "0123456789")])
		return NULL;
	return end;
}

bool weir_http_host_is_ours(const char *host, const struct weir_texts *hosts)
{
	const char *end = host ? end_of_host(host) : NULL;
	unsigned char binary[16];
	char name[256];
	size_t length = end ? (size_t)(end - host) : 0;

	if (!length || length >= sizeof(name))
		return false;
	memcpy(name, host, length);
	name[length] = '\0';
	if (!strcasecmp(name, "localhost") || inet_pton(AF_INET, name, binary) == 1)
		return true;
	for (size_t i = 0; i < hosts->count; i++) {
		if (!strcasecmp(name, hosts->items[i]))
			return true;
	}
	name[length - 1] = '\0';
	return *name == '[' && inet_pton(AF_INET6, name + 1, binary) == 1;
}
