/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The policy compiler: from what the operator said to what the kernel reads. Pure: no map, no
 * system call but random bytes for salts. generation.h puts the result into force.
 *
 * Each limit is one bit, in the order of the file. A dimension that no limit looks at is left
 * out (head.dimensions). Identity is kept by name: a limit that keeps its name, kind and key
 * keeps its slot and its salt, hence its totals and its state. One with a ledger of its own
 * (sliding, or keyed by flow) does so while that keeps its size too; else it gets another slot,
 * for the packets that still see the old policy, and begins from zero.
 */
#pragma once

#include "controller/error.h"
#include "controller/policy.h"
#include "weir/abi.h"
#include "weir/packet.h"

/* Prefixes of all matches together, so that two generations of them fit the map. */
#define WEIR_PREFIXES_MAX 65536U

struct weir_prefix_class {
	struct weir_prefix_key key; /* of generation 0 */
	uint32_t class;
};

struct weir_compiled {
	struct weir_policy_head head;
	struct weir_limit limits[WEIR_LIMITS_MAX];
	struct weir_label labels[WEIR_LIMITS_MAX]; /* by limit, not by slot */
	struct weir_bitmap rows[WEIR_ROWS];
	uint64_t ports[2][WEIR_PORT_WORDS]; /* destination, source */
	struct weir_prefix_class *prefixes;
	size_t prefix_count;
};

/* What is in force, for identities; all zero for nothing. The labels are by slot. */
struct weir_compiled_before {
	const struct weir_limit *limits;
	size_t count;
	const struct weir_label *labels;
};

/*
 * `slots`: the interfaces' slots, in the policy's order. `cpus`: possible ones. `wall_ns`: how
 * far CLOCK_REALTIME is ahead of CLOCK_MONOTONIC (controller/clock.h). 0; -ERANGE for
 * a burst that takes longer than 2 years to refill; -E2BIG for more kinds of ports or prefixes
 * than there are rows, or no slot free while the old limits still hold theirs; -ENOMEM. *out is
 * set only on success.
 */
int weir_compile(const struct weir_policy *policy, const struct weir_compiled_before *before,
		 const uint32_t *slots, uint32_t cpus, uint64_t wall_ns,
		 struct weir_compiled **out, struct weir_error *err);
void weir_compiled_free(struct weir_compiled *compiled); /* NULL is fine */

/* One limit's conf, flags and key; salt, revision and slot are left 0. Errors as above. */
int weir_compile_limit(const struct weir_policy *policy, const struct weir_policy_limit *limit,
		       uint64_t wall_ns, struct weir_limit *out, struct weir_error *err);

/*
 * The phase of an aligned period: the kernel side counts by CLOCK_MONOTONIC alone, in ticks,
 * and this is where the multiples of the period on CLOCK_REALTIME fall there.
 */
uint64_t weir_compile_phase(uint64_t period_ticks, uint64_t wall_ns);

/*
 * The difference between the two clocks can only be read to some microseconds, and a clock
 * that was not set keeps it: phases that are nearer to each other are the same one, so that a
 * reload doesn't move periods that are open.
 */
#define WEIR_PHASE_SLACK_TICKS (1000000ULL << WEIR_TICK_SHIFT)
bool weir_compile_phase_is_near(uint64_t a, uint64_t b, uint64_t period_ticks);

/* "bucket rate 1000pps burst 2000" */
void weir_compile_label(const struct weir_policy_limit *limit, struct weir_label *label);

/* enum weir_service_protocol: those that the service's match names. */
uint8_t weir_compile_protocols(const struct weir_policy_service *service);

/*
 * The bucket's conf, in whole numbers throughout: one token takes per_ns * 16 / amount ticks,
 * cut to 32 significant bits (as weir_bucket_conf_init does, so that n tokens that take a
 * whole number of ticks cost just that). Words: `block` admits nothing, `unlimited` all.
 */
int weir_compile_bucket(const struct weir_rate *rate, uint64_t burst, struct weir_bucket_conf *conf,
			struct weir_error *err);

/* compile_match.c: head, rows, ports and prefixes; part of weir_compile. */
int weir_compile_match(const struct weir_policy *policy, const uint32_t *slots,
		       struct weir_compiled *compiled, struct weir_error *err);

/*
 * compile_lookup.c: the limits that apply to a packet at a hook of the interface with that slot,
 * by the tables, as the kernel side reads them. `ignored`: dimensions that aren't looked at
 * (enum weir_dimension), for what isn't known of the packet.
 */
struct weir_bitmap weir_compiled_match(const struct weir_compiled *compiled,
				       const struct weir_packet *packet, enum weir_hook hook,
				       uint32_t interface, uint32_t ignored);

static inline void weir_bitmap_set(struct weir_bitmap *bitmap, size_t bit)
{
	bitmap->word[bit / 64] |= 1ULL << (bit % 64);
}

static inline bool weir_bitmap_has(const struct weir_bitmap *bitmap, size_t bit)
{
	return bitmap->word[bit / 64] >> (bit % 64) & 1;
}
