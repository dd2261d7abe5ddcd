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
	return weir_xdp_verdict(ctx, true);
}

/*
 * The same without an answer to a refused SYN, for a dispatcher of libxdp that the kernel lets no
 * program into that may change packets. "?": loaded where it is asked for alone.
 */
SEC("?xdp.frags")
int weir_xdp_mute(struct xdp_md *ctx)
{
	return weir_xdp_verdict(ctx, false);
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
