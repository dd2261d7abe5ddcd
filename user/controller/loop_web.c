// SPDX-License-Identifier: GPL-2.0
/*
 * What the HTTP server has: the metrics, the dashboard's files, and the reports of the control
 * socket for it. A page is made at most twice a second, however many ask; the ledger is walked
 * for the heaviest keys in slices (ranking.h), once a second at most, while somebody asks.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "controller/clock.h"
#include "controller/dashboard.h"
#include "controller/http.h"
#include "controller/loop_private.h"
#include "controller/metrics.h"

#define FRESH_NS 500000000ULL
#define TOP_NS 1000000000ULL
#define TOP_KEYS 20
#define EVENTS 200
#define RETRY_SECONDS 5

/* A page that is made anew when it is asked for and too old. */
struct cached {
	struct weir_page *page;
	uint64_t made_ns;
};

enum made_page { METRICS, SHOW, LATEST, MADE_PAGES };

struct weir_web {
	struct weir_loop *loop;
	struct weir_http *http;
	char listen[WEIR_POLICY_TEXT_SIZE]; /* of http */
	struct event *retry;		    /* while it can't be had */
	bool failing;			    /* and that is said */
	struct weir_page *files[WEIR_DASHBOARD_FILES];
	struct cached made[MADE_PAGES];
	struct cached top;
	bool ranking; /* the walk for the next `top` is on */
};

static const char json_content[] = "application/json";

static const struct weir_policy_metrics *in_force(const struct weir_web *web)
{
	return &weir_engine_policy(web->loop->engine)->metrics;
}

/* ---- pages that are made ---- */

static struct weir_page *json_page(json_t *report)
{
	char *text = report ? json_dumps(report, JSON_COMPACT) : NULL;

	json_decref(report);
	return text ? weir_page_new(json_content, text, strlen(text), true) : NULL;
}

static struct weir_page *make_show(struct weir_loop *loop)
{
	struct weir_interface_status interfaces[WEIR_INTERFACES_MAX];
	struct weir_error err;
	struct weir_view view;
	int rc;

	weir_loop_view(&view, loop, interfaces);
	return json_page(weir_report_show(&view, NULL, &rc, &err));
}

static struct weir_page *make_events(struct weir_loop *loop)
{
	return json_page(weir_report_add(json_pack("{s:i}", "schema", WEIR_JSON_SCHEMA), "events",
					 weir_journal_json(loop->journal, EVENTS)));
}

static struct weir_page *make_metrics(struct weir_loop *loop)
{
	struct weir_interface_status interfaces[WEIR_INTERFACES_MAX];
	struct weir_connection_counts connections;
	struct weir_view view;
	struct weir_metrics metrics = {
		.view = &view,
		.policy = weir_engine_policy(loop->engine),
		.connections = weir_engine_connections(loop->engine, &connections) ? &connections
										   : NULL,
		.http = weir_http_counts(loop->web->http),
		.started_ns = loop->started_ns,
		.reloads = loop->reloads,
		.reloads_refused = loop->reloads_refused,
		.version = WEIR_VERSION,
	};
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	bool failed;

	if (!out)
		return NULL;
	weir_loop_view(&view, loop, interfaces);
	weir_metrics_print(&metrics, out);
	failed = ferror(out);
	if (fclose(out) || failed) {
		free(text);
		return NULL;
	}
	return weir_page_new(WEIR_METRICS_TYPE, text, size, true);
}

/* Takes over a page in the place of the one before. */
static void keep(struct cached *cached, struct weir_page *page)
{
	if (!page)
		return;
	weir_page_put(cached->page);
	*cached = (struct cached){ page, weir_monotonic_ns() };
}

static bool is_old(const struct cached *cached, uint64_t than_ns)
{
	return !cached->page || weir_monotonic_ns() - cached->made_ns >= than_ns;
}

static struct weir_page *made_page(struct weir_web *web, enum made_page which)
{
	static struct weir_page *(*const make[MADE_PAGES])(struct weir_loop *loop) = {
		[METRICS] = make_metrics, [SHOW] = make_show, [LATEST] = make_events,
	};
	struct cached *cached = &web->made[which];
	bool old = is_old(cached, FRESH_NS);
	struct weir_page *page = old ? make[which](web->loop) : NULL;

	keep(cached, page);
	/* What is old is no answer when no new one could be made. */
	return old && !page ? NULL : weir_page_get(cached->page);
}

/* ---- the heaviest keys: those of the last walk, and word for the next one ---- */

static json_t *top_report(uint64_t span_ns, json_t *keys)
{
	return weir_report_add(json_pack("{s:i, s:I}", "schema", WEIR_JSON_SCHEMA, "span_ns",
					 (json_int_t)span_ns),
			       "keys", keys);
}

static void on_ranked(void *context, struct weir_top *top, const struct weir_limits_view *limits,
		      uint64_t span_ns)
{
	struct weir_web *web = context;
	const struct weir_dataplane *dataplane = weir_engine_dataplane(web->loop->engine);

	web->ranking = false;
	keep(&web->top, json_page(top_report(span_ns, weir_report_top(dataplane, top, limits, 0,
								      TOP_KEYS, span_ns))));
	weir_top_free(top);
}

static struct weir_page *top_page(struct weir_web *web)
{
	if (!web->top.page) {
		keep(&web->top, json_page(top_report(0, json_array())));
		web->top.made_ns = 0;
	}
	if (!web->ranking && is_old(&web->top, TOP_NS))
		web->ranking = !weir_ranking_ask(web->loop->ranking, WEIR_NO_LIMIT, TOP_KEYS, true,
						 on_ranked, web);
	return weir_page_get(web->top.page);
}

