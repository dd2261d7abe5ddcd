/* SPDX-License-Identifier: GPL-2.0 */
/*
 * XDP on an interface. A program is ours iff it uses our pinned board map; another one
 * is never removed and never replaced, only named. Where libxdp's dispatcher is there, or the
 * kernel can have it, ours goes into it beside the others; else it is the only one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "controller/engine.h"
#include "controller/load.h"

enum weir_holder {
	WEIR_HELD_BY_NOBODY,
	WEIR_HELD_BY_OTHERS, /* in a dispatcher that has room for us */
	WEIR_HELD_BY_US,
	WEIR_HELD_BY_FOREIGN, /* one program that leaves no room */
};

struct weir_xdp_found {
	enum weir_holder holder;
	enum weir_attachment mode; /* native (or offloaded), generic */
	bool dispatcher;
	uint32_t id;   /* of our program, or of the foreign one */
	char name[16]; /* of the foreign one */
	char tag[17];
};

struct weir_xdp {
	const struct weir_load *load;
	uint32_t board_id;	     /* of the map weir_board */
	struct weir_bpf *single;     /* loaded as the only program of an interface, when needed */
	struct weir_bpf *copy;	     /* the same for a dispatcher, when needed */
	struct xdp_program *chained; /* its program */
	bool mute;		     /* seen: into one it takes weir_xdp_mute alone */
	bool no_dispatcher;	     /* seen: this kernel has none, or none that takes ours */
	char why_alone[128];	     /* why not, "" where it has none */
	uint32_t pinned_id;	     /* of our program that is pinned beside the maps */
};

/* 0, or -errno: no such interface, not allowed to ask. */
int weir_xdp_look(uint32_t board_id, uint32_t ifindex, struct weir_xdp_found *found);

/*
 * Attaches, or replaces ours of an earlier run without a gap. `auto` takes generic mode where
 * the driver refuses native and says so in status->reason; where ours is already there in
 * generic mode it stays so. Fills status->attached, dispatcher and reason. On an error (-EBUSY:
 * somebody else's program; else what the kernel said) ours of before is still there.
 */
int weir_xdp_attach(struct weir_xdp *xdp, struct weir_interface_status *status,
		    struct weir_error *err);

/* Takes ours off, verified by a query. 0 also where it isn't there: nothing is then called. */
int weir_xdp_detach(uint32_t board_id, uint32_t ifindex, struct weir_error *err);

/* The same for every interface of this network namespace; goes on after an error. */
int weir_xdp_detach_all(uint32_t board_id, struct weir_error *err);

void weir_xdp_close(struct weir_xdp *xdp);

/* 0 if it can't be had. */
int weir_interface_mtu(const char *name);

/* The id of the map behind a descriptor, 0 if it can't be had. */
uint32_t weir_map_id(int fd);

/* Whether the program uses the map. */
bool weir_program_uses(uint32_t program_id, uint32_t map_id);
