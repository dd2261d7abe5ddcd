/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Whether one limit lets a packet pass: front, then ledger. See include/weir/ledger.h for the
 * protocol between CPUs.
 */
#pragma once

#include "ban.bpf.h"
#include "count.bpf.h"
#include "lease.bpf.h"
#include "limiters.bpf.h"
#include "pending.bpf.h"

/* ---- newcomers ---- */

/* False where not even a fresh key lets the packet pass. */
static __always_inline bool weir_begin(struct weir_context *context, const struct weir_limit *limit)
{
	struct weir_beginning *begin = &context->charge.begin;
	uint64_t cost = context->charge.cost, now_ticks = context->now_ticks;

	switch (limit->kind) {
	case WEIR_KIND_BUCKET:
		begin->passed = weir_passed_word(limit->revision, context->packet.packets);
		return weir_bucket_step(0, &limit->bucket, now_ticks, cost, &begin->state);
	case WEIR_KIND_PERIOD:
		begin->state = weir_period_ending(&limit->period, now_ticks);
		begin->passed = weir_period_word(begin->state, cost);
		return cost <= limit->period.quota;
	case WEIR_KIND_GATE:
		weir_gate_begin(begin, now_ticks, context->charge.mode);
		return true;
	default:
		/* Further events of the same packet follow one by one. */
		begin->state = now_ticks + limit->sliding.window;
		begin->passed = 1;
		return cost <= limit->sliding.quota;
	}
}

/*
 * A place for a newcomer: enum weir_answer. WEIR_NEW: it is reserved, and context->charge
 * says where; in WEIR_CHECK mode WEIR_ADMITTED: there would be one.
 */
__noinline int weir_claim_reserve(struct weir_context *context)
{
	struct weir_set *first, *second;
	struct weir_charge *charge;
	struct weir_limit *limit;
	struct weir_place place;
	uint64_t *stamp;

	if (!context)
		return WEIR_REFUSED;
	charge = &context->charge;
	limit = weir_limit_at(context->generation, charge->limit);
	if (!weir_begin(context, limit))
		return WEIR_REFUSED;
	first = weir_set_at(limit, charge->first);
	second = weir_set_at(limit, charge->second);
	if (!first || !second)
		return WEIR_UNTRACKED;
	weir_ledger_choose(&place, first, second, context->now_ticks);
	if (!place.set)
		return WEIR_UNTRACKED;
	if (charge->mode == WEIR_CHECK)
		return WEIR_ADMITTED;
	if (!weir_ledger_reserve(&place, context->now_ticks))
		return WEIR_AGAIN;
	charge->which = place.which;
	charge->way = place.way;
	weir_record_key(context, limit);
	if (limit->kind != WEIR_KIND_SLIDING)
		return WEIR_NEW;
	stamp = weir_ring_at(limit, weir_place_number(charge), 0);
	if (stamp)
		*stamp = weir_sliding_stamp(context->now_ticks);
	return WEIR_NEW;
}

/* The reserved place becomes the key's: WEIR_NEW, or WEIR_AGAIN if somebody was faster. */
__noinline int weir_claim_publish(struct weir_context *context)
{
	struct weir_charge *charge;
	struct weir_limit *limit;
	struct weir_place place;
	struct weir_set *first, *second;

	if (!context)
		return WEIR_AGAIN;
	charge = &context->charge;
	limit = weir_limit_at(context->generation, charge->limit);
	first = weir_set_at(limit, charge->first);
	second = weir_set_at(limit, charge->second);
	if (!first || !second)
		return WEIR_AGAIN;
	place = (struct weir_place){ .way = charge->way & (WEIR_WAYS - 1) };
	place.which = charge->which & 1;
	place.set = place.which ? second : first;
	return weir_ledger_publish(first, second, &place, charge->tag, &charge->begin,
				   context->now_ticks) ?
		       WEIR_NEW :
		       WEIR_AGAIN;
}

/* ---- keys that have a place ---- */

/* Where the key is: NULL if nowhere. */
static __always_inline struct weir_set *weir_place_find(struct weir_charge *charge,
							struct weir_set *first,
							struct weir_set *second)
{
	uint32_t way = weir_set_find(first, charge->tag);

	charge->which = 0;
	charge->way = way;
	if (way < WEIR_WAYS)
		return first;
	way = weir_set_find(second, charge->tag);
	charge->which = 1;
	charge->way = way;
	return way < WEIR_WAYS ? second : 0;
}

