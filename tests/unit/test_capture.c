// SPDX-License-Identifier: GPL-2.0
/* Captures of both formats: what is read of them, and what is refused. */
#include <errno.h>

#include "capture_build.h"
#include "harness.h"

static struct capture_bytes file;
static struct weir_capture *capture;
static struct weir_capture_packet packet;
static struct weir_error err;

/* An IPv4 header's beginning, and an IPv6 one's. */
static const uint8_t v4[20] = { 0x45, 0, 0, 20, [9] = 17 };
static const uint8_t v6[40] = { 0x60, [6] = 17 };
static uint8_t frame[64] = { [12] = 8, [13] = 0, [14] = 0x45 };

static void begin(bool big)
{
	weir_capture_close(capture);
	capture = NULL;
	file.size = file.read = 0;
	file.big = big;
	err.text[0] = '\0';
}

static int open_file(void)
{
	return weir_capture_open(&capture, capture_bytes_read, &file, &err);
}

static int next(void)
{
	return weir_capture_next(capture, &packet, &err);
}

static bool says(const char *text)
{
	return strstr(err.text, text);
}

static void end(void)
{
	weir_capture_close(capture);
	capture = NULL;
}

static void reads_pcap_in_both_orders_and_units(void)
{
	for (int i = 0; i < 4; i++) {
		bool nanoseconds = i & 1;

		begin(i & 2);
		put_pcap(&file, nanoseconds, 1);
		put_record(&file, 1700000000, 123456, frame, 60, 1500);
		put_record(&file, 4294967295U, 999999, frame, 64, 64);
		CU_ASSERT_EQUAL_FATAL(open_file(), 0);
		CU_ASSERT_EQUAL(next(), 1);
		CU_ASSERT_EQUAL(packet.time_ns,
				1700000000000000000ULL + 123456ULL * (nanoseconds ? 1 : 1000));
		CU_ASSERT_TRUE(packet.timed);
		CU_ASSERT_EQUAL(packet.captured, 60);
		CU_ASSERT_EQUAL(packet.length, 1500);
		CU_ASSERT_EQUAL(packet.direction, WEIR_DIRECTION_UNKNOWN);
		CU_ASSERT_EQUAL(memcmp(packet.frame, frame, 60), 0);
		CU_ASSERT_EQUAL(next(), 1);
		CU_ASSERT_EQUAL(packet.captured, 64);
		CU_ASSERT_EQUAL(packet.time_ns / 1000000000, 4294967295U);
		CU_ASSERT_EQUAL(next(), 0);
		CU_ASSERT_FALSE(weir_capture_is_cut(capture));
		CU_ASSERT_EQUAL(weir_capture_offset(capture), file.size);
	}
	end();
}

