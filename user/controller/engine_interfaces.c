// SPDX-License-Identifier: GPL-2.0
#include <bpf/bpf.h>
#include <errno.h>
#include <net/if.h>
#include <string.h>

#include "controller/bond.h"
#include "controller/engine_internal.h"

/* Ethernet and two VLAN tags. */
#define LINK_HEADER_BYTES (14 + 2 * 4)

/* ---- the table ifindex -> slot ---- */

static struct weir_interface_line *line_of(const struct weir_engine *engine, uint32_t ifindex)
{
	return &engine->dataplane.board->interfaces[ifindex & (WEIR_INTERFACE_LINES - 1)];
}

static int table_find(const struct weir_engine *engine, uint32_t ifindex)
{
	const struct weir_interface_line *line = line_of(engine, ifindex);

	for (int i = 0; ifindex && i < 2; i++) {
		if (line->ifindex[i] == ifindex)
			return (int)line->slot[i];
	}
	return -ENOENT;
}

static void table_clear(struct weir_engine *engine, uint32_t ifindex)
{
	struct weir_interface_line *line = line_of(engine, ifindex);

	for (int i = 0; ifindex && i < 2; i++) {
		if (line->ifindex[i] == ifindex)
			__atomic_store_n(&line->ifindex[i], 0, __ATOMIC_RELEASE);
	}
}

/* Natively a frame of no more than this lies in one buffer. */
#define BUFFER_BYTES 3072

/*
 * In generic mode the stack may hand over what was many packets on the wire; it is told by being
 * longer than one can be. Natively every frame is one of the wire's, but it may be in several
 * buffers, which the program only looks for where it knows the longest.
 */
static void table_set_frame(struct weir_engine *engine, const struct weir_interface_status *status)
{
	struct weir_interface_line *line = line_of(engine, status->ifindex);
	int mtu = weir_interface_mtu(status->name);
	uint32_t bytes = mtu > 0 ? (uint32_t)mtu + LINK_HEADER_BYTES : 0;

	if (status->attached != WEIR_ATTACHED_GENERIC && bytes <= BUFFER_BYTES)
		bytes = 0;
	for (int i = 0; i < 2; i++) {
		if (line->ifindex[i] == status->ifindex && line->frame_bytes[i] != bytes)
			__atomic_store_n(&line->frame_bytes[i], bytes, __ATOMIC_RELEASE);
	}
}

static int table_set(struct weir_engine *engine, uint32_t ifindex, uint32_t slot)
{
	struct weir_interface_line *line = line_of(engine, ifindex);
	int free = -1;

	for (int i = 1; i >= 0; i--) {
		if (line->ifindex[i] == ifindex && line->slot[i] == slot)
			return 0;
		if (!line->ifindex[i] || line->ifindex[i] == ifindex)
			free = i;
	}
	if (free < 0)
		return -ENOSPC;
	line->slot[free] = slot;
	line->frame_bytes[free] = 0;
	__atomic_store_n(&line->ifindex[free], ifindex, __ATOMIC_RELEASE);
	return 0;
}

/* Links below a bond: more than anybody has. */
#define BOND_LINKS_MAX 64

/* What comes in by the links below a bond is the bond's. */
static void table_set_bond(struct weir_engine *engine, const struct weir_interface_status *status)
{
	uint32_t links[BOND_LINKS_MAX];
	size_t count = weir_bond_links(status->name, links, BOND_LINKS_MAX);

	for (size_t i = 0; i < count; i++) {
		if (table_set(engine, links[i], status->slot))
			weir_engine_say(engine,
					"interface %s: the index %u of a link below it shares a "
					"line with two others: what comes in by it matches no "
					"interface",
					status->name, links[i]);
	}
}

