// SPDX-License-Identifier: GPL-2.0
/*
 * Which interfaces a session crosses, on hosts of our making: addresses, and what stands on what.
 * The linker takes getifaddrs and opendir from here.
 */
#include "harness.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compile_text.h"
#include "controller/session.h"

#define ADDRESSES_MAX 8

static char folder[] = "/tmp/weir-net-XXXXXX"; /* as /sys/class/net */
static struct weir_policy *policy;

static struct {
	struct ifaddrs entries[ADDRESSES_MAX];
	struct sockaddr_in6 addresses[ADDRESSES_MAX];
	size_t count;
	bool fails;
	int got, opened; /* lists that were not given back; folders */
} host;

int getifaddrs(struct ifaddrs **all)
{
	errno = ENOMEM;
	if (host.fails)
		return -1;
	for (size_t i = 0; i < host.count; i++)
		host.entries[i].ifa_next = i + 1 < host.count ? &host.entries[i + 1] : NULL;
	host.got++;
	*all = host.count ? host.entries : NULL;
	return 0;
}

void freeifaddrs(struct ifaddrs *all)
{
	host.got--;
	CU_ASSERT(all == (host.count ? host.entries : NULL));
}

DIR *opendir(const char *name)
{
	char path[128];
	int fd;

	host.opened++;
	CU_ASSERT_EQUAL(strncmp(name, "/sys/class/net/", 15), 0);
	snprintf(path, sizeof(path), "%s/%s", folder, name + 15);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? NULL : fdopendir(fd);
}

/* ---- hosts ---- */

/* One more address; "": an interface that has none. */
static void address(const char *interface, const char *text, unsigned int flags)
{
	struct ifaddrs *entry = &host.entries[host.count];
	struct sockaddr_in6 *six = &host.addresses[host.count++];
	struct sockaddr_in *four = (struct sockaddr_in *)six;

	*entry = (struct ifaddrs){ .ifa_name = (char *)interface, .ifa_flags = flags };
	if (!*text)
		return;
	entry->ifa_addr = (struct sockaddr *)six;
	entry->ifa_addr->sa_family = strchr(text, ':') ? AF_INET6 : AF_INET;
	inet_pton(entry->ifa_addr->sa_family, text,
		  strchr(text, ':') ? (void *)&six->sin6_addr : (void *)&four->sin_addr);
}

/* `upper` stands on `lower`. */
static void stands_on(const char *upper, const char *lower)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, upper);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/%s/lower_%s", folder, upper, lower);
	CU_ASSERT_EQUAL(mkdir(path, 0700), 0);
}

static void begin(void)
{
	memset(&host, 0, sizeof(host));
	strcpy(folder + strlen(folder) - 6, "XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
	policy = load("version: 1\ninterfaces: [{name: e0}, {name: e1}, {name: br0}]\n");
}

static void end(void)
{
	char command[64];

	CU_ASSERT_EQUAL(host.got, 0);
	weir_policy_free(policy);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	CU_ASSERT_EQUAL(system(command), 0);
}

/* Those of e0, e1, br0 that it crosses, as digits 0, 1, 2. */
static const char *crosses(const char *connection)
{
	static char text[8];
	struct weir_session session;
	struct weir_error err;
	bool by[3];
	size_t used = 0;

	CU_ASSERT_EQUAL_FATAL(weir_session_parse(connection, &session, &err), 0);
	weir_session_interfaces(&session, policy, by);
	for (size_t i = 0; i < 3; i++) {
		if (by[i])
			text[used++] = (char)('0' + i);
	}
	text[used] = '\0';
	return text;
}

/* ---- tests ---- */

static void by_the_one_that_has_the_address(void)
{
	begin();
	address("lo", "", IFF_LOOPBACK);
	address("e0", "198.51.100.1", 0);
	address("e1", "198.51.100.2", 0);
	address("e1", "2001:db8::2", 0);
	address("e0", "2001:db8::1", 0);
	CU_ASSERT_STRING_EQUAL(crosses("192.0.2.7 4000 198.51.100.1 22"), "0");
	CU_ASSERT_STRING_EQUAL(crosses("192.0.2.7 4000 198.51.100.2 22"), "1");
	CU_ASSERT_STRING_EQUAL(crosses("2001:db8:9::7 4000 2001:db8::2 22"), "1");
	CU_ASSERT_STRING_EQUAL(crosses("2001:db8:9::7 4000 2001:db8::1 22"), "0");
	/* One more that the policy doesn't name: by none of its. */
	address("wg0", "198.51.100.3", 0);
	CU_ASSERT_STRING_EQUAL(crosses("192.0.2.7 4000 198.51.100.3 22"), "");
	end();
}

static void by_what_that_stands_on(void)
{
	begin();
	stands_on("br0.7", "br0");
	stands_on("br0", "bond0");
	stands_on("br0", "tap3");
	stands_on("bond0", "e1");
	address("br0.7", "198.51.100.1", 0);
	address("e0", "198.51.100.2", 0);
	CU_ASSERT_STRING_EQUAL(crosses("192.0.2.7 4000 198.51.100.1 22"), "12");
	/* "br0:1" is a label of br0. */
	address("br0:1", "198.51.100.3", 0);
	CU_ASSERT_STRING_EQUAL(crosses("192.0.2.7 4000 198.51.100.3 22"), "12");
	end();
}

static void a_circle_of_interfaces_ends(void)
{
	begin();
	stands_on("a", "b");
	stands_on("b", "a");
	stands_on("b", "e0");
	address("a", "198.51.100.1", 0);
	CU_ASSERT_STRING_EQUAL(crosses("192.0.2.7 4000 198.51.100.1 22"), "0");
	CU_ASSERT(host.opened < 50);
	end();
}

static void by_all_where_it_is_not_known(void)
{
	begin();
	address("e0", "198.51.100.2", 0);
	CU_ASSERT_STRING_EQUAL(crosses("192.0.2.7 4000 198.51.100.1 22"), "012");
	/* An address of lo that is no 127.0.0.1 may come by any. */
	address("lo", "198.51.100.1", IFF_LOOPBACK);
	CU_ASSERT_STRING_EQUAL(crosses("192.0.2.7 4000 198.51.100.1 22"), "012");
	host.fails = true;
	CU_ASSERT_STRING_EQUAL(crosses("192.0.2.7 4000 198.51.100.2 22"), "012");
	end();
}

static void from_the_host_to_itself_by_none(void)
{
	begin();
	address("e0", "198.51.100.1", 0);
	CU_ASSERT_STRING_EQUAL(crosses("198.51.100.1 4000 198.51.100.1 22"), "");
	end();
}

WEIR_TESTS("session_interfaces", TEST(by_the_one_that_has_the_address),
	   TEST(by_what_that_stands_on), TEST(a_circle_of_interfaces_ends),
	   TEST(by_all_where_it_is_not_known), TEST(from_the_host_to_itself_by_none))
