// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>

#include "controller/report.h"
#include "controller/top.h"
#include "fake_dataplane.h"
#include "harness.h"
#include "json_path.h"

#define NOW_TICKS (1000000000000ULL << WEIR_TICK_SHIFT)

static struct weir_dataplane fake;
static struct weir_limit *per_ip;

/* A limit by source, /32 and /64, on slot 3. */
static void setup(void)
{
	fake_dataplane_make(&fake, 64, 64);
	per_ip = fake_limit_add(&fake, "per-ip", "bucket rate 1000pps burst 2000", 3);
}

static json_t *top_of(struct weir_scan *scan, size_t size, uint32_t slot, bool recent,
		      uint64_t span_ns)
{
	struct weir_top top, *tops[] = { &top };
	json_t *keys;

	weir_top_init(&top, size, slot, recent);
	weir_scan_run(scan, tops, 1);
	weir_top_sort(&top);
	keys = weir_report_top(&fake, &top, weir_scan_limits(scan), 0, SIZE_MAX, span_ns);
	weir_top_free(&top);
	return keys;
}

static json_t *top_total(size_t size, uint32_t slot)
{
	struct weir_scan *scan = NULL;
	json_t *keys;

	weir_scan_new(&scan, &fake, false);
	keys = top_of(scan, size, slot, false, 0);
	weir_scan_free(scan);
	return keys;
}

static void top_is_the_heaviest_in_order(void)
{
	json_t *keys;

	setup();
	for (int i = 0; i < 200; i++) {
		char address[32];

		/* 7 is coprime to 200: weights 0 … 199 in another order than the addresses. */
		snprintf(address, sizeof(address), "10.0.0.%d", i);
		fake_key_add(&fake, per_ip, address, (uint64_t)(i * 7 % 200), 0, 0);
	}
	keys = top_total(3, WEIR_NO_LIMIT);
	CU_ASSERT_EQUAL(json_array_size(keys), 3);
	CU_ASSERT_STRING_EQUAL(text(keys, "0.key"), "10.0.0.57"); /* 57 * 7 % 200 = 199 */
	CU_ASSERT_STRING_EQUAL(text(keys, "0.limit"), "per-ip");
	CU_ASSERT_EQUAL(number(keys, "0.admitted"), 199);
	CU_ASSERT_EQUAL(number(keys, "1.admitted"), 198);
	CU_ASSERT_EQUAL(number(keys, "2.admitted"), 197);
	json_decref(keys);
	keys = top_total(1000, WEIR_NO_LIMIT);
	CU_ASSERT_EQUAL(json_array_size(keys), 199); /* who has nothing isn't heavy */
	json_decref(keys);
	fake_dataplane_free(&fake);
}

static void top_adds_each_front_slot_once(void)
{
	uint32_t place, other;
	json_t *keys;

	setup();
	place = fake_key_add(&fake, per_ip, "192.0.2.7", 10, 100, NOW_TICKS + 1);
	other = fake_key_add(&fake, per_ip, "192.0.2.8", 1, 1, NOW_TICKS + 1);
	fake_front_hold(&fake, 0, place, 1000);
	fake_front_hold(&fake, 1, place, 5000000000ULL); /* more than 32 bits */
	/* A slot whose key has lost its place counts for nobody. */
	fake_front_hold(&fake, 1, other, 77);
	fake.front[64 + weir_tag_slot(fake_tag_at(&fake, other), 64)].tag ^= 2;
	keys = top_total(10, WEIR_NO_LIMIT);
	CU_ASSERT_EQUAL(json_array_size(keys), 2);
	CU_ASSERT_EQUAL(number(keys, "0.refused"), 5000001100LL);
	CU_ASSERT_EQUAL(number(keys, "0.admitted"), 10);
	CU_ASSERT_EQUAL(number(keys, "1.refused"), 1);
	json_decref(keys);
	fake_dataplane_free(&fake);
}

