// SPDX-License-Identifier: GPL-2.0
/* One prefix, and the same bytes as a file of prefixes. */
#include "controller/prefix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok)
{
	if (!ok)
		abort();
}

static void try_prefix(const char *text)
{
	struct weir_prefix prefix, again;
	struct weir_error err = { "" };
	char printed[WEIR_PREFIX_TEXT];

	if (weir_prefix_parse(text, &prefix, &err)) {
		check(*err.text);
		return;
	}
	check(!weir_prefix_parse(weir_prefix_print(&prefix, printed), &again, &err));
	check(weir_prefix_equal(&prefix, &again));
	check(weir_prefix_contains(&prefix, prefix.family, prefix.address));
}

static void try_file(const uint8_t *data, size_t size)
{
	struct weir_prefixes list = { 0 };
	struct weir_error err = { "" };
	int fd = memfd_create("prefixes", MFD_CLOEXEC);
	char path[32];

	check(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (weir_prefixes_load(&list, path, &err))
		check(!list.count && *err.text);
	weir_prefixes_free(&list);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	check(text);
	memcpy(text, data, size);
	text[size] = 0;
	try_prefix(text);
	free(text);
	try_file(data, size);
	return 0;
}
