// SPDX-License-Identifier: GPL-2.0
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "controller/own.h"
#include "controller/report.h"
#include "weir/place.h"

#define LOOK_SETS_MAX 32768U

struct weir_ledger_fill weir_ledger_look(const struct weir_dataplane *dataplane, uint64_t now_ns)
{
	uint64_t now_ticks = now_ns << WEIR_TICK_SHIFT;
	uint32_t sets = dataplane->shape.sets;
	uint32_t stride = sets > LOOK_SETS_MAX ? sets / LOOK_SETS_MAX : 1;
	struct weir_ledger_fill fill = { 0 };

	for (uint32_t i = 0; i < sets; i += stride) {
		const struct weir_set *set = &dataplane->ledger[i];

		for (int way = 0; way < WEIR_WAYS; way++) {
			fill.known += !!weir_once(set->tag[way]);
			fill.held += !weir_neutral(weir_once(set->state[way]), now_ticks);
		}
		fill.places += WEIR_WAYS;
	}
	return fill;
}

static json_t *shape(const struct weir_shape *shape)
{
	return json_pack("{s:I, s:i, s:I, s:I}", "sets", (json_int_t)shape->sets, "ways", WEIR_WAYS,
			 "front_slots", (json_int_t)shape->front_slots, "cpus",
			 (json_int_t)shape->cpus);
}

json_t *weir_report_ledger(const struct weir_view *view)
{
	const struct weir_dataplane *dataplane = view->dataplane;
	struct weir_ledger_fill fill = weir_ledger_look(dataplane, view->now_ns);
	uint64_t places = (uint64_t)dataplane->shape.sets * WEIR_WAYS;
	uint64_t untracked = 0, contended = 0, lost = 0;
	struct weir_limits_view limits;
	double seen = fill.places ? (double)fill.places : 1;
	json_t *made;

	weir_limits_view_read(&limits, dataplane);
	for (uint32_t i = 0; i < limits.count; i++) {
		struct weir_totals sum =
			weir_dataplane_totals(dataplane, limits.by_index[i].slot % WEIR_LIMITS_MAX);

		untracked += sum.untracked_packets;
		contended += sum.contended_packets;
	}
	for (uint32_t cpu = 0; cpu < dataplane->shape.cpus; cpu++)
		lost += weir_once(dataplane->cpus[cpu].sampler.lost);
	made = json_pack(
		"{s:I, s:I, s:f, s:f, s:b, s:I, s:I, s:I, s:I}", "places", (json_int_t)places,
		"memory_bytes", (json_int_t)weir_shape_bytes(&dataplane->shape), "held_percent",
		100 * (double)fill.held / seen, "known_percent", 100 * (double)fill.known / seen,
		"estimated", fill.places < places, "untracked", (json_int_t)untracked, "contended",
		(json_int_t)contended, "events_lost", (json_int_t)lost, "generation",
		(json_int_t)(dataplane->board->active.generation & 1));
	made = weir_report_add(made, "own", weir_report_own(view));
	return weir_report_add(made, "shape", shape(&dataplane->shape));
}

/* ---- one address ---- */

struct found {
	const struct weir_set *set; /* NULL: nowhere */
	uint32_t way;
	uint32_t place;
	bool room; /* whether a newcomer would find a place */
};

static struct found find(const struct weir_set *ledger, uint32_t sets,
			 const struct weir_seeds *seeds, uint64_t tag, uint64_t now_ticks)
{
	uint32_t indexes[2] = { weir_tag_first(tag, sets), weir_tag_second(tag, sets, seeds) };
	struct found found = { 0 };

	for (int i = 0; i < 2; i++) {
		const struct weir_set *set = &ledger[indexes[i]];
		uint32_t way = weir_set_find(set, tag), taken;

		weir_set_room(set, now_ticks, &taken);
		found.room |= taken < WEIR_WAYS;
		if (way < WEIR_WAYS && !found.set) {
			found.set = set;
			found.way = way;
			found.place = indexes[i] * WEIR_WAYS + way;
		}
	}
	return found;
}

