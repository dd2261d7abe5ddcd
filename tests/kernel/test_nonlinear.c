// SPDX-License-Identifier: GPL-2.0
/*
 * Skbs whose headers are not in one piece, as a packet socket's ring sends them: only the link
 * header is. In a network namespace of its own, on its loopback.
 */
#include "harness.h"
#include "controller/generation.h"
#include "kernel/packet_frame.h"
#include "kernel/rig_limits.h"
#include "unit/compile_text.h"

#include <err.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOOPBACK 1
#define SLOT_BYTES 4096

static struct rig rig;
static int ring_fd = -1;
static uint8_t *ring;

/* A namespace with a loopback that is up. */
static void enter_namespace(void)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd;

	if (unshare(CLONE_NEWNET))
		errx(2, "no network namespace: %s (is this root?)", strerror(errno));
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request))
		errx(2, "can't bring the loopback up: %s", strerror(errno));
	close(fd);
}

static void attach_egress(void)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = LOOPBACK, .attach_point = BPF_TC_EGRESS);
	LIBBPF_OPTS(bpf_tc_opts, options, .handle = 1, .priority = 1);
	int err = bpf_tc_hook_create(&hook);

	rig_use(&rig, "weir_egress");
	options.prog_fd = rig.program_fd;
	if (!err)
		err = bpf_tc_attach(&hook, &options);
	if (err)
		errx(2, "can't attach to the loopback: %s", strerror(-err));
}

static void open_ring(void)
{
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_ifindex = LOOPBACK,
				       .sll_protocol = htons(ETH_P_IP) };
	struct tpacket_req request = { .tp_block_size = SLOT_BYTES, .tp_block_nr = 1,
				       .tp_frame_size = SLOT_BYTES, .tp_frame_nr = 1 };
	int version = TPACKET_V2;

	ring_fd = socket(AF_PACKET, SOCK_RAW, 0);
	if (ring_fd < 0 ||
	    setsockopt(ring_fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) ||
	    setsockopt(ring_fd, SOL_PACKET, PACKET_TX_RING, &request, sizeof(request)) ||
	    bind(ring_fd, (struct sockaddr *)&address, sizeof(address)))
		errx(2, "no ring to send by: %s", strerror(errno));
	ring = mmap(NULL, SLOT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, ring_fd, 0);
	if (ring == MAP_FAILED)
		errx(2, "can't map the ring: %s", strerror(errno));
}

static void begin(const char *limits)
{
	struct weir_generation generation;
	struct weir_error error = { "" };
	struct weir_compiled *compiled;
	struct text text = { 0 };
	int code;

	if (!rig.weir) {
		enter_namespace();
		rig_begin(&rig, RIG_HOOKS, 1024);
		attach_egress();
		open_ring();
	}
	rig_reset(&rig);
	add(&text, "version: 1\nlimits:\n%s", limits);
	compiled = compile_text(text.bytes, &code, &error);
	CU_ASSERT_EQUAL_FATAL(code, 0);
	CU_ASSERT_EQUAL_FATAL(weir_generation_open(&generation, &rig.plane, &error), 0);
	CU_ASSERT_EQUAL(weir_generation_apply(&generation, compiled, &error), 0);
	weir_generation_close(&generation);
	weir_compiled_free(compiled);
	free(text.bytes);
}

/* Through the egress hook: which path counted it, and it alone; -1 if none did. */
static int path_of_frame(const uint8_t *frame, uint32_t size)
{
	struct tpacket2_hdr *header = (struct tpacket2_hdr *)ring;
	struct weir_traffic traffic;
	int path = -1;

	memcpy(ring + TPACKET2_HDRLEN - sizeof(struct sockaddr_ll), frame, size);
	header->tp_len = size;
	__atomic_store_n(&header->tp_status, TP_STATUS_SEND_REQUEST, __ATOMIC_RELEASE);
	/* A refused packet is -ENOBUFS: the verdict is what the counters say. */
	(void)!send(ring_fd, NULL, 0, 0);
	traffic = weir_dataplane_traffic(&rig.plane, 0, WEIR_HOOK_TC_EGRESS);
	for (int i = 0; i < WEIR_PATHS; i++) {
		if (!traffic.frames[i])
			continue;
		CU_ASSERT_EQUAL(path, -1);
		CU_ASSERT_EQUAL(traffic.frames[i], 1);
		CU_ASSERT_EQUAL(traffic.bytes[i], header->tp_len);
		path = i;
	}
	return path;
}

