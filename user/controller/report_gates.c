// SPDX-License-Identifier: GPL-2.0
/* Who is inside the gates, and how full the limits' own ledgers are. */
#include <math.h>
#include <string.h>

#include "controller/own.h"
#include "controller/report.h"
#include "weir/gate.h"
#include "weir/pending.h"

/* Of the shared ledger; every so many-th in a larger one. */
#define LOOK_SETS_MAX 32768U

struct weir_crowd weir_crowd_read(const struct weir_view *view)
{
	const struct weir_dataplane *dataplane = view->dataplane;
	uint64_t slice = weir_pending_slice(view->now_ns << WEIR_TICK_SHIFT);
	uint32_t sets = dataplane->shape.sets;
	struct weir_crowd crowd = { .stride = sets > LOOK_SETS_MAX ? sets / LOOK_SETS_MAX : 1 };
	struct weir_limits_view limits;
	bool any = false;

	weir_limits_view_read(&limits, dataplane);
	for (uint32_t i = 0; i < limits.count; i++)
		any |= limits.by_index[i].kind == WEIR_KIND_GATE;
	for (uint32_t i = 0; any && i < sets; i += crowd.stride) {
		const struct weir_set *set = &dataplane->ledger[i];

		for (uint32_t way = 0; way < WEIR_WAYS; way++) {
			uint32_t slot = weir_once(dataplane->keys[i * WEIR_WAYS + way].slot);
			const struct weir_limit *limit = weir_limits_view_slot(&limits, slot);

			if (!weir_once(set->tag[way]) || !limit || limit->kind != WEIR_KIND_GATE)
				continue;
			crowd.inside[slot] += weir_gate_count(weir_once(set->state[way]));
			crowd.pending[slot] +=
				weir_pending_count(weir_once(set->counts[way].passed), slice);
		}
	}
	return crowd;
}

json_t *weir_report_crowd(json_t *made, const struct weir_crowd *crowd,
			  const struct weir_limit *limit)
{
	uint64_t inside = crowd->inside[limit->slot] * crowd->stride;
	uint64_t pending = crowd->pending[limit->slot] * crowd->stride;

	if (limit->kind != WEIR_KIND_GATE)
		return made;
	made = weir_report_add(made, "inside", json_integer((json_int_t)inside));
	made = weir_report_add(made, "pending", json_integer((json_int_t)pending));
	return weir_report_add(made, "estimated", json_boolean(crowd->stride > 1));
}

static json_t *own_fill(const struct weir_view *view, const struct weir_limit *limit)
{
	uint64_t now_ticks = view->now_ns << WEIR_TICK_SHIFT, known = 0, held = 0, seen = 0;
	const struct weir_label *label = &view->dataplane->labels[limit->slot];
	char name[sizeof(label->name)];
	struct weir_own_view own;
	json_int_t places;
	uint32_t stride;

	if (weir_own_view_open(&own, view->dataplane, limit->slot))
		return NULL;
	stride = own.sets > LOOK_SETS_MAX ? own.sets / LOOK_SETS_MAX : 1;
	for (uint32_t i = 0; i < own.sets; i += stride, seen += WEIR_WAYS) {
		for (int way = 0; way < WEIR_WAYS; way++) {
			known += !!weir_once(own.ledger[i].tag[way]);
			held += !weir_neutral(weir_once(own.ledger[i].state[way]), now_ticks);
		}
	}
	places = (json_int_t)own.sets * WEIR_WAYS;
	memcpy(name, label->name, sizeof(name));
	name[sizeof(name) - 1] = '\0';
	weir_own_view_close(&own);
	return json_pack("{s:s, s:I, s:f, s:f}", "limit", name, "places",
			 places, "held_percent",
			 100 * (double)held / fmax((double)seen, 1), "known_percent",
			 100 * (double)known / fmax((double)seen, 1));
}

json_t *weir_report_own(const struct weir_view *view)
{
	struct weir_limits_view limits;
	json_t *array = json_array();

	weir_limits_view_read(&limits, view->dataplane);
	for (uint32_t i = 0; i < limits.count && array; i++) {
		const struct weir_limit *limit = &limits.by_index[i];
		json_t *one = limit->own_sets && limit->slot < WEIR_LIMITS_MAX ?
				      own_fill(view, limit) :
				      NULL;

		/* One that changes hands just now is left out. */
		if (one && json_array_append_new(array, one)) {
			json_decref(array);
			array = NULL;
		}
	}
	return array;
}
