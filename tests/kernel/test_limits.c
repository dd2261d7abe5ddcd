// SPDX-License-Identifier: GPL-2.0
/*
 * Several limits at once: all that match apply, the first that refuses decides, a refused
 * packet is charged to none. Random policies against a naive model; races of two CPUs.
 */
#include "harness.h"
#include "controller/generation.h"
#include "kernel/limits_model.h"
#include "kernel/packet_frame.h"
#include "unit/match_model.h"

#include <linux/bpf.h>
#include <linux/pkt_cls.h>

static struct rig rig, both;

/* ---- random policies, random packets ---- */

#define ROUNDS 40
#define ROUND_PACKETS 250
#define SLIDING_SLOTS 4
#define SLIDING_SETS 128

/* Another kind than the file says: what it matches stays. */
static void random_kind(struct weir_limit *limit, uint64_t *seed)
{
	static const uint8_t keys[] = {
		0, WEIR_KEY_SOURCE, WEIR_KEY_SOURCE, WEIR_KEY_DESTINATION,
		WEIR_KEY_SOURCE | WEIR_KEY_SOURCE_PORT,
		WEIR_KEY_SOURCE | WEIR_KEY_DESTINATION | WEIR_KEY_SOURCE_PORT |
			WEIR_KEY_DESTINATION_PORT | WEIR_KEY_PROTOCOL,
	};
	static const uint32_t masks4[] = { 0xffffffff, 0x00ffffff, 0x000000ff, 0 };
	uint32_t quota = 1 + (uint32_t)random_below(seed, 15);
	uint64_t span_ns = 1000 + random_below(seed, WEIR_NS_PER_SEC);

	limit->flags = 0;
	limit->key = keys[random_below(seed, 6)];
	limit->mask4 = masks4[random_below(seed, 4)];
	if (limit->slot < SLIDING_SLOTS && random_below(seed, 2)) {
		rig_sliding(limit, quota, span_ns, SLIDING_SETS);
	} else if (random_below(seed, 3) == 0) {
		rig_period(limit, quota, span_ns);
	} else {
		/* Gates count sockets: test_gate.c, test_connections.c. */
		rig_bucket(limit, 1 + (double)random_below(seed, 1000), quota);
	}
	if (limit->kind == WEIR_KIND_BUCKET && random_below(seed, 2)) {
		limit->flags |= WEIR_LIMIT_BYTES;
		rig_bucket(limit, 100 + (double)random_below(seed, 100000), quota * 100);
	}
	if (!random_below(seed, 4))
		limit->flags |= WEIR_LIMIT_MONITOR;
	if (!random_below(seed, 60))
		limit->flags |= WEIR_LIMIT_BLOCK;
	else if (!random_below(seed, 10))
		limit->flags |= WEIR_LIMIT_UNLIMITED;
}

static void use_hook(enum weir_hook hook)
{
	static const char *const programs[] = { "weir_xdp", "weir_ingress", "weir_egress" };

	rig_use(&rig, programs[hook]);
}

/* Returns whether it passed; a verdict other than the two is a failure. */
static bool send_packet(const struct packet *packet, const uint8_t *frame, uint32_t size)
{
	int verdict;

	rig.plane.board->interfaces[1].slot[0] = slots[packet->interface];
	use_hook(packet->hook);
	verdict = rig_send(&rig, frame, size, 1);
	if (packet->hook == WEIR_HOOK_XDP) {
		CU_ASSERT_TRUE(verdict == XDP_PASS || verdict == XDP_DROP);
		return verdict == XDP_PASS;
	}
	CU_ASSERT_TRUE(verdict == TC_ACT_UNSPEC || verdict == TC_ACT_SHOT);
	return verdict == TC_ACT_UNSPEC;
}

/* As the parser would have it: no extension headers but those that packet_frame puts. */
static struct packet sound_packet(uint64_t *seed)
{
	struct packet packet = random_packet(seed);
	struct weir_packet *parsed = &packet.parsed;

	if (weir_is_extension(parsed->protocol) || parsed->protocol == WEIR_IP_NO_NEXT)
		parsed->protocol = 200;
	if (!(parsed->has & WEIR_HAS_PORTS))
		parsed->source_port = parsed->destination_port = 0;
	parsed->packets = 1;
	return packet;
}

static uint64_t round_packets(struct model *model, const struct weir_policy *policy,
			      uint64_t *seed)
{
	uint64_t wrong = 0;

	for (int i = 0; i < ROUND_PACKETS; i++) {
		struct packet packet = sound_packet(seed);
		bool applies[WEIR_LIMITS_MAX], expected;
		uint8_t frame[PACKET_FRAME_MAX];

		*rig.now_ns += random_below(seed, WEIR_NS_PER_SEC / 50);
		packet.parsed.bytes =
			packet_frame(frame, &packet.parsed, (uint32_t)random_below(seed, 100));
		for (size_t limit = 0; limit < policy->limit_count; limit++)
			applies[limit] = naive(policy, limit, &packet);
		expected = model_passes(model, applies, RIG_TICKS(*rig.now_ns), &packet.parsed);
		wrong += send_packet(&packet, frame, packet.parsed.bytes) != expected;
	}
	return wrong;
}

