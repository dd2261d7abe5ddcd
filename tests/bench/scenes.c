// SPDX-License-Identifier: GPL-2.0
/*
 * What a policy costs: numbers of limits, kinds of limiters, lists, one limit for all. Policies
 * are texts, put into force as the controller does. Two that are compared are in the two
 * generations at once, so that their rounds can take turns.
 */
#include "suite.h"

#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "controller/generation.h"
#include "weir/place.h"

#define POLICY_BYTES (64 * 1024)
#define OWN_SETS 1024 /* of a sliding limit: room for the sources of BENCH_ROW_1K */
#define QUOTA 100
#define DAY_NS (86400 * WEIR_NS_PER_SEC)

#define BLOCKING "bucket: {rate: 1/d, burst: 1}"
#define ADMITTING "bucket: {rate: 1000000000/s, burst: 1000000}"
#define SERVICE_PORT 8080
#define SERVICE .service = true, .alone = true
#define SYN 0x02
#define ACK 0x10
#define ONE_PORT "match: {proto: udp, to_port: 53}, "

static const struct scene {
	const char *group, *name;
	const char *limit[VERDICTS]; /* what follows the name; NULL: that verdict is not measured */
	unsigned int others;	     /* limits beside it that match other packets */
	bool alone;		     /* compared with the same limit alone */
	enum weir_kind kind;	     /* in place of the text's bucket */
	uint32_t allow, deny;	     /* entries */
	uint16_t tcp_port;	     /* the packets are TCP to it, 0: UDP to 53 */
	uint8_t tcp_flags;
	bool service; /* beside the limit: one at SERVICE_PORT */
} scenes[] = {
#define SCENE(of, as, passes, refuses, ...) \
	{ .group = of, .name = as, .limit = { passes, refuses }, __VA_ARGS__ }
	SCENE("limits", "limits-1", ONE_PORT ADMITTING, ONE_PORT BLOCKING, .alone = true),
	SCENE("limits", "limits-16", ONE_PORT ADMITTING, ONE_PORT BLOCKING, .alone = true,
	      .others = 15),
	SCENE("limits", "limits-256", ONE_PORT ADMITTING, ONE_PORT BLOCKING, .alone = true,
	      .others = 255),
	SCENE("kinds", "bucket", ADMITTING, BLOCKING, .others = 0),
	SCENE("kinds", "sliding", ADMITTING, BLOCKING, .kind = WEIR_KIND_SLIDING),
	SCENE("kinds", "period", ADMITTING, BLOCKING, .kind = WEIR_KIND_PERIOD),
	SCENE("lists", "allow-1k", BLOCKING, NULL, .allow = 1 << 10),
	SCENE("lists", "allow-1m", BLOCKING, NULL, .allow = 1 << 20),
	SCENE("lists", "deny-1k", NULL, ADMITTING, .deny = 1 << 10),
	SCENE("lists", "deny-1m", NULL, ADMITTING, .deny = 1 << 20),
	SCENE("aggregate", "aggregate", "key: none, " ADMITTING, "key: none, " BLOCKING,
	      .others = 0),
	SCENE("services", "svc-udp", ADMITTING, BLOCKING, SERVICE),
	SCENE("services", "svc-ack", ADMITTING, BLOCKING, SERVICE, .tcp_port = SERVICE_PORT,
	      .tcp_flags = ACK),
	SCENE("services", "svc-other", ADMITTING, BLOCKING, SERVICE, .tcp_port = 53,
	      .tcp_flags = SYN),
	SCENE("services", "svc-syn", ADMITTING, BLOCKING, SERVICE, .tcp_port = SERVICE_PORT,
	      .tcp_flags = SYN),
#undef SCENE
};

#define SCENES (sizeof(scenes) / sizeof(scenes[0]))

enum column { COLUMN_PARSE, COLUMN_CLOCK, COLUMN_LIST, COLUMN_ALONE, COLUMN_WEIR, COLUMNS };

static double medians[SCENES][VERDICTS][COLUMNS][BENCH_CPUS_AT_ONCE];

/* ---- set up ---- */

