// SPDX-License-Identifier: GPL-2.0
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "controller/metrics.h"
#include "controller/metrics_text.h"
#include "fake_dataplane.h"
#include "services_world.h"

#define NOW_NS 1000000000000ULL
#define SETS 65536U

static struct weir_dataplane fake;
static struct weir_interface_status interface;
static struct weir_view view;
static struct weir_metrics metrics;
static struct world world;

/* The limits of `head` on slots of their own, two services, an interface. */
static void setup(void)
{
	static const char *const names[] = { "rate", "slow", "wide", "conns" };

	make(&world);
	load(&world, web, api, 0);
	fake_dataplane_make(&fake, SETS, 64);
	for (uint16_t i = 0; i < 4; i++)
		fake_limit_add(&fake, names[i], "", (uint16_t)(i + 3));
	interface = (struct weir_interface_status){ .name = "eth0",
						    .slot = 2,
						    .attached = WEIR_ATTACHED_GENERIC };
	view = (struct weir_view){ .dataplane = &fake,
				   .interfaces = &interface,
				   .interface_count = 1,
				   .services = world.services,
				   .live = true,
				   .now_ns = NOW_NS };
	metrics = (struct weir_metrics){ .view = &view,
					 .policy = world.policy,
					 .version = "0.0.7",
					 .started_ns = 5000000000ULL };
}

static void teardown(void)
{
	fake_dataplane_free(&fake);
	unmake(&world);
}

static char *printed(void)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	weir_metrics_print(&metrics, out);
	fclose(out);
	return text;
}

/* Whether there is exactly this line. */
static bool has(const char *text, const char *line)
{
	size_t length = strlen(line);

	for (const char *at = text; (at = strstr(at, line)); at++) {
		if ((at == text || at[-1] == '\n') && at[length] == '\n')
			return true;
	}
	printf("  no line: %s\n", line);
	return false;
}

static bool prints(const char *line)
{
	char *text = printed();
	bool found = has(text, line);

	free(text);
	return found;
}

/* ---- values ---- */

static void totals_are_of_all_cpus(void)
{
	setup();
	fake.cpus[0].totals[3] = (struct weir_totals){ .passed_packets = 5, .refused_bytes = 7 };
	fake.cpus[1].totals[3] = (struct weir_totals){ .passed_packets = 10,
						       .would_refuse_packets = 3,
						       .contended_packets = 2 };
	fake.cpus[1].totals[6].refused_packets = UINT64_MAX;
	fake.cpus[0].traffic[2][WEIR_HOOK_TC_EGRESS].bytes[WEIR_PATH_DENIED] = 1500;
	fake.cpus[1].traffic[2][WEIR_HOOK_TC_EGRESS].bytes[WEIR_PATH_DENIED] = 60;
	fake.cpus[1].sampler.lost = 4;
	CU_ASSERT(prints("weir_limit_admitted_packets_total{limit=\"rate\"} 15"));
	CU_ASSERT(prints("weir_limit_refused_bytes_total{limit=\"rate\"} 7"));
	CU_ASSERT(prints("weir_limit_would_refuse_packets_total{limit=\"rate\"} 3"));
	CU_ASSERT(prints("weir_limit_contended_packets_total{limit=\"rate\"} 2"));
	CU_ASSERT(prints("weir_limit_admitted_packets_total{limit=\"slow\"} 0"));
	/* No double on the way: every digit is there. */
	CU_ASSERT(prints("weir_limit_refused_packets_total{limit=\"conns\"} "
			 "18446744073709551615"));
	CU_ASSERT(prints("weir_interface_bytes_total{interface=\"eth0\",hook=\"tc-egress\","
			 "path=\"denied\"} 1560"));
	CU_ASSERT(prints("weir_interface_attached{interface=\"eth0\",mode=\"generic\"} 1"));
	CU_ASSERT(prints("weir_interface_attached{interface=\"eth0\",mode=\"native\"} 0"));
	CU_ASSERT(prints("weir_events_lost_total 4"));
	CU_ASSERT(prints("process_start_time_seconds 5"));
	teardown();
}

static void settings_are_in_base_units(void)
{
	setup();
	CU_ASSERT(prints("weir_limit_rate{limit=\"slow\"} 10"));
	CU_ASSERT(prints("weir_limit_rate{limit=\"wide\"} 10000000"));
	CU_ASSERT(prints("weir_limit_connections_max{limit=\"conns\"} 20"));
	CU_ASSERT(prints("weir_limit_info{limit=\"rate\",kind=\"bucket\",key=\"source/32/64\","
			 "unit=\"packets\",mode=\"enforce\"} 1"));
	world.policy->limits[1].bucket.rate = (struct weir_rate){ .amount = UINT64_MAX };
	CU_ASSERT(prints("weir_limit_rate{limit=\"slow\"} +Inf"));
	world.policy->limits[1].bucket.rate = (struct weir_rate){ 0 };
	CU_ASSERT(prints("weir_limit_rate{limit=\"slow\"} 0"));
	world.policy->limits[3].gate.limit = WEIR_POLICY_UNLIMITED;
	CU_ASSERT(prints("weir_limit_connections_max{limit=\"conns\"} +Inf"));
	teardown();
}

