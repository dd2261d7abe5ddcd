// SPDX-License-Identifier: GPL-2.0
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "controller/metrics_text.h"
#include "controller/services_private.h"

/* What a service's samples are printed from. */
struct line {
	const struct weir_services_entry *entry;
	struct weir_service_status status;
};

struct lines {
	struct line *items;
	size_t count;
};

/* ---- counts ---- */

static void print_counts(const struct lines *lines, FILE *out)
{
	static const struct {
		const char *name, *type, *help;
		size_t offset;
	} counts[] = {
#define COUNT(text, type, member, help)                                                            \
	{                                                                                          \
		"weir_service_" text, type, help, offsetof(struct weir_service_counts, member)     \
	}
		COUNT("attempts_total", "counter", attempts, "Exchanges begun"),
		COUNT("ok_total", "counter", success, "Exchanges that ended well"),
		COUNT("failed_total", "counter", failure,
		      "Exchanges that failed: reset, closed while pending, past the deadline"),
		COUNT("dropped_total", "counter", dropped, "Newcomers refused by the breaker"),
		COUNT("shed_total", "counter", shed, "Newcomers refused by the shedder"),
		COUNT("in_flight", "gauge", in_flight, "Exchanges going on now"),
#undef COUNT
	};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		weir_metric_begin(out, counts[i].name, counts[i].type, counts[i].help);
		for (size_t j = 0; j < lines->count; j++) {
			const struct line *line = &lines->items[j];
			const char *sums = (const char *)&line->status.counts;

			weir_metric_count(out, counts[i].name,
					  WEIR_LABELS("service", line->entry->name),
					  *(const uint64_t *)(sums + counts[i].offset));
		}
	}
}

/* The kernel's slots, four to a doubling, in doublings from 131 us to 8.6 s. */
#define FIRST_BIT 17
#define LAST_BIT 33

static void print_histogram(const char *service, const struct weir_service_counts *counts,
			    FILE *out)
{
	uint64_t sum = 0;
	uint32_t slot = 0;
	char bound[32];

	for (int bit = FIRST_BIT; bit <= LAST_BIT; bit++) {
		while (slot < WEIR_RESPONSE_SLOTS && weir_response_least(slot) < 1ULL << bit)
			sum += counts->response[slot++];
		snprintf(bound, sizeof(bound), "%.9g", (double)(1ULL << bit) / 1e9);
		weir_metric_count(out, "weir_service_response_seconds_bucket",
				  WEIR_LABELS("service", service, "le", bound), sum);
	}
	while (slot < WEIR_RESPONSE_SLOTS)
		sum += counts->response[slot++];
	weir_metric_count(out, "weir_service_response_seconds_bucket",
			  WEIR_LABELS("service", service, "le", "+Inf"), sum);
	weir_metric_value(out, "weir_service_response_seconds_sum",
			  WEIR_LABELS("service", service), (double)counts->response_ns / 1e9);
	weir_metric_count(out, "weir_service_response_seconds_count",
			  WEIR_LABELS("service", service), sum);
}

static void print_responses(const struct lines *lines, FILE *out)
{
	weir_metric_begin(out, "weir_service_response_seconds", "histogram",
			  "Response times of exchanges that ended well");
	for (size_t i = 0; i < lines->count; i++)
		print_histogram(lines->items[i].entry->name, &lines->items[i].status.counts, out);
}

/* ---- loops ---- */

static double breaker_drop(const struct line *line)
{
	return line->status.output.drop;
}

static double shedder_ceiling(const struct line *line)
{
	uint64_t ceiling = line->status.output.ceiling;

	return ceiling == WEIR_SERVICE_NO_CEILING ? INFINITY : (double)ceiling;
}

static double shedder_hot(const struct line *line)
{
	return line->status.hot;
}

static double shedder_capacity(const struct line *line)
{
	return line->status.capacity;
}

static double shedder_cpu(const struct line *line)
{
	return line->status.cpu < 0 ? NAN : line->status.cpu / 1000.0;
}

/* In base units: a second's worth, or connections. */
static double level(const struct line *line, double offer)
{
	uint64_t per_ns = line->entry->unit.per_ns;

	return per_ns ? offer * 1e9 / (double)per_ns : offer;
}

static double governor_offer(const struct line *line)
{
	const struct weir_services_io *io = &line->entry->all->io;
	const struct weir_policy_limit *limit = io->limit(io->context, line->entry->control);

	return level(line, limit ? weir_offer_of_limit(limit, line->entry->unit)
				 : line->status.offer);
}

static double governor_floor(const struct line *line)
{
	return level(line, line->entry->floor);
}

