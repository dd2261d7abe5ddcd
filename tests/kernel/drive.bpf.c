// SPDX-License-Identifier: GPL-2.0
/* For tests only: see drive.h. */
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "parse.bpf.h"
#include "process.bpf.h"

#include "drive.h"

char LICENSE[] SEC("license") = "GPL";

#define SOURCE_AT 26 /* of an untagged IPv4 frame */

WEIR_ARRAY(drive_cpus, struct drive_cpu, 1); /* set at load: [cpu] */
WEIR_ARRAY(drive_verdicts, struct drive_verdict, DRIVE_SOURCES); /* set at load: [cpu][source] */

static __always_inline uint32_t drive_next(struct drive_cpu *drive)
{
	uint64_t n = drive->sent++;

	weir_injected_now_ns += drive->step_ns;
	if (drive->hot_every && n % drive->hot_every == 0)
		return 0;
	n = drive->spread++;
	return drive->from + n * drive->stride % drive->count;
}

SEC("xdp")
int drive_xdp(struct xdp_md *ctx)
{
	struct weir_context context = { .hook = WEIR_HOOK_XDP, .ifindex = ctx->ingress_ifindex };
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct drive_verdict *verdict;
	struct drive_cpu *drive;
	uint32_t source, at;
	int parsed, pass;

	context.cpu = bpf_get_smp_processor_id();
	drive = bpf_map_lookup_elem(&drive_cpus, &context.cpu);
	if (!drive || data + SOURCE_AT + 4 > end)
		return XDP_ABORTED;
	source = drive_next(drive) & (DRIVE_SOURCES - 1);
	*(uint32_t *)(data + SOURCE_AT) = bpf_htonl(DRIVE_BASE + source);
	parsed = weir_parse_xdp(ctx, &context.packet);
	pass = weir_process(&context, parsed);
	at = context.cpu * DRIVE_SOURCES + source;
	verdict = bpf_map_lookup_elem(&drive_verdicts, &at);
	if (!verdict)
		return XDP_ABORTED;
	verdict->passed += pass;
	verdict->refused += !pass;
	return pass ? XDP_PASS : XDP_DROP;
}
