/* SPDX-License-Identifier: GPL-2.0 */
/*
 * From a key (limit, family, masked addresses, ports) to the 64 bits that stand for it.
 *
 * A multilinear hash over 32-bit words with secret odd 64-bit multipliers drawn at load
 * (Carter and Wegman 1979; Lemire and Kaser, "Strongly universal string hashing is fast",
 * 2014), then murmur3's bijective finalizer to spread it over all bits. Two keys of one limit
 * collide with probability 2^-32 at the most over the draw of the seeds, whatever an attacker
 * who doesn't know them chooses; two that differ in one word only by the 2 bits that the tag
 * gives up, 2^-62.
 */
#pragma once

#include <stdint.h>

#define WEIR_KEY_WORDS 10

/* Zero where the limit does not look. Words are in network order, ports in host order. */
struct weir_key {
	uint32_t source[4];
	uint32_t destination[4];
	uint32_t ports; /* source << 16 | destination */
	uint32_t kind;	/* family | protocol << 8 */
};

struct weir_seeds {
	uint64_t word[WEIR_KEY_WORDS]; /* odd */
	uint64_t second;	       /* odd: picks the second set */
};

static inline uint64_t weir_mix(uint64_t h)
{
	h ^= h >> 33;
	h *= 0xff51afd7ed558ccdULL;
	h ^= h >> 33;
	h *= 0xc4ceb9fe1a85ec53ULL;
	return h ^ h >> 33;
}

/*
 * The tag of a key under a limit's salt: bit 0 set, which ledger.h clears in a provisional one,
 * and bit 1, so that this isn't 0 either: 0 is an empty place.
 */
static inline uint64_t weir_key_tag(const struct weir_key *key, uint64_t salt,
				    const volatile struct weir_seeds *seeds)
{
	uint64_t h = salt + key->kind * seeds->word[9];

	h += key->source[0] * seeds->word[0] + key->source[1] * seeds->word[1] +
	     key->source[2] * seeds->word[2] + key->source[3] * seeds->word[3];
	h += key->destination[0] * seeds->word[4] + key->destination[1] * seeds->word[5] +
	     key->destination[2] * seeds->word[6] + key->destination[3] * seeds->word[7];
	h += key->ports * seeds->word[8];
	return weir_mix(h) | 3;
}

/* The same for a key that is nothing but an IPv4 source, masked. */
static inline uint64_t weir_source4_tag(uint32_t source, uint64_t salt,
					const volatile struct weir_seeds *seeds)
{
	return weir_mix(salt + 4 * seeds->word[9] + source * seeds->word[0]) | 3;
}

/* Which sets of `sets` (a power of two, at least 2) a tag may live in: never the same one. */
static inline uint32_t weir_tag_first(uint64_t tag, uint32_t sets)
{
	return (uint32_t)(tag >> 2) & (sets - 1);
}

static inline uint32_t weir_tag_second(uint64_t tag, uint32_t sets,
				       const volatile struct weir_seeds *seeds)
{
	uint32_t first = weir_tag_first(tag, sets);
	uint32_t second = (uint32_t)((tag * seeds->second) >> 32) & (sets - 1);

	return second == first ? first ^ 1 : second;
}

/* The line of a per-CPU front of `slots` (a power of two). */
static inline uint32_t weir_tag_slot(uint64_t tag, uint32_t slots)
{
	return (uint32_t)(tag >> 32) & (slots - 1);
}
