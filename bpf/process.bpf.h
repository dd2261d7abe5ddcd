/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A parsed frame on its way: lists, match, limits, counts. The entry points in weir.bpf.c only
 * fetch what their hook knows and call weir_process.
 */
#pragma once

#include "admit.bpf.h"
#include "clock.bpf.h"
#include "event.bpf.h"
#include "lists.bpf.h"
#include "match.bpf.h"
#include "service.bpf.h"

/*
 * In generic mode the stack may hand over many packets of a flow as one frame and not say so.
 * One that is longer than the wire carries is cut up in thought, each part with its headers.
 */
static __always_inline void weir_count_segments(struct weir_packet *packet, uint32_t frame_bytes)
{
	uint32_t payload, part;

	if (packet->header_bytes >= frame_bytes || packet->header_bytes >= packet->bytes)
		return;
	payload = packet->bytes - packet->header_bytes;
	part = frame_bytes - packet->header_bytes;
	packet->packets = (payload + part - 1) / part;
	packet->bytes = payload + packet->packets * packet->header_bytes;
}

/* Returns the longest frame of the wire there, 0 where that isn't known. */
static __always_inline uint32_t weir_find_interface(struct weir_context *context)
{
	const struct weir_interface_line *line;
	uint32_t second;

	line = &weir_board.interfaces[context->ifindex & (WEIR_INTERFACE_LINES - 1)];
	second = line->ifindex[0] != context->ifindex;
	context->interface = line->slot[second & 1];
	return line->frame_bytes[second & 1];
}

static __always_inline void weir_count_passed(struct weir_totals *totals,
					      const struct weir_packet *packet)
{
	totals->passed_packets += packet->packets;
	totals->passed_bytes += packet->bytes;
}

/* A passage that was counted, of a packet that another limit refused after all. */
static __always_inline void weir_count_back(struct weir_totals *totals,
					    const struct weir_packet *packet)
{
	totals->passed_packets -= packet->packets;
	totals->passed_bytes -= packet->bytes;
}

/* A refusal counted at its limit; true where it is only monitored, so that the packet passes. */
static __always_inline bool weir_count_refused(struct weir_cpu *cpu, struct weir_context *context,
					       const struct weir_limit *limit, int answer)
{
	struct weir_totals *totals = weir_totals_at(cpu, limit);
	uint32_t packets = context->packet.packets;

	context->refused_by = limit->slot;
	if (answer != WEIR_REFUSED) {
		totals->contended_packets += answer == WEIR_AGAIN ? packets : 0;
		totals->banned_packets += answer == WEIR_BANNED ? packets : 0;
	}
	context->would = limit->flags & WEIR_LIMIT_MONITOR;
	context->reset = limit->flags & WEIR_LIMIT_RESET;
	if (context->would) {
		totals->would_refuse_packets += packets;
		return true;
	}
	if (limit->ban_after && !(limit->flags & WEIR_LIMIT_BLOCK) && !weir_ban_strike(context))
		totals->unbanned_packets += packets;
	totals->refused_packets += packets;
	totals->refused_bytes += context->packet.bytes;
	return false;
}

/* The ledger is asked, and its answer counted: 1 if the packet passes as far as it goes. */
__noinline int weir_limit_ask(struct weir_context *context)
{
	struct weir_totals *totals;
	struct weir_limit *limit;
	struct weir_cpu *cpu;
	uint32_t mode;
	int answer;

	if (!context)
		return 1;
	cpu = weir_cpu_at(context->cpu);
	if (!cpu)
		return 1;
	limit = weir_limit_at(context->generation, context->charge.limit);
	totals = weir_totals_at(cpu, limit);
	mode = context->charge.mode;
	answer = weir_ledger_answer(cpu, context, limit);
	if (mode == WEIR_BACK) {
		weir_count_back(totals, &context->packet);
		return 1;
	}
	if (answer == WEIR_UNTRACKED) {
		answer = limit->flags & WEIR_LIMIT_UNTRACKED_DROPS ? WEIR_REFUSED : WEIR_ADMITTED;
		if (mode == WEIR_TAKE || answer == WEIR_REFUSED)
			totals->untracked_packets += context->packet.packets;
	}
	if (answer > WEIR_NEW)
		return weir_count_refused(cpu, context, limit, answer);
	if (mode == WEIR_CHECK)
		return 1;
	totals->new_keys += answer == WEIR_NEW;
	weir_count_passed(totals, &context->packet);
	return 1;
}

