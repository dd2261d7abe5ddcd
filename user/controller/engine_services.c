// SPDX-License-Identifier: GPL-2.0
/* What others read of an engine, and the services' way through it. */
#include "controller/engine.h"

#include <errno.h>

#include "controller/engine_internal.h"

static int place_of(const struct weir_engine *engine, size_t service)
{
	if (service >= engine->policy->service_count)
		return -ENOENT;
	return engine->exchanges.places[service];
}

int weir_engine_service_read(const struct weir_engine *engine, size_t service, uint64_t now_ns,
			     struct weir_service_counts *counts)
{
	int place = place_of(engine, service);

	if (place < 0)
		return place;
	weir_exchanges_read(&engine->exchanges, place, now_ns, counts);
	return 0;
}

int weir_engine_service_steer(struct weir_engine *engine, size_t service, uint64_t now_ns,
			      const struct weir_service_output *output)
{
	int place = place_of(engine, service);

	if (place < 0)
		return place;
	weir_exchanges_steer(&engine->exchanges, place, now_ns, output);
	return 0;
}

/* ---- views ---- */

bool weir_engine_connections(const struct weir_engine *engine,
			     struct weir_connection_counts *counts)
{
	if (engine->connections)
		*counts = weir_connections_counts(engine->connections);
	return engine->connections;
}

const struct weir_policy *weir_engine_policy(const struct weir_engine *engine)
{
	return engine->policy;
}

struct weir_dataplane *weir_engine_dataplane(struct weir_engine *engine)
{
	return &engine->dataplane;
}

const char *weir_engine_pins(const struct weir_engine *engine)
{
	return engine->pins;
}

uint32_t weir_engine_slot(const struct weir_engine *engine, size_t limit_index)
{
	return weir_generation_now(&engine->generation).limits[limit_index].slot;
}

size_t weir_engine_interfaces(const struct weir_engine *engine)
{
	return engine->held.count;
}

const struct weir_interface_status *weir_engine_interface(const struct weir_engine *engine,
							  size_t i)
{
	return &engine->held.status[i];
}