static __always_inline int weir_limiter_at(const struct weir_words *at,
					   struct weir_context *context,
					   const struct weir_limit *limit, uint64_t *seen)
{
	const struct weir_charge *charge = &context->charge;

	switch (limit->kind) {
	case WEIR_KIND_BUCKET:
		if (weir_passed_revision(weir_once(at->counts->passed)) !=
		    (uint16_t)limit->revision)
			return weir_bucket_convert(at, limit, context->now_ticks);
		return weir_bucket_at(at, limit, context->now_ticks, charge, seen);
	case WEIR_KIND_PERIOD:
		return weir_period_at(at, limit, context->now_ticks, charge, seen);
	case WEIR_KIND_GATE:
		return weir_gate_at(at, limit, context->now_ticks, charge);
	default:
		return weir_sliding_at(at, limit, context->now_ticks, charge,
				       weir_place_number(charge), seen);
	}
}

/* One try at the key's place: enum weir_answer, WEIR_NOWHERE where it has none. */
static __always_inline int weir_take_now(struct weir_context *context,
					 const struct weir_limit *limit)
{
	struct weir_charge *charge = &context->charge;
	struct weir_set *first = weir_set_at(limit, charge->first);
	struct weir_set *second = weir_set_at(limit, charge->second);
	struct weir_front_slot *slot;
	struct weir_words at;
	struct weir_set *set;
	uint64_t seen = 0;
	uint32_t way;
	int answer;

	if (!first || !second)
		return WEIR_UNTRACKED;
	set = weir_place_find(charge, first, second);
	if (!set)
		return WEIR_NOWHERE;
	way = weir_way_index(charge->way);
	at.state = &set->state[way];
	at.counts = &set->counts[way];
	at.read = weir_once(*at.state);
	if (at.read == WEIR_STATE_BUSY || !weir_set_holds(set, way, charge->tag))
		return WEIR_AGAIN;
	answer = weir_limiter_at(&at, context, limit, &seen);
	if (answer == WEIR_ADMITTED && charge->mode == WEIR_TAKE &&
	    limit->kind == WEIR_KIND_BUCKET)
		__sync_fetch_and_add(&at.counts->passed, context->packet.packets);
	if (answer != WEIR_REFUSED)
		return answer;
	__sync_fetch_and_add(&at.counts->refused, context->packet.packets);
	slot = seen ? weir_front_at(context, charge->tag) : 0;
	if (slot)
		weir_front_learn(slot, charge->tag, seen,
				 weir_front_place(weir_place_number(charge), limit->own_sets,
						  limit->slot),
				 limit->revision);
	return WEIR_REFUSED;
}

/* The same out of line, for whoever has lost the first try. */
__noinline int weir_take_once(struct weir_context *context)
{
	if (!context)
		return WEIR_REFUSED;
	return weir_take_now(context, weir_limit_at(context->generation, context->charge.limit));
}

/* How long a period or a sliding window is: both begin with it. */
static __always_inline uint64_t weir_limit_span(const struct weir_limit *limit)
{
	_Static_assert(!offsetof(struct weir_period_conf, period) &&
			       !offsetof(struct weir_sliding_conf, window), "the first words");
	return limit->words[0];
}

/* WEIR_REFUSED if the front is sure of it, else WEIR_AGAIN: ask the ledger. */
static __always_inline int weir_front_answer(struct weir_context *context,
					     const struct weir_limit *limit)
{
	const struct weir_charge *charge = &context->charge;
	struct weir_front_slot *slot = weir_front_at(context, charge->tag);
	bool refuses;

	if (!slot || !weir_front_holds(slot, charge->tag, limit->revision))
		return WEIR_AGAIN;
	refuses = limit->kind == WEIR_KIND_BUCKET ?
			  weir_front_refuses(slot->seen, context->now_ticks,
					     limit->bucket.burst_ticks, charge->cost) :
			  weir_front_refuses_until(slot->seen, context->now_ticks,
						   weir_limit_span(limit));
	if (!refuses)
		return WEIR_AGAIN;
	slot->refused += context->packet.packets;
	return WEIR_REFUSED;
}

/*
 * After a lost race: the ledger's answer, never WEIR_NOWHERE; WEIR_AGAIN where the races were
 * lost to the end.
 */