/*
 * One matching limit whose charge is prepared, in one of the modes of enum weir_mode; 1: as far
 * as it goes, the packet passes. A refusal is counted at the limit, a passage only when it is
 * taken for good.
 */
static __always_inline int weir_limit_step(struct weir_cpu *cpu, struct weir_context *context,
					   uint32_t index, uint32_t mode)
{
	const struct weir_limit *limit = weir_limit_at(context->generation, index);
	int answer = weir_quick_answer(context, limit);

	if (answer == WEIR_AGAIN)
		return weir_limit_ask(context);
	if (answer > WEIR_NEW)
		return weir_count_refused(cpu, context, limit, answer);
	if (mode == WEIR_TAKE)
		weir_count_passed(weir_totals_at(cpu, limit), &context->packet);
	if (mode == WEIR_BACK)
		weir_count_back(weir_totals_at(cpu, limit), &context->packet);
	return 1;
}

/* ---- several limits: check all, then take from all, give back on a lost race ---- */

/* The next limit of context->left: 1 where there is none, or where it refuses. */
static int weir_walk_turn(uint32_t turn __attribute__((unused)), struct weir_context **pointer)
{
	struct weir_context *context = *pointer;
	struct weir_cpu *cpu = weir_cpu_at(context->cpu);
	const struct weir_limit *limit;
	uint32_t index, word, would = context->would;
	uint64_t left;
	bool skipped;

	if (!cpu)
		return 1;
	for (word = 0; word < WEIR_BITMAP_WORDS - 1; word++)
		if (context->left.word[word])
			break;
	left = context->left.word[word];
	if (!left)
		return 1;
	index = word * 64 + weir_lowest_bit(left);
	limit = weir_limit_at(context->generation, index);
	skipped = context->mode == WEIR_CHECK && limit->flags & WEIR_LIMIT_MONITOR;
	context->would = 0;
	if (!skipped)
		weir_charge_prepare(context, limit, index, context->mode);
	if (!skipped && !weir_limit_step(cpu, context, index, context->mode))
		return 1;
	context->left.word[word] = left & (left - 1);
	/* A limit in monitor mode that would refuse has charged nothing. */
	if (!context->would)
		context->done.word[word] |= left & (0 - left);
	context->would |= would;
	return 0;
}

/* Whether all matching limits pass in this mode. */
static __always_inline bool weir_walk(struct weir_context *context, uint32_t limits, uint32_t mode)
{
	context->mode = mode;
	bpf_loop(limits + 1, weir_walk_turn, &context, 0);
	return !weir_bitmap_any(&context->left);
}

static __always_inline bool weir_several_pass(struct weir_context *context, uint32_t limits)
{
	context->left = context->limits;
	if (!weir_walk(context, limits, WEIR_CHECK))
		return false;
	context->left = context->limits;
	context->done = (struct weir_bitmap){ 0 };
	if (weir_walk(context, limits, WEIR_TAKE))
		return true;
	context->left = context->done;
	weir_walk(context, limits, WEIR_BACK);
	return false;
}

/* The index of the only limit that matches, or WEIR_LIMITS_MAX where there are several. */
static __always_inline uint32_t weir_only_limit(const struct weir_bitmap *bitmap)
{
	uint32_t words = 0, word = 0;

	for (uint32_t i = 0; i < WEIR_BITMAP_WORDS; i++) {
		if (!bitmap->word[i])
			continue;
		words++;
		word = i;
	}
	if (words != 1 || bitmap->word[word] & (bitmap->word[word] - 1))
		return WEIR_LIMITS_MAX;
	return word * 64 + weir_lowest_bit(bitmap->word[word]);
}