static uint64_t totals_differ(const struct model *model)
{
	uint64_t differ = 0;

	for (size_t i = 0; i < model->count; i++) {
		struct weir_totals found = rig_totals(&rig, model->limits[i].limit->slot);

		CU_ASSERT_EQUAL(found.untracked_packets + found.contended_packets, 0);
		found.new_keys = 0;
		differ += memcmp(&found, &model->limits[i].totals, sizeof(found)) != 0;
	}
	return differ;
}

static void one_round(struct weir_generation *generation, struct model *model, uint64_t *seed,
		      uint64_t *wrong, uint64_t *differ)
{
	struct weir_policy *policy = random_policy(seed);
	struct weir_error err = { "" };
	struct weir_compiled *compiled;
	int code;

	compiled = compile(policy, NULL, &code, &err);
	CU_ASSERT_EQUAL_FATAL(code, 0);
	for (size_t i = 0; i < policy->limit_count; i++)
		random_kind(&compiled->limits[i], seed);
	for (int hook = 0; hook < WEIR_HOOKS; hook++)
		compiled->head.plain[hook] =
			weir_policy_plain(&compiled->head, compiled->limits, (enum weir_hook)hook);
	rig_reset(&rig);
	for (uint32_t slot = 0; slot < SLIDING_SLOTS; slot++)
		rig_own(&rig, slot, SLIDING_SETS, MODEL_RING);
	CU_ASSERT_EQUAL_FATAL(weir_generation_apply(generation, compiled, &err), 0);
	model_begin(model, compiled->limits, policy->limit_count);
	*wrong += round_packets(model, policy, seed);
	*differ += totals_differ(model);
	model_end(model);
	weir_compiled_free(compiled);
	weir_policy_free(policy);
}

static void random_policies_apply_as_the_model_says(void)
{
	uint64_t seed = 0x11b1e5, wrong = 0, differ = 0, passed = 0, refused = 0;
	struct weir_generation generation;
	struct weir_error err = { "" };
	struct model *model = calloc(1, sizeof(*model));

	CU_ASSERT_PTR_NOT_NULL_FATAL(model);
	rig_begin(&rig, RIG_HOOKS, 64 * 1024);
	CU_ASSERT_EQUAL_FATAL(weir_generation_open(&generation, &rig.plane, &err), 0);
	for (int round = 0; round < ROUNDS; round++) {
		one_round(&generation, model, &seed, &wrong, &differ);
		passed += model->passed;
		refused += model->refused;
	}
	weir_generation_close(&generation);
	free(model);
	printf("  %d policies, %" PRIu64 " packets passed, %" PRIu64 " refused: %" PRIu64
	       " verdicts differ, %" PRIu64 " limits' totals\n",
	       ROUNDS, passed, refused, wrong, differ);
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_EQUAL(differ, 0);
	CU_ASSERT_TRUE(passed > 1000 && refused > 1000);
}

/* ---- a race lost for certain: two limits on one bucket of one token ---- */

static int send_one(const char *source)
{
	struct frame frame;

	rig_frame(&frame, source, IPPROTO_UDP, 0);
	rig_use(&rig, "weir_xdp");
	return rig_send(&rig, frame.bytes, frame.size, 1);
}

#define GIVEN_BACK 6
#define RACED GIVEN_BACK /* and the one after it */

static void given_back_limits(struct weir_limit *limits)
{
	memset(limits, 0, (RACED + 2) * sizeof(*limits));
	for (uint16_t i = 0; i < RACED + 2; i++) {
		limits[i] = (struct weir_limit){ .key = WEIR_KEY_SOURCE, RIG_SOURCE_MASKS,
						 .slot = i, .salt = rig_salt() };
		rig_bucket(&limits[i], 0.001, 3);
	}
	rig_period(&limits[1], 3, 1000 * WEIR_NS_PER_SEC);
	rig_bucket(&limits[2], 0.5, 3);
	limits[3].key = 0;
	limits[4].flags = WEIR_LIMIT_UNLIMITED;
	limits[5].flags = WEIR_LIMIT_MONITOR;
	rig_bucket(&limits[RACED], 1, 1);
	limits[RACED + 1] = limits[RACED];
	limits[RACED + 1].slot = RACED + 1;
}