/* What isn't Ethernet becomes it: its length, and where the IP header then is. */
static void makes_frames_of_other_links(void)
{
	static const struct {
		uint32_t link;
		uint32_t head;
		bool v6;
	} cases[] = {
		{ 101, 0, false }, { 101, 0, true },  { 12, 0, true },	  { 228, 0, false },
		{ 229, 0, true },  { 113, 16, true }, { 276, 20, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t head = cases[i].head, size = cases[i].v6 ? 40 : 20;
		uint8_t bytes[64] = { 0 };

		memcpy(bytes + (head == 20 ? 0 : 14), cases[i].v6 ? "\x86\xdd" : "\x08\x00", 2);
		bytes[head == 20 ? 10 : 1] = 4; /* outgoing */
		memcpy(bytes + head, cases[i].v6 ? v6 : v4, size);
		begin(false);
		put_pcap(&file, false, cases[i].link);
		put_record(&file, 1, 0, bytes, head + size, head + 1000);
		CU_ASSERT_EQUAL_FATAL(open_file(), 0);
		CU_ASSERT_EQUAL(next(), 1);
		CU_ASSERT_EQUAL(packet.captured, 14 + size);
		CU_ASSERT_EQUAL(packet.length, 1014);
		CU_ASSERT_EQUAL(packet.direction,
				head ? WEIR_DIRECTION_OUT : WEIR_DIRECTION_UNKNOWN);
		CU_ASSERT_EQUAL(memcmp(packet.frame + 12, cases[i].v6 ? "\x86\xdd" : "\x08\x00", 2),
				0);
		CU_ASSERT_EQUAL(memcmp(packet.frame + 14, cases[i].v6 ? v6 : v4, size), 0);
	}
	end();
}

static void a_cooked_header_that_is_cut_leaves_nothing(void)
{
	begin(false);
	put_pcap(&file, false, 113);
	put_record(&file, 1, 0, frame, 10, 1000);
	CU_ASSERT_EQUAL_FATAL(open_file(), 0);
	CU_ASSERT_EQUAL(next(), 1);
	CU_ASSERT_EQUAL(packet.captured, 0);
	end();
}

static void reads_pcapng_in_both_orders(void)
{
	for (int big = 0; big < 2; big++) {
		begin(big);
		put_section(&file);
		put_interface(&file, 1, 96, -1, 0);
		put_interface(&file, 101, 0, 9, 0);
		put_enhanced(&file, 0, 1700000000000001ULL, frame, 61, 1400, 0);
		put_enhanced(&file, 1, 1700000000000000002ULL, v6, 40, 40, 2);
		end_block(&file, put_block(&file, 5)); /* statistics: nobody's business */
		put_enhanced(&file, 1, 1700000000000000003ULL, v4, 20, 20, 1);
		CU_ASSERT_EQUAL_FATAL(open_file(), 0);
		CU_ASSERT_EQUAL(next(), 1);
		CU_ASSERT_EQUAL(packet.time_ns, 1700000000000001000ULL);
		CU_ASSERT_EQUAL(packet.captured, 61);
		CU_ASSERT_EQUAL(packet.length, 1400);
		CU_ASSERT_EQUAL(packet.direction, WEIR_DIRECTION_UNKNOWN);
		CU_ASSERT_EQUAL(next(), 1);
		CU_ASSERT_EQUAL(packet.time_ns, 1700000000000000002ULL);
		CU_ASSERT_EQUAL(packet.captured, 54);
		CU_ASSERT_EQUAL(packet.direction, WEIR_DIRECTION_OUT);
		CU_ASSERT_EQUAL(next(), 1);
		CU_ASSERT_EQUAL(packet.direction, WEIR_DIRECTION_IN);
		CU_ASSERT_EQUAL(next(), 0);
		CU_ASSERT_FALSE(weir_capture_is_cut(capture));
	}
	end();
}

static uint64_t time_of(int resolution, int64_t offset_s, uint64_t units)
{
	begin(false);
	put_section(&file);
	put_interface(&file, 1, 0, resolution, offset_s);
	put_enhanced(&file, 0, units, frame, 20, 20, 0);
	if (open_file() || next() != 1)
		return 0;
	return packet.time_ns;
}

static void times_are_in_any_unit(void)
{
	CU_ASSERT_EQUAL(time_of(0, 0, 1700000000), 1700000000000000000ULL);
	CU_ASSERT_EQUAL(time_of(3, 0, 1700000000001ULL), 1700000000001000000ULL);
	CU_ASSERT_EQUAL(time_of(12, 0, 1700000000001999ULL), 1700000000001ULL);
	CU_ASSERT_EQUAL(time_of(0x80 | 10, 0, 1024 * 1700000000ULL + 512), 1700000000500000000ULL);
	CU_ASSERT_EQUAL(time_of(0x80 | 32, 0, (1700000000ULL << 32) + (1U << 31)),
			1700000000500000000ULL);
	CU_ASSERT_EQUAL(time_of(6, 100, 1000000), 101000000000ULL);
	CU_ASSERT_EQUAL(time_of(6, -1, 3000000), 2000000000ULL);
	/* What can't be is refused, never wrapped around. */
	CU_ASSERT_EQUAL(time_of(0, 0, UINT64_MAX), 0);
	CU_ASSERT_TRUE(says("out of range"));
	CU_ASSERT_EQUAL(time_of(6, -10, 1000000), 0);
	CU_ASSERT_EQUAL(time_of(19, 0, 1), 0);
	CU_ASSERT_TRUE(says("10^-19"));
	end();
}

static void simple_packets_have_no_time(void)
{
	size_t begun;

	begin(false);
	put_section(&file);
	put_interface(&file, 1, 20, -1, 0);
	begun = put_block(&file, 3);
	put(&file, 1000, 4);
	put_bytes(&file, frame, 20);
	end_block(&file, begun);
	CU_ASSERT_EQUAL_FATAL(open_file(), 0);
	CU_ASSERT_EQUAL(next(), 1);
	CU_ASSERT_FALSE(packet.timed);
	CU_ASSERT_EQUAL(packet.captured, 20);
	CU_ASSERT_EQUAL(packet.length, 1000);
	end();
}

/* Sections may differ in their byte order; interfaces are a section's own. */
static void sections_begin_anew(void)
{
	begin(false);
	put_section(&file);
	put_interface(&file, 1, 0, -1, 0);
	put_enhanced(&file, 0, 1, frame, 20, 20, 0);
	file.big = true;
	put_section(&file);
	put_interface(&file, 101, 0, -1, 0);
	put_enhanced(&file, 0, 2, v4, 20, 20, 0);
	put_enhanced(&file, 1, 2, v4, 20, 20, 0);
	CU_ASSERT_EQUAL_FATAL(open_file(), 0);
	CU_ASSERT_EQUAL(next(), 1);
	CU_ASSERT_EQUAL(packet.captured, 20);
	CU_ASSERT_EQUAL(next(), 1);
	CU_ASSERT_EQUAL(packet.captured, 34);
	CU_ASSERT_EQUAL(next(), -EINVAL);
	CU_ASSERT_TRUE(says("interface 1, of 1"));
	end();
}

static void refuses_what_is_no_capture(void)
{
	begin(false);
	put_bytes(&file, "GIF89a, and more", 16);
	CU_ASSERT_EQUAL(open_file(), -EINVAL);
	CU_ASSERT_TRUE(says("47 49 46 38"));
	begin(false);
	put_bytes(&file, "\x1f\x8b\x08\0\0\0\0\0\0\0", 10);
	CU_ASSERT_EQUAL(open_file(), -EINVAL);
	CU_ASSERT_TRUE(says("zcat"));
	begin(false);
	CU_ASSERT_EQUAL(open_file(), -EINVAL);
	CU_ASSERT_TRUE(says("it has 0 bytes"));
	begin(false);
	put_pcap(&file, false, 127);
	CU_ASSERT_EQUAL(open_file(), -ENOTSUP);
	CU_ASSERT_TRUE(says("link type 127"));
	begin(false);
	put_section(&file);
	put_interface(&file, 105, 0, -1, 0);
	CU_ASSERT_EQUAL_FATAL(open_file(), 0);
	CU_ASSERT_EQUAL(next(), -ENOTSUP);
	CU_ASSERT_TRUE(says("link type 105"));
	end();
}

static void refuses_lengths_that_lie(void)
{
	size_t begun;

	begin(false);
	put_pcap(&file, false, 1);
	put_record(&file, 1, 0, frame, 20, 20);
	put(&file, 1, 8);
	put(&file, 262145, 4);
	put(&file, 262145, 4);
	CU_ASSERT_EQUAL_FATAL(open_file(), 0);
	CU_ASSERT_EQUAL(next(), 1);
	CU_ASSERT_EQUAL(next(), -EINVAL);
	CU_ASSERT_TRUE(says("after packet 1"));
	CU_ASSERT_TRUE(says("262145"));

	/* Found by the fuzzer: the header made for it would wrap its length around. */
	begin(false);
	put_pcap(&file, false, 101);
	put_record(&file, 1, 0, v4, 20, UINT32_MAX - 8);
	CU_ASSERT_EQUAL_FATAL(open_file(), 0);
	CU_ASSERT_EQUAL(next(), -EINVAL);
	CU_ASSERT_TRUE(says("4294967287 bytes long"));

	begin(false);
	put_section(&file);
	put_interface(&file, 1, 0, -1, 0);
	begun = put_block(&file, 6);
	put(&file, 0, 4);
	put(&file, 0, 8);
	put(&file, 25, 4); /* of which there are 24 */
	put(&file, 25, 4);
	put_bytes(&file, frame, 24);
	end_block(&file, begun);
	CU_ASSERT_EQUAL_FATAL(open_file(), 0);
	CU_ASSERT_EQUAL(next(), -EINVAL);
	CU_ASSERT_TRUE(says("25 bytes"));

	begin(false);
	put_section(&file);
	put(&file, 5, 4);
	put(&file, 14, 4); /* not whole words */
	CU_ASSERT_EQUAL_FATAL(open_file(), 0);
	CU_ASSERT_EQUAL(next(), -EINVAL);

	begin(false);
	put_section(&file);
	end_block(&file, put_block(&file, 5));
	file.bytes[file.size - 4]++;
	CU_ASSERT_EQUAL_FATAL(open_file(), 0);
	CU_ASSERT_EQUAL(next(), -EINVAL);
	CU_ASSERT_TRUE(says("a block of 12 bytes ends with 13"));
	end();
}

/* A section, then an interface where `links` says so, then a block of words, all of them `word`. */
static void put_words(unsigned int links, uint32_t type, uint32_t word, unsigned int words)
{
	size_t begun;

	begin(false);
	put_section(&file);
	while (links--)
		put_interface(&file, 1, 0, -1, 0);
	begun = put_block(&file, type);
	while (words--)
		put(&file, word, 4);
	end_block(&file, begun);
}

static void refuses_blocks_that_lack_what_they_need(void)
{
	static const struct {
		unsigned int links;
		uint32_t type, word, words;
		int code;
		const char *says;
	} cases[] = {
		{ 0, 0x0a0d0d0a, 0x11223344, 4, -EINVAL, "a section without a byte order" },
		{ 0, 1, 1, 1, -EINVAL, "an interface of 4 bytes" },
		{ 1024, 1, 1, 2, -EINVAL, "more than 1024 interfaces" },
		{ 1, 6, 0, 2, -EINVAL, "a packet block of 8 bytes" },
		{ 1, 6, 1, 5, -EINVAL, "a packet of interface 1, of 1" },
		{ 0, 3, 4, 2, -EINVAL, "a simple packet without an interface" },
		{ 1, 3, 0, 0, -EINVAL, "a simple packet without a length" },
		{ 1, 3, 9, 3, -EINVAL, "a packet of 9 bytes in a block of 24" },
		{ 1, 2, 0, 5, -ENOTSUP, "packet 1 is in an obsolete kind of block" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int code;

		put_words(cases[i].links, cases[i].type, cases[i].word, cases[i].words);
		CU_ASSERT_EQUAL_FATAL(open_file(), 0);
		code = next();
		CU_ASSERT_EQUAL(code, cases[i].code);
		CU_ASSERT_TRUE(says(cases[i].says));
		if (!says(cases[i].says))
			printf("  case %zu: %d %s\n", i, code, err.text);
	}
	/* As long as none is that is kept in memory; of a kind that is skipped it may be. */
	for (uint32_t type = 6; type <= 7; type++) {
		begin(false);
		put_section(&file);
		put(&file, type, 4);
		put(&file, 1 << 20, 4);
		CU_ASSERT_EQUAL_FATAL(open_file(), 0);
		CU_ASSERT_EQUAL(next(), type == 6 ? -EINVAL : 0);
		CU_ASSERT_EQUAL(says("a block of 1048576 bytes; at most"), type == 6);
	}
	end();
}

/* Whoever wrote the file was stopped: what is whole counts. */
static void a_file_may_end_anywhere(void)
{
	size_t whole;

	for (int ng = 0; ng < 2; ng++) {
		begin(false);
		if (ng) {
			put_section(&file);
			put_interface(&file, 1, 0, -1, 0);
			whole = file.size;
			put_enhanced(&file, 0, 1, frame, 20, 20, 0);
		} else {
			put_pcap(&file, false, 1);
			whole = file.size;
			put_record(&file, 1, 0, frame, 20, 20);
		}
		for (size_t size = file.size - 1; size > whole; size--) {
			file.size = size;
			file.read = 0;
			weir_capture_close(capture);
			capture = NULL;
			CU_ASSERT_EQUAL_FATAL(open_file(), 0);
			CU_ASSERT_EQUAL(next(), 0);
			CU_ASSERT_TRUE(weir_capture_is_cut(capture));
		}
	}
	end();
}

WEIR_TESTS("capture", TEST(reads_pcap_in_both_orders_and_units), TEST(makes_frames_of_other_links),
	   TEST(a_cooked_header_that_is_cut_leaves_nothing), TEST(reads_pcapng_in_both_orders),
	   TEST(times_are_in_any_unit), TEST(simple_packets_have_no_time),
	   TEST(sections_begin_anew), TEST(refuses_what_is_no_capture),
	   TEST(refuses_lengths_that_lie), TEST(refuses_blocks_that_lack_what_they_need),
	   TEST(a_file_may_end_anywhere))
