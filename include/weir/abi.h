/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The border between user space and the kernel side: every struct that both see in a map.
 *
 * Three kinds of map, never mixed: *policy* (user space writes, the kernel reads), *state* (the
 * kernel writes), *totals* (the kernel adds, each CPU its own). What is per CPU are plain arrays
 * with the CPU as the index, not PERCPU_ARRAY: one load less a look-up, and user space reads
 * them by mmap.
 *
 * Policy comes in two generations. User space fills the idle one and then stores its number in
 * weir_switch.generation: a packet reads that once, so it sees one policy or the other.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "bucket.h"
#include "gate.h"
#include "key.h"
#include "ledger.h"
#include "match.h"
#include "period.h"
#include "place.h"
#include "response.h"
#include "sliding.h"

/* Changed whenever the layout of a pinned map does. Another one found in a pin is refused. */
#define WEIR_ABI_VERSION 3

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
	uint32_t cpus;	      /* their numbers are below this */
	uint32_t reserved;
};

/* The programs have the shape as constants beside. */
struct weir_switch {
	uint32_t abi_version;
	uint32_t generation; /* 0 or 1 */
	struct weir_shape shape;
};

enum weir_service_protocol {
	WEIR_SERVICE_TCP = 1 << 0,
	WEIR_SERVICE_UDP = 1 << 1,
};

/* One a generation. */
struct weir_policy_head {
	uint32_t dimensions; /* enum weir_dimension */
	uint32_t limits;
	uint64_t sample_ns; /* least time between two drop events of a CPU */
	struct weir_bitmap hooks[WEIR_HOOKS];
	uint16_t plain[WEIR_HOOKS]; /* see weir_policy_plain; 0: not so plain */
	uint16_t gates;		    /* limits that are gates */
	uint32_t services;	    /* the protocols of all: enum weir_service_protocol */
	uint32_t reserved;
};
_Static_assert(sizeof(struct weir_policy_head) == 128, "two cache lines");
#define WEIR_SAMPLE_NEVER_NS (1ULL << 62) /* sample_ns, of no events */

/*
 * The lists are outside the generations: single entries come and go. Each is an LPM trie
 * (weir_allow4, weir_allow6, weir_deny4, weir_deny6) of prefix -> when it expires, in
 * nanoseconds since boot.
 */
#define WEIR_LIST_MAX (1 << 20)
#define WEIR_LIST_FOREVER 0ULL

enum weir_list_bit {
	WEIR_LIST_ALLOW4 = 1 << 0,
	WEIR_LIST_ALLOW6 = 1 << 1,
	WEIR_LIST_DENY4 = 1 << 2,
	WEIR_LIST_DENY6 = 1 << 3,
};

/* An empty list costs the packets nothing. */
struct weir_lists_live {
	uint32_t used; /* enum weir_list_bit: which have anything in them */
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
	WEIR_LIMIT_RESET = 1 << 5,	      /* gate: a refused SYN is answered with a RST (XDP) */
};

/* Which parts of a packet make up the key: all zero is one key for all. */
enum weir_key_part {
	WEIR_KEY_SOURCE = 1 << 0,
	WEIR_KEY_DESTINATION = 1 << 1,
	WEIR_KEY_SOURCE_PORT = 1 << 2,
	WEIR_KEY_DESTINATION_PORT = 1 << 3,
	WEIR_KEY_PROTOCOL = 1 << 4,
};

/* WEIR_LIMITS_MAX a generation; the index is the limit's bit. */
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
		struct weir_sliding_conf sliding; /* ticks */
		struct weir_period_conf period;	  /* ticks */
		struct weir_gate_conf gate;
		uint64_t words[4];
	};
	uint32_t own_sets; /* of its own ledger: a power of two; 0: the shared one */
	uint32_t reserved2;
	uint64_t ban_ticks;	   /* how long a ban lasts; 0: none */
	uint64_t ban_window_ticks; /* ban_after refusals in this time earn one */
	uint32_t ban_after;
	uint32_t reserved3;
	uint64_t reserved4[3];
};
_Static_assert(sizeof(struct weir_limit) == 128, "two cache lines");
_Static_assert(offsetof(struct weir_limit, bucket) == 40, "no hidden padding");

/*
 * ifindex -> slot, two to a line of a direct-mapped table. frame_bytes is the longest frame of
 * the wire (MTU and link header, VLAN tags included): what the stack hands to generic XDP above
 * that is several packets in one, and is counted as so many. 0 where a frame is always one
 * packet in one buffer.
 */
