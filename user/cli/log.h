/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What `weir run` writes of the controller's log. A quarrel over an interface must not fill the
 * disk: so many lines a second, so many at once; what is left out is counted, `weir events` has
 * all. The line that scripts wait for (WEIR_LOOP_READY) is never left out.
 */
#pragma once

#include <stdio.h>

#include "weir/bucket.h"

#define WEIR_LOG_RATE 20
#define WEIR_LOG_BURST 200

struct weir_log {
	FILE *to;
	struct weir_bucket bucket;
	unsigned long long left_out; /* since the last line that was written */
};

void weir_log_open(struct weir_log *log, FILE *to, int64_t now_ns);
void weir_log_line(struct weir_log *log, const char *line, int64_t now_ns);
