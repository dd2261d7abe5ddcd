// SPDX-License-Identifier: GPL-2.0
#include "controller/lists.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KEYS_A_CALL 4096

/* A key of the tries of both families: IPv4 has the first 4 bytes of address. */
struct trie_key {
	uint32_t length;
	uint8_t address[16];
};

/* Entries of one trie on their way: a call for many takes half the time of many calls. */
struct batch {
	enum weir_trie trie;
	uint32_t count;
	uint64_t values[KEYS_A_CALL];
	char keys[KEYS_A_CALL * sizeof(struct trie_key)];
};

/* One list that a sink works for. */
struct target {
	struct weir_lists *lists;
	enum weir_list list;
	struct batch *batch; /* NULL: one by one */
};

const char *weir_list_name(enum weir_list list)
{
	return list == WEIR_ALLOW ? "allow" : "deny";
}

static enum weir_trie trie_of(enum weir_list list, uint8_t family)
{
	return (enum weir_trie)(2 * list + (family == 6));
}

/* ---- the tries ---- */

static int put(int fd, const void *key, const uint64_t *expires_ns)
{
	if (expires_ns)
		return bpf_map_update_elem(fd, key, expires_ns, BPF_ANY) ? -errno : 0;
	return bpf_map_delete_elem(fd, key) && errno != ENOENT ? -errno : 0;
}

static size_t key_size(enum weir_trie trie)
{
	return sizeof(uint32_t) + (trie & 1 ? 16 : 4);
}

static int flush(const struct target *target)
{
	struct batch *batch = target->batch;
	int fd = target->lists->dataplane->list_fds[batch->trie];
	uint32_t count = batch->count;

	batch->count = 0;
	if (count && bpf_map_update_batch(fd, batch->keys, batch->values, &count, NULL))
		return -errno;
	return 0;
}

static int put_trie(void *context, const struct weir_prefix *prefix, const uint64_t *expires_ns)
{
	const struct target *target = context;
	enum weir_trie trie = trie_of(target->list, prefix->family);
	struct trie_key key = { .length = prefix->length };
	struct batch *batch = target->batch;
	int code = 0;

	memcpy(key.address, prefix->address, sizeof(key.address));
	if (batch && expires_ns) {
		if (batch->trie != trie || batch->count == KEYS_A_CALL)
			code = flush(target);
		batch->trie = trie;
		memcpy(batch->keys + batch->count * key_size(trie), &key, key_size(trie));
		batch->values[batch->count++] = *expires_ns;
		return code;
	}
	return put(target->lists->dataplane->list_fds[trie], &key, expires_ns);
}

/* The live entry itself, for the next controller. */
static int put_live(void *context, const struct weir_prefix *prefix, const uint64_t *expires_ns)
{
	const struct target *target = context;
	struct weir_prefix_key key = { .length = 8U + prefix->length,
				       .table = (uint8_t)trie_of(target->list, prefix->family) };

	memcpy(key.address, prefix->address, sizeof(key.address));
	return put(target->lists->dataplane->live_fd, &key, expires_ns);
}

static uint32_t used_by(const struct weir_list_table *tables)
{
	uint32_t used = 0;

	for (int list = 0; list < WEIR_LISTS; list++) {
		for (uint8_t family = 4; family <= 6; family += 2)
			used |= (uint32_t) !!weir_list_count(&tables[list], family)
				<< trie_of((enum weir_list)list, family);
	}
	return used;
}

/* An empty list costs the packets nothing. */
static void store_used(const struct weir_lists *lists, uint32_t used)
{
	__atomic_store_n(&lists->dataplane->board->lists_live.used, used, __ATOMIC_RELEASE);
}

static void tell_used(const struct weir_lists *lists)
{
	store_used(lists, used_by(lists->tables));
}

static void tell_next(struct weir_lists *lists, uint64_t expires_ns)
{
	if (expires_ns && (!lists->next_ns || expires_ns < lists->next_ns))
		lists->next_ns = expires_ns;
}

/* ---- reading ---- */

/* Takes one entry of a map: 0 or -ENOMEM. */
typedef int (*take_entry)(struct weir_lists *lists, int trie, const void *key, uint64_t value);