#define WEIR_INTERFACE_LINES 1024
struct weir_interface_line {
	uint32_t ifindex[2];
	uint32_t slot[2];
	uint32_t frame_bytes[2];
};

/*
 * Gates count the connections that sockets of this network namespace accepted, whatever
 * interface they came in by: a socket doesn't know it, nor the hook, so match.interfaces,
 * match.vlan and hook say only which SYNs may be refused. Sockets of other namespaces count
 * where the SYN that they accepted is pending at the gate. netns: inode of /proc/PID/ns/net.
 */
struct weir_where {
	uint32_t netns;
	uint32_t walk; /* number of the recount that is going on; 0: none is */
	uint32_t walks, reserved[13]; /* walks: the last one's, never 0 again */
};
_Static_assert(sizeof(struct weir_where) == 64, "one cache line");

/*
 * The only limit that packets of a hook meet, as its index + 1, where all of them do and it is a
 * bucket by source with nothing special about it: the kernel side then takes a shorter way to
 * the same verdict. Else 0. For weir_policy_head.plain, once all else is filled in.
 */
static inline uint16_t weir_policy_plain(const struct weir_policy_head *head,
					 const struct weir_limit *limits, enum weir_hook hook)
{
	const struct weir_limit *limit;
	uint32_t index = 0, found = 0;

	for (uint32_t i = 0; i < WEIR_LIMITS_MAX; i++) {
		if (!(head->hooks[hook].word[i / 64] >> (i % 64) & 1))
			continue;
		index = i;
		found++;
	}
	limit = &limits[index];
	if (found != 1 || head->dimensions || limit->kind != WEIR_KIND_BUCKET ||
	    limit->key != WEIR_KEY_SOURCE || limit->own_sets || limit->ban_after ||
	    limit->flags & ~(WEIR_LIMIT_BYTES | WEIR_LIMIT_UNTRACKED_DROPS))
		return 0;
	return (uint16_t)(index + 1);
}

/*
 * Map `.data.board`, one entry: all of the policy that every packet looks at. A global variable
 * of the programs, which costs them no look-up.
 */
struct weir_board {
	struct weir_switch active;
	struct weir_lists_live lists_live;
	struct weir_where where;
	struct weir_policy_head policy[2];
	struct weir_limit limits[2 * WEIR_LIMITS_MAX];
	struct weir_interface_line interfaces[WEIR_INTERFACE_LINES];
	struct weir_past past[WEIR_LIMITS_MAX][WEIR_PAST_REVISIONS];
};

/*
 * Map `weir_services`, WEIR_SERVICES_MAX of them: applications behind ports of this host. Map
 * `weir_service_ports`: port -> index + 1, packed like weir_ports. Neither is in a generation:
 * each word is stored by itself.
 */
#define WEIR_SERVICES_MAX 256

/* Map `weir_service_prefixes`: addresses of this host that services keep to. */
#define WEIR_SERVICE_PREFIXES_MAX 8192
struct weir_service_prefix {
	uint32_t length;  /* WEIR_SERVICE_PREFIX_BITS, then the prefix */
	uint16_t service; /* index */
	uint8_t family;	  /* 4 or 6 */
	uint8_t reserved;
	uint8_t address[16];
};
#define WEIR_SERVICE_PREFIX_BITS 32U

struct weir_service_policy {
	char name[32];	      /* "": nobody's */
	uint64_t deadline_ns; /* of an exchange; 0: none */
	uint64_t until_ns;    /* drop and ceiling hold until then: a dead controller's don't last */
	uint64_t probe_ns;    /* one newcomer passes that often while others are dropped */
	uint32_t drop;	      /* share of newcomers that is refused, of 2^32: a breaker's word */
	uint32_t ceiling;     /* newcomers are refused from so many in flight on; 0: never */
	uint8_t protocols;    /* enum weir_service_protocol */
	uint8_t slice_shift;  /* nanoseconds of a slice of weir_service_state: 2 to this */
	uint8_t has_to;	      /* 1: what goes to its addresses alone; 0: to any */
	uint8_t reserved[5];
};
_Static_assert(sizeof(struct weir_service_policy) == 72, "no hidden padding");

/*
 * Map `weir_labels`, by slot: for those who read the pins while the controller is down; the
 * kernel does not look at it. An empty name is a free slot.
 */
struct weir_label {
	char name[32];
	char setting[96]; /* "bucket rate 1000pps burst 2000" */
};

/* ---- state ---- */

/*
 * For a limit with one key for all, by slot: tokens that a CPU has already paid for in the
 * ledger, taken in one batch after it lost a race there.
 */
