/* SPDX-License-Identifier: GPL-2.0 */
/* What metrics*.c share; others include metrics.h. */
#pragma once

#include <stdint.h>
#include <stdio.h>

/* metrics_process.c: this process, by the names that Prometheus' own libraries use. */
void weir_metrics_print_process(uint64_t started_ns, FILE *out);
