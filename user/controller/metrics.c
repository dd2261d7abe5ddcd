// SPDX-License-Identifier: GPL-2.0
#include "controller/metrics.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "controller/metrics_private.h"
#include "controller/metrics_text.h"

/* ---- limits ---- */

struct limit_line {
	char name[sizeof(((struct weir_label *)0)->name)];
	const struct weir_limit *limit;
	const struct weir_policy_limit *policy; /* NULL: its settings are not known */
	struct weir_totals totals;
};

struct limit_lines {
	struct weir_limits_view view;
	size_t count;
	struct limit_line lines[WEIR_LIMITS_MAX];
};

static void read_limits(struct limit_lines *all, const struct weir_metrics *metrics)
{
	const struct weir_dataplane *dataplane = metrics->view->dataplane;

	weir_limits_view_read(&all->view, dataplane);
	all->count = 0;
	for (uint32_t i = 0; i < all->view.count; i++) {
		const struct weir_limit *limit = &all->view.by_index[i];
		struct limit_line *line = &all->lines[all->count];

		if (limit->slot >= WEIR_LIMITS_MAX)
			continue;
		memcpy(line->name, dataplane->labels[limit->slot].name, sizeof(line->name));
		line->name[sizeof(line->name) - 1] = '\0';
		line->limit = limit;
		line->policy = metrics->policy ?
				       weir_policy_find_limit(metrics->policy, line->name) : NULL;
		line->totals = weir_dataplane_totals(dataplane, limit->slot);
		all->count++;
	}
}

static void print_info(const struct limit_lines *all, FILE *out)
{
	char key[WEIR_KEY_TEXT];

	weir_metric_begin(out, "weir_limit_info", "gauge",
			  "Always 1: what a limit is, as its labels");
	for (size_t i = 0; i < all->count; i++) {
		const struct weir_limit *limit = all->lines[i].limit;
		static const char *const kinds[] = { "bucket", "sliding", "period", "gate" };

		weir_metric_count(
			out, "weir_limit_info",
			WEIR_LABELS("limit", all->lines[i].name, "kind", kinds[limit->kind % 4],
				    "key", weir_limit_key_print(limit, key), "unit",
				    limit->flags & WEIR_LIMIT_BYTES ? "bytes" : "packets", "mode",
				    limit->flags & WEIR_LIMIT_MONITOR ? "monitor" : "enforce"),
			1);
	}
}

static void print_totals(const struct limit_lines *all, FILE *out)
{
	static const struct {
		const char *name, *help;
		size_t offset;
	} totals[] = {
#define TOTAL(text, member, help)                                                                  \
	{                                                                                          \
		"weir_limit_" text "_total", help, offsetof(struct weir_totals, member)            \
	}
		TOTAL("admitted_packets", passed_packets, "Packets that a limit let pass"),
		TOTAL("admitted_bytes", passed_bytes, "Bytes that a limit let pass"),
		TOTAL("refused_packets", refused_packets, "Packets that a limit refused"),
		TOTAL("refused_bytes", refused_bytes, "Bytes that a limit refused"),
		TOTAL("would_refuse_packets", would_refuse_packets,
		      "Packets that a limit in monitor mode would have refused"),
		TOTAL("untracked_packets", untracked_packets,
		      "Packets of newcomers that found no place in the ledger"),
		TOTAL("contended_packets", contended_packets,
		      "Packets refused because other CPUs were faster four times"),
		TOTAL("new_keys", new_keys, "Keys that got a place in the ledger"),
		TOTAL("banned_packets", banned_packets,
		      "Packets refused because of a ban, in refused_packets too"),
		TOTAL("unbanned_packets", unbanned_packets,
		      "Packets that would have earned a ban, but the table of bans was full"),
#undef TOTAL
	};

	for (size_t i = 0; i < sizeof(totals) / sizeof(totals[0]); i++) {
		weir_metric_begin(out, totals[i].name, "counter", totals[i].help);
		for (size_t j = 0; j < all->count; j++) {
			const char *sums = (const char *)&all->lines[j].totals;

			weir_metric_count(out, totals[i].name,
					  WEIR_LABELS("limit", all->lines[j].name),
					  *(const uint64_t *)(sums + totals[i].offset));
		}
	}
}

/* A setting in base units; NaN: the limit has none of this kind. */
static double rate_of(const struct weir_policy_limit *limit)
{
	const struct weir_rate *rate = &limit->bucket.rate;

	if (!limit->bucket.given)
		return NAN;
	if (weir_rate_is_unlimited(rate))
		return INFINITY;
	return rate->per_ns ? (double)rate->amount * 1e9 / (double)rate->per_ns : 0;
}

