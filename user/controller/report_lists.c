// SPDX-License-Identifier: GPL-2.0
/* Lists and bans. */
#include <string.h>

#include "controller/report.h"

json_t *weir_report_left(uint64_t expires_ns, uint64_t now_ns)
{
	if (expires_ns == WEIR_LIST_FOREVER)
		return json_null();
	return json_integer((json_int_t)(expires_ns > now_ns ? expires_ns - now_ns : 0));
}

static json_t *one_list(const struct weir_list_table *table)
{
	size_t live = 0;

	for (size_t i = 0; i < table->count; i++)
		live += table->entries[i].live;
	return json_pack("{s:I, s:I, s:I}", "ipv4", (json_int_t)weir_list_count(table, 4), "ipv6",
			 (json_int_t)weir_list_count(table, 6), "live", (json_int_t)live);
}

json_t *weir_report_lists(const struct weir_view *view)
{
	json_t *made = json_object();

	for (int list = 0; list < WEIR_LISTS; list++)
		made = weir_report_add(
			made, weir_list_name((enum weir_list)list),
			view->lists ? one_list(&view->lists[list]) : json_null());
	return made;
}

static json_t *one_entry(const struct weir_list_entry *entry, uint64_t now_ns)
{
	char text[WEIR_PREFIX_TEXT];
	uint64_t expires_ns = entry->file ? WEIR_LIST_FOREVER : entry->expires_ns;

	return json_pack("{s:s, s:b, s:b, s:o}", "prefix", weir_prefix_print(&entry->prefix, text),
			 "file", entry->file, "live", entry->live, "left_ns",
			 weir_report_left(expires_ns, now_ns));
}

json_t *weir_report_list(const struct weir_list_table *table, enum weir_list list, size_t first,
			 size_t count, uint64_t now_ns)
{
	json_t *part = json_pack("{s:i, s:s}", "schema", WEIR_JSON_SCHEMA, "list",
				 weir_list_name(list));
	json_t *array = json_array();

	for (size_t i = first; i < table->count && i - first < count && array; i++) {
		const struct weir_list_entry *entry = &table->entries[i];

		if (!entry->file && entry->expires_ns != WEIR_LIST_FOREVER &&
		    entry->expires_ns <= now_ns)
			continue;
		if (json_array_append_new(array, one_entry(entry, now_ns))) {
			json_decref(array);
			array = NULL;
		}
	}
	return weir_report_add(part, "entries", array);
}

static json_t *one_ban(const struct weir_view *view, const struct weir_ban *ban,
		       const struct weir_limit *limit)
{
	struct weir_own_record record = weir_ban_record(ban);
	char name[sizeof(view->dataplane->labels[0].name)], key[WEIR_KEY_TEXT];

	memcpy(name, view->dataplane->labels[limit->slot].name, sizeof(name));
	name[sizeof(name) - 1] = '\0';
	return json_pack("{s:s, s:s, s:o}", "limit", name, "key",
			 weir_own_record_print(&record, limit, key), "left_ns",
			 weir_report_left(ban->until_ticks >> WEIR_TICK_SHIFT, view->now_ns));
}

json_t *weir_report_bans(const struct weir_view *view)
{
	struct weir_limits_view limits;
	json_t *array = json_array();
	struct weir_bans bans;

	if (weir_bans_read(&bans, view->dataplane)) {
		json_decref(array);
		return NULL;
	}
	weir_limits_view_read(&limits, view->dataplane);
	for (size_t i = 0; i < bans.count && array; i++) {
		const struct weir_limit *limit =
			weir_limits_view_slot(&limits, bans.items[i].key.slot);

		if (!limit || bans.items[i].until_ticks <= view->now_ns << WEIR_TICK_SHIFT)
			continue;
		if (json_array_append_new(array, one_ban(view, &bans.items[i], limit))) {
			json_decref(array);
			array = NULL;
		}
	}
	weir_bans_free(&bans);
	return array;
}
