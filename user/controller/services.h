/* SPDX-License-Identifier: GPL-2.0 */
/*
 * All services of a policy: their loops, the CPU each one looks at, what applications report.
 * Counts come in and outputs go out by callbacks; nothing here knows of maps or sockets. Errors:
 * 0 or -errno with a sentence in err. Not thread-safe.
 */
#pragma once

#include <jansson.h>

#include "controller/policy.h"
#include "controller/service.h"

struct weir_services;

/* `service` is the index in the policy that was applied last. */
struct weir_services_io {
	/*
	 * What the kernel has counted for a service. Of one that trusts reports, only dropped,
	 * shed and in_flight are used. -errno: not known now, tried again. NULL: nothing counts.
	 */
	int (*read)(void *context, size_t service, struct weir_service_counts *counts);
	/*
	 * Enforce this (a policy in monitor mode enforces nothing). Called when it changes, and
	 * once a second even so: the kernel side may take silence for a controller that died, and
	 * let everybody in. NULL: nothing enforces.
	 */
	int (*write)(void *context, size_t service, const struct weir_service_output *output);
	/* The limit in force, or NULL. */
	const struct weir_policy_limit *(*limit)(void *context, const char *name);
	/* Change a limit now; neither blocks nor logs. */
	int (*set)(void *context, const char *name, const struct weir_policy_change *change);
	void (*moved)(void *context, const struct weir_movement *movement);
	void (*log)(void *context, const char *line);
	const char *root; /* of /proc and cgroups: "" but for tests */
	void *context;
};

/* No services yet. NULL: no memory. */
struct weir_services *weir_services_new(const struct weir_services_io *io);
/* Nothing is dropped or held under a ceiling any more: nobody would be there to lift it. */
void weir_services_free(struct weir_services *services);

/*
 * The services of a policy that is now in force: at the start and after each reload. One that
 * keeps its name keeps its reports and what is frozen; a loop whose settings are the same goes on
 * as it was, its governor's offer included. -ENOMEM.
 */
int weir_services_apply(struct weir_services *services, const struct weir_policy *policy,
			int64_t now_ns, struct weir_error *err);

/* How often to call tick; 0: there are no services, and nothing to do. */
int64_t weir_services_tick_ns(const struct weir_services *services);
void weir_services_tick(struct weir_services *services, int64_t now_ns);

/*
 * What an application says of one exchange of its service. response_ns 0: it didn't say.
 * -ENOENT: there is no such service (counted); -EOPNOTSUPP: it trusts the kernel.
 */
int weir_services_outcome(struct weir_services *services, const char *name, bool pass,
			  uint64_t response_ns, struct weir_error *err);
/* A datagram that was no report. */
void weir_services_malformed(struct weir_services *services);

/* `weir freeze|thaw NAME [LOOP]`; loop NULL: all that it has. -ENOENT, -EINVAL. */
int weir_services_freeze(struct weir_services *services, const char *name, const char *loop,
			 bool frozen, struct weir_error *err);

/* What is frozen, {"web": ["governor"]}: a new reference, NULL: no memory. freeze_kept: the
 * other way round, after a start; what is no more there is logged and left out. */
json_t *weir_services_frozen(const struct weir_services *services);
void weir_services_freeze_kept(struct weir_services *services, json_t *frozen);

/* An array, in the policy's order, or of one service by its name (-ENOENT: NULL and *rc). NULL
 * with -ENOMEM. docs/json.md */
json_t *weir_services_json(const struct weir_services *services, const char *name, int *rc);
/* {"received", "unknown", "malformed"}: reports since the start. */
json_t *weir_services_reports_json(const struct weir_services *services);
/* The same as metrics (controller/metrics.h); services NULL: their names alone. */
void weir_services_metrics(const struct weir_services *services, FILE *out);
