// SPDX-License-Identifier: GPL-2.0
/*
 * The ledger and the front, driven as bpf/admit.bpf.h drives them, against a map that never
 * forgets; and from many threads at once.
 */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "random.h"
#include "weir/bucket.h"
#include "weir/front.h"
#include "weir/key.h"
#include "weir/ledger.h"

enum answer { ADMITTED, NEW, REFUSED, UNTRACKED, AGAIN };

struct table {
	struct weir_set *sets;
	uint32_t count;
	struct weir_seeds seeds;
};

static void table_open(struct table *table, uint32_t sets, uint64_t seed)
{
	table->sets = aligned_alloc(256, sets * sizeof(*table->sets));
	memset(table->sets, 0, sets * sizeof(*table->sets));
	table->count = sets;
	for (int i = 0; i < WEIR_KEY_WORDS; i++)
		table->seeds.word[i] = random_next(&seed) | 1;
	table->seeds.second = random_next(&seed) | 1;
}

static uint64_t tag_of(const struct table *table, uint32_t key)
{
	return weir_key_tag(&(struct weir_key){ .source = { key }, .kind = 4 }, 9, &table->seeds);
}

static void sets_of(const struct table *table, uint64_t tag, struct weir_set *sets[2])
{
	sets[0] = &table->sets[weir_tag_first(tag, table->count)];
	sets[1] = &table->sets[weir_tag_second(tag, table->count, &table->seeds)];
}

static enum answer claim(struct weir_set *sets[2], uint64_t tag,
			 const struct weir_bucket_conf *conf, uint64_t now, uint64_t cost)
{
	struct weir_beginning begin = { .passed = 1 };
	struct weir_place place;

	if (!weir_bucket_step(0, conf, now, cost, &begin.state))
		return REFUSED;
	weir_ledger_choose(&place, sets[0], sets[1], now);
	if (!place.set)
		return UNTRACKED;
	if (!weir_ledger_reserve(&place, now))
		return AGAIN;
	return weir_ledger_publish(sets[0], sets[1], &place, tag, &begin, now) ? NEW : AGAIN;
}

/* One try. *seen: the TAT at a refusal. */
static enum answer take_once(struct table *table, uint64_t tag, const struct weir_bucket_conf *conf,
			     uint64_t now, uint64_t cost, uint64_t *seen)
{
	struct weir_set *sets[2], *set = NULL;
	uint32_t way = WEIR_NO_WAY;
	uint64_t tat, next;

	sets_of(table, tag, sets);
	for (int i = 0; i < 2 && way == WEIR_NO_WAY; i++) {
		set = sets[i];
		way = weir_set_find(set, tag);
	}
	if (way == WEIR_NO_WAY)
		return claim(sets, tag, conf, now, cost);
	tat = weir_once(set->state[way]);
	if (tat == WEIR_STATE_BUSY || !weir_set_holds(set, way, tag))
		return AGAIN;
	if (weir_bucket_step(tat, conf, now, cost, &next)) {
		if (weir_swap(&set->state[way], tat, next) != tat)
			return AGAIN;
		__sync_fetch_and_add(&set->counts[way].passed, 1);
		return ADMITTED;
	}
	*seen = weir_bucket_clamp(tat, conf, now);
	if (*seen != tat)
		weir_swap(&set->state[way], tat, *seen);
	__sync_fetch_and_add(&set->counts[way].refused, 1);
	return REFUSED;
}

/* As long as others are faster: a test has the time, and then every verdict is exact. */
static enum answer take(struct table *table, uint64_t tag, const struct weir_bucket_conf *conf,
			uint64_t now, uint64_t cost, uint64_t *seen)
{
	enum answer answer;

	while ((answer = take_once(table, tag, conf, now, cost, seen)) == AGAIN)
		sched_yield();
	return answer;
}

/* ---- what must hold of a table at rest ---- */

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The number of keys, or -1: a place left busy or provisional, a key in two places. */
static long table_check(const struct table *table)
{
	uint64_t *tags = malloc(table->count * WEIR_WAYS * sizeof(*tags));
	bool wrong = false;
	long count = 0;

	for (uint32_t i = 0; i < table->count * WEIR_WAYS; i++) {
		const struct weir_set *set = &table->sets[i / WEIR_WAYS];

		wrong |= set->state[i % WEIR_WAYS] == WEIR_STATE_BUSY;
		if (set->tag[i % WEIR_WAYS])
			tags[count++] = set->tag[i % WEIR_WAYS];
	}
	qsort(tags, (size_t)count, sizeof(*tags), by_value);
	for (long i = 0; i < count; i++)
		wrong |= !(tags[i] & WEIR_TAG_CONFIRMED) || (i && tags[i] == tags[i - 1]);
	free(tags);
	return wrong ? -1 : count;
}

static bool is_full(struct weir_set *sets[2], uint64_t now)
{
	uint32_t taken[2];

	weir_set_room(sets[0], now, &taken[0]);
	weir_set_room(sets[1], now, &taken[1]);
	return taken[0] == WEIR_WAYS && taken[1] == WEIR_WAYS;
}

