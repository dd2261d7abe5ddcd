// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "controller/cpu.h"

/* A number and what follows it; false where there is none, or none that fits. */
static bool take_number(const char **text, uint64_t *value)
{
	char *end;

	while (**text == ' ' || **text == '\t')
		(*text)++;
	if (**text < '0' || **text > '9')
		return false;
	errno = 0;
	*value = strtoull(*text, &end, 10);
	*text = end;
	return !errno;
}

static bool at_end(const char *text)
{
	return text[strspn(text, " \t\n")] == '\0';
}

int weir_cpu_parse_stat(const char *text, struct weir_cpu_times *times)
{
	enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, FIELDS };
	uint64_t field[FIELDS] = { 0 }, all = 0;
	size_t count = 0;

	if (strncmp(text, "cpu ", 4))
		return -EINVAL;
	text += 3;
	while (count < FIELDS && take_number(&text, &field[count]))
		count++;
	if (count <= IDLE)
		return -EINVAL;
	for (size_t i = 0; i < FIELDS; i++)
		all += field[i];
	*times = (struct weir_cpu_times){ all - field[IDLE] - field[IOWAIT], all };
	return 0;
}

int weir_cpu_parse_usage(const char *text, uint64_t *usage_ns)
{
	static const char name[] = "usage_usec ";
	uint64_t usage_us;

	while (text && strncmp(text, name, sizeof(name) - 1)) {
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	if (!text)
		return -EINVAL;
	text += sizeof(name) - 1;
	if (!take_number(&text, &usage_us) || usage_us > UINT64_MAX / 1000)
		return -EINVAL;
	*usage_ns = usage_us * 1000;
	return 0;
}

static int share(uint64_t quota, uint64_t period, uint64_t *milli_cpus)
{
	if (!quota || !period || quota > UINT64_MAX / 1000)
		return -EINVAL;
	*milli_cpus = quota * 1000 / period;
	if (!*milli_cpus)
		*milli_cpus = 1;
	return 0;
}

int weir_cpu_parse_max(const char *text, uint64_t *milli_cpus)
{
	uint64_t quota, period;
	bool none = !strncmp(text, "max", 3);

	if (none)
		text += 3;
	else if (!take_number(&text, &quota))
		return -EINVAL;
	if (!take_number(&text, &period) || !at_end(text))
		return -EINVAL;
	if (!none)
		return share(quota, period, milli_cpus);
	*milli_cpus = UINT64_MAX;
	return 0;
}

int weir_cpu_parse_quota(const char *quota_text, const char *period_text, uint64_t *milli_cpus)
{
	uint64_t quota, period;

	if (!strncmp(quota_text, "-1", 2) && at_end(quota_text + 2)) {
		*milli_cpus = UINT64_MAX;
		return 0;
	}
	if (!take_number(&quota_text, &quota) || !at_end(quota_text) ||
	    !take_number(&period_text, &period) || !at_end(period_text))
		return -EINVAL;
	return share(quota, period, milli_cpus);
}

int weir_cpu_parse_list(const char *text, uint64_t *cpus, uint64_t *end)
{
	uint64_t first, last, count = 0, most = 0;

	do {
		if (!take_number(&text, &first))
			return -EINVAL;
		last = first;
		if (*text == '-') {
			text++;
			if (!take_number(&text, &last))
				return -EINVAL;
		}
		if (last < first || last >= 1U << 20)
			return -EINVAL;
		count += last - first + 1;
		most = last > most ? last : most;
	} while (*text++ == ',');
	if (!at_end(text - 1))
		return -EINVAL;
	*cpus = count;
	*end = most + 1;
	return 0;
}

void weir_cpu_meter_init(struct weir_cpu_meter *meter)
{
	*meter = (struct weir_cpu_meter){ .thousandths = WEIR_CPU_UNKNOWN };
}

static int32_t reading(const struct weir_cpu_meter *meter)
{
	return meter->thousandths < 0 ? WEIR_CPU_UNKNOWN : (int32_t)(meter->thousandths + 0.5);
}

int32_t weir_cpu_meter_add(struct weir_cpu_meter *meter, int64_t now_ns,
			   struct weir_cpu_times times)
{
	struct weir_cpu_times last = meter->last;
	int64_t span_ns = now_ns - meter->at_ns, smooth_ns;
	bool usable = meter->primed && times.used >= last.used && times.available > last.available;
	double share, keep;

	/* Nothing new: go on measuring from where we were. */
	if (meter->primed && times.used >= last.used && times.available == last.available)
		return reading(meter);
	meter->last = times;
	meter->at_ns = now_ns;
	meter->primed = true;
	if (!usable)
		return reading(meter);
	share = 1000.0 * (double)(times.used - last.used) /
		(double)(times.available - last.available);
	share = fmin(share, 1000);
	smooth_ns =
		share - meter->thousandths > WEIR_CPU_STEP ? WEIR_CPU_RISE_NS : WEIR_CPU_SMOOTH_NS;
	keep = meter->thousandths < 0 || span_ns <= 0 ? 0
						      : exp(-(double)span_ns / (double)smooth_ns);
	meter->thousandths = keep * meter->thousandths + (1 - keep) * share;
	return reading(meter);
}
