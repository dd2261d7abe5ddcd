// SPDX-License-Identifier: GPL-2.0
#include "controller/list_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LENGTHS 129

void weir_list_free(struct weir_list_table *table)
{
	free(table->entries);
	*table = (struct weir_list_table){ 0 };
}

uint64_t weir_list_later(uint64_t a, uint64_t b)
{
	if (a == WEIR_LIST_FOREVER || b == WEIR_LIST_FOREVER)
		return WEIR_LIST_FOREVER;
	return a > b ? a : b;
}

/* ---- order ---- */

/* IPv4 before IPv6, then by address, then the shorter prefix first. */
static int compare(const struct weir_prefix *a, const struct weir_prefix *b)
{
	int order = (a->family > b->family) - (a->family < b->family);

	if (!order)
		order = memcmp(a->address, b->address, sizeof(a->address));
	return order ? order : (a->length > b->length) - (a->length < b->length);
}

static int compare_items(const void *a, const void *b)
{
	return compare(a, b);
}

static bool covers(const struct weir_prefix *outer, const struct weir_prefix *inner)
{
	return outer->length <= inner->length &&
	       weir_prefix_contains(outer, inner->family, inner->address);
}

size_t weir_list_find(const struct weir_list_table *table, const struct weir_prefix *prefix,
		      bool *found)
{
	size_t low = 0, high = table->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare(&table->entries[middle].prefix, prefix) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*found = low < table->count && !compare(&table->entries[low].prefix, prefix);
	return low;
}

size_t weir_list_count(const struct weir_list_table *table, uint8_t family)
{
	const struct weir_prefix six = { .family = 6 };
	bool found;
	size_t four = weir_list_find(table, &six, &found);

	return family == 4 ? four : table->count - four;
}

static void cut(struct weir_prefix *prefix, uint8_t length)
{
	prefix->length = length;
	for (unsigned int i = 0; i < sizeof(prefix->address); i++) {
		uint8_t bits = length > 8 * i ? (uint8_t)(length - 8 * i) : 0;

		if (bits < 8)
			prefix->address[i] &= (uint8_t)(0xff00 >> bits);
	}
}

const struct weir_list_entry *weir_list_match(const struct weir_list_table *table, uint8_t family,
					      const void *address, uint64_t now_ns)
{
	struct weir_prefix prefix = { .family = family };

	memcpy(prefix.address, address, family == 4 ? 4 : 16);
	for (int length = family == 4 ? 32 : 128; length >= 0; length--) {
		const struct weir_list_entry *entry;
		bool found;
		size_t at;

		cut(&prefix, (uint8_t)length);
		at = weir_list_find(table, &prefix, &found);
		if (!found)
			continue;
		entry = &table->entries[at];
		if (entry->file || entry->expires_ns == WEIR_LIST_FOREVER ||
		    now_ns < entry->expires_ns)
			return entry;
	}
	return NULL;
}

/* ---- effective expiries ---- */

static uint64_t own_expiry(const struct weir_list_entry *entry)
{
	return entry->file ? WEIR_LIST_FOREVER : entry->expires_ns;
}

/* The entries around the one that a walk in order stands at, the outermost first. */
struct around {
	const struct weir_list_entry *entries[LENGTHS + 1];
	uint64_t until_ns[LENGTHS + 1];
	size_t depth;
};

/* The walk comes to an entry: its effective expiry. */
static uint64_t enter(struct around *around, const struct weir_list_entry *entry)
{
	uint64_t until = own_expiry(entry);

	while (around->depth &&
	       !covers(&around->entries[around->depth - 1]->prefix, &entry->prefix))
		around->depth--;
	if (around->depth)
		until = weir_list_later(until, around->until_ns[around->depth - 1]);
	around->entries[around->depth] = entry;
	around->until_ns[around->depth++] = until;
	return until;
}

/* Enters all that contain a prefix, but for itself. */
static void enter_outer(struct around *around, const struct weir_list_table *table,
			const struct weir_prefix *prefix)
{
	for (uint8_t length = 0; length < prefix->length; length++) {
		struct weir_prefix outer = *prefix;
		bool found;
		size_t at;

		cut(&outer, length);
		at = weir_list_find(table, &outer, &found);
		if (found)
			enter(around, &table->entries[at]);
	}
}

/* After a change of `prefix`: it and those in it anew, from index `at` on. */
static int settle(struct weir_list_table *table, size_t at, const struct weir_prefix *prefix,
		  weir_list_sink sink, void *context)
{
	struct around around = { .depth = 0 };
	int code = 0;

	enter_outer(&around, table, prefix);
	for (; at < table->count && covers(prefix, &table->entries[at].prefix); at++) {
		struct weir_list_entry *entry = &table->entries[at];
		uint64_t until = enter(&around, entry);
		int wrong = 0;

		if (until != entry->effective_ns)
			wrong = sink(context, &entry->prefix, &until);
		if (!wrong)
			entry->effective_ns = until;
		code = code ? code : wrong;
	}
	return code;
}

/* ---- the whole ---- */

