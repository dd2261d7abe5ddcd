// SPDX-License-Identifier: GPL-2.0
/* A policy into force. */
#include <bpf/bpf.h>
#include <string.h>

#include "controller/clock.h"
#include "controller/engine_internal.h"
#include "controller/sweep.h"

int weir_engine_compile(const struct weir_engine *engine, const struct weir_policy *policy,
			const struct weir_held *held, struct weir_compiled **compiled,
			struct weir_error *err)
{
	struct weir_compiled_before before = weir_generation_now(&engine->generation);
	uint32_t slots[WEIR_INTERFACES_MAX];

	for (size_t i = 0; i < held->count; i++)
		slots[i] = held->status[i].slot;
	return weir_compile(policy, &before, slots, engine->dataplane.shape.cpus, engine->wall_ns,
			    compiled, err);
}

static uint32_t hooks_of(const struct weir_compiled *compiled)
{
	uint32_t hooks = 0;

	for (int hook = 0; hook < WEIR_HOOKS; hook++)
		hooks |= (uint32_t) !!weir_bitmap_any(&compiled->head.hooks[hook]) << hook;
	return hooks;
}

static void say_limits(const struct weir_engine *engine, const struct weir_compiled *compiled)
{
	struct weir_compiled_before now = weir_generation_now(&engine->generation);
	bool kept[WEIR_LIMITS_MAX] = { 0 };

	for (uint32_t i = 0; i < compiled->head.limits; i++) {
		const struct weir_label *label = &compiled->labels[i];
		const struct weir_label *old = &now.labels[compiled->limits[i].slot];

		kept[compiled->limits[i].slot] = true;
		if (strcmp(old->name, label->name))
			weir_engine_say(engine, "limit %s: new: %s", label->name, label->setting);
		else if (strcmp(old->setting, label->setting))
			weir_engine_say(engine, "limit %s: %s -> %s (%s)", label->name,
					old->setting, label->setting, engine->config);
	}
	for (size_t i = 0; i < now.count; i++) {
		if (!kept[now.limits[i].slot])
			weir_engine_say(engine, "limit %s: removed",
					now.labels[now.limits[i].slot].name);
	}
}

/* The connections in the gates, counted anew. */
void weir_engine_recount(struct weir_engine *engine)
{
	struct weir_recounted recounted;
	struct weir_error err;

	engine->recounted_ns = weir_monotonic_ns();
	if (!engine->connections)
		return;
	if (weir_connections_recount(engine->connections, &recounted, &err))
		weir_engine_say(engine, "%s", err.text);
	if (recounted.adopted || recounted.healed)
		weir_engine_say(engine,
				"gates: %llu entries of connections open before, %llu places put "
				"right",
				(unsigned long long)recounted.adopted,
				(unsigned long long)recounted.healed);
}

/* The programs that watch sockets, as soon as the policy needs them. */
static int watch(struct weir_engine *engine, const struct weir_compiled *compiled,
		 struct weir_error *err)
{
	int code = 0;

	if (!engine->connections && (compiled->head.gates || compiled->head.services))
		code = weir_connections_open(&engine->connections, &engine->load,
					     &engine->generation, err);
	if (!code && compiled->head.services)
		code = weir_connections_watch_payload(engine->connections, &engine->load, err);
	return code;
}

/* Whether a limit in force counts in the shared ledger and won't, or not under the same keys. */
static bool leaves_places(const struct weir_compiled_before *now,
			  const struct weir_compiled *compiled)
{
	for (size_t i = 0; i < now->count; i++) {
		bool kept = now->limits[i].own_sets;

		for (uint32_t j = 0; j < compiled->head.limits && !kept; j++)
			kept = compiled->limits[j].slot == now->limits[i].slot &&
			       compiled->limits[j].salt == now->limits[i].salt;
		if (!kept)
			return true;
	}
	return false;
}

