/* SPDX-License-Identifier: GPL-2.0 */
/* What is known of one packet on its way through the programs. */
#pragma once

#include "maps.bpf.h"
#include "weir/packet.h"

struct weir_context {
	struct weir_packet packet;
	struct weir_bitmap limits; /* that match */
	uint64_t now_ns;
	uint64_t now_ticks;
	uint32_t cpu;
	uint32_t generation;
	uint32_t ifindex;
	uint32_t interface; /* slot */
	uint32_t hook;	 /* enum weir_hook */
	uint32_t refused_by; /* index of the limit that decided */
};

static __always_inline struct weir_limit *weir_limit_at(const struct weir_context *context,
							uint32_t index)
{
	uint32_t key = context->generation * WEIR_LIMITS_MAX + (index & (WEIR_LIMITS_MAX - 1));

	return bpf_map_lookup_elem(&weir_limits, &key);
}