struct weir_lease {
	uint64_t left_ticks;
	uint64_t expires_ticks; /* what is left then goes back to the ledger */
	uint32_t revision;
	uint32_t reserved;
	uint64_t reserved2;
};
_Static_assert(sizeof(struct weir_lease) == 32, "two to a cache line");

#define WEIR_LEASE_NS 1000000ULL /* how long a lease lasts */
#define WEIR_LEASE_SHARE 100	  /* all CPUs' leases together: at most burst / this */

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

/*
 * A limit that is sliding, or keyed by flow, has a ledger and key records of its own, as large
 * as it says, and a sliding one rings: maps within `weir_own_ledgers`, `weir_own_keys` (struct
 * weir_own_record) and `weir_rings`, by slot. A ring is capacity stamps; the one of a place
 * begins at place * capacity.
 */
struct weir_own_record {
	struct weir_key_record key;
	uint32_t peer[4];
};

/*
 * Map `weir_bans`, by tag: keys that earned a ban from a limit. A hash that is never evicted;
 * when it is full, nobody new is banned (weir_totals.unbanned_packets counts it).
 */
struct weir_ban {
	uint64_t until_ticks;
	struct weir_key_record key;
	uint32_t peer[4]; /* the destination of a flow */
};
_Static_assert(sizeof(struct weir_ban) == 48, "no hidden padding");

#define WEIR_BANS_MAX 65536

/* Map `weir_strikes`, by tag: the refusals that may earn one. Least recently used goes first. */
struct weir_strikes {
	uint64_t since_ticks;
	uint64_t count;
};

/*
 * Map `weir_pending`: SYNs that passed a gate and hold a place there until the connection is
 * accepted, or for 2.1 to 4.3 s (pending.h). Spoofed ones too: a flood of them from one key
 * keeps that key's places full as long as it lasts and so much longer, no other key's. Only a
 * gate with one key for all can be filled by strangers: match it with `from`, or key it.
 */
#define WEIR_PENDING_ENTRIES 65536

/*
 * Map `weir_sockets`, storage of each socket that entered a gate (which, for when it leaves) or
 * belongs to a service.
 */
#define WEIR_SOCKET_GATES 4
struct weir_socket_gate {
	uint64_t tag; /* of the key: gates count in the shared ledger */
	uint16_t slot;
	uint16_t reserved[3];
};

struct weir_socket {
	struct weir_socket_gate gate[WEIR_SOCKET_GATES];
	uint32_t gates;	     /* entered */
	uint32_t walk;	     /* the recount that has counted it */
	uint64_t started_ns; /* of the exchange that is going on; 0: none is */
	uint32_t service;    /* index + 1; 0: none */
	uint32_t reserved;
};
_Static_assert(sizeof(struct weir_socket) == 88, "no hidden padding");

/*
 * Map `weir_service_states`, by service. A slice is what began in a piece of time of
 * 2^slice_shift nanoseconds and is not over: the piece's number (lower 32 bits) and the count.
 * They are a ring. So what is past its deadline is in_flight less the recent slices' counts.
 */
#define WEIR_SERVICE_SLICES 32
struct weir_service_state {
	uint64_t in_flight;
	uint64_t last_probe_ns;
	uint64_t slices[WEIR_SERVICE_SLICES]; /* number << 32 | count */
	uint64_t reserved[6];
};
_Static_assert(sizeof(struct weir_service_state) == 320, "whole cache lines");

/*
 * Map `weir_recounts`, by tag, during a recount: the connections inside, counted anew. Kept
 * up to date by those that come and go meanwhile, so that it can be held against the ledger.
 */
#define WEIR_RECOUNT_KEYS (1 << 17)
struct weir_recount {
	uint64_t inside;
	int64_t drift; /* by the first look: what the ledger has beyond that */
};

/* What the program that compares wants to know, and says. */
struct weir_settle {
	uint32_t sets; /* of the ledger */
	uint32_t heal; /* 0: note the drift; 1: take away what is still the same */
	uint64_t keys; /* that had a drift */
};

/* ---- totals ---- */

/*
 * Map `weir_exchanges`, [cpu][service]. An exchange begins with the first payload that
 * comes in after silence and ends with the first that goes out: requests sent in a row without
 * waiting for an answer are one. attempts - successes - failures - late are in flight.
 */
