// SPDX-License-Identifier: GPL-2.0
/* Gates by packets alone, on an injected clock: who is pending, and the RST. */
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <pthread.h>

#include "harness.h"
#include "random.h"
#include "rig.h"
#include "weir/pending.h"

#define SYN 0x02
#define ACK 0x10
#define SLICE_NS (1ULL << (WEIR_PENDING_SHIFT - WEIR_TICK_SHIFT))

static struct rig rig;

/* One gate by source, for SYNs, as the compiler would have it. */
static void set_gate_on(enum rig_program program, uint32_t ceiling, uint8_t flags)
{
	struct weir_board *board = rig.plane.board;
	struct weir_limit limit = {
		.salt = 42,
		.kind = WEIR_KIND_GATE,
		.flags = flags,
		.key = WEIR_KEY_SOURCE,
		.mask4 = UINT32_MAX,
		.mask6 = { UINT32_MAX, UINT32_MAX },
		.gate.limit = ceiling,
	};

	rig_open(&rig, program, 1024);
	board = rig.plane.board;
	for (int i = 0; i < 256; i++)
		rig.plane.rows[WEIR_ROWS_TCP_FLAGS + i].word[0] = (i & (SYN | ACK)) == SYN;
	board->limits[0] = limit;
	board->policy[0] = (struct weir_policy_head){
		.dimensions = WEIR_BY_TCP_FLAGS,
		.limits = 1,
		.gates = 1,
		.sample_ns = WEIR_NS_PER_SEC,
		.hooks[WEIR_HOOK_XDP].word[0] = 1,
	};
}

static void set_gate(uint32_t ceiling, uint8_t flags)
{
	set_gate_on(RIG_WEIR, ceiling, flags);
}

static void make(struct frame *frame, const char *source, uint16_t port, uint8_t flags)
{
	struct in6_addr address;
	char text[64];

	rig_frame(frame, source, IPPROTO_TCP, 0);
	snprintf(text, sizeof(text), "%s%s", strchr(source, ':') ? "" : "::ffff:", source);
	inet_pton(AF_INET6, text, &address);
	frame_set_source(frame, frame->bytes, &address, port);
	frame->bytes[frame->l4_at + 13] = flags;
}

static int ask(const char *source, uint16_t port, uint8_t flags)
{
	struct frame frame;

	make(&frame, source, port, flags);
	return rig_send(&rig, frame.bytes, frame.size, 1);
}

static void a_pending_place_expires(void)
{
	set_gate(2, 0);
	CU_ASSERT_EQUAL(ask("10.0.0.1", 1, SYN), XDP_PASS);
	CU_ASSERT_EQUAL(ask("10.0.0.1", 2, SYN), XDP_PASS);
	CU_ASSERT_EQUAL(ask("10.0.0.1", 3, SYN), XDP_DROP);
	for (int i = 0; i < 5; i++)
		CU_ASSERT_EQUAL(ask("10.0.0.1", 2, SYN), XDP_PASS);
	CU_ASSERT_EQUAL(ask("10.0.0.2", 3, SYN), XDP_PASS);
	*rig.now_ns += SLICE_NS;
	CU_ASSERT_EQUAL(ask("10.0.0.1", 3, SYN), XDP_DROP);
	CU_ASSERT_EQUAL(ask("10.0.0.1", 1, SYN), XDP_PASS);
	*rig.now_ns += SLICE_NS;
	CU_ASSERT_EQUAL(ask("10.0.0.1", 3, SYN), XDP_PASS);
	CU_ASSERT_EQUAL(ask("10.0.0.1", 4, SYN), XDP_PASS);
	CU_ASSERT_EQUAL(ask("10.0.0.1", 1, SYN), XDP_DROP);
	rig_close(&rig);
}

/* nmap -f: the flags come with the second fragment, and others are in the padding of the first. */
static void a_syn_in_small_fragments_asks(void)
{
	struct frame frame;

	set_gate(2, 0);
	CU_ASSERT_EQUAL(ask("10.0.0.1", 1, SYN), XDP_PASS);
	for (uint16_t port = 2; port < 5; port++) {
		make(&frame, "10.0.0.1", port, ACK);
		frame.bytes[17] = 20 + 8;
		frame.bytes[20] = 0x20;
		CU_ASSERT_EQUAL(rig_send(&rig, frame.bytes, frame.size, 1),
				port == 2 ? XDP_PASS : XDP_DROP);
	}
	rig_close(&rig);
}