__noinline int weir_take_again(struct weir_context *context, int answer)
{
	if (!context)
		return WEIR_REFUSED;
	_Pragma("clang loop unroll(disable)")
	for (int i = 1; i < WEIR_TRIES && answer >= WEIR_AGAIN; i++) {
		if (answer == WEIR_AGAIN)
			answer = weir_take_once(context);
		if (answer == WEIR_NOWHERE && context->charge.mode == WEIR_BACK)
			return WEIR_ADMITTED;
		if (answer == WEIR_NOWHERE)
			answer = weir_claim_reserve(context);
		else
			continue;
		if (answer == WEIR_NEW)
			answer = weir_claim_publish(context);
	}
	return answer >= WEIR_AGAIN ? WEIR_AGAIN : answer;
}

/*
 * The further events of a packet of several at a sliding limit, one a turn. Where other CPUs
 * were faster the packet is refused after all, and what it took stays charged.
 */
static int weir_take_rest(uint32_t turn __attribute__((unused)), struct weir_context **context)
{
	struct weir_charge *charge = &(*context)->charge;
	int answer;

	if (!charge->begin.passed)
		return 1;
	answer = weir_take_once(*context);
	if (answer == WEIR_ADMITTED)
		charge->begin.passed--;
	return answer != WEIR_ADMITTED && answer != WEIR_AGAIN;
}

static __always_inline int weir_take_events(struct weir_context *context, int answer)
{
	struct weir_charge *charge = &context->charge;
	uint64_t events = charge->cost;

	charge->cost = 1;
	charge->begin.passed = events - 1;
	bpf_loop(events + WEIR_TRIES, weir_take_rest, &context, 0);
	charge->cost = events;
	return charge->begin.passed ? WEIR_AGAIN : answer;
}

/* What is left of a lease that is over goes back to the ledger. */
static __always_inline void weir_lease_return(struct weir_context *context,
					      struct weir_lease *lease)
{
	struct weir_charge *charge = &context->charge;
	uint64_t cost = charge->cost;

	charge->cost = lease->left_ticks;
	charge->mode = WEIR_BACK;
	lease->left_ticks = 0;
	weir_take_again(context, WEIR_AGAIN);
	charge->cost = cost;
	charge->mode = WEIR_TAKE;
}

/* This CPU has lost a race for a key that all share: a batch for the packets after this one. */
static __always_inline int weir_lease_take(struct weir_context *context,
					   const struct weir_limit *limit,
					   struct weir_lease *lease)
{
	struct weir_charge *charge = &context->charge;
	uint64_t cost = charge->cost, batch = weir_lease_batch(limit);
	uint64_t left = lease->revision == limit->revision ? lease->left_ticks : 0;
	int answer;

	/* What is left does not pay for this packet, so it is less than the batch. */
	if (charge->mode != WEIR_TAKE || batch < cost)
		return WEIR_AGAIN;
	charge->cost = cost + batch - left;
	answer = weir_take_once(context);
	charge->cost = cost;
	if (answer != WEIR_ADMITTED)
		return WEIR_AGAIN;
	lease->left_ticks = batch;
	lease->expires_ticks = context->now_ticks + (WEIR_LEASE_NS << WEIR_TICK_SHIFT);
	lease->revision = limit->revision;
	return WEIR_ADMITTED;
}

/*
 * A connection's first packet at a gate: enum weir_answer. One that comes again while it is
 * pending has its place, and nothing to give back: that was charged at another instant.
 */
__noinline int weir_gate_answer(struct weir_context *context)
{
	uint64_t now_ticks, since, connection;
	int answer;

	if (!context)
		return WEIR_REFUSED;
	now_ticks = context->now_ticks; /* on the stack: see weir_ban_strike */
	connection = weir_pending_key(context);
	since = weir_pending_since(connection, weir_pending_slice(now_ticks));
	if (context->charge.mode == WEIR_BACK) {
		if (since != now_ticks)
			return WEIR_ADMITTED;
		bpf_map_delete_elem(&weir_pending, &connection);
	} else if (since) {
		return WEIR_ADMITTED;
	}
	answer = weir_take_again(context, WEIR_AGAIN);
	if (context->charge.mode == WEIR_TAKE && answer <= WEIR_NEW)
		bpf_map_update_elem(&weir_pending, &connection, &now_ticks, BPF_ANY);
	return answer;
}

