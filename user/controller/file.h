/* SPDX-License-Identifier: GPL-2.0 */
/* Files that operators write, and small ones that must survive a crash: our own memory. */
#pragma once

#include <stdio.h>

#include "controller/error.h"

/*
 * Opens a regular file to be read. Anything else is refused, a FIFO by that name without waiting
 * for its writer. -ENOENT, -EISDIR, -EINVAL for other kinds, errno's.
 */
int weir_file_open(const char *path, FILE **file, struct weir_error *err);

/*
 * The text is the file's whole content when this returns, on disk; until then, and on an error,
 * the file is as it was. Makes the file's folder (not those above it). Mode 0600. A link stays one:
 * what it leads to is replaced. -errno.
 */
int weir_file_replace(const char *path, const char *text);

/* Takes away what a weir_file_replace that was killed has left beside the file. */
void weir_file_sweep(const char *path);

/* Gone, on disk too, when this returns; one that was not there is fine. -errno. */
int weir_file_remove(const char *path);
