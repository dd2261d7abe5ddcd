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
	/* Of each service of the policy that was applied last. */
	uint16_t places[WEIR_SERVICES_MAX];
	uint32_t cpus;
	int prefixes_fd; /* borrowed */
	size_t bytes[4]; /* private */
};

/* 0, or -errno and nothing mapped. */
int weir_exchanges_open(struct weir_exchanges_map *map, const struct weir_load *load,
			struct weir_error *err);
void weir_exchanges_close(struct weir_exchanges_map *map);

/* Whether there is room for a policy's services beside those that still hold theirs: -E2BIG. */
int weir_exchanges_check(const struct weir_exchanges_map *map, const struct weir_policy *policy,
			 struct weir_error *err);

/*
 * The services of a policy, which was checked: their ports, addresses and deadlines; those that
 * are no more lose their place. -ENOMEM: a service lacks addresses that it should have.
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