static int reserve(struct weir_list_table *table, size_t count)
{
	size_t room = table->room ? table->room : 16;
	struct weir_list_entry *grown;

	while (room < count)
		room *= 2;
	if (room == table->room)
		return 0;
	grown = realloc(table->entries, room * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	table->entries = grown;
	table->room = room;
	return 0;
}

/* The next of two sorted rows; the same prefix in both becomes one entry. */
static struct weir_list_entry merge(const struct weir_prefix *file, size_t file_count, size_t *i,
				    const struct weir_list_table *old, size_t *j)
{
	struct weir_list_entry entry = { .live = false };
	int order = *i == file_count	? 1
		    : *j == old->count ? -1
				       : compare(&file[*i], &old->entries[*j].prefix);

	if (order >= 0)
		entry = old->entries[(*j)++];
	entry.file = order <= 0;
	if (order <= 0)
		entry.prefix = file[*i];
	/* Those that the file has twice. */
	while (order <= 0 && *i < file_count && !compare(&file[*i], &entry.prefix))
		++*i;
	return entry;
}

int weir_list_build(struct weir_list_table *table, const struct weir_prefixes *file,
		    const struct weir_list_table *old)
{
	size_t bytes = file->count * sizeof(struct weir_prefix), i = 0, j = 0;
	struct weir_prefix *sorted = malloc(bytes + 1);
	struct around around = { .depth = 0 };

	*table = (struct weir_list_table){ 0 };
	if (!sorted || reserve(table, file->count + old->count)) {
		free(sorted);
		return -ENOMEM;
	}
	if (file->count)
		memcpy(sorted, file->items, bytes);
	qsort(sorted, file->count, sizeof(*sorted), compare_items);
	while (i < file->count || j < old->count) {
		struct weir_list_entry *entry = &table->entries[table->count];

		*entry = merge(sorted, file->count, &i, old, &j);
		if (!entry->file && !entry->live)
			continue;
		table->count++;
		entry->effective_ns = enter(&around, entry);
	}
	free(sorted);
	return 0;
}

int weir_list_difference(const struct weir_list_table *from, const struct weir_list_table *to,
			 weir_list_sink sink, void *context)
{
	size_t i = 0, j = 0;
	int code = 0;

	while (!code && (i < from->count || j < to->count)) {
		const struct weir_list_entry *old = &from->entries[i], *new = &to->entries[j];
		int order = i == from->count  ? 1
			    : j == to->count ? -1
					     : compare(&old->prefix, &new->prefix);

		if (order < 0)
			code = sink(context, &old->prefix, NULL);
		else if (order || old->effective_ns != new->effective_ns)
			code = sink(context, &new->prefix, &new->effective_ns);
		i += order <= 0;
		j += order >= 0;
	}
	return code;
}

/* ---- single entries ---- */

static void take_out(struct weir_list_table *table, size_t at)
{
	memmove(&table->entries[at], &table->entries[at + 1],
		(table->count - at - 1) * sizeof(*table->entries));
	table->count--;
}

static int put_in(struct weir_list_table *table, size_t at, const struct weir_prefix *prefix)
{
	if (reserve(table, table->count + 1))
		return -ENOMEM;
	memmove(&table->entries[at + 1], &table->entries[at],
		(table->count - at) * sizeof(*table->entries));
	/* An effective expiry that no entry has: it is to be told to the sink. */
	table->entries[at] = (struct weir_list_entry){ .prefix = *prefix,
						       .effective_ns = UINT64_MAX };
	table->count++;
	return 0;
}

int weir_list_add(struct weir_list_table *table, const struct weir_prefix *prefix,
		  uint64_t *expires_ns, weir_list_sink sink, void *context)
{
	struct weir_list_entry *entry, before;
	bool found;
	size_t at = weir_list_find(table, prefix, &found);
	int code = found ? 0 : put_in(table, at, prefix);

	if (code)
		return code;
	entry = &table->entries[at];
	before = *entry;
	if (entry->live)
		*expires_ns = weir_list_later(*expires_ns, entry->expires_ns);
	entry->live = true;
	entry->expires_ns = *expires_ns;
	code = settle(table, at, prefix, sink, context);
	if (!code)
		return 0;
	if (found) {
		*entry = (struct weir_list_entry){ before.prefix, before.file, before.live,
						   before.expires_ns, entry->effective_ns };
	} else {
		take_out(table, at);
		sink(context, prefix, NULL);
	}
	settle(table, at, prefix, sink, context);
	return code;
}

int weir_list_del(struct weir_list_table *table, const struct weir_prefix *prefix,
		  weir_list_sink sink, void *context)
{
	struct weir_list_entry *entry;
	bool found;
	size_t at = weir_list_find(table, prefix, &found);
	int code;

	if (!found)
		return -ENOENT;
	entry = &table->entries[at];
	if (!entry->live)
		return -EPERM;
	code = entry->file ? 0 : sink(context, prefix, NULL);
	if (code)
		return code;
	entry->live = false;
	entry->expires_ns = 0;
	if (!entry->file)
		take_out(table, at);
	/* What lies in it and can't be told a shorter time keeps the longer one until its own. */
	settle(table, at, prefix, sink, context);
	return 0;
}

/*
 * In the order of time nothing else changes: an entry in one that is over had an expiry of its
 * own that is later, or is over too.
 */
uint64_t weir_list_expire(struct weir_list_table *table, uint64_t now_ns, weir_list_sink gone,
			  weir_list_sink sink, void *context)
{
	size_t kept = 0;
	uint64_t next = 0;

	for (size_t i = 0; i < table->count; i++) {
		struct weir_list_entry entry = table->entries[i];
		bool finite = entry.live && entry.expires_ns != WEIR_LIST_FOREVER;

		if (finite && entry.expires_ns <= now_ns) {
			gone(context, &entry.prefix, NULL);
			if (!entry.file) {
				sink(context, &entry.prefix, NULL);
				continue;
			}
			entry.live = finite = false;
			entry.expires_ns = 0;
		}
		if (finite && (!next || entry.expires_ns < next))
			next = entry.expires_ns;
		table->entries[kept++] = entry;
	}
	table->count = kept;
	return next;
}
