// SPDX-License-Identifier: GPL-2.0
/*
 * A client of the control socket, with the controller's commands behind it on a dataplane in
 * plain memory: any bytes, in pieces cut at random, are answered line by line in JSON that says
 * ok or why not, and the connection ends when the client does. No kernel: what a command would
 * store in maps fails there, and must fail in words.
 *
 * One controller serves all inputs, which is twice as fast as one each; policy and maps are put
 * back before each. It ends with the fuzzer.
 *
 * The first 8 bytes draw the pieces; where the five lowest bits of the first byte are set, blanks
 * come before the rest until the first line is near the longest that is allowed.
 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/un.h>

#include "controller/compile.h"
#include "controller/engine_internal.h"
#include "controller/loop_private.h"
#include "fake_dataplane.h"
#include "random.h"

#define SETS 8
#define ROUNDS_MAX 200000 /* of the loop, for one input */
#define JOIN_WAITS_MAX 10000 /* of a millisecond */

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char config[] =
	"version: 1\n"
	"interfaces: [{name: eth0}]\n"
	"lists: {allow: [192.0.2.0/24], deny: [198.51.100.0/24]}\n"
	"limits:\n"
	"  - {name: per-ip, key: source, bucket: {rate: 1000pps, burst: 2000}}\n"
	"  - {name: bytes, key: {source: {v4: 24}}, bucket: {rate: 80mbit}}\n"
	"  - {name: ring, key: source, sliding: {quota: 100, window: 1s}, match: {proto: udp}}\n"
	"  - {name: daily, key: none, period: {quota: 1000, period: 1d, align: true}}\n"
	"  - {name: conns, key: source, gate: {limit: 50}, match: {proto: tcp, to_port: 80}}\n"
	"services:\n"
	"  - {name: web, match: {proto: tcp, to_port: 80}, breaker: {}, shedder: {}}\n"
	"  - name: api\n"
	"    match: {proto: tcp, to_port: 81}\n"
	"    trust: report\n"
	"    governor: {control: per-ip, start: 50pps, floor: 10pps}\n";

static char folder[] = "/tmp/weir-fuzz-XXXXXX", path[sizeof(folder) + 8];

static void check(bool ok)
{
	if (!ok)
		abort();
}

/* ---- a controller without a kernel ---- */

struct controller {
	struct weir_loop loop;
	struct weir_loop_options options;
	struct weir_engine engine;
};

static const struct weir_policy_limit *find_limit(void *context, const char *name)
{
	return weir_policy_find_limit(((struct controller *)context)->engine.policy, name);
}

static int set_limit(void *context, const char *name, const struct weir_policy_change *change)
{
	struct weir_error err;

	return weir_policy_set(((struct controller *)context)->engine.policy, name, change, 1,
			       &err);
}

static void moved(void *context, const struct weir_movement *movement)
{
	(void)context;
	(void)movement;
}

static void note(void *context, const char *line)
{
	(void)context;
	(void)line;
}

static uint64_t clock_ns(void)
{
	return 1000000000000ULL;
}

static void make_engine(struct weir_engine *engine)
{
	struct weir_dataplane *fake = &engine->dataplane;
	struct weir_error err;

	/* Neither can be read or written: a reload and a save are refused. */
	engine->config = "/dev/null/weir.yaml";
	engine->overrides = "/dev/null/overrides.json";
	engine->confirm_file = "/dev/null/confirm.json";
	engine->wall_clock = clock_ns;
	engine->boot_clock = clock_ns;
	fake_dataplane_make(fake, SETS, 64);
	check(!weir_policy_load_text(config, strlen(config), "fuzz", &engine->policy, &err));
	for (uint16_t slot = 0; slot < engine->policy->limit_count; slot++) {
		const struct weir_policy_limit *limit = &engine->policy->limits[slot];
		struct weir_limit *made = fake_limit_add(fake, limit->name, "", slot);
		struct weir_limit compiled;

		check(!weir_compile_limit(engine->policy, limit, 0, &compiled, &err));
		memcpy(made->words, compiled.words, sizeof(made->words));
		made->kind = compiled.kind;
		weir_compile_label(limit, &fake->labels[slot]);
	}
	fake_key_add(fake, &fake->board->limits[0], "192.0.2.7", 5, 6, 7);
	fake_key_add(fake, &fake->board->limits[0], "2001:db8::1", 1, 2, UINT64_MAX / 2);
	engine->generation = (struct weir_generation){ fake, -1, -1 };
	engine->lists.dataplane = fake;
	engine->held.count = 1;
	strcpy(engine->held.status[0].name, "eth0");
}

