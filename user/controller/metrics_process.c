// SPDX-License-Identifier: GPL-2.0
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "controller/metrics_private.h"
#include "controller/metrics_text.h"

static double cpu_seconds(void)
{
	struct rusage used = { 0 };

	getrusage(RUSAGE_SELF, &used);
	return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
	       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

/* The second field of statm, in pages. */
static double resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	char line[128], *second;

	if (!file)
		return 0;
	second = fgets(line, sizeof(line), file) ? strchr(line, ' ') : NULL;
	fclose(file);
	return second ? strtod(second, NULL) * (double)sysconf(_SC_PAGESIZE) : 0;
}

static double open_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	double count = 0;

	if (!folder)
		return 0;
	while (readdir(folder))
		count++;
	closedir(folder);
	/* But for ".", ".." and the folder's own. */
	return count - 3;
}

void weir_metrics_print_process(uint64_t started_ns, FILE *out)
{
	weir_metric_one(out, "process_cpu_seconds_total", "counter",
			"CPU time of the controller, user and system", cpu_seconds());
	weir_metric_one(out, "process_resident_memory_bytes", "gauge",
			"Resident memory of the controller, with what it looked at of the "
			"kernel's maps",
			resident_bytes());
	weir_metric_one(out, "process_open_fds", "gauge", "Open file descriptors of the controller",
			open_descriptors());
	weir_metric_one(out, "process_start_time_seconds", "gauge",
			"When the controller started, since 1970", (double)started_ns / 1e9);
}
