/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is known of one packet on its way through the programs. It lies in a map, one a CPU,
 * since BPF's 512 bytes of stack are wanted elsewhere: programs don't nest on a CPU.
 *
 * Functions that are not static take only this, and are verified once, each on its own,
 * instead of once for every way that leads to them.
 */
#pragma once

#include "maps.bpf.h"
#include "weir/packet.h"

/* What to do about a packet at a limit. */
enum weir_mode {
	WEIR_CHECK, /* whether it would be refused; charges nothing */
	WEIR_TAKE,  /* charge it, or refuse it and charge nothing */
	WEIR_BACK,  /* give back what WEIR_TAKE charged: another limit lost a race */
};

/* One limit's view of the packet. */
struct weir_charge {
	uint64_t tag;
	uint64_t cost;	/* a bucket's in ticks, any other's in packets */
	uint32_t limit; /* index */
	uint32_t mode;	/* enum weir_mode */
	uint32_t first; /* sets of the ledger */
	uint32_t second;
	uint32_t which; /* 0: the place is in the first set */
	uint32_t way;
	struct weir_beginning begin; /* of a newcomer */
};

struct weir_context {
	struct weir_packet packet;
	uint64_t now_ns;
	uint64_t now_ticks;
	uint32_t cpu;
	uint32_t generation;
	uint32_t ifindex;
	uint32_t interface;  /* slot */
	uint32_t hook;	     /* enum weir_hook */
	uint32_t refused_by; /* slot of the limit that decided */
	uint32_t mode;	     /* enum weir_mode, of a walk over several limits */
	uint32_t reserved;
	struct weir_charge charge;
	struct weir_bitmap limits; /* that match */
	struct weir_bitmap left;   /* yet to be asked */
	struct weir_bitmap done;   /* charged */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set at load: [cpu] */
	__type(key, uint32_t);
	__type(value, struct weir_context);
} weir_scratch SEC(".maps");

/* This CPU's, emptied of what the last packet left. */
static __always_inline struct weir_context *weir_context_open(enum weir_hook hook,
							      uint32_t ifindex)
{
	uint32_t cpu = bpf_get_smp_processor_id();
	struct weir_context *context = bpf_map_lookup_elem(&weir_scratch, &cpu);

	if (!context)
		return 0;
	context->now_ns = 0;
	context->cpu = cpu;
	context->ifindex = ifindex;
	context->hook = hook;
	return context;
}

static __always_inline struct weir_limit *weir_limit_at(const struct weir_context *context,
							uint32_t index)
{
	uint32_t key = context->generation * WEIR_LIMITS_MAX + (index & (WEIR_LIMITS_MAX - 1));

	return bpf_map_lookup_elem(&weir_limits, &key);
}
