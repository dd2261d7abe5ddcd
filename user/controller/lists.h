/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The allow and deny lists in force: a table each, and the kernel's tries kept by them. Entries
 * come from the configuration and its files (for ever), and live, with an expiry or without;
 * live ones outlive a reload and the controller, by the pinned map weir_live.
 *
 * Measured, CPU time with a file of a million prefixes: a start 2.7 s, a reload that changes
 * nothing 0.9 s, a start over the pins 2.0 s, one more entry 3 ms.
 */
#pragma once

#include "controller/dataplane.h"
#include "controller/list_table.h"
#include "controller/policy.h"

enum weir_list {
	WEIR_ALLOW,
	WEIR_DENY,
	WEIR_LISTS,
};

struct weir_lists {
	struct weir_dataplane *dataplane;
	struct weir_list_table tables[WEIR_LISTS];
	uint64_t next_ns; /* when the next live entry is over; 0: none is */
};

/* The tables of a policy that is to come. */
struct weir_lists_plan {
	struct weir_list_table tables[WEIR_LISTS];
};

const char *weir_list_name(enum weir_list list);

/* Reads what the maps have. 0, or -errno. */
int weir_lists_open(struct weir_lists *lists, struct weir_dataplane *dataplane,
		    struct weir_error *err);
void weir_lists_close(struct weir_lists *lists);
/* For those who only look, without a policy: what is not live is the file's. */
int weir_lists_look_all(struct weir_lists *lists, struct weir_dataplane *dataplane,
			struct weir_error *err);

/* What a policy means, live entries included: -E2BIG above WEIR_LIST_MAX of a family, -ENOMEM. */
int weir_lists_plan(const struct weir_lists *lists, const struct weir_policy *policy,
		    struct weir_lists_plan *plan, struct weir_error *err);
void weir_lists_plan_free(struct weir_lists_plan *plan);

/*
 * Brings the tries to the plan, by what differs: entries that stay are not touched. Takes over
 * the plan's tables; on an error everything is as it was. *before gets the old tables, for
 * weir_lists_undo, or to be freed.
 */
int weir_lists_apply(struct weir_lists *lists, struct weir_lists_plan *plan,
		     struct weir_lists_plan *before, struct weir_error *err);
void weir_lists_undo(struct weir_lists *lists, struct weir_lists_plan *before);

/* Live: `for_ns` from `now_ns` on, 0 for ever. *expires_ns: then, 0 for ever. */
int weir_lists_add(struct weir_lists *lists, enum weir_list list, const struct weir_prefix *prefix,
		   uint64_t now_ns, uint64_t for_ns, uint64_t *expires_ns, struct weir_error *err);
int weir_lists_del(struct weir_lists *lists, enum weir_list list, const struct weir_prefix *prefix,
		   struct weir_error *err);

/* Takes out what is over. To be called now and then: the kernel side looks at the expiry itself. */
void weir_lists_expire(struct weir_lists *lists, uint64_t now_ns);

/* Whether a list's trie has an address that is not over; *expires_ns then, 0 for ever. */
bool weir_lists_look(const struct weir_dataplane *dataplane, enum weir_list list, uint8_t family,
		     const void *address, uint64_t now_ns, uint64_t *expires_ns);
