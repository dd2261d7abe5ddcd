// SPDX-License-Identifier: GPL-2.0
/* The front in the kernel: what it answers, when it must not, where its counts go. */
#include "harness.h"
#include "kernel/rig.h"
#include "weir/place.h"

#include <linux/bpf.h>

#define SECOND WEIR_NS_PER_SEC
#define NEVER (1.0 / 86400)

struct counts {
	uint64_t passed, refused; /* in the ledger */
	uint64_t front;		  /* refused, not yet there */
};

static struct counts counts_of(const struct rig *rig, uint64_t tag)
{
	struct counts counts = { 0 };

	for (uint32_t i = 0; i < rig->plane.shape.sets; i++) {
		for (int way = 0; way < WEIR_WAYS; way++) {
			if (rig->plane.ledger[i].tag[way] != tag)
				continue;
			counts.passed +=
				weir_passed_count(rig->plane.ledger[i].counts[way].passed);
			counts.refused += rig->plane.ledger[i].counts[way].refused;
		}
	}
	for (uint32_t i = 0; i < rig->plane.shape.front_slots * rig->plane.shape.cpus; i++)
		if (rig->plane.front[i].tag == tag)
			counts.front += rig->plane.front[i].refused;
	return counts;
}

static uint64_t tag_of(const struct rig *rig, const struct rig_limit *limit, uint32_t source)
{
	struct weir_key key = { .source = { htonl(DRIVE_BASE + source) }, .kind = 4 };

	return weir_key_tag(&key, limit->salt, &rig->plane.shape.seeds);
}

/* `packets` from one source. */
static void send_from(struct rig *rig, uint32_t source, uint32_t packets)
{
	struct drive_cpu plan = { .from = source, .count = 1 };

	rig_plan(rig, &plan);
	CU_ASSERT_EQUAL(rig_drive(rig, packets), 0);
}

static void hot_key_leaves_the_ledger_alone(void)
{
	struct rig_limit limit = { .rate = NEVER, .burst = 5, .key = WEIR_KEY_SOURCE };
	struct weir_set *before;
	struct counts counts;
	struct rig rig;
	uint64_t tag;
	size_t bytes;

	rig_open(&rig, RIG_DRIVE, 1024);
	CU_ASSERT_EQUAL(rig_set(&rig, &limit), 0);
	tag = tag_of(&rig, &limit, 9);
	bytes = rig.plane.shape.sets * sizeof(*before);
	/* The burst, and one refusal by the ledger, which the front learns from. */
	send_from(&rig, 9, 6);
	before = malloc(bytes);
	memcpy(before, rig.plane.ledger, bytes);
	send_from(&rig, 9, 1000);
	CU_ASSERT_EQUAL(memcmp(before, rig.plane.ledger, bytes), 0);
	counts = counts_of(&rig, tag);
	CU_ASSERT_EQUAL(counts.passed, 5);
	CU_ASSERT_EQUAL(counts.refused, 1);
	CU_ASSERT_EQUAL(counts.front, 1000);
	CU_ASSERT_EQUAL(weir_dataplane_totals(&rig.plane, 0).refused_packets, 1001);
	free(before);
	rig_close(&rig);
}

/* The front refuses no longer than the ledger would. */
static void admits_on_the_tick(void)
{
	struct rig_limit limit = { .rate = 1000, .burst = 2, .key = WEIR_KEY_SOURCE };
	struct rig rig;

	rig_open(&rig, RIG_DRIVE, 1024);
	CU_ASSERT_EQUAL(rig_set(&rig, &limit), 0);
	send_from(&rig, 3, 10);
	for (int i = 0; i < 100; i++) {
		*rig.now_ns += SECOND / 1000 - 1;
		send_from(&rig, 3, 5);
		CU_ASSERT_EQUAL(rig_verdict(&rig, 3).passed, 0);
		*rig.now_ns += 1;
		send_from(&rig, 3, 5);
		CU_ASSERT_EQUAL(rig_verdict(&rig, 3).passed, 1);
	}
	rig_close(&rig);
}

static void raised_limit_is_honoured_at_once(void)
{
	struct rig_limit limit = { .rate = NEVER, .burst = 5, .key = WEIR_KEY_SOURCE };
	struct counts before, after;
	struct rig rig;
	uint64_t tag;

	rig_open(&rig, RIG_DRIVE, 1024);
	CU_ASSERT_EQUAL(rig_set(&rig, &limit), 0);
	tag = tag_of(&rig, &limit, 4);
	send_from(&rig, 4, 100);
	before = counts_of(&rig, tag);
	/* A token a millisecond: five more, although the front holds a refusal for days ahead. */
	limit.rate = 1000;
	CU_ASSERT_EQUAL(rig_set(&rig, &limit), 0);
	*rig.now_ns += 5000000;
	send_from(&rig, 4, 100);
	CU_ASSERT_EQUAL(rig_verdict(&rig, 4).passed, 5);
	/* The same limit pushed anew: the ledger is asked once, then the front answers again. */
	before = counts_of(&rig, tag);
	CU_ASSERT_EQUAL(rig_set(&rig, &limit), 0);
	send_from(&rig, 4, 100);
	after = counts_of(&rig, tag);
	CU_ASSERT_EQUAL(rig_verdict(&rig, 4).passed, 0);
	CU_ASSERT_EQUAL(after.refused, before.refused + 1);
	CU_ASSERT_EQUAL(after.front, before.front + 99);
	CU_ASSERT_EQUAL(after.passed, 10);
	rig_close(&rig);
}

