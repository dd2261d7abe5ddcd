/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One step of each limiter at a key's place. Each answers enum weir_answer; a refusal says in
 * *seen what the front may remember (0: nothing).
 */
#pragma once

#include "ledger.bpf.h"
#include "weir/pending.h"
#include "weir/place.h"

/* The words of a place that a step works on. */
struct weir_words {
	uint64_t *state;
	struct weir_counts *counts;
	uint64_t read; /* the state as it was when the place was surely the key's; not busy */
};

/*
 * So much later than a CPU read the clock it may come to a state that others moved on
 * meanwhile. What it finds up to that far beyond its own now is not taken for a state from
 * before a change of the limit: to clamp it would take back what they charged.
 */
#define WEIR_LATE_TICKS (1000000ULL << WEIR_TICK_SHIFT)

/* ---- bucket ---- */

static __always_inline int weir_bucket_at(const struct weir_words *at,
					  const struct weir_limit *limit, uint64_t now_ticks,
					  const struct weir_charge *charge, uint64_t *seen)
{
	uint64_t tat = at->read, next;

	if (charge->mode == WEIR_BACK) {
		next = tat > charge->cost ? tat - charge->cost : 0;
		return weir_swap(at->state, tat, next) == tat ? WEIR_ADMITTED : WEIR_AGAIN;
	}
	if (weir_bucket_step(tat, &limit->bucket, now_ticks, charge->cost, &next)) {
		if (charge->mode == WEIR_TAKE && weir_swap(at->state, tat, next) != tat)
			return WEIR_AGAIN;
		return WEIR_ADMITTED;
	}
	*seen = weir_bucket_clamp(tat, &limit->bucket, now_ticks);
	if (tat - *seen > WEIR_LATE_TICKS)
		weir_swap(at->state, tat, *seen);
	return WEIR_REFUSED;
}

/*
 * A place that is counted in another revision than the packet knows, always WEIR_AGAIN. An older
 * one is converted, by the first packet of a key after its limit was changed. It is busy
 * meanwhile, so that the state and what it is counted in change as one.
 */
static __always_inline int weir_bucket_convert(const struct weir_words *at,
					       const struct weir_limit *limit, uint64_t now_ticks)
{
	uint64_t state = at->read, behind;
	const struct weir_past *past;
	uint16_t revision;

	if (weir_swap(at->state, at->read, WEIR_STATE_BUSY) != at->read)
		return WEIR_AGAIN;
	/* Read anew: another CPU may have converted it to the same state since. */
	behind = weir_passed_behind(weir_once(at->counts->passed), limit->revision);
	if (behind) {
		revision = limit->revision - behind;
		past = &weir_board.past[limit->slot & (WEIR_LIMITS_MAX - 1)]
				       [revision & (WEIR_PAST_REVISIONS - 1)];
		state = weir_past_convert(past, revision, &limit->bucket, state, now_ticks);
		/* Added: whoever was admitted may count that only now. Fetched: a barrier. */
		behind = __sync_fetch_and_add(&at->counts->passed, behind << WEIR_PASSED_BITS);
		weir_opaque(behind);
	}
	weir_once(*at->state) = state;
	return WEIR_AGAIN;
}

/* ---- period ---- */

static __always_inline int weir_period_give_back(const struct weir_words *at, uint64_t cost)
{
	uint64_t word = weir_once(at->counts->passed);

	if ((word & 0xffffffff) < cost)
		return WEIR_ADMITTED;
	return weir_swap(&at->counts->passed, word, word - cost) == word ? WEIR_ADMITTED :
									    WEIR_AGAIN;
}

/* weir_period_until, but of a period that began after this CPU read the clock its own end. */
static __always_inline uint64_t weir_period_until_late(const struct weir_period_state *state,
						       const struct weir_period_conf *conf,
						       uint64_t now_ticks)
{
	uint64_t until = weir_period_until(state, conf, now_ticks), end = state->end;

	if (until == end || !until || end > now_ticks + conf->period + WEIR_LATE_TICKS)
		return until;
	return !conf->align || end % conf->period == conf->phase ? end : until;
}

