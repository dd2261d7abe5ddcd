// SPDX-License-Identifier: GPL-2.0
/* The programs' entry points. */
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "hooks.bpf.h"

char LICENSE[] SEC("license") = "GPL";

SEC("xdp.frags")
int weir_xdp(struct xdp_md *ctx)
{
	return weir_xdp_verdict(ctx);
}

SEC("tc")
int weir_ingress(struct __sk_buff *ctx)
{
	return weir_tc_verdict(ctx, WEIR_HOOK_TC_INGRESS);
}

SEC("tc")
int weir_egress(struct __sk_buff *ctx)
{
	return weir_tc_verdict(ctx, WEIR_HOOK_TC_EGRESS);
}
