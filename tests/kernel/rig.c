// SPDX-License-Identifier: GPL-2.0
#include "rig.h"

#include <bpf/bpf.h>
#include <err.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include "drive.skel.h"
#include "weir_test.skel.h"

static struct bpf_object *object_of(const struct rig *rig)
{
	return rig->weir ? rig->weir->obj : rig->driver->obj;
}

static void *map_memory(struct bpf_map *map)
{
	size_t bytes = (size_t)bpf_map__value_size(map) * bpf_map__max_entries(map);
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	if (at == MAP_FAILED)
		errx(2, "mmap of %s: %s", bpf_map__name(map), strerror(errno));
	return at;
}

static void unmap_memory(void *at, struct bpf_map *map)
{
	munmap(at, (size_t)bpf_map__value_size(map) * bpf_map__max_entries(map));
}

static void open_driver(struct rig *rig, const struct weir_shape *shape, bool tagged)
{
	rig->driver = drive_bpf__open();
	if (!rig->driver || weir_dataplane_prepare(rig->driver->obj, shape))
		errx(2, "can't open the driver: %s", strerror(errno));
	bpf_map__set_max_entries(rig->driver->maps.drive_cpus, shape->cpus);
	bpf_map__set_max_entries(rig->driver->maps.drive_verdicts, shape->cpus * DRIVE_SOURCES);
	bpf_map__set_max_entries(rig->driver->maps.drive_log, shape->cpus * DRIVE_LOG);
	bpf_program__set_autoload(rig->driver->progs.drive_xdp, !tagged);
	bpf_program__set_autoload(rig->driver->progs.drive_tagged, tagged);
	if (drive_bpf__load(rig->driver))
		errx(2, "can't load the driver: %s (is this root?)", strerror(errno));
	rig->program_fd = bpf_program__fd(tagged ? rig->driver->progs.drive_tagged :
						   rig->driver->progs.drive_xdp);
	rig->now_ns = &rig->driver->bss->weir_injected_now_ns;
	rig->drive = map_memory(rig->driver->maps.drive_cpus);
	rig->verdicts = map_memory(rig->driver->maps.drive_verdicts);
	rig->log = map_memory(rig->driver->maps.drive_log);
}

static void open_weir(struct rig *rig, const struct weir_shape *shape, enum rig_program program)
{
	bool skbs = program == RIG_HOOKS, mute = program == RIG_MUTE;

	rig->weir = weir_test_bpf__open();
	if (!rig->weir || weir_dataplane_prepare(rig->weir->obj, shape))
		errx(2, "can't open weir's programs: %s", strerror(errno));
	bpf_program__set_autoload(rig->weir->progs.weir_xdp, !mute);
	bpf_program__set_autoload(rig->weir->progs.weir_xdp_mute, mute);
	bpf_program__set_autoload(rig->weir->progs.weir_ingress, skbs);
	bpf_program__set_autoload(rig->weir->progs.weir_egress, skbs);
	if (weir_test_bpf__load(rig->weir))
		errx(2, "can't load weir's programs: %s (is this root?)", strerror(errno));
	rig->program_fd = bpf_program__fd(mute ? rig->weir->progs.weir_xdp_mute :
						 rig->weir->progs.weir_xdp);
	rig->now_ns = &rig->weir->bss->weir_injected_now_ns;
}

void rig_open(struct rig *rig, enum rig_program program, uint32_t keys)
{
	struct weir_shape shape;
	int err = weir_shape_draw(&shape, keys);

	*rig = (struct rig){ 0 };
	if (err)
		errx(2, "no shape for %u keys: %s", keys, strerror(-err));
	if (program == RIG_DRIVE || program == RIG_TAGGED)
		open_driver(rig, &shape, program == RIG_TAGGED);
	else
		open_weir(rig, &shape, program);
	err = weir_dataplane_map(&rig->plane, object_of(rig));
	if (err)
		errx(2, "can't map the maps: %s", strerror(-err));
	*rig->now_ns = RIG_START_NS;
}

void rig_tags(struct rig *rig, uint16_t outer, uint16_t inner)
{
	rig->driver->bss->drive_tags[0] = outer;
	rig->driver->bss->drive_tags[1] = inner;
}

void rig_close(struct rig *rig)
{
	weir_dataplane_unmap(&rig->plane);
	if (rig->driver) {
		unmap_memory(rig->drive, rig->driver->maps.drive_cpus);
		unmap_memory(rig->verdicts, rig->driver->maps.drive_verdicts);
		unmap_memory(rig->log, rig->driver->maps.drive_log);
		drive_bpf__destroy(rig->driver);
	}
	weir_test_bpf__destroy(rig->weir);
	*rig = (struct rig){ 0 };
}