static void make(struct controller *made)
{
	const struct weir_services_io io = { NULL,  NULL, find_limit,  set_limit,
					     moved, note, "/dev/null", made };
	const struct weir_control_options options = { .path = path,
						      .group = getegid(),
						      .idle_seconds = 30,
						      .handler = weir_commands_handle,
						      .closed = weir_commands_closed,
						      .context = &made->loop };
	struct weir_loop *loop = &made->loop;
	struct weir_error err;

	memset(made, 0, sizeof(*made));
	make_engine(&made->engine);
	made->options.overrides = made->engine.overrides;
	loop->options = &made->options;
	loop->engine = &made->engine;
	loop->base = event_base_new();
	loop->journal = weir_journal_new();
	loop->services = weir_services_new(&io);
	check(!weir_services_apply(loop->services, made->engine.policy, 0, &err));
	check(!weir_ranking_new(&loop->ranking, loop->base, &made->engine.dataplane));
	check(!weir_control_start(&loop->control, loop->base, &options, &err));
}

/* What a `set` changes: plain values, and the limits and labels in the maps. */
static struct {
	struct weir_policy_limit *limits;
	struct weir_board board;
	struct weir_label labels[WEIR_LIMITS_MAX];
} first;

static void keep_first(const struct weir_engine *engine)
{
	size_t bytes = engine->policy->limit_count * sizeof(*first.limits);

	first.limits = malloc(bytes);
	check(first.limits);
	memcpy(first.limits, engine->policy->limits, bytes);
	memcpy(&first.board, engine->dataplane.board, sizeof(first.board));
	memcpy(first.labels, engine->dataplane.labels, sizeof(first.labels));
}

static void put_back(struct weir_engine *engine)
{
	memcpy(engine->policy->limits, first.limits,
	       engine->policy->limit_count * sizeof(*first.limits));
	memcpy(engine->dataplane.board, &first.board, sizeof(first.board));
	memcpy(engine->dataplane.labels, first.labels, sizeof(first.labels));
}

static void unmake(struct controller *made)
{
	struct weir_loop *loop = &made->loop;

	weir_ranking_free(loop->ranking);
	loop->ranking = NULL;
	weir_services_free(loop->services);
	if (loop->stopper)
		weir_control_reply(loop->stopper, json_true());
	weir_control_stop(loop->control);
	check(!loop->subscriber_count);
	event_base_free(loop->base);
	weir_journal_free(loop->journal);
	weir_lists_close(&made->engine.lists);
	weir_policy_free(made->engine.policy);
	fake_dataplane_free(&made->engine.dataplane);
}

static struct controller controller;

