/* SPDX-License-Identifier: GPL-2.0 */
/* What each hook knows of a packet, and how it says no. Included by entry points only. */
#pragma once

#include "plain.bpf.h"
#include "process.bpf.h"
#include "reset.bpf.h"

/* A function of its own, so that the verifier walks the parser's branches once. */
__noinline int weir_parse_xdp(struct xdp_md *ctx, struct weir_context *context)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	if (!context)
		return WEIR_MALFORMED;
	context->packet.bytes = (long)end - (long)data;
	context->packet.packets = 1;
	return weir_packet_parse(&context->packet, data, end, WEIR_NO_VLAN);
}

/* The kernel looks at the code, not at what is run: `answers` is known when it is compiled. */
static __always_inline int weir_xdp_verdict(struct xdp_md *ctx, bool answers)
{
	uint32_t number = bpf_get_smp_processor_id();
	struct weir_cpu *cpu = weir_cpu_at(number);
	struct weir_context *context;
	enum weir_plain plain;
	uint32_t frame_bytes;
	int parsed;

	if (!cpu)
		return XDP_PASS;
	plain = weir_plain_verdict(ctx, cpu, number);
	if (plain < WEIR_PLAIN_NOT)
		return plain == WEIR_PLAIN_PASSED ? XDP_PASS : XDP_DROP;
	context = weir_context_open(cpu, number, WEIR_HOOK_XDP, ctx->ingress_ifindex);
	if (plain == WEIR_PLAIN_UNLISTED)
		context->lists = 0;
	parsed = weir_parse_xdp(ctx, context);
	frame_bytes = weir_find_interface(context);
	if (frame_bytes) {
		context->packet.bytes = bpf_xdp_get_buff_len(ctx);
		if (context->packet.bytes > frame_bytes)
			weir_count_segments(&context->packet, frame_bytes);
	}
	if (weir_process(cpu, context, parsed))
		return XDP_PASS;
	return answers && context->reset ? weir_reset(ctx, context) : XDP_DROP;
}

/*
 * What of an skb must lie in one piece to be read; and where that does not reach to the upper
 * header, for tags and extension headers before it.
 */
#define WEIR_PULL_BYTES 256
#define WEIR_PULL_LONG 1536
#define WEIR_UPPER_BYTES 54 /* a header of IPv6, and of TCP to the flags */

#define WEIR_TAG_BYTES 4

/* Whether the upper header was there to be read. */
static __always_inline bool weir_upper_is_read(const struct weir_packet *packet)
{
	if (packet->protocol == WEIR_IP_TCP)
		return packet->has & WEIR_HAS_TCP_FLAGS;
	return packet->has & (WEIR_HAS_PORTS | WEIR_HAS_ICMP_TYPE);
}

/*
 * Wire packets in an skb, and their bytes: the headers are there once, a tag in the metadata
 * not at all. An skb from a guest may say how long its segments are but not how many.
 */
static __always_inline void weir_count_skb(struct weir_packet *packet, uint32_t length,
					   uint32_t segments, uint32_t segment_bytes, bool tagged)
{
	if (!segments && segment_bytes && length > packet->header_bytes)
		segments = (length - packet->header_bytes + segment_bytes - 1) / segment_bytes;
	packet->packets = segments ? segments : 1;
	packet->bytes = length + (packet->packets - 1) * packet->header_bytes;
	if (tagged)
		packet->bytes += packet->packets * WEIR_TAG_BYTES;
}

/* What lies in one piece, with a tag that the skb knows of and the frame doesn't. */
__noinline int weir_parse_linear(struct __sk_buff *ctx, struct weir_context *context)
{
	uint16_t vlan = ctx->vlan_present ? ctx->vlan_tci & 0x0fff : WEIR_NO_VLAN;

	if (!context)
		return WEIR_MALFORMED;
	return weir_packet_parse_as(&context->packet, (void *)(long)ctx->data,
				    (void *)(long)ctx->data_end, vlan,
				    bpf_ntohs((uint16_t)ctx->protocol));
}

static __always_inline int weir_pull_and_parse(struct __sk_buff *ctx, struct weir_context *context,
					       uint32_t bytes)
{
	bpf_skb_pull_data(ctx, ctx->len < bytes ? ctx->len : bytes);
	return weir_parse_linear(ctx, context);
}

static __always_inline int weir_parse_skb(struct __sk_buff *ctx, struct weir_context *context)
{
	uint32_t linear = ctx->data_end - ctx->data;
	int parsed = weir_parse_linear(ctx, context);

	if (linear < ctx->len && !weir_upper_is_read(&context->packet)) {
		if (linear < WEIR_PULL_BYTES)
			parsed = weir_pull_and_parse(ctx, context, WEIR_PULL_BYTES);
		if (context->packet.header_bytes + WEIR_UPPER_BYTES > WEIR_PULL_BYTES &&
		    !weir_upper_is_read(&context->packet))
			parsed = weir_pull_and_parse(ctx, context, WEIR_PULL_LONG);
	}
	weir_count_skb(&context->packet, ctx->len, ctx->gso_segs, ctx->gso_size, ctx->vlan_present);
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
