/* SPDX-License-Identifier: GPL-2.0 */
/* weir top on a terminal: paints what the model draws, hands it what is typed. */
#pragma once

#include "cli/cli.h"

/* Until q, an interrupt or a hangup; the terminal is then as it was. An exit code, all said. */
int weir_top_screen(const struct weir_cli *cli);
