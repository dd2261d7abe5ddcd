/* SPDX-License-Identifier: GPL-2.0 */
/* One movement of a loop: what moved, from where to where, and which signal with what figures. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum weir_loop_kind { WEIR_LOOP_BREAKER, WEIR_LOOP_SHEDDER, WEIR_LOOP_GOVERNOR, WEIR_LOOP_KINDS };

#define WEIR_MOVEMENT_TEXT 256

struct weir_movement {
	int64_t time_ns; /* on the clock of the ticks */
	char service[32];
	enum weir_loop_kind loop;
	/* A fraction dropped, exchanges in flight (INFINITY: no ceiling), or an offer in its unit.
	 */
	double from, to;
	const char *signal;		  /* "failures", "cpu", "attempt failures", … */
	char figures[WEIR_MOVEMENT_TEXT]; /* "120 failed, 80 ok, 0 dropped" */
};

/* "breaker", "shedder", "governor". */
const char *weir_loop_name(enum weir_loop_kind loop);
/* "service web: breaker: drop 0% -> 35% (failures: 120 failed, 80 ok, 0 dropped)"; a line without
 * a newline into text, cut off at size. */
void weir_movement_print(const struct weir_movement *movement, char *text, size_t size);
/* {"service", "loop", "from", "to", "signal", "figures"}: null stands for no ceiling. */
json_t *weir_movement_json(const struct weir_movement *movement);
