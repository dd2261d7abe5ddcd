/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: a count with a ceiling, the number of things happening at once. No time in it.
 *
 * The state is one word: 0 when nobody is inside, else WEIR_GATE_INSIDE | count. So it is a
 * neutral instant like every limiter's first word (not after now iff nobody is inside), and
 * entering and leaving are one compare-and-swap each. Source: the seed's Gate. The same code
 * runs in BPF and in user space.
 *
 * A lowered limit acts at once: nobody enters until enough have left. A leave with nobody
 * inside is ignored.
 *
 * In the kernel a word below WEIR_GATE_INSIDE is an instant: nobody is inside, but until then
 * some are pending (pending.h), so the place must not be forgotten.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define WEIR_GATE_INSIDE (1ULL << 63)

struct weir_gate_conf {
	uint32_t limit; /* how many may be inside; 0 = no ceiling */
};

struct weir_gate_state {
	uint64_t word; /* 0, or WEIR_GATE_INSIDE | count */
};

/* How many are inside. */
static inline uint64_t weir_gate_count(uint64_t word)
{
	return word & WEIR_GATE_INSIDE ? word & ~WEIR_GATE_INSIDE : 0;
}

/* Whether there is room, and in *next the word once it is taken. *next is set only if so. */
static inline bool weir_gate_step(uint64_t word, const struct weir_gate_conf *conf, uint64_t *next)
{
	uint64_t count = weir_gate_count(word);

	if (conf->limit && count >= conf->limit)
		return false;
	*next = WEIR_GATE_INSIDE | (count + 1);
	return true;
}

/* The word once one has left; `empty` is what it says when that was the last one. */
static inline uint64_t weir_gate_left(uint64_t word, uint64_t empty)
{
	if (!weir_gate_count(word))
		return word;
	return weir_gate_count(word) > 1 ? word - 1 : empty;
}

static inline uint64_t weir_gate_back(uint64_t word)
{
	return weir_gate_left(word, 0);
}

#ifndef __bpf__
#include "api.h"

WEIR_API_BEGIN

/*
 * The plain face: for one thread at a time.
 *
 * seed: Gate
 */
struct weir_gate {
	struct weir_gate_conf conf;
	struct weir_gate_state state;
};

/*
 * A gate that nothing has entered.
 *
 * @limit how many may be inside at once; zero or less means no ceiling (but INT32_MAX)
 *
 * seed: Gate::new
 */
struct weir_gate weir_gate_new(int32_t limit);

/*
 * Whether there is room, taking it if there is.
 *
 * seed: Gate::enter
 */
bool weir_gate_enter(struct weir_gate *gate);

/*
 * Give the room back. Ignored when nobody is inside.
 *
 * seed: Gate::leave
 */
void weir_gate_leave(struct weir_gate *gate);

/*
 * How many are inside.
 *
 * seed: Gate::held
 */
int32_t weir_gate_held(const struct weir_gate *gate);

WEIR_API_END
#endif
