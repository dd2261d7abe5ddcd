// SPDX-License-Identifier: GPL-2.0
/* Bans: after so many refusals in a window a key is refused altogether for a time. */
#include "controller/report.h"
#include "harness.h"
#include "kernel/rig_limits.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>

#define SECOND WEIR_NS_PER_SEC
#define AFTER 10
#define WINDOW_NS (10 * SECOND)
#define BAN_NS (600 * SECOND)

static struct rig rig, both;

/* 1 a second, bursts of 2. */
static struct weir_limit fresh(uint16_t slot)
{
	struct weir_limit limit = {
		.key = WEIR_KEY_SOURCE,
		RIG_SOURCE_MASKS,
		.slot = slot,
		.salt = rig_salt(),
		.ban_after = AFTER,
		.ban_ticks = RIG_TICKS(BAN_NS),
		.ban_window_ticks = RIG_TICKS(WINDOW_NS),
	};

	rig_bucket(&limit, 1, 2);
	return limit;
}

static struct weir_totals begin(const struct weir_limit *limits, uint32_t count)
{
	rig_begin(&rig, RIG_WEIR, 1024);
	rig_put(&rig, limits, count);
	return rig_totals(&rig, 0);
}

/* How many of n packets of a source at one instant pass. */
static uint32_t passed_of(const char *source, uint32_t n)
{
	uint32_t passed = 0;
	struct frame frame;

	rig_frame(&frame, source, IPPROTO_UDP, 0);
	for (uint32_t i = 0; i < n; i++)
		passed += rig_send(&rig, frame.bytes, frame.size, 1) == XDP_PASS;
	return passed;
}

static uint64_t banned_since(struct weir_totals before)
{
	return rig_totals(&rig, 0).banned_packets - before.banned_packets;
}

static void earned_by_so_many_refusals(void)
{
	struct weir_limit limit = fresh(0);
	struct weir_totals before = begin(&limit, 1);

	CU_ASSERT_EQUAL(passed_of("192.0.2.1", 2 + AFTER - 1), 2);
	*rig.now_ns += 2 * SECOND;
	/* One refusal short of a ban. */
	CU_ASSERT_EQUAL(passed_of("192.0.2.1", 2), 2);
	CU_ASSERT_EQUAL(passed_of("192.0.2.1", 1), 0);
	CU_ASSERT_EQUAL(banned_since(before), 0);
	*rig.now_ns += 2 * SECOND;
	CU_ASSERT_EQUAL(passed_of("192.0.2.1", 5), 0);
	CU_ASSERT_EQUAL(banned_since(before), 5);
	CU_ASSERT_EQUAL(rig_totals(&rig, 0).refused_packets - before.refused_packets, AFTER + 5);
	/* Others are not banned. */
	CU_ASSERT_EQUAL(passed_of("192.0.2.2", 2), 2);
	CU_ASSERT_EQUAL(passed_of("2001:db8::1", 2), 2);
}

static void ends_to_the_nanosecond(void)
{
	struct weir_limit limit = fresh(0);

	begin(&limit, 1);
	CU_ASSERT_EQUAL(passed_of("192.0.2.1", 2 + AFTER), 2);
	*rig.now_ns += BAN_NS - 1;
	CU_ASSERT_EQUAL(passed_of("192.0.2.1", 1), 0);
	*rig.now_ns += 1;
	CU_ASSERT_EQUAL(passed_of("192.0.2.1", 2), 2);
}

/* Refusals are counted in the window that the first of them began. */
static void refusals_far_apart_earn_none(void)
{
	struct weir_limit limit = fresh(0);
	struct weir_totals before = begin(&limit, 1);

	for (int i = 0; i < 20; i++) {
		CU_ASSERT_EQUAL(passed_of("192.0.2.1", 2 + AFTER - 1), 2);
		*rig.now_ns += WINDOW_NS;
	}
	CU_ASSERT_EQUAL(banned_since(before), 0);
}

