/* SPDX-License-Identifier: GPL-2.0 */
/* The files of user/dashboard, as they are: the Makefile makes bytes of them. */
#pragma once

#include <stddef.h>

struct weir_dashboard_file {
	const char *path; /* of the HTTP server */
	const char *type; /* Content-Type */
	const unsigned char *bytes;
	size_t length;
};

#define WEIR_DASHBOARD_FILES 4
extern const struct weir_dashboard_file weir_dashboard_files[WEIR_DASHBOARD_FILES];