/* Another end and count: the place is busy while the two words don't belong together. */
static __always_inline int weir_period_move(const struct weir_words *at, uint64_t end,
					    uint64_t until, uint64_t word, uint64_t count)
{
	bool moved;

	if (weir_swap(at->state, end, WEIR_STATE_BUSY) != end)
		return WEIR_AGAIN;
	moved = weir_swap(&at->counts->passed, word, weir_period_word(until, count)) == word;
	weir_once(*at->state) = moved ? until : end;
	return moved ? WEIR_ADMITTED : WEIR_AGAIN;
}

static __always_inline int weir_period_at(const struct weir_words *at,
					  const struct weir_limit *limit, uint64_t now_ticks,
					  const struct weir_charge *charge, uint64_t *seen)
{
	uint64_t end = at->read, word = weir_once(at->counts->passed), until;
	struct weir_period_state state = weir_period_unpack(end, word);
	bool over;

	/* A period that began between the two reads must not be taken for the one before. */
	if (weir_once(*at->state) != end)
		return WEIR_AGAIN;
	if (charge->mode == WEIR_BACK)
		return weir_period_give_back(at, charge->cost);
	over = weir_period_peek(&state, &limit->period, now_ticks, charge->cost) ==
	       WEIR_QUOTA_OVER;
	if (!over && charge->mode == WEIR_CHECK)
		return WEIR_ADMITTED;
	until = weir_period_until_late(&state, &limit->period, now_ticks);
	if (over) {
		/* A shortened period begins with its first refusal. */
		if (until && until != end)
			weir_period_move(at, end, until, word, state.count);
		*seen = charge->cost == 1 ? until : 0;
		return WEIR_REFUSED;
	}
	if (until == end)
		return weir_swap(&at->counts->passed, word,
				 weir_period_word(end, state.count + charge->cost)) == word ?
			       WEIR_ADMITTED :
			       WEIR_AGAIN;
	if (!until) {
		until = weir_period_ending(&limit->period, now_ticks);
		state.count = 0;
	}
	return weir_period_move(at, end, until, word, state.count + charge->cost);
}

/* ---- gate ---- */

static __always_inline void weir_gate_begin(struct weir_beginning *begin, uint64_t now_ticks,
					    uint32_t mode)
{
	uint64_t slice = weir_pending_slice(now_ticks);

	if (mode == WEIR_ENTER) {
		*begin = (struct weir_beginning){ .state = WEIR_GATE_INSIDE | 1 };
		return;
	}
	begin->state = weir_pending_until(slice);
	begin->passed = weir_pending_add(0, slice);
}

/* Of an entry that nobody asked for. */
#define WEIR_NOT_PENDING UINT64_MAX

/* One less pending. Where others are always faster, it is left to expire. */
static __always_inline void weir_gate_settle(struct weir_counts *counts, uint64_t slice,
					     uint64_t then)
{
	if (then == WEIR_NOT_PENDING)
		return;
	_Pragma("clang loop unroll(disable)")
	for (int i = 0; i < WEIR_TRIES; i++) {
		uint64_t word = weir_once(counts->passed);
		uint64_t next = weir_pending_drop(word, slice, then);

		if (next == word || weir_swap(&counts->passed, word, next) == word)
			return;
	}
}

/*
 * A connection's first packet asks; WEIR_ENTER is the connection itself, which nobody can
 * refuse any more (charge->cost: the slice in which it asked, or WEIR_NOT_PENDING). An entry is
 * counted before its pending one is taken off, and who asks reads in the other order, so that
 * nobody is missed in between (on processors that keep the order of loads; others may let in one
 * more for each that enters at that very moment).
 */
static __always_inline int weir_gate_at(const struct weir_words *at,
					const struct weir_limit *limit, uint64_t now_ticks,
					const struct weir_charge *charge)
{
	uint64_t pending = weir_once(at->counts->passed), word = weir_once(*at->state);
	uint64_t slice = weir_pending_slice(now_ticks), until = weir_pending_until(slice);
	uint64_t inside = weir_gate_count(word);

	if (word != at->read)
		return WEIR_AGAIN;
	if (charge->mode == WEIR_ENTER) {
		if (weir_swap(at->state, word, WEIR_GATE_INSIDE | (inside + 1)) != word)
			return WEIR_AGAIN;
		weir_gate_settle(at->counts, slice, charge->cost);
		return WEIR_ADMITTED;
	}
	if (charge->mode == WEIR_BACK) {
		weir_gate_settle(at->counts, slice, slice);
		return WEIR_ADMITTED;
	}
	if (limit->gate.limit && inside + weir_pending_count(pending, slice) >= limit->gate.limit)
		return WEIR_REFUSED;
	if (charge->mode == WEIR_CHECK)
		return WEIR_ADMITTED;
	/* From here on the place can't be forgotten, so the pending word stays the key's. */
	if (word < until && weir_swap(at->state, word, until) != word)
		return WEIR_AGAIN;
	return weir_swap(&at->counts->passed, pending, weir_pending_add(pending, slice)) ==
			       pending ?
		       WEIR_ADMITTED :
		       WEIR_AGAIN;
}

