/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What every header of libweir keeps to.
 *
 * Time is the caller's: every call carries the `now_ns` it happens at, nanoseconds on any
 * clock; lengths of time are nanoseconds in an int64_t. A clock that goes back counts as no
 * time passed. Nothing in the library reads a clock, draws a random number, keeps a global
 * or takes a lock.
 *
 * Memory. What has a fixed size is a plain struct that the caller holds; what has not comes
 * from weir_x_new (NULL and errno on failure) and goes to weir_x_free (NULL is ignored).
 * Nothing else allocates. The members of such structs are read-only to the caller.
 *
 * Threads. Different objects may be used by different threads at once. One object is for one
 * thread at a time; the exceptions are the pure steps over one word (weir_bucket_step,
 * weir_gate_step, weir_gate_back), made for compare-and-swap.
 *
 * The references' entries are marked `seed:` where they are declared; `@moondate.Span` is an
 * int64_t of nanoseconds with _ns in its name, None is NULL or false, and what derives Eq or
 * Debug there is plain data here.
 *
 * Bad input is defined and never traps: a NULL object admits nothing and reads as zero (each
 * header says what else), NaN is named where a double is taken.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
#define WEIR_API_BEGIN extern "C" {
#define WEIR_API_END }
#else
#define WEIR_API_BEGIN
#define WEIR_API_END
#endif

/* A length of time without end: the answer where no wait would be long enough. */
#define WEIR_FOREVER_NS INT64_MAX
