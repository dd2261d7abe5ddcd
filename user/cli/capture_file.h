/* SPDX-License-Identifier: GPL-2.0 */
/* A capture in a file or on stdin, replayed through a policy: what try and suggest share. */
#pragma once

#include <stdio.h>

#include "cli/cli.h"
#include "controller/replay.h"

struct weir_capture_file {
	const char *path;
	FILE *stream;
	uint64_t bytes; /* of the file, 0 where that isn't known */
	struct weir_capture *capture;
	struct weir_policy *policy;
	json_t *left_out; /* [{"kind": …, "name": …}] */
	struct weir_prefixes own;
	size_t interface;
	struct weir_replay replay;
	bool open;
	uint64_t told_ns; /* when the last line of progress was */
};

/* Called before a packet; 0 to go on. */
typedef int (*weir_capture_step)(void *context, struct weir_replay *replay,
				 const struct weir_capture_packet *packet, struct weir_error *err);

/*
 * Opens all of what the command line says, replays, and shows on a terminal's stderr how far it
 * is; an interrupt ends it early, with what there is so far. `monitor`: no limit refuses, so
 * each sees all that is sent. An exit code, all said. To be closed in any case.
 */
int weir_capture_file_replay(struct weir_capture_file *file, const struct weir_cli *cli,
			     const char *path, bool monitor, weir_capture_step step,
			     void *context);
void weir_capture_file_close(struct weir_capture_file *file);
