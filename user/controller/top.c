// SPDX-License-Identifier: GPL-2.0
#include "controller/top.h"

#include <errno.h>
#include <stdlib.h>

#include "controller/own.h"
#include "controller/sent.h"
#include "weir/front.h"

#define RADIX_BITS 11
#define RADIX_MASK ((1U << RADIX_BITS) - 1)

/* What a place held at a walk before: a base that rates are taken from. */
struct before {
	uint32_t tag; /* its upper half; 0: nothing */
	uint32_t passed;
	uint32_t refused;
	uint16_t slot;
	uint8_t peak; /* of its rate: sent.h */
	uint8_t reserved;
};

/* A front slot that counts for a place. */
struct held {
	uint32_t place;
	uint32_t slot;
};

/* A ledger that the walk goes through. */
struct region {
	const struct weir_set *ledger;
	uint32_t sets;
	uint32_t number; /* of its first place, as fronts number them */
	const struct weir_key_record *keys; /* NULL: see own_keys */
	const struct weir_own_record *own_keys;
	struct before *bases[WEIR_SCAN_BASES]; /* [places]; NULL: not kept */
};

/* A limit's own ledger, mapped while a walk is on. */
struct own {
	struct weir_own_view view;
	struct before *bases[WEIR_SCAN_BASES]; /* of the map `bases_id` */
	uint32_t bases_id;
};

struct weir_scan {
	const struct weir_dataplane *dataplane;
	struct weir_limits_view limits;
	uint32_t base_count;
	int from, to; /* bases: that rates are taken from, that is taken anew; or -1 */
	struct weir_sent *sent;
	struct own own[WEIR_LIMITS_MAX]; /* by slot */
	struct region regions[1 + WEIR_LIMITS_MAX];
	size_t region_count;
	size_t region; /* that the walk is in */
	uint32_t next_set;
	struct before *bases[WEIR_SCAN_BASES]; /* of the shared ledger */
	struct held *held;	  /* twice as many as there are front slots: to be sorted */
	struct held *held_sorted; /* one half of it, by place */
	size_t held_count;
	size_t held_next;
};

/* ---- an asker's heap: the lightest on top ---- */

static uint64_t weight(const struct weir_top_entry *entry)
{
	return entry->passed + entry->refused;
}

static void swap(struct weir_top_entry *a, struct weir_top_entry *b)
{
	struct weir_top_entry old = *a;

	*a = *b;
	*b = old;
}