static double burst_of(const struct weir_policy_limit *limit)
{
	return limit->bucket.given ? (double)limit->bucket.burst.value : NAN;
}

static double quota_of(const struct weir_policy_limit *limit)
{
	return limit->sliding.given ? (double)limit->sliding.quota
	       : limit->period.given ? (double)limit->period.quota : NAN;
}

static double window_of(const struct weir_policy_limit *limit)
{
	return limit->sliding.given ? (double)limit->sliding.window_ns / 1e9
	       : limit->period.given ? (double)limit->period.period_ns / 1e9 : NAN;
}

static double connections_of(const struct weir_policy_limit *limit)
{
	if (!limit->gate.given)
		return NAN;
	return limit->gate.limit == WEIR_POLICY_UNLIMITED ? INFINITY : (double)limit->gate.limit;
}

static void print_settings(const struct limit_lines *all, FILE *out)
{
	static const struct {
		const char *name, *help;
		double (*of)(const struct weir_policy_limit *limit);
	} settings[] = {
		{ "weir_limit_rate",
		  "Rate of a bucket now, a second; 0: block, +Inf: unlimited", rate_of },
		{ "weir_limit_burst", "Burst of a bucket now", burst_of },
		{ "weir_limit_quota", "Quota of a sliding window or a period now", quota_of },
		{ "weir_limit_window_seconds", "Length of a sliding window or a period",
		  window_of },
		{ "weir_limit_connections_max",
		  "Connections that a gate admits at once, each key; +Inf: unlimited",
		  connections_of },
	};

	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		weir_metric_begin(out, settings[i].name, "gauge", settings[i].help);
		for (size_t j = 0; j < all->count; j++) {
			const struct limit_line *line = &all->lines[j];
			double value = line->policy ? settings[i].of(line->policy) : NAN;

			if (!isnan(value))
				weir_metric_value(out, settings[i].name,
						  WEIR_LABELS("limit", line->name), value);
		}
	}
}

static void print_limits(const struct weir_metrics *metrics, FILE *out)
{
	struct limit_lines *all = malloc(sizeof(*all));

	if (!all)
		return;
	read_limits(all, metrics);
	print_info(all, out);
	print_totals(all, out);
	print_settings(all, out);
	free(all);
}

/* ---- interfaces ---- */

static void print_attached(const struct weir_view *view, FILE *out)
{
	static const char *const modes[] = { NULL, "native", "generic" };
	const char *name = "weir_interface_attached";

	weir_metric_begin(out, name, "gauge",
			  "1 in the mode in which weir is attached to XDP of an interface, else 0");
	for (size_t i = 0; i < view->interface_count; i++) {
		for (size_t mode = WEIR_ATTACHED_NATIVE; mode <= WEIR_ATTACHED_GENERIC; mode++)
			weir_metric_count(out, name,
					  WEIR_LABELS("interface", view->interfaces[i].name, "mode",
						      modes[mode]),
					  view->interfaces[i].attached == mode);
	}
}

static void print_traffic(const struct weir_view *view, const char *name, const char *help,
			  bool bytes, FILE *out)
{
	weir_metric_begin(out, name, "counter", help);
	for (size_t i = 0; i < view->interface_count; i++) {
		const struct weir_interface_status *interface = &view->interfaces[i];

		for (uint32_t hook = 0; hook < WEIR_HOOKS; hook++) {
			struct weir_traffic sum = weir_dataplane_traffic(
				view->dataplane, interface->slot % WEIR_INTERFACES_MAX,
				(enum weir_hook)hook);

			for (int path = 0; path < WEIR_PATHS; path++)
				weir_metric_count(
					out, name,
					WEIR_LABELS("interface", interface->name, "hook",
						    weir_report_hook_name(hook), "path",
						    weir_report_path_name((enum weir_path)path)),
					bytes ? sum.bytes[path] : sum.frames[path]);
		}
	}
}

static void print_interfaces(const struct weir_view *view, FILE *out)
{
	print_attached(view, out);
	print_traffic(view, "weir_interface_packets_total",
		      "Packets by interface, hook and what became of them", false, out);
	print_traffic(view, "weir_interface_bytes_total",
		      "Bytes by interface, hook and what became of them", true, out);
}

/* ---- ledger, lists, gates ---- */