/* What limits that are no more have left behind. */
static void sweep(struct weir_engine *engine)
{
	int fd = bpf_map__fd(engine->load.skeleton->maps.weir_ledger);
	uint64_t now_ns = weir_monotonic_ns();

	if (weir_sweep_ledger(&engine->dataplane, fd, now_ns) < 0 ||
	    weir_sweep_bans(&engine->dataplane, now_ns) < 0)
		weir_engine_say(engine, "can't free what removed limits held: it stays until it "
					"is neutral by itself");
}

/* Lists and limits: all, or on an error nothing. */
static int put_into_force(struct weir_engine *engine, const struct weir_compiled *compiled,
			  struct weir_lists_plan *plan, struct weir_error *err)
{
	struct weir_compiled_before now = weir_generation_now(&engine->generation);
	bool stale = !engine->policy || leaves_places(&now, compiled);
	struct weir_lists_plan before = { 0 };
	int code = weir_own_provide(&engine->own, compiled, &now, err);

	if (!code)
		code = weir_lists_apply(&engine->lists, plan, &before, err);
	if (!code) {
		say_limits(engine, compiled);
		code = weir_generation_apply(&engine->generation, compiled, err);
		if (code)
			weir_lists_undo(&engine->lists, &before);
	}
	now = weir_generation_now(&engine->generation);
	weir_own_release(&engine->own, &now);
	if (!code && stale)
		sweep(engine);
	weir_lists_plan_free(&before);
	return code;
}

/* What a policy means for each part, and that it cuts nobody off; nothing has changed yet. */
static int prepare(struct weir_engine *engine, const struct weir_policy *policy,
		   const struct weir_terms *terms, struct weir_held *plan,
		   struct weir_lists_plan *lists, struct weir_compiled **compiled,
		   struct weir_error *err)
{
	int code = weir_held_plan(engine, policy, plan, err);

	engine->wall_ns = engine->wall_clock();
	if (!code)
		code = weir_engine_compile(engine, policy, plan, compiled, err);
	if (!code)
		code = weir_lists_plan(&engine->lists, policy, lists, err);
	if (!code)
		code = weir_exchanges_check(&engine->exchanges, policy, err);
	if (!code)
		code = weir_engine_check_session(terms, policy, *compiled, plan,
						 lists->tables, -1, err);
	return code;
}

int weir_engine_enforce(struct weir_engine *engine, struct weir_policy *policy,
			const struct weir_terms *terms, bool need_interface,
			struct weir_error *err)
{
	struct weir_compiled *compiled = NULL;
	struct weir_lists_plan lists = { 0 };
	struct weir_confirm *note = NULL;
	struct weir_error other;
	struct weir_held plan;
	bool waits;
	int code = prepare(engine, policy, terms, &plan, &lists, &compiled, err);

	if (!code)
		note = weir_engine_note(engine, terms, "weir reload", &code, err);
	if (!code)
		code = weir_load_publish(&engine->load, err);
	if (!code)
		code = watch(engine, compiled, err);
	if (code)
		goto out;
	code = weir_held_take(engine, &plan, hooks_of(compiled), err);
	if (code && need_interface)
		goto out;
	waits = note;
	code = weir_engine_wait(engine, note, policy, err);
	note = NULL;
	if (!code) {
		code = put_into_force(engine, compiled, &lists, err);
		if (code && waits)
			weir_engine_forget(engine, &other);
	}
	if (code && engine->policy)
		weir_held_sweep(engine, false);
	if (code)
		goto out;
	if (weir_exchanges_apply(&engine->exchanges, policy, &other))
		weir_engine_say(engine, "%s", other.text);
	engine->held = plan;
	engine->hooks = hooks_of(compiled);
	weir_policy_free(engine->policy);
	engine->policy = policy;
	weir_held_sweep(engine, false);
	weir_engine_recount(engine);
	if (!plan.count)
		weir_engine_say(engine, "%s names no interface: nothing is limited",
				engine->config);
out:
	weir_confirm_free(note);
	weir_lists_plan_free(&lists);
	weir_compiled_free(compiled);
	return code;
}
