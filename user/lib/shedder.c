// SPDX-License-Identifier: GPL-2.0
#include "weir/shedder.h"

#include <math.h>
#include <stdlib.h>

#include "span.h"
#include "weir/window.h"

#define CPU_MAX 1000
#define BUCKET_MAX (1LL << 40)

struct weir_shedder {
	struct weir_shed shed;
	struct weir_window *window; /* of weir_total: the response times of passes */
	int64_t flying;
	double average; /* of flying */
	bool hot_once;	/* hot_ns counts */
	bool shedding;	/* has refused since it was last cool */
	int64_t hot_ns; /* when the CPU was last at or over the threshold */
};

const struct weir_shed weir_shed = {
	.size = 50,
	.window_ns = 5000000000,
	.cpu = 900,
	.latency_ns = 1000000000,
	.beta = 0.9,
	.cool_ns = 1000000000,
	.floor = 0.1,
};

struct weir_shed weir_shed_new(void)
{
	return weir_shed;
}

static double share_or(double value, double preset)
{
	return isnan(value) ? preset : fmin(fmax(value, 0), 1);
}

struct weir_shedder *weir_shedder_new(const struct weir_shed *shed, int64_t now_ns)
{
	struct weir_shedder *shedder = calloc(1, sizeof(*shedder));

	if (!shedder)
		return NULL;
	shedder->shed = shed ? *shed : weir_shed;
	shedder->shed.beta = share_or(shedder->shed.beta, weir_shed.beta);
	shedder->shed.floor = share_or(shedder->shed.floor, weir_shed.floor);
	shedder->window = weir_window_new(shedder->shed.size, shedder->shed.window_ns, now_ns,
					  sizeof(struct weir_total), NULL);
	if (!shedder->window) {
		free(shedder);
		return NULL;
	}
	return shedder;
}

void weir_shedder_free(struct weir_shedder *shedder)
{
	if (!shedder)
		return;
	weir_window_free(shedder->window);
	free(shedder);
}

struct reading {
	int64_t busiest; /* passes */
	double fastest;	 /* mean response time, ns */
};

static void read_bucket(void *context, const void *bucket)
{
	const struct weir_total *total = bucket;
	struct reading *reading = context;
	double mean;

	if (!total->count)
		return;
	mean = (double)total->sum / (double)total->count;
	if (total->count > reading->busiest)
		reading->busiest = total->count;
	if (mean < reading->fastest)
		reading->fastest = mean;
}

static double scale(const struct weir_shed *shed, int32_t cpu)
{
	if (shed->cpu >= CPU_MAX)
		return cpu >= shed->cpu ? shed->floor : 1;
	return fmin(fmax(((double)CPU_MAX - cpu) / ((double)CPU_MAX - shed->cpu), shed->floor), 1);
}

double weir_shedder_capacity(const struct weir_shedder *shedder, int64_t now_ns, int32_t cpu)
{
	struct reading reading = { .busiest = 1 };

	if (!shedder)
		return 0;
	reading.fastest = (double)shedder->shed.latency_ns;
	weir_window_each(shedder->window, now_ns, false, read_bucket, &reading);
	return fmax((double)reading.busiest / (double)weir_window_width(shedder->window) *
			    reading.fastest,
		    1) *
	       scale(&shedder->shed, cpu);
}

static bool hot(struct weir_shedder *shedder, int64_t now_ns, int32_t cpu)
{
	int64_t cool_ns = shedder->shed.cool_ns;

	if (cpu >= shedder->shed.cpu) {
		shedder->hot_once = true;
		shedder->hot_ns = now_ns;
		return true;
	}
	if (!shedder->shedding || !shedder->hot_once)
		return false;
	shedder->shedding =
		weir_span_since(now_ns, shedder->hot_ns) < (uint64_t)(cool_ns > 0 ? cool_ns : 0);
	return shedder->shedding;
}

bool weir_shedder_allow(struct weir_shedder *shedder, int64_t now_ns, int32_t cpu,
			struct weir_ticket *ticket)
{
	if (!shedder || !ticket)
		return false;
	ticket->shedder = NULL;
	if (hot(shedder, now_ns, cpu)) {
		double capacity = weir_shedder_capacity(shedder, now_ns, cpu);

		if (shedder->average > capacity && (double)shedder->flying > capacity) {
			shedder->shedding = true;
			return false;
		}
	}
	shedder->flying++;
	ticket->shedder = shedder;
	ticket->started_ns = now_ns;
	return true;
}

int64_t weir_shedder_flying(const struct weir_shedder *shedder)
{
	return shedder ? shedder->flying : 0;
}

/* Take the ticket's call out of flight: its shedder, or NULL if it was settled before. */
static struct weir_shedder *land(struct weir_ticket *ticket)
{
	struct weir_shedder *shedder = ticket ? ticket->shedder : NULL;

	if (!shedder)
		return NULL;
	ticket->shedder = NULL;
	shedder->flying--;
	shedder->average = shedder->average * shedder->shed.beta +
			   (double)shedder->flying * (1 - shedder->shed.beta);
	return shedder;
}

bool weir_ticket_pass(struct weir_ticket *ticket, int64_t now_ns)
{
	struct weir_shedder *shedder = land(ticket);

	if (!shedder)
		return false;
	weir_total_add(weir_window_slot(shedder->window, now_ns),
		       weir_span_sum(weir_span_since(now_ns, ticket->started_ns), 0));
	return true;
}

bool weir_ticket_fail(struct weir_ticket *ticket)
{
	return land(ticket) != NULL;
}

static int64_t count_of(int64_t value)
{
	return value > 0 ? value : 0;
}

void weir_shedder_record(struct weir_shedder *shedder, int64_t now_ns,
			 const struct weir_shedder_calls *calls)
{
	struct weir_total *total;
	double keep;
	int64_t room;

	if (!shedder || !calls)
		return;
	total = weir_window_slot(shedder->window, now_ns);
	room = total->count < BUCKET_MAX ? BUCKET_MAX - total->count : 0;
	total->count += count_of(calls->passes) > room ? room : count_of(calls->passes);
	total->sum = weir_span_sum((uint64_t)total->sum, (uint64_t)count_of(calls->response_ns));
	shedder->flying = count_of(calls->flying);
	keep = pow(shedder->shed.beta,
		   (double)count_of(calls->passes) + (double)count_of(calls->failures));
	shedder->average = shedder->average * keep + (double)shedder->flying * (1 - keep);
	if (calls->refusals > 0)
		shedder->shedding = true;
}

bool weir_shedder_hot(struct weir_shedder *shedder, int64_t now_ns, int32_t cpu)
{
	return shedder && hot(shedder, now_ns, cpu);
}

double weir_shedder_average(const struct weir_shedder *shedder)
{
	return shedder ? shedder->average : 0;
}
