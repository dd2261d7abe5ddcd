// SPDX-License-Identifier: GPL-2.0
/* G3: never divided by the CPUs twice. G4: a cgroup's own quota, both versions. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "controller/cpu.h"
#include "harness.h"

#define MS 1000000LL
#define SECOND (1000 * MS)

/* ---- a tree of files ---- */

static char root[32];

static void make_root(void)
{
	strcpy(root, "/tmp/weir-cpu-XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(root));
}

static void remove_root(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", root);
	CU_ASSERT_EQUAL(system(command), 0);
}

static void put(const char *path, const char *text)
{
	char full[256];
	FILE *file;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (char *slash = strchr(full + strlen(root) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(full, 0755);
		*slash = '/';
	}
	file = fopen(full, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fputs(text, file);
	fclose(file);
}

/* /proc/stat of `cpus` CPUs, `busy` of 1000 of the time used after `seconds`. */
static void put_stat(int cpus, int busy, int seconds)
{
	long long all = 100LL * seconds * cpus, used = all * busy / 1000;
	char text[8192];
	int length;

	/* A tenth of what is idle is iowait; guest time is within user. */
	length = snprintf(text, sizeof(text), "cpu  %lld 0 %lld %lld %lld 0 0 0 %lld 0\n", used / 2,
			  used - used / 2, (all - used) * 9 / 10,
			  (all - used) - (all - used) * 9 / 10, used / 4);
	for (int i = 0; i < cpus; i++)
		length += snprintf(text + length, sizeof(text) - (size_t)length,
				   "cpu%d %lld 0 0 %lld 0 0 0 0 0 0\n", i, used / cpus,
				   (all - used) / cpus);
	snprintf(text + length, sizeof(text) - (size_t)length, "intr 1 2 3\nctxt 5\n");
	put("/proc/stat", text);
}

/* Reads for `seconds`, the file growing each second; what the last reading says. */
static int32_t read_host(int cpus, int busy, int seconds)
{
	int32_t thousandths = 0;
	struct weir_cpu_reader cpu;

	make_root();
	weir_cpu_open(&cpu, root, "");
	for (int i = 1; i <= seconds; i++) {
		put_stat(cpus, busy, i);
		CU_ASSERT_EQUAL(weir_cpu_read(&cpu, i * SECOND, &thousandths), 0);
		if (i == 1)
			CU_ASSERT_EQUAL(thousandths, WEIR_CPU_UNKNOWN);
	}
	weir_cpu_close(&cpu);
	remove_root();
	return thousandths;
}

static void g3_host_is_the_same_with_any_number_of_cpus(void)
{
	static const int cpus[] = { 1, 4, 64 };

	for (size_t i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(read_host(cpus[i], 1000, 10), 1000);
		CU_ASSERT_EQUAL(read_host(cpus[i], 0, 10), 0);
		CU_ASSERT(abs(read_host(cpus[i], 900, 10) - 900) <= 1);
		CU_ASSERT(abs(read_host(cpus[i], 250, 10) - 250) <= 5);
	}
}

/* ---- cgroups ---- */

#define GROUP "/sys/fs/cgroup/web.slice/web.service"

/* The cgroup used `milli` thousandths of one CPU each second. */
static int32_t read_group(void (*put_usage)(long long ns), int milli, int seconds)
{
	int32_t thousandths = 0;
	struct weir_cpu_reader cpu;

	weir_cpu_open(&cpu, root, GROUP);
	for (int i = 1; i <= seconds; i++) {
		put_usage((long long)i * milli * MS);
		CU_ASSERT_EQUAL(weir_cpu_read(&cpu, i * SECOND, &thousandths), 0);
	}
	weir_cpu_close(&cpu);
	return thousandths;
}

static void put_v2(long long ns)
{
	char text[128];

	snprintf(text, sizeof(text), "usage_usec %lld\nuser_usec 1\nsystem_usec 2\n", ns / 1000);
	put(GROUP "/cpu.stat", text);
}

static void put_v1(long long ns)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld\n", ns);
	put(GROUP "/cpuacct.usage", text);
}

static void g4_cgroup_v2_is_measured_by_its_quota(void)
{
	make_root();
	put("/sys/devices/system/cpu/online", "0-3\n");
	/* No quota: of all four CPUs. */
	put(GROUP "/cpu.max", "max 100000\n");
	CU_ASSERT_EQUAL(read_group(put_v2, 2000, 10), 500);
	/* One and a half. */
	put(GROUP "/cpu.max", "150000 100000\n");
	CU_ASSERT_EQUAL(read_group(put_v2, 1350, 10), 900);
	/* The slice above has less. */
	put("/sys/fs/cgroup/web.slice/cpu.max", "50000 100000\n");
	CU_ASSERT_EQUAL(read_group(put_v2, 450, 10), 900);
	/* A quota above what there is counts as what there is. */
	put("/sys/fs/cgroup/web.slice/cpu.max", "max 100000\n");
	put(GROUP "/cpu.max", "1600000 100000\n");
	CU_ASSERT_EQUAL(read_group(put_v2, 2000, 10), 500);
	/* A set of one CPU. */
	put(GROUP "/cpuset.cpus.effective", "3\n");
	CU_ASSERT_EQUAL(read_group(put_v2, 800, 10), 800);
	/* More than all for a moment is all. */
	CU_ASSERT_EQUAL(read_group(put_v2, 1500, 10), 1000);
	remove_root();
}

static void g4_cgroup_v1_is_measured_by_its_quota(void)
{
	make_root();
	put("/sys/devices/system/cpu/online", "0-1\n");
	put(GROUP "/cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n");
	put(GROUP "/cpu.cfs_quota_us", "-1\n");
	put(GROUP "/cpu.cfs_period_us", "100000\n");
	CU_ASSERT_EQUAL(read_group(put_v1, 1000, 10), 500);
	put(GROUP "/cpu.cfs_quota_us", "25000\n");
	CU_ASSERT_EQUAL(read_group(put_v1, 225, 10), 900);
	remove_root();
}

/* The same where cpu and cpuacct are mounted apart. */
static void g4_cgroup_v1_of_two_hierarchies(void)
{
	int32_t thousandths = 0;
	struct weir_cpu_reader cpu;

	make_root();
	put("/sys/devices/system/cpu/online", "0-3\n");
	put("/cgroup/cpu/cpu-web/cpu.cfs_quota_us", "50000\n");
	put("/cgroup/cpu/cpu-web/cpu.cfs_period_us", "100000\n");
	put("/cgroup/cpu/cpu-web/cpu.stat", "nr_periods 0\n");
	weir_cpu_open(&cpu, root, "/cgroup/cpu/cpu-web");
	for (int i = 1; i <= 10; i++) {
		char text[32];

		snprintf(text, sizeof(text), "%lld\n", i * 400 * MS);
		put("/cgroup/cpuacct/cpu-web/cpuacct.usage", text);
		CU_ASSERT_EQUAL(weir_cpu_read(&cpu, i * SECOND, &thousandths), 0);
	}
	CU_ASSERT_EQUAL(thousandths, 800);
	weir_cpu_close(&cpu);
	remove_root();
}

static void a_new_quota_is_seen(void)
{
	int32_t thousandths;
	struct weir_cpu_reader cpu;

	make_root();
	put("/sys/devices/system/cpu/online", "0\n");
	put(GROUP "/cpu.max", "max 100000\n");
	weir_cpu_open(&cpu, root, GROUP);
	for (int i = 1; i <= 30; i++) {
		put_v2((long long)i * 400 * MS);
		if (i == 10)
			put(GROUP "/cpu.max", "50000 100000\n");
		CU_ASSERT_EQUAL(weir_cpu_read(&cpu, i * SECOND, &thousandths), 0);
		if (i == 9)
			CU_ASSERT_EQUAL(thousandths, 400);
	}
	CU_ASSERT_EQUAL(thousandths, 800);
	weir_cpu_close(&cpu);
	remove_root();
}

static void missing_files_are_not_known_until_they_come(void)
{
	int32_t thousandths = 5;
	struct weir_cpu_reader cpu;

	make_root();
	weir_cpu_open(&cpu, root, GROUP);
	CU_ASSERT_EQUAL(weir_cpu_read(&cpu, SECOND, &thousandths), -ENOENT);
	CU_ASSERT_EQUAL(thousandths, WEIR_CPU_UNKNOWN);
	put_v2(SECOND);
	CU_ASSERT_EQUAL(weir_cpu_read(&cpu, SECOND, &thousandths), -ENOENT); /* how many CPUs? */
	put("/sys/devices/system/cpu/online", "0\n");
	put(GROUP "/cpu.max", "a lot\n");
	CU_ASSERT_EQUAL(weir_cpu_read(&cpu, SECOND, &thousandths), -EINVAL);
	put(GROUP "/cpu.max", "max 100000\n");
	CU_ASSERT_EQUAL(weir_cpu_read(&cpu, SECOND, &thousandths), 0);
	put_v2(1500 * MS);
	CU_ASSERT_EQUAL(weir_cpu_read(&cpu, 2 * SECOND, &thousandths), 0);
	CU_ASSERT_EQUAL(thousandths, 500);
	/* Made again: its usage begins at zero. */
	put_v2(0);
	CU_ASSERT_EQUAL(weir_cpu_read(&cpu, 3 * SECOND, &thousandths), 0);
	CU_ASSERT_EQUAL(thousandths, 500);
	put(GROUP "/cpu.stat", "nothing 5\n");
	CU_ASSERT_EQUAL(weir_cpu_read(&cpu, 4 * SECOND, &thousandths), -EINVAL);
	CU_ASSERT_EQUAL(thousandths, WEIR_CPU_UNKNOWN);
	weir_cpu_close(&cpu);
	weir_cpu_open(&cpu, root, "");
	CU_ASSERT_EQUAL(weir_cpu_read(&cpu, SECOND, &thousandths), -ENOENT);
	weir_cpu_close(&cpu);
	remove_root();
}

/* Tables by CPU go up to the highest number, not as far as there are CPUs. */
static void numbers_of_cpus_may_have_holes(void)
{
	make_root();
	CU_ASSERT_EQUAL(weir_cpu_numbers(root), -ENOENT);
	put("/sys/devices/system/cpu/possible", "0,2-3,16\n");
	CU_ASSERT_EQUAL(weir_cpu_numbers(root), 17);
	put("/sys/devices/system/cpu/possible", "0-255\n");
	CU_ASSERT_EQUAL(weir_cpu_numbers(root), 256);
	put("/sys/devices/system/cpu/possible", "\n");
	CU_ASSERT_EQUAL(weir_cpu_numbers(root), -EINVAL);
	remove_root();
}

/* ---- parsers and the meter ---- */

static void parsers_refuse_what_they_do_not_know(void)
{
	static const char *const maxes[] = {
		"",	    "max",	 "100000",	 "0 100000",
		"100000 0", "-5 100000", "max 100000 x", "99999999999999999999 1"
	};
	static const char *const lists[] = { "", "a", "3-", "3-1", "1,", "0-9999999", "1 2", "-1" };
	struct weir_cpu_times times;
	uint64_t value, end;

	CU_ASSERT_EQUAL(weir_cpu_parse_stat("cpu0 1 2 3 4\n", &times), -EINVAL);
	CU_ASSERT_EQUAL(weir_cpu_parse_stat("cpu  1 2 3\n", &times), -EINVAL);
	CU_ASSERT_EQUAL(weir_cpu_parse_stat("", &times), -EINVAL);
	/* An old kernel's four fields; steal counts as used. */
	CU_ASSERT_EQUAL(weir_cpu_parse_stat("cpu  1 2 3 4\n", &times), 0);
	CU_ASSERT(times.used == 6 && times.available == 10);
	CU_ASSERT_EQUAL(weir_cpu_parse_stat("cpu  1 1 1 1 1 1 1 9 1 1\n", &times), 0);
	CU_ASSERT(times.used == 14 && times.available == 16);
	for (size_t i = 0; i < sizeof(maxes) / sizeof(maxes[0]); i++)
		CU_ASSERT_EQUAL(weir_cpu_parse_max(maxes[i], &value), -EINVAL);
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		CU_ASSERT_EQUAL(weir_cpu_parse_list(lists[i], &value, &end), -EINVAL);
	CU_ASSERT_EQUAL(weir_cpu_parse_list("0-3,8,10-11\n", &value, &end), 0);
	CU_ASSERT(value == 7 && end == 12);
	CU_ASSERT_EQUAL(weir_cpu_parse_quota("-2", "100000", &value), -EINVAL);
	CU_ASSERT_EQUAL(weir_cpu_parse_quota("5000", "", &value), -EINVAL);
	CU_ASSERT_EQUAL(weir_cpu_parse_usage("user_usec 5\n", &value), -EINVAL);
	CU_ASSERT_EQUAL(weir_cpu_parse_usage("user_usec 5\nusage_usec 7\n", &value), 0);
	CU_ASSERT_EQUAL(value, 7000);
}

static void meter_smooths_and_survives_a_counter_that_goes_back(void)
{
	struct weir_cpu_meter meter;
	int32_t value;

	weir_cpu_meter_init(&meter);
#define ADD(at, used, of) weir_cpu_meter_add(&meter, at, (struct weir_cpu_times){ used, of })
	CU_ASSERT_EQUAL(ADD(0, 100, 1000), WEIR_CPU_UNKNOWN);
	CU_ASSERT_EQUAL(ADD(0, 100, 1000), WEIR_CPU_UNKNOWN);
	CU_ASSERT_EQUAL(ADD(100 * MS, 150, 1100), 500);
	CU_ASSERT_EQUAL(ADD(200 * MS, 150, 1100), 500); /* nothing new */
	CU_ASSERT_EQUAL(ADD(200 * MS, 10, 100), 500);	/* went back */
	CU_ASSERT_EQUAL(ADD(300 * MS, 60, 200), 500);
	/* Falls slowly, and rises fast from far below. */
	value = ADD(400 * MS, 60, 300);
	CU_ASSERT(value > 450 && value < 490);
	value = ADD(500 * MS, 160, 400);
	CU_ASSERT(value > 540 && value < 590);
#undef ADD
}

WEIR_TESTS("cpu", TEST(g3_host_is_the_same_with_any_number_of_cpus),
	   TEST(g4_cgroup_v2_is_measured_by_its_quota), TEST(g4_cgroup_v1_is_measured_by_its_quota),
	   TEST(g4_cgroup_v1_of_two_hierarchies), TEST(a_new_quota_is_seen),
	   TEST(missing_files_are_not_known_until_they_come),
	   TEST(numbers_of_cpus_may_have_holes),
	   TEST(parsers_refuse_what_they_do_not_know),
	   TEST(meter_smooths_and_survives_a_counter_that_goes_back))
