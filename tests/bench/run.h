/* SPDX-License-Identifier: GPL-2.0 */
/* One program on one or more CPUs at once. */
#pragma once

#include <stdint.h>

#define BENCH_CPUS_AT_ONCE 2

struct bench_cpus {
	int cpu[BENCH_CPUS_AT_ONCE];
	unsigned int count; /* how many this machine lets us have of them */
};

/* The first CPUs that we may run on. */
void bench_cpus_pick(struct bench_cpus *cpus);

/* What the frames are from now on, in place of UDP to port 53; UDP has no flags. */
void bench_frame_set(uint8_t protocol, uint16_t port, uint8_t tcp_flags);

/*
 * Runs the program `repeat` times on each of the first `count` CPUs, started together. In *ns
 * what a packet took of a thread's CPU time, the mean over the CPUs. 0 or -errno.
 */
int bench_run(int program, const struct bench_cpus *cpus, unsigned int count, uint32_t repeat,
	      double *ns);
