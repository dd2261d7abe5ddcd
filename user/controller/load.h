/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The programs and maps, loaded, and their pins: a folder on a bpffs with every map, which is
 * there whole or not at all. A new set is pinned in PINS-new and renamed when it is complete;
 * what a killed start left in PINS-new is swept away by the next one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "controller/error.h"
#include "weir/abi.h"

#include "weir.skel.h"

#define WEIR_PINS_SIZE 200

/* The oldest kernel whose verifier is known to take the programs: scripts/kernels/test.sh. */
#define WEIR_KERNEL_MIN "6.1"

struct weir_load {
	char pins[WEIR_PINS_SIZE];
	struct weir_bpf *skeleton; /* for its maps */
	struct weir_shape shape;
	bool adopted; /* the maps were there before */
	bool published;
	bool mounted; /* a bpffs, by us */
	int lock_fd;  /* of the folder: one engine a folder */
};

/*
 * Adopts what is pinned, else makes maps of room for `keys`. No program is loaded. Refused:
 * -EPROTO for pins of another ABI version or layout, -EBUSY where another engine holds them,
 * -ENOTDIR for a folder that is on no bpffs and can't be a mount point (not empty), -ENOSYS
 * for a kernel that lacks what the programs need; the sentence names both. `note`
 * gets a sentence for the log, or "".
 */
int weir_load_open(struct weir_load *load, const char *pins, uint32_t keys, struct weir_error *note,
		   struct weir_error *err);

/* Gives a new set its name; nothing to do for an adopted one. */
int weir_load_publish(struct weir_load *load, struct weir_error *err);

/* Keeps the pins. `undo`: those of a new set go, and the bpffs that was mounted for it; 0, or why
 * they can't. */
int weir_load_close(struct weir_load *load, bool undo);

/*
 * The programs on these maps. Each takes the verifier a second or so, so only those of the
 * hooks in the mask (1 << enum weir_hook) are made ready to load, when they are needed. NULL
 * with errno.
 */
struct weir_bpf *weir_load_programs_open(const struct weir_load *load, uint32_t hooks);

/* Loads them into the kernel; what it refuses is said in its words. */
int weir_load_programs(struct weir_bpf *programs, struct weir_error *err);

/*
 * Routes what libbpf and libxdp print here, once a process. The last warning that came since
 * the last call of weir_kernel_words_clear: the kernel's own words, or "".
 */
void weir_kernel_words_listen(void);
void weir_kernel_words_clear(void);
const char *weir_kernel_words(void);

/* Whether a program of ours was refused by the verifier since then: the words are its verdict. */
bool weir_kernel_refused(void);
