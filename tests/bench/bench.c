// SPDX-License-Identifier: GPL-2.0
/*
 * How fast weir is, beside what it could be at best (bare drop, parse and drop) and beside what
 * others write (a textbook limiter): tests/bench/bench.bpf.c has the programs, the same kernel
 * runs them in turn by BPF_PROG_TEST_RUN.
 *
 * This machine is never quiet, so: rounds are interleaved over the programs, medians count,
 * time is that of the thread on its CPU. What is measured is checked: a row whose packets did
 * not get the verdict it is named for is an error.
 */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "suite.h"

#define KEYS (2 * BENCH_SEQUENCE)
#define QUICK_KEYS (64 * 1024)
#define QUICK_REPEAT 2048

static const char *const fixture_names[] = { "drop", "parse", "clock", "list", "textbook", "weir" };
const char *const verdict_names[VERDICTS] = { "admitted", "refused" };

__attribute__((noreturn, format(printf, 2, 3))) void bench_die(int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("bench: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(code);
}

/* ---- set up ---- */

static void load(struct bench *bench)
{
	struct bench_bpf *skeleton = bench_bpf__open();
	struct weir_shape shape;
	int err;

	if (!skeleton)
		bench_die(2, "can't open the programs: %s", strerror(errno));
	bench->skeleton = skeleton;
	err = weir_shape_draw(&shape, bench->options.quick ? QUICK_KEYS : KEYS);
	if (!err)
		err = weir_dataplane_prepare(skeleton->obj, &shape);
	if (!err)
		err = bpf_map__set_max_entries(skeleton->maps.bench_lru, shape.sets * WEIR_WAYS);
	if (!err)
		err = bench_bpf__load(skeleton);
	if (!err)
		err = weir_dataplane_map(&bench->dataplane, skeleton->obj);
	if (err)
		bench_die(2, "can't load the programs: %s (root?)", strerror(-err));
	bench->programs[DROP] = bpf_program__fd(skeleton->progs.bench_drop);
	bench->programs[PARSE] = bpf_program__fd(skeleton->progs.bench_parse);
	bench->programs[CLOCK] = bpf_program__fd(skeleton->progs.bench_clock);
	bench->programs[LIST] = bpf_program__fd(skeleton->progs.bench_list);
	bench->programs[TEXTBOOK] = bpf_program__fd(skeleton->progs.bench_textbook);
	bench->programs[WEIR] = bpf_program__fd(skeleton->progs.bench_weir);
}

static unsigned int verified_insns(int program)
{
	struct bpf_prog_info info = { 0 };
	uint32_t size = sizeof(info);

	return bpf_obj_get_info_by_fd(program, &info, &size) ? 0 : info.verified_insns;
}

/* One limit for every source: a packet a day, or more than any CPU can send. */
static void set_limit(struct bench *bench, enum verdict verdict)
{
	static uint32_t revision;
	struct weir_limit limit = {
		.revision = ++revision,
		.kind = WEIR_KIND_BUCKET,
		.key = WEIR_KEY_SOURCE,
		.mask4 = UINT32_MAX,
		.mask6 = { UINT32_MAX, UINT32_MAX },
	};
	double rate = verdict == REFUSED ? 1.0 / 86400 : 1e9;
	double burst = verdict == REFUSED ? 1 : 1e6;

	if (weir_bucket_conf_init(&limit.bucket, rate, burst, 1))
		bench_die(2, "the bucket refuses rate %g burst %g", rate, burst);
	bench->skeleton->bss->bench_conf = limit.bucket;
	bench->dataplane.board->limits[0] = limit;
	bench->dataplane.board->policy[0] = (struct weir_policy_head){
		.limits = 1,
		.sample_ns = WEIR_NS_PER_SEC,
		.hooks[WEIR_HOOK_XDP].word[0] = 1,
	};
	bench->dataplane.board->policy[0].plain[WEIR_HOOK_XDP] = weir_policy_plain(
		bench->dataplane.board->policy, bench->dataplane.board->limits, WEIR_HOOK_XDP);
}

/* ---- measure ---- */

struct counts bench_count(const struct bench *bench, enum fixture fixture)
{
	struct weir_traffic traffic = weir_dataplane_traffic(&bench->dataplane, 0, WEIR_HOOK_XDP);
	const uint64_t *frames = traffic.frames;
	struct counts counts = { 0 };

	if (fixture == WEIR)
		return (struct counts){
			.passed = frames[WEIR_PATH_LIMITS] + frames[WEIR_PATH_ALLOWED],
			.refused = frames[WEIR_PATH_REFUSED] + frames[WEIR_PATH_DENIED],
			.other = frames[WEIR_PATH_UNMATCHED],
		};
	for (unsigned int i = 0; i < BENCH_CPUS; i++) {
		counts.passed += bench->skeleton->bss->bench_totals[i].passed;
		counts.refused += bench->skeleton->bss->bench_totals[i].refused;
	}
	return counts;
}

double bench_share_since(const struct bench *bench, enum fixture fixture, enum verdict verdict,
			 struct counts before)
{
	struct counts now = bench_count(bench, fixture);
	double passed = (double)(now.passed - before.passed);
	double refused = (double)(now.refused - before.refused);
	double other = (double)(now.other - before.other);

	if (fixture != TEXTBOOK && fixture != WEIR)
		return 1;
	return (verdict == REFUSED ? refused : passed) / (passed + refused + other);
}

double bench_measure_once(struct bench *bench, enum fixture fixture, unsigned int cpus)
{
	double ns = 0;
	int err = bench_run(bench->programs[fixture], &bench->cpus, cpus,
			    bench->options.quick ? QUICK_REPEAT : BENCH_SEQUENCE, &ns);

	if (err)
		bench_die(2, "%s: BPF_PROG_TEST_RUN: %s", fixture_names[fixture], strerror(-err));
	return ns;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double bench_median(double *samples, unsigned int count)
{
	qsort(samples, count, sizeof(*samples), compare);
	return samples[count / 2];
}

struct samples {
	double ns[FIXTURES][BENCH_CPUS_AT_ONCE][ROUNDS_MAX];
};

static void print_row(const struct bench *bench, enum bench_row row, enum verdict verdict,
		      unsigned int cpus, const struct samples *samples)
{
	const double *ns = &bench->ns[row][verdict][0][0];
	unsigned int last = bench->options.rounds - 1;
	double median[FIXTURES];
	const double *sorted = samples->ns[WEIR][cpus - 1];

	for (int i = 0; i < FIXTURES; i++)
		median[i] = ns[i * BENCH_CPUS_AT_ONCE + (int)cpus - 1];
	printf("%-8s %-5s %4u %6.1f %6.1f %6.1f %9.1f %7.1f %8.2f %9.2f   %.1f-%.1f\n",
	       verdict_names[verdict], bench_rows[row].name, cpus, median[DROP], median[PARSE],
	       median[CLOCK], median[TEXTBOOK], median[WEIR], median[WEIR] / median[PARSE],
	       median[WEIR] / median[TEXTBOOK], sorted[0], sorted[last]);
}

/* A whole pass over the sources, twice: the first packet of each is admitted. */
static void warm_up(struct bench *bench, enum verdict verdict)
{
	struct counts before;

	for (enum fixture fixture = TEXTBOOK; fixture < FIXTURES; fixture++) {
		bench_measure_once(bench, fixture, 1);
		before = bench_count(bench, fixture);
		bench_measure_once(bench, fixture, 1);
		if (!bench->options.quick &&
		    bench_share_since(bench, fixture, verdict, before) < SHARE_LEAST)
			bench_die(2, "%s: fewer than %.0f%% of the packets are %s",
				  fixture_names[fixture], SHARE_LEAST * 100,
				  verdict_names[verdict]);
	}
}

static void measure(struct bench *bench, enum bench_row row, enum verdict verdict)
{
	static struct samples samples;
	unsigned int rounds = bench->options.rounds;

	if (bench_sources_fill(bench->skeleton->bss->bench_sequence, row))
		bench_die(2, "out of memory");
	bench_cursors_spread(bench->skeleton->bss->bench_cursors, BENCH_CPUS);
	set_limit(bench, verdict);
	warm_up(bench, verdict);
	for (unsigned int round = 0; round < rounds; round++) {
		bench_sources_shuffle(bench->skeleton->bss->bench_sequence);
		for (unsigned int cpus = 1; cpus <= bench->cpus.count; cpus++)
			for (enum fixture i = 0; i < FIXTURES; i++)
				samples.ns[i][cpus - 1][round] = bench_measure_once(bench, i, cpus);
	}
	for (unsigned int cpus = 1; cpus <= bench->cpus.count; cpus++) {
		for (int i = 0; i < FIXTURES; i++) {
			double *ns = samples.ns[i][cpus - 1];

			bench->ns[row][verdict][i][cpus - 1] = bench_median(ns, rounds);
		}
		print_row(bench, row, verdict, cpus, &samples);
	}
}

/* ---- bars ---- */

bool bench_bar(const struct bench *bench, const char *name, double figure, double limit)
{
	bool reached = figure <= limit;

	if (figure != figure) {
		printf("bar %s - %.2f unmeasured\n", name, limit);
		return false;
	}
	printf("bar %s %.2f %.2f %s\n", name, figure, limit,
	       bench->options.quick ? "unjudged"
	       : reached	    ? "ok"
				    : "short");
	return !reached && !bench->options.quick;
}

static int judge(const struct bench *bench)
{
	const double(*hot)[BENCH_CPUS_AT_ONCE] = bench->ns[BENCH_ROW_1][REFUSED];
	const double(*million)[BENCH_CPUS_AT_ONCE] = bench->ns[BENCH_ROW_1M][REFUSED];
	struct weir_shape shape;
	int missed = 0;

	if (weir_shape_draw(&shape, WEIR_KEYS_DEFAULT))
		bench_die(2, "can't draw a shape: %s", strerror(errno));
	/* What is not measured is 0, and 0 / 0 is not a number. */
	missed += bench_bar(bench, "hot-refused-over-parse-and-clock-ns",
			    hot[WEIR][0] > 0 ? hot[WEIR][0] - hot[CLOCK][0] : 0.0 / 0.0, 15);
	missed += bench_bar(bench, "hot-refused-2-cpus-slowdown-to-drop",
			    hot[WEIR][1] / hot[WEIR][0] / (hot[DROP][1] / hot[DROP][0]), 1.25);
	missed += bench_bar(bench, "1m-refused-to-textbook",
			    million[WEIR][0] / million[TEXTBOOK][0], 0.7);
	missed += bench_bar(bench, "1m-refused-to-textbook-2-cpus",
			    million[WEIR][1] / million[TEXTBOOK][1], 0.7);
	missed += bench_scenes_judge(bench);
	missed += bench_bar(bench, "bytes-a-key",
			    (double)weir_shape_bytes(&shape) / (shape.sets * WEIR_WAYS), 64);
	return missed ? 1 : 0;
}

/* ---- command line ---- */

static void usage(FILE *out)
{
	fputs("usage: bench [--rounds N] [--rows NAME,...] [--quick]\n"
	      "  --rounds N   rounds a row, 1 to 99 (default 7): the median counts\n"
	      "  --rows LIST  of 1,1k,128k,1m,zipf," SCENE_GROUPS " (default: all)\n"
	      "  --quick      one round of few packets: shows that it runs, judges nothing\n",
	      out);
}

static void check_rows(const char *list)
{
	char *copy = strdup(list), *rest = copy;

	for (const char *name = strsep(&rest, ","); name; name = strsep(&rest, ",")) {
		int row = 0;

		while (row < BENCH_ROWS && strcmp(bench_rows[row].name, name))
			row++;
		if (row == BENCH_ROWS && (!*name || !bench_row_wanted(SCENE_GROUPS, name)))
			bench_die(64,
				  "--rows '%s': no row '%s': give some of "
				  "1,1k,128k,1m,zipf," SCENE_GROUPS,
				  list, name);
	}
	free(copy);
}

bool bench_row_wanted(const char *list, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if (!strncmp(at, name, length) && (!at[length] || at[length] == ','))
			return true;
	return !list;
}

static struct options parse_options(int argc, char **argv)
{
	static const struct option names[] = { { "rounds", required_argument, NULL, 'n' },
					       { "rows", required_argument, NULL, 'r' },
					       { "quick", no_argument, NULL, 'q' },
					       { "help", no_argument, NULL, 'h' },
					       { 0 } };
	struct options options = { .rounds = 7 };
	char *end;
	int name;

	while ((name = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (name) {
		case 'n':
			options.rounds = (unsigned int)strtoul(optarg, &end, 10);
			if (*end || !*optarg || options.rounds < 1 || options.rounds > ROUNDS_MAX)
				bench_die(64, "--rounds '%s': give a whole number from 1 to %d",
					  optarg, ROUNDS_MAX);
			break;
		case 'r':
			check_rows(optarg);
			options.rows = optarg;
			break;
		case 'q':
			options.quick = true;
			options.rounds = 1;
			break;
		default:
			usage(name == 'h' ? stdout : stderr);
			exit(name == 'h' ? 0 : 64);
		}
	}
	if (optind < argc)
		bench_die(64, "unknown '%s': see --help", argv[optind]);
	return options;
}

int main(int argc, char **argv)
{
	static struct bench bench;
	int code;

	bench.options = parse_options(argc, argv);
	setvbuf(stdout, NULL, _IOLBF, 0);
	bench_cpus_pick(&bench.cpus);
	load(&bench);
	printf("ns a packet, medians of %u rounds; verified instructions: %u\n",
	       bench.options.rounds, verified_insns(bench.programs[WEIR]));
	puts("verdict  row   cpus   drop  parse  clock  textbook    weir  w/parse  w/textbk   "
	     "weir least-most");
	for (enum verdict verdict = 0; verdict < VERDICTS; verdict++)
		for (enum bench_row row = 0; row < BENCH_ROWS; row++)
			if (bench_row_wanted(bench.options.rows, bench_rows[row].name))
				measure(&bench, row, verdict);
	bench_scenes(&bench);
	code = judge(&bench);
	weir_dataplane_unmap(&bench.dataplane);
	bench_bpf__destroy(bench.skeleton);
	return code;
}
