// SPDX-License-Identifier: GPL-2.0
/*
 * The lists in force and the maps under them, where the kernel refuses any one change: all of it is
 * done, or nothing.
 */
#include "fake_maps.h"

#include <arpa/inet.h>

#include "compile_text.h"
#include "controller/lists.h"
#include "fake_dataplane.h"

#define LIVE WEIR_TRIES_OF_LISTS /* the map after those of the tries */
#define SECOND 1000000000ULL
#define HEAD "version: 1\ninterfaces: [{name: e0}]\n"
#define FIRST                                                                                      \
	HEAD "lists: {allow: [10.1.0.0/16, \"2001:db8::/32\"], deny: [10.0.0.0/8, 192.0.2.1]}\n"
#define SECOND_FILE                                                                                \
	HEAD "lists: {allow: [10.2.0.0/16], deny: [10.0.0.0/8, 192.0.2.2, \"2001:db8:1::/48\"]}\n"

static struct weir_dataplane plane;
static struct weir_lists lists;
static struct weir_error err;

static void open_lists(void)
{
	CU_ASSERT_EQUAL_FATAL(weir_lists_open(&lists, &plane, &err), 0);
}

static void begin(void)
{
	fake_dataplane_make(&plane, 16, 16);
	for (int trie = 0; trie < WEIR_TRIES_OF_LISTS; trie++) {
		kernel.maps[trie].key_size = trie & 1 ? 20 : 8;
		kernel.maps[trie].value_size = 8;
		plane.list_fds[trie] = FAKE_FD + trie;
	}
	kernel.maps[LIVE].key_size = sizeof(struct weir_prefix_key);
	kernel.maps[LIVE].value_size = 8;
	plane.live_fd = FAKE_FD + LIVE;
	open_lists();
}

static void end(void)
{
	weir_lists_close(&lists);
	fake_maps_free();
	fake_dataplane_free(&plane);
}

static int apply(const char *text)
{
	struct weir_policy *policy = load(text);
	struct weir_lists_plan plan, before;
	int code = weir_lists_plan(&lists, policy, &plan, &err);

	if (!code) {
		code = weir_lists_apply(&lists, &plan, &before, &err);
		weir_lists_plan_free(&before);
	}
	weir_policy_free(policy);
	return code;
}

static int list_add(enum weir_list list, const char *text, uint64_t for_ns)
{
	struct weir_prefix prefix;
	uint64_t expires_ns;

	CU_ASSERT_EQUAL_FATAL(weir_prefix_parse(text, &prefix, &err), 0);
	return weir_lists_add(&lists, list, &prefix, SECOND, for_ns, &expires_ns, &err);
}

static int list_del(enum weir_list list, const char *text)
{
	struct weir_prefix prefix;

	CU_ASSERT_EQUAL_FATAL(weir_prefix_parse(text, &prefix, &err), 0);
	return weir_lists_del(&lists, list, &prefix, &err);
}

/* Whether the kernel's trie has exactly this entry; *expires_ns: until when. */
static bool has(enum weir_trie trie, const char *address, uint32_t length, uint64_t *expires_ns)
{
	struct {
		uint32_t length;
		uint8_t address[16];
	} key = { length, { 0 } };

	inet_pton(trie & 1 ? AF_INET6 : AF_INET, address, key.address);
	return !bpf_map_lookup_elem(plane.list_fds[trie], &key, expires_ns);
}

static bool has_forever(enum weir_trie trie, const char *address, uint32_t length)
{
	uint64_t expires_ns;

	return has(trie, address, length, &expires_ns) && expires_ns == WEIR_LIST_FOREVER;
}

/* ---- what the maps were ---- */

static struct fake_map was[FAKE_MAPS];

static void remember(void)
{
	for (int i = 0; i < FAKE_MAPS; i++) {
		was[i] = kernel.maps[i];
		was[i].entries = NULL;
		was[i].count = was[i].room = 0;
		for (size_t j = 0; j < kernel.maps[i].count; j++)
			fake_put(&was[i], kernel.maps[i].entries[j].key,
				 kernel.maps[i].entries[j].value);
	}
}

