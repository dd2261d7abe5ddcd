// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <math.h>
#include <string.h>

#include "controller/services_private.h"

static json_t *count(uint64_t value)
{
	return json_integer((json_int_t)value);
}

/* null stands for what there isn't: no ceiling, nothing remembered. */
static json_t *real(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static json_t *time_or_null(uint64_t ns)
{
	return ns ? count(ns) : json_null();
}

static json_t *breaker(const struct weir_service_status *status)
{
	if (!status->has[WEIR_LOOP_BREAKER])
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:b}", "drop", real(status->output.drop), "ratio",
			 real(status->ratio), "probe_ns", count((uint64_t)status->output.probe_ns),
			 "frozen", status->frozen[WEIR_LOOP_BREAKER]);
}

static json_t *shedder(const struct weir_services_entry *entry,
		       const struct weir_service_status *status)
{
	uint64_t ceiling = status->output.ceiling;

	if (!status->has[WEIR_LOOP_SHEDDER])
		return json_null();
	return json_pack("{s:b, s:b, s:o, s:o, s:o, s:o, s:i, s:b}", "hot", status->hot, "full",
			 status->full, "ceiling",
			 ceiling == WEIR_SERVICE_NO_CEILING ? json_null() : count(ceiling),
			 "capacity", real(status->capacity), "average", real(status->average),
			 "cpu", status->cpu < 0 ? json_null() : json_integer(status->cpu),
			 "cpu_hot", entry->hot_at, "frozen", status->frozen[WEIR_LOOP_SHEDDER]);
}

/* In base units: a second's worth, or connections. */
static json_t *level(const struct weir_services_entry *entry, double offer)
{
	return real(entry->unit.per_ns ? offer * 1e9 / (double)entry->unit.per_ns : offer);
}

/* The offer is what the limit is set to now, whoever set it. */
static json_t *governor(const struct weir_services_entry *entry,
			const struct weir_service_status *status)
{
	const struct weir_services_io *io = &entry->all->io;
	const struct weir_policy_limit *limit;
	double offer = status->offer;

	if (!status->has[WEIR_LOOP_GOVERNOR])
		return json_null();
	limit = io->limit(io->context, entry->control);
	if (limit)
		offer = weir_offer_of_limit(limit, entry->unit);
	return json_pack("{s:s, s:o, s:s, s:o, s:o, s:s, s:o, s:i, s:b}", "control", entry->control,
			 "offer", level(entry, offer), "unit",
			 !entry->unit.per_ns ? "connections"
			 : entry->unit.bytes ? "bytes"
					     : "packets",
			 "floor", level(entry, entry->floor), "ceiling",
			 level(entry, entry->ceiling), "mode", status->mode, "last_bad",
			 level(entry, status->last_bad), "streak", (int)status->streak, "frozen",
			 status->frozen[WEIR_LOOP_GOVERNOR]);
}

static json_t *one_service(const struct weir_services_entry *entry)
{
	struct weir_service_status status;
	const struct weir_service_counts *counts = &status.counts;

	weir_service_status(entry->service, &status);
	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
			 "name", entry->name, "trust",
			 entry->trust == WEIR_POLICY_TRUST_REPORT ? "report" : "kernel", "attempts",
			 count(counts->attempts), "ok", count(counts->success), "failed",
			 count(counts->failure), "dropped", count(counts->dropped), "shed",
			 count(counts->shed), "in_flight", count(counts->in_flight), "median_ns",
			 time_or_null(status.median_ns), "p99_ns", time_or_null(status.p99_ns),
			 "breaker", breaker(&status), "shedder", shedder(entry, &status),
			 "governor", governor(entry, &status));
}

json_t *weir_services_json(const struct weir_services *services, const char *name, int *rc)
{
	json_t *array = json_array();
	bool found = !name;

	for (size_t i = 0; i < services->count && array; i++) {
		const struct weir_services_entry *entry = services->entries[i];

		if (name && strcmp(name, entry->name))
			continue;
		found = true;
		if (json_array_append_new(array, one_service(entry))) {
			json_decref(array);
			array = NULL;
		}
	}
	*rc = !array ? -ENOMEM : found ? 0 : -ENOENT;
	if (!*rc)
		return array;
	json_decref(array);
	return NULL;
}

json_t *weir_services_reports_json(const struct weir_services *services)
{
	return json_pack("{s:o, s:o, s:o}", "received", count(services->received), "unknown",
			 count(services->unknown), "malformed", count(services->malformed));
}

json_t *weir_services_frozen(const struct weir_services *services)
{
	json_t *frozen = json_object();

	for (size_t i = 0; i < services->count && frozen; i++) {
		const struct weir_services_entry *entry = services->entries[i];
		struct weir_service_status status;
		json_t *loops = json_array();

		weir_service_status(entry->service, &status);
		for (int kind = 0; kind < WEIR_LOOP_KINDS; kind++) {
			if (status.frozen[kind])
				json_array_append_new(loops, json_string(weir_loop_name(kind)));
		}
		if (json_array_size(loops))
			json_object_set(frozen, entry->name, loops);
		json_decref(loops);
	}
	return frozen;
}

void weir_services_freeze_kept(struct weir_services *services, json_t *frozen)
{
	json_t *loops, *loop;
	const char *name;
	size_t i;

	json_object_foreach(frozen, name, loops)
	{
		json_array_foreach(loops, i, loop)
		{
			struct weir_error err = { 0 };

			if (!weir_services_freeze(services, name, json_string_value(loop), true,
						  &err))
				continue;
			weir_error_prefix(&err, "kept by weir freeze, left out: ");
			if (services->io.log)
				services->io.log(services->io.context, err.text);
		}
	}
}
