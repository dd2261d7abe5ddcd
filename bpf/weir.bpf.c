// SPDX-License-Identifier: GPL-2.0
/* The programs' entry points. */
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>
#include <bpf/bpf_helpers.h>

#include "process.bpf.h"

char LICENSE[] SEC("license") = "GPL";

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

SEC("xdp")
int weir_xdp(struct xdp_md *ctx)
{
	struct weir_context context = { .hook = WEIR_HOOK_XDP, .ifindex = ctx->ingress_ifindex };
	int parsed = weir_parse_xdp(ctx, &context.packet);

	context.cpu = bpf_get_smp_processor_id();
	return weir_process(&context, parsed) ? XDP_PASS : XDP_DROP;
}