static void a_lost_race_gives_everything_back(void)
{
	struct weir_limit limits[RACED + 2];

	given_back_limits(limits);
	rig_begin(&rig, RIG_HOOKS, 64 * 1024);
	rig_reset(&rig);
	rig_put(&rig, limits, RACED + 2);
	for (int i = 0; i < 10; i++) {
		CU_ASSERT_EQUAL(send_one("192.0.2.1"), XDP_DROP);
		*rig.now_ns += 2 * WEIR_NS_PER_SEC;
	}
	for (uint32_t i = 0; i <= RACED; i++) {
		CU_ASSERT_EQUAL(rig_totals(&rig, i).passed_packets, 0);
		CU_ASSERT_EQUAL(rig_totals(&rig, i).passed_bytes, 0);
		CU_ASSERT_EQUAL(rig_totals(&rig, i).refused_packets, 0);
		CU_ASSERT_EQUAL(rig_totals(&rig, i).would_refuse_packets, 0);
	}
	CU_ASSERT_EQUAL(rig_totals(&rig, RACED + 1).refused_packets, 10);
	/* Each still has all of its three. */
	for (uint32_t i = 0; i < GIVEN_BACK; i++) {
		struct weir_totals totals;

		rig_put(&rig, &limits[i], 1);
		for (int packet = 0; packet < 5; packet++)
			send_one("192.0.2.1");
		totals = rig_totals(&rig, i);
		CU_ASSERT_EQUAL(totals.passed_packets,
				limits[i].flags == WEIR_LIMIT_UNLIMITED ? 5 : 3);
	}
}

/* What only would have been refused was not charged, and is not given back. */
static void a_lost_race_gives_no_more_back(void)
{
	struct weir_limit limits[RACED + 2];

	given_back_limits(limits);
	rig_begin(&rig, RIG_HOOKS, 64 * 1024);
	rig_reset(&rig);
	rig_put(&rig, &limits[5], 1);
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(send_one("192.0.2.1"), XDP_PASS);
	rig_put(&rig, &limits[5], 3); /* the monitor and the two that race */
	for (int i = 0; i < 10; i++) {
		CU_ASSERT_EQUAL(send_one("192.0.2.1"), XDP_DROP);
		*rig.now_ns += 2 * WEIR_NS_PER_SEC;
	}
	rig_put(&rig, &limits[5], 1);
	CU_ASSERT_EQUAL(send_one("192.0.2.1"), XDP_PASS);
	CU_ASSERT_EQUAL(rig_totals(&rig, 5).passed_packets, 3);
	CU_ASSERT_EQUAL(rig_totals(&rig, 5).would_refuse_packets, 1 + 10 + 1);
}

/* ---- two CPUs ---- */

static void totals_add_up_under_a_race(void)
{
	struct drive_cpu plan = { .count = 8, .stride = 1, .step_ns = 200 };
	struct weir_limit limits[4];
	struct weir_totals totals;
	struct rig_sum sum;

	rig_begin(&both, RIG_DRIVE, 1024);
	rig_reset(&both);
	for (uint16_t i = 0; i < 4; i++)
		limits[i] = (struct weir_limit){ .key = WEIR_KEY_SOURCE, RIG_SOURCE_MASKS,
						 .slot = i, .salt = rig_salt() };
	limits[0].key = 0;
	rig_bucket(&limits[0], 2e6, 1000);
	rig_bucket(&limits[1], 2.5e5, 20);
	rig_period(&limits[2], 100, 400000);
	rig_bucket(&limits[3], 1e5, 50);
	limits[3].flags = WEIR_LIMIT_MONITOR;
	rig_put(&both, limits, 4);
	rig_plan(&both, &plan);
	CU_ASSERT_EQUAL(rig_drive_both(&both, 400000, NULL), 0);
	sum = rig_sum(&both);
	printf("  both CPUs, 4 limits: %" PRIu64 " passed, %" PRIu64 " refused\n", sum.passed,
	       sum.refused);
	for (uint32_t i = 0; i < 4; i++) {
		totals = rig_totals(&both, i);
		CU_ASSERT_EQUAL(totals.passed_packets + totals.would_refuse_packets, sum.passed);
		CU_ASSERT_EQUAL(totals.passed_bytes, totals.passed_packets * 60);
		sum.refused -= totals.refused_packets;
	}
	CU_ASSERT_EQUAL(sum.refused, 0);
	CU_ASSERT_TRUE(sum.passed <= 1000 + 2e-3 * (double)(*both.now_ns - RIG_START_NS));
	CU_ASSERT_TRUE(sum.passed >= 100000);
}

WEIR_TESTS("kernel limits", TEST(random_policies_apply_as_the_model_says),
	   TEST(a_lost_race_gives_everything_back), TEST(a_lost_race_gives_no_more_back),
	   TEST(totals_add_up_under_a_race))
