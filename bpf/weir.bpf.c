// SPDX-License-Identifier: GPL-2.0
/* The programs' entry points. */
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>
#include <bpf/bpf_helpers.h>

#include "xdp.bpf.h"

char LICENSE[] SEC("license") = "GPL";

SEC("xdp")
int weir_xdp(struct xdp_md *ctx)
{
	return weir_xdp_verdict(ctx);
}