/* Refusals that the CPUs still hold in their fronts. */
static uint64_t fronts_refused(const struct weir_dataplane *dataplane, uint64_t tag)
{
	const struct weir_shape *shape = &dataplane->shape;
	uint64_t sum = 0;

	for (uint32_t cpu = 0; cpu < shape->cpus; cpu++) {
		const struct weir_front_slot *slot =
			&dataplane->front[(size_t)cpu * shape->front_slots +
					  weir_tag_slot(tag, shape->front_slots)];

		if (weir_once(slot->tag) == tag)
			sum += weir_once(slot->refused);
	}
	return sum;
}

/* What a key has left, and how long one more packet (or byte) is refused. */
struct standing {
	double left;
	uint64_t wait_ticks; /* UINT64_MAX: no end is known */
};

/* The TAT as the key's next packet will find it, where the limit was changed since its last. */
static uint64_t bucket_now(const struct weir_dataplane *dataplane, const struct weir_limit *limit,
			   uint64_t tat, uint64_t passed, uint64_t now_ticks)
{
	uint16_t revision = weir_passed_revision(passed);

	if (!weir_passed_behind(passed, limit->revision))
		return tat;
	return weir_past_convert(
		&dataplane->board->past[limit->slot][revision % WEIR_PAST_REVISIONS], revision,
		&limit->bucket, tat, now_ticks);
}

static struct standing bucket_standing(const struct weir_limit *limit, uint64_t tat,
				       uint64_t now_ticks)
{
	uint64_t cost = weir_bucket_cost(&limit->bucket, 1);
	uint64_t clamped = weir_bucket_clamp(tat, &limit->bucket, now_ticks);
	uint64_t debt = clamped > now_ticks ? clamped - now_ticks : 0;

	return (struct standing){
		.left = cost ? (double)(limit->bucket.burst_ticks - debt) / (double)cost : 0,
		.wait_ticks = weir_bucket_wait(tat, &limit->bucket, now_ticks, cost),
	};
}

static struct standing period_standing(const struct weir_limit *limit, uint64_t end, uint64_t word,
				       uint64_t now_ticks)
{
	struct weir_period_state state = weir_period_unpack(end, word);
	uint64_t until = weir_period_until(&state, &limit->period, now_ticks);
	uint32_t left = weir_period_room(&state, &limit->period, now_ticks);

	return (struct standing){ left, left ? 0 : until ? until - now_ticks : UINT64_MAX };
}

static struct standing gate_standing(const struct weir_limit *limit, uint64_t word)
{
	uint64_t inside = weir_gate_count(word), most = limit->gate.limit;

	if (!most)
		return (struct standing){ 0 };
	return (struct standing){ inside < most ? (double)(most - inside) : 0,
				  inside < most ? 0 : UINT64_MAX };
}

/* Of the `passed` events so far those in the window count; the oldest of them is waited for. */
static struct standing sliding_standing(const struct weir_limit *limit, const uint64_t *ring,
					uint64_t passed, uint64_t now_ticks)
{
	const struct weir_sliding_conf *conf = &limit->sliding;
	uint64_t last = passed < conf->quota ? passed : conf->quota, inside = 0, stamp;

	for (; ring && inside < last; inside++) {
		stamp = weir_once(ring[weir_ring_index(passed - 1 - inside, conf->capacity)]);
		if (weir_sliding_open(conf, stamp, now_ticks))
			break;
	}
	if (!ring || inside < conf->quota)
		return (struct standing){ (double)(conf->quota - inside), 0 };
	stamp = weir_once(ring[weir_ring_index(passed - conf->quota, conf->capacity)]);
	stamp = weir_sliding_until(conf, stamp);
	return (struct standing){ 0, stamp > now_ticks ? stamp - now_ticks : 0 };
}

