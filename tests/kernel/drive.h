/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Between the driver (drive.bpf.c) and the tests: the driver runs weir's XDP path on one frame
 * again and again, each time with another IPv4 source, and notes the verdict for each source.
 * So one BPF_PROG_TEST_RUN with `repeat` covers as many sources, and two CPUs can run at once.
 */
#pragma once

#include <stdint.h>

#define DRIVE_SOURCES (1 << 20)
#define DRIVE_BASE 0x0a000000u /* 10.0.0.0: source 0, in host order */

/* Map `drive_cpus`: [cpu]. Packet n comes from source from + (n * stride) % count. */
struct drive_cpu {
	uint32_t from;
	uint32_t count; /* above 0 */
	uint32_t stride;
	uint32_t hot_every; /* every so many packets one comes from source 0; 0: none does */
	uint64_t step_ns;   /* the clock moves so far before each packet */
	uint64_t sent;	    /* packets, of all kinds */
	uint64_t spread;    /* packets but the hot ones: n above */
	uint64_t until;	    /* runs do nothing once so many are sent, */
	uint32_t wanted;    /* nor before so many CPUs are here */
	uint32_t here;
	uint64_t logged; /* packets passed, of which drive_log has the first DRIVE_LOG */
	uint32_t last;	 /* source */
	uint32_t pad[15];
};
_Static_assert(sizeof(struct drive_cpu) == 128, "two cache lines");

/* Map `drive_log`: [cpu][DRIVE_LOG], when each packet passed, in ns, as weir read the clock. */
#define DRIVE_LOG (1 << 18)

/* What a run returns that did nothing. */
#define DRIVE_IDLE 0

/* Map `drive_verdicts`: [cpu][DRIVE_SOURCES]. */
struct drive_verdict {
	uint32_t passed;
	uint32_t refused;
};
