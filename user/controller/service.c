// SPDX-License-Identifier: GPL-2.0
#include "controller/service_private.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/cpu.h"

/* ---- the governor's control: the caller's, held still while frozen ---- */

static int control_push(void *context, double offer)
{
	struct weir_service *service = context;
	const struct weir_governor_control *control = &service->hooks.control;

	return control->push ? control->push(control->context, offer) : 0;
}

static int read_committed(struct weir_service *service, double *committed)
{
	const struct weir_governor_control *control = &service->hooks.control;
	int rc = control->read ? control->read(control->context, committed) : 0;

	service->committed = *committed;
	return rc;
}

static int control_read(void *context, double *committed)
{
	struct weir_service *service = context;

	/* To the governor an offer that isn't confirmed yet: it holds, and forgets the window. */
	if (service->governing && service->frozen[WEIR_LOOP_GOVERNOR])
		return -EINPROGRESS;
	return read_committed(service, committed);
}

/* What the library's lines begin with, and the signal that they tell of. */
static const char *signal_of(const char *line)
{
	static const struct {
		const char *begins, *signal;
	} signals[] = {
		{ "up ", "attempt failures" },
		{ "down ", "attempt failures" },
		{ "an outside writer", "outside writer" },
		{ "forgot ", "clean windows" },
	};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		if (!strncmp(line, signals[i].begins, strlen(signals[i].begins)))
			return signals[i].signal;
	}
	return "control";
}

/* Of "up 50 -> 100 (climbing): attempt failures 0% of 90, below 1%" what a movement doesn't say
 * by itself. */
static void move_figures(const char *line, char *figures, size_t size)
{
	const char *colon = strstr(line, ": attempt failures ");
	const char *open = strchr(line, '('), *close = strchr(line, ')');

	if (!colon)
		snprintf(figures, size, "%s", line);
	else if (open && close && open < colon && close < colon)
		snprintf(figures, size, "%s, %.*s", colon + strlen(": attempt failures "),
			 (int)(close - open - 1), open + 1);
	else
		snprintf(figures, size, "%s", colon + strlen(": attempt failures "));
}

static void control_log(void *context, const char *line)
{
	struct weir_service *service = context;
	const char *signal = signal_of(line);
	bool outside = !strcmp(signal, "outside writer");
	char figures[WEIR_MOVEMENT_TEXT];
	double offer;

	/* The start is said by who starts it. */
	if (!service->governing)
		return;
	/* The outside writer's line comes before the governor has taken its value over. */
	offer = outside ? service->committed : weir_governor_offer(&service->governor);
	move_figures(line, figures, sizeof(figures));
	weir_service_say(service, WEIR_LOOP_GOVERNOR, service->offer_before, offer, signal,
			 outside ? "weir set or a reload: going on from there" : figures);
	service->offer_before = offer;
}

static void start_governor(struct weir_service *service, int64_t now_ns)
{
	const struct weir_governor_control control = { control_push, control_read, control_log,
						       service };
	struct weir_governor_conf *conf = &service->conf.governor;
	/* The first window is longer by a draw, so that those of one start don't step together. */
	double later = weir_service_draw(service) * (double)conf->window_ns;
	double before = NAN, offer;
	char figures[WEIR_MOVEMENT_TEXT];

	read_committed(service, &before);
	service->governing = false;
	service->governor =
		weir_governor_new(conf, &control, now_ns + (int64_t)later, service->attempts);
	service->governing = true;
	offer = weir_governor_offer(&service->governor);
	snprintf(figures, sizeof(figures), "floor %.7g, ceiling %.7g", conf->floor, conf->ceiling);
	weir_service_say(service, WEIR_LOOP_GOVERNOR, isnan(before) ? offer : before, offer,
			 "start", figures);
	service->offer_before = offer;
}

/* ---- settings ---- */

