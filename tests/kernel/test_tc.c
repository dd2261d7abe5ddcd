// SPDX-License-Identifier: GPL-2.0
/*
 * What each hook knows of a packet: wire packets and bytes of skbs, frames of several buffers,
 * frames that generic XDP joined, VLAN tags in and beside the frame, fragments. And what the
 * programs cost the verifier.
 */
#include "harness.h"
#include "controller/generation.h"
#include "kernel/packet_frame.h"
#include "kernel/rig_limits.h"
#include "unit/compile_text.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

static struct rig rig, tagged;

#define TCP_HEADERS (14 + 20 + 20)
#define LARGE 9000

struct large {
	uint8_t bytes[LARGE];
};

static void tcp_frame(struct large *frame)
{
	static const struct weir_packet packet = {
		.source = { 0x010200c0 }, .destination = { 0x020200c0 }, .source_port = 40000,
		.destination_port = 80, .vlan = WEIR_NO_VLAN, .family = 4, .protocol = WEIR_IP_TCP,
		.tcp_flags = 0x10, .has = WEIR_HAS_PORTS | WEIR_HAS_TCP_FLAGS,
	};

	memset(frame, 0, sizeof(*frame));
	packet_frame(frame->bytes, &packet, 0);
}

static void begin(void)
{
	rig_begin(&rig, RIG_HOOKS, 1024);
	rig_reset(&rig);
	rig.plane.board->interfaces[1] = (struct weir_interface_line){ .ifindex = { 1 } };
}

/* A limit that counts and refuses nothing. */
static void count_all(void)
{
	struct weir_limit limit = { .flags = WEIR_LIMIT_UNLIMITED };

	begin();
	rig_put(&rig, &limit, 1);
}

static void policy(struct rig *on, const char *limits)
{
	struct weir_generation generation;
	struct weir_error err = { "" };
	struct weir_compiled *compiled;
	struct text text = { 0 };
	int code;

	add(&text, "version: 1\nlimits:\n%s", limits);
	compiled = compile_text(text.bytes, &code, &err);
	CU_ASSERT_EQUAL_FATAL(code, 0);
	CU_ASSERT_EQUAL_FATAL(weir_generation_open(&generation, &on->plane, &err), 0);
	CU_ASSERT_EQUAL(weir_generation_apply(&generation, compiled, &err), 0);
	weir_generation_close(&generation);
	weir_compiled_free(compiled);
	free(text.bytes);
}

/* ---- wire packets in an skb ---- */

static void d9_an_skb_costs_its_segments(void)
{
	static const struct {
		uint32_t size, segments, segment_bytes, packets, bytes;
	} rows[] = {
		{ TCP_HEADERS + 1448, 0, 0, 1, TCP_HEADERS + 1448 },
		{ TCP_HEADERS + 1448, 1, 1448, 1, TCP_HEADERS + 1448 },
		{ TCP_HEADERS + 2896, 2, 1448, 2, 2 * TCP_HEADERS + 2896 },
		{ TCP_HEADERS + 3000, 3, 1448, 3, 3 * TCP_HEADERS + 3000 },
		{ TCP_HEADERS + 3000, 30, 100, 30, 30 * TCP_HEADERS + 3000 },
		/* From a guest: how long the segments are, but not how many. */
		{ TCP_HEADERS + 3000, 0, 1448, 3, 3 * TCP_HEADERS + 3000 },
		{ TCP_HEADERS + 2896, 0, 1448, 2, 2 * TCP_HEADERS + 2896 },
	};
	static const char *const programs[] = { "weir_ingress", "weir_egress" };
	struct large frame;

	tcp_frame(&frame);
	for (int program = 0; program < 2; program++) {
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			struct __sk_buff ctx = { .gso_segs = rows[i].segments,
						 .gso_size = rows[i].segment_bytes };
			struct weir_traffic traffic;
			struct weir_totals totals;

			count_all();
			rig_use(&rig, programs[program]);
			CU_ASSERT_EQUAL(rig_send_skb(&rig, frame.bytes, rows[i].size, &ctx),
					TC_ACT_UNSPEC);
			totals = rig_totals(&rig, 0);
			CU_ASSERT_EQUAL(totals.passed_packets, rows[i].packets);
			CU_ASSERT_EQUAL(totals.passed_bytes, rows[i].bytes);
			traffic = weir_dataplane_traffic(&rig.plane, 0,
							 program ? WEIR_HOOK_TC_EGRESS :
								   WEIR_HOOK_TC_INGRESS);
			CU_ASSERT_EQUAL(traffic.frames[WEIR_PATH_LIMITS], rows[i].packets);
			CU_ASSERT_EQUAL(traffic.bytes[WEIR_PATH_LIMITS], rows[i].bytes);
		}
	}
}

