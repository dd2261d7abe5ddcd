/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ledger: where the state of every key lives, shared by all CPUs and exact.
 *
 * A table of sets of WEIR_WAYS places. A key (limit, family, masked address, ...) is a keyed
 * 64-bit hash, the tag; it may live in one of two sets. A place is free for another key when
 * its state is *neutral*: not after now, and so indistinguishable from a fresh one. Nothing
 * else is ever forgotten. Every limiter keeps its state so that the first word says when:
 * a bucket's TAT, a period's end, the instant a sliding window's last event falls out, and
 * WEIR_GATE's count with the top bit set while somebody is inside.
 *
 * Newcomers go to their first set until WEIR_FIRST_FULL places are taken, then to the emptier of
 * the two. A second set costs a look-up that starts when the first one's miss is over, so few keys
 * should be there. Simulated with keys that can't be forgotten, share of newcomers without room and
 * share of the keys that are in their second set, by how full the ledger is:
 *
 *	from	50%		70%		80%		90%
 *	4	0	15%	0.0003% 21%	0.04%	23%	0.8%	24%
 *	5	0	9.1%	0.0005% 16%	0.06%	19%	1.0%	20%
 *	6	0	4.7%	0.007%	11%	0.16%	14%	1.4%	17%
 *
 * Concurrency, for any number of CPUs, without a lock:
 * - Taking: compare-and-swap on the state word.
 * - Claiming: the state goes from a neutral value to WEIR_STATE_BUSY by compare-and-swap, which
 *   is the instant at which the old key is forgotten; its next packet is a newcomer. Then the
 *   tag is written as provisional (bit 0 clear), both sets are searched again for the same
 *   key, and compare-and-swap turns it to confirmed (bit 0 set). Seen twice, the confirmed
 *   place stays; of two provisional ones the lower stays: the higher one steps back when it
 *   sees the lower, the lower one strikes out the higher. Whoever confirms second has claimed,
 *   and so searched, after the first claimed, so it sees the first: never two places.
 * All memory is zero at the start. Sets are 256 bytes, so none crosses a page.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define WEIR_WAYS 8
#define WEIR_NO_WAY WEIR_WAYS
#define WEIR_FIRST_FULL 5
/* Being claimed. After any instant for 18 years, so nobody takes it for neutral. */
#define WEIR_STATE_BUSY 0x7fffffffffffffffULL
#define WEIR_TAG_CONFIRMED 1ULL

#ifdef __clang__
#define WEIR_UNROLL _Pragma("unroll")
#define WEIR_ROLLED _Pragma("clang loop unroll(disable)")
#else
#define WEIR_UNROLL
#define WEIR_ROLLED
#endif

/* Every access to a word that other CPUs write. A test puts its own here, to come in between. */
#ifndef weir_once
#define weir_once(word) (*(volatile __typeof__(word) *)&(word))
#define weir_swap(word, old, new) __sync_val_compare_and_swap(word, old, new)
#endif

struct weir_counts {
	uint64_t passed;
	uint64_t refused;
};

struct weir_set {
	uint64_t tag[WEIR_WAYS];   /* 0: never used */
	uint64_t state[WEIR_WAYS]; /* the neutral instant, in ticks */
	struct weir_counts counts[WEIR_WAYS];
};
_Static_assert(sizeof(struct weir_set) == 256, "tags, states and two lines of counts");

/* Where a key is or would be. set is NULL where it is nowhere. */
struct weir_place {
	struct weir_set *set;
	uint32_t way;
	uint32_t which; /* 0: the first set, 1: the second */
};

/* What a newcomer's place begins with: charged with its first packet, so not neutral. */
struct weir_beginning {
	uint64_t state;
	uint64_t passed; /* see place.h */
};

/*
 * 1 where a == b, without a branch: with one for each of 16 places, the verifier would walk
 * 2^16 paths. Compilers turn the arithmetic back into branches unless they can't see it.
 */
static inline uint64_t weir_equal(uint64_t a, uint64_t b)
{
	uint64_t differ = a ^ b, negative = 0 - differ;

	__asm__ volatile("" : "+r"(negative));
	return (differ | negative) >> 63 ^ 1;
}

