/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Services as the kernel side has them: which ports, what it counted of their exchanges, what
 * newcomers are to be refused. One writer. A service keeps its place, and so its counts, by its
 * name, also over a restart.
 */
#pragma once

#include "controller/error.h"
#include "controller/load.h"
#include "controller/policy.h"
#include "controller/service.h"

struct weir_exchanges_map {
	struct weir_service_policy *services; /* [WEIR_SERVICES_MAX] */
	uint64_t *ports;
	const struct weir_service_state *states;
	const struct weir_exchanges *counts; /* [cpu][WEIR_SERVICES_MAX] */
	uint32_t cpus;
	size_t bytes[4]; /* private */
};

/* 0, or -errno and nothing mapped. */
int weir_exchanges_open(struct weir_exchanges_map *map, const struct weir_load *load,
			struct weir_error *err);
void weir_exchanges_close(struct weir_exchanges_map *map);

/*
 * The services of a policy: their ports and deadlines; those that are no more lose their place.
 * A port that two services name is the later one's. -E2BIG: no place while the old ones hold
 * theirs; nothing has changed then.
 */
int weir_exchanges_apply(struct weir_exchanges_map *map, const struct weir_policy *policy,
			 struct weir_error *err);

/* A service's place, or -ENOENT. */
int weir_exchanges_find(const struct weir_exchanges_map *map, const char *name);

/*
 * Its counts since its place was made: failure includes those that hang past their deadline,
 * which are failures once, when it passes (up to a twelfth of it later).
 */
void weir_exchanges_read(const struct weir_exchanges_map *map, int place, uint64_t now_ns,
			 struct weir_service_counts *counts);

/* What newcomers get from now on, for WEIR_STEER_NS unless it is said again. */
#define WEIR_STEER_NS 10000000000ULL
void weir_exchanges_steer(struct weir_exchanges_map *map, int place, uint64_t now_ns,
			  const struct weir_service_output *output);