struct weir_exchanges {
	uint64_t attempts;
	uint64_t successes; /* ended within the deadline */
	uint64_t failures;  /* the connection was closed or reset while one was going on */
	uint64_t late;	    /* ended, or closed, past the deadline */
	uint64_t time_ns;   /* sum of the successes' response times */
	uint64_t dropped;   /* newcomers refused by `drop` */
	uint64_t shed;	    /* newcomers refused by `ceiling` */
	uint64_t probes;    /* newcomers that passed in spite of `drop`, as probes */
	uint64_t times[WEIR_RESPONSE_SLOTS]; /* of the successes: response.h */
};
_Static_assert(sizeof(struct weir_exchanges) == 1344, "whole cache lines");

/* Map `weir_connections`, one entry, all gates together. */
struct weir_connection_counts {
	uint64_t entered;
	uint64_t left;
	uint64_t adopted;   /* entered by a recount: open before weir, or before the limit */
	uint64_t uncounted; /* no place in the ledger, or in more than WEIR_SOCKET_GATES gates */
	uint64_t recounted; /* places that a recount gave back, or took */
	uint64_t overflowed; /* recounts with more keys than WEIR_RECOUNT_KEYS: nothing healed */
	uint64_t reserved[2];
};
_Static_assert(sizeof(struct weir_connection_counts) == 64, "one cache line");

/* Of a limit, by slot. */
struct weir_totals {
	uint64_t passed_packets;
	uint64_t passed_bytes;
	uint64_t refused_packets;
	uint64_t refused_bytes;
	uint64_t would_refuse_packets; /* by a limit in monitor mode */
	uint64_t untracked_packets;    /* newcomers that found no place in the ledger */
	uint64_t contended_packets;    /* refused because others were faster 4 times */
	uint64_t new_keys;
	uint64_t banned_packets;   /* refused because of a ban; in refused_packets too */
	uint64_t unbanned_packets; /* would have earned a ban, but weir_bans is full */
	uint64_t reserved[6];
};
_Static_assert(sizeof(struct weir_totals) == 128, "two cache lines");

/* Why a frame was handled as it was, without or before any limit. */
enum weir_path {
	WEIR_PATH_LIMITS,    /* passed every limit that matches */
	WEIR_PATH_UNMATCHED, /* an IP packet that no limit matches */
	WEIR_PATH_ALLOWED,   /* on the allow list */
	WEIR_PATH_DENIED,    /* on the deny list */
	WEIR_PATH_EXEMPT,    /* ARP, neighbour discovery */
	WEIR_PATH_NOT_IP,
	WEIR_PATH_MALFORMED,
	WEIR_PATH_REFUSED, /* by a limit */
	WEIR_PATHS,
};

/* Of an interface at a hook. */
struct weir_traffic {
	uint64_t frames[WEIR_PATHS];
	uint64_t bytes[WEIR_PATHS];
};
_Static_assert(sizeof(struct weir_traffic) == 128, "two cache lines");

struct weir_sampler {
	uint64_t next_ns;    /* no event before */
	uint64_t suppressed; /* refusals since the last event of this CPU */
	uint64_t lost;	     /* events that found the ring buffer full */
	uint64_t reserved[5];
};
_Static_assert(sizeof(struct weir_sampler) == 64, "one cache line");

/*
 * Map `weir_cpus`: what each CPU has for itself, found by one look-up a packet. The scratch is
 * the programs' own (bpf/context.bpf.h).
 */
#define WEIR_SCRATCH_BYTES 320
struct weir_cpu {
	uint8_t scratch[WEIR_SCRATCH_BYTES];
	struct weir_sampler sampler;
	struct weir_traffic traffic[WEIR_INTERFACES_MAX][WEIR_HOOKS];
	struct weir_totals totals[WEIR_LIMITS_MAX];
	struct weir_lease leases[WEIR_LIMITS_MAX];
};
_Static_assert(sizeof(struct weir_cpu) % 64 == 0, "CPUs don't share cache lines");

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
	uint16_t slot; /* of the limit; WEIR_NO_LIMIT: the deny list; or WEIR_BY_SERVICE */
	uint8_t family;
	uint8_t protocol;
	uint8_t hook;
	uint8_t would; /* 1: only would have refused (monitor) */
	uint8_t reserved[6];
};
#define WEIR_NO_LIMIT 0xffff
#define WEIR_BY_SERVICE 0x8000	  /* refused for a service: that and its index … */
#define WEIR_BY_SHEDDER 0x4000	  /* … by its shedder; else by its breaker */
#define WEIR_SERVICE_INDEX 0x00ff
_Static_assert(sizeof(struct weir_event) == 72, "no hidden padding");