static void repeat_extends(void)
{
	struct weir_limit limit = fresh(0);

	begin(&limit, 1);
	CU_ASSERT_EQUAL(passed_of("192.0.2.1", 2 + AFTER), 2);
	*rig.now_ns += BAN_NS - SECOND;
	CU_ASSERT_EQUAL(passed_of("192.0.2.1", AFTER), 0);
	*rig.now_ns += BAN_NS - 1;
	CU_ASSERT_EQUAL(passed_of("192.0.2.1", 1), 0);
	*rig.now_ns += 1;
	CU_ASSERT_EQUAL(passed_of("192.0.2.1", 1), 1);
	/* Fewer than that don't: the ban ends when it was to end. */
	CU_ASSERT_EQUAL(passed_of("192.0.2.1", 1 + AFTER), 1);
	*rig.now_ns += BAN_NS - SECOND;
	CU_ASSERT_EQUAL(passed_of("192.0.2.1", AFTER - 1), 0);
	*rig.now_ns += SECOND;
	CU_ASSERT_EQUAL(passed_of("192.0.2.1", 1), 1);
}

/* Only the limit that banned refuses: a key elsewhere is charged as ever, or not at all. */
static void other_limits_are_not_affected(void)
{
	struct weir_limit limits[2] = { fresh(0), fresh(1) };

	limits[1].ban_after = 0;
	rig_bucket(&limits[1], 0.001, 5);
	begin(limits, 2);
	CU_ASSERT_EQUAL(passed_of("192.0.2.1", 2 + AFTER), 2);
	*rig.now_ns += 100 * SECOND;
	CU_ASSERT_EQUAL(passed_of("192.0.2.1", 50), 0);
	/* What the ban refused took none of the other limit's five. */
	rig_put(&rig, &limits[1], 1);
	CU_ASSERT_EQUAL(passed_of("192.0.2.1", 50), 3);
	CU_ASSERT_EQUAL(rig_totals(&rig, 1).banned_packets, 0);
}

/* While banned nothing is charged: the bucket fills, and the state may be forgotten. */
static void a_banned_packet_is_not_charged(void)
{
	struct weir_limit limit = fresh(0);

	begin(&limit, 1);
	rig_bucket(&limit, 0.01, 5);
	rig_put(&rig, &limit, 1);
	CU_ASSERT_EQUAL(passed_of("192.0.2.1", 5 + AFTER), 5);
	for (int i = 0; i < 5; i++) {
		*rig.now_ns += BAN_NS / 6;
		CU_ASSERT_EQUAL(passed_of("192.0.2.1", 1), 0);
	}
	*rig.now_ns += BAN_NS / 6;
	CU_ASSERT_EQUAL(passed_of("192.0.2.1", 9), 5);
}

static void monitor_and_block_ban_nobody(void)
{
	struct weir_limit limit = fresh(0);
	struct weir_totals before;

	limit.flags = WEIR_LIMIT_MONITOR;
	before = begin(&limit, 1);
	CU_ASSERT_EQUAL(passed_of("192.0.2.1", 50), 50);
	limit.flags = WEIR_LIMIT_BLOCK;
	rig_put(&rig, &limit, 1);
	CU_ASSERT_EQUAL(passed_of("192.0.2.1", 50), 0);
	limit.flags = 0;
	rig_put(&rig, &limit, 1);
	*rig.now_ns += 100 * SECOND;
	CU_ASSERT_EQUAL(passed_of("192.0.2.1", 2), 2);
	CU_ASSERT_EQUAL(banned_since(before), 0);
}

static void the_record_says_who_and_until_when(void)
{
	struct weir_limit limit = fresh(0);
	uint64_t tag = 0, next;
	struct weir_ban ban;
	int fd, found = 0;

	begin(&limit, 1);
	passed_of("192.0.2.77", 2 + AFTER);
	fd = rig_map_fd(&rig, "weir_bans");
	for (void *at = NULL; !bpf_map_get_next_key(fd, at, &next); at = &tag) {
		tag = next;
		CU_ASSERT_EQUAL(bpf_map_lookup_elem(fd, &tag, &ban), 0);
		found += ban.key.family == 4 && ban.key.address[0] == htonl(0xc000024d) &&
			 ban.until_ticks == RIG_TICKS(*rig.now_ns + BAN_NS) && !ban.key.slot;
	}
	CU_ASSERT_EQUAL(found, 1);
}

