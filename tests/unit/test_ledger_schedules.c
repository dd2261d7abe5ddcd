// SPDX-License-Identifier: GPL-2.0
/*
 * The ledger's protocol under every kind of schedule: actors share a pair of sets, and may lose
 * the CPU to each other before any access to a shared word. What threads hit once in a million
 * is hit here by the thousand, and the seed repeats it.
 */
#include <stdint.h>

static void step(void);

#define weir_once(word) (*(volatile __typeof__(word) *)(step(), &(word)))
#define weir_swap(word, old, new) (step(), __sync_val_compare_and_swap(word, old, new))

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "harness.h"
#include "random.h"
#include "weir/bucket.h"
#include "weir/ledger.h"

#define ACTORS 3
#define OPS 4
#define KEYS 6
#define STACK (64 * 1024)
#define TRIES_MAX 2000

enum answer { ADMITTED, NEW, REFUSED, UNTRACKED, AGAIN };

/* Even keys cost a day, so they are never forgotten; odd ones a tick, so they are at once. */
static const struct weir_bucket_conf day = { .burst_ticks = 1ULL << 50,
					     .cost_mantissa = 1U << 31,
					     .cost_left = 19 };
static const struct weir_bucket_conf tick = { .burst_ticks = 1, .cost_mantissa = 1 };

struct actor {
	ucontext_t context;
	uint32_t keys[OPS];
	bool done;
};

static struct world {
	struct weir_set sets[2];
	uint64_t now, seed;
	struct actor actors[ACTORS];
	ucontext_t scheduler;
	int running; /* the actor, or -1 */
	uint32_t admitted[KEYS];
	uint64_t state[KEYS]; /* what the last admission of a key stored */
	uint64_t stuck;
} world;

static char stacks[ACTORS][STACK];

static void step(void)
{
	if (world.running >= 0)
		swapcontext(&world.actors[world.running].context, &world.scheduler);
}

static uint64_t tag_of(uint32_t key)
{
	return (uint64_t)(key + 1) << 8 | 3;
}

static const struct weir_bucket_conf *conf_of(uint32_t key)
{
	return key & 1 ? &tick : &day;
}

/* ---- what an actor does: one packet of a key, as bpf/admit.bpf.h handles it ---- */

static enum answer claim(uint32_t key, uint64_t now, uint64_t *next)
{
	struct weir_beginning begin = { .passed = 1 };
	struct weir_place place;

	weir_bucket_step(0, conf_of(key), now, weir_bucket_cost(conf_of(key), 1), &begin.state);
	*next = begin.state;
	weir_ledger_choose(&place, &world.sets[0], &world.sets[1], now);
	if (!place.set)
		return UNTRACKED;
	if (!weir_ledger_reserve(&place, now))
		return AGAIN;
	return weir_ledger_publish(&world.sets[0], &world.sets[1], &place, tag_of(key), &begin, now)
		       ? NEW
		       : AGAIN;
}

static enum answer take_once(uint32_t key, uint64_t now, uint64_t *next)
{
	uint64_t cost = weir_bucket_cost(conf_of(key), 1), tat;
	struct weir_set *set = &world.sets[0];
	uint32_t way = weir_set_find(set, tag_of(key));

	if (way == WEIR_NO_WAY) {
		set = &world.sets[1];
		way = weir_set_find(set, tag_of(key));
	}
	if (way == WEIR_NO_WAY)
		return claim(key, now, next);
	tat = weir_once(set->state[way]);
	if (tat == WEIR_STATE_BUSY || !weir_set_holds(set, way, tag_of(key)))
		return AGAIN;
	if (!weir_bucket_step(tat, conf_of(key), now, cost, next))
		return REFUSED;
	return weir_swap(&set->state[way], tat, *next) == tat ? ADMITTED : AGAIN;
}

static void act(int index)
{
	struct actor *actor = &world.actors[index];

	for (int op = 0; op < OPS; op++) {
		uint64_t now = world.now += random_below(&world.seed, 3) == 0, next;
		enum answer answer = AGAIN;
		int tries = 0;

		while (answer == AGAIN && tries++ < TRIES_MAX)
			answer = take_once(actor->keys[op], now, &next);
		world.stuck += answer == AGAIN;
		if (answer > NEW)
			continue;
		world.admitted[actor->keys[op]]++;
		world.state[actor->keys[op]] = next;
	}
	actor->done = true;
}

/* ---- the world ---- */

