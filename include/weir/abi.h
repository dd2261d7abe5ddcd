/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The border between user space and the kernel side: every struct that both see in a map.
 *
 * Three kinds of map, never mixed: *policy* (user space writes, the kernel reads), *state* (the
 * kernel writes), *totals* (the kernel adds, each CPU its own). Per-CPU tables are plain arrays
 * with the CPU as the high index, not PERCPU_ARRAY: one load less a look-up, and user space
 * reads them by mmap.
 *
 * Policy maps hold two generations. User space fills the idle one and then stores its number
 * in weir_switch.generation: a packet reads that once, so it sees one policy or the other.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "bucket.h"
#include "key.h"
#include "ledger.h"
#include "match.h"

/* Changed whenever the layout of a pinned map does. Another one found in a pin is refused. */
#define WEIR_ABI_VERSION 1

enum weir_hook {
	WEIR_HOOK_XDP,
	WEIR_HOOK_TC_INGRESS,
	WEIR_HOOK_TC_EGRESS,
	WEIR_HOOKS,
};

/* ---- policy ---- */

/* How the state is laid out: chosen when it is made, kept as long as it lives. */
struct weir_shape {
	struct weir_seeds seeds;
	uint32_t sets;	      /* of the ledger: a power of two, at least 2 */
	uint32_t front_slots; /* a CPU: a power of two */
	uint32_t cpus;	      /* possible ones */
	uint32_t reserved;
};

/* Map `weir_switch`, one entry. The programs have the shape as constants beside. */
struct weir_switch {
	uint32_t abi_version;
	uint32_t generation; /* 0 or 1 */
	struct weir_shape shape;
};

enum weir_policy_flag {
	WEIR_POLICY_ALLOW4 = 1 << 0, /* the list is not empty */
	WEIR_POLICY_ALLOW6 = 1 << 1,
	WEIR_POLICY_DENY4 = 1 << 2,
	WEIR_POLICY_DENY6 = 1 << 3,
};

/* Map `weir_policy`, an entry a generation. */
struct weir_policy_head {
	uint32_t dimensions; /* enum weir_dimension */
	uint32_t limits;
	uint64_t sample_ns; /* least time between two drop events of a CPU */
	struct weir_bitmap hooks[WEIR_HOOKS];
	uint64_t reserved[2];
};
_Static_assert(sizeof(struct weir_policy_head) == 128, "two cache lines");

/* Map `weir_lists_live`, one entry: which lists have anything in them. Outside generations. */
struct weir_lists_live {
	uint32_t flags; /* enum weir_policy_flag */
	uint32_t reserved;
};

enum weir_kind {
	WEIR_KIND_BUCKET,
	WEIR_KIND_SLIDING,
	WEIR_KIND_PERIOD,
	WEIR_KIND_GATE,
};

enum weir_limit_flag {
	WEIR_LIMIT_MONITOR = 1 << 0,	      /* count what it would refuse, let it pass */
	WEIR_LIMIT_BYTES = 1 << 1,	      /* charge bytes, not packets */
	WEIR_LIMIT_UNTRACKED_DROPS = 1 << 2,  /* a newcomer without a place is refused */
	WEIR_LIMIT_BLOCK = 1 << 3,	      /* refuse everything that matches */
	WEIR_LIMIT_UNLIMITED = 1 << 4,	      /* count, refuse nothing */
};

/* Which parts of a packet make up the key: all zero is one key for all. */
enum weir_key_part {
	WEIR_KEY_SOURCE = 1 << 0,
	WEIR_KEY_DESTINATION = 1 << 1,
	WEIR_KEY_SOURCE_PORT = 1 << 2,
	WEIR_KEY_DESTINATION_PORT = 1 << 3,
	WEIR_KEY_PROTOCOL = 1 << 4,
};