/* Nobody but a SYN asks, whatever the cap. */
static void other_packets_pass(void)
{
	set_gate(1, 0);
	CU_ASSERT_EQUAL(ask("10.0.0.1", 1, SYN), XDP_PASS);
	CU_ASSERT_EQUAL(ask("10.0.0.1", 2, SYN), XDP_DROP);
	for (int flags = 0; flags < 256; flags++) {
		int verdict = ask("10.0.0.1", 2, (uint8_t)flags);

		CU_ASSERT_EQUAL(verdict, (flags & (SYN | ACK)) == SYN ? XDP_DROP : XDP_PASS);
	}
	CU_ASSERT_EQUAL(weir_dataplane_totals(&rig.plane, 0).passed_packets, 1);
	rig_close(&rig);
}

/*
 * C7: SYNs of 20,000 spoofed sources, twenty times what the ledger holds, pass untracked once it is
 * full and cost nobody a place: who has one keeps it, and the cap with it. After two slices all is
 * free again.
 */
static void C7_spoofed_syns_harm_nobody_else(void)
{
	char source[16];
	uint32_t passed = 0;

	set_gate(2, 0);
	CU_ASSERT_EQUAL(ask("10.0.0.1", 1, SYN), XDP_PASS);
	for (int i = 0; i < 20000; i++) {
		snprintf(source, sizeof(source), "10.9.%d.%d", i >> 8, i & 255);
		passed += ask(source, 1, SYN) == XDP_PASS;
		*rig.now_ns += 1000;
	}
	CU_ASSERT_EQUAL(passed, 20000);
	CU_ASSERT(weir_dataplane_totals(&rig.plane, 0).untracked_packets > 10000);
	CU_ASSERT_EQUAL(ask("10.0.0.1", 2, SYN), XDP_PASS);
	CU_ASSERT_EQUAL(ask("10.0.0.1", 3, SYN), XDP_DROP);
	*rig.now_ns += 2 * SLICE_NS;
	CU_ASSERT_EQUAL(rig_ledger_taken(&rig), 0);
	CU_ASSERT_EQUAL(ask("10.0.0.99", 1, SYN), XDP_PASS);
	CU_ASSERT_EQUAL(rig_ledger_taken(&rig), 1);
	rig_close(&rig);
}

/* ---- the kernel's verdicts are those of the functions in user space ---- */

#define PACKETS 20000
#define SOURCES 6
#define PORTS 40
#define NEVER UINT64_MAX

struct model {
	uint64_t pending;      /* as in pending.h */
	uint64_t asked[PORTS]; /* the slice in which a connection from there took its place */
};

static bool model_admits(struct model *model, const struct weir_gate_conf *conf, uint16_t port,
			 uint64_t slice)
{
	uint64_t *asked = &model->asked[port], next;

	if (*asked != NEVER && weir_pending_lives(*asked, slice))
		return true;
	/* Those pending are held against the gate like those inside. */
	if (!weir_gate_step(WEIR_GATE_INSIDE | weir_pending_count(model->pending, slice), conf,
			    &next))
		return false;
	model->pending = weir_pending_add(model->pending, slice);
	*asked = slice;
	return true;
}

static void kernel_and_user_space_agree(void)
{
	static const char *const addresses[SOURCES] = { "10.0.0.1",    "10.0.0.2",
							"192.0.2.255", "2001:db8::1",
							"2001:db8:0:1::1", "fe80::ffff" };
	uint64_t seed = 20000, verdicts[2] = { 0 }, wrong = 0;
	struct model models[SOURCES];

	memset(models, 0xff, sizeof(models));
	for (int i = 0; i < SOURCES; i++)
		models[i].pending = 0;
	set_gate(1, 0);
	for (int i = 0; i < PACKETS; i++) {
		size_t source = random_below(&seed, SOURCES);
		uint16_t port = (uint16_t)random_below(&seed, PORTS);
		uint8_t flags = random_below(&seed, 8) ? SYN : (uint8_t)random_next(&seed);
		struct weir_gate_conf *conf = &rig.plane.board->limits[0].gate;
		bool asks = (flags & (SYN | ACK)) == SYN, expected;

		if (i % 100 == 0)
			conf->limit = (uint32_t)random_below(&seed, 12);
		/* Mostly within a slice, now and then over one, two or three. */
		*rig.now_ns += random_below(&seed, random_below(&seed, 20) ? SLICE_NS / 50
									   : 3 * SLICE_NS);
		expected = !asks || model_admits(&models[source], conf, port,
						 weir_pending_slice(*rig.now_ns
								    << WEIR_TICK_SHIFT));
		wrong += ask(addresses[source], port, flags) != (expected ? XDP_PASS : XDP_DROP);
		verdicts[expected]++;
	}
	printf("  %d packets: %" PRIu64 " passed, %" PRIu64 " refused, %" PRIu64 " differ\n",
	       PACKETS, verdicts[1], verdicts[0], wrong);
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_TRUE(verdicts[0] > PACKETS / 10);
	CU_ASSERT_TRUE(verdicts[1] > PACKETS / 10);
	rig_close(&rig);
}

