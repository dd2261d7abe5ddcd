/* SPDX-License-Identifier: GPL-2.0 */
/* Sampled refusals: at most one a CPU every sample_ns, each with the number left out. */
#pragma once

#include "context.bpf.h"

static __always_inline void weir_event_fill(struct weir_event *event,
					    const struct weir_context *context, uint16_t slot)
{
	const struct weir_packet *packet = &context->packet;

	__builtin_memset(event, 0, sizeof(*event));
	event->now_ns = context->now_ns;
	if (packet->family == 6) {
		__builtin_memcpy(event->source, packet->source, sizeof(event->source));
		__builtin_memcpy(event->destination, packet->destination,
				 sizeof(event->destination));
	} else {
		event->source[0] = packet->source[0];
		event->destination[0] = packet->destination[0];
	}
	event->ifindex = context->ifindex;
	event->bytes = packet->bytes;
	event->source_port = packet->source_port;
	event->destination_port = packet->destination_port;
	event->slot = slot;
	event->family = packet->family;
	event->protocol = packet->protocol;
	event->hook = context->hook;
}

static __noinline void weir_event_send(const struct weir_context *context,
				       struct weir_sampler *sampler)
{
	struct weir_event *event = bpf_ringbuf_reserve(&weir_events, sizeof(*event), 0);

	if (!event) {
		sampler->lost++;
		sampler->suppressed++;
		return;
	}
	weir_event_fill(event, context, context->refused_by);
	event->suppressed = sampler->suppressed;
	event->would = context->would;
	sampler->suppressed = 0;
	bpf_ringbuf_submit(event, 0);
}

/* A refusal by context->refused_by. */
static __always_inline void weir_event_refused(struct weir_cpu *cpu,
					       const struct weir_context *context,
					       uint64_t sample_ns)
{
	struct weir_sampler *sampler = &cpu->sampler;

	if (context->now_ns < sampler->next_ns) {
		sampler->suppressed++;
		return;
	}
	sampler->next_ns = context->now_ns + sample_ns;
	weir_event_send(context, sampler);
}