static double governor_ceiling(const struct line *line)
{
	return level(line, line->entry->ceiling);
}

static double governor_last_bad(const struct line *line)
{
	return level(line, line->status.last_bad);
}

static const struct loop_metric {
	const char *name, *help;
	enum weir_loop_kind loop;
	double (*of)(const struct line *line); /* NaN: not known, left out */
} loop_metrics[] = {
	{ "weir_service_breaker_drop_ratio",
	  "Share of new connections that the breaker drops now (0 to 1)", WEIR_LOOP_BREAKER,
	  breaker_drop },
	{ "weir_service_shedder_ceiling",
	  "Exchanges in flight from which new ones are refused; +Inf: no ceiling",
	  WEIR_LOOP_SHEDDER, shedder_ceiling },
	{ "weir_service_shedder_hot", "1 while the CPU is hot, or was a moment ago",
	  WEIR_LOOP_SHEDDER, shedder_hot },
	{ "weir_service_shedder_capacity", "Exchanges in flight that the service can finish",
	  WEIR_LOOP_SHEDDER, shedder_capacity },
	{ "weir_service_cpu_ratio", "CPU that the shedder looks at, smoothed (0 to 1)",
	  WEIR_LOOP_SHEDDER, shedder_cpu },
	{ "weir_service_governor_offer",
	  "What the governed limit is set to now, a second or in connections", WEIR_LOOP_GOVERNOR,
	  governor_offer },
	{ "weir_service_governor_floor", "The least that the governor may offer",
	  WEIR_LOOP_GOVERNOR, governor_floor },
	{ "weir_service_governor_ceiling", "The most that the governor may offer",
	  WEIR_LOOP_GOVERNOR, governor_ceiling },
	{ "weir_service_governor_last_bad", "The offer that failed last; none: nothing remembered",
	  WEIR_LOOP_GOVERNOR, governor_last_bad },
};

static void print_loop(const struct lines *lines, const struct loop_metric *metric, FILE *out)
{
	weir_metric_begin(out, metric->name, "gauge", metric->help);
	for (size_t i = 0; i < lines->count; i++) {
		const struct line *line = &lines->items[i];
		const char *service = line->entry->name, *limit = line->entry->control;
		double value = line->status.has[metric->loop] ? metric->of(line) : NAN;

		if (isnan(value))
			continue;
		if (metric->loop == WEIR_LOOP_GOVERNOR)
			weir_metric_value(out, metric->name,
					  WEIR_LABELS("service", service, "limit", limit), value);
		else
			weir_metric_value(out, metric->name, WEIR_LABELS("service", service),
					  value);
	}
}

static void print_frozen(const struct lines *lines, FILE *out)
{
	const char *name = "weir_service_loop_frozen";

	weir_metric_begin(out, name, "gauge", "1 while a loop is held still by weir freeze");
	for (size_t i = 0; i < lines->count; i++) {
		const struct line *line = &lines->items[i];

		for (int loop = 0; loop < WEIR_LOOP_KINDS; loop++) {
			if (line->status.has[loop])
				weir_metric_count(
					out, name,
					WEIR_LABELS("service", line->entry->name, "loop",
						    weir_loop_name((enum weir_loop_kind)loop)),
					line->status.frozen[loop]);
		}
	}
}

static void print_reports(const struct weir_services *services, FILE *out)
{
	const struct {
		const char *result;
		uint64_t count;
	} results[] = {
		{ "taken",
		  services ? services->received - services->unknown - services->malformed : 0 },
		{ "unknown", services ? services->unknown : 0 },
		{ "malformed", services ? services->malformed : 0 },
	};

	weir_metric_begin(out, "weir_reports_total", "counter",
			  "Outcomes reported by applications: of a service, of none, no report");
	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
		weir_metric_count(out, "weir_reports_total",
				  WEIR_LABELS("result", results[i].result), results[i].count);
}

void weir_services_metrics(const struct weir_services *services, FILE *out)
{
	struct lines lines = { .count = services ? services->count : 0 };

	lines.items = calloc(lines.count + 1, sizeof(*lines.items));
	if (!lines.items)
		return;
	for (size_t i = 0; i < lines.count; i++) {
		lines.items[i].entry = services->entries[i];
		weir_service_status(services->entries[i]->service, &lines.items[i].status);
	}
	print_counts(&lines, out);
	print_responses(&lines, out);
	for (size_t i = 0; i < sizeof(loop_metrics) / sizeof(loop_metrics[0]); i++)
		print_loop(&lines, &loop_metrics[i], out);
	print_frozen(&lines, out);
	print_reports(services, out);
	free(lines.items);
}
