/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ssh session that a change is typed in, and whether the change would cut it off. Held
 * against the compiled policy and the lists as they would be; no map is looked at, so what comes
 * of state (a bucket that others have emptied, a ban, a breaker) is not foreseen.
 *
 * It would be refused, by what is enforced and not only monitored, where
 *  - a packet of it is on the deny list and not on the allow list;
 *  - a limit that matches its packets, in or out, says `block`, or on average lets less than
 *    WEIR_SESSION_PPS packets or WEIR_SESSION_BYTES bytes a second pass;
 *  - a limit that matches its first packet (SYN) says `block`: one could not log in again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "controller/compile.h"
#include "controller/list_table.h"

/* Less than this is no session to work in: a key and its echo are two packets each way. */
#define WEIR_SESSION_PPS 10U
#define WEIR_SESSION_BYTES 1000U

struct weir_session {
	uint8_t family;	 /* 4 or 6 */
	uint8_t peer[16], own[16];
	uint16_t peer_port, own_port;
};

/* What sshd puts into SSH_CONNECTION: "client port server port". -EINVAL. */
int weir_session_parse(const char *text, struct weir_session *session, struct weir_error *err);

/*
 * Which of the policy's interfaces its packets cross: by[i] for interfaces[i]. The one that has
 * the session's own address, or those that it stands on (of a bridge, a bond, a VLAN). Where
 * nobody here has the address (it was translated on the way), all of them.
 */
void weir_session_interfaces(const struct weir_session *session, const struct weir_policy *policy,
			     bool *by);

/* What it is held against. */
struct weir_session_ground {
	const struct weir_policy *policy;
	const struct weir_compiled *compiled; /* NULL: the lists alone are looked at */
	int only; /* index of the one limit that changes, where nothing else does; -1 */
	const struct weir_list_table *allow, *deny;
	const uint32_t *slots; /* of the interfaces, as the policy was compiled with */
	const bool *by;
	uint64_t now_ns; /* CLOCK_MONOTONIC, by which list entries expire */
};

/* 0, or -ECONNABORTED: the sentence names what would refuse it, and says what to do. */
int weir_session_check(const struct weir_session *session,
		       const struct weir_session_ground *ground, struct weir_error *err);
