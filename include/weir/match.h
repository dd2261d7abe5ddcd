/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Match: one bit a limit, one table a dimension. A packet ANDs a row of each dimension that
 * any limit uses; the set bits are the limits that apply, in the order of the file.
 *
 * A row says which limits accept that value, those that don't look at the dimension included.
 * Row WEIR_ROW_NONE of a dimension is for packets that have no such value (no ports, no VLAN).
 */
#pragma once

#include <stdint.h>

#define WEIR_LIMITS_MAX 256
#define WEIR_BITMAP_WORDS (WEIR_LIMITS_MAX / 64)

struct weir_bitmap {
	uint64_t word[WEIR_BITMAP_WORDS];
};

/* Dimensions that a policy may use: bits of weir_policy_head.dimensions. */
enum weir_dimension {
	WEIR_BY_PROTOCOL = 1 << 0,
	WEIR_BY_DESTINATION_PORT = 1 << 1,
	WEIR_BY_SOURCE_PORT = 1 << 2,
	WEIR_BY_TCP_FLAGS = 1 << 3,
	WEIR_BY_ICMP_TYPE = 1 << 4,
	WEIR_BY_VLAN = 1 << 5,
	WEIR_BY_SOURCE = 1 << 6,
	WEIR_BY_DESTINATION = 1 << 7,
	WEIR_BY_INTERFACE = 1 << 8,
};

/*
 * The rows of all dimensions are one table a generation. Ports go through a class first: ports
 * that no limit tells apart share a row.
 */
enum {
	WEIR_PORT_CLASSES = 4096,
	WEIR_PREFIX_CLASSES = 4096,
	WEIR_INTERFACES_MAX = 64,

	WEIR_ROWS_PROTOCOL = 0,					/* 256: by number */
	WEIR_ROWS_TCP_FLAGS = WEIR_ROWS_PROTOCOL + 256,		/* 256 and none */
	WEIR_ROWS_ICMP_TYPE = WEIR_ROWS_TCP_FLAGS + 257,	/* v4 256, v6 256 and none */
	WEIR_ROWS_VLAN = WEIR_ROWS_ICMP_TYPE + 513,		/* 4096 and none */
	WEIR_ROWS_DESTINATION_PORT = WEIR_ROWS_VLAN + 4097,	/* classes; class 0: none */
	WEIR_ROWS_SOURCE_PORT = WEIR_ROWS_DESTINATION_PORT + WEIR_PORT_CLASSES,
	WEIR_ROWS_SOURCE = WEIR_ROWS_SOURCE_PORT + WEIR_PORT_CLASSES, /* class 0: no prefix */
	WEIR_ROWS_DESTINATION = WEIR_ROWS_SOURCE + WEIR_PREFIX_CLASSES,
	WEIR_ROWS_INTERFACE = WEIR_ROWS_DESTINATION + WEIR_PREFIX_CLASSES,
	WEIR_ROWS = WEIR_ROWS_INTERFACE + WEIR_INTERFACES_MAX,

	WEIR_NO_TCP_FLAGS = 256, /* offsets into the parts above */
	WEIR_NO_ICMP_TYPE = 512,
	WEIR_NO_VLAN_ROW = 4096,
};

/* Port -> class: four 16-bit classes a word. */
#define WEIR_PORT_WORDS (65536 / 4)

static inline uint16_t weir_port_class(uint64_t word, uint16_t port)
{
	return (uint16_t)(word >> ((port & 3) * 16));
}

/* Address -> class, longest prefix first. `table` keeps generations and directions apart. */
struct weir_prefix_key {
	uint32_t length; /* 8 bits of table, then the prefix */
	uint8_t table;	 /* generation << 2 | destination << 1 | IPv6 */
	uint8_t address[16];
	uint8_t pad[3];
};

static inline void weir_bitmap_and(struct weir_bitmap *bitmap, const struct weir_bitmap *row)
{
	for (int i = 0; i < WEIR_BITMAP_WORDS; i++)
		bitmap->word[i] &= row->word[i];
}

static inline uint64_t weir_bitmap_any(const struct weir_bitmap *bitmap)
{
	return bitmap->word[0] | bitmap->word[1] | bitmap->word[2] | bitmap->word[3];
}