static int path_of(const struct weir_packet *packet, uint32_t payload)
{
	uint8_t frame[PACKET_FRAME_MAX];

	return path_of_frame(frame, packet_frame(frame, packet, payload));
}

static struct weir_packet tcp(uint8_t family, uint8_t flags)
{
	return (struct weir_packet){
		.source = { 0x010200c0 }, .destination = { 0x020200c0 }, .source_port = 40000,
		.destination_port = 80, .vlan = WEIR_NO_VLAN, .family = family,
		.protocol = WEIR_IP_TCP, .tcp_flags = flags,
		.has = WEIR_HAS_PORTS | WEIR_HAS_TCP_FLAGS,
	};
}

#define BLOCK(match) "  - {name: a, match: {hook: tc-egress, " match "}, key: none, " \
	"bucket: {rate: block}}\n"

static void ports_and_flags_are_read_all_the_same(void)
{
	static const uint32_t payloads[] = { 0, 100, 200 };
	static const uint8_t families[] = { 4, 6 };

	for (int i = 0; i < 6; i++) {
		struct weir_packet syn = tcp(families[i & 1], 0x02),
				   ack = tcp(families[i & 1], 0x10);
		uint32_t payload = payloads[i / 2];

		begin(BLOCK("proto: tcp, to_port: 80"));
		CU_ASSERT_EQUAL(path_of(&syn, payload), WEIR_PATH_REFUSED);
		begin(BLOCK("proto: tcp, to_port: 81"));
		CU_ASSERT_EQUAL(path_of(&syn, payload), WEIR_PATH_UNMATCHED);
		begin(BLOCK("proto: tcp, flags: \"syn,!ack\""));
		CU_ASSERT_EQUAL(path_of(&syn, payload), WEIR_PATH_REFUSED);
		begin(BLOCK("proto: tcp, flags: \"syn,!ack\""));
		CU_ASSERT_EQUAL(path_of(&ack, payload), WEIR_PATH_UNMATCHED);
	}
}

static void addresses_are_read_all_the_same(void)
{
	struct weir_packet packet = tcp(4, 0x10);

	begin(BLOCK("from: 192.0.2.1/32"));
	CU_ASSERT_EQUAL(path_of(&packet, 0), WEIR_PATH_REFUSED);
	begin(BLOCK("from: 192.0.2.2/32"));
	CU_ASSERT_EQUAL(path_of(&packet, 0), WEIR_PATH_UNMATCHED);
	packet.protocol = 200;
	packet.has = 0;
	begin(BLOCK("proto: 200, from: 192.0.2.1/32"));
	CU_ASSERT_EQUAL(path_of(&packet, 0), WEIR_PATH_REFUSED);
}

/* However long what is before the ports, in IPv6 and of tags. */
static void nothing_long_hides_the_ports(void)
{
	static const uint32_t counts[] = { 1, 20, 28, 40, 100, 170 };
	struct weir_packet packet = tcp(6, 0x02);
	uint8_t whole[PACKET_FRAME_MAX], frame[1600];
	uint32_t size = packet_frame(whole, &packet, 0);

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		uint32_t bytes = 8 * counts[i];

		memset(frame, 0, sizeof(frame));
		memcpy(frame, whole, 54);
		frame[20] = WEIR_IP_DESTINATION;
		for (uint32_t at = 54; at < 54 + bytes; at += 8)
			frame[at] = at + 8 < 54 + bytes ? WEIR_IP_DESTINATION : WEIR_IP_TCP;
		memcpy(frame + 54 + bytes, whole + 54, size - 54);
		begin(BLOCK("proto: tcp, to_port: 80"));
		CU_ASSERT_EQUAL(path_of_frame(frame, size + bytes), WEIR_PATH_REFUSED);

		memset(frame, 0, sizeof(frame));
		for (uint32_t at = 12; at < 12 + bytes; at += 4)
			frame[at] = 0x81;
		memcpy(frame + 12 + bytes, whole + 12, size - 12);
		begin(BLOCK("proto: tcp, to_port: 80"));
		CU_ASSERT_EQUAL(path_of_frame(frame, size + bytes), WEIR_PATH_REFUSED);
	}
}

WEIR_TESTS("kernel nonlinear", TEST(ports_and_flags_are_read_all_the_same),
	   TEST(addresses_are_read_all_the_same), TEST(nothing_long_hides_the_ports))
