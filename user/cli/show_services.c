// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "cli/json_value.h"
#include "cli/show_services.h"
#include "cli/table.h"

static double real(json_t *object, const char *field)
{
	return json_number_value(json_object_get(object, field));
}

static const char *frozen(json_t *loop)
{
	return json_is_true(json_object_get(loop, "frozen")) ? ", frozen" : "";
}

static void add_time(struct weir_table *table, json_t *service, const char *field)
{
	double ns = real(service, field);

	if (ns <= 0)
		weir_table_add(table, "-");
	else if (ns < 1e6)
		weir_table_add(table, "%.3gus", ns / 1e3);
	else if (ns < 1e9)
		weir_table_add(table, "%.3gms", ns / 1e6);
	else
		weir_table_add(table, "%.3gs", ns / 1e9);
}

static void add_breaker(struct weir_table *table, json_t *breaker)
{
	if (!json_is_object(breaker))
		weir_table_add(table, "-");
	else
		weir_table_add(table, "drops %.3g%%%s", real(breaker, "drop") * 100,
			       frozen(breaker));
}

static void add_shedder(struct weir_table *table, json_t *shedder)
{
	json_t *ceiling = json_object_get(shedder, "ceiling");
	bool hot = json_is_true(json_object_get(shedder, "hot"));
	bool full = json_is_true(json_object_get(shedder, "full"));
	const char *state = hot && full ? "hot, full" : hot ? "hot" : full ? "full" : "cool";
	char at_most[40] = "";

	if (!json_is_object(shedder)) {
		weir_table_add(table, "-");
		return;
	}
	if (json_is_integer(ceiling))
		snprintf(at_most, sizeof(at_most), ", at most %lld",
			 weir_json_number(shedder, "ceiling"));
	weir_table_add(table, "%s%s%s", state, at_most, frozen(shedder));
}

static void add_governor(struct weir_table *table, json_t *governor)
{
	const char *unit = json_string_value(json_object_get(governor, "unit"));
	json_t *offer = json_object_get(governor, "offer");
	char memory[64] = "", level[48] = "unlimited";

	if (!json_is_object(governor)) {
		weir_table_add(table, "-");
		return;
	}
	if (json_is_number(offer))
		snprintf(level, sizeof(level), "%.7g %s", json_number_value(offer),
			 !strcmp(unit, "packets") ? "packets/s"
			 : !strcmp(unit, "bytes") ? "bytes/s"
						  : unit);
	if (json_is_number(json_object_get(governor, "last_bad")))
		snprintf(memory, sizeof(memory), ", last bad %.7g, streak %lld",
			 real(governor, "last_bad"), weir_json_number(governor, "streak"));
	weir_table_add(table, "%s %s, %s%s%s",
		       json_string_value(json_object_get(governor, "control")), level,
		       json_string_value(json_object_get(governor, "mode")), memory,
		       frozen(governor));
}

void weir_cli_say_services(json_t *services)
{
	static const char *const names[] = { "SERVICE", "ATTEMPTS", "OK",	"FAILED",
					     "DROPPED", "SHED",	    "INFLIGHT", "MEDIAN",
					     "P99",	"BREAKER",  "SHEDDER",	"GOVERNOR" };
	static const char *const counts[] = { "attempts", "ok",	  "failed",
					      "dropped",  "shed", "in_flight" };
	struct weir_table table = { .alignment = "lrrrrrrrrlll" };
	json_t *service;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		weir_table_add(&table, "%s", names[i]);
	json_array_foreach(services, i, service)
	{
		weir_table_add(&table, "%s", json_string_value(json_object_get(service, "name")));
		for (size_t j = 0; j < sizeof(counts) / sizeof(counts[0]); j++)
			weir_table_add(&table, "%lld", weir_json_number(service, counts[j]));
		add_time(&table, service, "median_ns");
		add_time(&table, service, "p99_ns");
		add_breaker(&table, json_object_get(service, "breaker"));
		add_shedder(&table, json_object_get(service, "shedder"));
		add_governor(&table, json_object_get(service, "governor"));
	}
	weir_table_print(&table);
}
