// SPDX-License-Identifier: GPL-2.0
#include "controller/clock.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define READINGS 5
/* So far off that it never goes off: 2^35 s are a thousand years. */
#define NEVER_SECONDS (1LL << 35)

static uint64_t read_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

uint64_t weir_monotonic_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

uint64_t weir_realtime_ns(void)
{
	return read_clock(CLOCK_REALTIME);
}

uint64_t weir_boottime_ns(void)
{
	return read_clock(CLOCK_BOOTTIME);
}

uint64_t weir_clock_wall_ns(void)
{
	uint64_t best = UINT64_MAX, ahead = 0;

	/* The reading with the least between the two of the other clock is the truest. */
	for (int i = 0; i < READINGS; i++) {
		uint64_t before = read_clock(CLOCK_MONOTONIC);
		uint64_t wall = read_clock(CLOCK_REALTIME);
		uint64_t span = read_clock(CLOCK_MONOTONIC) - before;

		if (span >= best)
			continue;
		best = span;
		/* The kernel refuses a wall clock that is behind the monotonic one. */
		ahead = wall > before ? wall - before - span / 2 : 0;
	}
	return ahead;
}

int weir_clock_open(void)
{
	const struct itimerspec never = { .it_value.tv_sec = NEVER_SECONDS };
	int fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
	int code;

	if (fd < 0)
		return -errno;
	if (!timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL))
		return fd;
	code = -errno;
	close(fd);
	return code;
}

void weir_clock_drain(int fd)
{
	uint64_t times;

	/* ECANCELED is the news itself. */
	while (read(fd, &times, sizeof(times)) >= 0 || errno == ECANCELED)
		;
}
