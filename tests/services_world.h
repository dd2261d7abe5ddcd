/* SPDX-License-Identifier: GPL-2.0 */
/* Services around a policy in force, with counts and outputs that the test holds: no kernel. */
#pragma once

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "controller/offer.h"
#include "controller/services.h"
#include "harness.h"
#include "json_path.h"

#define MS 1000000LL
#define SECOND (1000 * MS)

static const char head[] =
	"version: 1\n"
	"limits:\n"
	"  - {name: rate, key: none, bucket: {rate: 1000pps}, match: {proto: tcp, to_port: 80}}\n"
	"  - {name: slow, key: none, bucket: {rate: 600/min}}\n"
	"  - {name: wide, key: none, bucket: {rate: 80mbit}}\n"
	"  - {name: conns, key: source, gate: {limit: 200}, match: {proto: tcp}}\n"
	"services:\n";
static const char web[] = "  - name: web\n"
			  "    match: {proto: tcp, to_port: 80}\n"
			  "    breaker: {k: 2, probe: 3s}\n"
			  "    shedder: {cpu: 800}\n"
			  "    governor: {control: rate, start: 50pps, floor: 10pps, window: 1s}\n";
static const char api[] = "  - name: api\n"
			  "    match: {proto: tcp, to_port: 81}\n"
			  "    trust: report\n"
			  "    governor: {control: conns, start: 20, floor: 5}\n";

/* A controller: the policy in force, a kernel's counts, what was written. */
struct world {
	struct weir_policy *policy;
	struct weir_service_counts counts[4];
	struct weir_service_output written[4];
	int reads, writes, read_error, lines, movements;
	char line[512];
	struct weir_services *services;
};

static inline int read_counts(void *context, size_t service, struct weir_service_counts *counts)
{
	struct world *world = context;

	world->reads++;
	*counts = world->counts[service];
	return world->read_error;
}

static inline int write_output(void *context, size_t service,
			       const struct weir_service_output *output)
{
	struct world *world = context;

	world->writes++;
	world->written[service] = *output;
	return 0;
}

static inline const struct weir_policy_limit *limit(void *context, const char *name)
{
	return weir_policy_find_limit(((struct world *)context)->policy, name);
}

static inline int set(void *context, const char *name, const struct weir_policy_change *change)
{
	struct weir_error err = { 0 };
	int rc = weir_policy_set(((struct world *)context)->policy, name, change, 1, &err);

	if (rc)
		printf("  %s\n", err.text);
	return rc;
}

static inline void moved(void *context, const struct weir_movement *movement)
{
	(void)movement;
	((struct world *)context)->movements++;
}

static inline void note(void *context, const char *line)
{
	struct world *world = context;

	world->lines++;
	snprintf(world->line, sizeof(world->line), "%s", line);
}

static inline void load(struct world *world, const char *a, const char *b, int64_t now_ns)
{
	struct weir_policy *policy = NULL;
	struct weir_error err = { 0 };
	char text[4096];

	snprintf(text, sizeof(text), "%s%s%s%s", head, a, b, *a || *b ? "" : "  []\n");
	CU_ASSERT_EQUAL_FATAL(weir_policy_load_text(text, strlen(text), "w.yaml", &policy, &err),
			      0);
	weir_policy_free(world->policy);
	world->policy = policy;
	CU_ASSERT_EQUAL(weir_services_apply(world->services, policy, now_ns, &err), 0);
}

static inline void make(struct world *world)
{
	const struct weir_services_io io = { read_counts, write_output, limit,		set,
					     moved,	  note,		"/nonexistent", world };

	*world = (struct world){ 0 };
	world->services = weir_services_new(&io);
	CU_ASSERT_PTR_NOT_NULL_FATAL(world->services);
}

static inline void unmake(struct world *world)
{
	weir_services_free(world->services);
	weir_policy_free(world->policy);
}

static inline json_t *shown(const struct world *world)
{
	int rc;
	json_t *array = weir_services_json(world->services, NULL, &rc);

	CU_ASSERT_EQUAL_FATAL(rc, 0);
	return array;
}

static inline json_t *show(const struct world *world, const char *name)
{
	int rc;
	json_t *array = weir_services_json(world->services, name, &rc), *one;

	CU_ASSERT_EQUAL_FATAL(rc, 0);
	CU_ASSERT_EQUAL(json_array_size(array), 1);
	one = json_incref(json_array_get(array, 0));
	json_decref(array);
	return one;
}

static inline double at_number(json_t *object, const char *path)
{
	return json_number_value(at(object, path));
}
