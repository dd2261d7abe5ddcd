/* SPDX-License-Identifier: GPL-2.0 */
/* What each hook knows of a packet, and how it says no. Included by entry points only. */
#pragma once

#include "process.bpf.h"
#include "reset.bpf.h"

static __always_inline int weir_parse_xdp(struct xdp_md *ctx, struct weir_context *context)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	context->packet.bytes = (long)end - (long)data;
	context->packet.packets = 1;
	return weir_packet_parse(&context->packet, data, end, WEIR_NO_VLAN);
}

/* Where all frames are shorter, each lies in one buffer, and asking costs nothing. */
#define WEIR_BUFFER_BYTES 3072

static __always_inline int weir_xdp_verdict(struct xdp_md *ctx)
{
	uint32_t number = bpf_get_smp_processor_id();
	struct weir_cpu *cpu = weir_cpu_at(number);
	struct weir_context *context;
	uint32_t frame_bytes;
	int parsed;

	if (!cpu)
		return XDP_PASS;
	context = weir_context_open(cpu, number, WEIR_HOOK_XDP, ctx->ingress_ifindex);
	parsed = weir_parse_xdp(ctx, context);
	frame_bytes = weir_find_interface(context);
	if (frame_bytes > WEIR_BUFFER_BYTES)
		context->packet.bytes = bpf_xdp_get_buff_len(ctx);
	if (frame_bytes && context->packet.bytes > frame_bytes)
		weir_count_segments(&context->packet, frame_bytes);
	if (weir_process(cpu, context, parsed))
		return XDP_PASS;
	return context->reset ? weir_reset(ctx, context) : XDP_DROP;
}

/* What of an skb must lie in one piece to be read. */
#define WEIR_PULL_BYTES 256

__noinline int weir_parse_skb(struct __sk_buff *ctx, struct weir_context *context)
{
	uint16_t vlan = ctx->vlan_present ? ctx->vlan_tci & 0x0fff : WEIR_NO_VLAN;
	uint32_t linear = ctx->data_end - ctx->data;
	struct weir_packet *packet;
	int parsed;

	if (!context)
		return WEIR_MALFORMED;
	packet = &context->packet;
	parsed = weir_packet_parse(packet, (void *)(long)ctx->data, (void *)(long)ctx->data_end, vlan);
	if (linear < ctx->len && linear < WEIR_PULL_BYTES &&
	    !(packet->has & (WEIR_HAS_PORTS | WEIR_HAS_ICMP_TYPE))) {
		bpf_skb_pull_data(ctx, ctx->len < WEIR_PULL_BYTES ? ctx->len : WEIR_PULL_BYTES);
		parsed = weir_packet_parse(packet, (void *)(long)ctx->data,
					   (void *)(long)ctx->data_end, vlan);
	}
	packet->packets = ctx->gso_segs ? ctx->gso_segs : 1;
	packet->bytes = ctx->len + (packet->packets - 1) * packet->header_bytes;
	return parsed;
}

/* TCX_NEXT and TC_ACT_UNSPEC alike: the programs and filters after us are asked too. */
#define WEIR_TC_PASS (-1)
#define WEIR_TC_REFUSE 2 /* TC_ACT_SHOT */

static __always_inline int weir_tc_verdict(struct __sk_buff *ctx, enum weir_hook hook)
{
	uint32_t number = bpf_get_smp_processor_id();
	struct weir_cpu *cpu = weir_cpu_at(number);
	struct weir_context *context;
	int parsed;

	if (!cpu)
		return WEIR_TC_PASS;
	context = weir_context_open(cpu, number, hook, ctx->ifindex);
	parsed = weir_parse_skb(ctx, context);
	weir_find_interface(context);
	return weir_process(cpu, context, parsed) ? WEIR_TC_PASS : WEIR_TC_REFUSE;
}