static void an_skb_is_charged_whole_or_not_at_all(void)
{
	struct weir_limit limit = { .key = WEIR_KEY_SOURCE, RIG_SOURCE_MASKS };
	struct __sk_buff ctx = { .gso_segs = 40, .gso_size = 50 };
	struct large frame;

	begin();
	rig_bucket(&limit, 1, 100);
	rig_put(&rig, &limit, 1);
	rig_use(&rig, "weir_ingress");
	tcp_frame(&frame);
	CU_ASSERT_EQUAL(rig_send_skb(&rig, frame.bytes, TCP_HEADERS + 2000, &ctx), TC_ACT_UNSPEC);
	CU_ASSERT_EQUAL(rig_send_skb(&rig, frame.bytes, TCP_HEADERS + 2000, &ctx), TC_ACT_UNSPEC);
	CU_ASSERT_EQUAL(rig_send_skb(&rig, frame.bytes, TCP_HEADERS + 2000, &ctx), TC_ACT_SHOT);
	ctx.gso_segs = 20;
	CU_ASSERT_EQUAL(rig_send_skb(&rig, frame.bytes, TCP_HEADERS + 1000, &ctx), TC_ACT_UNSPEC);
	ctx.gso_segs = 1;
	CU_ASSERT_EQUAL(rig_send_skb(&rig, frame.bytes, TCP_HEADERS + 50, &ctx), TC_ACT_SHOT);
	CU_ASSERT_EQUAL(rig_totals(&rig, 0).passed_packets, 100);
	CU_ASSERT_EQUAL(rig_totals(&rig, 0).refused_packets, 41);
}

/* D20: a limit acts at its hook, and nowhere else. */
static void d20_a_limit_acts_at_one_hook(void)
{
	static const char *const hooks[] = { "xdp", "tc-ingress", "tc-egress" };
	static const char *const programs[] = { "weir_xdp", "weir_ingress", "weir_egress" };
	struct large frame;
	char limits[128];

	begin();
	tcp_frame(&frame);
	for (int hook = 0; hook < 3; hook++) {
		snprintf(limits, sizeof(limits),
			 "  - {name: a, match: {hook: %s}, key: source, bucket: {rate: block}}\n",
			 hooks[hook]);
		policy(&rig, limits);
		for (int program = 0; program < 3; program++) {
			int verdict;

			rig_use(&rig, programs[program]);
			verdict = rig_send_skb(&rig, frame.bytes, 200, NULL);
			CU_ASSERT_EQUAL(verdict == (program ? TC_ACT_SHOT : XDP_DROP),
					program == hook);
		}
	}
}

/* ---- XDP: several buffers, several packets in one frame ---- */

static void xdp_counts(uint32_t frame_bytes, uint32_t size, uint32_t packets, uint32_t bytes)
{
	struct weir_totals totals;
	struct large frame;

	count_all();
	rig_use(&rig, "weir_xdp");
	tcp_frame(&frame);
	rig.plane.board->interfaces[1].frame_bytes[0] = frame_bytes;
	CU_ASSERT_EQUAL(rig_send(&rig, frame.bytes, size, 1), XDP_PASS);
	totals = rig_totals(&rig, 0);
	CU_ASSERT_EQUAL(totals.passed_packets, packets);
	CU_ASSERT_EQUAL(totals.passed_bytes, bytes);
}

static void p17_all_buffers_count(void)
{
	xdp_counts(9022, LARGE, 1, LARGE);
	xdp_counts(9022, 200, 1, 200);
	xdp_counts(4000, LARGE, 3, LARGE + 2 * TCP_HEADERS);
}

