/* SPDX-License-Identifier: GPL-2.0 */
/* Totals: plain additions, since each CPU has its own and programs don't nest on a CPU. */
#pragma once

#include "context.bpf.h"

static __always_inline struct weir_totals *weir_totals_at(const struct weir_context *context,
							  const struct weir_limit *limit)
{
	uint32_t key = context->cpu * WEIR_LIMITS_MAX + (limit->slot & (WEIR_LIMITS_MAX - 1));

	return bpf_map_lookup_elem(&weir_totals, &key);
}

static __always_inline void weir_count_path(const struct weir_context *context,
					    enum weir_path path)
{
	uint32_t key = (context->cpu * WEIR_INTERFACES_MAX + context->interface) * WEIR_HOOKS +
		    context->hook;
	struct weir_traffic *traffic = bpf_map_lookup_elem(&weir_traffic, &key);

	if (!traffic)
		return;
	traffic->frames[path] += context->packet.packets;
	traffic->bytes[path] += context->packet.bytes;
}
