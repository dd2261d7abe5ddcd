// SPDX-License-Identifier: GPL-2.0
/* The lists in the kernel: lengths, precedence, expiry; and what passes whatever they say. */
#include "harness.h"
#include "kernel/rig_limits.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <linux/bpf.h>

#define SECOND WEIR_NS_PER_SEC

static struct rig rig;

struct list_key {
	uint32_t length;
	uint8_t address[16];
};

/* The lists are empty, and nothing is limited. */
static void begin(void)
{
	static const char *const lists[] = { "weir_allow4", "weir_allow6", "weir_deny4",
					     "weir_deny6" };
	struct list_key key, next;

	rig_begin(&rig, RIG_WEIR, 1024);
	for (int i = 0; i < 4; i++) {
		int fd = rig_map_fd(&rig, lists[i]);

		while (!bpf_map_get_next_key(fd, NULL, &next)) {
			key = next;
			bpf_map_delete_elem(fd, &key);
		}
	}
	rig.plane.board->lists_live.used = 0;
}

/* A prefix on a list ("allow", "deny") until `expires_ns`; its text is ADDRESS/LENGTH. */
static void list(const char *name, const char *prefix, uint64_t expires_ns)
{
	bool allow = !strcmp(name, "allow"), v6 = strchr(prefix, ':');
	struct list_key key = { 0 };
	char text[64], map[32];
	char *slash;

	snprintf(text, sizeof(text), "%s", prefix);
	slash = strchr(text, '/');
	*slash = 0;
	key.length = (uint32_t)atoi(slash + 1);
	CU_ASSERT_EQUAL_FATAL(inet_pton(v6 ? AF_INET6 : AF_INET, text, key.address), 1);
	snprintf(map, sizeof(map), "weir_%s%c", name, v6 ? '6' : '4');
	CU_ASSERT_EQUAL_FATAL(bpf_map_update_elem(rig_map_fd(&rig, map), &key, &expires_ns, BPF_ANY),
			      0);
	rig.plane.board->lists_live.used |= allow ? (v6 ? WEIR_LIST_ALLOW6 : WEIR_LIST_ALLOW4) :
						    (v6 ? WEIR_LIST_DENY6 : WEIR_LIST_DENY4);
}

/* Which path counted the packet; -1 if the verdict isn't that path's. */
static int path_of_frame(const void *frame, uint32_t size)
{
	struct weir_traffic before = weir_dataplane_traffic(&rig.plane, 0, WEIR_HOOK_XDP), after;
	int verdict = rig_send(&rig, frame, size, 1), path = -1;

	after = weir_dataplane_traffic(&rig.plane, 0, WEIR_HOOK_XDP);
	for (int i = 0; i < WEIR_PATHS; i++) {
		if (after.frames[i] == before.frames[i])
			continue;
		if (path >= 0 || after.frames[i] != before.frames[i] + 1 ||
		    after.bytes[i] != before.bytes[i] + size)
			return -1;
		path = i;
	}
	return verdict == (path == WEIR_PATH_DENIED || path == WEIR_PATH_REFUSED ? XDP_DROP :
										  XDP_PASS) ?
		       path :
		       -1;
}

static int path_of(const char *source)
{
	struct frame frame;

	rig_frame(&frame, source, IPPROTO_UDP, 0);
	return path_of_frame(frame.bytes, frame.size);
}

/* ---- lengths ---- */