static void sift_up(struct weir_top *top, size_t i)
{
	while (i && weight(&top->entries[i]) < weight(&top->entries[(i - 1) / 2])) {
		swap(&top->entries[i], &top->entries[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
}

static void sift_down(struct weir_top *top, size_t i)
{
	for (size_t child = 2 * i + 1; child < top->count; child = 2 * i + 1) {
		if (child + 1 < top->count &&
		    weight(&top->entries[child + 1]) < weight(&top->entries[child]))
			child++;
		if (weight(&top->entries[i]) <= weight(&top->entries[child]))
			break;
		swap(&top->entries[i], &top->entries[child]);
		i = child;
	}
}

static bool wants(const struct weir_top *top, uint64_t entry_weight)
{
	if (!entry_weight || !top->size)
		return false;
	return top->count < top->size || entry_weight > weight(&top->entries[0]);
}

static void add(struct weir_top *top, const struct weir_top_entry *entry)
{
	if (top->count < top->size) {
		top->entries[top->count++] = *entry;
		sift_up(top, top->count - 1);
	} else {
		top->entries[0] = *entry;
		sift_down(top, 0);
	}
}

int weir_top_init(struct weir_top *top, size_t size, uint32_t slot, bool recent)
{
	*top = (struct weir_top){ .slot = slot, .recent = recent };
	top->size = size < WEIR_TOP_MAX ? size : WEIR_TOP_MAX;
	top->entries = malloc((top->size ? top->size : 1) * sizeof(*top->entries));
	return top->entries ? 0 : -ENOMEM;
}

static int heavier_first(const void *a, const void *b)
{
	uint64_t left = weight(a), right = weight(b);

	return (left < right) - (left > right);
}

void weir_top_sort(struct weir_top *top)
{
	qsort(top->entries, top->count, sizeof(*top->entries), heavier_first);
}

void weir_top_free(struct weir_top *top)
{
	free(top->entries);
	*top = (struct weir_top){ 0 };
}

/* ---- the walk ---- */

static uint64_t places_of(const struct weir_dataplane *dataplane)
{
	return (uint64_t)dataplane->shape.sets * WEIR_WAYS;
}

static size_t fronts_of(const struct weir_dataplane *dataplane)
{
	return (size_t)dataplane->shape.cpus * dataplane->shape.front_slots;
}

static void free_bases(struct before **bases)
{
	for (int i = 0; i < WEIR_SCAN_BASES; i++) {
		free(bases[i]);
		bases[i] = NULL;
	}
}

static bool new_bases(struct before **bases, uint32_t count, size_t places)
{
	for (uint32_t i = 0; i < count; i++) {
		bases[i] = calloc(places, sizeof(*bases[i]));
		if (!bases[i]) {
			free_bases(bases);
			return false;
		}
	}
	return true;
}

int weir_scan_new(struct weir_scan **scan, const struct weir_dataplane *dataplane, uint32_t bases)
{
	struct weir_scan *made = calloc(1, sizeof(*made));

	if (!made)
		return -ENOMEM;
	made->dataplane = dataplane;
	made->base_count = bases;
	made->from = made->to = bases ? 0 : -1;
	made->held = malloc((2 * fronts_of(dataplane) + 1) * sizeof(*made->held));
	if (!made->held || !new_bases(made->bases, bases, places_of(dataplane))) {
		weir_scan_free(made);
		return -ENOMEM;
	}
	*scan = made;
	return 0;
}

void weir_scan_compare(struct weir_scan *scan, int from, int to, struct weir_sent *sent)
{
	scan->from = from;
	scan->to = to;
	scan->sent = sent;
}

void weir_scan_free(struct weir_scan *scan)
{
	if (!scan)
		return;
	for (int slot = 0; slot < WEIR_LIMITS_MAX; slot++) {
		weir_own_view_close(&scan->own[slot].view);
		free_bases(scan->own[slot].bases);
	}
	free_bases(scan->bases);
	free(scan->held);
	free(scan);
}

const struct weir_limits_view *weir_scan_limits(const struct weir_scan *scan)
{
	return &scan->limits;
}

/* By place, in time that only grows with the count: 3 passes, 11 bits each. */
static void sort_held(struct weir_scan *scan)
{
	struct held *from = scan->held, *to = scan->held + scan->held_count;

	for (int shift = 0; shift < 33; shift += RADIX_BITS) {
		size_t starts[(1 << RADIX_BITS) + 1] = { 0 };
		struct held *old = from;

		for (size_t i = 0; i < scan->held_count; i++)
			starts[((from[i].place >> shift) & RADIX_MASK) + 1]++;
		for (size_t i = 1; i < RADIX_MASK; i++)
			starts[i + 1] += starts[i];
		for (size_t i = 0; i < scan->held_count; i++)
			to[starts[(from[i].place >> shift) & RADIX_MASK]++] = from[i];
		from = to;
		to = old;
	}
	scan->held_sorted = from;
}

/* A limit's own ledger, if it has one that can be read now. */
static void add_own(struct weir_scan *scan, uint32_t slot)
{
	const struct weir_limit *limit = weir_limits_view_slot(&scan->limits, slot);
	struct own *own = &scan->own[slot];

	weir_own_view_close(&own->view);
	if (!limit || !limit->own_sets ||
	    weir_own_view_open(&own->view, scan->dataplane, slot)) {
		free_bases(own->bases);
		own->bases_id = 0;
		return;
	}
	if (scan->base_count && own->bases_id != own->view.id) {
		free_bases(own->bases);
		own->bases_id = 0;
		if (!new_bases(own->bases, scan->base_count, (size_t)own->view.sets * WEIR_WAYS))
			return;
		own->bases_id = own->view.id;
	}
	scan->regions[scan->region_count++] = (struct region){
		.ledger = own->view.ledger,
		.sets = own->view.sets,
		.number = weir_front_place(0, true, slot),
		.own_keys = own->view.keys,
		.bases = { own->bases[0], own->bases[1] },
	};
}

/* The shared ledger, then the limits' own by slot: in the order of the fronts' numbers. */
static void find_regions(struct weir_scan *scan)
{
	scan->regions[0] = (struct region){
		.ledger = scan->dataplane->ledger,
		.sets = scan->dataplane->shape.sets,
		.keys = scan->dataplane->keys,
		.bases = { scan->bases[0], scan->bases[1] },
	};
	scan->region_count = 1;
	scan->region = 0;
	for (uint32_t slot = 0; slot < WEIR_LIMITS_MAX; slot++)
		add_own(scan, slot);
}

void weir_scan_begin(struct weir_scan *scan)
{
	const struct weir_front_slot *front = scan->dataplane->front;
	size_t slots = fronts_of(scan->dataplane);

	weir_limits_view_read(&scan->limits, scan->dataplane);
	find_regions(scan);
	scan->next_set = 0;
	scan->held_next = scan->held_count = 0;
	for (size_t i = 0; i < slots; i++) {
		if (weir_once(front[i].refused))
			scan->held[scan->held_count++] =
				(struct held){ weir_once(front[i].place), (uint32_t)i };
	}
	sort_held(scan);
}

/* What a front slot counts for a tag: 0 if it has gone over to another key. */
static uint64_t front_refused(const struct weir_front_slot *slot, uint64_t tag)
{
	uint64_t refused = weir_once(slot->refused);

	return weir_once(slot->tag) == tag ? refused : 0;
}

/* The refusals in the fronts for a place; the walk asks in the order of the places. */
static uint64_t fronts_refused(const struct weir_scan *scan, size_t first, uint32_t place,
			       uint64_t tag)
{
	uint64_t sum = 0;

	for (size_t i = first; i < scan->held_count && scan->held_sorted[i].place == place; i++)
		sum += front_refused(&scan->dataplane->front[scan->held_sorted[i].slot], tag);
	return sum;
}

/*
 * Refusals of a place, fronts included. A slot that is recycled between the two readings moves
 * its count to the ledger: the fronts then show fewer than before, and both are read again.
 */
static uint64_t place_refused(struct weir_scan *scan, const struct weir_counts *counts,
			      uint32_t place, uint64_t tag)
{
	uint64_t before, refused, after;
	size_t first;

	while (scan->held_next < scan->held_count &&
	       scan->held_sorted[scan->held_next].place < place)
		scan->held_next++;
	first = scan->held_next;
	if (first == scan->held_count || scan->held_sorted[first].place != place)
		return weir_once(counts->refused);
	for (int tries = 0; tries < 3; tries++) {
		before = fronts_refused(scan, first, place, tag);
		refused = weir_once(counts->refused);
		after = fronts_refused(scan, first, place, tag);
		if (after >= before)
			return refused + after;
	}
	return weir_once(counts->refused);
}

/* Since the walk before; what can't be (a race between readings) counts as nothing. */
static uint64_t grown(uint64_t now, uint32_t before)
{
	int32_t difference = (int32_t)((uint32_t)now - before);

	return difference > 0 ? (uint64_t)difference : 0;
}

/* What came since the base; all of it for a key that is not in it. */
static struct weir_top_entry since_base(const struct before *base,
					const struct weir_top_entry *total)
{
	struct weir_top_entry recent = *total;

	if (base->tag == (uint32_t)(total->tag >> 32)) {
		recent.passed = grown(total->passed, base->passed);
		recent.refused = grown(total->refused, base->refused);
	}
	return recent;
}

/* Takes the base anew. What is seen goes by windows that follow each other on one base. */
static void move_base(const struct weir_scan *scan, struct before *base,
		      const struct weir_limit *limit, const struct weir_top_entry *total,
		      const struct weir_top_entry *recent)
{
	uint32_t tag = (uint32_t)(total->tag >> 32);
	bool same = base->tag == tag && base->slot == limit->slot;
	uint8_t peak = same ? base->peak : 0;

	if (scan->sent)
		peak = weir_sent_count(scan->sent, limit, weight(recent), peak, !same);
	*base = (struct before){ .tag = tag,
				 .passed = (uint32_t)total->passed,
				 .refused = (uint32_t)total->refused,
				 .slot = limit->slot,
				 .peak = peak };
}

static uint16_t slot_at(const struct region *region, uint32_t place)
{
	return region->keys ? weir_once(region->keys[place].slot)
			    : weir_once(region->own_keys[place].key.slot);
}

/* Whether the place holds a key that can be named; fills in the entry's key. */
static bool name(const struct weir_scan *scan, const struct region *region, uint32_t place,
		 struct weir_top_entry *entry)
{
	const struct weir_seeds *seeds = &scan->dataplane->shape.seeds;
	const struct weir_limit *limit;
	bool fits;

	if (region->keys)
		entry->key.key = *(volatile struct weir_key_record *)&region->keys[place];
	else
		entry->key = *(volatile struct weir_own_record *)&region->own_keys[place];
	limit = weir_limits_view_slot(&scan->limits, entry->key.key.slot);
	if (!limit)
		return false;
	fits = region->keys ? weir_record_fits(&entry->key.key, limit, seeds, entry->tag)
			    : weir_own_record_tag(&entry->key, limit, seeds) == entry->tag;
	return fits &&
	       weir_once(region->ledger[place / WEIR_WAYS].tag[place % WEIR_WAYS]) == entry->tag;
}

/* What a place counts, and its limit; NULL where there is no key, or one of no limit in force. */
static const struct weir_limit *count(struct weir_scan *scan, const struct region *region,
				      uint32_t place, struct weir_top_entry *total)
{
	const struct weir_set *set = &region->ledger[place / WEIR_WAYS];
	uint32_t way = place % WEIR_WAYS;
	const struct weir_limit *limit;

	*total = (struct weir_top_entry){ .tag = weir_once(set->tag[way]) };
	if (!(total->tag & WEIR_TAG_CONFIRMED))
		return NULL;
	limit = weir_limits_view_slot(&scan->limits, slot_at(region, place));
	if (!limit)
		return NULL;
	total->passed = weir_limit_admitted(limit, weir_once(set->state[way]),
					    weir_once(set->counts[way].passed));
	total->refused = place_refused(scan, &set->counts[way], region->number + place, total->tag);
	return limit;
}

static void visit(struct weir_scan *scan, const struct region *region, uint32_t place,
		  struct weir_top *const *tops, size_t top_count)
{
	const struct weir_limit *limit;
	struct weir_top_entry total, recent;
	bool named = false;

	limit = count(scan, region, place, &total);
	if (!limit)
		return;
	recent = scan->from < 0 ? total : since_base(&region->bases[scan->from][place], &total);
	if (scan->to >= 0)
		move_base(scan, &region->bases[scan->to][place], limit, &total, &recent);
	for (size_t i = 0; i < top_count; i++) {
		struct weir_top_entry *entry = tops[i]->recent ? &recent : &total;

		if (!wants(tops[i], weight(entry)))
			continue;
		if (!named && !name(scan, region, place, &total))
			return;
		named = true;
		recent.key = total.key;
		if (tops[i]->slot == WEIR_NO_LIMIT || tops[i]->slot == total.key.key.slot)
			add(tops[i], entry);
	}
}

/* Walks on within a region; how many sets that were. */
static uint32_t step_region(struct weir_scan *scan, uint32_t sets, struct weir_top *const *tops,
			    size_t count)
{
	const struct region *region = &scan->regions[scan->region];
	uint32_t left = region->sets - scan->next_set, done = sets < left ? sets : left;

	for (uint32_t end = scan->next_set + done; scan->next_set < end; scan->next_set++) {
		for (uint32_t way = 0; way < WEIR_WAYS; way++)
			visit(scan, region, scan->next_set * WEIR_WAYS + way, tops, count);
	}
	if (scan->next_set == region->sets) {
		scan->region++;
		scan->next_set = 0;
	}
	return done;
}

bool weir_scan_step(struct weir_scan *scan, uint32_t sets, struct weir_top *const *tops,
		    size_t count)
{
	while (sets && scan->region < scan->region_count)
		sets -= step_region(scan, sets, tops, count);
	return scan->region < scan->region_count;
}

void weir_scan_run(struct weir_scan *scan, struct weir_top *const *tops, size_t count)
{
	weir_scan_begin(scan);
	while (weir_scan_step(scan, UINT32_MAX, tops, count))
		;
}
