// SPDX-License-Identifier: GPL-2.0
#include "weir/sliding.h"

#include <stdlib.h>

#include "span.h"

_Static_assert(sizeof(struct weir_sliding_conf) == 16, "shared with BPF");
_Static_assert(sizeof(struct weir_sliding_state) == 16, "shared with BPF");

struct weir_sliding {
	struct weir_sliding_conf conf;
	struct weir_sliding_state state;
	int64_t latest_ns; /* the newest stamp */
	uint64_t ring[];
};

struct weir_sliding *weir_sliding_new(int32_t quota, int64_t window_ns)
{
	uint32_t capacity = quota > 0 ? (uint32_t)quota : 1;
	struct weir_sliding *sliding;

	sliding = calloc(1, sizeof(*sliding) + sizeof(sliding->ring[0]) * (size_t)capacity);
	if (!sliding)
		return NULL;
	sliding->conf = (struct weir_sliding_conf){
		.window = window_ns > 0 ? (uint64_t)window_ns : 0,
		.quota = quota > 0 ? (uint32_t)quota : 0,
		.capacity = capacity,
	};
	sliding->latest_ns = INT64_MIN;
	return sliding;
}

void weir_sliding_free(struct weir_sliding *sliding)
{
	free(sliding);
}

static int64_t not_before(int64_t now_ns, int64_t latest_ns)
{
	return now_ns > latest_ns ? now_ns : latest_ns;
}

bool weir_sliding_take(struct weir_sliding *sliding, int64_t now_ns)
{
	if (!sliding)
		return false;
	now_ns = not_before(now_ns, sliding->latest_ns);
	if (!weir_sliding_step(&sliding->state, &sliding->conf, sliding->ring,
			       weir_span_instant(now_ns), 1))
		return false;
	sliding->latest_ns = now_ns;
	return true;
}

int32_t weir_sliding_left(const struct weir_sliding *sliding, int64_t now_ns)
{
	uint64_t now, low = 0, high;

	if (!sliding)
		return 0;
	now = weir_span_instant(not_before(now_ns, sliding->latest_ns));
	high = sliding->conf.quota;
	/* low fit, more than high don't: the stamps are in order. */
	while (low < high) {
		uint64_t n = low + (high - low + 1) / 2;
		uint64_t at = weir_sliding_inspect(&sliding->conf, sliding->state.head, n);

		if (weir_sliding_open(&sliding->conf, sliding->ring[at], now))
			low = n;
		else
			high = n - 1;
	}
	return (int32_t)low;
}

int64_t weir_sliding_next(const struct weir_sliding *sliding, int64_t now_ns)
{
	uint64_t stamp, now;

	if (!sliding || !weir_sliding_fits(&sliding->conf, 1))
		return WEIR_FOREVER_NS;
	stamp = sliding->ring[weir_sliding_inspect(&sliding->conf, sliding->state.head, 1)];
	now = weir_span_instant(not_before(now_ns, sliding->latest_ns));
	if (weir_sliding_open(&sliding->conf, stamp, now))
		return 0;
	return weir_span_sum(sliding->conf.window - (now - (stamp - 1)),
			     weir_span_since(sliding->latest_ns, now_ns));
}
