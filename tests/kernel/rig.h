/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel side on a bench: loaded on an injected clock, attached to nothing, fed by
 * BPF_PROG_TEST_RUN. The rig is the only writer of its maps and keeps one limit in them.
 */
#pragma once

#include "controller/dataplane.h"
#include "kernel/drive.h"
#include "tools/frame.h"

/* Where the injected clock starts: some time after boot. */
#define RIG_START_NS (1000 * WEIR_NS_PER_SEC)

enum rig_program {
	RIG_WEIR,  /* weir_xdp: the frame as given */
	RIG_MUTE,  /* weir_xdp_mute instead */
	RIG_HOOKS, /* the same, with weir_ingress and weir_egress beside: see rig_use */
	RIG_TAGGED, /* drive_tagged: skbs with a VLAN tag in the metadata, see rig_tags */
	RIG_DRIVE, /* drive_xdp: the frame from many sources, see drive.h */
};

struct rig {
	struct weir_test_bpf *weir; /* one of these two */
	struct drive_bpf *driver;
	int program_fd;
	struct weir_dataplane plane;
	volatile uint64_t *now_ns;
	uint32_t revision;
	/* RIG_DRIVE only */
	struct drive_cpu *drive;	/* [cpu] */
	struct drive_verdict *verdicts; /* [cpu][DRIVE_SOURCES] */
	uint64_t *log;			/* [cpu][DRIVE_LOG] */
};

struct rig_limit {
	double rate, burst; /* tokens a second, tokens */
	uint32_t grain;	    /* 0: 1 */
	uint8_t flags;	    /* enum weir_limit_flag */
	uint8_t key;	    /* enum weir_key_part; /32 and /64 */
	uint64_t salt;
	bool long_way; /* not the short one of bpf/plain.bpf.h, which is for such limits */
};

/*
 * Loads with a ledger of at least `keys` places. Ends the test program with a message if that
 * can't be done: nothing else could be tested.
 */
void rig_open(struct rig *rig, enum rig_program program, uint32_t keys);
void rig_close(struct rig *rig);

/* State, totals and clock as after rig_open, without the verifier's second. */
void rig_reset(struct rig *rig);

/* The limit from now on, by the other generation, as a reload would. 0 or -errno. */
int rig_set(struct rig *rig, const struct rig_limit *limit);

/* One frame, `repeat` times on this CPU: the last verdict (XDP_PASS, XDP_DROP) or -errno. */
int rig_send(const struct rig *rig, const void *frame, uint32_t size, uint32_t repeat);

/* RIG_TAGGED: the VLAN tags that the next frames arrive with; 0: none. */
void rig_tags(struct rig *rig, uint16_t outer, uint16_t inner);

/* `packets` by the driver on this CPU. 0 or -errno. */
int rig_drive(struct rig *rig, uint64_t packets);

/*
 * `packets` each by the driver on both CPUs, which start together. `meanwhile` (or NULL) runs
 * beside them, once. 0 or -errno.
 */
int rig_drive_both(struct rig *rig, uint64_t packets, void (*meanwhile)(struct rig *rig));

/* The machine's first two CPUs that we may run on: 0, or -ENODEV where there is only one. */
int rig_cpus(int cpus[2]);

/* Pins the calling thread. 0 or -errno. */
int rig_pin(int cpu);

/* A map that the rig has no other face for; its fd stays the rig's. */
int rig_map_fd(const struct rig *rig, const char *name);

/* Sets what every CPU's driver does next, and forgets packets and verdicts so far. */
void rig_plan(struct rig *rig, const struct drive_cpu *plan);

/* The verdicts on a source, both CPUs together. */
struct drive_verdict rig_verdict(const struct rig *rig, uint32_t source);

/* Verdicts on all sources together. */
struct rig_sum {
	uint64_t passed;
	uint64_t refused;
};
struct rig_sum rig_sum(const struct rig *rig);

/* Places that hold a confirmed tag; -1 if a tag is there twice or a place was left busy. */
long rig_ledger_check(const struct rig *rig);

/* Places of the ledger whose state is not neutral now. */
uint32_t rig_ledger_taken(const struct rig *rig);

/* The frame of an IPv4 or IPv6 source; `size` 0: the least. */
void rig_frame(struct frame *frame, const char *source, uint8_t protocol, uint32_t size);