/* Map `weir_limits`, WEIR_LIMITS_MAX entries a generation; the index is the limit's bit. */
struct weir_limit {
	uint64_t salt;	   /* what sets its keys apart: drawn anew when the state must go */
	uint32_t revision; /* changes with every change of the limit */
	uint16_t slot;	   /* its place in the totals, kept over reloads */
	uint8_t kind;	   /* enum weir_kind */
	uint8_t flags;	   /* enum weir_limit_flag */
	uint8_t key;	   /* enum weir_key_part */
	uint8_t reserved[3];
	uint32_t mask4;	   /* network order */
	uint32_t mask6[4];
	union {
		struct weir_bucket_conf bucket;
		uint64_t words[4];
	};
	uint64_t reserved2[7];
};
_Static_assert(sizeof(struct weir_limit) == 128, "two cache lines");
_Static_assert(offsetof(struct weir_limit, bucket) == 40, "no hidden padding");

/*
 * Map `weir_labels`, by slot: for those who read the pins while the controller is down; the
 * kernel does not look at it. An empty name is a free slot.
 */
struct weir_label {
	char name[32];
	char setting[96]; /* "bucket rate 1000pps burst 2000" */
};

/* ---- state ---- */

/* Map `weir_keys`: whose place it is, for display; index: set * WEIR_WAYS + way. */
struct weir_key_record {
	uint32_t address[4]; /* the source, or the destination where the key has no source */
	uint16_t slot;	     /* of the limit */
	uint8_t family;
	uint8_t protocol;
	uint16_t source_port;
	uint16_t destination_port;
};
_Static_assert(sizeof(struct weir_key_record) == 24, "8 to go with 16 of address");

/* ---- totals ---- */

/* Map `weir_totals`: [cpu][slot]. */
struct weir_totals {
	uint64_t passed_packets;
	uint64_t passed_bytes;
	uint64_t refused_packets;
	uint64_t refused_bytes;
	uint64_t would_refuse_packets; /* by a limit in monitor mode */
	uint64_t untracked_packets;    /* newcomers that found no place in the ledger */
	uint64_t contended_packets;    /* refused because others were faster 4 times */
	uint64_t new_keys;
};
_Static_assert(sizeof(struct weir_totals) == 64, "one cache line");

/* Why a frame was handled as it was, without or before any limit. */
enum weir_path {
	WEIR_PATH_LIMITS,    /* went through the limits */
	WEIR_PATH_UNMATCHED, /* an IP packet that no limit matches */
	WEIR_PATH_ALLOWED,   /* on the allow list */
	WEIR_PATH_DENIED,    /* on the deny list */
	WEIR_PATH_EXEMPT,    /* ARP, neighbour discovery */
	WEIR_PATH_NOT_IP,
	WEIR_PATH_MALFORMED,
	WEIR_PATH_REFUSED, /* of the frames above: refused by a limit */
	WEIR_PATHS,
};

/* Map `weir_traffic`: [cpu][interface slot][hook]. */
struct weir_traffic {
	uint64_t frames[WEIR_PATHS];
	uint64_t bytes[WEIR_PATHS];
};
_Static_assert(sizeof(struct weir_traffic) == 128, "two cache lines");

/* Map `weir_interfaces`: ifindex -> slot, two to a line of a direct-mapped table. */
#define WEIR_INTERFACE_LINES 1024
struct weir_interface_line {
	uint32_t ifindex[2];
	uint32_t slot[2];
};

/* Map `weir_sampler`: [cpu]. */
struct weir_sampler {
	uint64_t next_ns;    /* no event before */
	uint64_t suppressed; /* refusals since the last event of this CPU */
	uint64_t lost;	     /* events that found the ring buffer full */
	uint64_t reserved[5];
};
_Static_assert(sizeof(struct weir_sampler) == 64, "one cache line");

/* Ring buffer `weir_events`: a sampled refusal. */
struct weir_event {
	uint64_t now_ns;
	uint64_t suppressed; /* refusals of the same CPU left out before this one */
	uint32_t source[4];
	uint32_t destination[4];
	uint32_t ifindex;
	uint32_t bytes;
	uint16_t source_port;
	uint16_t destination_port;
	uint16_t slot; /* of the limit; WEIR_NO_LIMIT: the deny list */
	uint8_t family;
	uint8_t protocol;
	uint8_t hook;
	uint8_t would; /* 1: only would have refused (monitor) */
	uint8_t reserved[6];
};
#define WEIR_NO_LIMIT 0xffff
_Static_assert(sizeof(struct weir_event) == 72, "no hidden padding");