/* The headers are there once in what generic XDP is given, and on the wire in each part. */
static void d9_joined_frames_are_cut_up(void)
{
	static const uint32_t part = 1522 - TCP_HEADERS;

	xdp_counts(1522, 1521, 1, 1521);
	xdp_counts(1522, 1522, 1, 1522);
	xdp_counts(1522, 1523, 2, 1523 + TCP_HEADERS);
	for (uint32_t n = 2; n < 6; n++) {
		uint32_t size = TCP_HEADERS + n * part;

		xdp_counts(1522, size - 1, n, size - 1 + (n - 1) * TCP_HEADERS);
		xdp_counts(1522, size, n, size + (n - 1) * TCP_HEADERS);
		xdp_counts(1522, size + 1, n + 1, size + 1 + n * TCP_HEADERS);
	}
	/* Nonsense from the interface: no more than the headers would fit. */
	xdp_counts(TCP_HEADERS, 200, 1, 200);
	xdp_counts(TCP_HEADERS + 1, TCP_HEADERS + 5, 5, 5 * TCP_HEADERS + 5);
	xdp_counts(0, 3000, 1, 3000);
}

/* The short way of bpf/plain.bpf.h must not be taken where frames may be several packets. */
static void d9_joined_frames_take_the_long_way(void)
{
	struct large frame;

	begin();
	policy(&rig, "  - {name: a, key: source, bucket: {rate: 1pps, burst: 7}}\n");
	CU_ASSERT_TRUE(rig.plane.board->policy[rig.plane.board->active.generation].plain[0]);
	rig_use(&rig, "weir_xdp");
	tcp_frame(&frame);
	rig.plane.board->interfaces[1].frame_bytes[0] = 1522;
	for (int i = 0; i < 5; i++)
		CU_ASSERT_EQUAL(rig_send(&rig, frame.bytes, 4000, 1), i < 2 ? XDP_PASS : XDP_DROP);
	CU_ASSERT_EQUAL(rig_totals(&rig, 0).passed_packets, 6);
}

/* ---- VLAN tags ---- */

#define BLOCK_VLAN(hook) \
	"  - {name: a, match: {vlan: 100, hook: " hook "}, key: none, bucket: {rate: block}}\n"

static uint32_t tag_frame(uint8_t *frame, uint16_t outer, uint16_t inner)
{
	struct large plain;
	uint8_t *at = frame + 12;

	tcp_frame(&plain);
	memcpy(frame, plain.bytes, 12);
	if (outer && inner) {
		at = packet_put16(at, WEIR_ETH_QINQ);
		at = packet_put16(at, 0x2000 | outer);
	}
	if (outer || inner) {
		at = packet_put16(at, WEIR_ETH_VLAN);
		at = packet_put16(at, inner ? inner : outer);
	}
	memcpy(at, plain.bytes + 12, 100);
	return (uint32_t)(at - frame) + 100;
}

/* P7: by its id in the right byte order, and by the outer one of two. 1024 is 100 turned round. */
static const struct {
	uint16_t outer, inner;
	bool refused;
} vlans[] = { { 0, 0, false },	   { 100, 0, true },   { 1024, 0, false },
	      { 101, 0, false },   { 100, 200, true }, { 200, 100, false },
	      { 4094, 100, false } };

static void p7_vlans_in_the_frame(void)
{
	static const char *const programs[] = { "weir_xdp", "weir_ingress" };
	uint8_t frame[256];

	begin();
	for (int program = 0; program < 2; program++) {
		policy(&rig, program ? BLOCK_VLAN("tc-ingress") : BLOCK_VLAN("xdp"));
		rig_use(&rig, programs[program]);
		for (size_t i = 0; i < sizeof(vlans) / sizeof(vlans[0]); i++) {
			uint32_t size = tag_frame(frame, vlans[i].outer, vlans[i].inner);
			int verdict = rig_send_skb(&rig, frame, size, NULL);

			CU_ASSERT_EQUAL(verdict == (program ? TC_ACT_SHOT : XDP_DROP),
					vlans[i].refused);
		}
	}
}