/* What `why` says of a source. */
static json_int_t refused_of(const char *source)
{
	struct weir_view view = { .dataplane = &rig.plane, .now_ns = *rig.now_ns };
	uint8_t family, address[16];
	struct weir_error err;
	json_t *report;
	json_int_t refused;

	CU_ASSERT_EQUAL_FATAL(weir_report_parse_address(source, &family, address, &err), 0);
	report = weir_report_why(&view, family, address);
	refused = json_integer_value(json_object_get(
		json_array_get(json_object_get(report, "limits"), 0), "refused"));
	json_decref(report);
	return refused;
}

/* By the front of the CPU that refused before, and by the ledger on another. */
static void refusals_by_a_ban_are_the_keys(void)
{
	struct weir_limit limit = fresh(0);

	begin(&limit, 1);
	rig_pin(0);
	CU_ASSERT_EQUAL(passed_of("192.0.2.1", 2 + AFTER + 30), 2);
	CU_ASSERT_EQUAL(refused_of("192.0.2.1"), AFTER + 30);
	rig_pin(1);
	CU_ASSERT_EQUAL(passed_of("192.0.2.1", 7), 0);
	CU_ASSERT_EQUAL(refused_of("192.0.2.1"), AFTER + 37);
}

static void a_full_table_is_counted(void)
{
	struct weir_limit limit = fresh(0);
	struct weir_totals before = begin(&limit, 1);
	int fd = rig_map_fd(&rig, "weir_bans");
	struct weir_ban ban = { .until_ticks = UINT64_MAX };

	for (uint64_t tag = 1; tag <= WEIR_BANS_MAX; tag++)
		if (bpf_map_update_elem(fd, &tag, &ban, BPF_ANY))
			break;
	CU_ASSERT_EQUAL(passed_of("192.0.2.1", 2 + 2 * AFTER), 2);
	CU_ASSERT_EQUAL(banned_since(before), 0);
	CU_ASSERT_EQUAL(rig_totals(&rig, 0).unbanned_packets - before.unbanned_packets, 2);
	/* With room again the next ones earn it. */
	for (uint64_t tag = 1; tag <= 10; tag++)
		bpf_map_delete_elem(fd, &tag);
	CU_ASSERT_EQUAL(passed_of("192.0.2.1", AFTER + 3), 0);
	CU_ASSERT_EQUAL(banned_since(before), 3);
	for (uint64_t tag = 11; tag <= WEIR_BANS_MAX; tag++)
		bpf_map_delete_elem(fd, &tag);
}

static void both_cpus_strike_together(void)
{
	struct drive_cpu plan = { .count = 1 };
	struct weir_limit limit = fresh(0);
	struct weir_totals totals;

	rig_begin(&both, RIG_DRIVE, 1024);
	limit.ban_after = 50000;
	rig_put(&both, &limit, 1);
	rig_plan(&both, &plan);
	CU_ASSERT_EQUAL(rig_drive_both(&both, 40000, NULL), 0);
	totals = rig_totals(&both, 0);
	CU_ASSERT_EQUAL(totals.passed_packets, 2);
	CU_ASSERT_EQUAL(totals.refused_packets, 80000 - 2);
	/* Refused on both before the ban, and by it after. One of each CPU may be under way. */
	CU_ASSERT_TRUE(totals.banned_packets >= 30000 - 2 - 2 &&
		       totals.banned_packets <= 30000 - 2);
}

WEIR_TESTS("kernel bans", TEST(earned_by_so_many_refusals), TEST(ends_to_the_nanosecond),
	   TEST(refusals_far_apart_earn_none), TEST(repeat_extends),
	   TEST(other_limits_are_not_affected), TEST(a_banned_packet_is_not_charged),
	   TEST(monitor_and_block_ban_nobody), TEST(the_record_says_who_and_until_when),
	   TEST(a_full_table_is_counted), TEST(both_cpus_strike_together),
	   TEST(refusals_by_a_ban_are_the_keys))
