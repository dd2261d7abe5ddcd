/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Newcomers of a service, before any limit: SYNs of a TCP service, all packets of a UDP one. A
 * breaker refuses a share of them but for a probe now and then, a shedder all of them while too
 * much is in flight. What the controller wants is in weir_services, and it is the service's word,
 * not a failure of the service.
 */
#pragma once

#include "clock.bpf.h"
#include "count.bpf.h"
#include "weir/ledger.h"

/* Index + 1 of the service at a port of this host, or 0. */
static __always_inline uint32_t weir_service_at_port(uint16_t port)
{
	uint32_t key = port / 4;
	const uint64_t *word = bpf_map_lookup_elem(&weir_service_ports, &key);

	return word ? weir_port_class(*word, port) : 0;
}

/* 1: the packet goes to one of the service's addresses. */
__noinline int weir_service_has(const struct weir_packet *packet, uint32_t index)
{
	struct weir_service_prefix key = { .service = (uint16_t)index };

	if (!packet)
		return 0;
	key.family = packet->family;
	key.length = WEIR_SERVICE_PREFIX_BITS + (packet->family == 6 ? 128 : 32);
	__builtin_memcpy(key.address, packet->destination, sizeof(key.address));
	return bpf_map_lookup_elem(&weir_service_prefixes, &key) != 0;
}

/* Whether a packet to one of its ports is the service's. */
static __always_inline bool weir_service_fits(const struct weir_service_policy *service,
					      const struct weir_packet *packet, uint32_t index)
{
	uint8_t protocol = packet->protocol == WEIR_IP_TCP ? WEIR_SERVICE_TCP : WEIR_SERVICE_UDP;

	return service->protocols & protocol &&
	       (!service->has_to || weir_service_has(packet, index));
}

static __always_inline struct weir_exchanges *weir_exchanges_at(uint32_t cpu,
									  uint32_t index)
{
	uint32_t key = cpu * WEIR_SERVICES_MAX + index;

	return bpf_map_lookup_elem(&weir_exchanges, &key);
}

/* Whether a packet can be a newcomer of a service at all. All others pay for this alone. */
static __always_inline bool weir_service_may_begin(const struct weir_policy_head *head,
						   uint8_t protocol, uint8_t tcp_flags)
{
	if (protocol == WEIR_IP_TCP)
		return head->services & WEIR_SERVICE_TCP &&
		       (tcp_flags & WEIR_TCP_BEGINS_MASK) == WEIR_TCP_SYN;
	return protocol == WEIR_IP_UDP && head->services & WEIR_SERVICE_UDP;
}

/* Whether a newcomer that a breaker would drop goes through as a probe. */
static __always_inline bool weir_service_probes(const struct weir_service_policy *service,
						struct weir_service_state *state, uint64_t now_ns)
{
	uint64_t last = weir_once(state->last_probe_ns);

	return service->probe_ns && now_ns - last >= service->probe_ns &&
	       weir_swap(&state->last_probe_ns, last, now_ns) == last;
}

/* Of a packet that may begin. 1: it passes as far as its service goes, if it has one. */
__noinline int weir_service_passes(struct weir_context *context)
{
	struct weir_exchanges *counts;
	struct weir_service_state *state;
	struct weir_service_policy *service;
	uint32_t index;

	if (!context || !(context->packet.has & WEIR_HAS_PORTS))
		return 1;
	index = weir_service_at_port(context->packet.destination_port);
	if (!index--)
		return 1;
	service = bpf_map_lookup_elem(&weir_services, &index);
	state = bpf_map_lookup_elem(&weir_service_states, &index);
	if (!service || !state || !(service->drop || service->ceiling))
		return 1;
	if (!weir_service_fits(service, &context->packet, index))
		return 1;
	counts = weir_exchanges_at(context->cpu, index);
	if (!counts)
		return 1;
	if (!context->now_ns)
		context->now_ns = weir_now_ns();
	if (context->now_ns >= service->until_ns)
		return 1;
	context->refused_by = WEIR_BY_SERVICE | index;
	if (service->ceiling && weir_once(state->in_flight) >= service->ceiling) {
		context->refused_by |= WEIR_BY_SHEDDER;
		__sync_fetch_and_add(&counts->shed, 1);
		return 0;
	}
	if (!service->drop || bpf_get_prandom_u32() >= service->drop)
		return 1;
	if (weir_service_probes(service, state, context->now_ns)) {
		__sync_fetch_and_add(&counts->probes, 1);
		return 1;
	}
	__sync_fetch_and_add(&counts->dropped, 1);
	return 0;
}
