// SPDX-License-Identifier: GPL-2.0
#include "weir/window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "span.h"

struct weir_window {
	size_t bucket_bytes;
	weir_window_clear clear;
	uint64_t width_ns;
	int64_t opened_ns; /* when the newest bucket opened */
	uint32_t size;
	uint32_t newest;
	unsigned char *buckets;
};

static void *bucket_at(const struct weir_window *window, uint32_t index)
{
	return window->buckets + (size_t)index * window->bucket_bytes;
}

static void clear_bucket(struct weir_window *window, uint32_t index)
{
	if (window->clear)
		window->clear(bucket_at(window, index));
	else
		memset(bucket_at(window, index), 0, window->bucket_bytes);
}

struct weir_window *weir_window_new(int32_t size, int64_t window_ns, int64_t now_ns,
				    size_t bucket_bytes, weir_window_clear clear)
{
	struct weir_window *window;

	if (!bucket_bytes) {
		errno = EINVAL;
		return NULL;
	}
	window = calloc(1, sizeof(*window));
	if (!window)
		return NULL;
	window->size = size > 1 ? (uint32_t)size : 1;
	window->width_ns = window_ns > window->size ? (uint64_t)window_ns / window->size : 1;
	window->opened_ns = now_ns;
	window->bucket_bytes = bucket_bytes;
	window->clear = clear;
	window->buckets = calloc(window->size, bucket_bytes);
	if (!window->buckets) {
		free(window);
		return NULL;
	}
	for (uint32_t i = 0; clear && i < window->size; i++)
		clear_bucket(window, i);
	return window;
}

void weir_window_free(struct weir_window *window)
{
	if (!window)
		return;
	free(window->buckets);
	free(window);
}

/* How many bucket widths lie between the newest bucket's opening and now. */
static uint64_t swept(const struct weir_window *window, int64_t now_ns)
{
	return weir_span_since(now_ns, window->opened_ns) / window->width_ns;
}

void weir_window_each(const struct weir_window *window, int64_t now_ns, bool current,
		      weir_window_visit visit, void *context)
{
	uint64_t gone;
	uint32_t end;

	if (!window || !visit)
		return;
	gone = swept(window, now_ns);
	/* Once time has moved past the newest bucket, the one that now falls in isn't there. */
	end = gone || current ? window->size : window->size - 1;
	for (uint64_t i = gone; i < end; i++)
		visit(context, bucket_at(window, (window->newest + 1 + i) % window->size));
}

void *weir_window_slot(struct weir_window *window, int64_t now_ns)
{
	uint64_t gone;

	if (!window)
		return NULL;
	gone = swept(window, now_ns);
	for (uint64_t i = 0; i < gone && i < window->size; i++) {
		window->newest = (window->newest + 1) % window->size;
		clear_bucket(window, window->newest);
	}
	window->opened_ns = (int64_t)((uint64_t)window->opened_ns + gone * window->width_ns);
	return bucket_at(window, window->newest);
}

int32_t weir_window_size(const struct weir_window *window)
{
	return window ? (int32_t)window->size : 0;
}

int64_t weir_window_width(const struct weir_window *window)
{
	return window ? (int64_t)window->width_ns : 0;
}

void weir_tally_add(struct weir_tally *tally, enum weir_outcome outcome)
{
	if (!tally)
		return;
	switch (outcome) {
	case WEIR_OUTCOME_SUCCESS:
		tally->success++;
		break;
	case WEIR_OUTCOME_FAILURE:
		tally->failure++;
		break;
	case WEIR_OUTCOME_DROP:
		tally->drop++;
		break;
	default:
		return;
	}
	tally->total++;
}

void weir_total_add(struct weir_total *total, int64_t value)
{
	if (!total)
		return;
	if (__builtin_add_overflow(total->sum, value, &total->sum))
		total->sum = value > 0 ? INT64_MAX : INT64_MIN;
	total->count++;
}