double weir_service_draw(struct weir_service *service)
{
	uint64_t z = service->random += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

static bool same_breaker(const struct weir_sre *a, const struct weir_sre *b)
{
	return a->k == b->k && a->floor == b->floor && a->protection == b->protection &&
	       a->probe_ns == b->probe_ns && a->size == b->size && a->window_ns == b->window_ns;
}

static bool same_shedder(const struct weir_shed *a, const struct weir_shed *b)
{
	return a->size == b->size && a->window_ns == b->window_ns && a->cpu == b->cpu &&
	       a->latency_ns == b->latency_ns && a->beta == b->beta && a->cool_ns == b->cool_ns &&
	       a->floor == b->floor;
}

static bool same_governor(const struct weir_governor_conf *a, const struct weir_governor_conf *b)
{
	return a->start == b->start && a->floor == b->floor && a->ceiling == b->ceiling &&
	       a->high == b->high && a->low == b->low && a->window_ns == b->window_ns;
}

/* A new breaker or shedder where the settings want one; both before either is replaced. */
static int renew(struct weir_service *service, const struct weir_service_conf *conf,
		 const bool changed[], int64_t now_ns)
{
	struct weir_breaker *breaker = NULL;
	struct weir_shedder *shedder = NULL;

	if (changed[WEIR_LOOP_BREAKER] && conf->has[WEIR_LOOP_BREAKER]) {
		breaker = weir_breaker_new(&conf->breaker, now_ns);
		if (!breaker)
			return -ENOMEM;
	}
	if (changed[WEIR_LOOP_SHEDDER] && conf->has[WEIR_LOOP_SHEDDER]) {
		shedder = weir_shedder_new(&conf->shedder, now_ns);
		if (!shedder) {
			weir_breaker_free(breaker);
			return -ENOMEM;
		}
	}
	if (changed[WEIR_LOOP_BREAKER]) {
		weir_breaker_free(service->breaker);
		service->breaker = breaker;
		service->spread[WEIR_LOOP_BREAKER].opened_ns = now_ns;
		service->output.drop = 0;
		service->said_drop = 0;
	}
	if (changed[WEIR_LOOP_SHEDDER]) {
		weir_shedder_free(service->shedder);
		service->shedder = shedder;
		service->spread[WEIR_LOOP_SHEDDER].opened_ns = now_ns;
		service->output.ceiling = WEIR_SERVICE_NO_CEILING;
		service->said_ceiling = service->level = INFINITY;
	}
	return 0;
}

static int64_t width_of(int32_t size, int64_t window_ns)
{
	int64_t width = window_ns / (size > 1 ? size : 1);

	return width > 0 ? width : 1;
}

int weir_service_configure(struct weir_service *service, const struct weir_service_conf *conf,
			   int64_t now_ns)
{
	const struct weir_service_conf *old = &service->conf;
	bool changed[WEIR_LOOP_KINDS] = {
		!same_breaker(&old->breaker, &conf->breaker),
		!same_shedder(&old->shedder, &conf->shedder),
		!same_governor(&old->governor, &conf->governor),
	};
	int rc;

	for (int loop = 0; loop < WEIR_LOOP_KINDS; loop++) {
		changed[loop] |= old->has[loop] != conf->has[loop];
		service->frozen[loop] &= conf->has[loop];
	}
	rc = renew(service, conf, changed, now_ns);
	if (rc)
		return rc;
	service->conf = *conf;
	service->spread[WEIR_LOOP_BREAKER].width_ns =
		width_of(conf->breaker.size, conf->breaker.window_ns);
	service->spread[WEIR_LOOP_BREAKER].window_ns = conf->breaker.window_ns;
	service->spread[WEIR_LOOP_SHEDDER].width_ns =
		width_of(conf->shedder.size, conf->shedder.window_ns);
	service->spread[WEIR_LOOP_SHEDDER].window_ns = conf->shedder.window_ns;
	if (changed[WEIR_LOOP_GOVERNOR]) {
		service->governing = false;
		if (conf->has[WEIR_LOOP_GOVERNOR])
			start_governor(service, now_ns);
	}
	return 0;
}

struct weir_service *weir_service_new(const struct weir_service_conf *conf,
				      const struct weir_service_hooks *hooks, int64_t now_ns)
{
	struct weir_service *service = calloc(1, sizeof(*service));

	if (!service)
		return NULL;
	service->hooks = *hooks;
	service->random = conf->seed;
	service->now_ns = now_ns;
	service->offer_before = NAN;
	service->cpu = WEIR_CPU_UNKNOWN;
	service->output.ceiling = WEIR_SERVICE_NO_CEILING;
	service->said_ceiling = service->level = INFINITY;
	memcpy(service->conf.name, conf->name, sizeof(service->conf.name));
	if (weir_service_configure(service, conf, now_ns)) {
		weir_service_free(service);
		return NULL;
	}
	return service;
}

void weir_service_free(struct weir_service *service)
{
	if (!service)
		return;
	weir_breaker_free(service->breaker);
	weir_shedder_free(service->shedder);
	free(service);
}

void weir_service_rebase(struct weir_service *service)
{
	service->based = false;
}

void weir_service_push(struct weir_service *service)
{
	double offer = weir_governor_offer(&service->governor), committed = offer;
	int rc;

	if (!service->governing || read_committed(service, &committed) ||
	    weir_governor_rounds(offer, committed))
		return;
	rc = control_push(service, offer);
	weir_service_say(service, WEIR_LOOP_GOVERNOR, committed, rc ? committed : offer, "reload",
			 rc ? strerror(-rc) : "the file's value gave way to the offer");
}

/* ---- what others see ---- */

int64_t weir_service_tick_ns(const struct weir_service *service)
{
	int64_t tick = WEIR_SERVICE_TICK_MAX_NS;

	for (int loop = 0; loop < WEIR_LOOP_GOVERNOR; loop++) {
		if (service->conf.has[loop] && service->spread[loop].width_ns < tick)
			tick = service->spread[loop].width_ns;
	}
	if (service->conf.has[WEIR_LOOP_GOVERNOR] && service->conf.governor.window_ns / 4 < tick)
		tick = service->conf.governor.window_ns / 4;
	return tick > WEIR_SERVICE_TICK_MIN_NS ? tick : WEIR_SERVICE_TICK_MIN_NS;
}

const struct weir_service_output *weir_service_output(const struct weir_service *service)
{
	return &service->output;
}

const char *weir_service_name(const struct weir_service *service)
{
	return service->conf.name;
}

bool weir_service_freeze(struct weir_service *service, enum weir_loop_kind loop, bool frozen)
{
	if (!service->conf.has[loop])
		return false;
	service->frozen[loop] = frozen;
	return true;
}

/* The upper end of the slot that holds the q-th of the responses since the older span began. */
static uint64_t quantile(const struct weir_service *service, double q)
{
	const struct weir_service_counts *now = &service->counts, *then = &service->spans[0];
	uint64_t all = 0, seen = 0;

	for (uint32_t i = 0; i < WEIR_RESPONSE_SLOTS; i++)
		all += now->response[i] - then->response[i];
	for (uint32_t i = 0; i < WEIR_RESPONSE_SLOTS && all; i++) {
		seen += now->response[i] - then->response[i];
		if ((double)seen >= q * (double)all)
			return weir_response_least(i + 1);
	}
	return 0;
}

void weir_service_status(const struct weir_service *service, struct weir_service_status *status)
{
	*status = (struct weir_service_status){
		.counts = service->counts,
		.output = service->output,
		.cpu = service->cpu,
		.ratio = weir_breaker_ratio(service->breaker, service->now_ns),
		.capacity = weir_shedder_capacity(service->shedder, service->now_ns, service->cpu),
		.average = weir_shedder_average(service->shedder),
		.hot = service->hot,
		.full = service->full,
		.offer = service->governing ? weir_governor_offer(&service->governor) : NAN,
		.mode = weir_climb_name(
			weir_governor_climb(service->governing ? &service->governor : NULL)),
		.last_bad = service->governing ? service->governor.last_bad : NAN,
		.streak = service->governor.streak,
		.median_ns = quantile(service, 0.5),
		.p99_ns = quantile(service, 0.99),
	};
	memcpy(status->has, service->conf.has, sizeof(status->has));
	memcpy(status->frozen, service->frozen, sizeof(status->frozen));
}
