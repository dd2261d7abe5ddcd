// SPDX-License-Identifier: GPL-2.0
/*
 * Sources chosen to collide in the ledger's sets. Without the seeds of the ledger an attacker's
 * choice is worth no more than chance, however he chose it; with them he can fill the two sets
 * of one victim, and then a newcomer there is untracked, and an offender there is not forgotten.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "random.h"
#include "weir/bucket.h"
#include "weir/key.h"
#include "weir/ledger.h"

#define SETS 64U
#define SALT 9
#define SEARCHED (1U << 22)
#define CHOSEN 512U
#define DRAWS 400
#define NOW (1ULL << 40)

struct spot {
	uint32_t first, second;
};

static struct weir_seeds draw_seeds(uint64_t *random)
{
	struct weir_seeds seeds;

	for (int i = 0; i < WEIR_KEY_WORDS; i++)
		seeds.word[i] = random_next(random) | 1;
	seeds.second = random_next(random) | 1;
	return seeds;
}

static uint64_t tag_of(uint32_t address, const struct weir_seeds *seeds)
{
	return weir_source4_tag(__builtin_bswap32(address), SALT, seeds);
}

static struct spot spot_of(uint32_t address, const struct weir_seeds *seeds)
{
	uint64_t tag = tag_of(address, seeds);

	return (struct spot){ weir_tag_first(tag, SETS), weir_tag_second(tag, SETS, seeds) };
}

static bool is_same(struct spot a, struct spot b)
{
	return a.first == b.first && a.second == b.second;
}

/* Addresses that share both sets with the victim under these seeds: how many were found. */
static uint32_t choose(uint32_t victim, const struct weir_seeds *seeds, uint32_t chosen[CHOSEN])
{
	struct spot spot = spot_of(victim, seeds);
	uint32_t count = 0;

	for (uint32_t address = 1; address < SEARCHED && count < CHOSEN; address++) {
		if (address != victim && is_same(spot_of(address, seeds), spot))
			chosen[count++] = address;
	}
	return count;
}

/*
 * Over many draws of the seeds: how many of the addresses meet the victim in its first set, in
 * standard deviations from what chance gives, and the fullest set of each draw on the average.
 */
static void measure(const uint32_t *addresses, uint32_t victim, double *surplus, double *fullest)
{
	double expected = (double)CHOSEN * DRAWS / SETS, met = 0;
	uint64_t random = 4711;

	*fullest = 0;
	for (int draw = 0; draw < DRAWS; draw++) {
		struct weir_seeds seeds = draw_seeds(&random);
		uint32_t load[SETS] = { 0 }, most = 0;
		uint32_t set = spot_of(victim, &seeds).first;

		for (uint32_t i = 0; i < CHOSEN; i++)
			load[spot_of(addresses[i], &seeds).first]++;
		for (uint32_t i = 0; i < SETS; i++)
			most = load[i] > most ? load[i] : most;
		met += load[set];
		*fullest += (double)most / DRAWS;
	}
	*surplus = (met - expected) / sqrt(expected);
}

static void without_the_seeds_a_choice_is_chance(void)
{
	uint32_t chosen[CHOSEN], drawn[CHOSEN], victim = 0x0a000001;
	uint64_t random = 42;
	struct weir_seeds guess = draw_seeds(&random);
	double surplus, fullest, surplus_drawn, fullest_drawn;

	CU_ASSERT_EQUAL_FATAL(choose(victim, &guess, chosen), CHOSEN);
	for (uint32_t i = 0; i < CHOSEN; i++)
		drawn[i] = (uint32_t)random_next(&random);
	measure(chosen, victim, &surplus, &fullest);
	measure(drawn, victim, &surplus_drawn, &fullest_drawn);
	printf("# met the victim: chosen %+.1f sigma, drawn %+.1f; fullest set %.2f and %.2f\n",
	       surplus, surplus_drawn, fullest, fullest_drawn);
	CU_ASSERT(fabs(surplus) < 4);
	CU_ASSERT(fabs(fullest - fullest_drawn) < 0.5);
}

/* The fate of a newcomer at NOW: true if it gets a place. */
static bool has_room(struct weir_set *sets, uint32_t address, const struct weir_seeds *seeds)
{
	struct spot spot = spot_of(address, seeds);
	struct weir_place place;

	weir_ledger_choose(&place, &sets[spot.first], &sets[spot.second], NOW);
	return place.set;
}

/* Takes a place that isn't neutral before `until`: a source that owes tokens. */
static bool enter(struct weir_set *sets, uint32_t address, const struct weir_seeds *seeds,
		  uint64_t until)
{
	struct spot spot = spot_of(address, seeds);
	struct weir_set *first = &sets[spot.first], *second = &sets[spot.second];
	struct weir_beginning begin = { .state = until, .passed = 1 };
	struct weir_place place;

	weir_ledger_choose(&place, first, second, NOW);
	return place.set && weir_ledger_reserve(&place, NOW) &&
	       weir_ledger_publish(first, second, &place, tag_of(address, seeds), &begin, NOW);
}

static void with_the_seeds_newcomers_of_two_sets_are_untracked(void)
{
	struct weir_set *sets = aligned_alloc(256, SETS * sizeof(*sets));
	uint32_t chosen[CHOSEN], victim = 0x0a000001, offender, entered = 0, shut_out = 0;
	uint64_t random = 7, tag;
	struct weir_seeds seeds = draw_seeds(&random);
	struct weir_set *home;
	uint32_t way;

	CU_ASSERT_PTR_NOT_NULL_FATAL(sets);
	memset(sets, 0, SETS * sizeof(*sets));
	CU_ASSERT_EQUAL_FATAL(choose(victim, &seeds, chosen), CHOSEN);
	offender = chosen[0];
	for (uint32_t i = 0; i < CHOSEN; i++)
		entered += enter(sets, chosen[i], &seeds, NOW + 1000);
	CU_ASSERT_EQUAL(entered, 2 * WEIR_WAYS);
	CU_ASSERT_FALSE(has_room(sets, victim, &seeds));
	/* Whoever was over the limit before keeps its place and state. */
	tag = tag_of(offender, &seeds);
	home = &sets[spot_of(offender, &seeds).first];
	way = weir_set_find(home, tag);
	if (way == WEIR_NO_WAY) {
		home = &sets[spot_of(offender, &seeds).second];
		way = weir_set_find(home, tag);
	}
	CU_ASSERT_FATAL(way < WEIR_WAYS);
	CU_ASSERT_EQUAL(home->state[way], NOW + 1000);
	/* And nobody else is hurt: of addresses at large, only those of the same two sets. */
	for (uint32_t address = 0x0b000000; address < 0x0b000000 + 20000; address++)
		shut_out += !has_room(sets, address, &seeds);
	CU_ASSERT(shut_out < 20000 * 4 / (SETS * SETS) + 20);
	CU_ASSERT(shut_out > 0);
	free(sets);
}

WEIR_TESTS("attack", TEST(without_the_seeds_a_choice_is_chance),
	   TEST(with_the_seeds_newcomers_of_two_sets_are_untracked))