static bool is_as_remembered(void)
{
	bool same = true;

	for (int i = 0; i < FAKE_MAPS; i++)
		same = same && fake_same(&was[i], &kernel.maps[i]);
	return same;
}

static void forget(void)
{
	for (int i = 0; i < FAKE_MAPS; i++)
		free(was[i].entries);
	memset(was, 0, sizeof(was));
}

/* ---- tests ---- */

static void the_tries_have_what_the_file_says(void)
{
	uint64_t expires_ns;

	begin();
	CU_ASSERT_EQUAL(apply(FIRST), 0);
	CU_ASSERT_TRUE(has_forever(WEIR_TRIE_ALLOW4, "10.1.0.0", 16));
	CU_ASSERT_TRUE(has_forever(WEIR_TRIE_ALLOW6, "2001:db8::", 32));
	CU_ASSERT_TRUE(has_forever(WEIR_TRIE_DENY4, "10.0.0.0", 8));
	CU_ASSERT_EQUAL(plane.board->lists_live.used, 7);
	CU_ASSERT_EQUAL(apply(SECOND_FILE), 0);
	CU_ASSERT_FALSE(has(WEIR_TRIE_ALLOW4, "10.1.0.0", 16, &expires_ns));
	CU_ASSERT_FALSE(has(WEIR_TRIE_ALLOW6, "2001:db8::", 32, &expires_ns));
	CU_ASSERT_TRUE(has_forever(WEIR_TRIE_DENY6, "2001:db8:1::", 48));
	CU_ASSERT_EQUAL(plane.board->lists_live.used, 13);
	end();
}

static void a_reload_that_fails_at_any_change_is_undone(void)
{
	unsigned int at;
	int code = -1;

	for (at = 1; code && at < 50; at++) {
		begin();
		CU_ASSERT_EQUAL(apply(FIRST), 0);
		CU_ASSERT_EQUAL(list_add(WEIR_ALLOW, "10.1.2.0/24", 9 * SECOND), 0);
		remember();
		kernel.changes = 0;
		kernel.fail_at = at;
		code = apply(SECOND_FILE);
		kernel.fail_at = 0;
		if (code) {
			CU_ASSERT_EQUAL(code, -ENOMEM);
			CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "can't store the lists: Cannot"));
			CU_ASSERT_TRUE(is_as_remembered());
			CU_ASSERT_EQUAL(weir_list_count(&lists.tables[WEIR_DENY], 6), 0);
			CU_ASSERT_EQUAL(weir_list_count(&lists.tables[WEIR_ALLOW], 4), 2);
			CU_ASSERT_EQUAL(plane.board->lists_live.used, 7);
			/* The next one comes through. */
			CU_ASSERT_EQUAL(apply(SECOND_FILE), 0);
			CU_ASSERT_TRUE(has_forever(WEIR_TRIE_DENY4, "192.0.2.2", 32));
		}
		forget();
		end();
	}
	CU_ASSERT(at > 5);
	CU_ASSERT_EQUAL(code, 0);
}

/* Whether the kernel would find an IPv4 address in a trie. */
static bool finds(enum weir_trie trie, const char *text)
{
	const struct fake_map *map = &kernel.maps[trie];
	struct weir_prefix prefix = { .family = 4 };
	uint32_t address = inet_addr(text);
	bool found = false;

	if (!(plane.board->lists_live.used >> trie & 1))
		return false;
	for (size_t i = 0; i < map->count; i++) {
		prefix.length = map->entries[i].key[0];
		memcpy(prefix.address, map->entries[i].key + 4, 4);
		found |= weir_prefix_contains(&prefix, 4, &address);
	}
	return found;
}

static unsigned int looks, wrongs;

static void look(void)
{
	looks++;
	wrongs += !finds(WEIR_TRIE_ALLOW4, "10.2.7.7") && finds(WEIR_TRIE_DENY4, "10.2.7.7");
	wrongs += !finds(WEIR_TRIE_DENY4, "192.0.2.1") || finds(WEIR_TRIE_ALLOW4, "192.0.2.1");
}

/*
 * Between any two changes of a reload: whom the file before and the one after let through isn't
 * refused, whom both refuse doesn't pass.
 */
