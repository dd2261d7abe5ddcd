// SPDX-License-Identifier: GPL-2.0
/* A change must not cut off who makes it. */
#include <stdlib.h>
#include <string.h>

#include "controller/clock.h"
#include "controller/engine_internal.h"

int weir_engine_check_session(const struct weir_terms *terms, const struct weir_policy *policy,
			      const struct weir_compiled *compiled, const struct weir_held *held,
			      const struct weir_list_table *lists, int only,
			      struct weir_error *err)
{
	uint32_t slots[WEIR_INTERFACES_MAX];
	bool by[WEIR_INTERFACES_MAX];
	const struct weir_session_ground ground = {
		.policy = policy,
		.compiled = compiled,
		.only = only,
		.allow = &lists[WEIR_ALLOW],
		.deny = &lists[WEIR_DENY],
		.slots = slots,
		.by = by,
		.now_ns = weir_monotonic_ns(),
	};

	if (!terms || !terms->session)
		return 0;
	for (size_t i = 0; i < held->count; i++)
		slots[i] = held->status[i].slot;
	weir_session_interfaces(terms->session, policy, by);
	/* They are looked for by the names they had. */
	for (size_t i = 0; i < held->count; i++)
		by[i] |= *held->status[i].renamed;
	return weir_session_check(terms->session, &ground, err);
}

static int nowhere(void *context, const struct weir_prefix *prefix, const uint64_t *expires_ns)
{
	(void)context;
	(void)prefix;
	(void)expires_ns;
	return 0;
}

/* With one more prefix on the deny list: the lists alone have changed for the worse. */
static int check_denied(const struct weir_engine *engine, const struct weir_terms *terms,
			const struct weir_prefix *prefix, struct weir_error *err)
{
	struct weir_list_entry entry = { .prefix = *prefix, .live = true };
	struct weir_list_table lists[WEIR_LISTS] = {
		[WEIR_ALLOW] = engine->lists.tables[WEIR_ALLOW],
		[WEIR_DENY] = { .entries = &entry, .count = 1, .room = 1 },
	};

	return weir_engine_check_session(terms, engine->policy, NULL, &engine->held, lists,
					 -1, err);
}

/* With one prefix less on the allow list: everything that it stood before counts. */
static int check_not_allowed(const struct weir_engine *engine, const struct weir_terms *terms,
			     const struct weir_prefix *prefix, struct weir_error *err)
{
	const struct weir_list_table *allow = &engine->lists.tables[WEIR_ALLOW];
	struct weir_list_table lists[WEIR_LISTS] = {
		[WEIR_ALLOW] = *allow,
		[WEIR_DENY] = engine->lists.tables[WEIR_DENY],
	};
	struct weir_list_entry *copy = malloc((allow->count + 1) * sizeof(*copy));
	struct weir_compiled *compiled = NULL;
	int code = 0;

	if (!copy)
		return weir_error_set(err, -ENOMEM, "no memory for the allow list");
	if (allow->count)
		memcpy(copy, allow->entries, allow->count * sizeof(*copy));
	lists[WEIR_ALLOW].entries = copy;
	if (!weir_list_del(&lists[WEIR_ALLOW], prefix, nowhere, NULL))
		code = weir_engine_compile(engine, engine->policy, &engine->held, &compiled, err);
	if (compiled)
		code = weir_engine_check_session(terms, engine->policy, compiled,
						 &engine->held, lists, -1, err);
	weir_compiled_free(compiled);
	free(copy);
	return code;
}

int weir_engine_list_check(const struct weir_engine *engine, enum weir_list list, bool add,
			   const char *text, const struct weir_session *session,
			   struct weir_error *err)
{
	const struct weir_terms terms = { .session = session };
	struct weir_prefix prefix;

	if (!session || (list == WEIR_DENY) != add || weir_prefix_parse(text, &prefix, err))
		return 0;
	return list == WEIR_DENY ? check_denied(engine, &terms, &prefix, err) :
				   check_not_allowed(engine, &terms, &prefix, err);
}