/* What is known of a key's place; all zero for one that has none. */
struct held {
	uint64_t state;
	struct weir_counts counts;
	const uint64_t *ring;
};

static json_t *standing(json_t *made, const struct weir_limit *limit, const struct held *held,
			uint64_t now_ticks)
{
	uint64_t state = held->state, passed = held->counts.passed;
	bool block = limit->flags & WEIR_LIMIT_BLOCK, free = limit->flags & WEIR_LIMIT_UNLIMITED;
	struct standing now = { 0 };

	if (!block && !free) {
		now = limit->kind == WEIR_KIND_PERIOD
			      ? period_standing(limit, state, passed, now_ticks)
		      : limit->kind == WEIR_KIND_GATE ? gate_standing(limit, state)
		      : limit->kind == WEIR_KIND_SLIDING
			      ? sliding_standing(limit, held->ring, passed, now_ticks)
			      : bucket_standing(limit, state, now_ticks);
	}
	made = weir_report_add(made, "left", block || free ? json_null() : json_real(now.left));
	made = weir_report_add(made, "refused_now", json_boolean(block || now.wait_ticks));
	return weir_report_add(
		made, "refused_for_ns",
		block || now.wait_ticks == UINT64_MAX
			? json_null()
			: json_integer((json_int_t)(now.wait_ticks >> WEIR_TICK_SHIFT)));
}

/* What a place holds, refusals in the fronts included. */
static struct held hold(const struct weir_dataplane *dataplane, const struct found *found,
			const struct weir_own_view *own, uint64_t tag)
{
	struct held held = { 0 };

	if (!found->set)
		return held;
	held.state = weir_once(found->set->state[found->way]);
	held.counts.passed = weir_once(found->set->counts[found->way].passed);
	held.counts.refused = weir_once(found->set->counts[found->way].refused) +
			      fronts_refused(dataplane, tag);
	if (own->capacity)
		held.ring = own->rings + (size_t)found->place * own->capacity;
	if (held.state == WEIR_STATE_BUSY)
		held.state = 0;
	return held;
}

static json_t *ledger_state(json_t *made, const struct weir_view *view,
			    const struct weir_limit *limit, const struct weir_own_view *own,
			    uint64_t tag)
{
	const struct weir_dataplane *dataplane = view->dataplane;
	uint64_t now_ticks = view->now_ns << WEIR_TICK_SHIFT, passed;
	struct found found = find(own->ledger ? own->ledger : dataplane->ledger,
				  own->ledger ? own->sets : dataplane->shape.sets,
				  &dataplane->shape.seeds, tag, now_ticks);
	struct held held = hold(dataplane, &found, own, tag);

	if (found.set && limit->kind == WEIR_KIND_BUCKET)
		held.state = bucket_now(dataplane, limit, held.state, held.counts.passed,
					now_ticks);
	made = weir_report_add(made, "in_ledger", json_boolean(found.set));
	made = weir_report_add(made, "room", json_boolean(found.set || found.room));
	passed = weir_limit_admitted(limit, held.state, held.counts.passed);
	made = weir_report_add(made, "admitted", json_integer((json_int_t)passed));
	made = weir_report_add(made, "refused", json_integer((json_int_t)held.counts.refused));
	return standing(made, limit, &held, now_ticks);
}

/* How long a key is banned: null where it isn't. */
static json_t *ban_left(const struct weir_view *view, uint64_t tag)
{
	struct weir_ban ban;
	uint64_t now_ticks = view->now_ns << WEIR_TICK_SHIFT;

	if (bpf_map_lookup_elem(view->dataplane->bans_fd, &tag, &ban) ||
	    ban.until_ticks <= now_ticks)
		return json_null();
	return json_integer((json_int_t)((ban.until_ticks - now_ticks) >> WEIR_TICK_SHIFT));
}

