/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Two clocks. The kernel side counts by bpf_ktime_get_ns, which is CLOCK_MONOTONIC: never set,
 * at rest while the machine sleeps. People count days by CLOCK_REALTIME. Aligned periods need
 * the difference; it stays the same until somebody sets the clock or the machine wakes up.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

uint64_t weir_monotonic_ns(void); /* the clock of bpf_ktime_get_ns */
uint64_t weir_realtime_ns(void);
uint64_t weir_boottime_ns(void); /* as the first, but goes on while the machine sleeps */

/* How far CLOCK_REALTIME is ahead of CLOCK_MONOTONIC, to some microseconds. */
uint64_t weir_clock_wall_ns(void);

/* A descriptor that turns readable when the wall clock is set; -errno. */
int weir_clock_open(void);
/* Takes the news off it. */
void weir_clock_drain(int fd);
