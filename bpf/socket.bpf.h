/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What we read of the kernel's sockets: only these fields, found by name in the running
 * kernel's type information.
 */
#pragma once

#include "context.bpf.h"

#define WEIR_KERNEL_TYPE __attribute__((preserve_access_index))

struct ns_common {
	unsigned int inum;
} WEIR_KERNEL_TYPE;

struct net {
	struct ns_common ns;
} WEIR_KERNEL_TYPE;

typedef struct {
	struct net *net;
} WEIR_KERNEL_TYPE possible_net_t;

struct in6_addr {
	union {
		uint32_t u6_addr32[4];
	} in6_u;
} WEIR_KERNEL_TYPE;

struct sock_common {
	uint32_t skc_daddr;
	uint32_t skc_rcv_saddr;
	uint16_t skc_dport;
	uint16_t skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
} WEIR_KERNEL_TYPE;

struct sock {
	struct sock_common __sk_common;
	uint16_t sk_protocol;
} WEIR_KERNEL_TYPE;

struct tcp_sock;
struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
} WEIR_KERNEL_TYPE;

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
} WEIR_KERNEL_TYPE;

struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	struct sock *sk;
} WEIR_KERNEL_TYPE;

#define WEIR_AF_INET 2
#define WEIR_AF_INET6 10

static __always_inline bool weir_is_counted_here(const struct sock_common *common)
{
	return weir_board.where.netns == common->skc_net.net->ns.inum;
}

/*
 * The SYN that the connection came by, as far as the socket knows. IPv4 that comes to a socket
 * of IPv6 is IPv4. False for what is neither.
 */
static __always_inline bool weir_packet_of(struct weir_packet *packet,
					   const struct sock_common *common)
{
	uint16_t family = common->skc_family;

	*packet = (struct weir_packet){
		.source_port = bpf_ntohs(common->skc_dport),
		.destination_port = common->skc_num,
		.vlan = WEIR_NO_VLAN,
		.family = 4,
		.protocol = WEIR_IP_TCP,
		.tcp_flags = WEIR_TCP_SYN,
		.has = WEIR_HAS_PORTS | WEIR_HAS_TCP_FLAGS,
		.packets = 1,
	};
	packet->source[0] = common->skc_daddr;
	packet->destination[0] = common->skc_rcv_saddr;
	if (family == WEIR_AF_INET)
		return true;
	for (int i = 0; i < 4; i++) {
		packet->source[i] = common->skc_v6_daddr.in6_u.u6_addr32[i];
		packet->destination[i] = common->skc_v6_rcv_saddr.in6_u.u6_addr32[i];
	}
	if (!packet->source[0] && !packet->source[1] && packet->source[2] == bpf_htonl(0xffff)) {
		packet->source[0] = packet->source[3];
		packet->destination[0] = packet->destination[3];
		return true;
	}
	packet->family = 6;
	return family == WEIR_AF_INET6;
}
