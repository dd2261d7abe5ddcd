/* SPDX-License-Identifier: GPL-2.0 */
/* A gate with real sockets, and what the ledger says of it: for the tests of connections. */
#pragma once

#include <CUnit/CUnit.h>

#include "controller/connections.h"
#include "controller/engine_internal.h"
#include "socket_lab.h"
#include "weir/pending.h"

#define NATIVE "  - {name: w0, mode: native}\n"
#define GATE(rest) "  - {name: conns, key: source, match: {proto: tcp, to_port: 8080}, " rest "}\n"

static struct sockets clients, servers;
static struct weir_engine *engine;

static inline int begin(const char *limits)
{
	struct weir_error err;
	int code;

	if (ends.listener < 0)
		sockets_open();
	lab_config(NATIVE, limits);
	code = lab_start(&engine, &err);
	if (code)
		fprintf(stderr, "%s\n", err.text);
	return code;
}

static inline void end(void)
{
	sockets_abort(&clients);
	sockets_abort(&servers);
	weir_engine_stop(engine, true);
	engine = NULL;
	sockets_shut();
}

/* Connections inside all gates, by the ledger. */
static inline uint64_t inside(void)
{
	const struct weir_dataplane *plane = weir_engine_dataplane(engine);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < plane->shape.sets * WEIR_WAYS; i++)
		sum += weir_gate_count(plane->ledger[i / WEIR_WAYS].state[i % WEIR_WAYS]);
	return sum;
}

/* Those that are expected, or what there is after `ms`. */
static inline uint64_t inside_soon(uint64_t expected, int ms)
{
	int64_t until = sockets_now_ms() + ms;

	while (inside() != expected && sockets_now_ms() < until)
		usleep(2000);
	return inside();
}

static inline uint64_t pending(void)
{
	const struct weir_dataplane *plane = weir_engine_dataplane(engine);
	struct timespec now;
	uint64_t sum = 0, ticks;

	clock_gettime(CLOCK_MONOTONIC, &now);
	ticks = ((uint64_t)now.tv_sec * WEIR_NS_PER_SEC + (uint64_t)now.tv_nsec)
		<< WEIR_TICK_SHIFT;
	for (uint32_t i = 0; i < plane->shape.sets * WEIR_WAYS; i++) {
		const struct weir_set *set = &plane->ledger[i / WEIR_WAYS];

		if (set->tag[i % WEIR_WAYS])
			sum += weir_pending_count(set->counts[i % WEIR_WAYS].passed,
						  weir_pending_slice(ticks));
	}
	return sum;
}

static inline void hold(unsigned int count)
{
	CU_ASSERT_EQUAL(sockets_try(&clients, "10.9.1.2", "10.9.1.1", count, count), count);
	sockets_accept(&servers);
	CU_ASSERT_EQUAL(inside_soon(count, 500), count);
}

/* Adds to what the ledger says is inside the only place that has anybody. */
static inline void tamper(int64_t more)
{
	int fd = bpf_map__fd(engine->load.skeleton->maps.weir_ledger);
	const struct weir_dataplane *plane = weir_engine_dataplane(engine);

	for (uint32_t i = 0; i < plane->shape.sets; i++) {
		struct weir_set set = plane->ledger[i];

		for (int way = 0; way < WEIR_WAYS; way++)
			set.state[way] += set.state[way] & WEIR_GATE_INSIDE ? (uint64_t)more : 0;
		if (memcmp(&set, &plane->ledger[i], sizeof(set)))
			bpf_map_update_elem(fd, &i, &set, BPF_ANY);
	}
}
