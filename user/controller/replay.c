// SPDX-License-Identifier: GPL-2.0
#include "controller/replay.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>

#include "controller/generation.h"
#include "controller/keys.h"
#include "controller/lists.h"
#include "controller/load.h"
#include "controller/own.h"
#include "weir/packet.h"
#include "weir_test.skel.h" /* the programs on an injected clock, which the kernel tests use too */

#define BASE_NS (1000 * 1000000000ULL) /* the programs' clock begins some time after boot */
#define SPAN_NS_MAX (30 * 365 * 86400 * 1000000000ULL) /* what a clock in ticks can hold */
#define TEST_RUN_IFINDEX 1			       /* BPF_PROG_TEST_RUN borrows the loopback */
#define ETHERNET_BYTES 14
#define CONSUME_EVERY 1024 /* frames, of two events at most: the ring holds 3,276 */

/* ---- the policy ---- */

void weir_replay_reduce(struct weir_policy *policy,
			void (*taken)(void *context, const char *kind, const char *name),
			void *context)
{
	size_t kept = 0;

	for (size_t i = 0; i < policy->service_count; i++)
		taken(context, "service", policy->services[i].name);
	policy->service_count = 0;
	for (size_t i = 0; i < policy->limit_count; i++) {
		struct weir_policy_limit limit = policy->limits[i];

		if (limit.kind == WEIR_POLICY_GATE)
			taken(context, "gate", limit.name);
		else
			/* Swapped, so that all stay the policy's to free. */
			policy->limits[i] = policy->limits[kept], policy->limits[kept++] = limit;
	}
	policy->limit_count = kept;
}

static int put_into_force(struct weir_replay *replay, const struct weir_policy *policy,
			  const struct weir_compiled *compiled, struct weir_error *err)
{
	struct weir_lists lists = { 0 };
	struct weir_lists_plan plan = { 0 }, before = { 0 };
	struct weir_generation generation;
	struct weir_compiled_before now;
	struct weir_own own;
	int code = weir_generation_open(&generation, &replay->dataplane, err);

	if (code)
		return code;
	now = weir_generation_now(&generation);
	code = weir_lists_open(&lists, &replay->dataplane, err);
	if (!code)
		code = weir_lists_plan(&lists, policy, &plan, err);
	if (!code)
		code = weir_own_open(&own, &replay->dataplane, &now, err);
	if (!code)
		code = weir_own_provide(&own, compiled, &now, err);
	if (!code)
		code = weir_lists_apply(&lists, &plan, &before, err);
	if (!code)
		code = weir_generation_apply(&generation, compiled, err);
	weir_lists_plan_free(&plan);
	weir_lists_plan_free(&before);
	weir_lists_close(&lists);
	weir_generation_close(&generation);
	return code;
}

static bool uses(const struct weir_replay *replay, enum weir_hook hook)
{
	return replay->hooks >> hook & 1;
}

static int compile(struct weir_replay *replay, const struct weir_policy *policy,
		   const struct weir_shape *shape, struct weir_compiled **compiled,
		   struct weir_error *err)
{
	static const struct weir_label none[WEIR_LIMITS_MAX];
	const struct weir_compiled_before before = { .labels = none };
	uint32_t slots[WEIR_INTERFACES_MAX];
	int code;

	for (uint32_t i = 0; i < WEIR_INTERFACES_MAX; i++)
		slots[i] = i;
	code = weir_compile(policy, &before, slots, shape->cpus, replay->offset_ns, compiled, err);
	if (code)
		return code;
	/* The XDP program is always there, for the lists. */
	replay->hooks = 1 << WEIR_HOOK_XDP;
	/* Every refusal is an event: that is how they are told apart by key and time. */
	(*compiled)->head.sample_ns = 0;
	for (int hook = 0; hook < WEIR_HOOKS; hook++) {
		for (int word = 0; word < WEIR_BITMAP_WORDS; word++)
			replay->hooks |= (uint32_t) !!(*compiled)->head.hooks[hook].word[word]
					 << hook;
	}
	return 0;
}

/* ---- refusals ---- */

