// SPDX-License-Identifier: GPL-2.0
#include "controller/refusals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_FIRST 1024

static struct weir_refused_key *find(struct weir_refusals *refusals, uint64_t tag, uint16_t slot)
{
	size_t at = tag & (refusals->room - 1);

	while (refusals->entries[at].tag &&
	       (refusals->entries[at].tag != tag || refusals->entries[at].key.key.slot != slot))
		at = (at + 1) & (refusals->room - 1);
	return &refusals->entries[at];
}

/* At most half full, so that a search ends soon. */
static int grow(struct weir_refusals *refusals)
{
	struct weir_refusals larger = { .room = refusals->room ? 2 * refusals->room : ROOM_FIRST };

	larger.entries = calloc(larger.room, sizeof(*larger.entries));
	if (!larger.entries)
		return -ENOMEM;
	for (size_t i = 0; i < refusals->room; i++) {
		const struct weir_refused_key *old = &refusals->entries[i];

		if (old->tag)
			*find(&larger, old->tag, old->key.key.slot) = *old;
	}
	free(refusals->entries);
	refusals->entries = larger.entries;
	refusals->room = larger.room;
	return 0;
}

int weir_refusals_add(struct weir_refusals *refusals, uint64_t tag,
		      const struct weir_own_record *key, uint32_t bytes, uint64_t now_ns)
{
	struct weir_refused_key *entry;
	int code = 2 * refusals->count >= refusals->room ? grow(refusals) : 0;

	entry = code ? NULL : find(refusals, tag, key->key.slot);
	if (code || (!entry->tag && refusals->count == WEIR_REFUSALS_KEYS_MAX)) {
		refusals->left_out++;
		return code;
	}
	if (!entry->tag) {
		*entry = (struct weir_refused_key){ .tag = tag, .key = *key, .first_ns = now_ns };
		refusals->count++;
	}
	entry->packets++;
	entry->bytes += bytes;
	entry->last_ns = now_ns;
	return 0;
}

static int heavier_first(const void *a, const void *b)
{
	const struct weir_refused_key *left = a, *right = b;

	if (left->packets != right->packets)
		return left->packets < right->packets ? 1 : -1;
	return (left->tag > right->tag) - (left->tag < right->tag);
}

void weir_refusals_sort(struct weir_refusals *refusals)
{
	size_t count = 0;

	for (size_t i = 0; i < refusals->room; i++) {
		if (refusals->entries[i].tag)
			refusals->entries[count++] = refusals->entries[i];
	}
	if (count)
		qsort(refusals->entries, count, sizeof(*refusals->entries), heavier_first);
}

void weir_refusals_free(struct weir_refusals *refusals)
{
	free(refusals->entries);
	*refusals = (struct weir_refusals){ 0 };
}
