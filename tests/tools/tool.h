/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the traffic tools share: numbers and addresses from the command line, one clock, the
 * stop signal, the rule that keeps generated traffic at home.
 *
 * Bad usage ends the process with 64, a refusal of the system with 2; both say why on stderr.
 */
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>

#define TOOL_USAGE 64
#define TOOL_SYSTEM 2
#define NS_PER_SEC 1000000000ULL

/* Nothing here runs longer: a test that was forgotten ends by itself. */
#define TOOL_SECONDS_MAX 700

static volatile sig_atomic_t tool_stopped;

__attribute__((noreturn, format(printf, 2, 3))) static inline void die(int code, const char *fmt,
								       ...)
{
	va_list args;

	va_start(args, fmt);
	fprintf(stderr, "%s: ", program_invocation_short_name);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
	exit(code);
}

static inline void tool_on_signal(int sig)
{
	(void)sig;
	tool_stopped = 1;
}

/*
 * SIGINT and SIGTERM set tool_stopped; so does the death of whoever started us. Sleeps are
 * exact to the microsecond (the default slack is 50).
 */
static inline void tool_setup(void)
{
	struct sigaction stop = { .sa_handler = tool_on_signal };

	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	prctl(PR_SET_TIMERSLACK, 1);
	setvbuf(stdout, NULL, _IOLBF, 0);
}

static inline uint64_t tool_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* Gives each `--name value` of the command line to `parse`. */
static inline void tool_options(int argc, char **argv, const char *usage,
				void (*parse)(const char *name, char *value))
{
	for (int i = 1; i < argc; i += 2) {
		if (!argv[i + 1])
			die(TOOL_USAGE, "'%s' needs a value\n%s", argv[i], usage);
		parse(argv[i], argv[i + 1]);
	}
}

static inline uint64_t tool_number(const char *what, const char *text, uint64_t min, uint64_t max)
{
	char *end = NULL;
	uint64_t value;

	errno = 0;
	value = strtoull(text, &end, 0);
	if (errno || end == text || *end || strchr(text, '-') || value < min || value > max)
		die(TOOL_USAGE, "%s '%s': give a whole number from %" PRIu64 " to %" PRIu64, what,
		    text, min, max);
	return value;
}

/* Seconds, fractions allowed, as nanoseconds. */
static inline uint64_t tool_seconds(const char *what, const char *text)
{
	char *end = NULL;
	double value = strtod(text, &end);

	if (end == text || *end || !(value >= 0.001) || value > TOOL_SECONDS_MAX)
		die(TOOL_USAGE, "%s '%s': give seconds from 0.001 to %d", what, text,
		    TOOL_SECONDS_MAX);
	return (uint64_t)(value * 1e9);
}

/* A fixed stirring of 64 bits (splitmix64's finish): hashes, and draws that can be repeated. */
static inline uint64_t tool_scramble(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/* Any address, IPv4 mapped into IPv6 (::ffff:a.b.c.d), as the kernel has it on such sockets. */
static inline struct in6_addr tool_address(const char *what, const char *text)
{
	struct in6_addr addr = { .s6_addr = { [10] = 0xff, [11] = 0xff } };

	if (inet_pton(AF_INET, text, &addr.s6_addr[12]) == 1)
		return addr;
	if (inet_pton(AF_INET6, text, &addr) != 1)
		die(TOOL_USAGE, "%s '%s': give an IPv4 or IPv6 address", what, text);
	return addr;
}

static inline const char *tool_address_text(const struct in6_addr *addr, char text[static 46])
{
	if (IN6_IS_ADDR_V4MAPPED(addr))
		inet_ntop(AF_INET, &addr->s6_addr[12], text, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, addr, text, INET6_ADDRSTRLEN);
	return text;
}

/*
 * Generated traffic leaves only by loopback or from a network namespace made for it: one that
 * /run/netns names weir-*, as tests/net/lib.sh makes them.
 */
static inline void tool_require_private_net(const char *interface)
{
	struct stat ours, made;
	bool found = false;
	glob_t names;

	if (strcmp(interface, "lo") == 0)
		return;
	if (stat("/proc/self/ns/net", &ours))
		die(TOOL_SYSTEM, "can't read /proc/self/ns/net: %s", strerror(errno));
	if (glob("/run/netns/weir-*", 0, NULL, &names) == 0) {
		for (size_t i = 0; i < names.gl_pathc && !found; i++)
			found = stat(names.gl_pathv[i], &made) == 0 && made.st_ino == ours.st_ino &&
				made.st_dev == ours.st_dev;
		globfree(&names);
	}
	if (!found)
		die(TOOL_USAGE,
		    "interface '%s' is not in a test's namespace: run inside one that "
		    "/run/netns names weir-*, or use lo",
		    interface);
}
