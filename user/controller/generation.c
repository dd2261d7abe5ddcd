// SPDX-License-Identifier: GPL-2.0
#include "controller/generation.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/clock.h"

#define STORE(to, value) __atomic_store_n(&(to), value, __ATOMIC_RELEASE)

int weir_generation_wait(struct weir_generation *generation)
{
	uint32_t zero = 0, fd = (uint32_t)generation->inner_fd;

	return bpf_map_update_elem(generation->outer_fd, &zero, &fd, BPF_ANY);
}

int weir_generation_open(struct weir_generation *generation, struct weir_dataplane *dataplane,
			 struct weir_error *err)
{
	int code;

	*generation = (struct weir_generation){
		.dataplane = dataplane,
		.outer_fd = -1,
	};
	generation->inner_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "weir_wait", 4, 4, 1, NULL);
	if (generation->inner_fd >= 0) {
		LIBBPF_OPTS(bpf_map_create_opts, options,
			    .inner_map_fd = (uint32_t)generation->inner_fd);

		generation->outer_fd =
			bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "weir_waits", 4, 4, 1, &options);
	}
	code = generation->outer_fd < 0 ? -errno : weir_generation_wait(generation);
	if (!code)
		return 0;
	weir_generation_close(generation);
	return weir_error_set(err, code, "can't make the maps that a change waits by: %s",
			      strerror(-code));
}

void weir_generation_close(struct weir_generation *generation)
{
	if (generation->outer_fd >= 0)
		close(generation->outer_fd);
	if (generation->inner_fd >= 0)
		close(generation->inner_fd);
	generation->outer_fd = generation->inner_fd = -1;
}

static uint32_t active_of(const struct weir_generation *generation)
{
	return generation->dataplane->board->active.generation & 1;
}

static struct weir_limit *limits_of(const struct weir_generation *generation, uint32_t which)
{
	return generation->dataplane->board->limits + which * WEIR_LIMITS_MAX;
}

struct weir_compiled_before weir_generation_now(const struct weir_generation *generation)
{
	uint32_t active = active_of(generation);
	uint32_t count = generation->dataplane->board->policy[active].limits;

	return (struct weir_compiled_before){
		.limits = limits_of(generation, active),
		.count = count < WEIR_LIMITS_MAX ? count : WEIR_LIMITS_MAX,
		.labels = generation->dataplane->labels,
	};
}

/* ---- prefixes ---- */

/* The keys in the map: *keys is malloc'd, or NULL for none. */
static int list_prefixes(int fd, struct weir_prefix_key **keys, size_t *count)
{
	struct weir_prefix_key key, *at = NULL, *grown;
	size_t room = 0;

	*keys = NULL;
	*count = 0;
	while (!bpf_map_get_next_key(fd, at, &key)) {
		if (*count == room) {
			room = room ? 2 * room : 64;
			grown = realloc(*keys, room * sizeof(**keys));
			if (!grown) {
				free(*keys);
				return -ENOMEM;
			}
			*keys = grown;
		}
		(*keys)[*count] = key;
		at = &(*keys)[(*count)++];
	}
	return 0;
}

static int clear_prefixes(const struct weir_generation *generation, uint32_t which)
{
	int fd = generation->dataplane->prefixes_fd;
	struct weir_prefix_key *keys;
	size_t count;
	int code = list_prefixes(fd, &keys, &count);

	if (code)
		return code;
	for (size_t i = 0; i < count && !code; i++) {
		if (keys[i].table >> 2 == which && bpf_map_delete_elem(fd, &keys[i]))
			code = -errno;
	}
	free(keys);
	return code;
}

static int fill_prefixes(const struct weir_generation *generation, uint32_t which,
			 const struct weir_compiled *compiled)
{
	int code = clear_prefixes(generation, which);

	for (size_t i = 0; i < compiled->prefix_count && !code; i++) {
		struct weir_prefix_key key = compiled->prefixes[i].key;

		key.table |= (uint8_t)(which << 2);
		if (bpf_map_update_elem(generation->dataplane->prefixes_fd, &key,
					&compiled->prefixes[i].class, BPF_ANY))
			code = -errno;
	}
	if (code)
		clear_prefixes(generation, which);
	return code;
}

/* ---- slots ---- */

static bool slot_in_force(const struct weir_generation *generation, uint16_t slot)
{
	struct weir_compiled_before now = weir_generation_now(generation);

	for (size_t i = 0; i < now.count; i++) {
		if (now.limits[i].slot == slot)
			return true;
	}
	return false;
}

/* A slot given to a new limit starts from zero; nobody counts into it before the switch. */
static void begin_slots(const struct weir_generation *generation,
			const struct weir_compiled *compiled)
{
	struct weir_dataplane *dataplane = generation->dataplane;

	for (uint32_t i = 0; i < compiled->head.limits; i++) {
		uint16_t slot = compiled->limits[i].slot;

		if (slot_in_force(generation, slot))
			continue;
		for (uint32_t cpu = 0; cpu < dataplane->shape.cpus; cpu++) {
			dataplane->cpus[cpu].totals[slot] = (struct weir_totals){ 0 };
			dataplane->cpus[cpu].leases[slot] = (struct weir_lease){ 0 };
		}
		dataplane->labels[slot] = compiled->labels[i];
	}
}

/* After the switch: the kept limits' settings, and no name for slots that are free. */
static void settle_labels(const struct weir_generation *generation,
			  const struct weir_compiled *compiled)
{
	struct weir_label *labels = generation->dataplane->labels;

	for (uint16_t slot = 0; slot < WEIR_LIMITS_MAX; slot++) {
		if (!slot_in_force(generation, slot))
			labels[slot] = (struct weir_label){ 0 };
	}
	for (uint32_t i = 0; i < compiled->head.limits; i++)
		labels[compiled->limits[i].slot] = compiled->labels[i];
}