/* Whether an entry of the table is an interface of ours, or a link below one. */
static bool is_held(const struct weir_engine *engine, uint32_t ifindex)
{
	uint32_t links[BOND_LINKS_MAX];
	bool held = false;

	for (size_t i = 0; i < engine->held.count && !held; i++) {
		const struct weir_interface_status *status = &engine->held.status[i];
		size_t count = weir_bond_links(status->name, links, BOND_LINKS_MAX);

		held = status->ifindex == ifindex;
		for (size_t j = 0; j < count; j++)
			held |= links[j] == ifindex;
	}
	return held;
}

/* ---- plan ---- */

static const struct weir_interface_status *find_held(const struct weir_held *held, const char *name)
{
	for (size_t i = 0; i < held->count; i++) {
		if (!strcmp(held->status[i].name, name))
			return &held->status[i];
	}
	return NULL;
}

/* The one that has this name by now, instead of its own. */
static bool find_renamed(const struct weir_held *held, const char *name)
{
	for (size_t i = 0; i < held->count; i++) {
		if (!strcmp(held->status[i].renamed, name))
			return true;
	}
	return false;
}

static int free_slot(bool *taken)
{
	for (int slot = 0; slot < WEIR_INTERFACES_MAX; slot++) {
		if (!taken[slot]) {
			taken[slot] = true;
			return slot;
		}
	}
	return -E2BIG;
}

/* What is known of it: from this engine, or from the table of an earlier one. */
static void recall(const struct weir_engine *engine, const struct weir_policy_interface *wanted,
		   struct weir_interface_status *status, bool *known)
{
	const struct weir_interface_status *before = find_held(&engine->held, wanted->name);
	int slot;

	*status = (struct weir_interface_status){ .asked = wanted->mode };
	strcpy(status->name, wanted->name);
	*known = before;
	if (before) {
		enum weir_policy_attach asked = status->asked;

		*status = *before;
		status->asked = asked;
		return;
	}
	slot = table_find(engine, if_nametoindex(wanted->name));
	if (slot >= 0 && slot < WEIR_INTERFACES_MAX) {
		status->slot = (uint32_t)slot;
		*known = true;
	}
}

int weir_held_plan(const struct weir_engine *engine, const struct weir_policy *policy,
		   struct weir_held *plan, struct weir_error *err)
{
	bool taken[WEIR_INTERFACES_MAX] = { 0 };

	*plan = (struct weir_held){ .count = policy->interface_count };
	for (size_t i = 0; i < engine->held.count; i++)
		taken[engine->held.status[i].slot] = true;
	for (size_t i = 0; i < plan->count; i++) {
		bool known;

		recall(engine, &policy->interfaces[i], &plan->status[i], &known);
		plan->fresh[i] = !known;
		if (known)
			taken[plan->status[i].slot] = true;
	}
	for (size_t i = 0; i < plan->count; i++) {
		int slot = plan->fresh[i] ? free_slot(taken) : (int)plan->status[i].slot;

		if (slot < 0)
			return weir_error_set(err, slot,
					      "interface %s: no room while those that this change "
					      "removes are held; there is room for %d old and new "
					      "ones: remove in one reload, add in the next",
					      plan->status[i].name, WEIR_INTERFACES_MAX);
		plan->status[i].slot = (uint32_t)slot;
	}
	return 0;
}

/* ---- take ---- */

static void zero_traffic(const struct weir_engine *engine, uint32_t slot)
{
	for (uint32_t cpu = 0; cpu < engine->dataplane.shape.cpus; cpu++)
		memset(engine->dataplane.cpus[cpu].traffic[slot], 0,
		       sizeof(engine->dataplane.cpus[cpu].traffic[slot]));
}

static void say_attached(const struct weir_engine *engine,
			 const struct weir_interface_status *status)
{
	const char *how = status->dispatcher ? ", beside others in libxdp's dispatcher" : "";

	weir_engine_say(engine, "interface %s: limited in %s%s%s%s", status->name,
			status->attached == WEIR_ATTACHED_GENERIC ? "GENERIC mode, the slow one"
								  : "native mode",
			how, *status->reason ? ": " : "", status->reason);
}