/* Few places are free; some of those hold a key of ours that may be forgotten. */
static void world_make(uint64_t seed)
{
	uint32_t free = 1 + (uint32_t)random_below(&seed, 4);

	memset(&world, 0, sizeof(world));
	world.now = 1000;
	world.running = -1;
	for (uint32_t place = 0; place < 2 * WEIR_WAYS; place++) {
		struct weir_set *set = &world.sets[place / WEIR_WAYS];

		set->tag[place % WEIR_WAYS] = tag_of(1000 + place);
		set->state[place % WEIR_WAYS] = 1ULL << 60;
	}
	for (uint32_t key = 0; key < free; key++) {
		uint32_t place = (uint32_t)random_below(&seed, 2 * WEIR_WAYS);
		struct weir_set *set = &world.sets[place / WEIR_WAYS];

		set->tag[place % WEIR_WAYS] = random_below(&seed, 2) ? tag_of(key) : 0;
		set->state[place % WEIR_WAYS] = 999 + random_below(&seed, 2);
	}
	for (int i = 0; i < ACTORS; i++)
		for (int op = 0; op < OPS; op++)
			world.actors[i].keys[op] = (uint32_t)random_below(&seed, KEYS);
	world.seed = seed;
}

static void actor_make(int index)
{
	ucontext_t *context = &world.actors[index].context;

	getcontext(context);
	context->uc_stack.ss_sp = stacks[index];
	context->uc_stack.ss_size = STACK;
	context->uc_link = &world.scheduler;
	makecontext(context, (void (*)(void))act, 1, index);
}

/* Runs all actors to their end; each schedule has its own taste for keeping to one of them. */
static void world_run(void)
{
	uint64_t stay = 1 + random_below(&world.seed, 30);
	int live = ACTORS, current = 0;

	for (int i = 0; i < ACTORS; i++)
		actor_make(i);
	while (live) {
		if (!random_below(&world.seed, stay))
			current = (int)random_below(&world.seed, ACTORS);
		while (world.actors[current].done)
			current = (current + 1) % ACTORS;
		world.running = current;
		swapcontext(&world.scheduler, &world.actors[current].context);
		world.running = -1;
		live -= world.actors[current].done;
	}
}

/* What is wrong with a key after all have ended; NULL if nothing. */
static const char *fault_of(uint32_t key)
{
	uint32_t places = 0;
	uint64_t state = 0;

	for (uint32_t place = 0; place < 2 * WEIR_WAYS; place++) {
		const struct weir_set *set = &world.sets[place / WEIR_WAYS];

		if ((set->tag[place % WEIR_WAYS] | WEIR_TAG_CONFIRMED) != tag_of(key))
			continue;
		if (!(set->tag[place % WEIR_WAYS] & WEIR_TAG_CONFIRMED))
			return "a provisional tag was left";
		state = set->state[place % WEIR_WAYS];
		places++;
	}
	if (places > 1)
		return "two places";
	if (key & 1)
		return NULL;
	if (world.admitted[key] > 1)
		return "admitted beyond its burst";
	if (world.admitted[key] && !places)
		return "forgotten while over its limit";
	if (world.admitted[key] && state != world.state[key])
		return "another key's packet changed its state";
	return NULL;
}

static const char *fault(void)
{
	for (uint32_t place = 0; place < 2 * WEIR_WAYS; place++)
		if (world.sets[place / WEIR_WAYS].state[place % WEIR_WAYS] == WEIR_STATE_BUSY)
			return "a place was left busy";
	for (uint32_t key = 0; key < KEYS; key++)
		if (fault_of(key))
			return fault_of(key);
	return world.stuck ? "somebody got no answer" : NULL;
}

static void holds_under_every_schedule(void)
{
	uint64_t admitted = 0, faults = 0;

	for (uint64_t seed = 1; seed <= 6000; seed++) {
		world_make(seed * 0x9e3779b97f4a7c15ULL);
		world_run();
		for (uint32_t key = 0; key < KEYS; key++)
			admitted += world.admitted[key];
		if (!fault())
			continue;
		if (!faults++)
			printf("  schedule %" PRIu64 ": %s\n", seed, fault());
	}
	printf("  6000 schedules of %d actors: %" PRIu64 " faults\n", ACTORS, faults);
	CU_ASSERT_EQUAL(faults, 0);
	CU_ASSERT_TRUE(admitted > 6000);
}

WEIR_TESTS("ledger schedules", TEST(holds_under_every_schedule))