/* ---- paths ---- */

static struct weir_page *page(void *context, const char *path, int *rc)
{
	static const struct {
		const char *path;
		enum made_page page;
	} made[] = {
		{ "/metrics", METRICS },
		{ "/api/show", SHOW },
		{ "/api/events", LATEST },
	};
	struct weir_web *web = context;

	*rc = -ENOENT;
	if (strcmp(path, "/metrics") && !in_force(web)->dashboard)
		return NULL;
	*rc = -ENOMEM;
	for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
		if (!strcmp(path, made[i].path))
			return made_page(web, made[i].page);
	}
	if (!strcmp(path, "/api/top"))
		return top_page(web);
	for (size_t i = 0; i < WEIR_DASHBOARD_FILES; i++) {
		if (!strcmp(path, weir_dashboard_files[i].path))
			return weir_page_get(web->files[i]);
	}
	*rc = -ENOENT;
	return NULL;
}

static const struct weir_texts *hosts(void *context)
{
	const struct weir_web *web = context;

	return &in_force(web)->hosts;
}

/* ---- the server as the policy wants it ---- */

static void log_listening(struct weir_web *web)
{
	struct weir_error line;

	weir_error_set(&line, 0, "metrics and dashboard: http://%s/%s", web->listen,
		       weir_http_is_loopback(web->listen) ?
			       "" :
			       ": whoever reaches this address can read limits, totals and, unless "
			       "dashboard is false, the addresses of the heaviest sources");
	weir_loop_log(web->loop, line.text);
}

static int serve(struct weir_web *web, const char *listen, struct weir_http **http,
		 struct weir_error *err)
{
	const struct weir_http_options options = {
		.listen = listen, .hosts = hosts, .page = page, .context = web
	};

	return weir_http_start(http, web->loop->base, &options, err);
}

/* The new address may be in the way of the old one: 0.0.0.0 of the same port. */
static int serve_instead(struct weir_web *web, const char *listen, struct weir_http **http,
			 struct weir_error *err)
{
	struct weir_error ignored;
	int rc;

	weir_http_stop(web->http);
	web->http = NULL;
	rc = serve(web, listen, http, err);
	if (rc && serve(web, web->listen, &web->http, &ignored))
		web->listen[0] = '\0';
	return rc;
}

/* The old one goes when the new one is there: a port that can't be had costs nothing. */
static int start(struct weir_web *web, const char *listen, struct weir_error *err)
{
	struct weir_http *http = NULL;
	int rc = serve(web, listen, &http, err);

	if (rc == -EADDRINUSE && web->http && !strcmp(strrchr(listen, ':'),
						      strrchr(web->listen, ':')))
		rc = serve_instead(web, listen, &http, err);
	if (rc)
		return rc;
	weir_http_stop(web->http);
	web->http = http;
	snprintf(web->listen, sizeof(web->listen), "%s", listen);
	log_listening(web);
	return 0;
}

static void stop(struct weir_web *web)
{
	if (web->http)
		weir_loop_log(web->loop, "metrics and dashboard: off");
	weir_http_stop(web->http);
	web->http = NULL;
	web->listen[0] = '\0';
}

static void say_failing(struct weir_web *web, struct weir_error *err)
{
	struct weir_error line;

	if (web->failing)
		return;
	weir_error_set(&line, 0, "%s: %s; tried again every %d s, the limits don't wait for it",
		       web->http ? "metrics stay where they were" : "no metrics, no dashboard",
		       err->text, RETRY_SECONDS);
	weir_loop_log(web->loop, line.text);
	web->failing = true;
}

static void try(struct weir_web *web)
{
	const struct timeval later = { .tv_sec = RETRY_SECONDS };
	const char *listen = in_force(web)->listen;
	struct weir_error err = { 0 };

	event_del(web->retry);
	if (!strcmp(listen, "off")) {
		stop(web);
	} else if (strcmp(listen, web->listen) && start(web, listen, &err)) {
		say_failing(web, &err);
		event_add(web->retry, &later);
		return;
	}
	web->failing = false;
}

static void on_retry(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	try(arg);
}

static bool make_files(struct weir_web *web)
{
	for (size_t i = 0; i < WEIR_DASHBOARD_FILES; i++) {
		const struct weir_dashboard_file *file = &weir_dashboard_files[i];

		web->files[i] = weir_page_new(file->type, file->bytes, file->length, false);
		if (!web->files[i])
			return false;
	}
	return true;
}

void weir_loop_web_apply(struct weir_loop *loop)
{
	if (!loop->web) {
		loop->web = calloc(1, sizeof(*loop->web));
		if (loop->web) {
			loop->web->loop = loop;
			loop->web->retry = evtimer_new(loop->base, on_retry, loop->web);
		}
		if (!loop->web || !loop->web->retry || !make_files(loop->web)) {
			weir_loop_web_end(loop);
			weir_loop_log(loop, "no metrics, no dashboard: out of memory");
			return;
		}
	}
	/* A reload is news: what fails again is said again. */
	loop->web->failing = false;
	try(loop->web);
}

void weir_loop_web_end(struct weir_loop *loop)
{
	struct weir_web *web = loop->web;

	if (!web)
		return;
	if (loop->ranking)
		weir_ranking_forget(loop->ranking, web);
	weir_http_stop(web->http);
	if (web->retry)
		event_free(web->retry);
	for (size_t i = 0; i < WEIR_DASHBOARD_FILES; i++)
		weir_page_put(web->files[i]);
	for (size_t i = 0; i < MADE_PAGES; i++)
		weir_page_put(web->made[i].page);
	weir_page_put(web->top.page);
	free(web);
	loop->web = NULL;
}
