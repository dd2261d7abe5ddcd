// SPDX-License-Identifier: GPL-2.0
#include "run.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include <bpf/bpf.h>

/* 64 bytes: Ethernet, IPv4, UDP to port 53. The programs write the source. */
static uint8_t frame[64] = {
	2, 0, 0, 0, 0, 1, 2,  0, 0, 0,	0, 2, 0x08, 0x00, /* Ethernet */
	0x45, 0, 0, 50, 0, 0, 0, 0, 64, 17, 0, 0, /* IPv4 */
	10, 0, 0, 1, 10, 0, 0, 2, /* its addresses */
	0x10, 0x00, 0, 53, 0, 30, 0, 0, /* UDP */
};

void bench_frame_set(uint8_t protocol, uint16_t port, uint8_t tcp_flags)
{
	frame[23] = protocol;
	frame[36] = (uint8_t)(port >> 8);
	frame[37] = (uint8_t)port;
	frame[46] = protocol == IPPROTO_TCP ? 0x50 : 0;
	frame[47] = tcp_flags;
}

struct runner {
	pthread_t thread;
	pthread_barrier_t *barrier;
	int program;
	int cpu;
	uint32_t repeat;
	double ns;
	int err;
};

void bench_cpus_pick(struct bench_cpus *cpus)
{
	cpu_set_t allowed;

	cpus->count = 0;
	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return;
	for (int cpu = 0; cpu < CPU_SETSIZE && cpus->count < BENCH_CPUS_AT_ONCE; cpu++)
		if (CPU_ISSET(cpu, &allowed))
			cpus->cpu[cpus->count++] = cpu;
}

static double thread_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void *run(void *argument)
{
	struct runner *runner = argument;
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = sizeof(frame),
		    .repeat = (int)runner->repeat);
	double start;
	cpu_set_t cpu;

	CPU_ZERO(&cpu);
	CPU_SET(runner->cpu, &cpu);
	if (pthread_setaffinity_np(pthread_self(), sizeof(cpu), &cpu))
		runner->err = -EINVAL;
	pthread_barrier_wait(runner->barrier);
	start = thread_ns();
	if (!runner->err && bpf_prog_test_run_opts(runner->program, &options))
		runner->err = -errno;
	runner->ns = (thread_ns() - start) / runner->repeat;
	return NULL;
}

int bench_run(int program, const struct bench_cpus *cpus, unsigned int count, uint32_t repeat,
	      double *ns)
{
	struct runner runners[BENCH_CPUS_AT_ONCE];
	pthread_barrier_t barrier;
	unsigned int started = 0;
	int err;

	err = pthread_barrier_init(&barrier, NULL, count);
	if (err)
		return -err;
	for (; started < count; started++) {
		struct runner *runner = &runners[started];

		*runner = (struct runner){ .barrier = &barrier,
					   .program = program,
					   .cpu = cpus->cpu[started],
					   .repeat = repeat };
		err = pthread_create(&runner->thread, NULL, run, runner);
		/* Others would wait at the barrier for ever: there is no way on from here. */
		if (err)
			return -err;
	}
	*ns = 0;
	for (unsigned int i = 0; i < count; i++) {
		pthread_join(runners[i].thread, NULL);
		*ns += runners[i].ns / count;
		if (runners[i].err)
			err = runners[i].err;
	}
	pthread_barrier_destroy(&barrier);
	return err;
}