/* ---- against a map that never forgets ---- */

#define MODEL_KEYS 400

struct model {
	uint64_t tat[MODEL_KEYS];
	uint64_t sent[MODEL_KEYS], admitted[MODEL_KEYS];
};

struct trace {
	struct table table;
	struct model model;
	struct weir_front_slot front[64];
	struct weir_bucket_conf conf;
	uint32_t revision;
	uint64_t now, seed, wrong, untracked, by_front, verdicts[2];
};

/* As weir_admit: front, then ledger. */
static enum answer trace_take(struct trace *t, uint64_t tag, uint64_t cost)
{
	struct weir_front_slot *slot = &t->front[weir_tag_slot(tag, 64)];
	enum answer answer;
	uint64_t seen = 0;

	if (weir_front_holds(slot, tag, t->revision) &&
	    weir_front_refuses(slot->seen, t->now, t->conf.burst_ticks, cost)) {
		t->by_front++;
		return REFUSED;
	}
	answer = take(&t->table, tag, &t->conf, t->now, cost, &seen);
	if (answer == REFUSED && seen)
		*slot = (struct weir_front_slot){ .tag = tag,
						  .seen = seen,
						  .revision = t->revision };
	return answer;
}

static void trace_packet(struct trace *t, uint32_t key)
{
	uint64_t tag = tag_of(&t->table, key), next, *tat = &t->model.tat[key];
	uint64_t cost = weir_bucket_cost(&t->conf, 1 + random_below(&t->seed, 3));
	bool expected = weir_bucket_step(*tat, &t->conf, t->now, cost, &next);
	enum answer answer = trace_take(t, tag, cost);
	struct weir_set *sets[2];

	if (answer == UNTRACKED) {
		/* Only with no room at all, and never somebody who is owed a refusal. */
		sets_of(&t->table, tag, sets);
		t->wrong += !is_full(sets, t->now) || *tat > t->now;
		t->untracked++;
		return;
	}
	t->wrong += (answer <= NEW) != expected;
	t->verdicts[expected]++;
	*tat = expected ? next : weir_bucket_clamp(*tat, &t->conf, t->now);
}

static void trace_run(uint32_t sets, double rate, uint64_t seed)
{
	struct trace *t = calloc(1, sizeof(*t));

	t->seed = seed;
	t->now = 1000 * WEIR_NS_PER_SEC << WEIR_TICK_SHIFT;
	table_open(&t->table, sets, seed);
	CU_ASSERT_EQUAL(weir_bucket_conf_init(&t->conf, rate, 8, 1), 0);
	for (int i = 0; i < 100000; i++) {
		/* Half of the packets are from a tenth of the keys. */
		uint32_t key = (uint32_t)random_below(
			&t->seed, random_below(&t->seed, 2) ? MODEL_KEYS : MODEL_KEYS / 10);

		t->now += random_below(&t->seed, 200000);
		if (random_below(&t->seed, 5000) == 0) {
			t->revision++;
			CU_ASSERT_EQUAL(weir_bucket_conf_init(
						&t->conf, rate * (0.5 + random_unit(&t->seed)),
						4 + (double)random_below(&t->seed, 8), 1),
					0);
		}
		trace_packet(t, key);
	}
	printf("  %u places, %.0f/s: %" PRIu64 " passed, %" PRIu64 " refused (%" PRIu64
	       " by the front), %" PRIu64 " untracked\n",
	       sets * WEIR_WAYS, rate, t->verdicts[1], t->verdicts[0], t->by_front, t->untracked);
	CU_ASSERT_EQUAL(t->wrong, 0);
	CU_ASSERT_TRUE(t->verdicts[0] > 1000 && t->verdicts[1] > 1000 && t->by_front > 100);
	CU_ASSERT_TRUE(table_check(&t->table) > 0);
	free(t->table.sets);
	free(t);
}

static void agrees_with_a_map_that_never_forgets(void)
{
	trace_run(64, 500, 11);	 /* room for all */
	trace_run(16, 3000, 12); /* room for those that can't be forgotten */
	trace_run(8, 500, 13);	 /* and not even for them */
}

/* ---- many threads ---- */

#define SHARED_KEYS 3000
#define BURST 3
#define THREADS_MAX 8

struct crowd {
	struct table table;
	struct weir_bucket_conf keep; /* gives nothing back */
	struct weir_bucket_conf pass; /* gives everything back after a tick or two */
	pthread_barrier_t start;
	_Atomic uint64_t now;
	_Atomic uint32_t admitted[SHARED_KEYS * (THREADS_MAX + 1)];
	uint32_t threads;
};

struct member {
	struct crowd *crowd;
	uint32_t index;
	uint64_t untracked;
	uint64_t newcomers; /* others' keys, soon forgotten */
};

static void member_take(struct member *m, uint32_t key)
{
	struct crowd *crowd = m->crowd;
	uint64_t now = atomic_fetch_add(&crowd->now, 1), seen;
	enum answer answer = take(&crowd->table, tag_of(&crowd->table, key), &crowd->keep, now,
				  weir_bucket_cost(&crowd->keep, 1), &seen);

	m->untracked += answer == UNTRACKED;
	if (answer <= NEW)
		atomic_fetch_add(&crowd->admitted[key], 1);
}

