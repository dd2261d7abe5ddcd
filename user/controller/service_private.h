/* SPDX-License-Identifier: GPL-2.0 */
/* What service.c and service_tick.c share; others include service.h. */
#pragma once

#include "controller/service.h"

/* The buckets of a window, as the library lays them: from opened_ns on, each width_ns wide. */
struct weir_service_spread {
	int64_t opened_ns;
	int64_t width_ns;
	int64_t window_ns;
};

struct weir_service {
	struct weir_service_conf conf;
	struct weir_service_hooks hooks;
	struct weir_breaker *breaker;
	struct weir_shedder *shedder;
	struct weir_governor governor;
	bool governing; /* governor is one */
	bool frozen[WEIR_LOOP_KINDS];
	struct weir_service_spread spread[WEIR_LOOP_GOVERNOR];
	struct weir_service_output output;

	bool based; /* counts are a base for differences */
	int64_t now_ns;
	int32_t cpu;
	struct weir_service_counts counts;
	struct weir_service_counts spans[2]; /* counts when the last two spans began, older first */
	int64_t span_at_ns;
	struct weir_attempts attempts; /* added up here: a restart of the counts doesn't show */

	bool hot, full;
	double level;	       /* of the ceiling; INFINITY: none */
	int64_t refused_at_ns; /* when the ceiling last did */
	uint64_t random;
	int64_t probe_at_ns; /* when probe_ns was drawn */
	double offer_before; /* of the last movement */
	double committed;    /* of the control, as last read */
	double said_drop, said_ceiling;
	uint64_t said_shed; /* of counts, when the ceiling's movement was last said */
	int64_t said_at_ns; /* then; 0: never */
	struct weir_service_counts said; /* counts when the breaker's movement was last said */
};

/* Tells of a movement. */
void weir_service_say(struct weir_service *service, enum weir_loop_kind loop, double from,
		      double to, const char *signal, const char *figures);
/* Uniform in [0, 1). */
double weir_service_draw(struct weir_service *service);
