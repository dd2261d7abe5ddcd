// SPDX-License-Identifier: GPL-2.0
#include "cli/top_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/pinned.h"
#include "controller/clock.h"

#define LOOK_NS 1000000000ULL
#define SLOW_NS (2 * LOOK_NS)	   /* from when on an answer is missed */
#define PATIENCE_NS (30 * LOOK_NS) /* then it is asked anew */
#define ANSWER_BYTES_MAX (16U << 20)

/* One connection: what it has sent us so far. */
struct line {
	int fd; /* -1: none */
	char *bytes;
	size_t size, room;
};

struct weir_top_source {
	const struct weir_cli *cli;
	struct weir_top_model *model;
	uint64_t due_ns;   /* the next look */
	struct line asks;  /* show and top, in turn */
	unsigned int owed; /* answers */
	uint64_t asked_ns;
	struct line refusals; /* watch */
	/* while the controller is down */
	struct weir_dataplane dataplane;
	struct weir_interface_status interfaces[WEIR_INTERFACES_MAX];
	struct weir_scan *scan;
	uint64_t walked_ns;
	bool pinned;
};

static void set_state(struct weir_top_source *source, bool alert, const char *text)
{
	snprintf(source->model->state, sizeof(source->model->state), "%s", text);
	source->model->alert = alert;
}

/* ---- lines ---- */

static void hang_up(struct line *line)
{
	if (line->fd >= 0)
		close(line->fd);
	free(line->bytes);
	*line = (struct line){ .fd = -1 };
}

/* Connects and sends; a Unix socket has room for this, or its owner is no controller. */
static int call(struct line *line, const char *path, const char *text)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t size = strlen(text);

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path) + 1);
	if (line->fd < 0)
		line->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	else
		path = NULL; /* it is connected */
	if (line->fd < 0)
		return -errno;
	errno = 0;
	if ((path && connect(line->fd, (struct sockaddr *)&address, sizeof(address))) ||
	    send(line->fd, text, size, MSG_NOSIGNAL) != (ssize_t)size) {
		int code = errno ? -errno : -EPIPE;

		hang_up(line);
		return code;
	}
	return 0;
}

/* Reads what there is: false at the end, or where it is too much. */
static bool hear(struct line *line)
{
	for (;;) {
		ssize_t got;

		if (line->size == line->room) {
			size_t room = line->room ? 2 * line->room : 65536;
			char *bytes = room > ANSWER_BYTES_MAX ? NULL : realloc(line->bytes, room);

			if (!bytes)
				return false;
			line->bytes = bytes;
			line->room = room;
		}
		got = recv(line->fd, line->bytes + line->size, line->room - line->size, 0);
		if (got <= 0)
			return got < 0 && (errno == EAGAIN || errno == EINTR);
		line->size += (size_t)got;
	}
}

/* The next whole answer, NULL where there is none yet. Its result is to be released. */
static json_t *take(struct line *line, bool *ok)
{
	char *end = line->size ? memchr(line->bytes, '\n', line->size) : NULL;
	size_t used = end ? (size_t)(end - line->bytes) : 0;
	json_t *answer, *result;

	if (!end)
		return NULL;
	answer = json_loadb(line->bytes, used, 0, NULL);
	line->size -= used + 1;
	memmove(line->bytes, end + 1, line->size);
	*ok = json_is_true(json_object_get(answer, "ok"));
	result = json_object_get(answer, *ok ? "result" : "error");
	result = result ? json_incref(result) : json_null();
	json_decref(answer);
	return result;
}

/* ---- the pins ---- */

static void leave_pins(struct weir_top_source *source)
{
	weir_scan_free(source->scan);
	source->scan = NULL;
	source->walked_ns = 0;
	if (source->pinned)
		weir_dataplane_unmap(&source->dataplane);
	source->pinned = false;
}

