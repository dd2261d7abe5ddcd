// SPDX-License-Identifier: GPL-2.0
#include "rig_limits.h"

#include <bpf/bpf.h>
#include <err.h>
#include <unistd.h>

#include "controller/generation.h"
#include "weir/place.h"
#include "weir_test.skel.h"

void rig_begin(struct rig *rig, enum rig_program program, uint32_t keys)
{
	if (!rig->weir && !rig->driver)
		rig_open(rig, program, keys);
	*rig->now_ns = RIG_START_NS;
	rig_put(rig, NULL, 0);
	rig_cut_frames(rig, false);
}

uint64_t rig_salt(void)
{
	static uint64_t salt;

	return ++salt;
}

const struct weir_limit *rig_limit(const struct rig *rig, uint32_t index)
{
	const struct weir_board *board = rig->plane.board;

	return &board->limits[board->active.generation * WEIR_LIMITS_MAX + index];
}

void rig_put(struct rig *rig, const struct weir_limit *limits, uint32_t count)
{
	uint32_t next = rig->plane.board->active.generation ^ 1;
	struct weir_policy_head head = { .limits = count, .sample_ns = WEIR_NS_PER_SEC };

	for (uint32_t i = 0; i < rig->plane.board->policy[next ^ 1].limits; i++)
		weir_dataplane_remember(&rig->plane, rig_limit(rig, i), *rig->now_ns);
	/* One for all: some share a key, to race for it. */
	rig->revision++;
	for (uint32_t i = 0; i < count; i++) {
		struct weir_limit limit = limits[i];

		limit.revision = rig->revision;
		rig->plane.board->limits[next * WEIR_LIMITS_MAX + i] = limit;
		for (int hook = 0; hook < WEIR_HOOKS; hook++)
			head.hooks[hook].word[i / 64] |= 1ULL << (i % 64);
	}
	rig->plane.board->policy[next] = head;
	__atomic_store_n(&rig->plane.board->active.generation, next, __ATOMIC_RELEASE);
}

static void own_map(const struct rig *rig, const char *outer, uint32_t slot, uint32_t value_size,
		    uint32_t entries)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE | BPF_F_INNER_MAP);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "rig_own", sizeof(uint32_t), value_size,
				entries, &options);
	int err = fd < 0 ? fd : bpf_map_update_elem(rig_map_fd(rig, outer), &slot, &fd, BPF_ANY);

	if (err < 0)
		errx(2, "no map of its own in %s: %s", outer, strerror(-err));
	close(fd);
}

void rig_own(struct rig *rig, uint32_t slot, uint32_t sets, uint32_t capacity)
{
	own_map(rig, "weir_own_ledgers", slot, sizeof(struct weir_set), sets);
	own_map(rig, "weir_own_keys", slot, sizeof(struct weir_own_record), sets * WEIR_WAYS);
	if (capacity)
		own_map(rig, "weir_rings", slot, sizeof(uint64_t), sets * WEIR_WAYS * capacity);
}

void rig_bucket(struct weir_limit *limit, double rate, double burst)
{
	limit->kind = WEIR_KIND_BUCKET;
	if (weir_bucket_conf_init(&limit->bucket, rate, burst, 1))
		errx(2, "no bucket: rate %f burst %f", rate, burst);
}

void rig_sliding(struct weir_limit *limit, uint32_t quota, uint64_t window_ns, uint32_t sets)
{
	limit->kind = WEIR_KIND_SLIDING;
	limit->own_sets = sets;
	limit->sliding = (struct weir_sliding_conf){
		.window = RIG_TICKS(window_ns),
		.quota = quota,
		.capacity = weir_ring_capacity(quota),
	};
}

void rig_period(struct weir_limit *limit, uint32_t quota, uint64_t period_ns)
{
	limit->kind = WEIR_KIND_PERIOD;
	limit->period = (struct weir_period_conf){ .period = RIG_TICKS(period_ns),
						   .quota = quota };
}

#define UDP_HEADERS (14 + 20 + 8)
#define TEST_RUN_IFINDEX 1 /* BPF_PROG_TEST_RUN borrows the loopback */

void rig_cut_frames(struct rig *rig, bool on)
{
	struct weir_interface_line *line = &rig->plane.board->interfaces[TEST_RUN_IFINDEX];

	line->frame_bytes[0] = on ? UDP_HEADERS + RIG_PART_BYTES : 0;
	line->ifindex[0] = TEST_RUN_IFINDEX;
}

void rig_frame_of(struct frame *frame, const char *source, uint32_t packets)
{
	rig_frame(frame, source, IPPROTO_UDP, UDP_HEADERS + packets * RIG_PART_BYTES);
}

static int by_time(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

size_t rig_log(const struct rig *rig, uint64_t **out)
{
	uint64_t *times = calloc((size_t)rig->plane.shape.cpus * DRIVE_LOG, sizeof(*times));
	size_t count = 0;

	for (uint32_t cpu = 0; times && cpu < rig->plane.shape.cpus; cpu++) {
		uint64_t logged = rig->drive[cpu].logged;

		if (logged > DRIVE_LOG)
			errx(2, "more packets passed than the log has room for");
		memcpy(times + count, rig->log + (size_t)cpu * DRIVE_LOG, logged * sizeof(*times));
		count += logged;
	}
	if (times)
		qsort(times, count, sizeof(*times), by_time);
	*out = times;
	return count;
}

struct weir_totals rig_totals(const struct rig *rig, uint32_t slot)
{
	return weir_dataplane_totals(&rig->plane, slot);
}

void rig_use(struct rig *rig, const char *program)
{
	struct bpf_program *found = bpf_object__find_program_by_name(rig->weir->obj, program);

	if (!found)
		errx(2, "no program %s", program);
	rig->program_fd = bpf_program__fd(found);
}

int rig_send_skb(const struct rig *rig, const void *frame, uint32_t size, struct __sk_buff *ctx)
{
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = size,
		    .ctx_in = ctx, .ctx_size_in = ctx ? sizeof(*ctx) : 0, .repeat = 1);
	int err = bpf_prog_test_run_opts(rig->program_fd, &options);

	return err ? err : (int)options.retval;
}
