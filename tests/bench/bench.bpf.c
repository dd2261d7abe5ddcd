// SPDX-License-Identifier: GPL-2.0
/*
 * What weir is measured against, and weir itself. Every program first takes the next source
 * address of the sequence and writes it into the frame, so that this costs all of them the same:
 *
 *	bench_drop	nothing else
 *	bench_parse	Ethernet, IPv4, UDP by the book, then drop
 *	bench_clock	the same and a read of the clock
 *	bench_list	parse and a look-up in weir's own allow list
 *	bench_textbook	the same and a limiter as everybody writes it: a GCRA in an LRU_HASH
 *	bench_weir	weir's own program, as bpf/weir.bpf.c has it
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <stdbool.h>
#include <stdint.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "bench.h"
#include "hooks.bpf.h"

char LICENSE[] SEC("license") = "GPL";

uint32_t bench_sequence[BENCH_SEQUENCE];
struct bench_cursor bench_cursors[BENCH_CPUS];

struct weir_bucket_conf bench_conf;
struct bench_totals bench_totals[BENCH_CPUS];

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1); /* set at load: as many as weir has places */
	__type(key, uint32_t);
	__type(value, struct weir_bucket_state);
} bench_lru SEC(".maps");

static __always_inline void bench_next_source(struct xdp_md *ctx)
{
	struct bench_cursor *cursor = &bench_cursors[bpf_get_smp_processor_id() & (BENCH_CPUS - 1)];
	uint8_t *data = (uint8_t *)(long)ctx->data;
	uint8_t *end = (uint8_t *)(long)ctx->data_end;
	uint64_t at = cursor->next++ & (BENCH_SEQUENCE - 1);

	if (data + BENCH_SOURCE_OFFSET + sizeof(uint32_t) <= end)
		*(uint32_t *)(data + BENCH_SOURCE_OFFSET) = bench_sequence[at];
}

/* The source of an IPv4 UDP frame, in network order; false for every other frame. */
static __always_inline bool bench_parse_source(struct xdp_md *ctx, uint32_t *source)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const struct ethhdr *eth = data;
	const struct iphdr *ip = data + sizeof(*eth);
	const struct udphdr *udp = data + sizeof(*eth) + sizeof(*ip);

	if ((const void *)(udp + 1) > end || eth->h_proto != bpf_htons(ETH_P_IP) || ip->ihl != 5 ||
	    ip->protocol != IPPROTO_UDP || !udp->dest)
		return false;
	*source = ip->saddr;
	return true;
}

SEC("xdp")
int bench_drop(struct xdp_md *ctx)
{
	bench_next_source(ctx);
	return XDP_DROP;
}

SEC("xdp")
int bench_parse(struct xdp_md *ctx)
{
	uint32_t source;

	bench_next_source(ctx);
	return bench_parse_source(ctx, &source) && source ? XDP_DROP : XDP_PASS;
}

SEC("xdp")
int bench_clock(struct xdp_md *ctx)
{
	uint32_t source;

	bench_next_source(ctx);
	if (!bench_parse_source(ctx, &source) || !source)
		return XDP_PASS;
	return bpf_ktime_get_ns() ? XDP_DROP : XDP_PASS;
}

SEC("xdp")
int bench_list(struct xdp_md *ctx)
{
	struct weir_list4_key key = { .length = 32 };

	bench_next_source(ctx);
	if (!bench_parse_source(ctx, &key.address))
		return XDP_PASS;
	return bpf_map_lookup_elem(&weir_allow4, &key) ? XDP_DROP : XDP_PASS;
}

static __always_inline bool bench_textbook_admits(uint32_t source, uint64_t now_ticks)
{
	struct weir_bucket_state *state = bpf_map_lookup_elem(&bench_lru, &source);
	struct weir_bucket_state fresh;
	uint64_t cost = weir_bucket_cost(&bench_conf, 1), tat, next;

	if (!state) {
		if (!weir_bucket_step(0, &bench_conf, now_ticks, cost, &fresh.tat))
			return false;
		bpf_map_update_elem(&bench_lru, &source, &fresh, BPF_ANY);
		return true;
	}
	tat = state->tat;
	if (!weir_bucket_step(tat, &bench_conf, now_ticks, cost, &next))
		return false;
	__sync_val_compare_and_swap(&state->tat, tat, next);
	return true;
}

SEC("xdp")
int bench_textbook(struct xdp_md *ctx)
{
	struct bench_totals *totals = &bench_totals[bpf_get_smp_processor_id() & (BENCH_CPUS - 1)];
	uint32_t source;

	bench_next_source(ctx);
	if (!bench_parse_source(ctx, &source))
		return XDP_PASS;
	if (bench_textbook_admits(source, bpf_ktime_get_ns() << WEIR_TICK_SHIFT)) {
		totals->passed++;
		return XDP_PASS;
	}
	totals->refused++;
	return XDP_DROP;
}

SEC("xdp")
int bench_weir(struct xdp_md *ctx)
{
	bench_next_source(ctx);
	return weir_xdp_verdict(ctx, true);
}