static char *policy_text(const struct scene *scene, enum verdict verdict, bool alone)
{
	char *text = malloc(POLICY_BYTES);
	int used;

	if (!text)
		bench_die(2, "out of memory");
	used = snprintf(text, POLICY_BYTES, "version: 1\nlimits:\n  - {name: it, %s%s}\n",
			strstr(scene->limit[verdict], "key:") ? "" : "key: source, ",
			scene->limit[verdict]);
	for (unsigned int i = 0; !alone && i < scene->others; i++)
		used += snprintf(text + used, POLICY_BYTES - (size_t)used,
				 "  - {name: other-%u, key: source, match: {proto: %s, to_port: "
				 "%u}, " BLOCKING "}\n",
				 i, i & 1 ? "tcp" : "udp", 1000 + i);
	if (!alone && scene->service)
		snprintf(text + used, POLICY_BYTES - (size_t)used,
			 "services:\n  - {name: web, match: {proto: tcp, to_port: %d}}\n",
			 SERVICE_PORT);
	return text;
}

static void own_map(struct bench *bench, const char *outer, uint32_t slot, uint32_t value_size,
		    uint32_t entries)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE | BPF_F_INNER_MAP);
	int outer_fd = bpf_object__find_map_fd_by_name(bench->skeleton->obj, outer);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "bench_own", sizeof(uint32_t), value_size,
				entries, &options);

	if (fd < 0 || bpf_map_update_elem(outer_fd, &slot, &fd, BPF_ANY))
		bench_die(2, "no map of its own in %s", outer);
	close(fd);
}

/* 100 in a window or a period, which is over at once or in a day. */
static void set_kind(struct bench *bench, const struct scene *scene, enum verdict verdict,
		     struct weir_compiled *compiled)
{
	struct weir_limit *limit = &compiled->limits[0];
	uint64_t ticks = (verdict == ADMITTED ? 1000 : DAY_NS) << WEIR_TICK_SHIFT;
	uint32_t slot = limit->slot, places = OWN_SETS * WEIR_WAYS;

	limit->kind = scene->kind;
	compiled->head.plain[WEIR_HOOK_XDP] = 0;
	if (scene->kind == WEIR_KIND_PERIOD) {
		limit->period = (struct weir_period_conf){ .period = ticks, .quota = QUOTA };
		return;
	}
	limit->sliding = (struct weir_sliding_conf){
		.window = ticks,
		.quota = QUOTA,
		.capacity = weir_ring_capacity(QUOTA),
	};
	limit->own_sets = OWN_SETS;
	own_map(bench, "weir_own_ledgers", slot, sizeof(struct weir_set), OWN_SETS);
	own_map(bench, "weir_own_keys", slot, sizeof(struct weir_own_record), places);
	own_map(bench, "weir_rings", slot, sizeof(uint64_t), places * limit->sliding.capacity);
}

/* Returns the generation that has the policy, which is in force. */
static uint32_t apply(struct bench *bench, const struct scene *scene, enum verdict verdict,
		      bool alone)
{
	char *text = policy_text(scene, verdict, alone);
	struct weir_generation generation;
	static const struct weir_compiled_before nothing;
	struct weir_compiled *compiled;
	struct weir_policy *policy;
	struct weir_error err;

	if (weir_policy_load_text(text, strlen(text), "bench", &policy, &err) ||
	    weir_generation_open(&generation, &bench->dataplane, &err))
		bench_die(2, "%s", err.text);
	/* As if nothing had been in force: fresh salts, so that no state is found. */
	if (weir_compile(policy, &nothing, NULL, bench->dataplane.shape.cpus, 0, &compiled,
			 &err))
		bench_die(2, "%s", err.text);
	if (scene->kind != WEIR_KIND_BUCKET)
		set_kind(bench, scene, verdict, compiled);
	if (weir_generation_apply(&generation, compiled, &err))
		bench_die(2, "%s", err.text);
	weir_compiled_free(compiled);
	weir_policy_free(policy);
	weir_generation_close(&generation);
	free(text);
	return bench->dataplane.board->active.generation;
}

