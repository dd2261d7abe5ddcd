// SPDX-License-Identifier: GPL-2.0
#include "controller/clock.h"
#include "controller/engine_internal.h"
#include "controller/report.h"
#include "controller/units.h"

int weir_engine_list_add(struct weir_engine *engine, enum weir_list list, const char *prefix,
			 uint64_t for_ns, uint64_t *expires_ns, struct weir_error *err)
{
	char text[WEIR_PREFIX_TEXT], time[WEIR_UNIT_TEXT] = "ever";
	uint64_t now_ns = weir_monotonic_ns();
	struct weir_prefix parsed;
	int code = weir_prefix_parse(prefix, &parsed, err);

	if (!code)
		code = weir_lists_add(&engine->lists, list, &parsed, now_ns, for_ns, expires_ns,
				      err);
	if (code)
		return code;
	/* It may have been there for longer than was asked for. */
	if (*expires_ns != WEIR_LIST_FOREVER)
		weir_time_print_left(*expires_ns - now_ns, time);
	weir_engine_say(engine, "%s: %s added for %s", weir_list_name(list),
			weir_prefix_print(&parsed, text), time);
	return 0;
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
