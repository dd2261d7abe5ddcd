// SPDX-License-Identifier: GPL-2.0
/* pcapng: blocks of a type, a length, a body, and the length again. */
#include "controller/capture_private.h"

#include <errno.h>
#include <string.h>

enum {
	BLOCK_INTERFACE = 1,
	BLOCK_OBSOLETE_PACKET = 2,
	BLOCK_SIMPLE = 3,
	BLOCK_ENHANCED = 6,
};

enum {
	OPTION_END = 0,
	OPTION_PACKET_FLAGS = 2,
	OPTION_RESOLUTION = 9,
	OPTION_TIME_OFFSET = 14,
};

#define BYTE_ORDER_MAGIC 0x1a2b3c4dU
#define BLOCK_EDGE 12 /* type, length, and length again */
#define SECTION_BODY_LEAST 16
#define ENHANCED_BYTES 20
#define SKIPPED_BLOCK_MAX (1U << 30)

static uint64_t u64(const struct weir_capture *capture, const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return capture->swapped ? __builtin_bswap64(value) : value;
}

/* Reads on over what isn't needed. */
static int skip(struct weir_capture *capture, uint64_t bytes, struct weir_error *err)
{
	while (bytes) {
		size_t part = bytes < BUFFER_BYTES ? (size_t)bytes : BUFFER_BYTES;
		int code = weir_capture_fill(capture, capture->buffer, part, err);

		if (code <= 0) {
			capture->cut |= !code;
			return code;
		}
		bytes -= part;
	}
	return 1;
}

/* The length at a block's end, which repeats the one at its beginning. */
static int end_block(struct weir_capture *capture, uint32_t length, struct weir_error *err)
{
	uint8_t again[4];
	int code = weir_capture_fill(capture, again, sizeof(again), err);

	if (code <= 0) {
		capture->cut |= !code;
		return code;
	}
	if (weir_capture_u32(capture, again) != length)
		return weir_capture_damaged(capture, err, "a block of %u bytes ends with %u",
					    length, weir_capture_u32(capture, again));
	return 1;
}

static int check_length(const struct weir_capture *capture, uint32_t length, uint32_t least,
			struct weir_error *err)
{
	if (length >= BLOCK_EDGE + least && length % 4 == 0 && length <= SKIPPED_BLOCK_MAX)
		return 0;
	return weir_capture_damaged(capture, err, "a block of %u bytes", length);
}

int weir_capture_ng_section(struct weir_capture *capture, const uint8_t head[8],
			    struct weir_error *err)
{
	uint8_t magic[4];
	uint32_t length;
	int code = weir_capture_fill(capture, magic, sizeof(magic), err);

	if (code <= 0) {
		capture->cut |= !code;
		return code;
	}
	capture->swapped = false;
	capture->swapped = weir_capture_u32(capture, magic) != BYTE_ORDER_MAGIC;
	if (weir_capture_u32(capture, magic) != BYTE_ORDER_MAGIC)
		return weir_capture_damaged(capture, err, "a section without a byte order");
	length = weir_capture_u32(capture, head + 4);
	code = check_length(capture, length, SECTION_BODY_LEAST, err);
	if (code)
		return code;
	capture->link_count = 0;
	code = skip(capture, length - BLOCK_EDGE - sizeof(magic), err);
	if (code > 0)
		code = end_block(capture, length, err);
	return code < 0 ? code : 0;
}

/* The value of an option in `bytes` of options; NULL where it isn't there with that size. */
static const uint8_t *find_option(const struct weir_capture *capture, const uint8_t *options,
				  uint32_t bytes, uint16_t wanted, uint16_t size)
{
	while (bytes >= 4) {
		uint16_t code = weir_capture_u16(capture, options);
		uint32_t length = weir_capture_u16(capture, options + 2);
		uint32_t whole = 4 + ((length + 3) & ~3U);

		if (code == OPTION_END || whole > bytes)
			return NULL;
		if (code == wanted && length == size)
			return options + 4;
		options += whole;
		bytes -= whole;
	}
	return NULL;
}

