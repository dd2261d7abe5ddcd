// SPDX-License-Identifier: GPL-2.0
#include "controller/cpu.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define QUOTA_NS 5000000000LL /* how long a quota is believed */
#define CPU_FOLDER "/sys/devices/system/cpu"

void weir_cpu_open(struct weir_cpu_reader *cpu, const char *root, const char *cgroup)
{
	*cpu = (struct weir_cpu_reader){ .fd = -1 };
	snprintf(cpu->root, sizeof(cpu->root), "%s", root);
	snprintf(cpu->cgroup, sizeof(cpu->cgroup), "%s", cgroup);
	weir_cpu_meter_init(&cpu->meter);
}

void weir_cpu_close(struct weir_cpu_reader *cpu)
{
	if (cpu->fd >= 0)
		close(cpu->fd);
	cpu->fd = -1;
}

static int read_fd(int fd, char text[WEIR_CPU_TEXT_SIZE])
{
	ssize_t length = pread(fd, text, WEIR_CPU_TEXT_SIZE - 1, 0);

	if (length < 0)
		return -errno;
	text[length] = '\0';
	return 0;
}

static int open_file(const struct weir_cpu_reader *cpu, const char *folder, const char *name)
{
	char path[3 * WEIR_CPU_PATH_SIZE];
	int fd;

	snprintf(path, sizeof(path), "%s%s/%s", cpu->root, folder, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int read_file(const struct weir_cpu_reader *cpu, const char *folder, const char *name,
		     char text[WEIR_CPU_TEXT_SIZE])
{
	int fd = open_file(cpu, folder, name), rc;

	if (fd < 0)
		return fd;
	rc = read_fd(fd, text);
	close(fd);
	return rc;
}

/* The file's text through the descriptor that is kept; opened again once it is stale. */
static int read_kept(struct weir_cpu_reader *cpu, int (*open_it)(const struct weir_cpu_reader *cpu),
		     char text[WEIR_CPU_TEXT_SIZE])
{
	if (cpu->fd >= 0 && !read_fd(cpu->fd, text) && *text)
		return 0;
	weir_cpu_close(cpu);
	cpu->fd = open_it(cpu);
	return cpu->fd < 0 ? cpu->fd : read_fd(cpu->fd, text);
}

/* A cgroup's own quota, as either version tells it; no file is none. */
static int read_quota(const struct weir_cpu_reader *cpu, const char *folder, uint64_t *milli_cpus)
{
	char text[WEIR_CPU_TEXT_SIZE], period[WEIR_CPU_TEXT_SIZE];

	*milli_cpus = UINT64_MAX;
	if (!read_file(cpu, folder, "cpu.max", text))
		return weir_cpu_parse_max(text, milli_cpus);
	if (!read_file(cpu, folder, "cpu.cfs_quota_us", text) &&
	    !read_file(cpu, folder, "cpu.cfs_period_us", period))
		return weir_cpu_parse_quota(text, period, milli_cpus);
	return 0;
}

/* How many CPUs there are: those of the cgroup's set, where it has one, else the host's. */
static int count_cpus(const struct weir_cpu_reader *cpu, uint64_t *cpus)
{
	char text[WEIR_CPU_TEXT_SIZE];
	uint64_t end;
	int rc;

	if (!read_file(cpu, cpu->cgroup, "cpuset.cpus.effective", text) &&
	    !weir_cpu_parse_list(text, cpus, &end))
		return 0;
	rc = read_file(cpu, CPU_FOLDER, "online", text);
	return rc ? rc : weir_cpu_parse_list(text, cpus, &end);
}

int weir_cpu_numbers(const char *root)
{
	char text[WEIR_CPU_TEXT_SIZE];
	uint64_t cpus, end;
	struct weir_cpu_reader cpu;
	int rc;

	weir_cpu_open(&cpu, root, "");
	rc = read_file(&cpu, CPU_FOLDER, "possible", text);
	if (!rc)
		rc = weir_cpu_parse_list(text, &cpus, &end);
	return rc ? rc : (int)end;
}

/* The least of the quotas from the cgroup up to the root, and of the CPUs. */
static int look_up_quota(struct weir_cpu_reader *cpu)
{
	char folder[WEIR_CPU_PATH_SIZE];
	uint64_t cpus, least, own;
	int rc = count_cpus(cpu, &cpus);
	char *slash;

	if (rc)
		return rc;
	least = cpus * 1000;
	memcpy(folder, cpu->cgroup, sizeof(folder));
	do {
		rc = read_quota(cpu, folder, &own);
		if (rc)
			return rc;
		if (own < least)
			least = own;
		slash = strrchr(folder, '/');
		if (slash)
			*slash = '\0';
	} while (slash && slash != folder);
	cpu->milli_cpus = least;
	return 0;
}

static int open_host(const struct weir_cpu_reader *cpu)
{
	return open_file(cpu, "/proc", "stat");
}

static int read_host(struct weir_cpu_reader *cpu, struct weir_cpu_times *times)
{
	char text[WEIR_CPU_TEXT_SIZE];
	int rc = read_kept(cpu, open_host, text);

	return rc ? rc : weir_cpu_parse_stat(text, times);
}

/* v1 may count usage in a hierarchy of its own: …/cpu/web and …/cpuacct/web. */
static int open_sibling(const struct weir_cpu_reader *cpu)
{
	static const char from[] = "/cpu", to[] = "/cpuacct";
	char folder[WEIR_CPU_PATH_SIZE + sizeof(to)];
	const char *found = strstr(cpu->cgroup, from);

	while (found && found[sizeof(from) - 1] && found[sizeof(from) - 1] != '/')
		found = strstr(found + 1, from);
	if (!found)
		return -ENOENT;
	snprintf(folder, sizeof(folder), "%.*s%s%s", (int)(found - cpu->cgroup), cpu->cgroup, to,
		 found + sizeof(from) - 1);
	return open_file(cpu, folder, "cpuacct.usage");
}

/* v1's cpu.stat has no usage, so its own file is looked for first. */
static int open_usage(const struct weir_cpu_reader *cpu)
{
	int fd = open_file(cpu, cpu->cgroup, "cpuacct.usage");

	if (fd < 0)
		fd = open_sibling(cpu);
	return fd < 0 ? open_file(cpu, cpu->cgroup, "cpu.stat") : fd;
}

static int read_usage(struct weir_cpu_reader *cpu, uint64_t *usage_ns)
{
	char text[WEIR_CPU_TEXT_SIZE], *end;
	int rc = read_kept(cpu, open_usage, text);

	if (rc)
		return rc;
	if (*text < '0' || *text > '9')
		return weir_cpu_parse_usage(text, usage_ns);
	errno = 0;
	*usage_ns = strtoull(text, &end, 10);
	return errno || (*end && *end != '\n') ? -EINVAL : 0;
}

static int read_cgroup(struct weir_cpu_reader *cpu, int64_t now_ns, struct weir_cpu_times *times)
{
	int rc = read_usage(cpu, &times->used);

	if (!rc && (!cpu->started || now_ns - cpu->quota_at_ns >= QUOTA_NS)) {
		rc = look_up_quota(cpu);
		cpu->quota_at_ns = now_ns;
	}
	if (rc)
		return rc;
	if (cpu->started && now_ns > cpu->read_at_ns)
		cpu->available_ns += (uint64_t)(now_ns - cpu->read_at_ns) * cpu->milli_cpus / 1000;
	cpu->started = true;
	cpu->read_at_ns = now_ns;
	times->available = cpu->available_ns;
	return 0;
}

int weir_cpu_read(struct weir_cpu_reader *cpu, int64_t now_ns, int32_t *thousandths)
{
	struct weir_cpu_times times = { 0 };
	int rc = *cpu->cgroup ? read_cgroup(cpu, now_ns, &times) : read_host(cpu, &times);

	if (rc) {
		/* What comes back is another one: it starts anew. */
		weir_cpu_meter_init(&cpu->meter);
		cpu->started = false;
		*thousandths = WEIR_CPU_UNKNOWN;
		return rc;
	}
	*thousandths = weir_cpu_meter_add(&cpu->meter, now_ns, times);
	return 0;
}
