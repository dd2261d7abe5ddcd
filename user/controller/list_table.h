/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A list of prefixes, as user space knows it: each entry with its own expiry, sorted so that a
 * prefix comes before those in it, which follow it without a gap. Pure: what is to change in
 * the kernel's trie goes to a sink.
 *
 * The trie answers by the longest match alone, so the value there is the effective expiry: the
 * latest of all entries that contain the prefix, its own included. Times are nanoseconds of
 * CLOCK_MONOTONIC; WEIR_LIST_FOREVER is later than all of them.
 */
#pragma once

#include "controller/prefix.h"
#include "weir/abi.h"

struct weir_list_entry {
	struct weir_prefix prefix;
	bool file; /* the configuration has it: for ever */
	bool live; /* added live, until expires_ns */
	uint64_t expires_ns;
	uint64_t effective_ns;
};

/* All zero is the empty list. */
struct weir_list_table {
	struct weir_list_entry *entries;
	size_t count, room;
};

/* What the trie is to have of a prefix: an expiry, or NULL for nothing. 0 or -errno. */
typedef int (*weir_list_sink)(void *context, const struct weir_prefix *prefix,
			      const uint64_t *expires_ns);

void weir_list_free(struct weir_list_table *table);

/* The later of two expiries. */
uint64_t weir_list_later(uint64_t a, uint64_t b);

/*
 * A new table: what the file has (in any order, twice if need be) and the live entries of
 * `old`. 0 or -ENOMEM.
 */
int weir_list_build(struct weir_list_table *table, const struct weir_prefixes *file,
		    const struct weir_list_table *old);

/* What turns the trie of one table into that of another. Ends at the sink's first error. */
int weir_list_difference(const struct weir_list_table *from, const struct weir_list_table *to,
			 weir_list_sink sink, void *context);

/*
 * Adds a live entry; one that is there is extended, never shortened. *expires_ns becomes what
 * it then has. An error (-ENOMEM, the sink's) leaves the table as it was.
 */
int weir_list_add(struct weir_list_table *table, const struct weir_prefix *prefix,
		  uint64_t *expires_ns, weir_list_sink sink, void *context);

/*
 * Takes a live entry out. -ENOENT where there is none; -EPERM where only the file has it; where
 * the sink refuses to, the table is as it was.
 */
int weir_list_del(struct weir_list_table *table, const struct weir_prefix *prefix,
		  weir_list_sink sink, void *context);

/* Takes out what is over; `gone` is told of each before. Returns when the next one is: 0 never. */
uint64_t weir_list_expire(struct weir_list_table *table, uint64_t now_ns, weir_list_sink gone,
			  weir_list_sink sink, void *context);

/* The index of a prefix, or of the first entry after where it would be. */
size_t weir_list_find(const struct weir_list_table *table, const struct weir_prefix *prefix,
		      bool *found);

/* The longest entry that contains an address and is not over, or NULL. */
const struct weir_list_entry *weir_list_match(const struct weir_list_table *table, uint8_t family,
					      const void *address, uint64_t now_ns);

/* Entries of a family: 4 or 6. */
size_t weir_list_count(const struct weir_list_table *table, uint8_t family);
