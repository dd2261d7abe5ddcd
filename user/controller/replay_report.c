// SPDX-License-Identifier: GPL-2.0
#include "controller/keys.h"
#include "controller/replay.h"
#include "controller/report.h"

static json_t *number(uint64_t value)
{
	return json_integer((json_int_t)value);
}

/* The time of a refusal; null where there was none. */
static json_t *instant(uint64_t time_ns)
{
	return time_ns ? number(time_ns) : json_null();
}

static json_t *numbers(json_t *report, const struct weir_replay_counts *counts)
{
	const struct {
		const char *field;
		uint64_t value;
	} fields[] = {
		{ "packets", counts->packets },
		{ "bytes", counts->bytes },
		{ "in", counts->in },
		{ "out", counts->out },
		{ "refused", counts->refused },
		{ "backwards", counts->backwards },
		{ "untimed", counts->untimed },
		{ "cut", counts->cut },
		{ "cut_headers", counts->cut_headers },
		{ "merged", counts->merged },
		{ "too_short", counts->too_short },
		{ "first_ns", counts->first_ns },
		{ "last_ns", counts->last_ns },
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		report = weir_report_add(report, fields[i].field, number(fields[i].value));
	return report;
}

/* Frames by what became of them, at all hooks together but for those that went on from XDP. */
static json_t *paths(const struct weir_replay *replay)
{
	static const char *const names[WEIR_PATHS] = {
		[WEIR_PATH_LIMITS] = "limits",	     [WEIR_PATH_UNMATCHED] = "unmatched",
		[WEIR_PATH_ALLOWED] = "allowed",     [WEIR_PATH_DENIED] = "denied",
		[WEIR_PATH_EXEMPT] = "exempt",	     [WEIR_PATH_NOT_IP] = "not_ip",
		[WEIR_PATH_MALFORMED] = "malformed", [WEIR_PATH_REFUSED] = "refused",
	};
	static const char *const hooks[WEIR_HOOKS] = {
		[WEIR_HOOK_XDP] = "xdp",
		[WEIR_HOOK_TC_INGRESS] = "tc-ingress",
		[WEIR_HOOK_TC_EGRESS] = "tc-egress",
	};
	json_t *made = json_object();

	for (int hook = 0; hook < WEIR_HOOKS; hook++) {
		json_t *frames = json_object();

		if (!(replay->hooks >> hook & 1)) {
			json_decref(frames);
			continue;
		}
		for (int path = 0; path < WEIR_PATHS; path++) {
			uint64_t sum = 0;

			for (uint32_t slot = 0; slot < WEIR_INTERFACES_MAX; slot++)
				sum += weir_dataplane_traffic(&replay->dataplane, slot,
							      (enum weir_hook)hook)
					       .frames[path];
			frames = weir_report_add(frames, names[path], number(sum));
		}
		made = weir_report_add(made, hooks[hook], frames);
	}
	return made;
}

static uint64_t keys_of(const struct weir_replay *replay, uint16_t slot)
{
	uint64_t keys = 0;

	for (size_t i = 0; i < replay->refusals.count; i++)
		keys += replay->refusals.entries[i].key.key.slot == slot;
	return keys;
}

/* What weir show says of the limits, and when each refused. */
static json_t *limits(const struct weir_replay *replay)
{
	const struct weir_view view = { .dataplane = &replay->dataplane, .now_ns = replay->now_ns };
	json_t *array = weir_report_limits(&view), *limit;
	size_t i;

	json_array_foreach(array, i, limit)
	{
		uint16_t slot = (uint16_t)json_integer_value(json_object_get(limit, "slot"));
		const struct weir_replay_limit *times = &replay->limits[slot];

		json_object_del(limit, "admitted_per_sec");
		json_object_del(limit, "refused_per_sec");
		json_object_set_new(limit, "first_refused_ns", instant(times->first_ns));
		json_object_set_new(limit, "last_refused_ns", instant(times->last_ns));
		json_object_set_new(limit, "refused_keys", number(keys_of(replay, slot)));
	}
	return array;
}

static json_t *one_key(const struct weir_replay *replay, const struct weir_limits_view *view,
		       const struct weir_refused_key *entry)
{
	const struct weir_limit *limit = weir_limits_view_slot(view, entry->key.key.slot);
	char key[WEIR_KEY_TEXT];

	if (!limit)
		return NULL;
	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "limit",
			 replay->dataplane.labels[limit->slot].name, "key",
			 weir_own_record_print(&entry->key, limit, key), "refused",
			 number(entry->packets), "refused_bytes", number(entry->bytes),
			 "first_refused_ns", number(entry->first_ns), "last_refused_ns",
			 number(entry->last_ns));
}

json_t *weir_replay_report(struct weir_replay *replay, size_t keys)
{
	json_t *report = numbers(json_object(), &replay->counts), *array = json_array();
	struct weir_limits_view view;
	size_t i;

	weir_refusals_sort(&replay->refusals);
	weir_limits_view_read(&view, &replay->dataplane);
	for (i = 0; i < replay->refusals.count && i < keys && array; i++) {
		if (json_array_append_new(array,
					  one_key(replay, &view, &replay->refusals.entries[i]))) {
			json_decref(array);
			array = NULL;
		}
	}
	report = weir_report_add(report, "frames", paths(replay));
	report = weir_report_add(report, "limits", limits(replay));
	report = weir_report_add(report, "keys", array);
	report = weir_report_add(report, "keys_left_out", number(replay->refusals.count - i));
	return weir_report_add(report, "keyless", number(replay->refusals.left_out));
}