static int read_map(struct weir_lists *lists, int fd, size_t size, int trie, take_entry take)
{
	char *keys = malloc(KEYS_A_CALL * size), cursor[32];
	uint64_t *values = malloc(KEYS_A_CALL * sizeof(*values));
	int code = keys && values ? 0 : -ENOMEM;
	bool first = true, last = false;

	while (!code && !last) {
		uint32_t count = KEYS_A_CALL;

		if (bpf_map_lookup_batch(fd, first ? NULL : cursor, cursor, keys, values, &count,
					 NULL)) {
			last = errno == ENOENT;
			code = last ? 0 : -errno;
		}
		for (uint32_t i = 0; i < count && !code; i++)
			code = take(lists, trie, keys + i * size, values[i]);
		first = false;
	}
	free(keys);
	free(values);
	return code;
}

static int append(struct weir_list_table *table, const struct weir_list_entry *entry)
{
	if (table->count == table->room) {
		size_t room = table->room ? 2 * table->room : 1024;
		struct weir_list_entry *grown = realloc(table->entries, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		table->entries = grown;
		table->room = room;
	}
	table->entries[table->count++] = *entry;
	return 0;
}

static int take_trie(struct weir_lists *lists, int trie, const void *key, uint64_t value)
{
	struct weir_list_entry entry = { .effective_ns = value };
	const struct trie_key *found = key;

	entry.prefix.family = trie & 1 ? 6 : 4;
	entry.prefix.length = (uint8_t)found->length;
	memcpy(entry.prefix.address, found->address, trie & 1 ? 16 : 4);
	return append(&lists->tables[trie / 2], &entry);
}

static int by_prefix(const void *a, const void *b)
{
	const struct weir_list_entry *x = a, *y = b;
	int order = x->prefix.family - y->prefix.family;

	if (!order)
		order = memcmp(x->prefix.address, y->prefix.address, sizeof(x->prefix.address));
	return order ? order : x->prefix.length - y->prefix.length;
}

/* Marks a live entry in the tables, which are sorted; one that the tries lack is put in. */
static int take_live(struct weir_lists *lists, int trie, const void *key, uint64_t value)
{
	const struct weir_prefix_key *found = key;
	struct weir_list_entry entry = { .live = true, .expires_ns = value };
	struct weir_list_table *table = &lists->tables[found->table / 2 % WEIR_LISTS];
	bool there;
	size_t at;

	(void)trie;
	entry.prefix.family = found->table & 1 ? 6 : 4;
	entry.prefix.length = (uint8_t)(found->length - 8);
	memcpy(entry.prefix.address, found->address, sizeof(entry.prefix.address));
	at = weir_list_find(table, &entry.prefix, &there);
	/* Killed between the two maps: the entry was never promised. */
	if (!there)
		return 0;
	table->entries[at].live = true;
	table->entries[at].expires_ns = value;
	return 0;
}

int weir_lists_open(struct weir_lists *lists, struct weir_dataplane *dataplane,
		    struct weir_error *err)
{
	int code = 0;

	*lists = (struct weir_lists){ .dataplane = dataplane };
	for (int trie = 0; trie < WEIR_TRIES_OF_LISTS && !code; trie++)
		code = read_map(lists, dataplane->list_fds[trie],
				key_size((enum weir_trie)trie), trie, take_trie);
	for (int list = 0; list < WEIR_LISTS && !code; list++) {
		struct weir_list_table *table = &lists->tables[list];

		if (table->count)
			qsort(table->entries, table->count, sizeof(*table->entries), by_prefix);
	}
	if (!code)
		code = read_map(lists, dataplane->live_fd, sizeof(struct weir_prefix_key), 0,
				take_live);
	lists->next_ns = 1; /* not known: the next call of expire finds out */
	if (!code)
		return 0;
	weir_lists_close(lists);
	return weir_error_set(err, code, "can't read the lists: %s", strerror(-code));
}

void weir_lists_close(struct weir_lists *lists)
{
	for (int list = 0; list < WEIR_LISTS; list++)
		weir_list_free(&lists->tables[list]);
}

int weir_lists_look_all(struct weir_lists *lists, struct weir_dataplane *dataplane,
			struct weir_error *err)
{
	int code = weir_lists_open(lists, dataplane, err);

	for (int list = 0; list < WEIR_LISTS && !code; list++) {
		struct weir_list_table *table = &lists->tables[list];

		for (size_t i = 0; i < table->count; i++)
			table->entries[i].file = !table->entries[i].live;
	}
	return code;
}

bool weir_lists_look(const struct weir_dataplane *dataplane, enum weir_list list, uint8_t family,
		     const void *address, uint64_t now_ns, uint64_t *expires_ns)
{
	struct trie_key key = { .length = family == 4 ? 32 : 128 };

	memcpy(key.address, address, family == 4 ? 4 : 16);
	return !bpf_map_lookup_elem(dataplane->list_fds[trie_of(list, family)], &key, expires_ns) &&
	       (*expires_ns == WEIR_LIST_FOREVER || now_ns < *expires_ns);
}

/* ---- a policy's ---- */

int weir_lists_plan(const struct weir_lists *lists, const struct weir_policy *policy,
		    struct weir_lists_plan *plan, struct weir_error *err)
{
	const struct weir_policy_list *const files[] = { &policy->lists.allow,
							 &policy->lists.deny };
	int code = 0;

	*plan = (struct weir_lists_plan){ 0 };
	for (int list = 0; list < WEIR_LISTS && !code; list++) {
		size_t most;

		code = weir_list_build(&plan->tables[list], &files[list]->prefixes,
				       &lists->tables[list]);
		if (code) {
			weir_error_set(err, code, "no memory for the lists");
			break;
		}
		most = weir_list_count(&plan->tables[list], 4);
		if (plan->tables[list].count - most > most)
			most = plan->tables[list].count - most;
		if (most > WEIR_LIST_MAX)
			code = weir_error_set(err, -E2BIG,
					      "%s:%u: lists.%s: %zu prefixes of one IP version, "
					      "live ones included: there is room for %d",
					      policy->file, policy->lines.lists,
					      weir_list_name((enum weir_list)list), most,
					      WEIR_LIST_MAX);
	}
	if (code)
		weir_lists_plan_free(plan);
	return code;
}

void weir_lists_plan_free(struct weir_lists_plan *plan)
{
	for (int list = 0; list < WEIR_LISTS; list++)
		weir_list_free(&plan->tables[list]);
}

static int put_new(void *context, const struct weir_prefix *prefix, const uint64_t *expires_ns)
{
	return expires_ns ? put_trie(context, prefix, expires_ns) : 0;
}

static int take_old(void *context, const struct weir_prefix *prefix, const uint64_t *expires_ns)
{
	return expires_ns ? 0 : put_trie(context, prefix, NULL);
}

static int move_one(struct weir_lists *lists, enum weir_list list, struct weir_list_table *to,
		    weir_list_sink sink)
{
	struct batch *batch = calloc(1, sizeof(*batch));
	struct target target = { lists, list, batch };
	int code = weir_list_difference(&lists->tables[list], &to[list], sink, &target);

	if (!code && batch)
		code = flush(&target);
	free(batch);
	return code;
}

static int move_in(struct weir_lists *lists, struct weir_list_table *to)
{
	int code = move_one(lists, WEIR_ALLOW, to, put_new);

	/* New allow entries act before new deny entries do. */
	if (!code)
		store_used(lists, used_by(lists->tables) | used_by(to));
	return code ? code : move_one(lists, WEIR_DENY, to, put_new);
}

/*
 * What comes first, then what goes, allow entries last: so nobody is refused meanwhile who isn't
 * by the lists before or by those after, nor passes. Where the tries have no room for both what
 * goes is first.
 */
static int move(struct weir_lists *lists, struct weir_list_table *to)
{
	int code = move_in(lists, to), wrong;

	if (code && code != -ENOSPC)
		return code;
	wrong = move_one(lists, WEIR_DENY, to, take_old);
	if (!wrong)
		wrong = move_one(lists, WEIR_ALLOW, to, take_old);
	return wrong || !code ? wrong : move_in(lists, to);
}

static void exchange(struct weir_lists *lists, struct weir_lists_plan *plan,
		     struct weir_lists_plan *before)
{
	for (int list = 0; list < WEIR_LISTS; list++) {
		before->tables[list] = lists->tables[list];
		lists->tables[list] = plan->tables[list];
		plan->tables[list] = (struct weir_list_table){ 0 };
	}
	tell_used(lists);
}

int weir_lists_apply(struct weir_lists *lists, struct weir_lists_plan *plan,
		     struct weir_lists_plan *before, struct weir_error *err)
{
	int code = move(lists, plan->tables);

	exchange(lists, plan, before);
	if (!code)
		return 0;
	weir_lists_undo(lists, before);
	return weir_error_set(err, code, "can't store the lists: %s", strerror(-code));
}

void weir_lists_undo(struct weir_lists *lists, struct weir_lists_plan *before)
{
	struct weir_lists_plan refused;

	/* What is over by now or could not be stored is found and repaired by the next reload. */
	move(lists, before->tables);
	exchange(lists, before, &refused);
	weir_lists_plan_free(&refused);
}

/* ---- live ---- */

int weir_lists_add(struct weir_lists *lists, enum weir_list list, const struct weir_prefix *prefix,
		   uint64_t now_ns, uint64_t for_ns, uint64_t *expires_ns, struct weir_error *err)
{
	struct weir_list_table *table = &lists->tables[list];
	bool there;
	size_t at = weir_list_find(table, prefix, &there);
	const bool live = there && table->entries[at].live;
	const uint64_t before = live ? table->entries[at].expires_ns : 0;
	const uint64_t *kept = live ? &before : NULL;
	struct target target = { lists, list, NULL };
	char text[WEIR_PREFIX_TEXT];
	int code;

	if (!there && weir_list_count(table, prefix->family) >= WEIR_LIST_MAX)
		return weir_error_set(err, -E2BIG, "the %s list is full: %d prefixes of IPv%u",
				      weir_list_name(list), WEIR_LIST_MAX, prefix->family);
	*expires_ns = for_ns ? now_ns + for_ns : WEIR_LIST_FOREVER;
	if (kept)
		*expires_ns = weir_list_later(*expires_ns, *kept);
	/* Noted first: a note without an entry is nothing, an entry without a note the file's. */
	code = put_live(&target, prefix, expires_ns);
	if (!code) {
		code = weir_list_add(table, prefix, expires_ns, put_trie, &target);
		if (code)
			put_live(&target, prefix, kept);
	}
	tell_used(lists);
	tell_next(lists, *expires_ns);
	return code ? weir_error_set(err, code, "can't store %s: %s",
				     weir_prefix_print(prefix, text), strerror(-code)) :
		      0;
}

int weir_lists_del(struct weir_lists *lists, enum weir_list list, const struct weir_prefix *prefix,
		   struct weir_error *err)
{
	struct target target = { lists, list, NULL };
	char text[WEIR_PREFIX_TEXT];
	int code = weir_list_del(&lists->tables[list], prefix, put_trie, &target);

	weir_prefix_print(prefix, text);
	if (code == -ENOENT)
		return weir_error_set(err, code, "%s is not on the %s list: see weir %s list", text,
				      weir_list_name(list), weir_list_name(list));
	if (code == -EPERM)
		return weir_error_set(err, -EINVAL,
				      "%s is on the %s list by the configuration: take it out "
				      "there and `weir reload`",
				      text, weir_list_name(list));
	if (!code)
		put_live(&target, prefix, NULL);
	tell_used(lists);
	return code ? weir_error_set(err, code, "can't take out %s: %s", text, strerror(-code)) : 0;
}

void weir_lists_expire(struct weir_lists *lists, uint64_t now_ns)
{
	if (!lists->next_ns || now_ns < lists->next_ns)
		return;
	lists->next_ns = 0;
	for (int list = 0; list < WEIR_LISTS; list++) {
		struct target target = { lists, (enum weir_list)list, NULL };

		tell_next(lists, weir_list_expire(&lists->tables[list], now_ns, put_live, put_trie,
						  &target));
	}
	tell_used(lists);
}
