/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The programs that watch sockets (bpf/connections.bpf.c): which connections are inside the
 * gates. Wanted as soon as a policy has a gate, and kept until the data plane goes: who entered
 * must be seen leaving. Their link is pinned beside the maps, so counting goes on while the
 * controller is down, and a start replaces them without a gap.
 *
 * Connections count whose accepting sockets are in the network namespace of the caller of
 * weir_connections_open, which is that of the interfaces; and those of other namespaces of the
 * host whose SYN passed a gate here on its way to them. The end that connects never counts.
 */
#pragma once

#include "controller/error.h"
#include "controller/generation.h"
#include "controller/load.h"

struct weir_connections;

/* After weir_load_publish. On an error nothing is attached that was not before. */
int weir_connections_open(struct weir_connections **connections, const struct weir_load *load,
			  struct weir_generation *generation, struct weir_error *err);

/* NULL is fine. The programs stay attached as long as their pin is there. */
void weir_connections_close(struct weir_connections *connections);

/*
 * Watches the payload of services' connections too, for their exchanges, at the root of the
 * cgroup v2 tree as this process sees it: sockets of processes outside it are not seen. Once.
 */
int weir_connections_watch_payload(struct weir_connections *connections,
				   const struct weir_load *load, struct weir_error *err);

struct weir_recounted {
	uint64_t adopted; /* gates entered by connections that were open before they mattered */
	uint64_t healed;  /* places that were held by nobody, or by somebody uncounted */
};

/*
 * Counts every connection anew and corrects the gates where the count is off. Connections that
 * come and go meanwhile are not lost. After a change of policy, and from time to time. Takes
 * some 2 us a socket, 40 ns a set of the ledger and 0.1 us a key: 0.26 s with 100,000 connections
 * from 50,000 addresses, at a load of 9 (scripts/bench.sh services). -ENOSPC where more keys are
 * inside than a recount has room for: new connections were entered, but nothing was healed.
 */
int weir_connections_recount(struct weir_connections *connections,
			     struct weir_recounted *recounted, struct weir_error *err);

/* Totals of all gates since the maps were made. */
struct weir_connection_counts weir_connections_counts(const struct weir_connections *connections);
