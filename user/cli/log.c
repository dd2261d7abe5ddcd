// SPDX-License-Identifier: GPL-2.0
#include "cli/log.h"

#include <string.h>

#include "controller/loop.h"

void weir_log_open(struct weir_log *log, FILE *to, int64_t now_ns)
{
	*log = (struct weir_log){
		.to = to,
		.bucket = weir_bucket_new(WEIR_LOG_RATE, WEIR_LOG_BURST, now_ns),
	};
}

void weir_log_line(struct weir_log *log, const char *line, int64_t now_ns)
{
	bool ready = !strncmp(line, WEIR_LOOP_READY, strlen(WEIR_LOOP_READY));

	if (!weir_bucket_take(&log->bucket, now_ns, 1) && !ready) {
		log->left_out++;
		return;
	}
	if (log->left_out)
		fprintf(log->to, "%llu lines left out: see weir events\n", log->left_out);
	log->left_out = 0;
	fprintf(log->to, "%s\n", line);
}
