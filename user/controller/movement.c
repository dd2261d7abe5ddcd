// SPDX-License-Identifier: GPL-2.0
#include "controller/movement.h"

#include <math.h>
#include <stdio.h>

const char *weir_loop_name(enum weir_loop_kind loop)
{
	static const char *const names[WEIR_LOOP_KINDS] = { "breaker", "shedder", "governor" };

	return loop < WEIR_LOOP_KINDS ? names[loop] : "?";
}

static const char *print_level(enum weir_loop_kind loop, double level, char text[32])
{
	if (loop == WEIR_LOOP_BREAKER)
		snprintf(text, 32, "%.3g%%", level * 100);
	else if (isinf(level))
		snprintf(text, 32, loop == WEIR_LOOP_GOVERNOR ? "unlimited" : "none");
	else
		snprintf(text, 32, "%.7g", level);
	return text;
}

void weir_movement_print(const struct weir_movement *movement, char *text, size_t size)
{
	static const char *const what[WEIR_LOOP_KINDS] = { "drop", "ceiling", "offer" };
	enum weir_loop_kind loop = movement->loop;
	char from[32], to[32];

	print_level(loop, movement->from, from);
	print_level(loop, movement->to, to);
	if (movement->from == movement->to)
		snprintf(text, size, "service %s: %s: %s stays %s (%s: %s)", movement->service,
			 weir_loop_name(loop), what[loop], to, movement->signal, movement->figures);
	else
		snprintf(text, size, "service %s: %s: %s %s -> %s (%s: %s)", movement->service,
			 weir_loop_name(loop), what[loop], from, to, movement->signal,
			 movement->figures);
}

static json_t *level_json(double level)
{
	return isfinite(level) ? json_real(level) : json_null();
}

json_t *weir_movement_json(const struct weir_movement *movement)
{
	return json_pack("{s:s, s:s, s:o, s:o, s:s, s:s}", "service", movement->service, "loop",
			 weir_loop_name(movement->loop), "from", level_json(movement->from), "to",
			 level_json(movement->to), "signal", movement->signal, "figures",
			 movement->figures);
}
