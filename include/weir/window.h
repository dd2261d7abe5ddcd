/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rolling window: `size` buckets that together cover the last stretch of time, the oldest
 * dropping off as time moves on. What a bucket holds is the caller's; here too are the two
 * that the breaker and the shedder keep. Source: the seed's Window, Outcome, Tally, Total.
 */
#pragma once

#include <stddef.h>

#include "api.h"

WEIR_API_BEGIN

/*
 * Writing at a later now clears the buckets that the gap swept past; reading at a later now
 * skips them without clearing, so that a window nobody writes to still ages out and two reads
 * at one now agree. A clock that goes back counts as no time passed: the write goes into the
 * newest bucket.
 *
 * seed: Window
 */
struct weir_window;

/* Sets a bucket back to its default. Called when it is made and when it is swept past. */
typedef void (*weir_window_clear)(void *bucket);

/* Sees one live bucket; `context` is the one given to weir_window_each. */
typedef void (*weir_window_visit)(void *context, const void *bucket);

/*
 * An empty window, its first bucket opening at now_ns. NULL with errno EINVAL (no bytes in a
 * bucket) or ENOMEM. Takes size * bucket_bytes.
 *
 * @size         how many buckets; anything under one is raised to one
 * @window_ns    what they cover together; a bucket under a nanosecond is raised to one
 * @now_ns       seed's default: 0
 * @bucket_bytes sizeof the caller's bucket type
 * @clear        NULL: zero bytes
 *
 * seed: Window::new
 */
struct weir_window *weir_window_new(int32_t size, int64_t window_ns, int64_t now_ns,
				    size_t bucket_bytes, weir_window_clear clear);
void weir_window_free(struct weir_window *window);

/*
 * Visit the buckets still inside the window at now, oldest first. `current` (seed's default:
 * true) says whether to include the bucket that now falls in: it has seen only part of its
 * time. Nothing is visited when the window or `visit` is NULL.
 *
 * seed: Window::each
 */
void weir_window_each(const struct weir_window *window, int64_t now_ns, bool current,
		      weir_window_visit visit, void *context);

/*
 * The bucket that now falls in, for the caller to add to; valid until the next slot. The head
 * stays on a bucket boundary, so buckets keep their width. NULL for NULL.
 *
 * seed: Window::slot
 */
void *weir_window_slot(struct weir_window *window, int64_t now_ns);

/*
 * How many buckets the window has.
 *
 * seed: Window::size
 */
int32_t weir_window_size(const struct weir_window *window);

/*
 * How much time one bucket covers, in nanoseconds.
 *
 * seed: Window::width
 */
int64_t weir_window_width(const struct weir_window *window);

/*
 * How a call ended, as a breaker records it.
 *
 * seed: Outcome
 */
enum weir_outcome {
	WEIR_OUTCOME_SUCCESS, /* seed: Outcome::Success */
	WEIR_OUTCOME_FAILURE, /* seed: Outcome::Failure */
	WEIR_OUTCOME_DROP,    /* seed: Outcome::Drop; refused before it ran: traffic, no more */
};

/*
 * Outcomes counted in one bucket. Zero bytes are its default.
 *
 * seed: Tally
 */
struct weir_tally {
	int64_t total; /* every call, the dropped ones too: a throttled bucket reads as busy */
	int64_t success;
	int64_t failure;
	int64_t drop;
};

/*
 * Count one call ending as `outcome`. What is none of the three is ignored.
 *
 * seed: Tally::add
 */
void weir_tally_add(struct weir_tally *tally, enum weir_outcome outcome);

/*
 * A sum and how many values went into it: a mean once count is above zero.
 *
 * seed: Total
 */
struct weir_total {
	int64_t sum; /* held to the range of int64_t */
	int64_t count;
};

/*
 * Add one value.
 *
 * seed: Total::add
 */
void weir_total_add(struct weir_total *total, int64_t value);

WEIR_API_END
