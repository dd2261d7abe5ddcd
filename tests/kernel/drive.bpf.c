// SPDX-License-Identifier: GPL-2.0
/* For tests only: see drive.h. */
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "hooks.bpf.h"

#include "drive.h"

char LICENSE[] SEC("license") = "GPL";

#define SOURCE_AT 26 /* of an untagged IPv4 frame */

WEIR_ARRAY(drive_cpus, struct drive_cpu, 1);			 /* set at load: [cpu] */
WEIR_ARRAY(drive_verdicts, struct drive_verdict, DRIVE_SOURCES); /* set at load: [cpu][source] */

WEIR_ARRAY(drive_log, uint64_t, DRIVE_LOG); /* set at load: [cpu][DRIVE_LOG] */

volatile uint32_t drive_arrived; /* CPUs */

/* CPUs that start together wait for each other: setting up a run takes longer than a short one. */
static __always_inline bool drive_idle(struct drive_cpu *drive)
{
	if (!drive->here) {
		drive->here = 1;
		__sync_fetch_and_add(&drive_arrived, 1);
	}
	return drive_arrived < drive->wanted || drive->sent >= drive->until;
}

static __always_inline uint32_t drive_next(struct drive_cpu *drive)
{
	uint64_t n = drive->sent++;

	if (drive->step_ns)
		__sync_fetch_and_add(&weir_injected_now_ns, drive->step_ns);
	if (drive->hot_every && n % drive->hot_every == 0)
		return 0;
	n = drive->spread++;
	return drive->from + n * drive->stride % drive->count;
}

static __always_inline void drive_note(struct drive_cpu *drive, uint32_t cpu)
{
	uint64_t n = drive->logged++;
	uint32_t at = cpu * DRIVE_LOG + n;
	struct weir_cpu *weir = weir_cpu_at(cpu);
	uint64_t *log = bpf_map_lookup_elem(&drive_log, &at);

	if (weir && log && n < DRIVE_LOG)
		*log = ((struct weir_context *)weir->scratch)->now_ns;
}

/* Afterwards: what became of the packet. A function of its own, for the stack's sake. */
static __noinline int drive_account(int action)
{
	uint32_t cpu = bpf_get_smp_processor_id(), at;
	struct drive_verdict *verdict;
	struct drive_cpu *drive = bpf_map_lookup_elem(&drive_cpus, &cpu);

	if (!drive)
		return -1;
	at = cpu * DRIVE_SOURCES + (drive->last & (DRIVE_SOURCES - 1));
	verdict = bpf_map_lookup_elem(&drive_verdicts, &at);
	if (!verdict)
		return -1;
	if (action == XDP_PASS)
		drive_note(drive, cpu);
	verdict->passed += action == XDP_PASS;
	verdict->refused += action == XDP_DROP;
	return action;
}

#define DRIVE_GO 1

/* Beforehand: the next source into the frame. DRIVE_GO, or what to return instead. */
static __noinline int drive_prepare(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	uint32_t cpu = bpf_get_smp_processor_id();
	struct drive_cpu *drive = bpf_map_lookup_elem(&drive_cpus, &cpu);

	if (!drive || data + SOURCE_AT + 4 > end)
		return -1;
	if (drive_idle(drive))
		return DRIVE_IDLE;
	drive->last = drive_next(drive) & (DRIVE_SOURCES - 1);
	*(uint32_t *)(data + SOURCE_AT) = bpf_htonl(DRIVE_BASE + drive->last);
	return DRIVE_GO;
}

SEC("xdp")
int drive_xdp(struct xdp_md *ctx)
{
	int early = drive_prepare(ctx);

	return early == DRIVE_GO ? drive_account(weir_xdp_verdict(ctx, true)) : early;
}

volatile uint16_t drive_tags[2]; /* of the frames to come: outer, inner; 0: none */

/* weir_ingress, behind a NIC that strips the outer VLAN tag: the skb knows it, the frame not. */
SEC("tc")
int drive_tagged(struct __sk_buff *ctx)
{
	if (drive_tags[1])
		bpf_skb_vlan_push(ctx, bpf_htons(WEIR_ETH_VLAN), drive_tags[1]);
	if (drive_tags[0])
		bpf_skb_vlan_push(ctx, bpf_htons(drive_tags[1] ? WEIR_ETH_QINQ : WEIR_ETH_VLAN),
				  drive_tags[0]);
	return weir_tc_verdict(ctx, WEIR_HOOK_TC_INGRESS);
}
