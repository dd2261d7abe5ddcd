// SPDX-License-Identifier: GPL-2.0
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "controller/cpu.h"
#include "controller/service_private.h"
#include "weir/backoff.h"

/* A drop or ceiling is said when it has moved by this much since it was last said. */
#define SAY_DROP 0.1
#define SAY_CEILING 0.25
/* One that has refused nobody since is said no sooner than so long after. */
#define SAY_IDLE_NS 10000000000LL

void weir_service_say(struct weir_service *service, enum weir_loop_kind loop, double from,
		      double to, const char *signal, const char *figures)
{
	struct weir_movement movement = {
		.time_ns = service->now_ns,
		.loop = loop,
		.from = from,
		.to = to,
		.signal = signal,
	};

	if (!service->hooks.moved)
		return;
	memcpy(movement.service, service->conf.name, sizeof(movement.service));
	snprintf(movement.figures, sizeof(movement.figures), "%s", figures);
	service->hooks.moved(service->hooks.context, &movement);
}

/* ---- differences ---- */

/* All of the cumulative counts lie before the histogram and in_flight. */
static bool went_back(const struct weir_service_counts *now, const struct weir_service_counts *then)
{
	bool back = now->attempts < then->attempts || now->success < then->success ||
		    now->failure < then->failure || now->dropped < then->dropped ||
		    now->shed < then->shed || now->response_count < then->response_count ||
		    now->response_ns < then->response_ns;

	for (uint32_t i = 0; i < WEIR_RESPONSE_SLOTS; i++)
		back |= now->response[i] < then->response[i];
	return back;
}

struct difference {
	uint64_t success, failure, dropped, shed, response_count, response_ns;
};

static struct difference subtract(const struct weir_service_counts *now,
				  const struct weir_service_counts *then)
{
	return (struct difference){
		now->success - then->success,
		now->failure - then->failure,
		now->dropped - then->dropped,
		now->shed - then->shed,
		now->response_count - then->response_count,
		now->response_ns - then->response_ns,
	};
}

/* ---- spreading a difference over the buckets that its time lies in ---- */

/* What of `whole` belongs to the first `part` of its time. */
static int64_t up_to(uint64_t whole, double part)
{
	double share = (double)whole * part;

	return share < 9e18 ? (int64_t)share : INT64_MAX;
}

static struct difference portion(const struct difference *whole, double from, double to)
{
	const uint64_t *in = (const uint64_t *)whole;
	struct difference part = { 0 };
	uint64_t *out = (uint64_t *)&part;

	for (size_t i = 0; i < sizeof(part) / sizeof(*out); i++)
		out[i] = (uint64_t)(up_to(in[i], to) - up_to(in[i], from));
	return part;
}

static void record_breaker(struct weir_service *service, int64_t at_ns,
			   const struct difference *part)
{
	weir_breaker_record(service->breaker, at_ns, (int64_t)part->success, (int64_t)part->failure,
			    (int64_t)part->dropped);
}

static void record_shedder(struct weir_service *service, int64_t at_ns,
			   const struct difference *part)
{
	uint64_t settled = part->success + part->failure;
	struct weir_shedder_calls calls = {
		.passes = (int64_t)part->response_count,
		.response_ns = (int64_t)part->response_ns,
		.refusals = (int64_t)part->shed,
		.flying = (int64_t)service->counts.in_flight,
	};

	if (settled > part->response_count)
		calls.failures = (int64_t)(settled - part->response_count);
	weir_shedder_record(service->shedder, at_ns, &calls);
}

/*
 * Hands out `whole`, counted over (from_ns, to_ns], bucket by bucket, each its part of the time.
 * What lies further back than the window is left out: it has aged out already.
 */
static void spread(struct weir_service *service, const struct weir_service_spread *buckets,
		   int64_t from_ns, int64_t to_ns, const struct difference *whole,
		   void (*record)(struct weir_service *, int64_t, const struct difference *))
{
	double span_ns = (double)(to_ns - from_ns);
	int64_t at_ns = from_ns;

	if (to_ns <= from_ns)
		record(service, from_ns, whole);
	if (to_ns - at_ns > buckets->window_ns)
		at_ns = to_ns - buckets->window_ns;
	if (at_ns < buckets->opened_ns)
		at_ns = buckets->opened_ns;
	while (at_ns < to_ns) {
		int64_t gone = (at_ns - buckets->opened_ns) / buckets->width_ns + 1;
		int64_t end_ns = buckets->opened_ns + gone * buckets->width_ns;
		struct difference part;

		if (end_ns > to_ns)
			end_ns = to_ns;
		part = portion(whole, (double)(at_ns - from_ns) / span_ns,
			       end_ns == to_ns ? 1 : (double)(end_ns - from_ns) / span_ns);
		record(service, at_ns, &part);
		at_ns = end_ns;
	}
}

/* ---- the loops ---- */

static void set_probe(struct weir_service *service)
{
	struct weir_backoff once = {
		.base_ns = service->conf.breaker.probe_ns,
		.factor = 1,
		.cap_ns = service->conf.breaker.probe_ns,
		.jitter = { WEIR_JITTER_SPREAD, WEIR_SERVICE_PROBE_SPREAD },
	};

	/* Drawn once a probe: drawing at every look would favour the short ones. */
	if (service->output.probe_ns &&
	    service->now_ns - service->probe_at_ns < service->output.probe_ns)
		return;
	service->probe_at_ns = service->now_ns;
	service->output.probe_ns = weir_backoff_delay(&once, 1, weir_service_draw(service), 0);
}

