/* SPDX-License-Identifier: GPL-2.0 */
/* The services of an answer, as a table. */
#pragma once

#include "cli/cli.h"

void weir_cli_say_services(json_t *services);
