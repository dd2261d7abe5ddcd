// SPDX-License-Identifier: GPL-2.0
/* What show says of lists and bans: what is in force now, and of that all. */
#include "fake_maps.h"

#include "controller/report.h"
#include "fake_dataplane.h"
#include "json_path.h"

#define SECOND 1000000000ULL
#define NOW (1000 * SECOND)
#define BANS (FAKE_FD + 0)

static struct weir_dataplane plane;
static struct weir_limit *per_ip;
static struct weir_view view;

static void begin(void)
{
	fake_dataplane_make(&plane, 16, 16);
	per_ip = fake_limit_add(&plane, "per-ip", "", 3);
	kernel.maps[0].key_size = 8;
	kernel.maps[0].value_size = sizeof(struct weir_ban);
	plane.bans_fd = BANS;
	view = (struct weir_view){ .dataplane = &plane, .live = true, .now_ns = NOW };
}

static void end(void)
{
	fake_maps_free();
	fake_dataplane_free(&plane);
}

static void ban(uint64_t tag, uint8_t slot, uint32_t address, uint64_t until_ns)
{
	struct weir_ban one = { .until_ticks = until_ns << WEIR_TICK_SHIFT };
	uint32_t bytes = htonl(address);

	one.key.family = 4;
	one.key.slot = slot;
	memcpy(one.key.address, &bytes, sizeof(bytes));
	CU_ASSERT_EQUAL(bpf_map_update_elem(BANS, &tag, &one, BPF_ANY), 0);
}

static void bans_in_force_are_shown(void)
{
	json_t *bans;

	begin();
	ban(1, 3, 0x0a000001, NOW + 7 * SECOND);
	ban(2, 3, 0x0a000002, NOW);		 /* over */
	ban(3, 9, 0x0a000003, NOW + 7 * SECOND); /* of a limit that is gone */
	ban(4, 3, 0x0a000004, NOW + 1);
	bans = weir_report_bans(&view);
	CU_ASSERT_EQUAL(json_array_size(bans), 2);
	CU_ASSERT_STRING_EQUAL(text(bans, "0.limit"), "per-ip");
	CU_ASSERT_STRING_EQUAL(text(bans, "0.key"), "10.0.0.1");
	CU_ASSERT_EQUAL(number(bans, "0.left_ns"), 7 * SECOND);
	CU_ASSERT_STRING_EQUAL(text(bans, "1.key"), "10.0.0.4");
	json_decref(bans);
	end();
}

/* A flow's ban names both ends. */
static void a_ban_of_a_flow_has_both_addresses(void)
{
	struct weir_ban one = { .until_ticks = (NOW + SECOND) << WEIR_TICK_SHIFT };
	uint32_t source = htonl(0x0a000001), destination = htonl(0xc0000201);
	uint64_t tag = 1;
	json_t *bans;

	begin();
	per_ip->key = WEIR_KEY_SOURCE | WEIR_KEY_DESTINATION;
	one.key.family = 4;
	one.key.slot = 3;
	one.key.protocol = 17;
	one.key.source_port = 5000;
	one.key.destination_port = 53;
	memcpy(one.key.address, &source, sizeof(source));
	memcpy(one.peer, &destination, sizeof(destination));
	bpf_map_update_elem(BANS, &tag, &one, BPF_ANY);
	bans = weir_report_bans(&view);
	CU_ASSERT_STRING_EQUAL(text(bans, "0.key"), "udp 10.0.0.1:5000 > 192.0.2.1:53");
	json_decref(bans);
	end();
}

static void many_bans_take_many_calls(void)
{
	json_t *bans;

	begin();
	/* Put in by hand: what finds a key by brute force takes too long. */
	ban(0, 3, 0x0a000000, NOW + SECOND);
	kernel.maps[0].entries = realloc(kernel.maps[0].entries, 10000 * sizeof(struct fake_entry));
	CU_ASSERT_PTR_NOT_NULL_FATAL(kernel.maps[0].entries);
	for (size_t i = 1; i < 10000; i++)
		kernel.maps[0].entries[i] = kernel.maps[0].entries[0];
	kernel.maps[0].count = kernel.maps[0].room = 10000;
	bans = weir_report_bans(&view);
	CU_ASSERT_EQUAL(json_array_size(bans), 10000);
	json_decref(bans);
	end();
}

static void bans_that_cannot_be_read_are_none_and_no_report(void)
{
	begin();
	ban(1, 3, 0x0a000001, NOW + SECOND);
	kernel.unreadable = true;
	CU_ASSERT_PTR_NULL(weir_report_bans(&view));
	end();
}

/* ---- lists ---- */

static void lists_say_what_is_left(void)
{
	struct weir_list_entry entries[] = {
		{ .prefix = { .family = 4, .length = 8 }, .file = true },
		{ .prefix = { .family = 4, .length = 9 }, .live = true, .expires_ns = NOW },
		{ .prefix = { .family = 4, .length = 10 },
		  .live = true,
		  .expires_ns = NOW + 3 * SECOND },
		{ .prefix = { .family = 4, .length = 11 },
		  .live = true,
		  .expires_ns = WEIR_LIST_FOREVER },
		{ .prefix = { .family = 6, .length = 32 },
		  .file = true,
		  .live = true,
		  .expires_ns = NOW + SECOND },
	};
	struct weir_list_table tables[WEIR_LISTS] = { { entries, 5, 5 }, { NULL, 0, 0 } };
	json_t *list;

	begin();
	list = weir_report_list(&tables[0], WEIR_ALLOW, 0, 100, NOW);
	CU_ASSERT_STRING_EQUAL(text(list, "list"), "allow");
	/* What is over is not there any more, whoever has yet to take it out. */
	CU_ASSERT_EQUAL(json_array_size(at(list, "entries")), 4);
	CU_ASSERT(json_is_null(at(list, "entries.0.left_ns")));
	CU_ASSERT_STRING_EQUAL(text(list, "entries.1.prefix"), "0.0.0.0/10");
	CU_ASSERT_EQUAL(number(list, "entries.1.left_ns"), 3 * SECOND);
	CU_ASSERT(json_is_null(at(list, "entries.2.left_ns")));
	/* The file has it for ever. */
	CU_ASSERT(json_is_null(at(list, "entries.3.left_ns")));
	json_decref(list);
	list = weir_report_list(&tables[0], WEIR_ALLOW, 2, 2, NOW);
	CU_ASSERT_EQUAL(json_array_size(at(list, "entries")), 2);
	json_decref(list);
	view.lists = tables;
	list = weir_report_lists(&view);
	CU_ASSERT_EQUAL(number(list, "allow.ipv4"), 4);
	CU_ASSERT_EQUAL(number(list, "allow.ipv6"), 1);
	CU_ASSERT_EQUAL(number(list, "allow.live"), 4);
	CU_ASSERT_EQUAL(number(list, "deny.ipv4"), 0);
	json_decref(list);
	view.lists = NULL;
	list = weir_report_lists(&view);
	CU_ASSERT(json_is_null(at(list, "deny")));
	json_decref(list);
	end();
}

WEIR_TESTS("report_lists", TEST(bans_in_force_are_shown), TEST(a_ban_of_a_flow_has_both_addresses),
	   TEST(many_bans_take_many_calls), TEST(bans_that_cannot_be_read_are_none_and_no_report),
	   TEST(lists_say_what_is_left))
