// SPDX-License-Identifier: GPL-2.0
#include "controller/sweep.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "controller/keys.h"

/* Whether the key record in a place is of no limit that counts in the shared ledger. */
static bool is_stale(const struct weir_limits_view *limits, const struct weir_dataplane *dataplane,
		     uint32_t place, uint64_t tag)
{
	const volatile struct weir_key_record *live = &dataplane->keys[place];
	struct weir_key_record record = *live;
	const struct weir_limit *limit = weir_limits_view_slot(limits, record.slot);

	if (!limit || limit->own_sets)
		return true;
	return !weir_record_fits(&record, limit, &dataplane->shape.seeds, tag);
}

static bool free_place(const struct weir_limits_view *limits,
		       const struct weir_dataplane *dataplane, struct weir_set *set,
		       uint32_t place, uint64_t now_ticks)
{
	struct weir_place at = { .set = set, .way = place % WEIR_WAYS };
	uint64_t state = weir_once(set->state[at.way]), tag = weir_once(set->tag[at.way]);

	if (!tag || state == WEIR_STATE_BUSY || weir_neutral(state, now_ticks) ||
	    !is_stale(limits, dataplane, place, tag))
		return false;
	if (weir_swap(&set->state[at.way], state, WEIR_STATE_BUSY) != state)
		return false;
	/* It may have gone to another key before, whose state happens to be the same. */
	tag = weir_once(set->tag[at.way]);
	if (tag && !is_stale(limits, dataplane, place, tag)) {
		weir_once(set->state[at.way]) = state;
		return false;
	}
	weir_ledger_release(&at, now_ticks);
	return true;
}

int64_t weir_sweep_ledger(const struct weir_dataplane *dataplane, int ledger_fd, uint64_t now_ns)
{
	size_t bytes = dataplane->shape.sets * sizeof(struct weir_set);
	struct weir_limits_view limits;
	struct weir_set *sets;
	int64_t freed = 0;

	sets = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ledger_fd, 0);
	if (sets == MAP_FAILED)
		return -errno;
	weir_limits_view_read(&limits, dataplane);
	for (uint32_t place = 0; place < dataplane->shape.sets * WEIR_WAYS; place++)
		freed += free_place(&limits, dataplane, &sets[place / WEIR_WAYS], place,
				    now_ns << WEIR_TICK_SHIFT);
	munmap(sets, bytes);
	return freed;
}

static bool is_over(const struct weir_limits_view *limits, const struct weir_dataplane *dataplane,
		    uint64_t tag, const struct weir_ban *ban, uint64_t now_ns)
{
	const struct weir_limit *limit = weir_limits_view_slot(limits, ban->key.slot);
	struct weir_own_record record = weir_ban_record(ban);

	if (ban->until_ticks <= now_ns << WEIR_TICK_SHIFT || !limit)
		return true;
	return weir_own_record_tag(&record, limit, &dataplane->shape.seeds) != tag;
}

int64_t weir_sweep_bans(const struct weir_dataplane *dataplane, uint64_t now_ns)
{
	struct weir_limits_view limits;
	struct weir_bans bans;
	int64_t freed = 0;
	int code = weir_bans_read(&bans, dataplane);

	if (code)
		return code;
	weir_limits_view_read(&limits, dataplane);
	for (size_t i = 0; i < bans.count; i++) {
		if (is_over(&limits, dataplane, bans.tags[i], &bans.items[i], now_ns))
			freed += !bpf_map_delete_elem(dataplane->bans_fd, &bans.tags[i]);
	}
	weir_bans_free(&bans);
	return freed;
}
