/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bans: a key that a limit refused ban_after times within ban_window is refused altogether at
 * that limit for ban_ticks; as many refusals again within the window extend it to a full term.
 * Limits without a ban pay nothing for it, those with one a look-up a packet.
 */
#pragma once

#include "ledger.bpf.h"

static __always_inline bool weir_ban_holds(const struct weir_context *context)
{
	const struct weir_ban *ban = bpf_map_lookup_elem(&weir_bans, &context->charge.tag);

	return ban && context->now_ticks < ban->until_ticks;
}

/* Refusals of a key in the window that they began; exact on one CPU, and on several but for
 * those at the very instant in which a window begins anew. */
static __always_inline uint64_t weir_strike(const struct weir_context *context,
					    const struct weir_limit *limit, const uint64_t *tag)
{
	struct weir_strikes begin = { .since_ticks = context->now_ticks, .count = 1 };
	struct weir_strikes *strikes;

	strikes = bpf_map_lookup_elem(&weir_strikes, tag);
	if (!strikes) {
		bpf_map_update_elem(&weir_strikes, tag, &begin, BPF_ANY);
		return 1;
	}
	if (context->now_ticks - strikes->since_ticks >= limit->ban_window_ticks) {
		strikes->since_ticks = context->now_ticks;
		strikes->count = 1;
		return 1;
	}
	return __sync_fetch_and_add(&strikes->count, 1) + 1;
}

/* Another refusal at a limit with a ban: false when a ban was due but there is no room. */
__noinline int weir_ban_strike(struct weir_context *context)
{
	struct weir_limit *limit;
	struct weir_ban ban = { 0 };
	uint64_t tag;

	if (!context)
		return 1;
	tag = context->charge.tag; /* on the stack: up to 6.1 a key can't lie in an argument */
	limit = weir_limit_at(context->generation, context->charge.limit);
	if (weir_strike(context, limit, &tag) < limit->ban_after)
		return 1;
	bpf_map_delete_elem(&weir_strikes, &tag);
	ban.until_ticks = context->now_ticks + limit->ban_ticks;
	weir_key_of(&context->key, limit, &context->packet);
	weir_record_fill(&ban.key, limit, &context->key);
	__builtin_memcpy(ban.peer, context->key.destination, sizeof(ban.peer));
	return !bpf_map_update_elem(&weir_bans, &tag, &ban, BPF_ANY);
}
