/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keys of the ledger as user space meets them: a record in the map `weir_keys` is written by
 * the kernel without a lock, so it is worth something only when its tag, computed again under
 * the limit's salt, is the tag of its place.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "controller/dataplane.h"
#include "weir/abi.h"

#define WEIR_KEY_TEXT 128

/* Every limit in force, found by its slot in the totals: copied, so a reload changes nothing. */
struct weir_limits_view {
	uint32_t count;
	struct weir_limit by_index[WEIR_LIMITS_MAX]; /* as in the file */
	int16_t index_of_slot[WEIR_LIMITS_MAX];	     /* -1: no such limit */
};

void weir_limits_view_read(struct weir_limits_view *view, const struct weir_dataplane *dataplane);

/* NULL for a slot that no limit in force has. */
const struct weir_limit *weir_limits_view_slot(const struct weir_limits_view *view, uint32_t slot);

/*
 * The tag that a record stands for; 0 if it can't be known, since a record has room for one
 * address and the key of a flow has two.
 */
uint64_t weir_record_tag(const struct weir_key_record *record, const struct weir_limit *limit,
			 const struct weir_seeds *seeds);

/* Whether the record is that of `tag`. For a flow: whether it is of that limit, no more. */
bool weir_record_fits(const struct weir_key_record *record, const struct weir_limit *limit,
		      const struct weir_seeds *seeds, uint64_t tag);

/* The same of a record with both addresses: always known. */
uint64_t weir_own_record_tag(const struct weir_own_record *record, const struct weir_limit *limit,
			     const struct weir_seeds *seeds);

/* The record of an address (16 bytes, network order, IPv4 in the first 4) under a limit whose
 * key is the source, the destination or none. */
struct weir_key_record weir_record_of_address(const struct weir_limit *limit, uint8_t family,
					      const void *address);

/*
 * "192.0.2.7", "192.0.2.0/24", "2001:db8:1:2::/64", with a port "192.0.2.7:53" and
 * "[2001:db8::1]:53", "all" for a key of nothing. Fills WEIR_KEY_TEXT bytes, returns them.
 */
char *weir_record_print(const struct weir_key_record *record, const struct weir_limit *limit,
			char *text);

/* The same, a flow as "tcp 192.0.2.7:4000 > 198.51.100.1:443" ("6" for what has no name). */
char *weir_own_record_print(const struct weir_own_record *record, const struct weir_limit *limit,
			    char *text);

/* "source/32/64", "destination/24/56", "source+port", "flow", "none": fills WEIR_KEY_TEXT. */
char *weir_limit_key_print(const struct weir_limit *limit, char *text);

/*
 * What a limit let pass of a key, from its place's two words: packets of a bucket, events of a
 * sliding window, of a period those in the latest one, of a gate who is inside now.
 */
uint64_t weir_limit_admitted(const struct weir_limit *limit, uint64_t state, uint64_t passed);

/* Lengths of the masks, 0-32 and 0-128. */
unsigned int weir_limit_length4(const struct weir_limit *limit);
unsigned int weir_limit_length6(const struct weir_limit *limit);

/* All bans, as they are: tags and items go together. */
struct weir_bans {
	uint64_t *tags;
	struct weir_ban *items;
	size_t count;
};

/* 0, -ENOMEM, or what the kernel says. Reads at most WEIR_BANS_MAX. */
int weir_bans_read(struct weir_bans *bans, const struct weir_dataplane *dataplane);
void weir_bans_free(struct weir_bans *bans);
/* Whom a ban is about. */
struct weir_own_record weir_ban_record(const struct weir_ban *ban);