/*
 * 1 where the state is not after now, without a branch. Both are far less than half of the
 * 64 bits apart, so the difference's sign tells; a gate's top bit makes it positive as long as
 * fewer are inside than ticks have passed.
 */
static inline uint64_t weir_neutral(uint64_t state, uint64_t now_ticks)
{
	uint64_t before = (state - now_ticks - 1) >> 63;

	__asm__ volatile("" : "+r"(before));
	return before;
}

/*
 * A way that was found, as an index. The compiler would leave the mask out where it has compared
 * the way before, and verifiers up to 6.1 don't see that the compared copy is the same.
 */
static inline uint32_t weir_way_index(uint32_t way)
{
	__asm__ volatile("" : "+r"(way));
	return way & (WEIR_WAYS - 1);
}

/* Brings all lines of a set on their way together, so that their misses overlap. */
static inline void weir_set_touch(const struct weir_set *set)
{
	(void)weir_once(set->tag[0]);
	(void)weir_once(set->state[0]);
	(void)weir_once(set->counts[0].passed);
	(void)weir_once(set->counts[WEIR_WAYS / 2].passed);
}

/*
 * The way that holds the tag, or WEIR_NO_WAY. A tag is in a set once; but the place may go to
 * another key at any time, and a key that moves meanwhile may be seen twice: look at the tag
 * again (weir_set_holds) after reading the state.
 */
static inline uint32_t weir_set_find(const struct weir_set *set, uint64_t tag)
{
	uint64_t way = 0, found = 0;

	WEIR_UNROLL
	for (uint32_t i = 0; i < WEIR_WAYS; i++) {
		uint64_t match = weir_equal(weir_once(set->tag[i]), tag);

		way |= (0 - match) & i;
		found |= match;
	}
	return found ? (uint32_t)way : WEIR_NO_WAY;
}

/*
 * Whether a state read before this was the tag's. A claim makes the state busy before it
 * touches the tag, so with the tag in place the state was its own or busy.
 */
static inline bool weir_set_holds(const struct weir_set *set, uint32_t way, uint64_t tag)
{
	return weir_once(set->tag[way & (WEIR_WAYS - 1)]) == tag;
}

/*
 * The way whose state is the earliest, if that is neutral (one that was never used is; else the
 * key that has been neutral longest gives way), or WEIR_NO_WAY. In *taken how many are not.
 */
static inline uint32_t weir_set_room(const struct weir_set *set, uint64_t now_ticks,
				     uint32_t *taken)
{
	uint64_t way = 0, oldest = 0, free = 0;

	WEIR_ROLLED
	for (uint32_t i = 0; i < WEIR_WAYS; i++) {
		uint64_t state = weir_once(set->state[i]), neutral = weir_neutral(state, now_ticks);
		/* Above 0 for neutral ones alone: states that aren't can't be compared to them. */
		uint64_t age = (now_ticks - state + 1) & (0 - neutral);
		uint64_t mask = 0 - weir_neutral(oldest, age - 1);

		way = (way & ~mask) | (i & mask);
		oldest = (oldest & ~mask) | (age & mask);
		free += neutral;
	}
	*taken = WEIR_WAYS - (uint32_t)free;
	return free ? (uint32_t)way : WEIR_NO_WAY;
}

/*
 * Where a newcomer goes. place->set is NULL when both sets are full of keys that can't be
 * forgotten.
 */
static inline void weir_ledger_choose(struct weir_place *place, struct weir_set *first,
				      struct weir_set *second, uint64_t now_ticks)
{
	uint32_t taken, other_taken;
	uint32_t way = weir_set_room(first, now_ticks, &taken);
	uint32_t other;

	*place = (struct weir_place){ .set = first, .way = way };
	if (taken >= WEIR_FIRST_FULL) {
		other = weir_set_room(second, now_ticks, &other_taken);
		if (other_taken < taken)
			*place = (struct weir_place){ .set = second, .way = other, .which = 1 };
	}
	if (place->way >= WEIR_NO_WAY)
		place->set = 0;
}