static void list_fill(struct bench *bench, const char *name, uint32_t count)
{
	struct {
		uint32_t length, address;
	} key = { .length = 32 };
	int fd = bpf_object__find_map_fd_by_name(bench->skeleton->obj, name);
	uint64_t expires = WEIR_LIST_FOREVER;

	for (uint32_t i = 0; i < count; i++) {
		key.address = bench_address(i);
		if (bpf_map_update_elem(fd, &key, &expires, BPF_ANY))
			bench_die(2, "can't put entry %u into %s", i, name);
	}
}

static void lists_set(struct bench *bench, const struct scene *scene)
{
	uint32_t most = bench->options.quick ? 1 << 10 : UINT32_MAX;
	uint32_t allow = scene->allow < most ? scene->allow : most;
	uint32_t deny = scene->deny < most ? scene->deny : most;

	/* The allow list is what the list fixture looks into. */
	list_fill(bench, "weir_allow4", allow ? allow : deny);
	list_fill(bench, "weir_deny4", deny);
	bench->dataplane.board->lists_live.used =
		(allow ? WEIR_LIST_ALLOW4 : 0) | (deny ? WEIR_LIST_DENY4 : 0);
}

/* What the kernel side knows of it beside the policy; its port is left there, for nobody. */
static void service_set(struct bench *bench)
{
	struct weir_service_policy service = { .name = "web", .protocols = WEIR_SERVICE_TCP };
	uint64_t ports = 1ULL << (SERVICE_PORT & 3) * 16;
	uint32_t word = SERVICE_PORT / 4, zero = 0;

	if (bpf_map__update_elem(bench->skeleton->maps.weir_services, &zero, sizeof(zero), &service,
				 sizeof(service), BPF_ANY) ||
	    bpf_map__update_elem(bench->skeleton->maps.weir_service_ports, &word, sizeof(word),
				 &ports, sizeof(ports), BPF_ANY))
		bench_die(2, "can't write the service: %s", strerror(errno));
}

/* ---- measure ---- */

struct scene_samples {
	double ns[COLUMNS][BENCH_CPUS_AT_ONCE][ROUNDS_MAX];
};

static double weir_once_in(struct bench *bench, const struct scene *scene, uint32_t generation,
			   unsigned int cpus)
{
	double ns;

	bench->dataplane.board->active.generation = generation;
	if (scene->tcp_port)
		bench_frame_set(IPPROTO_TCP, scene->tcp_port, scene->tcp_flags);
	ns = bench_measure_once(bench, WEIR, cpus);
	bench_frame_set(IPPROTO_UDP, 53, 0);
	return ns;
}

static void check_verdicts(struct bench *bench, const struct scene *scene, enum verdict verdict,
			   uint32_t generation)
{
	struct counts before;

	weir_once_in(bench, scene, generation, 1);
	before = bench_count(bench, WEIR);
	weir_once_in(bench, scene, generation, 1);
	if (!bench->options.quick && bench_share_since(bench, WEIR, verdict, before) < SHARE_LEAST)
		bench_die(2, "%s: fewer than %.0f%% of the packets are %s", scene->name,
			  SHARE_LEAST * 100, verdict_names[verdict]);
}

static void print_scene(const struct scene *scene, enum verdict verdict, unsigned int cpus)
{
	const double(*ns)[BENCH_CPUS_AT_ONCE] = medians[scene - scenes][verdict];
	unsigned int at = cpus - 1;

	printf("%-8s %-10s %4u %6.1f %6.1f %6.1f", verdict_names[verdict], scene->name, cpus,
	       ns[COLUMN_PARSE][at], ns[COLUMN_CLOCK][at], ns[COLUMN_LIST][at]);
	if (scene->alone)
		printf(" %6.1f", ns[COLUMN_ALONE][at]);
	else
		printf(" %6s", "-");
	printf(" %6.1f\n", ns[COLUMN_WEIR][at]);
}

