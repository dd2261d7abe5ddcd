/* SPDX-License-Identifier: GPL-2.0 */
/* What bench.c (rows of sources) and scenes.c (policies) share. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bench.h"
#include "controller/dataplane.h"
#include "run.h"
#include "sources.h"

#include "bench.skel.h" /* uses their types */

#define ROUNDS_MAX 99
#define SHARE_LEAST 0.99 /* of a row's packets get the verdict it is named for */

enum fixture { DROP, PARSE, CLOCK, LIST, TEXTBOOK, WEIR, FIXTURES };
/* Admitted first: what the textbook once refused, it refuses for a day. */
enum verdict { ADMITTED, REFUSED, VERDICTS };

extern const char *const verdict_names[VERDICTS];

struct options {
	unsigned int rounds;
	const char *rows; /* a comma-separated list, or NULL for all */
	bool quick;
};

struct bench {
	struct options options;
	struct bench_bpf *skeleton;
	struct weir_dataplane dataplane;
	struct bench_cpus cpus;
	int programs[FIXTURES];
	/* medians in ns a packet, 0: not measured; the last index is CPUs - 1 */
	double ns[BENCH_ROWS][VERDICTS][FIXTURES][BENCH_CPUS_AT_ONCE];
};

/* Packets so far, of a fixture that has a limit. */
struct counts {
	uint64_t passed;
	uint64_t refused;
	uint64_t other; /* met no limit and no list */
};

__attribute__((noreturn, format(printf, 2, 3))) void bench_die(int code, const char *format, ...);
struct counts bench_count(const struct bench *bench, enum fixture fixture);
/* What share of the packets since `before` got the verdict; 1 where a fixture has no limit. */
double bench_share_since(const struct bench *bench, enum fixture fixture, enum verdict verdict,
			 struct counts before);
/* ns a packet of one run of the whole sequence. */
double bench_measure_once(struct bench *bench, enum fixture fixture, unsigned int cpus);
double bench_median(double *samples, unsigned int count); /* sorts them */
/* Prints a bar's line. NAN as a figure: unmeasured. Returns whether the bar is missed. */
bool bench_bar(const struct bench *bench, const char *name, double figure, double limit);

/* Whether --rows asks for it. */
bool bench_row_wanted(const char *list, const char *name);

/* What --rows may say beside the rows. */
#define SCENE_GROUPS "limits,kinds,lists,aggregate,services"

/* Measures the groups that are wanted and prints them. */
void bench_scenes(struct bench *bench);
/* Their bars; how many are missed. */
int bench_scenes_judge(const struct bench *bench);