static void empty(const struct rig *rig, const char *name)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object_of(rig), name);
	void *at = map_memory(map);

	memset(at, 0, (size_t)bpf_map__value_size(map) * bpf_map__max_entries(map));
	unmap_memory(at, map);
}

void rig_reset(struct rig *rig)
{
	empty(rig, "weir_ledger");
	empty(rig, "weir_front");
	empty(rig, "weir_cpus");
	*rig->now_ns = RIG_START_NS;
}

int rig_map_fd(const struct rig *rig, const char *name)
{
	return bpf_object__find_map_fd_by_name(object_of(rig), name);
}

int rig_set(struct rig *rig, const struct rig_limit *spec)
{
	uint32_t next = rig->plane.board->active.generation ^ 1;
	struct weir_policy_head head = { .limits = 1, .sample_ns = WEIR_NS_PER_SEC };
	struct weir_limit limit = {
		.salt = spec->salt,
		.revision = ++rig->revision,
		.flags = spec->flags,
		.key = spec->key,
		.mask4 = UINT32_MAX,
		.mask6 = { UINT32_MAX, UINT32_MAX },
	};
	int err = weir_bucket_conf_init(&limit.bucket, spec->rate, spec->burst,
					spec->grain ? spec->grain : 1);

	if (err)
		return err;
	head.hooks[WEIR_HOOK_XDP].word[0] = 1;
	weir_dataplane_remember(&rig->plane,
				&rig->plane.board->limits[(next ^ 1) * WEIR_LIMITS_MAX],
				*rig->now_ns);
	rig->plane.board->limits[next * WEIR_LIMITS_MAX] = limit;
	if (!spec->long_way)
		head.plain[WEIR_HOOK_XDP] =
			weir_policy_plain(&head, &rig->plane.board->limits[next * WEIR_LIMITS_MAX],
					  WEIR_HOOK_XDP);
	rig->plane.board->policy[next] = head;
	__atomic_store_n(&rig->plane.board->active.generation, next, __ATOMIC_RELEASE);
	return 0;
}

/* A repeated run waits some 20 ms before it starts: worth it from so many packets on. */
#define REPEAT_FROM 3000

int rig_send(const struct rig *rig, const void *frame, uint32_t size, uint32_t repeat)
{
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = size,
		    .repeat = repeat >= REPEAT_FROM ? repeat : 1);
	uint32_t runs = repeat >= REPEAT_FROM ? 1 : repeat;
	int err = 0;

	for (uint32_t i = 0; i < runs && !err; i++)
		err = bpf_prog_test_run_opts(rig->program_fd, &options);
	return err ? err : (int)options.retval;
}

/* Runs of the driver that do nothing cost 10 ns: enough of them to outlast the other's setup. */
#define IDLE_RUNS 20000000

/* This CPU's share: until its driver has sent what it is to send. */
static int drive_here(const struct rig *rig, int cpu, uint64_t packets)
{
	const volatile uint64_t *sent = &rig->drive[cpu].sent;
	uint32_t idle = rig->drive[cpu].wanted > 1 ? IDLE_RUNS : 0;
	struct frame frame;

	rig_frame(&frame, "10.0.0.0", IPPROTO_UDP, 0);
	for (int run = 0; run < 20 && *sent < rig->drive[cpu].until; run++) {
		int verdict = rig_send(rig, frame.bytes, frame.size, (uint32_t)packets + idle);

		if (verdict < 0)
			return verdict;
	}
	return *sent < rig->drive[cpu].until ? -ETIMEDOUT : 0;
}

static void set_goal(struct rig *rig, uint64_t packets, uint32_t cpus)
{
	for (uint32_t cpu = 0; cpu < rig->plane.shape.cpus; cpu++) {
		rig->drive[cpu].until = rig->drive[cpu].sent + packets;
		rig->drive[cpu].wanted = cpus;
		rig->drive[cpu].here = 0;
	}
	rig->driver->bss->drive_arrived = 0;
}

int rig_drive(struct rig *rig, uint64_t packets)
{
	cpu_set_t before;
	int cpus[2] = { 0 };
	int err;

	sched_getaffinity(0, sizeof(before), &before);
	rig_cpus(cpus);
	err = rig_pin(cpus[0]);
	set_goal(rig, packets, 1);
	if (!err)
		err = drive_here(rig, cpus[0], packets);
	sched_setaffinity(0, sizeof(before), &before);
	return err;
}

int rig_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