/* Makes a chosen place ours: false if somebody was faster. Nobody else touches it after. */
static inline bool weir_ledger_reserve(const struct weir_place *place, uint64_t now_ticks)
{
	uint64_t *state = &place->set->state[weir_way_index(place->way)];
	uint64_t old = weir_once(*state);

	return weir_neutral(old, now_ticks) && weir_swap(state, old, WEIR_STATE_BUSY) == old;
}

/*
 * Gives a reserved place back, empty. Its state becomes just after now, later than any it had
 * while neutral: a taker that still remembers one of those fails its compare-and-swap.
 */
static inline void weir_ledger_release(const struct weir_place *place, uint64_t now_ticks)
{
	uint32_t way = place->way & (WEIR_WAYS - 1);
	uint64_t *tag = &place->set->tag[way];

	/* A rival may strike out our tag, which makes it 0 too; the swap is for its barrier. */
	weir_swap(tag, weir_once(*tag), 0);
	weir_once(place->set->state[way]) = now_ticks + 1;
}

/* What else holds our tag: places other than ours. */
struct weir_seen {
	uint64_t confirmed;
	uint64_t rivals; /* provisional ones */
	uint64_t index;	 /* of the only rival: which * WEIR_WAYS + way */
};

/*
 * Off the fast path: rolled up, since unrolled it wants more stack than BPF has. Each word is
 * read once: looking for confirmed and for provisional tags one after the other would miss a
 * rival that confirms in between.
 */
static inline void weir_set_look(const struct weir_set *set, uint64_t tag, uint32_t base,
				 uint32_t mine, struct weir_seen *seen)
{
	WEIR_ROLLED
	for (uint32_t i = 0; i < WEIR_WAYS; i++) {
		uint64_t word = weir_once(set->tag[i]);
		uint64_t match = weir_equal(word | WEIR_TAG_CONFIRMED, tag) &
				 (weir_equal(base + i, mine) ^ 1);
		uint64_t rival = match & (word ^ WEIR_TAG_CONFIRMED);

		seen->confirmed |= match & word;
		seen->rivals += rival;
		seen->index |= (0 - rival) & (base + i);
	}
}

/* Whether our provisional place may be confirmed, striking out a later one. */
static inline bool weir_ledger_alone(struct weir_set *first, struct weir_set *second,
				     uint32_t mine, uint64_t tag)
{
	uint64_t provisional = tag & ~WEIR_TAG_CONFIRMED;
	struct weir_seen seen = { 0 };
	struct weir_set *set;

	weir_set_look(first, tag, 0, mine, &seen);
	weir_set_look(second, tag, WEIR_WAYS, mine, &seen);
	if (seen.confirmed)
		return false;
	if (!seen.rivals)
		return true;
	/* With several rivals their indexes are merged: step back, one of them goes on. */
	if (seen.rivals > 1 || seen.index < mine)
		return false;
	set = seen.index < WEIR_WAYS ? first : second;
	return weir_swap(&set->tag[seen.index & (WEIR_WAYS - 1)], provisional, 0) != tag;
}

/*
 * Puts a key as it begins into a reserved place. False if the key is found
 * elsewhere or a rival was first: the place is then given back and nothing has happened.
 */
static inline __attribute__((always_inline)) bool
weir_ledger_publish(struct weir_set *first, struct weir_set *second,
		    const struct weir_place *place, uint64_t tag,
		    const struct weir_beginning *begin, uint64_t now_ticks)
{
	uint32_t way = place->way & (WEIR_WAYS - 1);
	uint64_t provisional = tag & ~WEIR_TAG_CONFIRMED;
	uint64_t *slot = &place->set->tag[way];

	/* Nobody else writes the tag of a busy place; the swap is for its full barrier. */
	weir_swap(slot, weir_once(*slot), provisional);
	if (weir_ledger_alone(first, second, place->which * WEIR_WAYS + way, tag)) {
		place->set->counts[way] = (struct weir_counts){ .passed = begin->passed };
		if (weir_swap(slot, provisional, tag) == provisional) {
			/* Last: a place that is not busy may be neutral, and so somebody else's. */
			weir_once(place->set->state[way]) = begin->state;
			return true;
		}
	}
	weir_ledger_release(place, now_ticks);
	return false;
}