static void gates_and_reloads(void)
{
	const struct weir_connection_counts counts = { .entered = 12, .left = 9, .recounted = 1 };
	char *text, build[64];

	setup();
	text = printed();
	CU_ASSERT_PTR_NULL(strstr(text, "\nweir_gate_connections_entered_total "));
	free(text);
	metrics.connections = &counts;
	metrics.reloads = 3;
	metrics.reloads_refused = 1;
	CU_ASSERT(prints("weir_gate_connections_entered_total 12"));
	CU_ASSERT(prints("weir_gate_connections_left_total 9"));
	CU_ASSERT(prints("weir_gate_connections_recounted_total 1"));
	CU_ASSERT(prints("weir_reloads_total{result=\"applied\"} 3"));
	CU_ASSERT(prints("weir_reloads_total{result=\"refused\"} 1"));
	snprintf(build, sizeof(build), "weir_build_info{version=\"0.0.7\",abi=\"%d\"} 1",
		 WEIR_ABI_VERSION);
	CU_ASSERT(prints(build));
	teardown();
}

static void services_and_their_loops(void)
{
	struct weir_error err;

	setup();
	for (int i = 0; i < 30; i++)
		weir_services_tick(world.services, i * 100 * MS);
	world.counts[0] = (struct weir_service_counts){ .attempts = 1000,
							.failure = 900,
							.success = 50,
							.dropped = 4,
							.response_count = 50,
							.response_ns = 50 * 7 * MS,
							.in_flight = 46 };
	world.counts[0].response[weir_response_slot(7 * MS)] = 49;
	world.counts[0].response[WEIR_RESPONSE_SLOTS - 1] = 1;
	weir_services_tick(world.services, 3 * SECOND);
	weir_services_freeze(world.services, "web", "governor", true, &err);
	CU_ASSERT(prints("weir_service_attempts_total{service=\"web\"} 1000"));
	CU_ASSERT(prints("weir_service_failed_total{service=\"web\"} 900"));
	CU_ASSERT(prints("weir_service_in_flight{service=\"web\"} 46"));
	/* 2^22 and 2^23 ns are on both sides of 7 ms. */
	CU_ASSERT(prints("weir_service_response_seconds_bucket{service=\"web\",le=\"0.004194304\"}"
			 " 0"));
	CU_ASSERT(prints("weir_service_response_seconds_bucket{service=\"web\",le=\"0.008388608\"}"
			 " 49"));
	CU_ASSERT(prints("weir_service_response_seconds_bucket{service=\"web\",le=\"+Inf\"} 50"));
	CU_ASSERT(prints("weir_service_response_seconds_count{service=\"web\"} 50"));
	CU_ASSERT(prints("weir_service_response_seconds_sum{service=\"web\"} 0.35"));
	CU_ASSERT(prints("weir_service_shedder_ceiling{service=\"web\"} +Inf"));
	CU_ASSERT(prints("weir_service_loop_frozen{service=\"web\",loop=\"governor\"} 1"));
	CU_ASSERT(prints("weir_service_loop_frozen{service=\"web\",loop=\"breaker\"} 0"));
	CU_ASSERT(prints("weir_service_governor_offer{service=\"api\",limit=\"conns\"} 20"));
	CU_ASSERT(prints("weir_service_governor_floor{service=\"web\",limit=\"rate\"} 10"));
	teardown();
}

/* ---- the format ---- */

static void labels_are_escaped(void)
{
	setup();
	strcpy(interface.name, "a\"\\<b>\n{}");
	CU_ASSERT(prints("weir_interface_attached{interface=\"a\\\"\\\\<b>\\n{}\","
			 "mode=\"native\"} 0"));
	teardown();
}

static void numbers_that_are_none_have_their_words(void)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	weir_metric_value(out, "a", NULL, INFINITY);
	weir_metric_value(out, "b", WEIR_LABELS("c", "d"), -INFINITY);
	weir_metric_value(out, "e", NULL, NAN);
	weir_metric_value(out, "f", NULL, 0.1);
	fclose(out);
	CU_ASSERT_STRING_EQUAL(text, "a +Inf\nb{c=\"d\"} -Inf\ne NaN\nf 0.1\n");
	free(text);
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The lines of samples without their values, sorted. The caller frees the list and text. */
static size_t series_of(char *text, char **list, size_t room)
{
	size_t count = 0;
	char *save = NULL;

	for (char *at = strtok_r(text, "\n", &save); at; at = strtok_r(NULL, "\n", &save)) {
		if (*at == '#' || count == room)
			continue;
		*strrchr(at, ' ') = '\0';
		list[count++] = at;
	}
	qsort(list, count, sizeof(*list), compare_texts);
	return count;
}

