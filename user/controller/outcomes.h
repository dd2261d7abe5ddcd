/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The datagram socket where applications report how exchanges went: <control socket>.report, a
 * line a datagram, "NAME pass|fail [rt=12ms]". Nothing is answered. docs/services.md
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "controller/error.h"
#include "controller/policy.h"

#define WEIR_OUTCOMES_SUFFIX ".report" /* behind the control socket's path */
#define WEIR_OUTCOME_MAX 128U	   /* bytes of a datagram; a longer one is malformed */
#define WEIR_OUTCOMES_AT_ONCE 512U /* read before others of the loop get their turn */

struct weir_outcome_line {
	char name[WEIR_POLICY_NAME_SIZE];
	bool pass;
	uint64_t response_ns; /* 0: not given */
};

/* One line, with or without a newline. -EINVAL with a sentence that says what is wrong. */
int weir_outcome_parse(const char *text, size_t length, struct weir_outcome_line *line,
		       struct weir_error *err);
/* A response time as both the datagram and `weir report` have it: "rt=12ms". */
int weir_outcome_parse_time(const char *text, uint64_t *response_ns, struct weir_error *err);

struct weir_outcomes;

/* `line` NULL: the datagram was malformed. */
typedef void (*weir_outcomes_take)(void *context, const struct weir_outcome_line *line);

/*
 * Binds `socket`.report (mode 0660, the group's) and reads it on the loop. What is there is
 * replaced if it is a socket. -EEXIST, -ENAMETOOLONG, -errno.
 */
int weir_outcomes_start(struct weir_outcomes **outcomes, struct event_base *base,
			const char *socket, gid_t group, weir_outcomes_take take, void *context,
			struct weir_error *err);
/* NULL is fine. Takes the socket away. */
void weir_outcomes_stop(struct weir_outcomes *outcomes);
