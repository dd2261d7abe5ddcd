/* SPDX-License-Identifier: GPL-2.0 */
/* One source and one bucket on the rig: for the tests of the bucket and of its changes. */
#pragma once

#include <math.h>

#include "harness.h"
#include "kernel/rig.h"
#include "random.h"

/* One v4 source and one limit, as most tests here want it; loaded once for all of them. */
struct bench {
	struct rig rig;
	struct frame frame;
};

static inline void bench_open(struct bench *bench, const struct rig_limit *limit)
{
	static struct rig shared;

	if (shared.weir)
		rig_reset(&shared);
	else
		rig_open(&shared, RIG_WEIR, 1024);
	bench->rig = shared;
	rig_frame(&bench->frame, "198.51.100.7", IPPROTO_UDP, 0);
	CU_ASSERT_EQUAL(rig_set(&bench->rig, limit), 0);
}

/* How many of n packets (above 0) at one instant pass. */
static inline uint64_t passed_of(const struct bench *bench, uint32_t n)
{
	uint64_t before = weir_dataplane_totals(&bench->rig.plane, 0).passed_packets;

	CU_ASSERT_TRUE(rig_send(&bench->rig, bench->frame.bytes, bench->frame.size, n) >= 0);
	return weir_dataplane_totals(&bench->rig.plane, 0).passed_packets - before;
}

static inline bool passes(const struct bench *bench)
{
	return passed_of(bench, 1) == 1;
}

static inline double log_uniform(uint64_t *seed, double low, double high)
{
	return low * pow(high / low, random_unit(seed));
}