static __always_inline void weir_read_clock(struct weir_context *context)
{
	if (!context->now_ns)
		context->now_ns = weir_now_ns();
	context->now_ticks = context->now_ns << WEIR_TICK_SHIFT;
}

static __always_inline int weir_limits_pass(struct weir_cpu *cpu, struct weir_context *context,
					    uint32_t limits)
{
	uint32_t only = weir_only_limit(&context->limits);

	if (only >= WEIR_LIMITS_MAX) {
		weir_read_clock(context);
		return weir_several_pass(context, limits);
	}
	weir_charge_prepare(context, weir_limit_at(context->generation, only), only, WEIR_TAKE);
	weir_read_clock(context);
	return weir_limit_step(cpu, context, only, WEIR_TAKE);
}

/* The allow and deny lists; the path that counts it, or WEIR_PATH_LIMITS where unlisted. */
static __always_inline enum weir_path weir_listed(struct weir_context *context)
{
	const struct weir_packet *packet = &context->packet;
	uint32_t used = context->lists;

	if (!used)
		return WEIR_PATH_LIMITS;
	if (weir_lists_used(packet, used, WEIR_LIST_ALLOW4, WEIR_LIST_ALLOW6) &&
	    weir_is_allowed(packet))
		return WEIR_PATH_ALLOWED;
	if (weir_lists_used(packet, used, WEIR_LIST_DENY4, WEIR_LIST_DENY6) &&
	    weir_is_denied(packet))
		return WEIR_PATH_DENIED;
	return WEIR_PATH_LIMITS;
}

/* What becomes of a parsed frame, and of an IP packet what its limits say. */
static __always_inline enum weir_path weir_path_of(struct weir_cpu *cpu,
						  struct weir_context *context, int parsed)
{
	const struct weir_policy_head *head;
	enum weir_path path;

	if (parsed != WEIR_PARSED)
		return parsed == WEIR_EXEMPT ? WEIR_PATH_EXEMPT :
		       parsed == WEIR_NOT_IP ? WEIR_PATH_NOT_IP :
					       WEIR_PATH_MALFORMED;
	context->generation = weir_board.active.generation & 1;
	head = &weir_board.policy[context->generation];
	path = weir_listed(context);
	if (path != WEIR_PATH_LIMITS)
		return path;
	if (head->services &&
	    weir_service_may_begin(head, context->packet.protocol, context->packet.tcp_flags) &&
	    !weir_service_passes(context))
		return WEIR_PATH_REFUSED;
	weir_match(context, head);
	if (!weir_bitmap_any(&context->limits))
		return WEIR_PATH_UNMATCHED;
	return weir_limits_pass(cpu, context, head->limits) ? WEIR_PATH_LIMITS : WEIR_PATH_REFUSED;
}

/* The CPU's context, ready for a packet at a hook. */
static __always_inline struct weir_context *weir_context_open(struct weir_cpu *cpu,
							      uint32_t number, uint32_t hook,
							      uint32_t ifindex)
{
	struct weir_context *context = (struct weir_context *)cpu->scratch;

	context->now_ns = 0;
	context->lists = weir_board.lists_live.used;
	context->cpu = number;
	context->hook = hook;
	context->ifindex = ifindex;
	context->refused_by = WEIR_NO_LIMIT;
	context->would = 0;
	context->reset = 0;
	return context;
}

/* 1: pass, 0: refuse. context->packet is parsed. */
static __always_inline int weir_process(struct weir_cpu *cpu, struct weir_context *context,
					int parsed)
{
	enum weir_path path;

	path = weir_path_of(cpu, context, parsed);
	weir_count_path(cpu, context, path);
	if (path != WEIR_PATH_REFUSED && path != WEIR_PATH_DENIED && !context->would)
		return 1;
	weir_read_clock(context);
	weir_event_refused(cpu, context, weir_board.policy[context->generation & 1].sample_ns);
	return path != WEIR_PATH_REFUSED && path != WEIR_PATH_DENIED;
}
