// SPDX-License-Identifier: GPL-2.0
/* Links below a bond, by a kernel in plain memory: the linker takes its ioctl. */
#include "harness.h"

#include <errno.h>
#include <linux/if_bonding.h>
#include <linux/sockios.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

#include "controller/bond.h"

static struct {
	const char *links[4]; /* NULL: gone between two questions */
	int count;
} bond;

static int answer_link(const struct ifreq *question)
{
	struct ifslave *link = (struct ifslave *)question->ifr_data;

	if (link->slave_id < 0 || link->slave_id >= bond.count || !bond.links[link->slave_id])
		return -1;
	snprintf(link->slave_name, sizeof(link->slave_name), "%s", bond.links[link->slave_id]);
	return 0;
}

/* bond0 has the links; e1 has index 101, e2 102, and so on. */
int ioctl(int fd, unsigned long request, ...)
{
	struct ifreq *question;
	va_list args;

	va_start(args, request);
	question = va_arg(args, struct ifreq *);
	va_end(args);
	CU_ASSERT(fd >= 0);
	errno = ENODEV;
	switch (request) {
	case SIOCBONDINFOQUERY:
		if (strcmp(question->ifr_name, "bond0") != 0)
			return -1;
		((struct ifbond *)question->ifr_data)->num_slaves = bond.count;
		return 0;
	case SIOCBONDSLAVEINFOQUERY:
		return answer_link(question);
	case SIOCGIFINDEX:
		return sscanf(question->ifr_name, "e%d", &question->ifr_ifindex) == 1
			       ? (question->ifr_ifindex += 100, 0)
			       : -1;
	default:
		CU_FAIL("an unknown request");
		return -1;
	}
}

static size_t links(const char *name, uint32_t *found, size_t max)
{
	memset(found, 0, 4 * sizeof(*found));
	return weir_bond_links(name, found, max);
}

static void finds_the_links_below(void)
{
	uint32_t found[4];

	bond = (typeof(bond)){ { "e1", "e2", "e3" }, 3 };
	CU_ASSERT_EQUAL(links("bond0", found, 4), 3);
	CU_ASSERT(found[0] == 101 && found[1] == 102 && found[2] == 103);
	/* No more than there is room for. */
	CU_ASSERT_EQUAL(links("bond0", found, 2), 2);
	CU_ASSERT(found[1] == 102 && found[2] == 0);
	CU_ASSERT_EQUAL(links("bond0", found, 0), 0);
}

static void skips_those_that_go_meanwhile(void)
{
	uint32_t found[4];

	/* Taken out of the bond; and deleted. */
	bond = (typeof(bond)){ { NULL, "e2", "gone", "e4" }, 4 };
	CU_ASSERT_EQUAL(links("bond0", found, 4), 2);
	CU_ASSERT(found[0] == 102 && found[1] == 104);
	bond.count = 0;
	CU_ASSERT_EQUAL(links("bond0", found, 4), 0);
}

static void anything_else_has_none(void)
{
	struct rlimit before, none;
	uint32_t found[4];

	bond = (typeof(bond)){ { "e1" }, 1 };
	CU_ASSERT_EQUAL(links("e1", found, 4), 0);
	/* Nor is a bond asked for want of a socket. */
	getrlimit(RLIMIT_NOFILE, &before);
	none = (struct rlimit){ 0, before.rlim_max };
	setrlimit(RLIMIT_NOFILE, &none);
	CU_ASSERT_EQUAL(links("bond0", found, 4), 0);
	setrlimit(RLIMIT_NOFILE, &before);
	CU_ASSERT_EQUAL(links("bond0", found, 4), 1);
}

WEIR_TESTS("bond", TEST(finds_the_links_below), TEST(skips_those_that_go_meanwhile),
	   TEST(anything_else_has_none))
