/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The commonest packet under the commonest policy, without a call but for the clock's and
 * without writing down what was parsed: a plain IPv4 frame whose source is on a list; or one
 * bucket for each source and nothing else at the hook (weir_policy_head.plain), a key that has
 * its place. All else is left to weir_process, and then nothing has happened yet. The two ways
 * differ in nothing but speed.
 */
#pragma once

#include "admit.bpf.h"
#include "clock.bpf.h"
#include "lists.bpf.h"
#include "service.bpf.h"

enum weir_plain {
	WEIR_PLAIN_REFUSED,
	WEIR_PLAIN_PASSED,
	WEIR_PLAIN_NOT,	     /* not answered */
	WEIR_PLAIN_UNLISTED, /* not answered, but it is on no list */
};

/* A packet as far as it matters here. */
struct weir_plain_packet {
	uint32_t source;
	uint32_t bytes;
	uint32_t cpu;
	uint64_t tag;
	uint64_t cost;
	uint64_t now_ticks;
	bool event_due; /* if it is refused */
};

/* A second try to be admitted, after a lost race. */
static __always_inline bool weir_plain_once_more(const struct weir_plain_packet *packet,
						 const struct weir_limit *limit,
						 struct weir_set *set, uint32_t way, uint64_t tat)
{
	uint64_t next;

	return tat != WEIR_STATE_BUSY && weir_set_holds(set, way, packet->tag) &&
	       weir_passed_revision(weir_once(set->counts[way].passed)) ==
		       (uint16_t)limit->revision &&
	       weir_bucket_step(tat, &limit->bucket, packet->now_ticks, packet->cost, &next) &&
	       weir_swap(&set->state[way], tat, next) == tat;
}

/* The packet's answer from the ledger; WEIR_AGAIN if it isn't that easy. */
static __always_inline int weir_plain_take(const struct weir_plain_packet *packet,
					   const struct weir_limit *limit,
					   struct weir_front_slot *slot)
{
	uint32_t index = weir_tag_first(packet->tag, weir_shape.sets), way;
	struct weir_set *set = bpf_map_lookup_elem(&weir_ledger, &index);
	uint64_t tat, next, seen;

	if (!set)
		return WEIR_AGAIN;
	way = weir_set_find(set, packet->tag);
	if (way >= WEIR_WAYS) {
		index = weir_tag_second(packet->tag, weir_shape.sets, &weir_shape.seeds);
		set = bpf_map_lookup_elem(&weir_ledger, &index);
		if (!set)
			return WEIR_AGAIN;
		weir_set_touch(set);
		way = weir_set_find(set, packet->tag);
	}
	if (way >= WEIR_WAYS)
		return WEIR_AGAIN;
	way = weir_way_index(way);
	tat = weir_once(set->state[way]);
	if (tat == WEIR_STATE_BUSY || !weir_set_holds(set, way, packet->tag))
		return WEIR_AGAIN;
	/* The limit was changed, and the state is to be converted. */
	if (weir_passed_revision(weir_once(set->counts[way].passed)) != (uint16_t)limit->revision)
		return WEIR_AGAIN;
	if (weir_bucket_step(tat, &limit->bucket, packet->now_ticks, packet->cost, &next)) {
		/* Whoever was faster left its line with us: once more is likely the last time. */
		seen = weir_swap(&set->state[way], tat, next);
		if (seen != tat && !weir_plain_once_more(packet, limit, set, way, seen))
			return WEIR_AGAIN;
		__sync_fetch_and_add(&set->counts[way].passed, 1);
		return WEIR_ADMITTED;
	}
	if (packet->event_due || weir_bucket_clamp(tat, &limit->bucket, packet->now_ticks) != tat)
		return WEIR_AGAIN;
	__sync_fetch_and_add(&set->counts[way].refused, 1);
	weir_front_learn(slot, packet->tag, tat, index * WEIR_WAYS + way, limit->revision);
	return WEIR_REFUSED;
}

static __always_inline int weir_plain_answer(struct weir_plain_packet *packet,
					     const struct weir_limit *limit, uint64_t next_event_ns)
{
	uint32_t slot_key, set_key;
	struct weir_front_slot *slot;
	struct weir_set *set;
	uint64_t now_ns;
	bool known;

	slot_key = packet->cpu * weir_shape.front_slots +
		   weir_tag_slot(packet->tag, weir_shape.front_slots);
	slot = bpf_map_lookup_elem(&weir_front, &slot_key);
	if (!slot)
		return WEIR_AGAIN;
	known = weir_front_holds(slot, packet->tag, limit->revision);
	if (!known) {
		set_key = weir_tag_first(packet->tag, weir_shape.sets);
		set = bpf_map_lookup_elem(&weir_ledger, &set_key);
		if (set)
			weir_set_touch(set);
	}
	now_ns = weir_now_ns();
	packet->now_ticks = now_ns << WEIR_TICK_SHIFT;
	packet->event_due = now_ns >= next_event_ns;
	if (known && weir_front_refuses(slot->seen, packet->now_ticks, limit->bucket.burst_ticks,
					packet->cost)) {
		if (packet->event_due)
			return WEIR_AGAIN;
		slot->refused++;
		return WEIR_REFUSED;
	}
	return weir_plain_take(packet, limit, slot);
}

