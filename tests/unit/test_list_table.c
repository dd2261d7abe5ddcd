// SPDX-License-Identifier: GPL-2.0
/* The lists' table: expiries of nested prefixes against a naive model, and what the trie is told.
 */
#include "harness.h"

#include <errno.h>
#include <string.h>

#include "controller/list_table.h"
#include "random.h"

#define MODEL_MAX 512
#define ROUNDS 4000

static uint64_t seed = 0x5eed;

static uint64_t below(uint64_t bound)
{
	return random_below(&seed, bound);
}

/* The trie as the sink was told; every answer is looked up by brute force. */
struct trie {
	struct weir_prefix prefix[MODEL_MAX];
	uint64_t value[MODEL_MAX];
	size_t count;
	unsigned int told;
	int fail; /* the error of the next call */
};

struct entry {
	struct weir_prefix prefix;
	bool file, live;
	uint64_t expires_ns;
};

struct model {
	struct entry entries[MODEL_MAX];
	size_t count;
};

static int sink(void *context, const struct weir_prefix *prefix, const uint64_t *expires_ns)
{
	struct trie *trie = context;
	size_t at = 0;

	trie->told++;
	if (trie->fail)
		return trie->fail;
	while (at < trie->count && !weir_prefix_equal(&trie->prefix[at], prefix))
		at++;
	if (expires_ns) {
		trie->prefix[at] = *prefix;
		trie->value[at] = *expires_ns;
		trie->count += at == trie->count;
	} else if (at < trie->count) {
		trie->count--;
		trie->prefix[at] = trie->prefix[trie->count];
		trie->value[at] = trie->value[trie->count];
	}
	return 0;
}

static int nothing(void *context, const struct weir_prefix *prefix, const uint64_t *expires_ns)
{
	(void)context;
	(void)prefix;
	(void)expires_ns;
	return 0;
}

/* What the kernel would say: the longest match alone. */
static bool trie_has(const struct trie *trie, const struct weir_prefix *host, uint64_t now_ns)
{
	int best = -1;

	for (size_t i = 0; i < trie->count; i++) {
		if (weir_prefix_contains(&trie->prefix[i], host->family, host->address) &&
		    (best < 0 || trie->prefix[i].length > trie->prefix[best].length))
			best = (int)i;
	}
	return best >= 0 && (trie->value[best] == WEIR_LIST_FOREVER || now_ns < trie->value[best]);
}

/* What is meant: any entry that is not over. */
static bool model_has(const struct model *model, const struct weir_prefix *host, uint64_t now_ns)
{
	for (size_t i = 0; i < model->count; i++) {
		const struct entry *entry = &model->entries[i];
		bool on = entry->file || (entry->live && (!entry->expires_ns ||
							  now_ns < entry->expires_ns));

		if (on && weir_prefix_contains(&entry->prefix, host->family, host->address))
			return true;
	}
	return false;
}

static struct entry *model_find(struct model *model, const struct weir_prefix *prefix)
{
	for (size_t i = 0; i < model->count; i++) {
		if (weir_prefix_equal(&model->entries[i].prefix, prefix))
			return &model->entries[i];
	}
	return NULL;
}

/* Few bits, so that prefixes nest and meet. */
static struct weir_prefix draw(bool host)
{
	struct weir_prefix prefix = { .family = below(2) ? 4 : 6 };
	uint8_t most = prefix.family == 4 ? 32 : 128;