/* Beside the gate two limits that share one bucket of 1, or the gate alone. */
static void set_race(bool on)
{
	struct weir_board *board = rig.plane.board;

	for (int i = 1; i < 3; i++) {
		board->limits[i] = (struct weir_limit){ .salt = 7, .slot = (uint16_t)i };
		weir_bucket_conf_init(&board->limits[i].bucket, 1, 1, 1);
	}
	for (int i = 0; i < 256; i++)
		rig.plane.rows[WEIR_ROWS_TCP_FLAGS + i].word[0] |= 6;
	board->policy[0].limits = on ? 3 : 1;
	board->policy[0].hooks[WEIR_HOOK_XDP].word[0] = on ? 7 : 1;
}

/*
 * Two limits that share one bucket of 1 both pass the check, and the second finds it empty: a
 * race lost for certain. The place that was taken in the gate before is given back.
 */
static void a_lost_race_gives_back(void)
{
	set_gate(3, 0);
	set_race(true);
	for (uint16_t i = 0; i < 10; i++) {
		CU_ASSERT_EQUAL(ask("10.0.0.1", i, SYN), XDP_DROP);
		*rig.now_ns += WEIR_NS_PER_SEC / 1000;
	}
	set_race(false);
	for (uint16_t i = 0; i < 10; i++)
		CU_ASSERT_EQUAL(ask("10.0.0.1", i, SYN), i < 3 ? XDP_PASS : XDP_DROP);
	rig_close(&rig);
}

/* A SYN that comes again and loses that race took no place: the first one's is still held. */
static void a_lost_race_gives_back_nothing_of_others(void)
{
	set_gate(2, 0);
	for (uint16_t i = 0; i < 2; i++)
		CU_ASSERT_EQUAL(ask("10.0.0.1", i, SYN), XDP_PASS);
	*rig.now_ns += WEIR_NS_PER_SEC / 1000;
	set_race(true);
	for (uint16_t i = 0; i < 10; i++)
		CU_ASSERT_EQUAL(ask("10.0.0.1", i % 2, SYN), XDP_DROP);
	set_race(false);
	for (uint16_t i = 10; i-- > 0;)
		CU_ASSERT_EQUAL(ask("10.0.0.1", i, SYN), i < 2 ? XDP_PASS : XDP_DROP);
	CU_ASSERT_EQUAL(weir_dataplane_totals(&rig.plane, 0).passed_packets, 4);
	rig_close(&rig);
}

struct half {
	int cpu;
	uint32_t passed;
};

static void *ask_much(void *argument)
{
	struct half *half = argument;

	rig_pin(half->cpu);
	for (uint16_t port = 0; port < 5000; port++)
		half->passed += ask("10.0.0.1", (uint16_t)(port + 10000 * half->cpu), SYN) ==
				XDP_PASS;
	return NULL;
}

static void both_cpus_ask_up_to_the_limit(void)
{
	struct half halves[2] = { { .cpu = 0 }, { .cpu = 1 } };
	pthread_t other;
	int cpus[2];

	if (rig_cpus(cpus))
		return;
	halves[0].cpu = cpus[0];
	halves[1].cpu = cpus[1];
	set_gate(7000, 0);
	CU_ASSERT_EQUAL(pthread_create(&other, NULL, ask_much, &halves[1]), 0);
	ask_much(&halves[0]);
	pthread_join(other, NULL);
	CU_ASSERT_EQUAL(halves[0].passed + halves[1].passed, 7000);
	rig_close(&rig);
}

/* ---- the RST: C4 ---- */

static uint32_t word_at(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* `sent` with what the program made of it in *got: its verdict, or -errno. */
static int answer(const uint8_t *sent, uint32_t size, uint8_t *got, uint32_t *got_size)
{
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = sent, .data_size_in = size,
		    .data_out = got, .data_size_out = 2048, .repeat = 1);
	int err = bpf_prog_test_run_opts(rig.program_fd, &options);

	*got_size = options.data_size_out;
	return err ? err : (int)options.retval;
}

