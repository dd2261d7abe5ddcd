/* SPDX-License-Identifier: GPL-2.0 */
/* A dataplane in plain memory, for tests of what reads one: no kernel, no maps. */
#pragma once

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "controller/dataplane.h"
#include "controller/keys.h"

#define FAKE_CPUS 2

static inline void fake_dataplane_make(struct weir_dataplane *fake, uint32_t sets,
				       uint32_t front_slots)
{
	weir_dataplane_init(fake);
	fake->shape =
		(struct weir_shape){ .sets = sets, .front_slots = front_slots, .cpus = FAKE_CPUS };
	for (int i = 0; i < WEIR_KEY_WORDS; i++)
		fake->shape.seeds.word[i] = 0x9e3779b97f4a7c15ULL * (uint64_t)(2 * i + 1) | 1;
	fake->shape.seeds.second = 0xd6e8feb86659fd93ULL;
	fake->board = calloc(1, sizeof(*fake->board));
	fake->labels = calloc(WEIR_LIMITS_MAX, sizeof(*fake->labels));
	fake->services = calloc(WEIR_SERVICES_MAX, sizeof(*fake->services));
	fake->ledger = calloc(sets, sizeof(*fake->ledger));
	fake->keys = calloc((size_t)sets * WEIR_WAYS, sizeof(*fake->keys));
	fake->front = calloc((size_t)FAKE_CPUS * front_slots, sizeof(*fake->front));
	fake->cpus = calloc(FAKE_CPUS, sizeof(*fake->cpus));
}

static inline void fake_dataplane_free(struct weir_dataplane *fake)
{
	free(fake->board);
	free(fake->labels);
	free((void *)fake->services);
	free(fake->ledger);
	free(fake->keys);
	free(fake->front);
	free(fake->cpus);
}

/* Appends a limit by source, /32 and /64, to the generation in force; its slot is `slot`. */
static inline struct weir_limit *fake_limit_add(struct weir_dataplane *fake, const char *name,
						const char *setting, uint16_t slot)
{
	uint32_t generation = fake->board->active.generation & 1;
	uint32_t index = fake->board->policy[generation].limits++;
	struct weir_limit *limit = &fake->board->limits[generation * WEIR_LIMITS_MAX + index];

	limit->salt = 0x1234567 * (slot + 1ULL);
	limit->slot = slot;
	limit->key = WEIR_KEY_SOURCE;
	limit->mask4 = 0xffffffff;
	limit->mask6[0] = limit->mask6[1] = 0xffffffff;
	strncpy(fake->labels[slot].name, name, sizeof(fake->labels[slot].name) - 1);
	strncpy(fake->labels[slot].setting, setting, sizeof(fake->labels[slot].setting) - 1);
	return limit;
}

/* Puts a key into the ledger, in the first free way of its first or second set. Its place. */
static inline uint32_t fake_key_add(struct weir_dataplane *fake, const struct weir_limit *limit,
				    const char *address, uint64_t passed, uint64_t refused,
				    uint64_t state)
{
	uint8_t bytes[16] = { 0 }, family = strchr(address, ':') ? 6 : 4;
	struct weir_key_record record;
	uint64_t tag;

	inet_pton(family == 6 ? AF_INET6 : AF_INET, address, bytes);
	record = weir_record_of_address(limit, family, bytes);
	tag = weir_record_tag(&record, limit, &fake->shape.seeds);
	for (uint32_t i = 0; i < 2 * WEIR_WAYS; i++) {
		uint32_t set = i < WEIR_WAYS
				       ? weir_tag_first(tag, fake->shape.sets)
				       : weir_tag_second(tag, fake->shape.sets, &fake->shape.seeds);
		uint32_t way = i % WEIR_WAYS;

		if (fake->ledger[set].tag[way])
			continue;
		fake->ledger[set].tag[way] = tag;
		fake->ledger[set].state[way] = state;
		fake->ledger[set].counts[way] = (struct weir_counts){ passed, refused };
		fake->keys[set * WEIR_WAYS + way] = record;
		return set * WEIR_WAYS + way;
	}
	return UINT32_MAX;
}

static inline uint64_t fake_tag_at(const struct weir_dataplane *fake, uint32_t place)
{
	return fake->ledger[place / WEIR_WAYS].tag[place % WEIR_WAYS];
}

/* Has a CPU's front hold refusals of the key at a place. */
static inline void fake_front_hold(struct weir_dataplane *fake, uint32_t cpu, uint32_t place,
				   uint64_t refused)
{
	uint64_t tag = fake_tag_at(fake, place);
	uint32_t slot = weir_tag_slot(tag, fake->shape.front_slots);

	fake->front[cpu * fake->shape.front_slots + slot] =
		(struct weir_front_slot){ .tag = tag, .refused = refused, .place = place };
}