/* P8: the outer tag is in the metadata. The bytes are the wire's, with it. */
static void p8_vlans_beside_the_frame(void)
{
	struct weir_traffic before, after;
	struct large frame;

	rig_begin(&tagged, RIG_TAGGED, 1024);
	policy(&tagged, BLOCK_VLAN("tc-ingress"));
	tcp_frame(&frame);
	for (size_t i = 0; i < sizeof(vlans) / sizeof(vlans[0]); i++) {
		uint32_t tags = (vlans[i].outer != 0) + (vlans[i].inner != 0);
		int path = vlans[i].refused ? WEIR_PATH_REFUSED : WEIR_PATH_UNMATCHED;

		rig_tags(&tagged, vlans[i].outer, vlans[i].inner);
		before = weir_dataplane_traffic(&tagged.plane, 0, WEIR_HOOK_TC_INGRESS);
		CU_ASSERT_EQUAL(rig_send_skb(&tagged, frame.bytes, 200, NULL),
				vlans[i].refused ? TC_ACT_SHOT : TC_ACT_UNSPEC);
		after = weir_dataplane_traffic(&tagged.plane, 0, WEIR_HOOK_TC_INGRESS);
		CU_ASSERT_EQUAL(after.frames[path] - before.frames[path], 1);
		CU_ASSERT_EQUAL(after.bytes[path] - before.bytes[path], 200 + 4 * tags);
	}
}

/* ---- fragments ---- */

/* A UDP packet to port 53 in an IPv4 or IPv6 fragment at `offset`, in units of 8 bytes. */
static uint32_t fragment(uint8_t *frame, uint8_t family, uint16_t offset)
{
	struct weir_packet packet = { .vlan = WEIR_NO_VLAN, .family = family,
				      .protocol = WEIR_IP_UDP };
	uint32_t size = packet_frame(frame, &packet, 40);
	uint8_t *ip = frame + 14, *upper = ip + (family == 4 ? 20 : 48);

	if (family == 4)
		packet_put16(ip + 6, 0x2000 | offset);
	else
		packet_put16(ip + 42, (uint16_t)(offset << 3 | 1));
	packet_put16(upper + 2, 53);
	return size;
}

/* P1, P2: a later fragment has no ports, whatever its payload looks like. */
static void p1_p2_fragments(void)
{
	static const char *const programs[] = { "weir_xdp", "weir_ingress" };
	static const uint16_t offsets[] = { 0, 1, 185, 0x1fff };
	uint8_t frame[PACKET_FRAME_MAX];

	begin();
	for (int row = 0; row < 4; row++) {
		bool tc = row & 1, family6 = row & 2;
		int refused = tc ? TC_ACT_SHOT : XDP_DROP;
		const char *hook = tc ? "tc-ingress" : "xdp";
		char limits[256];

		snprintf(limits, sizeof(limits),
			 "  - {name: p%d, match: {hook: %s, proto: udp, to_port: 53}, key: none, "
			 "bucket: {rate: block}}\n  - {name: a%d, match: {hook: %s}, key: source, "
			 "bucket: {rate: 1/d, burst: 3}}\n",
			 row, hook, row, hook);
		rig_reset(&rig);
		policy(&rig, limits);
		rig_use(&rig, programs[tc]);
		for (int i = 0; i < 4; i++) {
			uint32_t size = fragment(frame, family6 ? 6 : 4, offsets[i]);

			CU_ASSERT_EQUAL(rig_send_skb(&rig, frame, size, NULL) == refused, i == 0);
		}
		/* A limit on the address was charged three later ones: no more of them. */
		CU_ASSERT_EQUAL(
			rig_send_skb(&rig, frame, fragment(frame, family6 ? 6 : 4, 7), NULL),
			refused);
	}
}

WEIR_TESTS("kernel hooks", TEST(d9_an_skb_costs_its_segments),
	   TEST(an_skb_is_charged_whole_or_not_at_all), TEST(d20_a_limit_acts_at_one_hook),
	   TEST(p17_all_buffers_count), TEST(d9_joined_frames_are_cut_up),
	   TEST(d9_joined_frames_take_the_long_way), TEST(p7_vlans_in_the_frame),
	   TEST(p8_vlans_beside_the_frame), TEST(p1_p2_fragments))