static void mask(uint32_t *to, const uint32_t *address, const struct weir_limit *limit,
		 uint8_t family)
{
	for (int i = 0; i < (family == 4 ? 1 : 4); i++)
		to[i] = address[i] & (family == 4 ? limit->mask4 : limit->mask6[i]);
}

/* The key that a limit counts a refused packet under. */
static struct weir_own_record record_of(const struct weir_limit *limit,
					const struct weir_event *event)
{
	struct weir_own_record record = { .key.slot = limit->slot };
	bool source = limit->key & WEIR_KEY_SOURCE;

	if (!limit->key)
		return record;
	record.key.family = event->family;
	mask(record.key.address, source ? event->source : event->destination, limit, event->family);
	if (source && limit->key & WEIR_KEY_DESTINATION)
		mask(record.peer, event->destination, limit, event->family);
	if (limit->key & WEIR_KEY_SOURCE_PORT)
		record.key.source_port = event->source_port;
	if (limit->key & WEIR_KEY_DESTINATION_PORT)
		record.key.destination_port = event->destination_port;
	if (limit->key & WEIR_KEY_PROTOCOL)
		record.key.protocol = event->protocol;
	return record;
}

static const struct weir_limit *limit_of(const struct weir_replay *replay, uint16_t slot)
{
	const struct weir_board *board = replay->dataplane.board;
	uint32_t generation = board->active.generation & 1;

	for (uint32_t i = 0; i < board->policy[generation].limits; i++) {
		const struct weir_limit *limit = &board->limits[generation * WEIR_LIMITS_MAX + i];

		if (limit->slot == slot)
			return limit;
	}
	return NULL;
}

static int on_event(void *context, void *data, size_t size)
{
	struct weir_replay *replay = context;
	const struct weir_event *event = data;
	const struct weir_limit *limit = limit_of(replay, event->slot);
	uint64_t time_ns = event->now_ns + replay->offset_ns;
	struct weir_own_record record;
	int code;

	(void)size;
	if (!limit)
		return 0;
	if (!replay->limits[event->slot].first_ns)
		replay->limits[event->slot].first_ns = time_ns;
	replay->limits[event->slot].last_ns = time_ns;
	record = record_of(limit, event);
	code = weir_refusals_add(
		&replay->refusals,
		weir_own_record_tag(&record, limit, &replay->dataplane.shape.seeds), &record,
		event->bytes, time_ns);
	if (code)
		replay->failed = code;
	return 0;
}

/* ---- opening ---- */

/* The programs that the hooks need. */
static int prepare(const struct weir_replay *replay, struct weir_test_bpf *programs,
		   const struct weir_shape *shape)
{
	bpf_program__set_autoload(programs->progs.weir_ingress, uses(replay, WEIR_HOOK_TC_INGRESS));
	bpf_program__set_autoload(programs->progs.weir_egress, uses(replay, WEIR_HOOK_TC_EGRESS));
	return weir_dataplane_prepare(programs->obj, shape);
}

static int load(struct weir_replay *replay, const struct weir_shape *shape, struct weir_error *err)
{
	struct weir_test_bpf *programs;
	int code;

	weir_kernel_words_listen();
	weir_kernel_words_clear();
	programs = replay->programs = weir_test_bpf__open();
	if (!programs)
		return weir_error_set(err, -ENOMEM, "can't open weir's own programs: %s",
				      strerror(errno));
	code = prepare(replay, programs, shape);
	if (!code)
		code = weir_test_bpf__load(programs);
	if (code == -EPERM)
		return weir_error_set(err, code,
				      "the kernel lets us load no programs: a capture is tried in "
				      "the kernel, which takes root, or CAP_BPF, CAP_NET_ADMIN and "
				      "CAP_PERFMON");
	if (code)
		return weir_error_set(err, code, "can't load weir's programs: %s (%s)",
				      strerror(-code), weir_kernel_words());
	code = weir_dataplane_map(&replay->dataplane, replay->programs->obj);
	if (code)
		return weir_error_set(err, code, "can't map weir's maps into memory: %s",
				      strerror(-code));
	replay->events = ring_buffer__new(replay->dataplane.events_fd, on_event, replay, NULL);
	return replay->events
		       ? 0
		       : weir_error_set(err, -errno, "can't read refusals: %s", strerror(errno));
}