static void a_reload_goes_over_no_gap(void)
{
	static const char *const files[] = {
		HEAD "lists: {allow: [10.0.0.0/8], deny: [10.2.0.0/16, 192.0.2.0/24]}\n",
		HEAD "lists: {allow: [10.2.0.0/16, 10.9.0.0/16], deny: [10.0.0.0/8, 192.0.2.1]}\n",
		HEAD "lists: {deny: [192.0.2.0/25]}\n",
		HEAD "lists: {allow: [10.2.7.0/24], deny: [10.0.0.0/7, 192.0.2.1]}\n",
		HEAD "lists: {deny: [192.0.0.0/8]}\n",
	};

	begin();
	looks = wrongs = 0;
	for (size_t round = 0; round < 3; round++) {
		for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
			CU_ASSERT_EQUAL(apply(files[i]), 0);
			look();
			kernel.before_change = look;
		}
	}
	CU_ASSERT(looks > 30);
	CU_ASSERT_EQUAL(wrongs, 0);
	kernel.before_change = NULL;
	end();
}

static void a_reload_without_room_for_both_takes_out_first(void)
{
	uint64_t expires_ns;

	begin();
	CU_ASSERT_EQUAL(apply(FIRST), 0);
	kernel.changes = 0;
	kernel.fail_at = 1;
	kernel.error = ENOSPC;
	CU_ASSERT_EQUAL(apply(SECOND_FILE), 0);
	CU_ASSERT_FALSE(has(WEIR_TRIE_ALLOW4, "10.1.0.0", 16, &expires_ns));
	CU_ASSERT_TRUE(has_forever(WEIR_TRIE_ALLOW4, "10.2.0.0", 16));
	CU_ASSERT_TRUE(has_forever(WEIR_TRIE_DENY4, "192.0.2.2", 32));
	end();
}

static void an_entry_that_is_not_stored_whole_is_not_there(void)
{
	unsigned int at;
	int code = -1;

	for (at = 1; code && at < 50; at++) {
		begin();
		CU_ASSERT_EQUAL(apply(FIRST), 0);
		/* Its own place, what lies in it, and the note for the next controller. */
		CU_ASSERT_EQUAL(list_add(WEIR_DENY, "172.16.1.0/24", 5 * SECOND), 0);
		remember();
		kernel.changes = 0;
		kernel.fail_at = at;
		code = list_add(WEIR_DENY, "172.16.0.0/16", 90 * SECOND);
		kernel.fail_at = 0;
		if (code) {
			CU_ASSERT_EQUAL(code, -ENOMEM);
			CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "can't store 172.16.0.0/16"));
			CU_ASSERT_TRUE(is_as_remembered());
			CU_ASSERT_EQUAL(weir_list_count(&lists.tables[WEIR_DENY], 4), 3);
		}
		forget();
		end();
	}
	CU_ASSERT_EQUAL(at, 5);
	CU_ASSERT_EQUAL(code, 0);
}

/* What was promised before the extension stays promised. */
static void an_entry_that_is_not_extended_keeps_its_time(void)
{
	uint64_t expires_ns;

	for (unsigned int at = 1; at <= 2; at++) {
		begin();
		CU_ASSERT_EQUAL(list_add(WEIR_DENY, "172.16.0.0/16", 5 * SECOND), 0);
		remember();
		kernel.changes = 0;
		kernel.fail_at = at;
		CU_ASSERT_EQUAL(list_add(WEIR_DENY, "172.16.0.0/16", 90 * SECOND), -ENOMEM);
		CU_ASSERT_TRUE(is_as_remembered());
		CU_ASSERT(has(WEIR_TRIE_DENY4, "172.16.0.0", 16, &expires_ns) &&
			  expires_ns == 6 * SECOND);
		kernel.fail_at = 0;
		weir_lists_expire(&lists, 6 * SECOND);
		CU_ASSERT_EQUAL(kernel.maps[WEIR_TRIE_DENY4].count, 0);
		CU_ASSERT_EQUAL(kernel.maps[LIVE].count, 0);
		forget();
		end();
	}
}