static void p12_every_length_holds_to_its_ends(void)
{
	static const struct {
		const char *prefix, *in[3], *out[2];
	} rows[] = {
		{ "0.0.0.0/0", { "0.0.0.1", "255.255.255.254", "10.0.0.1" }, { NULL } },
		{ "128.0.0.0/1", { "128.0.0.0", "255.255.255.255" }, { "127.255.255.255" } },
		{ "10.0.0.0/8", { "10.0.0.0", "10.255.255.255" }, { "9.255.255.255", "11.0.0.0" } },
		{ "192.0.2.0/24", { "192.0.2.0", "192.0.2.1", "192.0.2.255" },
		  { "192.0.1.255", "192.0.3.0" } },
		{ "192.0.2.4/31", { "192.0.2.4", "192.0.2.5" }, { "192.0.2.3", "192.0.2.6" } },
		{ "192.0.2.4/32", { "192.0.2.4" }, { "192.0.2.3", "192.0.2.5" } },
		{ "::/0", { "::1", "ffff::1", "2001:db8::1" }, { NULL } },
		{ "2001:db8:0:2::/63", { "2001:db8:0:2::1", "2001:db8:0:3:ffff::" },
		  { "2001:db8:0:1:ffff::", "2001:db8:0:4::" } },
		{ "2001:db8:0:2::/64", { "2001:db8:0:2::", "2001:db8:0:2:ffff:ffff:ffff:ffff" },
		  { "2001:db8:0:3::", "2001:db8:0:1:ffff:ffff:ffff:ffff" } },
		{ "2001:db8::4/127", { "2001:db8::4", "2001:db8::5" },
		  { "2001:db8::3", "2001:db8::6" } },
		{ "2001:db8::4/128", { "2001:db8::4" }, { "2001:db8::5", "2001:db8:1::4" } },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin();
		list("deny", rows[i].prefix, WEIR_LIST_FOREVER);
		for (int j = 0; j < 3 && rows[i].in[j]; j++)
			CU_ASSERT_EQUAL(path_of(rows[i].in[j]), WEIR_PATH_DENIED);
		for (int j = 0; j < 2 && rows[i].out[j]; j++)
			CU_ASSERT_EQUAL(path_of(rows[i].out[j]), WEIR_PATH_UNMATCHED);
		/* The other family has no list, and no part in this one. */
		CU_ASSERT_EQUAL(path_of(strchr(rows[i].prefix, ':') ? "192.0.2.4" : "2001:db8::4"),
				WEIR_PATH_UNMATCHED);
		begin();
		list("deny", strchr(rows[i].prefix, ':') ? "::/0" : "0.0.0.0/0", WEIR_LIST_FOREVER);
		list("allow", rows[i].prefix, WEIR_LIST_FOREVER);
		for (int j = 0; j < 3 && rows[i].in[j]; j++)
			CU_ASSERT_EQUAL(path_of(rows[i].in[j]), WEIR_PATH_ALLOWED);
		for (int j = 0; j < 2 && rows[i].out[j]; j++)
			CU_ASSERT_EQUAL(path_of(rows[i].out[j]), WEIR_PATH_DENIED);
	}
}

static void p15_a_network_is_not_a_host(void)
{
	char address[32];

	begin();
	list("deny", "198.51.100.0/24", WEIR_LIST_FOREVER);
	for (int host = 0; host < 256; host++) {
		snprintf(address, sizeof(address), "198.51.100.%d", host);
		CU_ASSERT_EQUAL(path_of(address), WEIR_PATH_DENIED);
	}
}

static void allow_wins_whatever_the_lengths(void)
{
	begin();
	list("allow", "10.0.0.0/8", WEIR_LIST_FOREVER);
	list("deny", "10.1.2.3/32", WEIR_LIST_FOREVER);
	list("deny", "2001:db8::/32", WEIR_LIST_FOREVER);
	list("allow", "2001:db8:1::1/128", WEIR_LIST_FOREVER);
	CU_ASSERT_EQUAL(path_of("10.1.2.3"), WEIR_PATH_ALLOWED);
	CU_ASSERT_EQUAL(path_of("2001:db8:1::1"), WEIR_PATH_ALLOWED);
	CU_ASSERT_EQUAL(path_of("2001:db8:1::2"), WEIR_PATH_DENIED);
}

static void allowed_before_any_limit(void)
{
	struct weir_limit limit = { .flags = WEIR_LIMIT_BLOCK };
	struct weir_totals before;

	begin();
	rig_put(&rig, &limit, 1);
	list("allow", "192.0.2.1/32", WEIR_LIST_FOREVER);
	before = rig_totals(&rig, 0);
	CU_ASSERT_EQUAL(path_of("192.0.2.1"), WEIR_PATH_ALLOWED);
	CU_ASSERT_EQUAL(rig_totals(&rig, 0).refused_packets, before.refused_packets);
	CU_ASSERT_EQUAL(path_of("192.0.2.2"), WEIR_PATH_REFUSED);
	CU_ASSERT_EQUAL(path_of("2001:db8::1"), WEIR_PATH_REFUSED);
}

/* ---- time ---- */

