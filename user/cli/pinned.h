/* SPDX-License-Identifier: GPL-2.0 */
/* The data plane by its pins, read-only, for when the controller is down. */
#pragma once

#include "cli/cli.h"
#include "controller/report.h"

struct weir_pinned {
	struct weir_dataplane dataplane;
	struct weir_interface_status interfaces[WEIR_INTERFACES_MAX];
	struct weir_rates rates;
	struct weir_lists lists;
	struct weir_view view;
};

/* Opens the pins and says on stderr that this is where it comes from; or says why not: a code.
 * The caller closes and frees it. */
int weir_pinned_open(struct weir_pinned **pinned, const struct weir_cli *cli);
/* Looks for 200 ms how fast the totals grow. */
void weir_pinned_measure(struct weir_pinned *pinned);
/* Reads the lists: a million entries take a second. Says what is wrong: a code. */
int weir_pinned_read_lists(struct weir_pinned *pinned, const struct weir_cli *cli);
void weir_pinned_close(struct weir_pinned *pinned);
