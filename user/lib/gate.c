// SPDX-License-Identifier: GPL-2.0
#include "weir/gate.h"

#include <stddef.h>

_Static_assert(sizeof(struct weir_gate_conf) == 4, "shared with BPF");
_Static_assert(sizeof(struct weir_gate_state) == 8, "shared with BPF");

struct weir_gate weir_gate_new(int32_t limit)
{
	return (struct weir_gate){ .conf = { .limit = limit > 0 ? (uint32_t)limit : 0 } };
}

bool weir_gate_enter(struct weir_gate *gate)
{
	if (!gate || weir_gate_count(gate->state.word) >= INT32_MAX)
		return false;
	return weir_gate_step(gate->state.word, &gate->conf, &gate->state.word);
}

void weir_gate_leave(struct weir_gate *gate)
{
	if (gate)
		gate->state.word = weir_gate_back(gate->state.word);
}

int32_t weir_gate_held(const struct weir_gate *gate)
{
	return gate ? (int32_t)weir_gate_count(gate->state.word) : 0;
}