static void an_entry_that_is_not_taken_out_stays_noted(void)
{
	begin();
	CU_ASSERT_EQUAL(list_add(WEIR_DENY, "172.16.0.0/16", 0), 0);
	remember();
	kernel.changes = 0;
	kernel.fail_at = 1;
	CU_ASSERT_EQUAL(list_del(WEIR_DENY, "172.16.0.0/16"), -ENOMEM);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "can't take out 172.16.0.0/16"));
	CU_ASSERT_TRUE(is_as_remembered());
	forget();
	kernel.fail_at = 0;
	CU_ASSERT_EQUAL(list_del(WEIR_DENY, "172.16.0.0/16"), 0);
	CU_ASSERT_EQUAL(kernel.maps[WEIR_TRIE_DENY4].count, 0);
	CU_ASSERT_EQUAL(kernel.maps[LIVE].count, 0);
	CU_ASSERT_EQUAL(plane.board->lists_live.used, 0);
	end();
}

static void what_is_not_there_is_not_taken_out(void)
{
	begin();
	CU_ASSERT_EQUAL(apply(FIRST), 0);
	CU_ASSERT_EQUAL(list_del(WEIR_DENY, "203.0.113.0/24"), -ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "203.0.113.0/24 is not on the deny list"));
	CU_ASSERT_EQUAL(list_del(WEIR_ALLOW, "10.1.0.0/16"), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "by the configuration"));
	CU_ASSERT_TRUE(has_forever(WEIR_TRIE_ALLOW4, "10.1.0.0", 16));
	end();
}

/* As a controller does that was killed between the two maps. */
static void the_next_controller_finds_them(void)
{
	uint64_t expires_ns;

	begin();
	CU_ASSERT_EQUAL(apply(FIRST), 0);
	CU_ASSERT_EQUAL(list_add(WEIR_DENY, "2001:db8:2::/48", 9 * SECOND), 0);
	CU_ASSERT_EQUAL(list_add(WEIR_ALLOW, "192.0.2.0/24", 0), 0);
	CU_ASSERT_EQUAL(list_add(WEIR_DENY, "9.0.0.0/8", 9 * SECOND), 0);
	/* Noted, but not in the trie: they were never promised. The last one is 9.0.0.0/8. */
	kernel.maps[WEIR_TRIE_DENY6].count = 0;
	kernel.maps[WEIR_TRIE_DENY4].count--;
	weir_lists_close(&lists);
	open_lists();
	CU_ASSERT_EQUAL(lists.tables[WEIR_DENY].count, 2);
	for (size_t i = 0; i < lists.tables[WEIR_DENY].count; i++)
		CU_ASSERT_FALSE(lists.tables[WEIR_DENY].entries[i].live);
	CU_ASSERT_EQUAL(weir_list_count(&lists.tables[WEIR_ALLOW], 4), 2);
	/* Whoever only looks can tell them apart too. */
	weir_lists_close(&lists);
	CU_ASSERT_EQUAL(weir_lists_look_all(&lists, &plane, &err), 0);
	for (size_t i = 0; i < lists.tables[WEIR_ALLOW].count; i++) {
		const struct weir_list_entry *entry = &lists.tables[WEIR_ALLOW].entries[i];

		CU_ASSERT_EQUAL(entry->live, entry->prefix.length == 24);
		CU_ASSERT_EQUAL(entry->file, !entry->live);
	}
	CU_ASSERT_FALSE(weir_lists_look(&plane, WEIR_ALLOW, 4, &(uint32_t){ 0 }, 0, &expires_ns));
	end();
}

static void what_is_over_goes(void)
{
	begin();
	CU_ASSERT_EQUAL(list_add(WEIR_DENY, "192.0.2.0/24", 2 * SECOND), 0);
	CU_ASSERT_EQUAL(list_add(WEIR_DENY, "192.0.3.0/24", 7 * SECOND), 0);
	weir_lists_expire(&lists, 2 * SECOND);
	CU_ASSERT_EQUAL(kernel.maps[WEIR_TRIE_DENY4].count, 2);
	kernel.changes = 0;
	weir_lists_expire(&lists, 3 * SECOND - 1);
	CU_ASSERT_EQUAL(kernel.changes, 0);
	weir_lists_expire(&lists, 3 * SECOND);
	CU_ASSERT_EQUAL(kernel.maps[WEIR_TRIE_DENY4].count, 1);
	CU_ASSERT_EQUAL(kernel.maps[LIVE].count, 1);
	weir_lists_expire(&lists, 8 * SECOND);
	CU_ASSERT_EQUAL(kernel.maps[WEIR_TRIE_DENY4].count, 0);
	CU_ASSERT_EQUAL(kernel.maps[LIVE].count, 0);
	CU_ASSERT_EQUAL(plane.board->lists_live.used, 0);
	CU_ASSERT_EQUAL(lists.next_ns, 0);
	end();
}

