/* SPDX-License-Identifier: GPL-2.0 */
/* What the two formats of captures share. Used by capture*.c alone. */
#pragma once

#include "controller/capture.h"

#define ETHERNET_BYTES 14
#define BUFFER_BYTES (WEIR_CAPTURE_BYTES_MAX + 65536U) /* of a block that isn't skipped */

/* An interface of a section; a pcap file has one. */
struct weir_capture_link {
	uint16_t type;	   /* LINKTYPE_… */
	uint8_t exponent;  /* a unit of time is 10 or 2 to minus this, in seconds */
	bool binary;	   /* 2, not 10 */
	int64_t offset_s;  /* to be added to times */
	uint32_t snaplen;  /* 0: none */
};

#define WEIR_CAPTURE_LINKS_MAX 1024U

struct weir_capture {
	weir_capture_read read;
	void *context;
	uint64_t offset;
	uint64_t number; /* of packets so far, for messages */
	bool ng, swapped, cut;
	struct weir_capture_link *links; /* [WEIR_CAPTURE_LINKS_MAX] */
	uint32_t link_count;
	uint8_t *room; /* ETHERNET_BYTES, then the buffer */
	uint8_t *buffer;
};

uint16_t weir_capture_u16(const struct weir_capture *capture, const void *at);
uint32_t weir_capture_u32(const struct weir_capture *capture, const void *at);

/* 1: all of it is there; 0: the file ends (before it, or within: then cut); else an error. */
int weir_capture_fill(struct weir_capture *capture, void *to, size_t size, struct weir_error *err);
/* -EINVAL with a sentence that says where. */
int weir_capture_damaged(const struct weir_capture *capture, struct weir_error *err,
			 const char *format, ...) __attribute__((format(printf, 3, 4)));

/* -ENOTSUP for one that can't be made Ethernet of. */
int weir_capture_check_link(uint32_t type, struct weir_error *err);
/*
 * Makes an Ethernet frame of `captured` bytes at `bytes`, which lie in the buffer: 1, or -EINVAL
 * where the packet's length can't be true.
 */
int weir_capture_frame(const struct weir_capture *capture, const struct weir_capture_link *link,
		       uint8_t *bytes, uint32_t captured, uint32_t length,
		       struct weir_capture_packet *packet, struct weir_error *err);

/* capture_ng.c: the rest of a section header whose type was read, and the next packet. */
int weir_capture_ng_section(struct weir_capture *capture, const uint8_t head[8],
			    struct weir_error *err);
int weir_capture_ng_next(struct weir_capture *capture, struct weir_capture_packet *packet,
			 struct weir_error *err);
#define WEIR_CAPTURE_NG_SECTION 0x0a0d0d0aU