static void print_ledger(const struct weir_view *view, FILE *out)
{
	const struct weir_dataplane *dataplane = view->dataplane;
	struct weir_ledger_fill fill = weir_ledger_look(dataplane, view->now_ns);
	double looked_at = fill.places ? (double)fill.places : 1;
	uint64_t lost = 0;

	for (uint32_t cpu = 0; cpu < dataplane->shape.cpus; cpu++)
		lost += weir_once(dataplane->cpus[cpu].sampler.lost);
	weir_metric_one(out, "weir_ledger_places", "gauge",
			"Places of the ledger that all limits share",
			(double)dataplane->shape.sets * WEIR_WAYS);
	weir_metric_one(out, "weir_ledger_held_ratio", "gauge",
			"Share of places whose key can't be forgotten now (0 to 1)",
			(double)fill.held / looked_at);
	weir_metric_one(out, "weir_ledger_known_ratio", "gauge",
			"Share of places that were ever used (0 to 1)",
			(double)fill.known / looked_at);
	weir_metric_one(out, "weir_ledger_memory_bytes", "gauge",
			"Kernel memory of the ledger, its keys and the fronts",
			(double)weir_shape_bytes(&dataplane->shape));
	weir_metric_one(out, "weir_events_lost_total", "counter",
			"Samples of refusals that found the ring buffer full", (double)lost);
}

static void print_lists(const struct weir_view *view, FILE *out)
{
	const char *name = "weir_list_prefixes";

	weir_metric_begin(out, name, "gauge", "Prefixes on a list");
	for (int list = 0; view->engine && list < WEIR_LISTS; list++) {
		const struct weir_list_table *table =
			weir_engine_list(view->engine, (enum weir_list)list);
		const char *which = weir_list_name((enum weir_list)list);

		weir_metric_count(out, name, WEIR_LABELS("list", which, "family", "ipv4"),
				  weir_list_count(table, 4));
		weir_metric_count(out, name, WEIR_LABELS("list", which, "family", "ipv6"),
				  weir_list_count(table, 6));
	}
}

static void print_gates(const struct weir_connection_counts *counts, FILE *out)
{
	static const struct {
		const char *name, *help;
		size_t offset;
	} lines[] = {
#define GATE(member, help)                                                                         \
	{                                                                                          \
		"weir_gate_connections_" #member "_total", help,                                   \
			offsetof(struct weir_connection_counts, member)                            \
	}
		GATE(entered, "Connections that entered a gate, all gates together"),
		GATE(left, "Connections that left a gate"),
		GATE(adopted, "Connections that were open before their gate"),
		GATE(uncounted, "Connections that no gate could count: no place for their key"),
		GATE(recounted, "Places that a recount gave back or took: drift that was healed"),
#undef GATE
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		weir_metric_begin(out, lines[i].name, "counter", lines[i].help);
		if (counts)
			weir_metric_count(out, lines[i].name, NULL,
					  *(const uint64_t *)((const char *)counts +
							      lines[i].offset));
	}
}

/* ---- the controller ---- */

static void print_controller(const struct weir_metrics *metrics, FILE *out)
{
	const struct weir_http_counts *http = &metrics->http;
	char abi[16];

	snprintf(abi, sizeof(abi), "%d", WEIR_ABI_VERSION);
	weir_metric_begin(out, "weir_build_info", "gauge", "Always 1: the version, as its labels");
	weir_metric_count(out, "weir_build_info",
			  WEIR_LABELS("version", metrics->version, "abi", abi), 1);
	weir_metric_begin(out, "weir_reloads_total", "counter",
			  "Reloads of the configuration since the start, by what came of them");
	weir_metric_count(out, "weir_reloads_total", WEIR_LABELS("result", "applied"),
			  metrics->reloads);
	weir_metric_count(out, "weir_reloads_total", WEIR_LABELS("result", "refused"),
			  metrics->reloads_refused);
	weir_metric_one(out, "weir_http_connections", "gauge",
			"Connections to this HTTP server now", http->connections);
	weir_metric_one(out, "weir_http_requests_total", "counter",
			"Requests to this HTTP server, refused ones included",
			(double)http->requests);
	weir_metric_one(out, "weir_http_requests_refused_total", "counter",
			"Requests refused: a strange Host, another method, an unknown path",
			(double)http->refused);
	weir_metric_one(out, "weir_http_connections_cut_off_total", "counter",
			"Connections ended because they were slow or idle", (double)http->cut_off);
}

void weir_metrics_print(const struct weir_metrics *metrics, FILE *out)
{
	print_controller(metrics, out);
	weir_metrics_print_process(metrics->started_ns, out);
	print_interfaces(metrics->view, out);
	print_limits(metrics, out);
	print_ledger(metrics->view, out);
	print_lists(metrics->view, out);
	print_gates(metrics->connections, out);
	weir_services_metrics(metrics->view->services, out);
}
