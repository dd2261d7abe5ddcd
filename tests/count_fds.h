/* SPDX-License-Identifier: GPL-2.0 */
/* Descriptors of this process, to see that none is left open. */
#pragma once

#include <CUnit/CUnit.h>
#include <dirent.h>

/* "." and ".." and the one that it takes to look are in it, each time. */
static inline int count_fds(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int count = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}
