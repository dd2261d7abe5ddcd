// SPDX-License-Identifier: GPL-2.0
/* The interfaces that a session's packets cross. */
#include <dirent.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "controller/session.h"

#define DEPTH_MAX 8 /* a VLAN on a bridge on a bond: as deep as one builds */

static bool has_address(const struct ifaddrs *entry, const struct weir_session *session)
{
	const struct sockaddr *address = entry->ifa_addr;

	if (!address)
		return false;
	if (address->sa_family == AF_INET && session->family == 4)
		return !memcmp(&((const struct sockaddr_in *)address)->sin_addr, session->own, 4);
	return address->sa_family == AF_INET6 && session->family == 6 &&
	       !memcmp(&((const struct sockaddr_in6 *)address)->sin6_addr, session->own, 16);
}

/* Marks the interface, if the policy names it, and those that it stands on. */
static void mark(const struct weir_policy *policy, const char *name, bool *by, int depth)
{
	char path[64 + IF_NAMESIZE];
	struct dirent *entry;
	DIR *folder;

	for (size_t i = 0; i < policy->interface_count; i++) {
		if (!strcmp(policy->interfaces[i].name, name))
			by[i] = true;
	}
	snprintf(path, sizeof(path), "/sys/class/net/%.*s", IF_NAMESIZE, name);
	folder = depth < DEPTH_MAX ? opendir(path) : NULL;
	while (folder && (entry = readdir(folder))) {
		if (!strncmp(entry->d_name, "lower_", 6))
			mark(policy, entry->d_name + 6, by, depth + 1);
	}
	if (folder)
		closedir(folder);
}

void weir_session_interfaces(const struct weir_session *session, const struct weir_policy *policy,
			     bool *by)
{
	struct ifaddrs *all = NULL;
	bool found = false;

	memset(by, 0, policy->interface_count * sizeof(*by));
	/* From this host to itself: by lo, whatever the address. */
	if (!memcmp(session->peer, session->own, sizeof(session->own)))
		return;
	if (!getifaddrs(&all)) {
		for (const struct ifaddrs *entry = all; entry; entry = entry->ifa_next) {
			/* "eth0:1" is a label of eth0. An address of lo may come by any. */
			char name[IF_NAMESIZE];

			if (!has_address(entry, session) || entry->ifa_flags & IFF_LOOPBACK)
				continue;
			found = true;
			snprintf(name, sizeof(name), "%s", entry->ifa_name);
			name[strcspn(name, ":")] = '\0';
			mark(policy, name, by, 0);
		}
		freeifaddrs(all);
	}
	for (size_t i = 0; i < policy->interface_count && !found; i++)
		by[i] = true;
}
