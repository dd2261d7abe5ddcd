/* SPDX-License-Identifier: GPL-2.0 */
/* Totals: plain additions, since each CPU has its own and programs don't nest on a CPU. */
#pragma once

#include "context.bpf.h"

static __always_inline struct weir_totals *weir_totals_at(struct weir_cpu *cpu,
							  const struct weir_limit *limit)
{
	return &cpu->totals[limit->slot & (WEIR_LIMITS_MAX - 1)];
}

static __always_inline void weir_count_path(struct weir_cpu *cpu,
					    const struct weir_context *context,
					    enum weir_path path)
{
	uint32_t interface = context->interface & (WEIR_INTERFACES_MAX - 1);
	uint32_t hook = context->hook;
	struct weir_traffic *traffic;

	if (hook >= WEIR_HOOKS)
		return;
	traffic = &cpu->traffic[interface][hook];
	traffic->frames[path] += context->packet.packets;
	traffic->bytes[path] += context->packet.bytes;
}
