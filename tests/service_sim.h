/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A service under load on virtual time, deterministic by its seed: Poisson arrivals, a limit in
 * front, the kernel's refusals as a service's loops order them, workers behind a queue, clients
 * that give up at a deadline while the server goes on working for them. Steps of a millisecond.
 */
#pragma once

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "controller/cpu.h"
#include "controller/service.h"
#include "harness.h"
#include "random.h"

#define MS 1000000LL
#define SECOND (1000 * MS)
#define SIM_WORKERS 64
#define SIM_QUEUE 65536 /* a power of two; what finds it full fails at once */

struct sim_request {
	int64_t arrived_ns;
	bool gave_up;
};

struct sim {
	/* the world: change it between runs */
	double load; /* arrivals a second */
	int workers;
	int64_t work_ns;     /* mean of an exchange's work, exponential */
	bool steady_work;    /* not exponential: each the same */
	int64_t deadline_ns; /* clients give up then; 0: never */
	double failing;	     /* share of attempts that fail at once */
	double wall;	     /* attempts a second that the target takes; above fail. 0: none */
	bool limited;	     /* the governor's limit is in front */
	double limit;	     /* arrivals a second let through */
	bool dead_ticks;     /* no ticks: the outputs stay */
	double late;	     /* ticks come late by up to this share of their width */

	uint64_t seed;
	int64_t now_ns, tick_at_ns, probed_ns;
	struct sim_request queue[SIM_QUEUE];
	uint32_t head, tail, expired;
	struct sim_request held[SIM_WORKERS];
	int64_t finish_ns[SIM_WORKERS]; /* 0: free */
	double tokens, wall_tokens;
	struct weir_service_counts counts;
	struct weir_cpu_times cpu_times;
	struct weir_cpu_meter meter;
	int32_t cpu; /* what ticks get; with `fixed_cpu` the test sets it */
	bool fixed_cpu;
	struct weir_service *service;
	uint64_t pushes, movements;
	struct weir_movement last;
};

static inline int sim_push(void *context, double offer)
{
	struct sim *sim = context;

	sim->pushes++;
	sim->limit = floor(offer + 0.5); /* as a limit keeps it: whole */
	return 0;
}

static inline int sim_read(void *context, double *committed)
{
	*committed = ((struct sim *)context)->limit;
	return 0;
}

static inline void sim_moved(void *context, const struct weir_movement *movement)
{
	struct sim *sim = context;

	sim->movements++;
	sim->last = *movement;
}

/* 8 workers of 10 ms: 800 exchanges a second. */
static inline struct sim *sim_new(uint64_t seed)
{
	struct sim *sim = calloc(1, sizeof(*sim));

	sim->seed = seed;
	sim->workers = 8;
	sim->work_ns = 10 * MS;
	sim->deadline_ns = 500 * MS;
	sim->cpu = WEIR_CPU_UNKNOWN;
	weir_cpu_meter_init(&sim->meter);
	return sim;
}

static inline double sim_capacity(const struct sim *sim)
{
	return sim->workers * 1e9 / (double)sim->work_ns;
}

static inline struct weir_service_conf sim_conf(void)
{
	return (struct weir_service_conf){ .name = "web",
					   .breaker = weir_sre,
					   .shedder = weir_shed,
					   .governor = { 50, 10, 100000, 0.05, 0.01, 2 * SECOND },
					   .seed = 7 };
}

static inline void sim_protect(struct sim *sim, const struct weir_service_conf *conf)
{
	const struct weir_service_hooks hooks = {
		.control = { sim_push, sim_read, NULL, sim },
		.moved = sim_moved,
		.context = sim,
	};

	sim->limited = conf->has[WEIR_LOOP_GOVERNOR];
	sim->service = weir_service_new(conf, &hooks, sim->now_ns);
	sim->tick_at_ns = sim->now_ns;
}

static inline void sim_free(struct sim *sim)
{
	weir_service_free(sim->service);
	free(sim);
}

/* ---- the kernel ---- */

static inline bool sim_admit(struct sim *sim)
{
	const struct weir_service_output *output;

	if (sim->limited) {
		if (sim->tokens < 1)
			return false;
		sim->tokens--;
	}
	if (!sim->service)
		return true;
	output = weir_service_output(sim->service);
	if (output->drop > 0) {
		bool due = sim->now_ns - sim->probed_ns > output->probe_ns;

		if (random_unit(&sim->seed) < output->drop && !due) {
			sim->counts.dropped++;
			return false;
		}
		sim->probed_ns = sim->now_ns;
	}
	if (sim->counts.in_flight >= output->ceiling) {
		sim->counts.shed++;
		return false;
	}
	return true;
}

static inline void sim_settle(struct sim *sim, bool ok, int64_t response_ns)
{
	sim->counts.in_flight--;
	if (!ok) {
		sim->counts.failure++;
		return;
	}
	sim->counts.success++;
	sim->counts.response_count++;
	sim->counts.response_ns += (uint64_t)response_ns;
	sim->counts.response[weir_response_slot((uint64_t)response_ns)]++;
}