static void top_leaves_out_what_it_cannot_trust(void)
{
	uint32_t torn, retired, provisional, good;
	json_t *keys;

	setup();
	good = fake_key_add(&fake, per_ip, "192.0.2.1", 1, 0, 0);
	torn = fake_key_add(&fake, per_ip, "192.0.2.2", 1000, 0, 0);
	retired = fake_key_add(&fake, per_ip, "192.0.2.3", 1000, 0, 0);
	provisional = fake_key_add(&fake, per_ip, "192.0.2.4", 1000, 0, 0);
	fake.keys[torn].address[0] ^= htonl(1);
	fake.keys[retired].slot = 9;
	fake.ledger[provisional / WEIR_WAYS].tag[provisional % WEIR_WAYS] &= ~WEIR_TAG_CONFIRMED;
	keys = top_total(10, WEIR_NO_LIMIT);
	CU_ASSERT_EQUAL(json_array_size(keys), 1);
	CU_ASSERT_STRING_EQUAL(text(keys, "0.key"), "192.0.2.1");
	json_decref(keys);
	/* The same key under a new salt: state that was thrown away. */
	per_ip->salt++;
	keys = top_total(10, WEIR_NO_LIMIT);
	CU_ASSERT_EQUAL(json_array_size(keys), 0);
	CU_ASSERT_NOT_EQUAL(good, UINT32_MAX);
	json_decref(keys);
	fake_dataplane_free(&fake);
}

static void top_of_one_limit_only(void)
{
	struct weir_limit *wide;
	json_t *keys;

	setup();
	wide = fake_limit_add(&fake, "wide", "bucket rate 1pps burst 1", 7);
	wide->mask4 = htonl(0xffffff00);
	wide->mask6[1] = htonl(0xff000000);
	fake_key_add(&fake, per_ip, "192.0.2.7", 500, 0, 0);
	fake_key_add(&fake, wide, "192.0.2.7", 20, 0, 0);
	fake_key_add(&fake, wide, "2001:db8:1:2::1", 10, 0, 0);
	keys = top_total(10, 7);
	CU_ASSERT_EQUAL(json_array_size(keys), 2);
	CU_ASSERT_STRING_EQUAL(text(keys, "0.key"), "192.0.2.0/24");
	CU_ASSERT_STRING_EQUAL(text(keys, "1.key"), "2001:db8::/40");
	json_decref(keys);
	fake_dataplane_free(&fake);
}

