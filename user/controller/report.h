/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What there is to see, as JSON: totals, settings, ledger, interfaces, heaviest keys, one
 * address, one event. Built from a dataplane alone, so the same code serves the controller and
 * a CLI that reads the pins while the controller is down. docs/json.md lists the fields.
 *
 * Numbers are in base units: packets, bytes, nanoseconds, tokens a second. What is not known is
 * null. Functions return a new reference, or NULL when memory is out. Nothing here writes to
 * the dataplane.
 */
#pragma once

#include <jansson.h>

#include "controller/engine.h"
#include "controller/keys.h"
#include "controller/services.h"
#include "controller/top.h"

#define WEIR_JSON_SCHEMA 1

/* Packets a second of each limit's slot between the last two updates. */
struct weir_rates {
	uint64_t at_ns;	  /* of the last update; 0: none */
	uint64_t span_ns; /* between the last two; 0: rates aren't known yet */
	struct weir_totals last[WEIR_LIMITS_MAX];
	struct weir_totals difference[WEIR_LIMITS_MAX];
};

void weir_rates_update(struct weir_rates *rates, const struct weir_dataplane *dataplane,
		       uint64_t now_ns);

struct weir_view {
	const struct weir_dataplane *dataplane;
	const struct weir_rates *rates; /* NULL: not known */
	const struct weir_interface_status *interfaces;
	size_t interface_count;
	const struct weir_services *services; /* NULL: only a controller knows */
	const struct weir_engine *engine; /* for what waits; NULL: not known */
	const struct weir_list_table *lists; /* [WEIR_LISTS]; NULL: not known */
	bool live;	 /* a controller keeps it; false: read from the pins */
	uint64_t now_ns; /* CLOCK_MONOTONIC, which is what the kernel side counts by */
};

/* {"schema": 1, "live": …, "time_ns": …}, for a report to be added to. */
json_t *weir_report_new(const struct weir_view *view);

/* Connections inside the gates, and pending, by slot; of every stride-th set of the ledger. */
struct weir_crowd {
	uint32_t stride;
	uint64_t inside[WEIR_LIMITS_MAX];
	uint64_t pending[WEIR_LIMITS_MAX];
};

struct weir_crowd weir_crowd_read(const struct weir_view *view);
/* Adds them to what is said of a limit, if it is a gate. */
json_t *weir_report_crowd(json_t *made, const struct weir_crowd *crowd,
			  const struct weir_limit *limit);
/* How full the ledgers are that limits have of their own: an array. */
json_t *weir_report_own(const struct weir_view *view);

/* What waits to be confirmed, or was undone; null: nothing, or the controller is down. */
json_t *weir_report_confirm(const struct weir_view *view);

/* Adds `value` (a reference it takes over) to `report`; NULL for either gives up both. */
json_t *weir_report_add(json_t *report, const char *field, json_t *value);

/* An array, in the order of the file. */
json_t *weir_report_limits(const struct weir_view *view);
json_t *weir_report_interfaces(const struct weir_view *view);
/* Looks at 32 Ki sets at most: in a larger ledger, at every so many-th. */
json_t *weir_report_ledger(const struct weir_view *view);

/* What that look at the shared ledger found. */
struct weir_ledger_fill {
	uint64_t places; /* looked at */
	uint64_t known;	 /* have ever been used */
	uint64_t held;	 /* not neutral: can't be forgotten now */
};

struct weir_ledger_fill weir_ledger_look(const struct weir_dataplane *dataplane, uint64_t now_ns);

/* "xdp", "tc-ingress", "tc-egress"; "limits", "refused", "denied", … */
const char *weir_report_hook_name(uint32_t hook);
const char *weir_report_path_name(enum weir_path path);

/*
 * A whole report of "limits", "interfaces", "services", "ledger", "lists", all of these (NULL, or
 * "all" where nothing has that name), of "bans", or one limit or service by its name. NULL with
 * -ENOENT and a sentence in err where there is none, -EAGAIN for services without a controller,
 * -ENOMEM.
 */
json_t *weir_report_show(const struct weir_view *view, const char *what, int *rc,
			 struct weir_error *err);

/* How many prefixes the lists have. */
json_t *weir_report_lists(const struct weir_view *view);
/* The bans in force: at most WEIR_BANS_MAX. */
json_t *weir_report_bans(const struct weir_view *view);
/* Entries [first, first + count) of a list as a part of an answer, what is over left out. */
json_t *weir_report_list(const struct weir_list_table *table, enum weir_list list, size_t first,
			 size_t count, uint64_t now_ns);
/* Nanoseconds until then, null for WEIR_LIST_FOREVER. */
json_t *weir_report_left(uint64_t expires_ns, uint64_t now_ns);

/* The slot of a limit in force, or -ENOENT. */
int weir_report_find_slot(const struct weir_dataplane *dataplane, const char *name);

/* Entries [first, first + count) of a sorted top, those outside it left out. span_ns: time
 * between the two walks of a recent one, else 0. */
json_t *weir_report_top(const struct weir_dataplane *dataplane, const struct weir_top *top,
			const struct weir_limits_view *limits, size_t first, size_t count,
			uint64_t span_ns);

/* An IPv4 or IPv6 address; 0, or -EINVAL with a sentence that quotes it. */
int weir_report_parse_address(const char *text, uint8_t *family, uint8_t address[16],
			      struct weir_error *err);

/* A whole report: what each limit has on an address (as parse_address gives it). */
json_t *weir_report_why(const struct weir_view *view, uint8_t family, const void *address);

/* A sampled refusal. realtime_offset_ns: what makes wall-clock time of its time. */
json_t *weir_report_event(const struct weir_dataplane *dataplane, const struct weir_event *event,
			  int64_t realtime_offset_ns);

/*
 * Interfaces as the pins show them, with names where they exist in this network namespace.
 * Returns how many of `size` were filled in; how they are attached is not known.
 */
size_t weir_report_pinned_interfaces(const struct weir_dataplane *dataplane,
				     struct weir_interface_status *interfaces, size_t size);