static __always_inline void weir_plain_count_path(struct weir_traffic *traffic,
						  enum weir_path path, uint32_t bytes)
{
	traffic->frames[path]++;
	traffic->bytes[path] += bytes;
}

static __always_inline void weir_plain_count(struct weir_cpu *cpu, const struct weir_limit *limit,
					     struct weir_traffic *traffic, uint32_t bytes,
					     bool passed)
{
	struct weir_totals *totals = weir_totals_at(cpu, limit);

	if (passed) {
		totals->passed_packets++;
		totals->passed_bytes += bytes;
		weir_plain_count_path(traffic, WEIR_PATH_LIMITS, bytes);
		return;
	}
	totals->refused_packets++;
	totals->refused_bytes += bytes;
	weir_plain_count_path(traffic, WEIR_PATH_REFUSED, bytes);
	cpu->sampler.suppressed++;
}

/* What the lists say; WEIR_PLAIN_NOT for a refusal that is to be an event. */
static __always_inline enum weir_plain weir_plain_listed(struct weir_cpu *cpu, uint32_t source,
							 struct weir_traffic *traffic,
							 uint32_t bytes)
{
	uint32_t used = weir_board.lists_live.used;

	if (used & WEIR_LIST_ALLOW4 && weir_list4_has(&weir_allow4, source)) {
		weir_plain_count_path(traffic, WEIR_PATH_ALLOWED, bytes);
		return WEIR_PLAIN_PASSED;
	}
	if (!(used & WEIR_LIST_DENY4) || !weir_list4_has(&weir_deny4, source))
		return WEIR_PLAIN_UNLISTED;
	if (weir_now_ns() >= cpu->sampler.next_ns)
		return WEIR_PLAIN_NOT;
	weir_plain_count_path(traffic, WEIR_PATH_DENIED, bytes);
	cpu->sampler.suppressed++;
	return WEIR_PLAIN_REFUSED;
}

/*
 * Whether it is a newcomer of a service, as far as can be told without the parser: what might be
 * one is. The frame has 34 bytes.
 */
static __always_inline bool weir_plain_begins(const struct weir_policy_head *head,
					      const uint8_t *data, const uint8_t *end)
{
	if (!head->services || (data[23] != WEIR_IP_TCP && data[23] != WEIR_IP_UDP))
		return false;
	/* Options, the first of several fragments, cut off. */
	if (data[14] != 0x45 || data[20] & 0x20 || data + 48 > end)
		return true;
	return weir_service_may_begin(head, data[23], data[47]) &&
	       weir_service_at_port((uint16_t)(data[36] << 8 | data[37]));
}

static __always_inline enum weir_plain weir_plain_limited(struct weir_cpu *cpu,
							  struct weir_plain_packet *packet,
							  struct weir_traffic *traffic,
							  const uint8_t *data, const uint8_t *end)
{
	uint32_t generation = weir_board.active.generation & 1;
	const struct weir_policy_head *head = &weir_board.policy[generation];
	uint32_t plain = head->plain[WEIR_HOOK_XDP];
	const struct weir_limit *limit;
	int answer;

	if (!plain || weir_plain_begins(head, data, end))
		return WEIR_PLAIN_UNLISTED;
	limit = weir_limit_at(generation, plain - 1);
	packet->tag = weir_source4_tag(packet->source & limit->mask4, limit->salt,
				       &weir_shape.seeds);
	packet->cost = weir_bucket_cost(&limit->bucket,
					limit->flags & WEIR_LIMIT_BYTES ? packet->bytes : 1);
	answer = weir_plain_answer(packet, limit, cpu->sampler.next_ns);
	if (answer == WEIR_AGAIN)
		return WEIR_PLAIN_UNLISTED;
	weir_plain_count(cpu, limit, traffic, packet->bytes, answer == WEIR_ADMITTED);
	return answer == WEIR_ADMITTED ? WEIR_PLAIN_PASSED : WEIR_PLAIN_REFUSED;
}

static __always_inline enum weir_plain weir_plain_verdict(struct xdp_md *ctx,
							  struct weir_cpu *cpu, uint32_t number)
{
	const uint8_t *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	/* In the scratch: with this on the stack, 6.1 finds that too deep. */
	struct weir_plain_packet *packet = (struct weir_plain_packet *)cpu->scratch;
	const struct weir_interface_line *line;
	uint32_t ifindex, second;
	struct weir_traffic *traffic;
	enum weir_plain listed;

	if (!weir_packet_is_plain(data, end))
		return WEIR_PLAIN_NOT;
	packet->cpu = number;
	packet->source = weir_word(data + 26);
	packet->bytes = end - data;
	ifindex = ctx->ingress_ifindex;
	line = &weir_board.interfaces[ifindex & (WEIR_INTERFACE_LINES - 1)];
	second = (line->ifindex[0] != ifindex) & 1;
	/* In several buffers perhaps, or several packets in one. */
	if (line->frame_bytes[second])
		return WEIR_PLAIN_NOT;
	traffic = &cpu->traffic[line->slot[second] & (WEIR_INTERFACES_MAX - 1)][WEIR_HOOK_XDP];
	if (weir_board.lists_live.used) {
		listed = weir_plain_listed(cpu, packet->source, traffic, packet->bytes);
		if (listed != WEIR_PLAIN_UNLISTED)
			return listed;
	}
	return weir_plain_limited(cpu, packet, traffic, data, end);
}