static int open_pins(struct weir_top_source *source)
{
	int code = source->pinned ? 0 : weir_dataplane_open(&source->dataplane, source->cli->pins);

	if (code)
		return code;
	source->pinned = true;
	if (!source->scan &&
	    weir_scan_new(&source->scan, &source->dataplane, source->cli->total ? 0 : 1))
		return -ENOMEM;
	return 0;
}

static uint32_t slot_of(const struct weir_top_source *source)
{
	const struct weir_cli *cli = source->cli;
	int slot = cli->argument_count
			   ? weir_report_find_slot(&source->dataplane, cli->arguments[0])
			   : WEIR_NO_LIMIT;

	/* One that is no more has no keys. */
	return slot < 0 ? WEIR_LIMITS_MAX : (uint32_t)slot;
}

static void walk_pins(struct weir_top_source *source, uint64_t now_ns)
{
	bool first = !source->walked_ns, total = source->cli->total;
	uint64_t span_ns = total ? 0 : now_ns - source->walked_ns;
	struct weir_top top, *tops[] = { &top };
	json_t *answer;

	if (weir_top_init(&top, WEIR_TOP_ASK, slot_of(source), !total))
		return;
	weir_scan_run(source->scan, tops, 1);
	source->walked_ns = now_ns;
	weir_top_sort(&top);
	if (!first || total) {
		answer = weir_report_add(json_pack("{s:I}", "span_ns", (json_int_t)span_ns), "keys",
					 weir_report_top(&source->dataplane, &top,
							 weir_scan_limits(source->scan), 0,
							 top.count, span_ns));
		weir_top_take_keys(source->model, answer);
		json_decref(answer);
	}
	weir_top_free(&top);
}

static void look_at_pins(struct weir_top_source *source, uint64_t now_ns)
{
	struct weir_view view = { .dataplane = &source->dataplane,
				  .interfaces = source->interfaces,
				  .now_ns = now_ns };
	struct weir_error err;
	json_t *show;
	int code = open_pins(source), rc;

	if (code) {
		set_state(source, true,
			  code == -EPROTO
				  ? "the controller is down, and the pins are of another version"
				  : "the controller is down, and nothing is pinned");
		return;
	}
	set_state(source, true, "controller is down, reading the pinned maps");
	view.interface_count = weir_report_pinned_interfaces(&source->dataplane, source->interfaces,
							     WEIR_INTERFACES_MAX);
	show = weir_report_show(&view, NULL, &rc, &err);
	weir_top_take_show(source->model, show);
	json_decref(show);
	walk_pins(source, now_ns);
}

/* ---- the controller ---- */

static int ask(struct weir_top_source *source, uint64_t now_ns)
{
	const struct weir_cli *cli = source->cli;
	json_t *arguments = json_pack("{s:i, s:b}", "count", WEIR_TOP_ASK, "total", cli->total);
	json_t *top;
	char *text, *both = NULL;
	int code = -ENOMEM;

	if (cli->argument_count)
		json_object_set_new(arguments, "limit", json_string(cli->arguments[0]));
	top = json_pack("{s:s, s:o}", "command", "top", "arguments", arguments);
	text = top ? json_dumps(top, JSON_COMPACT) : NULL;
	json_decref(top);
	if (text && asprintf(&both, "{\"command\":\"show\"}\n%s\n", text) < 0)
		both = NULL;
	if (both)
		code = call(&source->asks, weir_client_socket(cli), both);
	free(text);
	free(both);
	if (code)
		return code;
	source->owed = 2;
	source->asked_ns = now_ns;
	if (source->refusals.fd < 0)
		(void)call(&source->refusals, weir_client_socket(cli), "{\"command\":\"watch\"}\n");
	return 0;
}

static void take_answers(struct weir_top_source *source)
{
	json_t *result;
	bool ok;

	while (source->owed && (result = take(&source->asks, &ok))) {
		source->owed--;
		if (!ok)
			set_state(source, true,
				  json_string_value(result)
					  ? json_string_value(result)
					  : "the controller's answer can't be read");
		else if (source->owed)
			weir_top_take_show(source->model, result);
		else
			weir_top_take_keys(source->model, result);
		if (ok && source->owed)
			set_state(source, false, "live");
		json_decref(result);
	}
}

