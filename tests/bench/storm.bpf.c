// SPDX-License-Identifier: GPL-2.0
/*
 * The sending side of tests/tools/storm.c, and what its receiving side is measured against:
 *
 *	storm_send	the next source into the frame, then out of an interface
 *	storm_drop	XDP_DROP
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <stdint.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

/* A prime above any number of sources: steps of it meet each source once a round. */
#define STORM_STEP 2654435761ULL

const volatile uint32_t storm_ifindex;
const volatile uint32_t storm_first; /* address, host order */
const volatile uint32_t storm_sources = 1;
const volatile uint32_t storm_sum; /* of the IPv4 header's words but source and checksum */

uint64_t storm_sent;

SEC("xdp")
int storm_send(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct iphdr *ip = data + sizeof(struct ethhdr);
	uint32_t source, sum;

	if ((void *)(ip + 1) > end)
		return XDP_ABORTED;
	source = storm_first +
		 (uint32_t)(storm_sent++ % storm_sources * STORM_STEP % storm_sources);
	sum = storm_sum + (source >> 16) + (source & 0xffff);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	ip->saddr = bpf_htonl(source);
	ip->check = bpf_htons((uint16_t)~sum);
	return bpf_redirect(storm_ifindex, 0);
}

SEC("xdp")
int storm_drop(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_DROP;
}