static void end(void)
{
	put_back(&controller.engine);
	unmake(&controller);
	free(first.limits);
	rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	signal(SIGPIPE, SIG_IGN);
	check(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/s", folder);
	make(&controller);
	keep_first(&controller.engine);
	atexit(end);
	return 0;
}

/* ---- the client ---- */

struct client {
	int fd;
	bool ended; /* by the controller */
	char *answers;
	size_t length, room, judged;
	size_t lines, answered;
};

/* An answer says ok with a result, or why not with the code that goes with it. */
static void judge(struct client *client, const char *text, size_t length)
{
	json_t *answer = json_loadb(text, length, 0, NULL), *ok = json_object_get(answer, "ok");
	json_int_t code = json_integer_value(json_object_get(answer, "code"));
	const char *error = json_string_value(json_object_get(answer, "error"));

	check(json_is_boolean(ok));
	if (json_is_true(ok))
		check(json_object_get(answer, "result"));
	else
		check((code == 1 || code == 2) && error && *error);
	client->answered += !json_is_true(json_object_get(answer, "more"));
	json_decref(answer);
}

static void take(struct client *client)
{
	char *end;

	for (;;) {
		ssize_t got;

		if (client->room - client->length < 4096) {
			client->room = 2 * client->room + 8192;
			client->answers = realloc(client->answers, client->room);
		}
		got = recv(client->fd, client->answers + client->length,
			   client->room - client->length, MSG_DONTWAIT);
		if (got <= 0) {
			client->ended |= !got || errno != EAGAIN;
			break;
		}
		client->length += (size_t)got;
	}
	while ((end = memchr(client->answers + client->judged, '\n',
			     client->length - client->judged))) {
		judge(client, client->answers + client->judged,
		      (size_t)(end - client->answers) - client->judged);
		client->judged = (size_t)(end - client->answers) + 1;
	}
}

static void pump(struct client *client)
{
	struct weir_loop *loop = &controller.loop;

	event_base_loop(loop->base, EVLOOP_NONBLOCK);
	/* The real one answers when it has stopped. */
	if (loop->stopper) {
		struct weir_control_client *stopper = loop->stopper;

		loop->stopper = NULL;
		weir_control_reply(stopper, json_true());
	}
	take(client);
}

static void say(struct client *client, const char *bytes, size_t size)
{
	unsigned int rounds = 0;

	while (size && !client->ended) {
		ssize_t sent = send(client->fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent > 0) {
			bytes += sent;
			size -= (size_t)sent;
		} else if (errno != EAGAIN) {
			return;
		}
		pump(client);
		check(++rounds < ROUNDS_MAX);
	}
}

static void join(struct client *client)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	unsigned int waits = 0;

	strcpy(address.sun_path, path);
	client->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	/* The queue is full while clients before us wait for a `top` of a second. */
	while (connect(client->fd, (struct sockaddr *)&address, sizeof(address))) {
		check(errno == EAGAIN && waits++ < JOIN_WAITS_MAX);
		event_base_loop(controller.loop.base, EVLOOP_NONBLOCK);
		usleep(1000);
	}
}

static void talk(struct client *client, const char *bytes, size_t size, uint64_t draws)
{
	size_t most = random_below(&draws, 4) ? size : 16;

	while (size && !client->ended) {
		size_t piece = 1 + random_below(&draws, most);

		if (piece > size)
			piece = size;
		say(client, bytes, piece);
		bytes += piece;
		size -= piece;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char blanks[WEIR_CONTROL_REQUEST_MAX - 64];
	struct client client = { 0 };
	uint64_t draws;

	if (size <= sizeof(draws))
		return 0;
	memcpy(&draws, data, sizeof(draws));
	for (size_t i = sizeof(draws); i < size; i++)
		client.lines += data[i] == '\n';
	put_back(&controller.engine);
	join(&client);
	if ((draws & 31) == 31) {
		memset(blanks, ' ', sizeof(blanks));
		say(&client, blanks, sizeof(blanks));
	}
	talk(&client, (const char *)data + sizeof(draws), size - sizeof(draws), draws | 1);
	shutdown(client.fd, SHUT_WR);
	/* A `top` of rates takes a second and more: what is not answered at once is given up. */
	for (int i = 0; i < 20 && !client.ended; i++)
		pump(&client);
	/* The one answer too many says that a line is too long. */
	check(client.judged == client.length && client.answered <= client.lines + 1);
	close(client.fd);
	/* The controller lets go of who is gone, and of all that he waited for. */
	for (int i = 0; i < 3; i++)
		event_base_loop(controller.loop.base, EVLOOP_NONBLOCK);
	check(!controller.loop.subscriber_count);
	free(client.answers);
	return 0;
}