static int take_interface(struct weir_capture *capture, uint32_t bytes, struct weir_error *err)
{
	struct weir_capture_link *link = &capture->links[capture->link_count];
	const uint8_t *body = capture->buffer, *option;

	if (bytes < 8)
		return weir_capture_damaged(capture, err, "an interface of %u bytes", bytes);
	if (capture->link_count == WEIR_CAPTURE_LINKS_MAX)
		return weir_capture_damaged(capture, err, "more than %u interfaces",
					    WEIR_CAPTURE_LINKS_MAX);
	*link = (struct weir_capture_link){
		.type = weir_capture_u16(capture, body),
		.snaplen = weir_capture_u32(capture, body + 4),
		.exponent = 6,
	};
	option = find_option(capture, body + 8, bytes - 8, OPTION_RESOLUTION, 1);
	if (option) {
		link->binary = *option & 0x80;
		link->exponent = *option & 0x7f;
	}
	if (link->exponent > (link->binary ? 63 : 18))
		return weir_capture_damaged(capture, err, "times in units of %d^-%u s",
					    link->binary ? 2 : 10, link->exponent);
	option = find_option(capture, body + 8, bytes - 8, OPTION_TIME_OFFSET, 8);
	if (option)
		link->offset_s = (int64_t)u64(capture, option);
	capture->link_count++;
	return weir_capture_check_link(link->type, err);
}

/* Nanoseconds since 1970 of a time in an interface's units; false for what 64 bits can't hold. */
static bool read_time(const struct weir_capture_link *link, uint64_t units, uint64_t *time_ns)
{
	__extension__ __int128 time = units, second = 1000000000;

	if (link->binary) {
		time = time * second >> link->exponent;
	} else {
		for (int i = link->exponent; i < 9; i++)
			time *= 10;
		for (int i = link->exponent; i > 9; i--)
			time /= 10;
	}
	time += link->offset_s * second;
	if (time < 0 || time > UINT64_MAX)
		return false;
	*time_ns = (uint64_t)time;
	return true;
}

static enum weir_direction direction_of(uint32_t flags)
{
	return (flags & 3) == 1	  ? WEIR_DIRECTION_IN
	       : (flags & 3) == 2 ? WEIR_DIRECTION_OUT
				  : WEIR_DIRECTION_UNKNOWN;
}

static int take_enhanced(struct weir_capture *capture, uint32_t bytes,
			 struct weir_capture_packet *packet, struct weir_error *err)
{
	uint8_t *body = capture->buffer;
	const struct weir_capture_link *link;
	const uint8_t *flags;
	uint32_t captured, padded, number;
	uint64_t units, time_ns;
	int code;

	if (bytes < ENHANCED_BYTES)
		return weir_capture_damaged(capture, err, "a packet block of %u bytes", bytes);
	number = weir_capture_u32(capture, body);
	captured = weir_capture_u32(capture, body + 12);
	if (number >= capture->link_count)
		return weir_capture_damaged(capture, err, "a packet of interface %u, of %u", number,
					    capture->link_count);
	if (captured > WEIR_CAPTURE_BYTES_MAX || captured > bytes - ENHANCED_BYTES)
		return weir_capture_damaged(capture, err, "a packet of %u bytes in a block of %u",
					    captured, bytes + BLOCK_EDGE);
	link = &capture->links[number];
	units = (uint64_t)weir_capture_u32(capture, body + 4) << 32 |
		weir_capture_u32(capture, body + 8);
	if (!read_time(link, units, &time_ns))
		return weir_capture_damaged(capture, err, "a packet's time is out of range");
	padded = (captured + 3) & ~3U;
	flags = padded < bytes - ENHANCED_BYTES
			? find_option(capture, body + ENHANCED_BYTES + padded,
				      bytes - ENHANCED_BYTES - padded, OPTION_PACKET_FLAGS, 4)
			: NULL;
	code = weir_capture_frame(capture, link, body + ENHANCED_BYTES, captured,
				  weir_capture_u32(capture, body + 16), packet, err);
	if (code < 0)
		return code;
	packet->time_ns = time_ns;
	packet->timed = true;
	if (flags && direction_of(weir_capture_u32(capture, flags)))
		packet->direction = direction_of(weir_capture_u32(capture, flags));
	return 1;
}