int weir_replay_open(struct weir_replay *replay, const struct weir_policy *policy, size_t interface,
		     uint64_t start_ns, struct weir_error *err)
{
	struct weir_compiled *compiled = NULL;
	struct weir_interface_line *line;
	struct weir_shape shape;
	int code;

	*replay = (struct weir_replay){ .now_ns = BASE_NS, .base_ns = BASE_NS };
	weir_dataplane_init(&replay->dataplane);
	/* In unsigned arithmetic also for a capture that begins in 1970. */
	replay->offset_ns = start_ns - BASE_NS;
	code = weir_shape_draw(&shape, (uint32_t)policy->ledger.keys);
	if (code)
		return weir_error_set(err, code, "the number of CPUs: %s", strerror(-code));
	code = compile(replay, policy, &shape, &compiled, err);
	if (!code)
		code = load(replay, &shape, err);
	if (!code)
		code = put_into_force(replay, policy, compiled, err);
	weir_compiled_free(compiled);
	if (code) {
		weir_replay_close(replay);
		return code;
	}
	line = &replay->dataplane.board->interfaces[TEST_RUN_IFINDEX];
	line->slot[0] = (uint32_t)interface;
	line->ifindex[0] = TEST_RUN_IFINDEX;
	return 0;
}

void weir_replay_close(struct weir_replay *replay)
{
	ring_buffer__free(replay->events);
	if (replay->dataplane.board)
		weir_dataplane_unmap(&replay->dataplane);
	weir_test_bpf__destroy(replay->programs);
	weir_refusals_free(&replay->refusals);
	*replay = (struct weir_replay){ 0 };
}

/* ---- packets ---- */

/* The clock goes by the capture, and never back. */
static int set_clock(struct weir_replay *replay, const struct weir_capture_packet *packet,
		     struct weir_error *err)
{
	int64_t step = (int64_t)(packet->time_ns - replay->offset_ns - replay->now_ns);

	if (!packet->timed) {
		replay->counts.untimed++;
		step = 0;
	}
	if (step < 0) {
		replay->counts.backwards++;
		step = 0;
	}
	if (replay->now_ns - replay->base_ns + (uint64_t)step > SPAN_NS_MAX)
		return weir_error_set(err, -ERANGE,
				      "packet %llu is more than 30 years after the first: its time "
				      "is wrong",
				      (unsigned long long)replay->counts.packets);
	replay->now_ns += (uint64_t)step;
	replay->programs->bss->weir_injected_now_ns = replay->now_ns;
	return 0;
}

static int run(struct bpf_program *program, const uint8_t *frame, uint32_t size, int *verdict)
{
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = size,
		    .repeat = 1);
	int code = bpf_prog_test_run_opts(bpf_program__fd(program), &options);

	*verdict = (int)options.retval;
	return code;
}

static int consume(struct weir_replay *replay)
{
	replay->unread = 0;
	ring_buffer__consume(replay->events);
	return replay->failed;
}

#define TC_REFUSED 2 /* TC_ACT_SHOT */

/* 1: refused, 0: passed, or -errno. */
static int run_frame(struct weir_replay *replay, bool out, const uint8_t *frame, uint32_t size)
{
	const struct weir_test_bpf *programs = replay->programs;
	int verdict = XDP_PASS, code = 0;
	bool refused;

	if (!out)
		code = run(programs->progs.weir_xdp, frame, size, &verdict);
	refused = verdict != XDP_PASS;
	/* The kernel makes no skb of a frame that is a header alone; no limit would match. */
	if (!code && !refused && size > ETHERNET_BYTES &&
	    uses(replay, out ? WEIR_HOOK_TC_EGRESS : WEIR_HOOK_TC_INGRESS)) {
		code = run(out ? programs->progs.weir_egress : programs->progs.weir_ingress, frame,
			   size, &verdict);
		refused = verdict == TC_REFUSED;
	}
	if (!code && ++replay->unread == CONSUME_EVERY)
		code = consume(replay);
	return code ? code : refused;
}