/* A reason that is new is logged; the same one at every look is not. */
static void set_reason(const struct weir_engine *engine, struct weir_interface_status *status,
		       const char *reason)
{
	bool news = strncmp(status->reason, reason, sizeof(status->reason) - 1);

	snprintf(status->reason, sizeof(status->reason), "%s", reason);
	if (news)
		weir_engine_say(engine, "%s%s", status->attached ? "" : "NOT limited: ", reason);
}

/* XDP holds already; what TC lacks is a reason of its own. */
static int take_tc(struct weir_engine *engine, struct weir_interface_status *status, uint32_t hooks,
		   struct weir_error *err)
{
	int code = weir_tc_ensure(&engine->tc, status, hooks, err);

	if (code < 0)
		set_reason(engine, status, err->text);
	return code < 0 ? code : 0;
}

static int take_one(struct weir_engine *engine, struct weir_interface_status *status,
		    uint32_t hooks, struct weir_error *err)
{
	int code;

	status->attached = WEIR_ATTACHED_NOT;
	status->ifindex = if_nametoindex(status->name);
	if (!status->ifindex) {
		code = weir_error_set(err, -ENODEV,
				      "interface %s: there is none of this name now (`ip link`); "
				      "a running weir takes it when it comes",
				      status->name);
	} else {
		code = table_set(engine, status->ifindex, status->slot);
		if (code)
			weir_error_set(err, code,
				       "interface %s: its index %u shares a line with two others",
				       status->name, status->ifindex);
		else
			code = weir_xdp_attach(&engine->xdp, status, err);
	}
	if (code)
		set_reason(engine, status, err->text);
	else
		say_attached(engine, status);
	if (!code)
		code = take_tc(engine, status, hooks, err);
	table_set_frame(engine, status);
	table_set_bond(engine, status);
	return code;
}

static bool holds_so(const struct weir_engine *engine, const struct weir_interface_status *status)
{
	const struct weir_interface_status *before = find_held(&engine->held, status->name);

	return before && before->attached && before->asked == status->asked;
}

int weir_held_take(struct weir_engine *engine, struct weir_held *plan, uint32_t hooks,
		   struct weir_error *err)
{
	size_t had = 0;
	int code = 0;

	for (size_t i = 0; i < plan->count; i++) {
		int one = 0;

		if (plan->fresh[i])
			zero_traffic(engine, plan->status[i].slot);
		plan->fresh[i] = false;
		if (!holds_so(engine, &plan->status[i]))
			one = take_one(engine, &plan->status[i], hooks, err);
		else
			one = take_tc(engine, &plan->status[i], hooks, err);
		if (one)
			code = one;
		else
			had++;
	}
	return had ? 0 : code;
}

/* ---- sweep ---- */

int weir_held_sweep(struct weir_engine *engine, bool all)
{
	struct if_nameindex *interfaces = if_nameindex();
	int code = interfaces ? 0 : -errno, one;
	struct weir_error err;

	if (code)
		weir_engine_say(engine, "can't list the interfaces: %s", strerror(-code));
	for (struct if_nameindex *i = interfaces; i && i->if_index; i++) {
		struct weir_xdp_found found;

		bool held = !all && (find_held(&engine->held, i->if_name) ||
				     find_renamed(&engine->held, i->if_name));

		weir_tc_remove(engine->pins, engine->tc.board_id, i->if_index,
			       held ? ~engine->hooks : WEIR_TC_HOOKS);
		if (held)
			continue;
		if (weir_xdp_look(engine->xdp.board_id, i->if_index, &found) ||
		    found.holder != WEIR_HELD_BY_US)
			continue;
		one = weir_xdp_detach(engine->xdp.board_id, i->if_index, &err);
		if (one)
			weir_engine_say(engine, "%s", err.text);
		else
			weir_engine_say(engine, "interface %s: no longer limited", i->if_name);
		code = code ? code : one;
	}
	if (interfaces)
		if_freenameindex(interfaces);
	for (uint32_t i = 0; i < WEIR_INTERFACE_LINES; i++) {
		for (int j = 0; j < 2; j++) {
			uint32_t ifindex = engine->dataplane.board->interfaces[i].ifindex[j];

			if (ifindex && !is_held(engine, ifindex))
				table_clear(engine, ifindex);
		}
	}
	return code;
}

