/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A policy tried on a capture: packets go one by one through weir's own programs, loaded once
 * more, attached to nothing, pinned nowhere, on a clock that the capture drives
 * (BPF_PROG_TEST_RUN). What a running weir does and holds is not touched.
 *
 * A packet comes in or goes out: as `own` addresses say, else as the capture says, else in. One
 * that comes in meets the XDP hook, then, if it passed, TC ingress; one that goes out TC egress.
 * One longer than a frame of the wire is what the stack merged, and is replayed as the frames
 * that it was made of. Of one that was captured in part the rest is zeros: its length counts.
 *
 * Left out of the policy: gates, which count connections by the host's sockets, and services.
 */
#pragma once

#include <jansson.h>

#include "controller/capture.h"
#include "controller/dataplane.h"
#include "controller/policy.h"
#include "controller/refusals.h"

#define WEIR_REPLAY_FRAME_MAX 1522U /* Ethernet header, two tags, 1500 bytes */

struct weir_replay_counts {
	uint64_t packets; /* of the capture */
	uint64_t bytes;
	uint64_t in, out;    /* packets */
	uint64_t refused;    /* packets of which a frame was refused */
	uint64_t backwards;  /* their time lies before the packet before: the clock was held */
	uint64_t untimed;    /* the same for those without a time */
	uint64_t cut;	     /* captured in part */
	uint64_t cut_headers; /* the same, headers that a limit may look at included */
	uint64_t merged;     /* longer than a frame of the wire */
	uint64_t too_short;  /* less than an Ethernet header: not replayed */
	uint64_t first_ns, last_ns; /* since 1970 */
};

/* Of a limit, by slot, in the capture's time. */
struct weir_replay_limit {
	uint64_t first_ns, last_ns; /* packets that it refused, or would have; 0: none */
};

struct weir_replay {
	struct weir_test_bpf *programs;
	struct weir_dataplane dataplane;
	struct ring_buffer *events;
	const struct weir_prefixes *own; /* NULL: none are known */
	uint32_t hooks;			 /* that limits use: 1 << enum weir_hook */
	uint64_t offset_ns;		 /* from the programs' time to the capture's */
	uint64_t now_ns;		 /* the programs' time */
	uint32_t unread;		 /* frames since the events were read */
	uint64_t base_ns;		 /* the same of the first packet */
	struct weir_replay_counts counts;
	struct weir_replay_limit limits[WEIR_LIMITS_MAX];
	struct weir_refusals refusals;
	int failed; /* -ENOMEM of the refusals */
};

/*
 * Takes gates and services out of a policy: call it before weir_replay_open, which refuses
 * them. `taken` is called with the name of each.
 */
void weir_replay_reduce(struct weir_policy *policy,
			void (*taken)(void *context, const char *kind, const char *name),
			void *context);

/*
 * `interface`: the index of the policy's interface that the capture is of. start_ns: the time of
 * its first packet. -EPERM without CAP_BPF and CAP_NET_ADMIN; the sentence says so. On an error
 * there is nothing to close.
 */
int weir_replay_open(struct weir_replay *replay, const struct weir_policy *policy,
		     size_t interface, uint64_t start_ns, struct weir_error *err);
void weir_replay_close(struct weir_replay *replay);

/* One packet. 0, or -errno of the kernel or of the refusals. */
int weir_replay_packet(struct weir_replay *replay, const struct weir_capture_packet *packet,
		       struct weir_error *err);

/* After the last one: what is still to be counted. */
int weir_replay_finish(struct weir_replay *replay, struct weir_error *err);

/*
 * What became of it, as JSON (docs/json.md, "try"): totals, every limit, the `keys` heaviest
 * refused keys. To be called once, after weir_replay_finish: it sorts the refusals. NULL
 * without memory.
 */
json_t *weir_replay_report(struct weir_replay *replay, size_t keys);