static void say_breaker(struct weir_service *service)
{
	double drop = service->output.drop;
	struct difference since;
	char figures[WEIR_MOVEMENT_TEXT];

	if (fabs(drop - service->said_drop) < SAY_DROP && !drop == !service->said_drop)
		return;
	since = subtract(&service->counts, &service->said);
	snprintf(figures, sizeof(figures), "%llu failed, %llu ok, %llu dropped since the last",
		 (unsigned long long)since.failure, (unsigned long long)since.success,
		 (unsigned long long)since.dropped);
	weir_service_say(service, WEIR_LOOP_BREAKER, service->said_drop, drop, "failures", figures);
	service->said_drop = drop;
	service->said = service->counts;
}

static void tick_breaker(struct weir_service *service)
{
	if (!service->breaker)
		return;
	set_probe(service);
	if (service->frozen[WEIR_LOOP_BREAKER])
		return;
	service->output.drop = weir_breaker_ratio(service->breaker, service->now_ns);
	say_breaker(service);
}

static void say_shedder(struct weir_service *service, double capacity)
{
	double ceiling = service->output.ceiling == WEIR_SERVICE_NO_CEILING
				 ? INFINITY
				 : (double)service->output.ceiling;
	double said = service->said_ceiling;
	char figures[WEIR_MOVEMENT_TEXT];

	if (isinf(ceiling) == isinf(said) &&
	    (isinf(ceiling) || fabs(ceiling - said) < fmax(1, SAY_CEILING * said)))
		return;
	if (service->said_shed == service->counts.shed && service->said_at_ns &&
	    service->now_ns - service->said_at_ns < SAY_IDLE_NS)
		return;
	snprintf(figures, sizeof(figures),
		 "cpu %d of %d thousandths, capacity %.1f, in flight %llu, average %.1f",
		 service->cpu, service->conf.shedder.cpu, capacity,
		 (unsigned long long)service->counts.in_flight,
		 weir_shedder_average(service->shedder));
	weir_service_say(service, WEIR_LOOP_SHEDDER, said, ceiling, "cpu", figures);
	service->said_ceiling = ceiling;
	service->said_shed = service->counts.shed;
	service->said_at_ns = service->now_ns;
}

/*
 * Hot: what the library calls full. When it has cooled off while the ceiling still refuses, the
 * demand is still there, and no ceiling would let a flood in before the CPU could show it: the
 * ceiling then only rises, and goes once it has refused nobody for the cooling time.
 */
static double ceiling_level(const struct weir_service *service, double capacity, int64_t span_ns)
{
	if (service->hot)
		return capacity;
	if (isinf(service->level) ||
	    service->now_ns - service->refused_at_ns >= service->conf.shedder.cool_ns)
		return INFINITY;
	return service->level * pow(WEIR_SERVICE_RELEASE, (double)span_ns / 1e9);
}

static void tick_shedder(struct weir_service *service, int64_t span_ns, bool refused)
{
	double capacity;

	if (!service->shedder)
		return;
	capacity = weir_shedder_capacity(service->shedder, service->now_ns, service->cpu);
	service->hot = service->cpu >= 0 &&
		       weir_shedder_hot(service->shedder, service->now_ns, service->cpu);
	service->full = (double)service->counts.in_flight > capacity &&
			weir_shedder_average(service->shedder) > capacity;
	if (refused)
		service->refused_at_ns = service->now_ns;
	if (service->frozen[WEIR_LOOP_SHEDDER])
		return;
	service->level = ceiling_level(service, capacity, span_ns);
	/* The library refuses while more than `capacity` fly: from the next whole number on. */
	service->output.ceiling =
		service->level < 9e15 ? (uint64_t)service->level + 1 : WEIR_SERVICE_NO_CEILING;
	say_shedder(service, capacity);
}

/* A span of response times begins; the one before the last is forgotten. */
static void turn_spans(struct weir_service *service)
{
	if (service->now_ns - service->span_at_ns < WEIR_SERVICE_SPAN_NS)
		return;
	service->spans[0] = service->spans[1];
	service->spans[1] = service->counts;
	service->span_at_ns = service->now_ns;
}

static void begin(struct weir_service *service, int64_t now_ns,
		  const struct weir_service_counts *counts)
{
	service->counts = service->said = *counts;
	service->spans[0] = service->spans[1] = *counts;
	service->span_at_ns = now_ns;
	service->based = true;
}

void weir_service_tick(struct weir_service *service, int64_t now_ns,
		       const struct weir_service_counts *counts, int32_t cpu)
{
	int64_t before_ns = service->now_ns;
	struct difference whole = { 0 };

	service->cpu = cpu;
	if (!service->based || went_back(counts, &service->counts)) {
		begin(service, now_ns, counts);
	} else {
		whole = subtract(counts, &service->counts);
		service->counts = *counts;
	}
	/* A clock that goes back counts as no time passed. */
	if (now_ns < before_ns)
		now_ns = before_ns;
	service->now_ns = now_ns;
	service->attempts.success += whole.success;
	service->attempts.failure += whole.failure;
	if (service->breaker)
		spread(service, &service->spread[WEIR_LOOP_BREAKER], before_ns, now_ns, &whole,
		       record_breaker);
	if (service->shedder)
		spread(service, &service->spread[WEIR_LOOP_SHEDDER], before_ns, now_ns, &whole,
		       record_shedder);
	tick_breaker(service);
	tick_shedder(service, now_ns - before_ns, whole.shed > 0);
	if (service->governing)
		weir_governor_tick(&service->governor, service->now_ns, service->attempts);
	turn_spans(service);
}
