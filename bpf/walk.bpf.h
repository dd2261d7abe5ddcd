/* SPDX-License-Identifier: GPL-2.0 */
/* What is done about a socket that opens, and about each one on a walk over all of them. */
#pragma once

#include "connections.bpf.h"

enum {
	WEIR_TCP_ESTABLISHED = 1,
	WEIR_TCP_SYN_SENT = 2,
	WEIR_TCP_SYN_RECV = 3,
	WEIR_TCP_TIME_WAIT = 6,
	WEIR_TCP_CLOSE = 7,
	WEIR_TCP_LISTEN = 10,
	WEIR_TCP_NEW_SYN_RECV = 12,
};

/* Whether a TCP state is a connection's that was opened and is not closed yet. */
static __always_inline bool weir_is_open(uint8_t state)
{
	return state != WEIR_TCP_LISTEN && state != WEIR_TCP_CLOSE && state != WEIR_TCP_SYN_SENT &&
	       state != WEIR_TCP_SYN_RECV && state != WEIR_TCP_TIME_WAIT &&
	       state != WEIR_TCP_NEW_SYN_RECV;
}

static __always_inline void weir_accepted(struct sock *sk)
{
	uint32_t key = WEIR_SCRATCH_EVENT, walk = weir_board.where.walk, service, entered;
	struct weir_context *context = bpf_map_lookup_elem(&weir_socket_scratch, &key);
	struct weir_socket *socket;
	enum weir_whose whose;
	bool gates;

	if (!context)
		return;
	whose = weir_socket_look(context, &sk->__sk_common, &service);
	if (whose == WEIR_NOBODYS)
		return;
	gates = weir_socket_match(context);
	if (!gates && !service)
		return;
	socket = bpf_sk_storage_get(&weir_sockets, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!socket) {
		WEIR_CONNECTIONS_ADD(uncounted, 1);
		return;
	}
	if (!socket->gates)
		socket->walk = walk;
	socket->service = service;
	if (!gates)
		return;
	entered = weir_socket_enter(context, socket, walk, whose);
	WEIR_CONNECTIONS_ADD(entered, entered);
}

/* A socket goes from one TCP state to another. */
static __always_inline void weir_state_changed(struct sock *sk, int before, int after)
{
	struct weir_socket *socket;

	if (sk->sk_protocol != WEIR_IP_TCP)
		return;
	if (after == WEIR_TCP_ESTABLISHED) {
		if (before == WEIR_TCP_SYN_RECV)
			weir_accepted(sk);
		return;
	}
	socket = bpf_sk_storage_get(&weir_sockets, sk, 0, 0);
	if (!socket)
		return;
	weir_exchange_end(socket, false);
	weir_socket_leave(socket, weir_now_ns() << WEIR_TICK_SHIFT);
}

static __always_inline void weir_note_listener(uint16_t port)
{
	uint32_t index = port / 64;
	uint64_t *word = bpf_map_lookup_elem(&weir_listening, &index);

	if (word)
		__sync_fetch_and_or(word, 1ULL << (port & 63));
}

static __always_inline bool weir_is_listening(uint16_t port)
{
	uint32_t index = port / 64;
	const uint64_t *word = bpf_map_lookup_elem(&weir_listening, &index);

	return word && *word >> (port & 63) & 1;
}

/* Out of line: the verifier walks it once. */
__noinline int weir_recount_gates(const struct weir_socket *socket, uint64_t n)
{
	if (!socket)
		return 0;
	_Pragma("clang loop unroll(disable)")
	for (uint32_t i = 0; i < WEIR_SOCKET_GATES && i < socket->gates; i++)
		weir_recount_add(socket->gate[i].tag, n);
	return 0;
}

/* A connection that is open: counts it, and enters it where that has not been done. */
static __always_inline void weir_walked(struct weir_context *context, struct sock_common *common)
{
	struct weir_socket *socket = bpf_sk_storage_get(&weir_sockets, (void *)common, 0, 0);
	uint32_t walk = weir_board.where.walk, service, entered;
	bool gates;

	if (socket && socket->walk != walk) {
		weir_recount_gates(socket, 1);
		socket->walk = walk;
	}
	if (weir_socket_look(context, common, &service) != WEIR_OURS ||
	    !weir_is_listening(context->packet.destination_port))
		return;
	gates = weir_socket_match(context);
	if (!gates && !service)
		return;
	if (!socket) {
		socket = bpf_sk_storage_get(&weir_sockets, (void *)common, 0,
					    BPF_SK_STORAGE_GET_F_CREATE);
		if (!socket)
			return;
		socket->walk = walk;
	}
	if (!socket->started_ns)
		socket->service = service;
	if (!gates)
		return;
	entered = weir_socket_enter(context, socket, walk, WEIR_OURS);
	WEIR_CONNECTIONS_ADD(adopted, entered);
}

/*
 * Every TCP socket of a network namespace, listeners first; each is locked against events. A
 * connection is one that was accepted if somebody listens on its port.
 */
static __always_inline void weir_walk_over(struct sock_common *common)
{
	uint32_t key = WEIR_SCRATCH_WALK;
	struct weir_context *context;
	uint8_t state = common->skc_state;

	if (state == WEIR_TCP_LISTEN)
		weir_note_listener(common->skc_num);
	if (!weir_is_open(state))
		return;
	context = bpf_map_lookup_elem(&weir_socket_scratch, &key);
	if (context && weir_board.where.walk)
		weir_walked(context, common);
}

/*
 * A socket with storage, of any namespace, that no lock holds: the walk over a namespace's sockets
 * has done ours; one elsewhere counts, if it is inside. It may leave meanwhile: whoever changes
 * socket->walk first has it counted, or not.
 */
static __always_inline void weir_walked_elsewhere(struct sock *sk)
{
	uint32_t walk = weir_board.where.walk, before;
	struct weir_socket *socket;

	if (weir_is_counted_here(&sk->__sk_common))
		return;
	socket = bpf_sk_storage_get(&weir_sockets, sk, 0, 0);
	if (!socket)
		return;
	before = weir_once(socket->walk);
	if (!walk || before == walk || before == WEIR_WALK_GONE)
		return;
	weir_recount_gates(socket, 1);
	if (weir_swap(&socket->walk, before, walk) != before)
		weir_recount_gates(socket, -1ULL);
}
