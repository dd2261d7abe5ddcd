// SPDX-License-Identifier: GPL-2.0
/*
 * Newcomers of a service by packets alone: who is asked, on the short way of bpf/plain.bpf.h and
 * on the long one. The service refuses all newcomers, the limit nobody.
 */
#include <bpf/bpf.h>
#include <linux/bpf.h>

#include "harness.h"
#include "random.h"
#include "rig.h"

#define SERVICE_PORT 8080
#define SYN 0x02

static struct rig rig;

static void store(const char *map, uint32_t key, const void *value)
{
	CU_ASSERT_EQUAL_FATAL(bpf_map_update_elem(rig_map_fd(&rig, map), &key, value, BPF_ANY), 0);
}

/* As exchanges.c would write it: service 1 is at SERVICE_PORT. */
static void set_service(uint32_t protocols)
{
	uint64_t ports = 1ULL << (SERVICE_PORT & 3) * 16;
	struct weir_service_policy service = {
		.name = "web",
		.until_ns = UINT64_MAX,
		.drop = UINT32_MAX,
		.protocols = (uint8_t)protocols,
	};

	store("weir_services", 0, &service);
	store("weir_service_ports", SERVICE_PORT / 4, &ports);
	for (int i = 0; i < 2; i++)
		rig.plane.board->policy[i].services = protocols;
}

static void set_limit(bool long_way)
{
	struct rig_limit limit = {
		.rate = 1e6,
		.burst = 1e6,
		.key = WEIR_KEY_SOURCE,
		.long_way = long_way,
	};

	CU_ASSERT_EQUAL_FATAL(rig_set(&rig, &limit), 0);
}

struct probe {
	const char *source;
	uint8_t protocol, flags;
	uint16_t port, fragment; /* the word of flags and offset */
	unsigned int options;	 /* words of IP options */
};

static bool begins(const struct probe *probe, uint32_t protocols)
{
	if (probe->port != SERVICE_PORT || probe->fragment & 0x1fff)
		return false;
	if (probe->protocol == IPPROTO_TCP)
		return protocols & WEIR_SERVICE_TCP && (probe->flags & 0x17) == SYN;
	return probe->protocol == IPPROTO_UDP && protocols & WEIR_SERVICE_UDP;
}

static int ask(const struct probe *probe)
{
	uint8_t bytes[256];
	struct frame frame;
	uint32_t size, more = 4 * probe->options;

	rig_frame(&frame, probe->source, probe->protocol, 100);
	size = frame.size + more;
	frame_put16(frame.bytes + frame.l4_at + 2, probe->port);
	if (probe->protocol == IPPROTO_TCP)
		frame.bytes[frame.l4_at + 13] = probe->flags;
	if (!frame.ipv6)
		frame_put16(frame.bytes + frame.ip_at + 6, probe->fragment);
	memcpy(bytes, frame.bytes, frame.l4_at);
	bytes[frame.ip_at] += (uint8_t)(frame.ipv6 ? 0 : probe->options);
	memset(bytes + frame.l4_at, 1, more); /* options: no operation */
	memcpy(bytes + frame.l4_at + more, frame.bytes + frame.l4_at, frame.size - frame.l4_at);
	return rig_send(&rig, bytes, size, 1);
}

static struct probe random_probe(uint64_t *seed)
{
	static const char *const sources[] = { "10.0.0.1", "10.0.0.2", "192.0.2.7", "2001:db8::1" };
	static const uint8_t protocols[] = { IPPROTO_TCP, IPPROTO_TCP, IPPROTO_UDP, 47 };
	struct probe probe = {
		.source = sources[random_below(seed, 4)],
		.protocol = protocols[random_below(seed, 4)],
		.flags = random_below(seed, 2) ? SYN : (uint8_t)random_next(seed),
		.port = (uint16_t)(SERVICE_PORT +
				   (random_below(seed, 3) ? 0 : random_below(seed, 5))),
	};
	bool ipv6 = strchr(probe.source, ':');

	if (!ipv6 && !random_below(seed, 4))
		probe.fragment = random_below(seed, 2) ? 0x2000 : 0x0010;
	if (!ipv6 && !random_below(seed, 4))
		probe.options = 1 + (unsigned int)random_below(seed, 10);
	return probe;
}

static void both_ways_ask_newcomers_alone(void)
{
	uint64_t seed = 8080, wrong = 0, refused = 0, expected = 0;

	rig_open(&rig, RIG_WEIR, 1024);
	for (int i = 0; i < 20000; i++) {
		uint32_t protocols = (uint32_t)random_below(&seed, 4);
		struct probe probe = random_probe(&seed);
		bool no;

		if (i % 50 == 0)
			set_limit(i % 100 == 0);
		set_service(protocols);
		no = begins(&probe, protocols);
		wrong += ask(&probe) != (no ? XDP_DROP : XDP_PASS);
		expected += no;
	}
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT(expected > 2000);
	for (uint32_t cpu = 0; cpu < rig.plane.shape.cpus; cpu++) {
		uint32_t key = cpu * WEIR_SERVICES_MAX;
		struct weir_exchanges counts;

		CU_ASSERT_EQUAL(
			bpf_map_lookup_elem(rig_map_fd(&rig, "weir_exchanges"), &key, &counts), 0);
		refused += counts.dropped;
	}
	CU_ASSERT_EQUAL(refused, expected);
	rig_close(&rig);
}

/* A policy of one bucket stays on the short way beside a service. */
static void a_service_leaves_the_short_way(void)
{
	struct weir_policy_head *head;

	rig_open(&rig, RIG_WEIR, 1024);
	set_limit(false);
	head = &rig.plane.board->policy[rig.plane.board->active.generation];
	head->services = WEIR_SERVICE_TCP;
	CU_ASSERT_EQUAL(
		weir_policy_plain(head,
				  &rig.plane.board->limits[rig.plane.board->active.generation *
							   WEIR_LIMITS_MAX],
				  WEIR_HOOK_XDP),
		1);
	rig_close(&rig);
}

WEIR_TESTS("newcomers", TEST(both_ways_ask_newcomers_alone), TEST(a_service_leaves_the_short_way))
