// SPDX-License-Identifier: GPL-2.0
/*
 * A Host header: what is taken for this server is localhost, an address or a name that it was
 * given, and nothing else; so no page elsewhere reaches it by a name of its own. The rest of a
 * request is libevent's to parse.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "controller/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok)
{
	if (!ok)
		abort();
}

static bool is_name(const char *host, const char *name)
{
	size_t length = strlen(name);

	return !strncasecmp(host, name, length) && (!host[length] || host[length] == ':');
}

static bool is_address(const char *host)
{
	return !host[strspn(host, "0123456789abcdefABCDEF.:[]")];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char *names[] = { "weir.example.net", "box" };
	const struct weir_texts hosts = { .items = names, .count = 2 }, none = { 0 };
	char *host = malloc(size + 4);

	check(host);
	memcpy(host, data, size);
	host[size] = '\0';
	weir_http_is_loopback(host);
	if (weir_http_host_is_ours(host, &none))
		check(is_name(host, "localhost") || is_address(host));
	if (weir_http_host_is_ours(host, &hosts)) {
		check(is_name(host, "localhost") || is_name(host, names[0]) ||
		      is_name(host, names[1]) || is_address(host));
		/* A port more is the same host, unless it has one. */
		if (!strchr(host, ':'))
			check(weir_http_host_is_ours(strcat(host, ":80"), &hosts));
	}
	free(host);
	return 0;
}