static void entries_expire_and_are_extended(void)
{
	begin();
	list("deny", "192.0.2.0/24", RIG_START_NS + 10 * SECOND);
	list("allow", "192.0.2.7/32", RIG_START_NS + 5 * SECOND);
	CU_ASSERT_EQUAL(path_of("192.0.2.7"), WEIR_PATH_ALLOWED);
	*rig.now_ns += 5 * SECOND - 1;
	CU_ASSERT_EQUAL(path_of("192.0.2.7"), WEIR_PATH_ALLOWED);
	*rig.now_ns += 1;
	CU_ASSERT_EQUAL(path_of("192.0.2.7"), WEIR_PATH_DENIED);
	*rig.now_ns += 5 * SECOND - 1;
	CU_ASSERT_EQUAL(path_of("192.0.2.7"), WEIR_PATH_DENIED);
	*rig.now_ns += 1;
	CU_ASSERT_EQUAL(path_of("192.0.2.7"), WEIR_PATH_UNMATCHED);
	/* B8: extended just before its end it goes on. */
	list("deny", "192.0.2.0/24", *rig.now_ns + 1);
	CU_ASSERT_EQUAL(path_of("192.0.2.1"), WEIR_PATH_DENIED);
	list("deny", "192.0.2.0/24", *rig.now_ns + 10 * SECOND);
	*rig.now_ns += 10 * SECOND - 1;
	CU_ASSERT_EQUAL(path_of("192.0.2.1"), WEIR_PATH_DENIED);
	*rig.now_ns += 1;
	CU_ASSERT_EQUAL(path_of("192.0.2.1"), WEIR_PATH_UNMATCHED);
}

/* ---- what always passes ---- */

static uint32_t neighbour(uint8_t *frame, uint8_t type, uint8_t hop_limit)
{
	memset(frame, 0, 128);
	frame[12] = 0x86, frame[13] = 0xdd;
	frame[14] = 0x60;
	frame[20] = 58;
	frame[21] = hop_limit;
	frame[22] = 0xfe, frame[23] = 0x80, frame[37] = 1;
	frame[54] = type;
	return 86;
}

/* P16, P18: with everything denied and everything limited, the link goes on working. */
static void p16_p18_the_link_goes_on_working(void)
{
	static const uint16_t others[] = { 0x88cc, 0x8863, 0x9000, 0x88e5, 0x86dc };
	struct weir_limit limit = { .flags = WEIR_LIMIT_BLOCK };
	uint8_t frame[128] = { 0 };
	uint32_t size;

	begin();
	rig_put(&rig, &limit, 1);
	list("deny", "0.0.0.0/0", WEIR_LIST_FOREVER);
	list("deny", "::/0", WEIR_LIST_FOREVER);
	for (int hour = 0; hour < 3; hour++) {
		frame[12] = 0x08, frame[13] = 0x06;
		CU_ASSERT_EQUAL(path_of_frame(frame, 60), WEIR_PATH_EXEMPT);
		for (uint8_t type = 133; type <= 137; type++) {
			size = neighbour(frame, type, 255);
			CU_ASSERT_EQUAL(path_of_frame(frame, size), WEIR_PATH_EXEMPT);
			size = neighbour(frame, type, 254); /* from beyond a router: a forgery */
			CU_ASSERT_EQUAL(path_of_frame(frame, size), WEIR_PATH_DENIED);
		}
		size = neighbour(frame, 128, 255);
		CU_ASSERT_EQUAL(path_of_frame(frame, size), WEIR_PATH_DENIED);
		memset(frame, 0, sizeof(frame));
		for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
			frame_put16(frame + 12, others[i]);
			CU_ASSERT_EQUAL(path_of_frame(frame, 60), WEIR_PATH_NOT_IP);
		}
		*rig.now_ns += 3600 * SECOND;
	}
	frame_put16(frame + 12, 0x0800); /* of version 0 */
	CU_ASSERT_EQUAL(path_of_frame(frame, 60), WEIR_PATH_MALFORMED);
	/* An ARP request in a VLAN. */
	frame_put16(frame + 12, 0x8100);
	frame_put16(frame + 16, 0x0806);
	CU_ASSERT_EQUAL(path_of_frame(frame, 60), WEIR_PATH_EXEMPT);
}

static void an_unlisted_family_is_not_asked(void)
{
	begin();
	list("deny", "0.0.0.0/0", WEIR_LIST_FOREVER);
	CU_ASSERT_EQUAL(path_of("2001:db8::1"), WEIR_PATH_UNMATCHED);
	rig.plane.board->lists_live.used = 0;
	CU_ASSERT_EQUAL(path_of("192.0.2.1"), WEIR_PATH_UNMATCHED);
}

WEIR_TESTS("kernel lists", TEST(p12_every_length_holds_to_its_ends),
	   TEST(p15_a_network_is_not_a_host), TEST(allow_wins_whatever_the_lengths),
	   TEST(allowed_before_any_limit), TEST(entries_expire_and_are_extended),
	   TEST(p16_p18_the_link_goes_on_working), TEST(an_unlisted_family_is_not_asked))
