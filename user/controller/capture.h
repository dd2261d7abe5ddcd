/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reads packet captures: pcap (microseconds and nanoseconds, either byte order) and pcapng
 * (sections, interfaces with if_tsresol and if_tsoffset, enhanced and simple packets; other
 * blocks are skipped). A stream: memory is bounded whatever the file says, every length is
 * checked before it is used, and the bytes come from a function of the caller's.
 *
 * Every packet is handed out as an Ethernet frame. One that was captured without its link
 * header (raw IP), or with Linux' cooked one (SLL, SLL2), gets an Ethernet header made for it,
 * and its length is what it was on an Ethernet.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/error.h"

#define WEIR_CAPTURE_BYTES_MAX 262144U /* of a packet: libpcap's own bound */

enum weir_direction {
	WEIR_DIRECTION_UNKNOWN,
	WEIR_DIRECTION_IN,
	WEIR_DIRECTION_OUT,
};

struct weir_capture_packet {
	uint64_t time_ns;     /* since 1970 */
	bool timed;	      /* false: the file has no time for it (a simple packet block) */
	const uint8_t *frame; /* valid until the next call */
	uint32_t captured;    /* bytes of it */
	uint32_t length;      /* it had; never below captured */
	enum weir_direction direction; /* as the capture says: SLL, or pcapng's epb_flags */
};

struct weir_capture;

/* Fills in up to `size` bytes; how many, fewer only at the end, or -errno. */
typedef int64_t (*weir_capture_read)(void *context, void *bytes, size_t size);

/*
 * Reads the file's header. -EINVAL for what is no capture or a damaged one, -ENOTSUP for a link
 * type that isn't known here, -ENOMEM, what `read` gives; each with a sentence.
 */
int weir_capture_open(struct weir_capture **capture, weir_capture_read read, void *context,
		      struct weir_error *err);
void weir_capture_close(struct weir_capture *capture); /* NULL is fine */

/* 1: a packet; 0: the end; else an error as above. */
int weir_capture_next(struct weir_capture *capture, struct weir_capture_packet *packet,
		      struct weir_error *err);

/* Bytes read so far. */
uint64_t weir_capture_offset(const struct weir_capture *capture);
/* Whether the file ends within a packet or block: whoever wrote it was stopped. */
bool weir_capture_is_cut(const struct weir_capture *capture);