static void check_reset(const uint8_t *sent, const uint8_t *got, uint32_t ip_at, bool v6,
			uint32_t tcp_at)
{
	uint32_t addresses_at = ip_at + (v6 ? 8 : 12), size = v6 ? 16 : 4;
	const uint8_t *tcp = got + ip_at + (v6 ? 40 : 20);
	uint64_t sum = frame_sum(got + addresses_at, 2 * size) + 6 + 20 + frame_sum(tcp, 20);

	CU_ASSERT_EQUAL(memcmp(got, sent + 6, 6), 0);
	CU_ASSERT_EQUAL(memcmp(got + 6, sent, 6), 0);
	CU_ASSERT_EQUAL(memcmp(got + 12, sent + 12, ip_at - 12), 0);
	CU_ASSERT_EQUAL(memcmp(got + addresses_at, sent + addresses_at + size, size), 0);
	CU_ASSERT_EQUAL(memcmp(got + addresses_at + size, sent + addresses_at, size), 0);
	CU_ASSERT_EQUAL(memcmp(tcp, sent + tcp_at + 2, 2), 0);
	CU_ASSERT_EQUAL(memcmp(tcp + 2, sent + tcp_at, 2), 0);
	CU_ASSERT_EQUAL(word_at(tcp + 4), 0);
	CU_ASSERT_EQUAL(word_at(tcp + 8), word_at(sent + tcp_at + 4) + 1);
	CU_ASSERT_EQUAL(tcp[12], 0x50);
	CU_ASSERT_EQUAL(tcp[13], 0x14);
	CU_ASSERT_EQUAL(frame_checksum(sum), 0);
	if (v6) {
		CU_ASSERT_EQUAL(word_at(got + ip_at + 4), 20 << 16 | 6 << 8 | 64);
		return;
	}
	CU_ASSERT_EQUAL(word_at(got + ip_at), 0x45000028);
	CU_ASSERT_EQUAL(frame_checksum(frame_sum(got + ip_at, 20)), 0);
}

static void C4_the_reset_is_right(void)
{
	static const struct {
		const char *source;
		unsigned int tags, options, extra; /* VLANs; words of IP options; bytes after */
	} cases[] = {
		{ "10.0.0.1", 0, 0, 0 },  { "10.0.0.1", 0, 0, 6 }, { "10.0.0.1", 1, 0, 40 },
		{ "10.0.0.1", 2, 3, 20 }, { "2001:db8::1", 0, 0, 0 },
		{ "2001:db8::1", 2, 0, 300 },
	};

	set_gate(1, WEIR_LIMIT_BLOCK | WEIR_LIMIT_RESET);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t sent[2048] = { 0 }, got[2048];
		bool v6 = strchr(cases[i].source, ':');
		uint32_t ip_at = 14 + 4 * cases[i].tags, options = 4 * cases[i].options;
		uint32_t size, least, got_size;
		struct frame frame;

		make(&frame, cases[i].source, 40000, SYN);
		memcpy(sent, frame.bytes, 12);
		for (unsigned int tag = 0; tag < cases[i].tags; tag++)
			memcpy(sent + 12 + 4 * tag, (uint8_t[]){ 0x81, 0, 0, 7 }, 4);
		memcpy(sent + ip_at - 2, frame.bytes + 12, 2 + (v6 ? 40 : 20));
		sent[ip_at] += (uint8_t)cases[i].options;
		memcpy(sent + ip_at + (v6 ? 40 : 20) + options, frame.bytes + frame.l4_at, 20);
		memcpy(sent + ip_at + (v6 ? 40 : 20) + options + 4, "\xff\xff\xff\xfe", 4);
		least = ip_at + (v6 ? 60 : 40);
		size = least + options + cases[i].extra;
		CU_ASSERT_EQUAL(answer(sent, size, got, &got_size), XDP_TX);
		least = least < 60 ? 60 : least;
		CU_ASSERT_EQUAL(got_size, size < least ? size : least);
		check_reset(sent, got, ip_at, v6, ip_at + (v6 ? 40 : 20) + options);
	}
	CU_ASSERT_EQUAL(weir_dataplane_totals(&rig.plane, 0).refused_packets, 6);
	rig_close(&rig);
}

static void C4_beside_others_it_is_a_drop(void)
{
	uint8_t got[2048] = { 0 };
	struct frame frame;
	uint32_t size;

	set_gate_on(RIG_MUTE, 1, WEIR_LIMIT_RESET);
	make(&frame, "10.0.0.1", 40000, SYN);
	CU_ASSERT_EQUAL(answer(frame.bytes, frame.size, got, &size), XDP_PASS);
	make(&frame, "10.0.0.1", 40001, SYN);
	CU_ASSERT_EQUAL(answer(frame.bytes, frame.size, got, &size), XDP_DROP);
	CU_ASSERT_EQUAL(size, frame.size);
	CU_ASSERT_EQUAL(memcmp(got, frame.bytes, size), 0);
	CU_ASSERT_EQUAL(weir_dataplane_totals(&rig.plane, 0).refused_packets, 1);
	rig_close(&rig);
}

WEIR_TESTS("gate", TEST(a_pending_place_expires), TEST(a_syn_in_small_fragments_asks),
	   TEST(other_packets_pass),
	   TEST(kernel_and_user_space_agree),
	   TEST(a_lost_race_gives_back), TEST(a_lost_race_gives_back_nothing_of_others),
	   TEST(both_cpus_ask_up_to_the_limit),
	   TEST(C7_spoofed_syns_harm_nobody_else), TEST(C4_the_reset_is_right),
	   TEST(C4_beside_others_it_is_a_drop))