/* Another source whose refusals go to the same slot of the front. */
static uint32_t neighbour_of(const struct rig *rig, const struct rig_limit *limit, uint32_t source)
{
	uint32_t slots = rig->plane.shape.front_slots;
	uint32_t slot = weir_tag_slot(tag_of(rig, limit, source), slots);

	for (uint32_t other = source + 1; other < DRIVE_SOURCES; other++)
		if (weir_tag_slot(tag_of(rig, limit, other), slots) == slot)
			return other;
	CU_FAIL_FATAL("no other source has that slot");
	return 0;
}

static void recycling_keeps_counts_of_each_key(void)
{
	struct rig_limit limit = { .rate = NEVER, .burst = 1, .key = WEIR_KEY_SOURCE };
	uint64_t sent[2] = { 0 };
	uint32_t sources[2] = { 17 };
	struct rig rig;

	rig_open(&rig, RIG_DRIVE, 1024);
	CU_ASSERT_EQUAL(rig_set(&rig, &limit), 0);
	sources[1] = neighbour_of(&rig, &limit, sources[0]);
	for (int round = 0; round < 50; round++) {
		uint32_t packets = 1 + (uint32_t)round * 7 % 40;

		send_from(&rig, sources[round & 1], packets);
		sent[round & 1] += packets;
	}
	for (int i = 0; i < 2; i++) {
		struct counts counts = counts_of(&rig, tag_of(&rig, &limit, sources[i]));

		CU_ASSERT_EQUAL(counts.passed, 1);
		CU_ASSERT_EQUAL(counts.passed + counts.refused + counts.front, sent[i]);
		/* Only the one that came last still has counts in the front. */
		CU_ASSERT_EQUAL(counts.front == 0, i == 0);
	}
	rig_close(&rig);
}

/* Sources from..from+300, each over its limit and soon forgotten. */
static void refuse_each(struct rig *rig, uint32_t from)
{
	for (uint32_t source = from; source < from + 300; source++) {
		send_from(rig, source, 20);
		*rig->now_ns += SECOND / 100;
	}
}

/* What a slot counted for a key that has lost its place must not go to the place's next key. */
static void counts_never_go_to_another_key(void)
{
	struct rig_limit limit = { .rate = 1000, .burst = 1, .key = WEIR_KEY_SOURCE };
	struct rig_limit still = { .rate = NEVER, .burst = 1, .key = WEIR_KEY_SOURCE };
	struct drive_cpu crowd = { .from = 1000, .count = 800, .stride = 1, .step_ns = 10000 };
	uint64_t places = 0, counted = 0;
	struct rig rig;

	rig_open(&rig, RIG_DRIVE, 1024);
	CU_ASSERT_EQUAL(rig_set(&rig, &limit), 0);
	refuse_each(&rig, 1);
	/* A crowd of one packet each, never refused, takes most places and keeps them. */
	CU_ASSERT_EQUAL(rig_set(&rig, &still), 0);
	rig_plan(&rig, &crowd);
	CU_ASSERT_EQUAL(rig_drive(&rig, crowd.count), 0);
	CU_ASSERT_EQUAL(rig_sum(&rig).refused, 0);
	/* Most slots of the front now count for keys without a place. Recycle them. */
	CU_ASSERT_EQUAL(rig_set(&rig, &limit), 0);
	*rig.now_ns += SECOND;
	refuse_each(&rig, 500);
	for (uint32_t source = crowd.from; source < crowd.from + crowd.count; source++) {
		struct counts counts = counts_of(&rig, tag_of(&rig, &limit, source));

		places += counts.passed;
		counted += counts.refused;
	}
	CU_ASSERT_TRUE(places > 700);
	CU_ASSERT_EQUAL(counted, 0);
	rig_close(&rig);
}

WEIR_TESTS("kernel front", TEST(hot_key_leaves_the_ledger_alone), TEST(admits_on_the_tick),
	   TEST(raised_limit_is_honoured_at_once), TEST(recycling_keeps_counts_of_each_key),
	   TEST(counts_never_go_to_another_key))