static bool is_own(const struct weir_replay *replay, const struct weir_packet *packet)
{
	for (size_t i = 0; i < replay->own->count; i++) {
		if (weir_prefix_contains(&replay->own->items[i], packet->family, packet->source))
			return true;
	}
	return false;
}

static bool goes_out(const struct weir_replay *replay, const struct weir_capture_packet *packet,
		     const struct weir_packet *parsed, bool is_ip)
{
	if (replay->own && is_ip)
		return is_own(replay, parsed);
	return packet->direction == WEIR_DIRECTION_OUT;
}

/* Whether headers that limits look at are missing in what was captured. */
static bool lacks_headers(const struct weir_packet *parsed, bool is_ip)
{
	if (!is_ip)
		return true;
	if (parsed->protocol == WEIR_IP_TCP)
		return !(parsed->has & (WEIR_HAS_TCP_FLAGS | WEIR_IS_FRAGMENT));
	if (parsed->protocol == WEIR_IP_UDP || parsed->protocol == WEIR_IP_SCTP)
		return !(parsed->has & (WEIR_HAS_PORTS | WEIR_IS_FRAGMENT));
	return false;
}

/* A packet as frames of the wire: 1 if one of them was refused, 0, or -errno. */
static int run_packet(struct weir_replay *replay, const struct weir_capture_packet *packet,
		      bool out, const struct weir_packet *parsed, bool pad)
{
	uint8_t frame[WEIR_REPLAY_FRAME_MAX] = { 0 };
	uint32_t size = pad ? packet->length : packet->captured, refused = 0;
	uint32_t header = parsed->header_bytes, left, part;
	int code;

	if (size <= sizeof(frame)) {
		memcpy(frame, packet->frame, packet->captured);
		return run_frame(replay, out, frame, size);
	}
	replay->counts.merged++;
	if (!pad || header < ETHERNET_BYTES || header > packet->captured || header > 512)
		header = ETHERNET_BYTES;
	memcpy(frame, packet->frame,
	       packet->captured < sizeof(frame) ? packet->captured : sizeof(frame));
	for (left = size - header; left; left -= part) {
		part = WEIR_REPLAY_FRAME_MAX - header < left ? WEIR_REPLAY_FRAME_MAX - header
							     : left;
		code = run_frame(replay, out, frame, header + part);
		if (code < 0)
			return code;
		refused |= (uint32_t)code;
	}
	return (int)refused;
}

int weir_replay_packet(struct weir_replay *replay, const struct weir_capture_packet *packet,
		       struct weir_error *err)
{
	struct weir_replay_counts *counts = &replay->counts;
	struct weir_packet parsed = { 0 };
	enum weir_parsed what;
	bool out, is_ip;
	int code;

	if (!counts->packets++)
		counts->first_ns = replay->offset_ns + replay->base_ns;
	counts->bytes += packet->length;
	code = set_clock(replay, packet, err);
	if (code)
		return code;
	counts->last_ns = replay->now_ns + replay->offset_ns;
	if (packet->captured < ETHERNET_BYTES) {
		counts->too_short++;
		return 0;
	}
	what = weir_packet_parse(&parsed, packet->frame, packet->frame + packet->captured,
				 WEIR_NO_VLAN);
	is_ip = what == WEIR_PARSED;
	if (packet->captured < packet->length) {
		counts->cut++;
		counts->cut_headers +=
			what == WEIR_MALFORMED || (is_ip && lacks_headers(&parsed, is_ip));
	}
	out = goes_out(replay, packet, &parsed, is_ip);
	counts->out += out;
	counts->in += !out;
	code = run_packet(replay, packet, out, &parsed, what != WEIR_MALFORMED);
	if (code < 0)
		return weir_error_set(err, code, "the kernel can't run packet %llu of %u bytes: %s",
				      (unsigned long long)counts->packets, packet->length,
				      strerror(-code));
	counts->refused += (uint64_t)code;
	return 0;
}

int weir_replay_finish(struct weir_replay *replay, struct weir_error *err)
{
	int code = consume(replay);

	return code ? weir_error_set(err, code, "out of memory for %zu keys",
				     replay->refusals.count)
		    : 0;
}
