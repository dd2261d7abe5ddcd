// SPDX-License-Identifier: GPL-2.0
/* How far the wall clock is ahead, read by clocks of our making: the linker takes these. */
#include "harness.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "controller/clock.h"
#include "count_fds.h"

#define SECOND 1000000000ULL
#define AHEAD (1700000000 * SECOND)

static struct {
	uint64_t now_ns;	    /* monotonic; each reading takes 10 ns */
	uint64_t wall_ns, slept_ns; /* ahead of it */
	unsigned int readings;
	unsigned int held_up_at; /* for a second, before this reading; 0: never */
	uint64_t held_up_ns;
	int settime_error, create_error;
} clocks;

int clock_gettime(clockid_t clock, struct timespec *time)
{
	uint64_t ns;

	clocks.now_ns += 10;
	if (++clocks.readings == clocks.held_up_at)
		clocks.now_ns += clocks.held_up_ns;
	ns = clocks.now_ns + (clock == CLOCK_REALTIME	? clocks.wall_ns
			      : clock == CLOCK_BOOTTIME ? clocks.slept_ns
							: 0);
	*time = (struct timespec){ .tv_sec = (time_t)(ns / SECOND), .tv_nsec = ns % SECOND };
	return 0;
}

int timerfd_create(int clock, int flags)
{
	CU_ASSERT_EQUAL(clock, CLOCK_REALTIME);
	errno = clocks.create_error;
	return clocks.create_error ? -1 : (int)syscall(SYS_timerfd_create, clock, flags);
}

int timerfd_settime(int fd, int flags, const struct itimerspec *when, struct itimerspec *old)
{
	errno = clocks.settime_error;
	return clocks.settime_error ? -1 : (int)syscall(SYS_timerfd_settime, fd, flags, when, old);
}

static void begin(void)
{
	clocks = (typeof(clocks)){ .now_ns = 5000 * SECOND, .wall_ns = AHEAD };
}

static void each_clock_is_its_own(void)
{
	begin();
	clocks.slept_ns = 70 * SECOND;
	CU_ASSERT_EQUAL(weir_monotonic_ns(), 5000 * SECOND + 10);
	CU_ASSERT_EQUAL(weir_realtime_ns(), AHEAD + 5000 * SECOND + 20);
	CU_ASSERT_EQUAL(weir_boottime_ns(), 5070 * SECOND + 30);
}

/* Held up between two readings of the same moment, at any of them: another try is truer. */
static void the_truest_reading_counts(void)
{
	for (unsigned int at = 0; at <= 15; at++) {
		uint64_t ahead;

		begin();
		clocks.held_up_at = at;
		clocks.held_up_ns = SECOND;
		ahead = weir_clock_wall_ns();
		CU_ASSERT(ahead >= AHEAD - 20 && ahead <= AHEAD + 20);
	}
}

/* As a machine without a battery has it until it knows the time. */
static void a_wall_clock_behind_is_not_ahead(void)
{
	begin();
	clocks.wall_ns = -(100 * SECOND);
	CU_ASSERT_EQUAL(weir_clock_wall_ns(), 0);
}

static void a_watch_that_cannot_be_set_is_an_error(void)
{
	int before = count_fds(), fd;

	begin();
	clocks.create_error = EMFILE;
	CU_ASSERT_EQUAL(weir_clock_open(), -EMFILE);
	clocks.create_error = 0;
	clocks.settime_error = EINVAL;
	CU_ASSERT_EQUAL(weir_clock_open(), -EINVAL);
	CU_ASSERT_EQUAL(count_fds(), before);
	clocks.settime_error = 0;
	fd = weir_clock_open();
	CU_ASSERT_FATAL(fd >= 0);
	/* No news: nobody has set the clock. */
	CU_ASSERT_EQUAL(poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 0), 0);
	weir_clock_drain(fd);
	close(fd);
}

WEIR_TESTS("clock", TEST(each_clock_is_its_own), TEST(the_truest_reading_counts),
	   TEST(a_wall_clock_behind_is_not_ahead), TEST(a_watch_that_cannot_be_set_is_an_error))
