/* SPDX-License-Identifier: GPL-2.0 */
/* A controller, a process of its own, asked by its socket, and what it shows held to a model. */
#pragma once

#include <jansson.h>
#include <sys/un.h>

#include "commands_model.h"
#include "engine_lab.h"
#include "harness.h"

static struct model model;
static char control[128], last[256]; /* the socket's path; the last request */
static FILE *controller;	     /* the socket */
static pid_t process;

static inline int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * SECOND + now.tv_nsec;
}

/* ---- the controller ---- */

static inline bool join(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const struct timeval patience = { .tv_sec = 20 };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	strcpy(address.sun_path, control);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		close(fd);
		return false;
	}
	controller = fdopen(fd, "r+");
	return controller;
}

static inline json_t *ask(json_t *request)
{
	char *line = json_dumps(request, JSON_COMPACT), *answer = NULL;
	size_t room = 0;
	json_t *got = NULL;

	snprintf(last, sizeof(last), "%s", line);
	fprintf(controller, "%s\n", line);
	fflush(controller);
	fseek(controller, 0, SEEK_CUR);
	if (getline(&answer, &room, controller) > 0)
		got = json_loads(answer, 0, NULL);
	free(answer);
	free(line);
	json_decref(request);
	return got;
}

static inline void begin(void)
{
	process = fork();
	if (!process) {
		int log = open("/dev/null", O_WRONLY);

		dup2(log, 1);
		dup2(log, 2);
		execl("build/weir", "weir", "run", "-c", lab.config, "--pins", lab.pins,
		      "--overrides", lab.overrides, "--socket", control, NULL);
		_exit(127);
	}
	/* It listens before it is ready, and answers once it is. */
	for (int i = 0; i < 2000 && !join(); i++)
		usleep(10000);
	CU_ASSERT_PTR_NOT_NULL_FATAL(controller);
}

static inline void ended(void)
{
	int status;

	waitpid(process, &status, 0);
	fclose(controller);
	controller = NULL;
	process = 0;
}

/* ---- what is shown ---- */

static inline const char *show_limits(json_t *shown)
{
	json_t *limits = json_object_get(shown, "limits"), *limit;
	static char wrong[512];
	size_t at = 0;

	for (int i = 0; i < LIMITS; i++) {
		char name[8], want[128];

		if (!model.now[i].there)
			continue;
		limit = json_array_get(limits, at++);
		snprintf(name, sizeof(name), "l%d", i);
		setting_print(i, &model.now[i], want, sizeof(want));
		if (limit && !strcmp(name, json_string_value(json_object_get(limit, "name"))) &&
		    !strcmp(want, json_string_value(json_object_get(limit, "setting"))) &&
		    !strcmp(model.now[i].mode == 2 ? "monitor" : "enforce",
			    json_string_value(json_object_get(limit, "mode"))))
			continue;
		snprintf(wrong, sizeof(wrong), "%s should be '%s', mode %d; it is '%s'", name, want,
			 model.now[i].mode,
			 limit ? json_string_value(json_object_get(limit, "setting")) : "none");
		return wrong;
	}
	return at == json_array_size(limits) ? NULL : "there are more limits";
}

static inline const char *show_loops(json_t *shown)
{
	json_t *service = json_array_get(json_object_get(shown, "services"), 0);

	for (int i = 0; i < 2; i++) {
		json_t *frozen = json_object_get(json_object_get(service, loops[i]), "frozen");

		if (!json_is_boolean(frozen) || json_is_true(frozen) != model.frozen[i])
			return "a loop is frozen that should not be, or not that should";
	}
	return NULL;
}

static inline json_t *find_entry(json_t *entries, const char *prefix)
{
	json_t *entry;
	size_t i;

	json_array_foreach(entries, i, entry)
	{
		if (!strcmp(json_string_value(json_object_get(entry, "prefix")), prefix))
			return entry;
	}
	return NULL;
}

static inline bool entry_is(const struct entry *want, json_t *got, int64_t before_ns,
			    int64_t after_ns)
{
	json_t *left = json_object_get(got, "left_ns");
	bool live = is_live(want, after_ns);
	bool forever = want->file || want->expires_ns == FOREVER;

	if (is_unsure(want, before_ns) || is_unsure(want, after_ns))
		return true;
	if (!want->file && !live)
		return !got;
	if (!got || json_is_true(json_object_get(got, "file")) != want->file ||
	    json_is_true(json_object_get(got, "live")) != live)
		return false;
	if (forever)
		return json_is_null(left);
	/* The model's clock was read before the command that added it was. */
	return json_integer_value(left) >= want->expires_ns - after_ns &&
	       json_integer_value(left) <= want->expires_ns - before_ns + 10 * SECOND;
}

static inline const char *show_list(int list)
{
	int64_t before_ns = now_ns(), after_ns;
	json_t *answer = ask(json_pack("{s:s, s:{s:s}}", "command", list_names[list], "arguments",
				       "action", "list"));
	json_t *entries = json_object_get(json_object_get(answer, "result"), "entries");
	static char wrong[512];
	bool ok = true;

	after_ns = now_ns();
	for (int i = 0; i < PREFIXES && ok; i++) {
		const struct entry *want = &model.lists[list][i];
		json_t *got = find_entry(entries, prefixes[i]);

		ok = entry_is(want, got, before_ns, after_ns);
		if (ok)
			continue;
		snprintf(wrong, sizeof(wrong), "%s %s: file %d, live %d, left %lld ms; it is %s",
			 list_names[list], prefixes[i], want->file, is_live(want, after_ns),
			 want->live ? (long long)(want->expires_ns - after_ns) / 1000000 : 0,
			 got ? json_dumps(got, 0) : "not there");
	}
	json_decref(answer);
	return ok ? NULL : wrong;
}

/* NULL, or what is not as it should be. */
static inline const char *compare(void)
{
	json_t *answer = ask(json_pack("{s:s}", "command", "show"));
	json_t *shown = json_object_get(answer, "result");
	const char *wrong = shown ? NULL : "show is not answered";

	if (!wrong)
		wrong = show_limits(shown);
	if (!wrong)
		wrong = show_loops(shown);
	json_decref(answer);
	for (int list = 0; list < 2 && !wrong; list++)
		wrong = show_list(list);
	return wrong;
}
