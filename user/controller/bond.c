// SPDX-License-Identifier: GPL-2.0
#include "controller/bond.h"

#include <linux/if_bonding.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* <linux/if_bonding.h> and <net/if.h>, which has if_nametoindex, exclude each other. */
static int ask(int fd, const char *name, unsigned long request, void *answer)
{
	struct ifreq question = { .ifr_data = answer };

	snprintf(question.ifr_name, sizeof(question.ifr_name), "%s", name);
	return ioctl(fd, request, &question);
}

size_t weir_bond_links(const char *name, uint32_t *ifindexes, size_t max)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifbond bond = { 0 };
	size_t found = 0;

	if (fd < 0)
		return 0;
	if (ask(fd, name, SIOCBONDINFOQUERY, &bond))
		bond.num_slaves = 0;
	for (int i = 0; i < bond.num_slaves && found < max; i++) {
		struct ifslave link = { .slave_id = i };
		struct ifreq index = { 0 };

		if (ask(fd, name, SIOCBONDSLAVEINFOQUERY, &link))
			continue;
		snprintf(index.ifr_name, sizeof(index.ifr_name), "%s", link.slave_name);
		if (!ioctl(fd, SIOCGIFINDEX, &index))
			ifindexes[found++] = (uint32_t)index.ifr_ifindex;
	}
	close(fd);
	return found;
}
