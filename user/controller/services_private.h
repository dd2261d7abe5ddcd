/* SPDX-License-Identifier: GPL-2.0 */
/* What services.c and services_json.c share; others include services.h. */
#pragma once

#include "controller/cpu.h"
#include "controller/offer.h"
#include "controller/services.h"

struct weir_services_entry {
	struct weir_services *all;
	struct weir_service *service;
	size_t index;
	char name[WEIR_POLICY_NAME_SIZE];
	enum weir_policy_trust trust;
	char control[WEIR_POLICY_NAME_SIZE]; /* the limit that its governor moves */
	struct weir_offer_unit unit;
	double floor, ceiling;
	bool sheds;			     /* has a shedder, which looks at the CPU … */
	int32_t hot_at;			     /* … with this threshold */
	struct weir_service_counts reported; /* by the application */
	struct weir_service_output written;
	int64_t written_ns, ticked_ns;
	bool wrote;	     /* `written` is in force */
	bool failing[3];     /* said: reading counts, writing outputs, reading the CPU */
	struct weir_cpu_reader cpu; /* of its cgroup */
	int64_t cpu_ns;
	int32_t cpu_now;
};

struct weir_services {
	struct weir_services_io io;
	struct weir_services_entry **entries;
	size_t count;
	bool monitor; /* nothing is enforced */
	struct weir_cpu_reader host;
	int64_t host_ns;
	int32_t host_now;
	bool host_failing;
	uint64_t received, unknown, malformed;
};

struct weir_services_entry *weir_services_find(const struct weir_services *services,
					       const char *name);
