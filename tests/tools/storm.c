// SPDX-License-Identifier: GPL-2.0
/*
 * storm: frames into a veth pair as fast as one CPU makes and takes them, a hundred times faster
 * than sockets do: an XDP program sends them (live frames of BPF_PROG_TEST_RUN, redirected). The
 * sources come in rounds, each once a round. The far end must have an XDP program, or GRO on.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <net/if.h>

#include "frame.h"
#include "storm.skel.h"

#define BATCH 64
#define AT_ONCE (BATCH * 1024)

static const char usage[] =
	"usage: storm -i IFACE --to ADDR --mac MAC --from ADDR --sources N --seconds S\n"
	"             [--frames N]\n"
	"UDP over IPv4, 60 bytes, at most 16777216 sources. Ends after S seconds or N frames.\n"
	"One line of JSON at the end.\n";

static struct {
	const char *interface;
	struct frame_spec spec;
	uint64_t sources, duration_ns, frames;
} run = { .frames = UINT64_MAX };

static void parse(const char *name, char *value)
{
	uint8_t *mac = run.spec.to_mac;

	if (!strcmp(name, "-i"))
		run.interface = value;
	else if (!strcmp(name, "--to"))
		run.spec.destination = tool_address(name, value);
	else if (!strcmp(name, "--from"))
		run.spec.source = tool_address(name, value);
	else if (!strcmp(name, "--sources"))
		run.sources = tool_number(name, value, 1, 1 << 24);
	else if (!strcmp(name, "--seconds"))
		run.duration_ns = tool_seconds(name, value);
	else if (!strcmp(name, "--frames"))
		run.frames = tool_number(name, value, 1, 1ULL << 40);
	else if (strcmp(name, "--mac"))
		die(TOOL_USAGE, "unknown '%s'\n%s", name, usage);
	else if (sscanf(value, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0], &mac[1], &mac[2], &mac[3],
			&mac[4], &mac[5]) != 6)
		die(TOOL_USAGE, "--mac '%s': give six bytes as 02:00:00:00:00:01", value);
}

static struct storm_bpf *load(const struct frame *frame, uint32_t ifindex)
{
	struct storm_bpf *programs = storm_bpf__open();
	uint32_t first = ntohl(run.spec.source.s6_addr32[3]);

	if (!programs)
		die(TOOL_SYSTEM, "can't open the programs: %s", strerror(errno));
	programs->rodata->storm_ifindex = ifindex;
	programs->rodata->storm_first = first;
	programs->rodata->storm_sources = (uint32_t)run.sources;
	programs->rodata->storm_sum = (uint32_t)frame->ip_sum;
	if (storm_bpf__load(programs))
		die(TOOL_SYSTEM, "can't load the programs: %s", strerror(errno));
	return programs;
}

int main(int argc, char **argv)
{
	static struct frame frame;
	struct xdp_md context = { 0 };
	struct storm_bpf *programs;
	uint64_t start_ns, now_ns;
	uint32_t ifindex;
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame.bytes, .ctx_in = &context,
		    .ctx_size_in = sizeof(context), .repeat = AT_ONCE, .batch_size = BATCH,
		    .flags = BPF_F_TEST_XDP_LIVE_FRAMES);

	tool_setup();
	tool_options(argc, argv, usage, parse);
	if (!run.interface || !run.sources || !run.duration_ns ||
	    !IN6_IS_ADDR_V4MAPPED(&run.spec.source) || !IN6_IS_ADDR_V4MAPPED(&run.spec.destination))
		die(TOOL_USAGE, "%s", usage);
	tool_require_private_net(run.interface);
	ifindex = if_nametoindex(run.interface);
	if (!ifindex)
		die(TOOL_SYSTEM, "-i '%s': there is no such interface", run.interface);
	run.spec.protocol = IPPROTO_UDP;
	run.spec.to_port = 9;
	frame_build(&frame, &run.spec);
	programs = load(&frame, ifindex);
	context.ingress_ifindex = ifindex;
	context.data_end = options.data_size_in = frame.size;

	start_ns = now_ns = tool_now_ns();
	while (!tool_stopped && now_ns < start_ns + run.duration_ns &&
	       programs->bss->storm_sent < run.frames) {
		if (bpf_prog_test_run_opts(bpf_program__fd(programs->progs.storm_send), &options))
			die(TOOL_SYSTEM, "the kernel doesn't run live frames: %s", strerror(errno));
		now_ns = tool_now_ns();
	}
	printf("{\"sent\": %" PRIu64 ", \"took_ns\": %" PRIu64 "}\n",
	       (uint64_t)programs->bss->storm_sent, now_ns - start_ns);
	storm_bpf__destroy(programs);
	return 0;
}