/* ---- the server and its clients ---- */

static inline void sim_arrive(struct sim *sim)
{
	sim->counts.attempts++;
	sim->counts.in_flight++;
	if (sim->wall && sim->wall_tokens < 1) {
		sim_settle(sim, false, 0);
		return;
	}
	sim->wall_tokens--;
	if (random_unit(&sim->seed) < sim->failing || sim->tail - sim->head == SIM_QUEUE) {
		sim_settle(sim, false, 0);
		return;
	}
	sim->queue[sim->tail++ % SIM_QUEUE] = (struct sim_request){ sim->now_ns, false };
}

static inline void sim_give_up(struct sim *sim)
{
	if ((int32_t)(sim->head - sim->expired) > 0)
		sim->expired = sim->head;
	for (; sim->deadline_ns && sim->expired != sim->tail; sim->expired++) {
		struct sim_request *request = &sim->queue[sim->expired % SIM_QUEUE];

		if (sim->now_ns - request->arrived_ns <= sim->deadline_ns)
			break;
		request->gave_up = true;
		sim_settle(sim, false, 0);
	}
}

static inline int64_t sim_work(struct sim *sim)
{
	double work = (double)sim->work_ns;

	if (!sim->steady_work)
		work *= -log(1 - random_unit(&sim->seed));
	return work > (double)MS ? (int64_t)(work / (double)MS + 0.5) * MS : MS;
}

static inline void sim_serve(struct sim *sim)
{
	for (int i = 0; i < sim->workers; i++) {
		struct sim_request *held = &sim->held[i];

		if (sim->finish_ns[i] && sim->finish_ns[i] <= sim->now_ns) {
			int64_t took_ns = sim->now_ns - held->arrived_ns;

			if (!held->gave_up)
				sim_settle(sim, !sim->deadline_ns || took_ns <= sim->deadline_ns,
					   took_ns);
			sim->finish_ns[i] = 0;
		}
		if (!sim->finish_ns[i] && sim->head != sim->tail) {
			*held = sim->queue[sim->head++ % SIM_QUEUE];
			sim->finish_ns[i] = sim->now_ns + sim_work(sim);
		}
		sim->cpu_times.used += sim->finish_ns[i] != 0;
		sim->cpu_times.available++;
	}
}

static inline int sim_poisson(struct sim *sim, double mean)
{
	double limit = exp(-mean), product = random_unit(&sim->seed);
	int count = 0;

	for (; product > limit; count++)
		product *= random_unit(&sim->seed);
	return count;
}

static inline void sim_tick(struct sim *sim)
{
	int64_t width_ns = weir_service_tick_ns(sim->service);

	if (!sim->fixed_cpu)
		sim->cpu = weir_cpu_meter_add(&sim->meter, sim->now_ns, sim->cpu_times);
	weir_service_tick(sim->service, sim->now_ns, &sim->counts, sim->cpu);
	sim->tick_at_ns = sim->now_ns + width_ns +
			  (int64_t)(sim->late * random_unit(&sim->seed) * (double)width_ns);
}

static inline void sim_step(struct sim *sim)
{
	sim->now_ns += MS;
	sim->tokens = fmin(sim->tokens + sim->limit / 1000, fmax(sim->limit / 10, 1));
	sim->wall_tokens = fmin(sim->wall_tokens + sim->wall / 1000, fmax(sim->wall / 10, 1));
	for (int n = sim_poisson(sim, sim->load / 1000); n > 0; n--) {
		if (sim_admit(sim))
			sim_arrive(sim);
	}
	sim_serve(sim);
	sim_give_up(sim);
	if (sim->service && !sim->dead_ticks && sim->now_ns >= sim->tick_at_ns)
		sim_tick(sim);
}

/* What a stretch of time brought, each a second. */
struct sim_result {
	double goodput, failures, attempts, dropped, shed;
	uint64_t p99_ns;
};

static inline struct sim_result sim_run(struct sim *sim, double seconds)
{
	struct weir_service_counts before = sim->counts;
	struct sim_result result = { 0 };
	uint64_t all, seen = 0;

	for (int64_t end = sim->now_ns + (int64_t)(seconds * 1e9); sim->now_ns < end;)
		sim_step(sim);
	result.goodput = (double)(sim->counts.success - before.success) / seconds;
	result.failures = (double)(sim->counts.failure - before.failure) / seconds;
	result.attempts = (double)(sim->counts.attempts - before.attempts) / seconds;
	result.dropped = (double)(sim->counts.dropped - before.dropped) / seconds;
	result.shed = (double)(sim->counts.shed - before.shed) / seconds;
	all = sim->counts.success - before.success;
	for (uint32_t i = 0; i < WEIR_RESPONSE_SLOTS && !result.p99_ns && all; i++) {
		seen += sim->counts.response[i] - before.response[i];
		if ((double)seen >= 0.99 * (double)all)
			result.p99_ns = weir_response_least(i + 1);
	}
	return result;
}