static void take_refusals(struct weir_top_source *source)
{
	json_t *result;
	bool ok;

	while ((result = take(&source->refusals, &ok))) {
		if (ok)
			weir_top_take_refusal(source->model, result);
		json_decref(result);
	}
}

/* ---- both ---- */

static void look(struct weir_top_source *source, uint64_t now_ns)
{
	char text[64];
	int code;

	source->due_ns = now_ns + LOOK_NS;
	if (source->owed && now_ns - source->asked_ns < PATIENCE_NS) {
		if (now_ns - source->asked_ns >= SLOW_NS) {
			snprintf(text, sizeof(text), "no answer from the controller for %.0f s",
				 (double)(now_ns - source->asked_ns) / 1e9);
			set_state(source, true, text);
		}
		return;
	}
	if (source->owed) {
		hang_up(&source->asks);
		source->owed = 0;
	}
	code = ask(source, now_ns);
	/* The one we had was ended: perhaps another one listens. */
	if (code == -EPIPE || code == -ECONNRESET)
		code = ask(source, now_ns);
	if (code == -ENOENT || code == -ECONNREFUSED) {
		hang_up(&source->refusals);
		look_at_pins(source, now_ns);
	} else if (code) {
		snprintf(text, sizeof(text), "can't ask the controller: %s", strerror(-code));
		set_state(source, true, text);
	} else {
		leave_pins(source);
	}
}

bool weir_top_source_step(struct weir_top_source *source)
{
	uint64_t now_ns = weir_monotonic_ns();
	unsigned int owed = source->owed;

	if (source->asks.fd >= 0) {
		bool there = hear(&source->asks);

		take_answers(source);
		if (!there) {
			hang_up(&source->asks);
			source->due_ns = source->owed ? now_ns : source->due_ns;
			source->owed = 0;
		}
	}
	if (source->refusals.fd >= 0) {
		bool there = hear(&source->refusals);

		take_refusals(source);
		if (!there)
			hang_up(&source->refusals);
	}
	if (now_ns < source->due_ns)
		return source->owed != owed;
	look(source, now_ns);
	return true;
}

int weir_top_source_open(struct weir_top_source **source, const struct weir_cli *cli,
			 struct weir_top_model *model)
{
	struct weir_top_source *made = calloc(1, sizeof(*made));
	struct weir_pinned *pinned;
	int code;

	if (!made)
		return weir_cli_fail_text(cli, WEIR_EXIT_FAILED, "out of memory");
	made->cli = cli;
	made->model = model;
	made->asks.fd = made->refusals.fd = -1;
	look(made, weir_monotonic_ns());
	*source = made;
	if (made->owed || made->pinned)
		return WEIR_EXIT_OK;
	/* Neither: this says why. */
	code = weir_pinned_open(&pinned, cli);
	if (!code)
		weir_pinned_close(pinned);
	weir_top_source_close(made);
	return code ? code : weir_cli_fail_text(cli, WEIR_EXIT_FAILED, "%s", model->state);
}

void weir_top_source_close(struct weir_top_source *source)
{
	if (!source)
		return;
	hang_up(&source->asks);
	hang_up(&source->refusals);
	leave_pins(source);
	free(source);
}

size_t weir_top_source_fds(const struct weir_top_source *source,
			   struct pollfd fds[WEIR_TOP_SOURCE_FDS])
{
	const struct line *const lines[] = { &source->asks, &source->refusals };
	size_t count = 0;

	for (int i = 0; i < WEIR_TOP_SOURCE_FDS; i++) {
		if (lines[i]->fd >= 0)
			fds[count++] = (struct pollfd){ .fd = lines[i]->fd, .events = POLLIN };
	}
	return count;
}

int weir_top_source_wait_ms(const struct weir_top_source *source)
{
	uint64_t now_ns = weir_monotonic_ns();

	return source->due_ns > now_ns ? (int)((source->due_ns - now_ns + 999999) / 1000000) : 0;
}
