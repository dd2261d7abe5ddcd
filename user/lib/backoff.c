// SPDX-License-Identifier: GPL-2.0
#include "weir/backoff.h"

#include <math.h>

#include "span.h"

const struct weir_backoff weir_backoff = {
	.base_ns = 100000000,
	.factor = 2,
	.cap_ns = 1000000000,
	.attempts = 3,
	.jitter = { .kind = WEIR_JITTER_SPREAD, .fraction = 0.2 },
};

struct weir_backoff weir_backoff_new(void)
{
	return weir_backoff;
}

/* fmin and fmax pick the number where the other is NaN: NaN becomes `low`. */
static double hold(double value, double low, double high)
{
	return fmin(fmax(value, low), high);
}

static const struct weir_backoff *or_preset(const struct weir_backoff *backoff)
{
	return backoff ? backoff : &weir_backoff;
}

int64_t weir_backoff_ceiling(const struct weir_backoff *backoff, int32_t retry)
{
	double factor;

	backoff = or_preset(backoff);
	if (retry <= 0 || backoff->base_ns <= 0)
		return 0;
	factor = isnan(backoff->factor) ? 1 : fmax(backoff->factor, 0);
	return weir_span_of((double)backoff->base_ns * pow(factor, (double)retry - 1),
			    backoff->cap_ns);
}

static double decorrelated(const struct weir_backoff *backoff, double random, int64_t previous_ns)
{
	double base = (double)(backoff->base_ns > 0 ? backoff->base_ns : 0);
	double most = fmax((double)previous_ns * 3, base);

	return fmin(base + random * (most - base), (double)backoff->cap_ns);
}

int64_t weir_backoff_delay(const struct weir_backoff *backoff, int32_t retry, double random,
			   int64_t previous_ns)
{
	double ceiling, spread;

	backoff = or_preset(backoff);
	if (retry <= 0)
		return 0;
	random = hold(random, 0, nextafter(1, 0));
	ceiling = (double)weir_backoff_ceiling(backoff, retry);
	switch (backoff->jitter.kind) {
	case WEIR_JITTER_FULL:
		return weir_span_of(ceiling * random, INT64_MAX);
	case WEIR_JITTER_EQUAL:
		return weir_span_of(ceiling / 2 + ceiling / 2 * random, INT64_MAX);
	case WEIR_JITTER_DECORRELATED:
		return weir_span_of(decorrelated(backoff, random, previous_ns), INT64_MAX);
	case WEIR_JITTER_SPREAD:
		spread = hold(backoff->jitter.fraction, 0, 1);
		return weir_span_of(ceiling * (1 - spread + 2 * spread * random), INT64_MAX);
	case WEIR_JITTER_RIGID:
	default:
		return weir_backoff_ceiling(backoff, retry);
	}
}

bool weir_backoff_more(const struct weir_backoff *backoff, int32_t made)
{
	return made < or_preset(backoff)->attempts;
}

size_t weir_backoff_schedule(const struct weir_backoff *backoff, const double *randoms,
			     size_t random_count, int64_t *delays_ns, size_t capacity)
{
	int32_t attempts = or_preset(backoff)->attempts;
	size_t count = attempts > 1 ? (size_t)attempts - 1 : 0;
	int64_t previous_ns = 0;

	for (size_t i = 0; delays_ns && i < count && i < capacity; i++) {
		double random = randoms && i < random_count ? randoms[i] : 0;

		previous_ns = weir_backoff_delay(backoff, (int32_t)i + 1, random, previous_ns);
		delays_ns[i] = previous_ns;
	}
	return count;
}