	prefix.length = host ? most : (uint8_t)(below(7) * (most / 8) + below(3));
	for (unsigned int bit = 0; bit < prefix.length; bit++) {
		if (bit % (most / 8) < 2 && below(2))
			prefix.address[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
	}
	return prefix;
}

static void check(const struct weir_list_table *table, const struct trie *trie,
		  const struct model *model, uint64_t now_ns)
{
	for (int i = 0; i < 20; i++) {
		struct weir_prefix host = draw(true);
		bool meant = model_has(model, &host, now_ns);

		CU_ASSERT_EQUAL(trie_has(trie, &host, now_ns), meant);
		CU_ASSERT_EQUAL(!!weir_list_match(table, host.family, host.address, now_ns), meant);
	}
	for (size_t i = 1; i < table->count; i++)
		CU_ASSERT_FALSE(weir_prefix_equal(&table->entries[i - 1].prefix,
						  &table->entries[i].prefix));
	CU_ASSERT_EQUAL(trie->count, table->count);
}

/* The file anew: some of it new, some gone, some twice. */
static void reload(struct weir_list_table *table, struct trie *trie, struct model *model)
{
	struct weir_list_table next;
	struct weir_prefixes file = { 0 };
	struct weir_error err;
	size_t kept = 0;

	for (size_t i = 0; i < model->count; i++) {
		struct entry *entry = &model->entries[i];

		entry->file = entry->file && below(3);
		if (entry->file)
			weir_prefixes_add(&file, &entry->prefix, &err);
		if (entry->file || entry->live)
			model->entries[kept++] = *entry;
	}
	model->count = kept;
	for (int i = 0; i < 4; i++) {
		struct weir_prefix prefix = draw(false);
		struct entry *entry = model_find(model, &prefix);

		weir_prefixes_add(&file, &prefix, &err);
		weir_prefixes_add(&file, &prefix, &err);
		if (!entry)
			model->entries[model->count++] = (struct entry){ prefix, true, false, 0 };
		else
			entry->file = true;
	}
	CU_ASSERT_EQUAL_FATAL(weir_list_build(&next, &file, table), 0);
	CU_ASSERT_EQUAL(weir_list_difference(table, &next, sink, trie), 0);
	trie->told = 0;
	CU_ASSERT_EQUAL(weir_list_difference(&next, &next, sink, trie), 0);
	CU_ASSERT_EQUAL(trie->told, 0);
	weir_list_free(table);
	*table = next;
	weir_prefixes_free(&file);
}

static void expire(struct weir_list_table *table, struct trie *trie, struct model *model,
		   uint64_t now_ns)
{
	uint64_t next = weir_list_expire(table, now_ns, nothing, sink, trie), least = 0;
	size_t kept = 0;

	for (size_t i = 0; i < model->count; i++) {
		struct entry *entry = &model->entries[i];

		if (entry->live && entry->expires_ns && entry->expires_ns <= now_ns)
			entry->live = false;
		if (entry->live && entry->expires_ns && (!least || entry->expires_ns < least))
			least = entry->expires_ns;
		if (entry->file || entry->live)
			model->entries[kept++] = *entry;
	}
	model->count = kept;
	CU_ASSERT_EQUAL(next, least);
}

static void add_one(struct weir_list_table *table, struct trie *trie, struct model *model,
		    uint64_t now_ns)
{
	uint64_t until = below(4) ? now_ns + 1 + below(100) : WEIR_LIST_FOREVER;
	struct weir_prefix prefix = draw(false);
	struct entry *entry = model_find(model, &prefix);

	if (!entry) {
		entry = &model->entries[model->count++];
		*entry = (struct entry){ .prefix = prefix };
	}
	entry->expires_ns = entry->live ? weir_list_later(entry->expires_ns, until) : until;
	entry->live = true;
	CU_ASSERT_EQUAL(weir_list_add(table, &prefix, &until, sink, trie), 0);
	CU_ASSERT_EQUAL(until, entry->expires_ns);
}

static void del_one(struct weir_list_table *table, struct trie *trie, struct model *model)
{
	struct weir_prefix prefix = model->count && below(3)
					    ? model->entries[below(model->count)].prefix
					    : draw(false);
	struct entry *entry = model_find(model, &prefix);
	int code = weir_list_del(table, &prefix, sink, trie);

	CU_ASSERT_EQUAL(code, !entry ? -ENOENT : entry->live ? 0 : -EPERM);
	if (!entry || !entry->live)
		return;
	entry->live = false;
	if (!entry->file)
		*entry = model->entries[--model->count];
}

static void the_trie_says_what_the_entries_mean(void)
{
	static struct trie trie;
	static struct model model;
	struct weir_list_table table = { 0 };
	uint64_t now_ns = 1000;

	for (int round = 0; round < ROUNDS; round++) {
		if (model.count > MODEL_MAX / 2)
			expire(&table, &trie, &model, now_ns += 1000);
		switch (below(12)) {
		case 0:
			reload(&table, &trie, &model);
			break;
		case 1:
			expire(&table, &trie, &model, now_ns);
			break;
		case 2:
		case 3:
		case 4:
			del_one(&table, &trie, &model);
			break;
		default:
			add_one(&table, &trie, &model, now_ns);
		}
		now_ns += below(8);
		check(&table, &trie, &model, now_ns);
	}
	weir_list_free(&table);
}

static struct weir_prefix parse(const char *text)
{
	struct weir_prefix prefix;
	struct weir_error err;