/*
 * Opens the charge, and brings the memory that will be asked on its way, all at once: the
 * misses overlap with each other and with the clock, which is read after.
 */
static __always_inline void weir_charge_prepare(struct weir_context *context,
						const struct weir_limit *limit, uint32_t index,
						uint32_t mode)
{
	struct weir_charge *charge = &context->charge;
	struct weir_front_slot *slot;
	struct weir_set *set;

	if (limit->flags & (WEIR_LIMIT_BLOCK | WEIR_LIMIT_UNLIMITED))
		return;
	weir_charge_open(context, limit, index, mode);
	weir_charge_aim(charge, limit);
	slot = weir_front_at(context, charge->tag);
	if (slot)
		(void)weir_once(slot->tag);
	/* Of one key for all the line is here, or another CPU's, whom a lease leaves alone. */
	if (limit->own_sets || !limit->key)
		return;
	set = bpf_map_lookup_elem(&weir_ledger, &charge->first);
	if (set)
		weir_set_touch(set);
	set = bpf_map_lookup_elem(&weir_ledger, &charge->second);
	if (set)
		weir_set_touch(set);
}

/*
 * A refusal by a ban is the key's all the same, for `why` and `top`: counted where one by the
 * limiter is. Of a key that has lost its place meanwhile by the limit's totals alone.
 */
__noinline int weir_ban_count(struct weir_context *context)
{
	struct weir_charge *charge;
	struct weir_front_slot *slot;
	struct weir_set *first, *second, *set;
	struct weir_limit *limit;

	if (!context)
		return 0;
	charge = &context->charge;
	slot = weir_front_at(context, charge->tag);
	if (slot && slot->tag == charge->tag) {
		slot->refused += context->packet.packets;
		return 0;
	}
	limit = weir_limit_at(context->generation, charge->limit);
	first = weir_set_at(limit, charge->first);
	second = weir_set_at(limit, charge->second);
	set = first && second ? weir_place_find(charge, first, second) : 0;
	if (set)
		__sync_fetch_and_add(&set->counts[weir_way_index(charge->way)].refused,
				     context->packet.packets);
	return 0;
}

/*
 * What is cheap to know about a prepared packet at one limit: the front's answer, and of a
 * limit that has any its bans. WEIR_AGAIN: weir_ledger_answer must be asked.
 */
static __always_inline int weir_quick_answer(struct weir_context *context,
					     const struct weir_limit *limit)
{
	if (limit->flags & (WEIR_LIMIT_BLOCK | WEIR_LIMIT_UNLIMITED))
		return limit->flags & WEIR_LIMIT_BLOCK ? WEIR_REFUSED : WEIR_ADMITTED;
	if (context->charge.mode == WEIR_BACK)
		return WEIR_AGAIN;
	if (limit->ban_after && weir_ban_holds(context)) {
		weir_ban_count(context);
		return WEIR_BANNED;
	}
	return weir_front_answer(context, limit);
}

/* What the ledger says about the charge that was opened: enum weir_answer. */
static __always_inline int weir_ledger_answer(struct weir_cpu *cpu, struct weir_context *context,
					      const struct weir_limit *limit)
{
	bool shared = !limit->key && limit->kind == WEIR_KIND_BUCKET;
	struct weir_charge *charge = &context->charge;
	struct weir_lease *lease = weir_lease_at(cpu, limit);
	int answer;

	if (limit->kind == WEIR_KIND_GATE)
		return weir_gate_answer(context);
	if (shared && charge->mode != WEIR_BACK) {
		if (weir_lease_covers(lease, context, limit))
			return WEIR_ADMITTED;
		if (charge->mode == WEIR_TAKE &&
		    weir_lease_is_over(lease, limit, context->now_ticks))
			weir_lease_return(context, lease);
	}
	answer = weir_take_once(context);
	if (answer == WEIR_AGAIN && shared)
		answer = weir_lease_take(context, limit, lease);
	if (answer >= WEIR_AGAIN)
		answer = weir_take_again(context, answer);
	if (limit->kind == WEIR_KIND_SLIDING && charge->mode == WEIR_TAKE && charge->cost > 1 &&
	    answer <= WEIR_NEW)
		answer = weir_take_events(context, answer);
	return answer;
}