/* Keys that all share and keys of its own, each more often than its burst. */
static void *member_run(void *argument)
{
	struct member *m = argument;

	pthread_barrier_wait(&m->crowd->start);
	for (uint32_t i = 0; i < SHARED_KEYS; i++) {
		for (int round = 0; round < BURST + 1; round++) {
			member_take(m, i);
			member_take(m, SHARED_KEYS * (m->index + 1) + i);
		}
	}
	return NULL;
}

static void crowd_run(struct crowd *crowd, uint32_t threads, void *(*run)(void *),
		      struct member *members)
{
	pthread_t ids[THREADS_MAX];

	crowd->threads = threads;
	pthread_barrier_init(&crowd->start, NULL, threads);
	for (uint32_t i = 0; i < threads; i++) {
		members[i] = (struct member){ .crowd = crowd, .index = i };
		CU_ASSERT_EQUAL_FATAL(pthread_create(&ids[i], NULL, run, &members[i]), 0);
	}
	for (uint32_t i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	pthread_barrier_destroy(&crowd->start);
}

static struct crowd *crowd_open(uint32_t sets, uint64_t seed)
{
	struct crowd *crowd = calloc(1, sizeof(*crowd));

	table_open(&crowd->table, sets, seed);
	CU_ASSERT_EQUAL(weir_bucket_conf_init(&crowd->keep, 1e-5, BURST, 1), 0);
	CU_ASSERT_EQUAL(weir_bucket_conf_init(&crowd->pass, 1e9, 1, 1), 0);
	atomic_store(&crowd->now, 1000 * WEIR_NS_PER_SEC << WEIR_TICK_SHIFT);
	return crowd;
}

static void one_place_a_key_from_many_threads(void)
{
	for (uint32_t threads = 2; threads <= THREADS_MAX; threads += 2) {
		struct crowd *crowd = crowd_open(16384, threads);
		struct member members[THREADS_MAX];
		uint32_t keys = SHARED_KEYS * (threads + 1);
		uint64_t wrong = 0, untracked = 0;

		crowd_run(crowd, threads, member_run, members);
		for (uint32_t key = 0; key < keys; key++)
			wrong += crowd->admitted[key] != BURST;
		for (uint32_t i = 0; i < threads; i++)
			untracked += members[i].untracked;
		CU_ASSERT_EQUAL(untracked, 0);
		CU_ASSERT_EQUAL(wrong, 0);
		CU_ASSERT_EQUAL(table_check(&crowd->table), keys);
		free(crowd->table.sets);
		free(crowd);
	}
}

#define OFFENDERS 24
#define CHURN_KEYS 4000
#define CHURN_ROUNDS 60000

/* Offenders, over their limit for good, among keys that come and are soon forgotten. */
static void *churn_run(void *argument)
{
	struct member *m = argument;
	struct crowd *crowd = m->crowd;
	uint64_t seed = 1000 + m->index, seen;

	pthread_barrier_wait(&crowd->start);
	for (int i = 0; i < CHURN_ROUNDS; i++) {
		uint32_t key = (uint32_t)random_below(&seed, CHURN_KEYS);
		uint64_t now = atomic_fetch_add(&crowd->now, 8);

		if (i % 16 == 0)
			member_take(m, (uint32_t)random_below(&seed, OFFENDERS));
		m->newcomers +=
			take(&crowd->table, tag_of(&crowd->table, 1000000 + key), &crowd->pass, now,
			     weir_bucket_cost(&crowd->pass, 1), &seen) == NEW;
	}
	return NULL;
}

/* 16 sets: every claim takes somebody's place, while others still look at it. */
static void churn_never_forgets_an_offender(void)
{
	for (uint32_t threads = 2; threads <= THREADS_MAX; threads += 3) {
		struct crowd *crowd = crowd_open(16, threads);
		struct member members[THREADS_MAX];
		uint64_t wrong = 0, untracked = 0, newcomers = 0;

		crowd_run(crowd, threads, churn_run, members);
		for (uint32_t key = 0; key < OFFENDERS; key++)
			wrong += crowd->admitted[key] != BURST;
		for (uint32_t i = 0; i < threads; i++) {
			untracked += members[i].untracked;
			newcomers += members[i].newcomers;
		}
		CU_ASSERT_EQUAL(wrong, 0);
		CU_ASSERT_EQUAL(untracked, 0);
		CU_ASSERT_TRUE(newcomers > (uint64_t)threads * CHURN_ROUNDS / 2);
		CU_ASSERT_TRUE(table_check(&crowd->table) > OFFENDERS);
		free(crowd->table.sets);
		free(crowd);
	}
}

WEIR_TESTS("ledger", TEST(agrees_with_a_map_that_never_forgets),
	   TEST(one_place_a_key_from_many_threads), TEST(churn_never_forgets_an_offender))
