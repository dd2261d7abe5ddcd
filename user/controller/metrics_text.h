/* SPDX-License-Identifier: GPL-2.0 */
/* The lines of Prometheus' text format. */
#pragma once

#include <stdint.h>
#include <stdio.h>

/* HELP and TYPE: once a metric, before its samples. type: counter, gauge, histogram. */
void weir_metric_begin(FILE *out, const char *name, const char *type, const char *help);

/* Names and values in turn, NULL at the end; values are escaped. */
#define WEIR_LABELS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* labels: WEIR_LABELS, or NULL for none. */
void weir_metric_count(FILE *out, const char *name, const char *const *labels, uint64_t value);
void weir_metric_value(FILE *out, const char *name, const char *const *labels, double value);
/* A metric with one sample and no labels, whole. */
void weir_metric_one(FILE *out, const char *name, const char *type, const char *help,
		     double value);