static void measure_scene(struct bench *bench, const struct scene *scene, enum verdict verdict)
{
	static struct scene_samples samples;
	uint32_t generations[] = { apply(bench, scene, verdict, true),
				   apply(bench, scene, verdict, false) };
	unsigned int rounds = bench->options.rounds;

	check_verdicts(bench, scene, verdict, generations[0]);
	check_verdicts(bench, scene, verdict, generations[1]);
	for (unsigned int round = 0; round < rounds; round++) {
		for (unsigned int at = 0; at < bench->cpus.count; at++) {
#define SAMPLE(column) samples.ns[column][at][round]
			SAMPLE(COLUMN_PARSE) = bench_measure_once(bench, PARSE, at + 1);
			SAMPLE(COLUMN_CLOCK) = bench_measure_once(bench, CLOCK, at + 1);
			SAMPLE(COLUMN_LIST) = bench_measure_once(bench, LIST, at + 1);
			SAMPLE(COLUMN_ALONE) = weir_once_in(bench, scene, generations[0], at + 1);
			SAMPLE(COLUMN_WEIR) = weir_once_in(bench, scene, generations[1], at + 1);
#undef SAMPLE
		}
	}
	for (unsigned int at = 0; at < bench->cpus.count; at++) {
		for (int i = 0; i < COLUMNS; i++)
			medians[scene - scenes][verdict][i][at] =
				bench_median(samples.ns[i][at], rounds);
		print_scene(scene, verdict, at + 1);
	}
}

void bench_scenes(struct bench *bench)
{
	if (bench_sources_fill(bench->skeleton->bss->bench_sequence, BENCH_ROW_1K))
		bench_die(2, "out of memory");
	puts("verdict  policy     cpus  parse  clock   list  alone   weir");
	for (const struct scene *scene = scenes; scene < scenes + SCENES; scene++) {
		if (!bench_row_wanted(bench->options.rows, scene->group))
			continue;
		lists_set(bench, scene);
		if (scene->service)
			service_set(bench);
		for (enum verdict verdict = 0; verdict < VERDICTS; verdict++)
			if (scene->limit[verdict])
				measure_scene(bench, scene, verdict);
	}
}

/* ---- bars ---- */

static const double (*of(const char *name, enum verdict verdict))[BENCH_CPUS_AT_ONCE]
{
	size_t i = 0;

	while (strcmp(scenes[i].name, name))
		i++;
	return medians[i][verdict];
}

int bench_scenes_judge(const struct bench *bench)
{
	const double(*many)[BENCH_CPUS_AT_ONCE] = of("limits-256", REFUSED);
	const double(*passed)[BENCH_CPUS_AT_ONCE] = of("limits-256", ADMITTED);
	const double(*all)[BENCH_CPUS_AT_ONCE] = of("aggregate", ADMITTED);
	const double(*few)[BENCH_CPUS_AT_ONCE] = of("allow-1k", ADMITTED);
	const double(*million)[BENCH_CPUS_AT_ONCE] = of("allow-1m", ADMITTED);
	const double(*udp)[BENCH_CPUS_AT_ONCE] = of("svc-udp", REFUSED);
	const double(*ack)[BENCH_CPUS_AT_ONCE] = of("svc-ack", REFUSED);
	int missed = 0;

	/* What is not measured is 0, and 0 / 0 is not a number. */
	missed += bench_bar(bench, "limits-256-to-1-refused",
			    many[COLUMN_WEIR][0] / many[COLUMN_ALONE][0], 1.15);
	missed += bench_bar(bench, "limits-256-to-1-admitted",
			    passed[COLUMN_WEIR][0] / passed[COLUMN_ALONE][0], 1.15);
	missed += bench_bar(bench, "aggregate-2-cpus-to-1",
			    all[COLUMN_WEIR][1] / all[COLUMN_WEIR][0], 1.2);
	missed += bench_bar(
		bench, "allow-1k-over-parse-and-list-ns",
		few[COLUMN_WEIR][0] > 0 ? few[COLUMN_WEIR][0] - few[COLUMN_LIST][0] : NAN, 5);
	missed += bench_bar(bench, "allow-1m-over-parse-and-list-ns",
			    million[COLUMN_WEIR][0] > 0
				    ? million[COLUMN_WEIR][0] - million[COLUMN_LIST][0]
				    : NAN,
			    5);
	missed += bench_bar(bench, "service-to-none-other-packet",
			    udp[COLUMN_WEIR][0] / udp[COLUMN_ALONE][0], 1.1);
	missed += bench_bar(bench, "service-to-none-no-syn",
			    ack[COLUMN_WEIR][0] / ack[COLUMN_ALONE][0], 1.1);
	return missed;
}
