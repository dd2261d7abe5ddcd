/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How busy the CPU is, in thousandths of what there is: of the host by /proc/stat, or of a
 * cgroup's own quota (v2: cpu.stat and cpu.max; v1: cpuacct.usage and cpu.cfs_quota_us, in one
 * hierarchy or in two beside each other, the cgroup then being named in that of cpu).
 *
 * Parsers are pure; a meter turns cumulative readings into smoothed thousandths; a reader finds
 * the files. 1000 is all of it whatever the number of CPUs: the host's line already adds up
 * all CPUs, a cgroup's usage is divided once by the CPUs that it may use.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The meter forgets with a time constant of SMOOTH: anything much faster makes a shedder's
 * ceiling swing, since the ceiling moves the CPU. Where a reading is more than STEP thousandths
 * above the smoothed value it is RISE: an onset of load shows within a second.
 */
#define WEIR_CPU_SMOOTH_NS 1500000000LL
#define WEIR_CPU_RISE_NS 500000000LL
#define WEIR_CPU_STEP 100
#define WEIR_CPU_UNKNOWN (-1)
#define WEIR_CPU_PATH_SIZE 512
#define WEIR_CPU_TEXT_SIZE 4096 /* of a file that is looked at: its beginning */

/* Cumulative, in any one unit: what was used of what there was. */
struct weir_cpu_times {
	uint64_t used;
	uint64_t available;
};

/*
 * The first line of /proc/stat. Used is all but idle and iowait; time that the hypervisor stole
 * counts as used, guests are within user. -EINVAL for what is no such line.
 */
int weir_cpu_parse_stat(const char *text, struct weir_cpu_times *times);
/* cgroup v2 cpu.stat: usage_usec, in ns. -EINVAL if it isn't there. */
int weir_cpu_parse_usage(const char *text, uint64_t *usage_ns);
/*
 * cgroup v2 cpu.max ("max 100000", "150000 100000"), or the two v1 files, in thousandths of a
 * CPU; UINT64_MAX: no quota. -EINVAL for what is neither.
 */
int weir_cpu_parse_max(const char *text, uint64_t *milli_cpus);
int weir_cpu_parse_quota(const char *quota, const char *period, uint64_t *milli_cpus);
/* A list of CPUs ("0-3,8"): how many, and one more than the highest. -EINVAL for what is none. */
int weir_cpu_parse_list(const char *text, uint64_t *cpus, uint64_t *end);

struct weir_cpu_meter {
	struct weir_cpu_times last;
	int64_t at_ns;
	bool primed;	    /* last is a reading */
	double thousandths; /* smoothed; below 0: not known yet */
};

void weir_cpu_meter_init(struct weir_cpu_meter *meter);
/*
 * Folds in a reading and returns the smoothed thousandths, 0 to 1000 (a cgroup may overrun its
 * quota for a moment; that is 1000). WEIR_CPU_UNKNOWN after the first reading. A reading that
 * went back (a CPU taken offline, a cgroup made again) only sets a new start, and one over which
 * nothing became available says nothing: the value stays as it was.
 */
int32_t weir_cpu_meter_add(struct weir_cpu_meter *meter, int64_t now_ns,
			   struct weir_cpu_times times);

struct weir_cpu_reader {
	char root[WEIR_CPU_PATH_SIZE];	 /* "" for the real one; tests have a tree of their own */
	char cgroup[WEIR_CPU_PATH_SIZE]; /* the cgroup's directory; "": the host */
	struct weir_cpu_meter meter;
	uint64_t milli_cpus;   /* of the cgroup, as last looked up */
	int64_t quota_at_ns;   /* when that was */
	uint64_t available_ns; /* of the cgroup, added up */
	int64_t read_at_ns;
	bool started;
	int fd; /* of the file with the usage, kept open; -1 */
};

void weir_cpu_open(struct weir_cpu_reader *cpu, const char *root, const char *cgroup);
/*
 * Reads and folds in. 0 and thousandths (or WEIR_CPU_UNKNOWN); -ENOENT: there are no such files;
 * -EINVAL: they say nothing that we know; *thousandths is then WEIR_CPU_UNKNOWN. The quota is
 * the smallest of the cgroup's and those above it, looked up anew every few seconds.
 */
int weir_cpu_read(struct weir_cpu_reader *cpu, int64_t now_ns, int32_t *thousandths);
void weir_cpu_close(struct weir_cpu_reader *cpu);

/*
 * How long a table must be that has a row for each CPU, found by its number: one more than the
 * highest of the possible ones, between which there may be holes. -errno: not known.
 */
int weir_cpu_numbers(const char *root);
