// SPDX-License-Identifier: GPL-2.0
/* The stream, the link types, and the pcap format. */
#include "controller/capture_private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	LINK_ETHERNET = 1,
	LINK_RAW_OLD = 12,
	LINK_RAW = 101,
	LINK_SLL = 113,
	LINK_IPV4 = 228,
	LINK_IPV6 = 229,
	LINK_SLL2 = 276,
};

#define LENGTH_MAX (1U << 20) /* of a packet: what stacks merge is half of it at most */
#define SLL_BYTES 16
#define SLL2_BYTES 20
#define SLL_OUTGOING 4

#define PCAP_MICROSECONDS 0xa1b2c3d4U
#define PCAP_NANOSECONDS 0xa1b23c4dU
#define PCAP_HEADER_BYTES 24
#define PCAP_RECORD_BYTES 16

/* ---- the stream ---- */

uint16_t weir_capture_u16(const struct weir_capture *capture, const void *at)
{
	uint16_t value;

	memcpy(&value, at, sizeof(value));
	return capture->swapped ? __builtin_bswap16(value) : value;
}

uint32_t weir_capture_u32(const struct weir_capture *capture, const void *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return capture->swapped ? __builtin_bswap32(value) : value;
}

int weir_capture_fill(struct weir_capture *capture, void *to, size_t size, struct weir_error *err)
{
	int64_t got = capture->read(capture->context, to, size);

	if (got < 0)
		return weir_error_set(err, (int)got, "can't read on at byte %llu: %s",
				      (unsigned long long)capture->offset, strerror((int)-got));
	capture->offset += (uint64_t)got;
	if ((size_t)got == size)
		return 1;
	capture->cut |= got > 0;
	return 0;
}

int weir_capture_damaged(const struct weir_capture *capture, struct weir_error *err,
			 const char *format, ...)
{
	char text[160];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return weir_error_set(err, -EINVAL,
			      "the capture is damaged after packet %llu, before byte "
			      "%llu: %s",
			      (unsigned long long)capture->number,
			      (unsigned long long)capture->offset, text);
}

uint64_t weir_capture_offset(const struct weir_capture *capture)
{
	return capture->offset;
}

bool weir_capture_is_cut(const struct weir_capture *capture)
{
	return capture->cut;
}

/* ---- link types ---- */

int weir_capture_check_link(uint32_t type, struct weir_error *err)
{
	switch (type) {
	case LINK_ETHERNET:
	case LINK_RAW_OLD:
	case LINK_RAW:
	case LINK_SLL:
	case LINK_IPV4:
	case LINK_IPV6:
	case LINK_SLL2:
		return 0;
	default:
		return weir_error_set(err, -ENOTSUP,
				      "link type %u is not known here: there are Ethernet (1), raw "
				      "IP (12, 101, 228, 229), Linux cooked (113) and cooked v2 "
				      "(276); capture on an Ethernet interface, or on any",
				      type);
	}
}

static uint32_t link_bytes(const struct weir_capture_link *link)
{
	return link->type == LINK_SLL ? SLL_BYTES : link->type == LINK_SLL2 ? SLL2_BYTES : 0;
}

static enum weir_direction direction_of(uint16_t sent)
{
	return sent == SLL_OUTGOING ? WEIR_DIRECTION_OUT : WEIR_DIRECTION_IN;
}

/* The Ethernet type of a packet without an Ethernet header, in network order. */
static void read_type(const struct weir_capture_link *link, const uint8_t *bytes, uint32_t captured,
		      uint8_t type[2])
{
	bool v6 = link->type == LINK_IPV6 ||
		  (link->type != LINK_IPV4 && captured && bytes[0] >> 4 == 6);
	const uint8_t *at = link->type == LINK_SLL ? bytes + 14 : bytes;

	if (link_bytes(link)) {
		type[0] = at[0];
		type[1] = at[1];
	} else {
		type[0] = v6 ? 0x86 : 0x08;
		type[1] = v6 ? 0xdd : 0x00;
	}
}

int weir_capture_frame(const struct weir_capture *capture, const struct weir_capture_link *link,
		       uint8_t *bytes, uint32_t captured, uint32_t length,
		       struct weir_capture_packet *packet, struct weir_error *err)
{
	uint32_t head = link_bytes(link);
	uint8_t type[2], *frame;

	if (length > LENGTH_MAX)
		return weir_capture_damaged(capture, err,
					    "a packet that was %u bytes long; at most %u", length,
					    LENGTH_MAX);
	if (length < captured)
		length = captured;
	*packet = (struct weir_capture_packet){ .frame = bytes,
						.captured = captured,
						.length = length };
	if (link->type == LINK_ETHERNET)
		return 1;
	/* A cooked header that was cut off: no packet of any kind is left. */
	if (captured < head) {
		packet->captured = 0;
		return 1;
	}
	if (link->type == LINK_SLL)
		packet->direction = direction_of((uint16_t)(bytes[0] << 8 | bytes[1]));
	if (link->type == LINK_SLL2)
		packet->direction = direction_of(bytes[10]);
	read_type(link, bytes, captured, type);
	frame = bytes + head - ETHERNET_BYTES;
	memset(frame, 0, ETHERNET_BYTES - 2);
	memcpy(frame + ETHERNET_BYTES - 2, type, 2);
	packet->frame = frame;
	packet->captured = captured - head + ETHERNET_BYTES;
	packet->length = length - head + ETHERNET_BYTES;
	return 1;
}