	CU_ASSERT_EQUAL_FATAL(weir_prefix_parse(text, &prefix, &err), 0);
	return prefix;
}

static void what_the_kernel_refuses_changes_nothing(void)
{
	static struct trie trie;
	struct weir_prefix inner = parse("192.0.2.7/32"), outer = parse("192.0.2.0/24");
	struct weir_list_table table = { 0 };
	uint64_t until = 50, forever = 0;

	CU_ASSERT_EQUAL(weir_list_add(&table, &inner, &until, sink, &trie), 0);
	trie.fail = -ENOMEM;
	CU_ASSERT_EQUAL(weir_list_add(&table, &outer, &forever, sink, &trie), -ENOMEM);
	trie.fail = 0;
	CU_ASSERT_EQUAL(table.count, 1);
	CU_ASSERT_EQUAL(table.entries[0].effective_ns, 50);
	CU_ASSERT_EQUAL(trie.count, 1);
	weir_list_free(&table);
}

static void again_extends_and_never_shortens(void)
{
	static struct trie trie;
	struct weir_prefix prefix = parse("2001:db8::/32");
	struct weir_list_table table = { 0 };
	uint64_t until = 500;

	CU_ASSERT_EQUAL(weir_list_add(&table, &prefix, &until, sink, &trie), 0);
	until = 200;
	CU_ASSERT_EQUAL(weir_list_add(&table, &prefix, &until, sink, &trie), 0);
	CU_ASSERT_EQUAL(until, 500);
	until = 700;
	CU_ASSERT_EQUAL(weir_list_add(&table, &prefix, &until, sink, &trie), 0);
	CU_ASSERT_EQUAL(trie.value[0], 700);
	until = WEIR_LIST_FOREVER;
	CU_ASSERT_EQUAL(weir_list_add(&table, &prefix, &until, sink, &trie), 0);
	CU_ASSERT_EQUAL(trie.value[0], WEIR_LIST_FOREVER);
	until = 900;
	CU_ASSERT_EQUAL(weir_list_add(&table, &prefix, &until, sink, &trie), 0);
	CU_ASSERT_EQUAL(until, WEIR_LIST_FOREVER);
	weir_list_free(&table);
}

/* A list that never had an entry has no memory either (fuzz_control, under UBSan). */
static void an_empty_list_matches_nobody(void)
{
	const struct weir_list_table none = { 0 };
	const uint8_t address[16] = { 10, 1, 2, 3 };

	CU_ASSERT_PTR_NULL(weir_list_match(&none, 4, address, 1));
	CU_ASSERT_PTR_NULL(weir_list_match(&none, 6, address, 1));
}

WEIR_TESTS("list_table", TEST(the_trie_says_what_the_entries_mean),
	   TEST(what_the_kernel_refuses_changes_nothing), TEST(again_extends_and_never_shortens),
	   TEST(an_empty_list_matches_nobody))