static void remember_all(const struct weir_generation *generation)
{
	struct weir_compiled_before now = weir_generation_now(generation);

	for (size_t i = 0; i < now.count; i++)
		weir_dataplane_remember(generation->dataplane, &now.limits[i], weir_monotonic_ns());
}

/*
 * A sampler is due when the policy told it to be that was in force at its last event, which may
 * be in years. It begins anew, with an event at the next refusal unless there are to be none.
 */
static void begin_samples(const struct weir_generation *generation, uint64_t sample_ns)
{
	struct weir_dataplane *dataplane = generation->dataplane;

	for (uint32_t cpu = 0; cpu < dataplane->shape.cpus; cpu++)
		STORE(dataplane->cpus[cpu].sampler.next_ns,
		      sample_ns == WEIR_SAMPLE_NEVER_NS ? WEIR_SAMPLE_NEVER_NS : 0);
}

int weir_generation_apply(struct weir_generation *generation, const struct weir_compiled *compiled,
			  struct weir_error *err)
{
	struct weir_dataplane *dataplane = generation->dataplane;
	uint32_t idle = !active_of(generation);
	int code = fill_prefixes(generation, idle, compiled);

	if (code)
		return weir_error_set(err, code, "can't store the policy's prefixes: %s",
				      strerror(-code));
	begin_slots(generation, compiled);
	remember_all(generation);
	dataplane->board->policy[idle] = compiled->head;
	memcpy(limits_of(generation, idle), compiled->limits, sizeof(compiled->limits));
	memcpy(dataplane->rows + idle * WEIR_ROWS, compiled->rows, sizeof(compiled->rows));
	memcpy(dataplane->ports + idle * 2 * WEIR_PORT_WORDS, compiled->ports,
	       sizeof(compiled->ports));
	STORE(dataplane->board->active.generation, idle);
	settle_labels(generation, compiled);
	weir_generation_wait(generation);
	begin_samples(generation, compiled->head.sample_ns);
	clear_prefixes(generation, !idle);
	return 0;
}

/* Whether the short way may be taken: never while a limit is changed under it. */
static void set_plain(const struct weir_generation *generation, bool allowed)
{
	uint32_t active = active_of(generation);
	struct weir_policy_head *head = &generation->dataplane->board->policy[active];

	for (int hook = 0; hook < WEIR_HOOKS; hook++)
		STORE(head->plain[hook],
		      allowed ? weir_policy_plain(head, limits_of(generation, active),
						  (enum weir_hook)hook) :
				0);
}

static bool is_same(const struct weir_limit *live, const struct weir_limit *next)
{
	return !memcmp(live->words, next->words, sizeof(live->words)) &&
	       live->flags == next->flags && live->ban_ticks == next->ban_ticks &&
	       live->ban_window_ticks == next->ban_window_ticks &&
	       live->ban_after == next->ban_after;
}

/* Which word says how long what is admitted counts: a bucket's cost, a window, a period. */
static size_t price_of(const struct weir_limit *limit)
{
	return limit->kind == WEIR_KIND_BUCKET ? 1 : 0;
}

static bool is_dearer(const struct weir_limit *next, const struct weir_limit *live)
{
	const struct weir_bucket_conf *a = &next->bucket, *b = &live->bucket;
	int a_exponent = a->cost_left - a->cost_right, b_exponent = b->cost_left - b->cost_right;

	if (next->kind != WEIR_KIND_BUCKET)
		return next->words[0] > live->words[0];
	/* A mantissa has its highest bit set. */
	return a_exponent != b_exponent ? a_exponent > b_exponent :
					  a->cost_mantissa > b->cost_mantissa;
}

/*
 * A packet, and for longer whoever comes after a kill in between, meets some words of the old
 * setting and some of the new one. A higher price goes first, with the old depth it admits no
 * more than the old setting; a lower one last, the new depth at the old price admits no more
 * than the new setting.
 */
static void store_words(struct weir_limit *live, const struct weir_limit *next)
{
	size_t price = price_of(next);

	if (is_dearer(next, live))
		STORE(live->words[price], next->words[price]);
	for (size_t i = 0; i < sizeof(live->words) / sizeof(live->words[0]); i++) {
		if (i != price)
			STORE(live->words[i], next->words[i]);
	}
	STORE(live->words[price], next->words[price]);
}

void weir_generation_set(struct weir_generation *generation, uint32_t limit,
			 const struct weir_limit *next, const struct weir_label *label)
{
	struct weir_limit *live = limits_of(generation, active_of(generation)) + limit;

	/* Said again, as some do all the time, it is no new revision. */
	if (is_same(live, next))
		return;
	weir_dataplane_remember(generation->dataplane, live, weir_monotonic_ns());
	set_plain(generation, false);
	/* A limit that blocks may have no words: those of a bucket without a price admit all. */
	STORE(live->flags, live->flags | (next->flags & WEIR_LIMIT_BLOCK));
	store_words(live, next);
	STORE(live->ban_ticks, next->ban_ticks);
	STORE(live->ban_window_ticks, next->ban_window_ticks);
	STORE(live->ban_after, next->ban_after);
	STORE(live->flags, next->flags);
	STORE(live->revision, live->revision + 1);
	set_plain(generation, true);
	generation->dataplane->labels[live->slot] = *label;
}
