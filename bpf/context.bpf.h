/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is known of one packet on its way through the programs. It lies in the CPU's scratch,
 * since BPF's 512 bytes of stack are wanted elsewhere: programs don't nest on a CPU. It is not
 * emptied between packets: each field is written before it is read.
 *
 * Functions that are not static take only this, and are verified once, each on its own,
 * instead of once for every way that leads to them.
 */
#pragma once

#include "maps.bpf.h"
#include "weir/packet.h"

/* What to do about a packet at a limit. */
enum weir_mode {
	WEIR_CHECK, /* whether it would be refused; charges nothing */
	WEIR_TAKE,  /* charge it, or refuse it and charge nothing */
	WEIR_BACK,  /* give back what WEIR_TAKE charged: another limit lost a race */
	WEIR_ENTER, /* a connection goes into a gate, whatever its limit */
};

/* One limit's view of the packet. */
struct weir_charge {
	uint64_t tag;
	uint64_t cost;	/* a bucket's in ticks, any other's in packets; WEIR_ENTER: a slice */
	uint32_t limit; /* index */
	uint32_t mode;	/* enum weir_mode */
	uint32_t first; /* sets of the ledger */
	uint32_t second;
	uint32_t which; /* 0: the place is in the first set */
	uint32_t way;
	struct weir_beginning begin; /* of a newcomer */
};

struct weir_context {
	struct weir_packet packet;
	uint64_t now_ns;
	uint64_t now_ticks;
	uint32_t cpu;
	uint32_t generation;
	uint32_t ifindex;
	uint32_t interface;  /* slot */
	uint32_t hook;	     /* enum weir_hook */
	uint32_t refused_by; /* slot of the limit that decided */
	uint32_t mode;	     /* enum weir_mode, of a walk over several limits */
	uint32_t lists;	     /* enum weir_list_bit: that are to be asked */
	uint32_t would;	     /* 1: refused by a limit in monitor mode, so it passes */
	uint32_t reset;	     /* not 0: refused by a gate that says so with a RST */
	uint32_t reserved;
	struct weir_charge charge;
	struct weir_key key; /* a place to build one */
	struct weir_bitmap limits; /* that match */
	struct weir_bitmap left;   /* yet to be asked */
	struct weir_bitmap done;   /* charged */
};

_Static_assert(sizeof(struct weir_context) <= WEIR_SCRATCH_BYTES, "fits the scratch");

static __always_inline struct weir_cpu *weir_cpu_at(uint32_t cpu)
{
	return bpf_map_lookup_elem(&weir_cpus, &cpu);
}

/*
 * A value that clang knows nothing about from here on. The verifier of 6.1 forgets the bounds of
 * a 32-bit OR (clang makes one of an addition of disjoint bits) and of a value that was put on
 * the stack as 32 bits: so a mask before it keeps clang from the OR, one after it is applied
 * where the value is used, even where clang knows from a table that it isn't needed.
 */
#define weir_opaque(value) asm volatile("" : "+r"(value))

static __always_inline struct weir_limit *weir_limit_at(uint32_t generation, uint32_t index)
{
	uint32_t at;

	weir_opaque(index);
	at = index & (WEIR_LIMITS_MAX - 1);
	weir_opaque(at);
	weir_opaque(generation);
	return &weir_board.limits[at + (generation & 1) * WEIR_LIMITS_MAX];
}
