/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel side as user space holds it: maps of the right size, mapped into memory, and
 * nothing else. Neither attaches nor decides. The controller, the tests and the benchmarks
 * each load their own object and use this for its maps, which are found by name.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <bpf/libbpf.h>

#include "weir/abi.h"
#include "weir/front.h"

#define WEIR_DATAPLANE_MAPPINGS 9

/* Maps of maps, by slot: what a limit with a ledger of its own has. */
enum weir_own_map {
	WEIR_OWN_LEDGER,
	WEIR_OWN_KEYS,
	WEIR_OWN_RINGS,
	WEIR_OWN_MAPS,
};

/* The tries of the lists: the bits of enum weir_list_bit, in their order. */
enum weir_trie {
	WEIR_TRIE_ALLOW4,
	WEIR_TRIE_ALLOW6,
	WEIR_TRIE_DENY4,
	WEIR_TRIE_DENY6,
	WEIR_TRIES_OF_LISTS,
};

struct weir_dataplane {
	struct weir_shape shape;

	/* policy: user space writes */
	struct weir_board *board;
	struct weir_bitmap *rows;  /* [2][WEIR_ROWS] */
	uint64_t *ports;	   /* [2][destination, source][WEIR_PORT_WORDS] */
	struct weir_label *labels; /* [WEIR_LIMITS_MAX], by slot */
	const struct weir_service_policy *services; /* [WEIR_SERVICES_MAX] */
	int prefixes_fd;	   /* weir_prefix_key -> uint32_t class */
	int list_fds[WEIR_TRIES_OF_LISTS];
	int live_fd; /* weir_live: for user space alone */

	/* state and totals: the kernel writes */
	struct weir_set *ledger;       /* [shape.sets] */
	struct weir_key_record *keys;  /* [shape.sets * WEIR_WAYS] */
	struct weir_front_slot *front; /* [cpu][shape.front_slots] */
	struct weir_cpu *cpus;		/* [shape.cpus]; ours to empty what nobody counts into */
	int events_fd;		       /* ring buffer of struct weir_event */
	int own_fds[WEIR_OWN_MAPS];
	int bans_fd; /* tag -> struct weir_ban */

	size_t bytes[WEIR_DATAPLANE_MAPPINGS]; /* private from here */
	bool owns_fds;
};

#define WEIR_KEYS_DEFAULT (256 * 1024)
#define WEIR_KEYS_MIN 1024
#define WEIR_KEYS_MAX (16 * 1024 * 1024)

/*
 * The shape for a ledger of at least `keys` places on this machine, with fresh seeds.
 * 0, or -errno when the number of CPUs or random bytes can't be had.
 */
int weir_shape_draw(struct weir_shape *shape, uint32_t keys);

/* Bytes of kernel memory that grow with the shape: ledger, keys, front. */
uint64_t weir_shape_bytes(const struct weir_shape *shape);

/* Nothing yet: every descriptor -1. */
void weir_dataplane_init(struct weir_dataplane *dataplane);

/* Between open and load: sizes the object's maps and sets its constants. 0 or -errno. */
int weir_dataplane_prepare(struct bpf_object *object, const struct weir_shape *shape);

/*
 * After load: maps the object's maps into memory. Where the board is all zero (the maps are
 * new) writes the ABI version and the shape into it. 0, or -errno with nothing mapped; -EPROTO
 * when the maps are of another ABI version or of another shape than the programs.
 */
int weir_dataplane_map(struct weir_dataplane *dataplane, struct bpf_object *object);

/*
 * The name of a map under the pins, or NULL for one that is not pinned. The board, a section of
 * variables, goes by weir_board: a bpffs takes no dots.
 */
const char *weir_map_pin_name(const struct bpf_map *map);

/*
 * The same from a folder of pinned maps, all of it read-only: what the CLI reads when the
 * controller is down. -ENOENT where nothing is pinned, -EPROTO for another ABI version.
 */
int weir_dataplane_open(struct weir_dataplane *dataplane, const char *pins);

/* Unmaps everything; the kernel's maps stay as long as something holds them. */
void weir_dataplane_unmap(struct weir_dataplane *dataplane);

/*
 * Keeps what a limit was until now_ns (on the clock of bpf_ktime_get_ns), for the keys that
 * count in it (struct weir_past): to be called before its next revision is stored.
 */
void weir_dataplane_remember(struct weir_dataplane *dataplane, const struct weir_limit *limit,
			     uint64_t now_ns);

/* Sums of the per-CPU totals of a limit's slot. */
struct weir_totals weir_dataplane_totals(const struct weir_dataplane *dataplane, uint32_t slot);

/* Sums of the per-CPU counts of an interface's slot at a hook. */
struct weir_traffic weir_dataplane_traffic(const struct weir_dataplane *dataplane,
					   uint32_t interface, enum weir_hook hook);