static void every_series_is_there_once_under_its_help_and_type(void)
{
	char family[128] = "", *text, *list[4096], *save = NULL, *copy;
	size_t count;

	setup();
	text = printed();
	copy = strdup(text);
	for (char *at = strtok_r(copy, "\n", &save); at; at = strtok_r(NULL, "\n", &save)) {
		char name[128], type[16], help[128];

		if (sscanf(at, "# HELP %127s %127[^\n]", name, help) == 2) {
			strcpy(family, name);
		} else if (sscanf(at, "# TYPE %127s %15s", name, type) == 2) {
			CU_ASSERT_STRING_EQUAL(name, family);
			/* What only grows ends in _total, and nothing else does. */
			CU_ASSERT_EQUAL(!strcmp(type, "counter"),
					strlen(name) > 6 &&
						!strcmp(name + strlen(name) - 6, "_total"));
		} else {
			CU_ASSERT_EQUAL(strncmp(at, family, strlen(family)), 0);
		}
	}
	free(copy);
	count = series_of(text, list, 4096);
	CU_ASSERT(count > 150 && count < 4096);
	for (size_t i = 1; i < count; i++)
		CU_ASSERT_STRING_NOT_EQUAL(list[i - 1], list[i]);
	free(text);
	teardown();
}

static double value_of(const char *text, const char *name)
{
	char line[64];
	const char *at;

	snprintf(line, sizeof(line), "\n%s ", name);
	at = strstr(text, line);
	return at ? atof(at + strlen(line)) : -1;
}

static double printed_value(const char *name)
{
	char *text = printed();
	double value = value_of(text, name);

	free(text);
	return value;
}

/* What this process is; nothing, rather than nonsense, where /proc can't be read. */
static void the_process_itself(void)
{
	struct rlimit before, none;
	double open_fds = 0, cpu;
	int fd;

	setup();
	for (fd = 0; fd < 1000; fd++)
		open_fds += fcntl(fd, F_GETFD) >= 0;
	CU_ASSERT_EQUAL(printed_value("process_open_fds"), open_fds);
	cpu = printed_value("process_cpu_seconds_total");
	fd = dup(1);
	CU_ASSERT_EQUAL(printed_value("process_open_fds"), open_fds + 1);
	close(fd);
	CU_ASSERT(printed_value("process_resident_memory_bytes") > 1e6);
	CU_ASSERT(cpu > 0 && printed_value("process_cpu_seconds_total") >= cpu);
	getrlimit(RLIMIT_NOFILE, &before);
	none = (struct rlimit){ 0, before.rlim_max };
	setrlimit(RLIMIT_NOFILE, &none);
	CU_ASSERT_EQUAL(printed_value("process_open_fds"), 0);
	CU_ASSERT_EQUAL(printed_value("process_resident_memory_bytes"), 0);
	setrlimit(RLIMIT_NOFILE, &before);
	teardown();
}

/* U9: a flood makes keys, not series. */
static void a_hundred_thousand_sources_make_no_series(void)
{
	char *before[4096], *after[4096], *text_before, *text_after, address[32];
	size_t count, same = 0;
	const uint64_t later = 2 * NOW_NS << WEIR_TICK_SHIFT;
	const double share = 100000.0 / (SETS * WEIR_WAYS);
	uint32_t known = 0;

	setup();
	text_before = printed();
	CU_ASSERT_EQUAL(value_of(text_before, "weir_ledger_known_ratio"), 0);
	count = series_of(text_before, before, 4096);
	for (uint32_t i = 0; i < 100000; i++) {
		const struct weir_limit *limit = &fake.board->limits[i % 4];

		snprintf(address, sizeof(address), "10.%u.%u.%u", i >> 16, i >> 8 & 255, i & 255);
		known += fake_key_add(&fake, limit, address, 1, 1, later) != UINT32_MAX;
	}
	CU_ASSERT_EQUAL(known, 100000);
	text_after = printed();
	/* It has seen them, in the half of the sets that it looks at. */
	CU_ASSERT_DOUBLE_EQUAL(value_of(text_after, "weir_ledger_known_ratio"), share, 0.01);
	CU_ASSERT_DOUBLE_EQUAL(value_of(text_after, "weir_ledger_held_ratio"), share, 0.01);
	CU_ASSERT_EQUAL(series_of(text_after, after, 4096), count);
	for (size_t i = 0; i < count; i++)
		same += !strcmp(before[i], after[i]);
	CU_ASSERT_EQUAL(same, count);
	free(text_before);
	free(text_after);
	teardown();
}

WEIR_TESTS("metrics", TEST(totals_are_of_all_cpus), TEST(settings_are_in_base_units),
	   TEST(gates_and_reloads), TEST(services_and_their_loops), TEST(labels_are_escaped),
	   TEST(numbers_that_are_none_have_their_words), TEST(the_process_itself),
	   TEST(every_series_is_there_once_under_its_help_and_type),
	   TEST(a_hundred_thousand_sources_make_no_series))