/* ---- pcap ---- */

static int open_pcap(struct weir_capture *capture, const uint8_t head[8], struct weir_error *err)
{
	uint8_t rest[PCAP_HEADER_BYTES - 8];
	uint32_t magic, type;
	int code;

	magic = weir_capture_u32(capture, head);
	if (magic != PCAP_MICROSECONDS && magic != PCAP_NANOSECONDS) {
		capture->swapped = true;
		magic = weir_capture_u32(capture, head);
	}
	if (magic != PCAP_MICROSECONDS && magic != PCAP_NANOSECONDS)
		return weir_error_set(err, -EINVAL,
				      "it is no capture: it begins with %02x %02x %02x %02x%s",
				      head[0], head[1], head[2], head[3],
				      head[0] == 0x1f && head[1] == 0x8b
					      ? ", which is gzip: pipe it in, zcat FILE | weir "
						"try -"
					      : "; there are pcap and pcapng");
	code = weir_capture_fill(capture, rest, sizeof(rest), err);
	if (!code)
		return weir_error_set(err, -EINVAL, "the capture's header is cut off");
	if (code < 0)
		return code;
	type = weir_capture_u32(capture, rest + 12) & 0xffff; /* above it: what an FCS has */
	capture->links[0] = (struct weir_capture_link){
		.type = (uint16_t)type,
		.exponent = magic == PCAP_NANOSECONDS ? 9 : 6,
	};
	capture->link_count = 1;
	return weir_capture_check_link(type, err);
}

static int next_pcap(struct weir_capture *capture, struct weir_capture_packet *packet,
		     struct weir_error *err)
{
	const struct weir_capture_link *link = &capture->links[0];
	uint8_t record[PCAP_RECORD_BYTES];
	uint32_t captured, fraction;
	int code = weir_capture_fill(capture, record, sizeof(record), err);

	if (code <= 0)
		return code;
	captured = weir_capture_u32(capture, record + 8);
	if (captured > WEIR_CAPTURE_BYTES_MAX)
		return weir_capture_damaged(capture, err, "a packet of %u bytes; at most %u",
					    captured, WEIR_CAPTURE_BYTES_MAX);
	code = weir_capture_fill(capture, capture->buffer, captured, err);
	if (code <= 0) {
		capture->cut |= !code;
		return code;
	}
	code = weir_capture_frame(capture, link, capture->buffer, captured,
				  weir_capture_u32(capture, record + 12), packet, err);
	if (code < 0)
		return code;
	fraction = weir_capture_u32(capture, record + 4);
	packet->timed = true;
	packet->time_ns = weir_capture_u32(capture, record) * 1000000000ULL +
			  (link->exponent == 9 ? fraction : fraction * 1000ULL);
	capture->number++;
	return 1;
}

/* ---- both ---- */

int weir_capture_open(struct weir_capture **capture, weir_capture_read read, void *context,
		      struct weir_error *err)
{
	struct weir_capture *made = calloc(1, sizeof(*made));
	uint8_t head[8];
	int code = -ENOMEM;

	if (!made)
		return weir_error_set(err, -ENOMEM, "out of memory");
	made->read = read;
	made->context = context;
	made->links = calloc(WEIR_CAPTURE_LINKS_MAX, sizeof(*made->links));
	made->room = malloc(ETHERNET_BYTES + BUFFER_BYTES);
	if (!made->links || !made->room) {
		weir_error_set(err, -ENOMEM, "out of memory");
		goto out;
	}
	made->buffer = made->room + ETHERNET_BYTES;
	code = weir_capture_fill(made, head, sizeof(head), err);
	if (!code)
		code = weir_error_set(err, -EINVAL, "it is no capture: it has %llu bytes",
				      (unsigned long long)made->offset);
	if (code < 0)
		goto out;
	made->ng = weir_capture_u32(made, head) == WEIR_CAPTURE_NG_SECTION;
	code = made->ng ? weir_capture_ng_section(made, head, err) : open_pcap(made, head, err);
out:
	if (code)
		weir_capture_close(made);
	else
		*capture = made;
	return code;
}

void weir_capture_close(struct weir_capture *capture)
{
	if (!capture)
		return;
	free(capture->links);
	free(capture->room);
	free(capture);
}

int weir_capture_next(struct weir_capture *capture, struct weir_capture_packet *packet,
		      struct weir_error *err)
{
	return capture->ng ? weir_capture_ng_next(capture, packet, err)
			   : next_pcap(capture, packet, err);
}