static void maps_that_cannot_be_read_are_an_error(void)
{
	begin();
	weir_lists_close(&lists);
	kernel.unreadable = true;
	CU_ASSERT_EQUAL(weir_lists_open(&lists, &plane, &err), -EPERM);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "can't read the lists: Operation not permitted"));
	CU_ASSERT_EQUAL(weir_lists_look_all(&lists, &plane, &err), -EPERM);
	end();
}

/* A table with so many live entries, without the hours that adding them takes here. */
static void fill(struct weir_list_table *table, size_t count, uint8_t family)
{
	weir_list_free(table);
	table->entries = calloc(count, sizeof(*table->entries));
	CU_ASSERT_PTR_NOT_NULL_FATAL(table->entries);
	table->count = table->room = count;
	for (size_t i = 0; i < count; i++) {
		uint32_t address = htonl(0x0b000000U + (uint32_t)i);
		struct weir_list_entry *entry = &table->entries[i];

		*entry = (struct weir_list_entry){ .live = true,
						   .expires_ns = WEIR_LIST_FOREVER,
						   .effective_ns = WEIR_LIST_FOREVER };
		entry->prefix.family = family;
		entry->prefix.length = family == 4 ? 32 : 128;
		memcpy(entry->prefix.address, &address, sizeof(address));
	}
}

static void a_full_list_takes_no_more(void)
{
	char text[256];

	begin();
	fill(&lists.tables[WEIR_DENY], WEIR_LIST_MAX, 4);
	CU_ASSERT_EQUAL(list_add(WEIR_DENY, "192.0.2.1", 0), -E2BIG);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "the deny list is full"));
	CU_ASSERT_EQUAL(kernel.maps[WEIR_TRIE_DENY4].count, 0);
	/* The other family has room of its own. */
	CU_ASSERT_EQUAL(list_add(WEIR_DENY, "2001:db8::1", 0), 0);
	/* Nor does a file that comes on top. */
	CU_ASSERT_EQUAL(apply(FIRST), -E2BIG);
	snprintf(text, sizeof(text), "test:3: lists.deny: %d prefixes of one IP version",
		 WEIR_LIST_MAX + 2);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, text));
	fill(&lists.tables[WEIR_DENY], WEIR_LIST_MAX, 6);
	CU_ASSERT_EQUAL(apply(SECOND_FILE), -E2BIG);
	CU_ASSERT_EQUAL(kernel.maps[WEIR_TRIE_DENY4].count, 0);
	/* What is on it already needs no room to be extended. */
	fill(&lists.tables[WEIR_DENY], WEIR_LIST_MAX, 4);
	lists.tables[WEIR_DENY].entries[0].expires_ns = 1;
	lists.tables[WEIR_DENY].entries[0].effective_ns = 1;
	CU_ASSERT_EQUAL(list_add(WEIR_DENY, "11.0.0.0", 0), 0);
	CU_ASSERT_EQUAL(lists.tables[WEIR_DENY].entries[0].expires_ns, WEIR_LIST_FOREVER);
	end();
}

WEIR_TESTS("lists", TEST(the_tries_have_what_the_file_says),
	   TEST(a_reload_that_fails_at_any_change_is_undone),
	   TEST(a_reload_goes_over_no_gap),
	   TEST(a_reload_without_room_for_both_takes_out_first),
	   TEST(an_entry_that_is_not_stored_whole_is_not_there),
	   TEST(an_entry_that_is_not_extended_keeps_its_time),
	   TEST(an_entry_that_is_not_taken_out_stays_noted),
	   TEST(what_is_not_there_is_not_taken_out), TEST(the_next_controller_finds_them),
	   TEST(what_is_over_goes), TEST(maps_that_cannot_be_read_are_an_error),
	   TEST(a_full_list_takes_no_more))
