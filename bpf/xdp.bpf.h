/* SPDX-License-Identifier: GPL-2.0 */
/* The XDP hook: what it knows of a frame, and what its verdicts are called. */
#pragma once

#include "process.bpf.h"

/* A function of its own, so that the verifier walks the parser's branches once. */
__noinline int weir_parse_xdp(struct xdp_md *ctx, struct weir_packet *packet)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	enum weir_parsed parsed;

	if (!packet)
		return WEIR_MALFORMED;
	parsed = weir_packet_parse(packet, data, end, WEIR_NO_VLAN);
	packet->bytes = (long)end - (long)data;
	packet->packets = 1;
	return parsed;
}

static __always_inline int weir_xdp_verdict(struct xdp_md *ctx)
{
	struct weir_context context = { .hook = WEIR_HOOK_XDP, .ifindex = ctx->ingress_ifindex };
	int parsed = weir_parse_xdp(ctx, &context.packet);

	context.cpu = bpf_get_smp_processor_id();
	return weir_process(&context, parsed) ? XDP_PASS : XDP_DROP;
}
