// SPDX-License-Identifier: GPL-2.0
#include "weir/period.h"

#include "span.h"

_Static_assert(sizeof(struct weir_period_conf) == 24, "shared with BPF");
_Static_assert(sizeof(struct weir_period_state) == 16, "shared with BPF");

struct weir_period weir_period_new(int32_t quota, int64_t period_ns, bool align)
{
	uint64_t length = period_ns > 0 ? (uint64_t)period_ns : 1;

	return (struct weir_period){
		.conf = {
			.period = length,
			/* Where instant 0 of the caller lies on the unsigned axis. */
			.phase = weir_span_instant(0) % length,
			.quota = quota > 0 ? (uint32_t)quota : 0,
			.align = align,
		},
		.latest_ns = INT64_MIN,
	};
}

static uint64_t instant(const struct weir_period *period, int64_t now_ns)
{
	return weir_span_instant(now_ns > period->latest_ns ? now_ns : period->latest_ns);
}

enum weir_quota weir_period_take(struct weir_period *period, int64_t now_ns)
{
	if (!period)
		return WEIR_QUOTA_OVER;
	if (now_ns > period->latest_ns)
		period->latest_ns = now_ns;
	return weir_period_step(&period->state, &period->conf, instant(period, now_ns), 1);
}

int32_t weir_period_left(const struct weir_period *period, int64_t now_ns)
{
	if (!period)
		return 0;
	return (int32_t)weir_period_room(&period->state, &period->conf, instant(period, now_ns));
}

int64_t weir_period_next(const struct weir_period *period, int64_t now_ns)
{
	uint64_t until;

	if (!period)
		return 0;
	until = weir_period_until(&period->state, &period->conf, instant(period, now_ns));
	return until ? weir_span_sum(until - weir_span_instant(now_ns), 0) : 0;
}