static void keys_print_by_their_mask(void)
{
	static const struct {
		const char *address, *printed;
		uint8_t key;
	} cases[] = {
		{ "192.0.2.7", "192.0.2.7", WEIR_KEY_SOURCE },
		{ "2001:db8:1:2:3::4", "2001:db8:1:2::/64", WEIR_KEY_SOURCE },
		{ "192.0.2.7", "192.0.2.7", WEIR_KEY_DESTINATION },
		{ "192.0.2.7", "192.0.2.7:53", WEIR_KEY_SOURCE | WEIR_KEY_SOURCE_PORT },
		{ "2001:db8:1:2::", "[2001:db8:1:2::]:53", WEIR_KEY_SOURCE | WEIR_KEY_SOURCE_PORT },
		{ "192.0.2.7", "all", 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct weir_key_record record;
		uint8_t address[16], family;
		struct weir_error err;
		char printed[WEIR_KEY_TEXT];

		setup();
		per_ip->key = cases[i].key;
		weir_report_parse_address(cases[i].address, &family, address, &err);
		record = weir_record_of_address(per_ip, family, address);
		record.source_port = 53;
		CU_ASSERT_STRING_EQUAL(weir_record_print(&record, per_ip, printed),
				       cases[i].printed);
		fake_dataplane_free(&fake);
	}
}

static void recent_top_finds_who_has_just_become_heavy(void)
{
	struct weir_scan *scan = NULL;
	uint32_t old, loud, gone, newcomer;
	json_t *keys;

	setup();
	old = fake_key_add(&fake, per_ip, "192.0.2.1", 4000000000ULL, 4000000000ULL, 0);
	loud = fake_key_add(&fake, per_ip, "192.0.2.2", 3, 4294967290ULL, 0);
	gone = fake_key_add(&fake, per_ip, "192.0.2.3", 900, 900, 0);
	weir_scan_new(&scan, &fake, true);
	weir_scan_run(scan, NULL, 0);
	fake.ledger[old / WEIR_WAYS].counts[old % WEIR_WAYS].passed += 5;
	/* Past 32 bits, and half of it in a front. */
	fake.ledger[loud / WEIR_WAYS].counts[loud % WEIR_WAYS].refused += 100;
	fake_front_hold(&fake, 1, loud, 50);
	/* Its place goes to a newcomer, whose counts begin anew. */
	newcomer = fake_key_add(&fake, per_ip, "192.0.2.4", 0, 0, 0);
	fake.ledger[gone / WEIR_WAYS].tag[gone % WEIR_WAYS] = fake_tag_at(&fake, newcomer);
	fake.ledger[gone / WEIR_WAYS].counts[gone % WEIR_WAYS] = (struct weir_counts){ 20, 0 };
	fake.keys[gone] = fake.keys[newcomer];
	keys = top_of(scan, 10, WEIR_NO_LIMIT, true, 2000000000);
	CU_ASSERT_EQUAL(json_array_size(keys), 3);
	CU_ASSERT_STRING_EQUAL(text(keys, "0.key"), "192.0.2.2");
	CU_ASSERT_DOUBLE_EQUAL(json_number_value(at(keys, "0.refused_per_sec")), 75, 1e-9);
	CU_ASSERT_STRING_EQUAL(text(keys, "1.key"), "192.0.2.4");
	CU_ASSERT_DOUBLE_EQUAL(json_number_value(at(keys, "1.admitted_per_sec")), 10, 1e-9);
	CU_ASSERT_STRING_EQUAL(text(keys, "2.key"), "192.0.2.1");
	json_decref(keys);
	keys = top_of(scan, 10, WEIR_NO_LIMIT, true, 2000000000);
	CU_ASSERT_EQUAL(json_array_size(keys), 0);
	json_decref(keys);
	weir_scan_free(scan);
	fake_dataplane_free(&fake);
}

static void a_walk_in_slices_sees_what_one_at_once_sees(void)
{
	struct weir_top whole, sliced, *a[] = { &whole }, *b[] = { &sliced };
	struct weir_scan *scan = NULL;
	int slices = 1;

	setup();
	for (int i = 0; i < 250; i++) {
		char address[32];
		uint32_t place;

		snprintf(address, sizeof(address), "10.1.0.%d", i);
		place = fake_key_add(&fake, per_ip, address, (uint64_t)i, 0, 0);
		if (i % 5 == 0)
			fake_front_hold(&fake, i % 2, place, 1000);
	}
	weir_scan_new(&scan, &fake, false);
	weir_top_init(&whole, 40, WEIR_NO_LIMIT, false);
	weir_top_init(&sliced, 40, WEIR_NO_LIMIT, false);
	weir_scan_run(scan, a, 1);
	weir_scan_begin(scan);
	while (weir_scan_step(scan, 3, b, 1))
		slices++;
	CU_ASSERT_EQUAL(slices, 22);
	weir_top_sort(&whole);
	weir_top_sort(&sliced);
	CU_ASSERT_EQUAL(whole.count, 40);
	for (size_t i = 0; i < 40; i++)
		CU_ASSERT_EQUAL(whole.entries[i].passed + whole.entries[i].refused,
				sliced.entries[i].passed + sliced.entries[i].refused);
	weir_top_free(&whole);
	weir_top_free(&sliced);
	weir_scan_free(scan);
	fake_dataplane_free(&fake);
}

WEIR_TESTS("top", TEST(top_is_the_heaviest_in_order), TEST(top_adds_each_front_slot_once),
	   TEST(top_leaves_out_what_it_cannot_trust), TEST(top_of_one_limit_only),
	   TEST(keys_print_by_their_mask), TEST(recent_top_finds_who_has_just_become_heavy),
	   TEST(a_walk_in_slices_sees_what_one_at_once_sees))
