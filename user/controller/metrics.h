/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What there is to see, in the text format of Prometheus (0.0.4). docs/metrics.md lists every
 * metric; a test holds it against this. Labels name limits, interfaces, hooks, lists and services,
 * which the configuration bounds: never an address, so that no flood makes a series.
 */
#pragma once

#include <stdio.h>

#include "controller/connections.h"
#include "controller/http.h"
#include "controller/policy.h"
#include "controller/report.h"

#define WEIR_METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* What the controller's loop knows beside the view. */
struct weir_metrics {
	const struct weir_view *view;
	const struct weir_policy *policy;		 /* in force */
	const struct weir_connection_counts *connections; /* of gates; NULL: nothing counts them */
	struct weir_http_counts http;
	uint64_t started_ns; /* since 1970 */
	uint64_t reloads, reloads_refused;
	const char *version;
};

/* All of it; what can't be read is left out. Errors are those of `out`. */
void weir_metrics_print(const struct weir_metrics *metrics, FILE *out);
