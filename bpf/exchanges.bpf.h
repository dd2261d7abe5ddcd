/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Exchanges of TCP services, by the payload that goes through each socket: see struct
 * weir_exchanges. In and out may come on two CPUs at once, so a socket's exchange begins
 * and ends by compare-and-swap, and each only once.
 */
#pragma once

#include "service.bpf.h"

static __always_inline uint64_t *weir_slice_at(struct weir_service_state *state, uint64_t number)
{
	return &state->slices[number & (WEIR_SERVICE_SLICES - 1)];
}

static __always_inline void weir_slice_begin(struct weir_service_state *state, uint64_t number)
{
	uint64_t *slice = weir_slice_at(state, number), word;

	_Pragma("clang loop unroll(disable)")
	for (int i = 0; i < 4; i++) {
		word = weir_once(*slice);
		if (word >> 32 == (number & 0xffffffff))
			break;
		weir_swap(slice, word, number << 32);
	}
	__sync_fetch_and_add(slice, 1);
	__sync_fetch_and_add(&state->in_flight, 1);
}

static __always_inline void weir_slice_end(struct weir_service_state *state, uint64_t number)
{
	uint64_t *slice = weir_slice_at(state, number), word = weir_once(*slice);

	if (word >> 32 == (number & 0xffffffff) && word & 0xffffffff)
		__sync_fetch_and_add(slice, -1);
	__sync_fetch_and_add(&state->in_flight, -1);
}

static __always_inline void weir_exchange_begin(struct weir_socket *socket)
{
	uint32_t index = socket->service - 1;
	struct weir_service_policy *service = bpf_map_lookup_elem(&weir_services, &index);
	struct weir_service_state *state = bpf_map_lookup_elem(&weir_service_states, &index);
	struct weir_exchanges *counts;
	uint64_t now_ns = weir_now_ns();

	counts = weir_exchanges_at(bpf_get_smp_processor_id(), index);
	if (!service || !state || !counts || weir_swap(&socket->started_ns, 0, now_ns))
		return;
	__sync_fetch_and_add(&counts->attempts, 1);
	weir_slice_begin(state, now_ns >> (service->slice_shift & 63));
}

static __always_inline void weir_exchange_succeeds(struct weir_exchanges *counts, uint64_t took_ns)
{
	uint32_t slot = weir_response_slot(took_ns);

	__sync_fetch_and_add(&counts->successes, 1);
	__sync_fetch_and_add(&counts->time_ns, took_ns);
	if (slot < WEIR_RESPONSE_SLOTS)
		__sync_fetch_and_add(&counts->times[slot], 1);
}

/* Whatever is going on is over: by an answer, or because the connection closes. */
static __always_inline void weir_exchange_end(struct weir_socket *socket, bool answered)
{
	uint64_t started_ns = weir_once(socket->started_ns), took_ns;
	uint32_t index = socket->service - 1;
	struct weir_exchanges *counts;
	struct weir_service_state *state;
	struct weir_service_policy *service;

	if (!started_ns || weir_swap(&socket->started_ns, started_ns, 0) != started_ns)
		return;
	service = bpf_map_lookup_elem(&weir_services, &index);
	state = bpf_map_lookup_elem(&weir_service_states, &index);
	counts = weir_exchanges_at(bpf_get_smp_processor_id(), index);
	if (!service || !state || !counts)
		return;
	took_ns = weir_now_ns() - started_ns;
	weir_slice_end(state, started_ns >> (service->slice_shift & 63));
	if (service->deadline_ns && took_ns > service->deadline_ns)
		__sync_fetch_and_add(&counts->late, 1);
	else if (answered)
		weir_exchange_succeeds(counts, took_ns);
	else
		__sync_fetch_and_add(&counts->failures, 1);
}

/* Bytes of TCP payload; 0 where that can't be told. The data begins at the IP header. */
static __always_inline uint32_t weir_payload_of(const struct __sk_buff *ctx)
{
	const uint8_t *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	uint32_t offset = 40, headers;
	const uint8_t *tcp;

	if (data + 40 > end)
		return 0;
	if (data[0] >> 4 == 4)
		offset = (data[0] & 0x0f) << 2;
	else if (data[6] != WEIR_IP_TCP)
		return 0;
	tcp = data + offset;
	/* The verifier must see one pointer checked and read. */
	__asm__ volatile("" : "+r"(tcp));
	if (tcp + 20 > end)
		return 0;
	headers = offset + (tcp[12] >> 4 << 2);
	return ctx->len > headers ? ctx->len - headers : 0;
}

static __always_inline void weir_payload(struct __sk_buff *ctx, bool in)
{
	struct bpf_sock *sk = ctx->sk;
	struct weir_socket *socket;

	if (!sk)
		return;
	sk = bpf_sk_fullsock(sk);
	if (!sk)
		return;
	socket = bpf_sk_storage_get(&weir_sockets, sk, 0, 0);
	if (!socket || !socket->service || (!in && !socket->started_ns) || !weir_payload_of(ctx))
		return;
	if (in)
		weir_exchange_begin(socket);
	else
		weir_exchange_end(socket, true);
}
