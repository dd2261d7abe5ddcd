// SPDX-License-Identifier: GPL-2.0
/* The programs that watch sockets: who is inside the gates, and exchanges of services. */
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "walk.bpf.h"

char LICENSE[] SEC("license") = "GPL";

SEC("tp_btf/inet_sock_set_state")
int weir_sock_state(const uint64_t *arguments)
{
	int after = arguments[2];

	if (after == WEIR_TCP_ESTABLISHED || after == WEIR_TCP_CLOSE)
		weir_state_changed((struct sock *)arguments[0], arguments[1], after);
	return 0;
}

SEC("iter/tcp")
int weir_walk_tcp(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;

	if (common)
		weir_walk_over(common);
	return 0;
}

/* Every socket that has storage of ours. */
SEC("iter/bpf_sk_storage_map")
int weir_walk_elsewhere(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct sock *sk = ctx->sk;

	if (sk)
		weir_walked_elsewhere(sk);
	return 0;
}

SEC("cgroup_skb/ingress")
int weir_payload_in(struct __sk_buff *ctx)
{
	weir_payload(ctx, true);
	return 1;
}

SEC("cgroup_skb/egress")
int weir_payload_out(struct __sk_buff *ctx)
{
	weir_payload(ctx, false);
	return 1;
}

/* Holds the recount against the ledger. */
SEC("syscall")
int weir_settle_ledger(struct weir_settle *settle)
{
	struct weir_settle here = { .heal = settle->heal };

	bpf_loop(settle->sets, weir_settle_turn, &here, 0);
	settle->keys = here.keys;
	return 0;
}