/* ---- look ---- */

static void forget_index(struct weir_engine *engine, struct weir_interface_status *status)
{
	table_clear(engine, status->ifindex);
	weir_tc_remove(engine->pins, engine->tc.board_id, status->ifindex, WEIR_TC_HOOKS);
	status->ifindex = 0;
	status->at_ingress = status->at_egress = false;
	status->attached = WEIR_ATTACHED_NOT;
	status->dispatcher = false;
}

static void say_lost(const struct weir_engine *engine, const struct weir_interface_status *status,
		     const struct weir_xdp_found *found)
{
	if (found->holder == WEIR_HELD_BY_FOREIGN)
		weir_engine_say(engine,
				"interface %s: our program was replaced by somebody's: id %u, name "
				"%s, tag %s",
				status->name, found->id, found->name, found->tag);
	else
		weir_engine_say(engine, "interface %s: our program was taken off by somebody",
				status->name);
}

static void look_at_tc(struct weir_engine *engine, struct weir_interface_status *status)
{
	struct weir_error err;
	int code = weir_tc_ensure(&engine->tc, status, engine->hooks, &err);

	if (code < 0)
		set_reason(engine, status, err.text);
	else if (code)
		weir_engine_say(engine,
				"interface %s: our TC program was taken off by somebody: "
				"it is back",
				status->name);
}

/*
 * Whether it is there by another name, with ours on it: its own name is nobody's, the other none of
 * the file's. Then it stays limited as what it was.
 */
static bool keep_renamed(struct weir_engine *engine, struct weir_interface_status *status)
{
	char now[IF_NAMESIZE];
	struct weir_xdp_found found;

	if (!if_indextoname(status->ifindex, now) || find_held(&engine->held, now) ||
	    weir_xdp_look(engine->xdp.board_id, status->ifindex, &found) ||
	    found.holder != WEIR_HELD_BY_US)
		return false;
	if (strcmp(status->renamed, now))
		weir_engine_say(engine, "interface %s: is called %s now, and stays limited",
				status->name, now);
	memcpy(status->renamed, now, sizeof(now));
	look_at_tc(engine, status);
	return true;
}

static void look_at(struct weir_engine *engine, struct weir_interface_status *status, bool retry)
{
	uint32_t ifindex = if_nametoindex(status->name);
	struct weir_xdp_found found;
	struct weir_error err;

	if (status->attached && !ifindex && keep_renamed(engine, status))
		return;
	status->renamed[0] = '\0';
	if (status->ifindex && ifindex != status->ifindex) {
		weir_engine_say(engine, "interface %s: index %u is gone%s", status->name,
				status->ifindex, ifindex ? ", another came" : "");
		forget_index(engine, status);
		retry = true;
	}
	if (ifindex && !weir_xdp_look(engine->xdp.board_id, ifindex, &found)) {
		if (status->attached && found.holder == WEIR_HELD_BY_US) {
			status->attached = found.mode;
			status->dispatcher = found.dispatcher;
			table_set_frame(engine, status);
			table_set_bond(engine, status);
			look_at_tc(engine, status);
			return;
		}
		if (status->attached) {
			say_lost(engine, status, &found);
			status->attached = WEIR_ATTACHED_NOT;
			retry = true;
		}
	}
	if (retry)
		take_one(engine, status, engine->hooks, &err);
}

void weir_held_look(struct weir_engine *engine, bool retry)
{
	for (size_t i = 0; i < engine->held.count; i++)
		look_at(engine, &engine->held.status[i], retry);
}