/* ---- sliding ---- */

static __always_inline uint64_t *weir_ring_at(const struct weir_limit *limit, uint32_t place,
					      uint64_t event)
{
	uint32_t slot = limit->slot;
	void *ring = bpf_map_lookup_elem(&weir_rings, &slot);
	uint32_t index = place * limit->sliding.capacity +
			 weir_ring_index(event, limit->sliding.capacity);

	return ring ? bpf_map_lookup_elem(ring, &index) : 0;
}

/* Whether event number events + n - 1 may come now; else *until says when n = 1 may. */
static __always_inline bool weir_ring_open(const struct weir_limit *limit, uint32_t place,
					   uint64_t events, uint64_t n, uint64_t now_ticks,
					   uint64_t *until)
{
	uint64_t quota = limit->sliding.quota;
	uint64_t *stamp;

	if (n > quota)
		return false;
	if (events + n <= quota)
		return true;
	stamp = weir_ring_at(limit, place, events + n - 1 - quota);
	if (!stamp)
		return true;
	*until = weir_sliding_until(&limit->sliding, weir_once(*stamp));
	return weir_sliding_open(&limit->sliding, weir_once(*stamp), now_ticks);
}

/*
 * One event: first the expiry, so that nobody takes the place away; then the slot of the ring,
 * which decides; then the head. A stamp is never older than the one before it.
 */
static __always_inline int weir_ring_push(const struct weir_words *at,
					  const struct weir_limit *limit, uint32_t place,
					  uint64_t events, uint64_t now_ticks)
{
	uint64_t *slot = weir_ring_at(limit, place, events);
	uint64_t *newest = weir_ring_at(limit, place, events - 1);
	uint64_t expiry = at->read, stamp, old, last;

	if (!slot || !newest)
		return WEIR_AGAIN;
	old = weir_once(*slot);
	last = weir_once(*newest);
	/* Whoever was held up for a whole turn of the ring has looked at other events' stamps. */
	if (weir_once(at->counts->passed) != events)
		return WEIR_AGAIN;
	/*
	 * The oldest stamp of the ring is out of the window, unless it is the newest already. Or
	 * it is of the key that had the place before, and came back in with a longer window.
	 */
	if (old >= last && !weir_sliding_open(&limit->sliding, old, now_ticks)) {
		weir_swap(&at->counts->passed, events, events + 1);
		return WEIR_AGAIN;
	}
	stamp = weir_sliding_stamp(now_ticks);
	if (stamp < last)
		stamp = last;
	if (expiry < stamp - 1 + limit->sliding.window &&
	    weir_swap(at->state, expiry, stamp - 1 + limit->sliding.window) != expiry)
		return WEIR_AGAIN;
	if (weir_swap(slot, old, stamp) != old)
		return WEIR_AGAIN;
	weir_swap(&at->counts->passed, events, events + 1);
	return WEIR_ADMITTED;
}

static __always_inline int weir_sliding_at(const struct weir_words *at,
					   const struct weir_limit *limit, uint64_t now_ticks,
					   const struct weir_charge *charge, uint32_t place,
					   uint64_t *seen)
{
	uint64_t events = weir_once(at->counts->passed), until = 0;

	/* An event can't be taken back out of the ring: it stays charged (see the docs). */
	if (charge->mode == WEIR_BACK)
		return WEIR_ADMITTED;
	if (!weir_ring_open(limit, place, events, charge->cost, now_ticks, &until)) {
		*seen = charge->cost == 1 ? until : 0;
		return WEIR_REFUSED;
	}
	if (charge->mode == WEIR_CHECK)
		return WEIR_ADMITTED;
	return weir_ring_push(at, limit, place, events, now_ticks);
}
