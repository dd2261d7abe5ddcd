/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A parsed frame on its way: lists, match, limits, counts. The entry points in weir.bpf.c only
 * fetch what their hook knows and call weir_process.
 */
#pragma once

#include "admit.bpf.h"
#include "clock.bpf.h"
#include "event.bpf.h"
#include "match.bpf.h"

static __always_inline uint32_t weir_interface_slot(uint32_t ifindex)
{
	uint32_t key = ifindex & (WEIR_INTERFACE_LINES - 1);
	const struct weir_interface_line *line = bpf_map_lookup_elem(&weir_interfaces, &key);

	if (!line)
		return 0;
	return (line->ifindex[0] == ifindex ? line->slot[0] : line->slot[1]) &
	       (WEIR_INTERFACES_MAX - 1);
}

/* Whether one limit lets the packet pass; counts it at that limit. */
__noinline int weir_limit_passes(struct weir_context *context, uint32_t index)
{
	struct weir_totals *totals;
	struct weir_limit *limit;
	uint32_t packets;
	int answer;

	if (!context)
		return 1;
	limit = weir_limit_at(context, index);
	if (!limit)
		return 1;
	totals = weir_totals_at(context, limit);
	if (!totals)
		return 1;
	packets = context->packet.packets;
	answer = weir_bucket_take_packet(context, limit, index);
	if (answer == WEIR_UNTRACKED) {
		totals->untracked_packets += packets;
		answer = limit->flags & WEIR_LIMIT_UNTRACKED_DROPS ? WEIR_REFUSED : WEIR_ADMITTED;
	}
	totals->new_keys += answer == WEIR_NEW;
	totals->contended_packets += answer == WEIR_AGAIN;
	if (answer <= WEIR_NEW) {
		totals->passed_packets += packets;
		totals->passed_bytes += context->packet.bytes;
		return 1;
	}
	if (limit->flags & WEIR_LIMIT_MONITOR) {
		totals->would_refuse_packets += packets;
		return 1;
	}
	totals->refused_packets += packets;
	totals->refused_bytes += context->packet.bytes;
	context->refused_by = limit->slot;
	return 0;
}

/* 1: pass, 0: refuse. context->packet is parsed. */
static __always_inline int weir_process(struct weir_context *context, enum weir_parsed parsed)
{
	uint32_t zero = 0;
	const struct weir_switch *active = bpf_map_lookup_elem(&weir_switch, &zero);
	const struct weir_policy_head *head;

	context->interface = weir_interface_slot(context->ifindex);
	if (parsed != WEIR_PARSED || !active) {
		weir_count_path(context, parsed == WEIR_EXEMPT ? WEIR_PATH_EXEMPT :
					 parsed == WEIR_NOT_IP ? WEIR_PATH_NOT_IP :
								 WEIR_PATH_MALFORMED);
		return 1;
	}
	context->generation = active->generation & 1;
	head = bpf_map_lookup_elem(&weir_policy, &context->generation);
	if (!head)
		return 1;
	weir_match(context, head);
	if (!weir_bitmap_any(&context->limits)) {
		weir_count_path(context, WEIR_PATH_UNMATCHED);
		return 1;
	}
	context->now_ns = weir_now_ns();
	context->now_ticks = context->now_ns << WEIR_TICK_SHIFT;
	weir_count_path(context, WEIR_PATH_LIMITS);
	if (weir_limit_passes(context, 0))
		return 1;
	weir_count_path(context, WEIR_PATH_REFUSED);
	weir_event_refused(context, head->sample_ns, context->refused_by, 0);
	return 0;
}