int rig_cpus(int cpus[2])
{
	cpu_set_t set;
	int found = 0;

	if (sched_getaffinity(0, sizeof(set), &set))
		return -errno;
	for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++)
		if (CPU_ISSET(cpu, &set))
			cpus[found++] = cpu;
	return found == 2 ? 0 : -ENODEV;
}

struct half {
	const struct rig *rig;
	uint64_t packets;
	int cpu;
	int result;
};

static void *drive_half(void *argument)
{
	struct half *half = argument;

	half->result = rig_pin(half->cpu);
	if (!half->result)
		half->result = drive_here(half->rig, half->cpu, half->packets);
	return NULL;
}

int rig_drive_both(struct rig *rig, uint64_t packets, void (*meanwhile)(struct rig *rig))
{
	struct half halves[2];
	pthread_t threads[2];
	int cpus[2];
	int err = rig_cpus(cpus);

	if (err)
		return err;
	set_goal(rig, packets, 2);
	for (int i = 0; i < 2; i++) {
		halves[i] = (struct half){ .rig = rig, .packets = packets, .cpu = cpus[i] };
		if (pthread_create(&threads[i], NULL, drive_half, &halves[i]))
			errx(2, "can't start a thread");
	}
	if (meanwhile)
		meanwhile(rig);
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		err = halves[i].result < 0 ? halves[i].result : err;
	}
	return err;
}

void rig_plan(struct rig *rig, const struct drive_cpu *plan)
{
	uint32_t cpus = rig->plane.shape.cpus;

	for (uint32_t cpu = 0; cpu < cpus; cpu++)
		rig->drive[cpu] = *plan;
	memset(rig->verdicts, 0, sizeof(*rig->verdicts) * DRIVE_SOURCES * cpus);
}

struct drive_verdict rig_verdict(const struct rig *rig, uint32_t source)
{
	struct drive_verdict sum = { 0 };

	for (uint32_t cpu = 0; cpu < rig->plane.shape.cpus; cpu++) {
		const struct drive_verdict *one = &rig->verdicts[cpu * DRIVE_SOURCES + source];

		sum.passed += one->passed;
		sum.refused += one->refused;
	}
	return sum;
}

struct rig_sum rig_sum(const struct rig *rig)
{
	struct rig_sum sum = { 0 };

	for (size_t i = 0; i < (size_t)rig->plane.shape.cpus * DRIVE_SOURCES; i++) {
		sum.passed += rig->verdicts[i].passed;
		sum.refused += rig->verdicts[i].refused;
	}
	return sum;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

long rig_ledger_check(const struct rig *rig)
{
	size_t places = (size_t)rig->plane.shape.sets * WEIR_WAYS;
	uint64_t *tags = calloc(places, sizeof(*tags));
	long count = 0;
	bool wrong = !tags;

	for (size_t i = 0; i < places && !wrong; i++) {
		const struct weir_set *set = &rig->plane.ledger[i / WEIR_WAYS];

		wrong = set->state[i % WEIR_WAYS] == WEIR_STATE_BUSY;
		if (set->tag[i % WEIR_WAYS])
			tags[count++] = set->tag[i % WEIR_WAYS];
	}
	if (!wrong)
		qsort(tags, (size_t)count, sizeof(*tags), by_value);
	for (long i = 0; i < count && !wrong; i++)
		wrong = !(tags[i] & WEIR_TAG_CONFIRMED) || (i && tags[i] == tags[i - 1]);
	free(tags);
	return wrong ? -1 : count;
}

uint32_t rig_ledger_taken(const struct rig *rig)
{
	uint64_t now_ticks = *rig->now_ns << WEIR_TICK_SHIFT;
	uint32_t taken = 0;

	for (uint32_t i = 0; i < rig->plane.shape.sets; i++)
		for (int way = 0; way < WEIR_WAYS; way++)
			taken += !weir_neutral(rig->plane.ledger[i].state[way], now_ticks);
	return taken;
}

void rig_frame(struct frame *frame, const char *source, uint8_t protocol, uint32_t size)
{
	bool ipv6 = strchr(source, ':');
	struct frame_spec spec = {
		.to_mac = { 2, 'w', 'e', 'i', 'r', 0 },
		.to_port = 53,
		.protocol = protocol,
		.size = size,
	};
	char text[64];

	snprintf(text, sizeof(text), "%s%s", ipv6 ? "" : "::ffff:", source);
	if (inet_pton(AF_INET6, text, &spec.source) != 1)
		errx(2, "no address: %s", source);
	inet_pton(AF_INET6, ipv6 ? "2001:db8:ffff::1" : "::ffff:192.0.2.1", &spec.destination);
	frame_build(frame, &spec);
	frame_set_source(frame, frame->bytes, &spec.source, 40000);
}
