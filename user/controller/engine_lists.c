// SPDX-License-Identifier: GPL-2.0
#include "controller/clock.h"
#include "controller/engine_internal.h"
#include "controller/report.h"
#include "controller/units.h"

int weir_engine_list_add(struct weir_engine *engine, enum weir_list list, const char *prefix,
			 uint64_t for_ns, uint64_t *expires_ns, struct weir_error *err)
{
	char text[WEIR_PREFIX_TEXT], time[WEIR_UNIT_TEXT];
	struct weir_prefix parsed;
	int code = weir_prefix_parse(prefix, &parsed, err);

	if (!code)
		code = weir_lists_add(&engine->lists, list, &parsed, weir_monotonic_ns(), for_ns,
				      expires_ns, err);
	if (!code)
		weir_engine_say(engine, "%s: %s added %s%s", weir_list_name(list),
				weir_prefix_print(&parsed, text), for_ns ? "for " : "for ever",
				for_ns ? weir_time_print(for_ns, time) : "");
	return code;
}

int weir_engine_list_del(struct weir_engine *engine, enum weir_list list, const char *prefix,
			 struct weir_error *err)
{
	char text[WEIR_PREFIX_TEXT];
	struct weir_prefix parsed;
	int code = weir_prefix_parse(prefix, &parsed, err);

	if (!code)
		code = weir_lists_del(&engine->lists, list, &parsed, err);
	if (!code)
		weir_engine_say(engine, "%s: %s taken out", weir_list_name(list),
				weir_prefix_print(&parsed, text));
	return code;
}

const struct weir_list_table *weir_engine_list(const struct weir_engine *engine,
					       enum weir_list list)
{
	return &engine->lists.tables[list];
}
