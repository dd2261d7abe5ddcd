/* SPDX-License-Identifier: GPL-2.0 */
/* Captures in memory, field by field and in either byte order; and a reader of them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "controller/capture.h"

struct capture_bytes {
	uint8_t bytes[65536];
	size_t size;
	size_t read; /* so far */
	bool big;    /* byte order */
};

static inline void put(struct capture_bytes *to, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		to->bytes[to->size++] =
			(uint8_t)(value >> 8 * (to->big ? bytes - 1 - i : i));
}

static inline void put_bytes(struct capture_bytes *to, const void *bytes, size_t size)
{
	memcpy(to->bytes + to->size, bytes, size);
	to->size += size;
}

static inline void put_pcap(struct capture_bytes *to, bool nanoseconds, uint32_t link)
{
	put(to, nanoseconds ? 0xa1b23c4d : 0xa1b2c3d4, 4);
	put(to, 2, 2);
	put(to, 4, 2);
	put(to, 0, 4);
	put(to, 0, 4);
	put(to, 65535, 4);
	put(to, link, 4);
}

static inline void put_record(struct capture_bytes *to, uint32_t seconds, uint32_t fraction,
			      const void *bytes, uint32_t captured, uint32_t length)
{
	put(to, seconds, 4);
	put(to, fraction, 4);
	put(to, captured, 4);
	put(to, length, 4);
	put_bytes(to, bytes, captured);
}

/* A pcapng block: put_block, its body, end_block with what put_block gave. */
static inline size_t put_block(struct capture_bytes *to, uint32_t type)
{
	put(to, type, 4);
	put(to, 0, 4);
	return to->size - 8;
}

static inline void end_block(struct capture_bytes *to, size_t begin)
{
	size_t end;
	uint32_t length;

	while (to->size % 4)
		put(to, 0, 1);
	length = (uint32_t)(to->size - begin + 4);
	put(to, length, 4);
	end = to->size;
	to->size = begin + 4;
	put(to, length, 4);
	to->size = end;
}

static inline void put_section(struct capture_bytes *to)
{
	size_t begin = put_block(to, 0x0a0d0d0a);

	put(to, 0x1a2b3c4d, 4);
	put(to, 1, 2);
	put(to, 0, 2);
	put(to, UINT64_MAX, 8);
	end_block(to, begin);
}

/* resolution: of if_tsresol, -1 for none. offset_s: of if_tsoffset, 0 for none. */
static inline void put_interface(struct capture_bytes *to, uint16_t link, uint32_t snaplen,
				 int resolution, int64_t offset_s)
{
	size_t begin = put_block(to, 1);

	put(to, link, 2);
	put(to, 0, 2);
	put(to, snaplen, 4);
	if (resolution >= 0) {
		put(to, 9, 2);
		put(to, 1, 2);
		put(to, (uint64_t)resolution << (to->big ? 24 : 0), 4);
	}
	if (offset_s) {
		put(to, 14, 2);
		put(to, 8, 2);
		put(to, (uint64_t)offset_s, 8);
	}
	if (resolution >= 0 || offset_s)
		put(to, 0, 4);
	end_block(to, begin);
}

/* flags: of epb_flags, 0 for none. */
static inline void put_enhanced(struct capture_bytes *to, uint32_t interface, uint64_t units,
				const void *bytes, uint32_t captured, uint32_t length,
				uint32_t flags)
{
	size_t begin = put_block(to, 6);

	put(to, interface, 4);
	put(to, units >> 32, 4);
	put(to, units & 0xffffffff, 4);
	put(to, captured, 4);
	put(to, length, 4);
	put_bytes(to, bytes, captured);
	while (to->size % 4)
		put(to, 0, 1);
	if (flags) {
		put(to, 2, 2);
		put(to, 4, 2);
		put(to, flags, 4);
		put(to, 0, 4);
	}
	end_block(to, begin);
}

static inline int64_t capture_bytes_read(void *context, void *to, size_t size)
{
	struct capture_bytes *from = context;
	size_t left = from->size - from->read, part = size < left ? size : left;

	memcpy(to, from->bytes + from->read, part);
	from->read += part;
	return (int64_t)part;
}