static json_t *why_limit(const struct weir_view *view, const struct weir_limit *limit,
			 uint8_t family, const void *address)
{
	const struct weir_label *label = &view->dataplane->labels[limit->slot];
	struct weir_key_record record = weir_record_of_address(limit, family, address);
	char name[sizeof(label->name)], setting[sizeof(label->setting)];
	char key[WEIR_KEY_TEXT], kind[WEIR_KEY_TEXT];
	struct weir_own_view own = { 0 };
	json_t *made;
	uint64_t tag;

	memcpy(name, label->name, sizeof(name));
	memcpy(setting, label->setting, sizeof(setting));
	name[sizeof(name) - 1] = setting[sizeof(setting) - 1] = '\0';
	made = json_pack("{s:s, s:s, s:s, s:s}", "limit", name, "key",
			 weir_limit_key_print(limit, kind), "setting", setting, "mode",
			 limit->flags & WEIR_LIMIT_MONITOR ? "monitor" : "enforce");
	/* An address alone says nothing about a key that has more in it. */
	if (limit->key & ~WEIR_KEY_SOURCE ||
	    (limit->own_sets && weir_own_view_open(&own, view->dataplane, limit->slot)))
		return weir_report_add(made, "in_ledger", json_null());
	tag = weir_record_tag(&record, limit, &view->dataplane->shape.seeds);
	made = weir_report_add(made, "of", json_string(weir_record_print(&record, limit, key)));
	if (limit->ban_after)
		made = weir_report_add(made, "banned_for_ns", ban_left(view, tag));
	made = ledger_state(made, view, limit, &own, tag);
	weir_own_view_close(&own);
	return made;
}

int weir_report_parse_address(const char *text, uint8_t *family, uint8_t address[16],
			      struct weir_error *err)
{
	memset(address, 0, 16);
	*family = strchr(text, ':') ? 6 : 4;
	if (inet_pton(*family == 6 ? AF_INET6 : AF_INET, text, address) == 1)
		return 0;
	return weir_error_set(err, -EINVAL,
			      "address '%.80s': give an IPv4 or IPv6 address, such as 192.0.2.7 "
			      "or 2001:db8::7",
			      text);
}

static json_t *why_limits(const struct weir_view *view, uint8_t family, const void *address)
{
	json_t *array = json_array();
	struct weir_limits_view limits;

	weir_limits_view_read(&limits, view->dataplane);
	for (uint32_t i = 0; i < limits.count && array; i++) {
		if (limits.by_index[i].slot >= WEIR_LIMITS_MAX)
			continue;
		if (json_array_append_new(array,
					  why_limit(view, &limits.by_index[i], family, address))) {
			json_decref(array);
			array = NULL;
		}
	}
	return array;
}

/* {"left_ns": …} of each list that has the address; null for one that has not. */
static json_t *why_lists(const struct weir_view *view, uint8_t family, const void *address)
{
	json_t *made = json_object();
	uint64_t expires_ns;

	for (int list = 0; list < WEIR_LISTS; list++) {
		bool there = weir_lists_look(view->dataplane, (enum weir_list)list, family,
					     address, view->now_ns, &expires_ns);

		made = weir_report_add(
			made, weir_list_name((enum weir_list)list),
			there ? json_pack("{s:o}", "left_ns",
					  weir_report_left(expires_ns, view->now_ns)) :
				json_null());
	}
	return made;
}

json_t *weir_report_why(const struct weir_view *view, uint8_t family, const void *address)
{
	char text[INET6_ADDRSTRLEN];
	json_t *report = weir_report_new(view);

	inet_ntop(family == 6 ? AF_INET6 : AF_INET, address, text, sizeof(text));
	report = weir_report_add(report, "address", json_string(text));
	report = weir_report_add(report, "lists", why_lists(view, family, address));
	return weir_report_add(report, "limits", why_limits(view, family, address));
}
