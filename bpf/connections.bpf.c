// SPDX-License-Identifier: GPL-2.0
/* The programs that watch sockets: who is inside the gates, and exchanges of services. */
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "connections.bpf.h"

char LICENSE[] SEC("license") = "GPL";

enum {
	WEIR_TCP_ESTABLISHED = 1,
	WEIR_TCP_SYN_SENT = 2,
	WEIR_TCP_SYN_RECV = 3,
	WEIR_TCP_TIME_WAIT = 6,
	WEIR_TCP_CLOSE = 7,
	WEIR_TCP_LISTEN = 10,
	WEIR_TCP_NEW_SYN_RECV = 12,
};

static __always_inline void weir_accepted(struct sock *sk)
{
	uint32_t key = WEIR_SCRATCH_EVENT, walk = weir_board.where.walk, service, entered;
	struct weir_context *context = bpf_map_lookup_elem(&weir_socket_scratch, &key);
	struct weir_socket *socket;
	bool gates;

	if (!context || !weir_socket_look(context, &sk->__sk_common, &service))
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
	entered = weir_socket_enter(context, socket, walk);
	WEIR_CONNECTIONS_ADD(entered, entered);
}

SEC("tp_btf/inet_sock_set_state")
int weir_sock_state(const uint64_t *arguments)
{
	struct sock *sk = (struct sock *)arguments[0];
	int before = arguments[1], after = arguments[2];
	struct weir_socket *socket;

	if (after != WEIR_TCP_ESTABLISHED && after != WEIR_TCP_CLOSE)
		return 0;
	if (sk->sk_protocol != WEIR_IP_TCP)
		return 0;
	if (after == WEIR_TCP_ESTABLISHED) {
		if (before == WEIR_TCP_SYN_RECV)
			weir_accepted(sk);
		return 0;
	}
	socket = bpf_sk_storage_get(&weir_sockets, sk, 0, 0);
	if (!socket)
		return 0;
	weir_exchange_end(socket, false);
	weir_socket_leave(socket, weir_now_ns() << WEIR_TICK_SHIFT);
	return 0;
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

/* A connection that is open: counts it, and enters it where that has not been done. */
static __always_inline void weir_walked(struct weir_context *context, struct sock_common *common)
{
	struct weir_socket *socket = bpf_sk_storage_get(&weir_sockets, (void *)common, 0, 0);
	uint32_t walk = weir_board.where.walk, service, entered;
	bool gates;

	if (socket && socket->walk != walk) {
		_Pragma("clang loop unroll(disable)")
		for (uint32_t i = 0; i < WEIR_SOCKET_GATES && i < socket->gates; i++)
			weir_recount_add(socket->gate[i].tag, 1);
		socket->walk = walk;
	}
	if (!weir_socket_look(context, common, &service) ||
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
	entered = weir_socket_enter(context, socket, walk);
	WEIR_CONNECTIONS_ADD(adopted, entered);
}

/*
 * Every TCP socket of a network namespace, listeners first; each is locked against events. A
 * connection is one that was accepted if somebody listens on its port.
 */
SEC("iter/tcp")
int weir_walk_tcp(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	uint32_t key = WEIR_SCRATCH_WALK;
	struct weir_context *context;
	uint8_t state;

	if (!common)
		return 0;
	state = common->skc_state;
	if (state == WEIR_TCP_LISTEN)
		weir_note_listener(common->skc_num);
	if (state == WEIR_TCP_LISTEN || state == WEIR_TCP_CLOSE || state == WEIR_TCP_SYN_SENT ||
	    state == WEIR_TCP_SYN_RECV || state == WEIR_TCP_TIME_WAIT ||
	    state == WEIR_TCP_NEW_SYN_RECV)
		return 0;
	context = bpf_map_lookup_elem(&weir_socket_scratch, &key);
	if (context && weir_board.where.walk)
		weir_walked(context, common);
	return 0;
}

SEC("cgroup_skb/ingress")
int weir_payload_in(struct __sk_buff *ctx)
{
	weir_payload(ctx, true);
	return 1;
}

SEC("cgroup_skb/egress")
int weir_payload_out(struct __sk_buff *ctx)
{
	weir_payload(ctx, false);
	return 1;
}

/* Holds the recount against the ledger. */
SEC("syscall")
int weir_settle_ledger(struct weir_settle *settle)
{
	struct weir_settle here = { .heal = settle->heal };

	bpf_loop(settle->sets, weir_settle_turn, &here, 0);
	settle->keys = here.keys;
	return 0;
}
