/* SPDX-License-Identifier: GPL-2.0 */
/* The last lines of what the controller did, each with its time: `weir events` shows them. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/movement.h"

#define WEIR_JOURNAL_LINES 1000
#define WEIR_JOURNAL_TEXT 512 /* a longer line is cut off */

struct weir_journal;

struct weir_journal *weir_journal_new(void); /* NULL: no memory */
void weir_journal_free(struct weir_journal *journal);
/* time_ns: since 1970. */
void weir_journal_add(struct weir_journal *journal, uint64_t time_ns, const char *text);
/* The same for a movement of a loop, which the JSON then has beside its text. */
void weir_journal_add_movement(struct weir_journal *journal, uint64_t time_ns,
			       const struct weir_movement *movement);
/* [{"time_ns": …, "text": …, "movement": {…}}, …], oldest first, the last `count` at most; NULL: no
 * memory. */
json_t *weir_journal_json(const struct weir_journal *journal, size_t count);