static int take_simple(struct weir_capture *capture, uint32_t bytes,
		       struct weir_capture_packet *packet, struct weir_error *err)
{
	const struct weir_capture_link *link = &capture->links[0];
	uint32_t length, captured;

	if (bytes < 4 || !capture->link_count)
		return weir_capture_damaged(capture, err, "a simple packet without %s",
					    bytes < 4 ? "a length" : "an interface");
	length = captured = weir_capture_u32(capture, capture->buffer);
	if (link->snaplen && captured > link->snaplen)
		captured = link->snaplen;
	if (captured > WEIR_CAPTURE_BYTES_MAX || captured > bytes - 4)
		return weir_capture_damaged(capture, err, "a packet of %u bytes in a block of %u",
					    captured, bytes + BLOCK_EDGE);
	return weir_capture_frame(capture, link, capture->buffer + 4, captured, length, packet,
				  err);
}

static bool is_wanted(uint32_t type)
{
	return type == BLOCK_INTERFACE || type == BLOCK_SIMPLE || type == BLOCK_ENHANCED;
}

/* The body of a block: 1 where it is there. */
static int read_body(struct weir_capture *capture, uint32_t type, uint32_t length,
		     struct weir_error *err)
{
	uint32_t bytes = length - BLOCK_EDGE;
	int code;

	if (is_wanted(type) && bytes > BUFFER_BYTES)
		return weir_capture_damaged(capture, err, "a block of %u bytes; at most %u", length,
					    BUFFER_BYTES + BLOCK_EDGE);
	if (type == BLOCK_OBSOLETE_PACKET)
		return weir_error_set(err, -ENOTSUP,
				      "packet %llu is in an obsolete kind of block: rewrite the "
				      "file with editcap",
				      (unsigned long long)capture->number + 1);
	code = is_wanted(type) && bytes ? weir_capture_fill(capture, capture->buffer, bytes, err)
					: skip(capture, bytes, err);
	capture->cut |= !code;
	return code > 0 ? end_block(capture, length, err) : code;
}

/* One block: 1 a packet, 0 the end, 2 something else. */
static int next_block(struct weir_capture *capture, struct weir_capture_packet *packet,
		      struct weir_error *err)
{
	uint8_t head[8];
	uint32_t type, length;
	int code = weir_capture_fill(capture, head, sizeof(head), err);

	if (code <= 0)
		return code;
	type = weir_capture_u32(capture, head);
	length = weir_capture_u32(capture, head + 4);
	if (type == WEIR_CAPTURE_NG_SECTION) {
		code = weir_capture_ng_section(capture, head, err);
		return code ? code : 2;
	}
	code = check_length(capture, length, 0, err);
	if (!code)
		code = read_body(capture, type, length, err);
	if (code <= 0)
		return code;
	if (type == BLOCK_ENHANCED)
		return take_enhanced(capture, length - BLOCK_EDGE, packet, err);
	if (type == BLOCK_SIMPLE)
		return take_simple(capture, length - BLOCK_EDGE, packet, err);
	code = type == BLOCK_INTERFACE ? take_interface(capture, length - BLOCK_EDGE, err) : 0;
	return code ? code : 2;
}

int weir_capture_ng_next(struct weir_capture *capture, struct weir_capture_packet *packet,
			 struct weir_error *err)
{
	int code;

	do
		code = next_block(capture, packet, err);
	while (code == 2);
	capture->number += code == 1;
	return code;
}
