/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where weir top has its answers from: the controller, asked once a second without ever waiting
 * for it; or, while nobody listens on its socket, the pinned maps. Feeds a model and says in it
 * how things stand.
 */
#pragma once

#include <poll.h>

#include "cli/cli.h"
#include "cli/top_model.h"

#define WEIR_TOP_SOURCE_FDS 2

struct weir_top_source;

/* An exit code, all said: where neither a controller nor pins can be had. */
int weir_top_source_open(struct weir_top_source **source, const struct weir_cli *cli,
			 struct weir_top_model *model);
void weir_top_source_close(struct weir_top_source *source);

/* What to poll: how many of the entries are filled in. */
size_t weir_top_source_fds(const struct weir_top_source *source,
			   struct pollfd fds[WEIR_TOP_SOURCE_FDS]);
/* Milliseconds until weir_top_source_step has something to do without them. */
int weir_top_source_wait_ms(const struct weir_top_source *source);
/* Does what is due; whether there is more to be seen than another refusal, which can wait. */
bool weir_top_source_step(struct weir_top_source *source);
