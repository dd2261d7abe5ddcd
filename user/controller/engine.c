// SPDX-License-Identifier: GPL-2.0
#include "controller/engine.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "controller/engine_internal.h"
#include "controller/clock.h"
#include "controller/file.h"
#include "controller/netns.h"
#include "controller/overrides.h"
#include "controller/pins.h"
#include "controller/programs.h"
#include "controller/report.h"
#include "controller/sweep.h"

/* Without news of a link, what can't be had is tried again every so many ticks. */
#define RETRY_TICKS 30
/* Bans that are over are looked for, and connections counted anew, every so often: by time, since
 * news of links brings ticks by the hundred, and either may take long. */
#define BANS_NS 10000000000ULL
#define RECOUNT_NS 60000000000ULL

void weir_engine_say(const struct weir_engine *engine, const char *format, ...)
{
	char line[1024];
	va_list args;

	if (!engine->log)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	engine->log(engine->log_context, line);
}

uint64_t weir_engine_features(void)
{
#define CAN(feature) WEIR_FEATURE_BIT(WEIR_FEATURE_##feature)
	return CAN(BUCKET) | CAN(BYTES) | CAN(GATE) | CAN(GATE_RESET) |
	       CAN(KEY_SOURCE) | CAN(KEY_DESTINATION) |
	       CAN(KEY_SOURCE_PORT) | CAN(KEY_FLOW) | CAN(KEY_NONE) | CAN(MATCH_PROTO) |
	       CAN(MATCH_TO_PORT) | CAN(MATCH_FROM_PORT) | CAN(MATCH_FROM) | CAN(MATCH_TO) |
	       CAN(MATCH_FLAGS) | CAN(MATCH_ICMP) | CAN(MATCH_VLAN) | CAN(MATCH_INTERFACE) |
	       CAN(MONITOR) | CAN(MANY_LIMITS) | CAN(HOOK_TC_INGRESS) | CAN(HOOK_TC_EGRESS) |
	       CAN(SLIDING) | CAN(PERIOD) | CAN(PERIOD_ALIGN) | CAN(BAN) | CAN(LISTS) |
	       CAN(SERVICES) | CAN(EXCHANGES) | CAN(BREAKER) | CAN(SHEDDER) | CAN(GOVERNOR) |
	       CAN(REPORT);
#undef CAN
}

/* ---- policy ---- */

static void note_kept(void *context, const char *line)
{
	struct weir_engine *engine = context;

	json_array_append_new(engine->kept, json_string(line));
	weir_engine_say(engine, "%s", line);
}

json_t *weir_engine_notes(const struct weir_engine *engine)
{
	json_t *notes = json_copy(engine->kept);

	for (size_t i = 0; notes && i < engine->held.count; i++) {
		const struct weir_interface_status *status = &engine->held.status[i];

		if (!status->attached)
			json_array_append_new(notes,
					      json_sprintf("NOT limited: %s", status->reason));
	}
	return notes ? notes : json_array();
}

void weir_engine_saved_anew(struct weir_engine *engine)
{
	json_decref(engine->saved);
	engine->saved = weir_overrides_limits(engine->overrides);
}

json_t *weir_engine_saved(const struct weir_engine *engine, const char *limit)
{
	return json_object_get(engine->saved, limit);
}

int weir_engine_read_policy(struct weir_engine *engine, struct weir_policy **policy,
			    struct weir_error *err)
{
	int code = weir_policy_load_file(engine->config, policy, err);

	if (code)
		return code;
	json_decref(engine->kept);
	engine->kept = json_array();
	code = weir_policy_check_features(*policy, weir_engine_features(), err);
	if (!code)
		code = weir_overrides_apply(engine->overrides, *policy, note_kept, engine, err);
	weir_engine_saved_anew(engine);
	if (!code)
		return 0;
	weir_policy_free(*policy);
	*policy = NULL;
	return code;
}

/* ---- start ---- */

static int open_netlink(struct weir_engine *engine, struct weir_error *err)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK };

	engine->netlink_fd =
		socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (engine->netlink_fd < 0 ||
	    bind(engine->netlink_fd, (struct sockaddr *)&address, sizeof(address)))
		return weir_error_set(err, -errno, "can't listen for links: %s", strerror(errno));
	return 0;
}

static int open_clock(struct weir_engine *engine, struct weir_error *err)
{
	engine->clock_fd = weir_clock_open();
	return engine->clock_fd < 0 ? weir_error_set(err, engine->clock_fd,
						     "can't watch the wall clock: %s",
						     strerror(-engine->clock_fd)) :
				      0;
}

static int open_maps(struct weir_engine *engine, uint32_t keys, struct weir_error *err)
{
	struct weir_error note;
	int code = weir_load_open(&engine->load, engine->pins, keys, &note, err);
	struct weir_bpf *skeleton = engine->load.skeleton;

	if (code)
		return code;
	if (*note.text)
		weir_engine_say(engine, "%s", note.text);
	code = weir_dataplane_map(&engine->dataplane, skeleton->obj);
	if (code)
		return weir_error_set(err, code, "can't map weir's maps into memory: %s",
				      strerror(-code));
	weir_programs_recall(engine->pins);
	engine->xdp = (struct weir_xdp){
		.load = &engine->load,
		.board_id =
			weir_map_id(bpf_object__find_map_fd_by_name(skeleton->obj, ".data.board")),
	};
	engine->tc = (struct weir_tc){ .load = &engine->load, .board_id = engine->xdp.board_id };
	code = weir_generation_open(&engine->generation, &engine->dataplane, err);
	if (!code) {
		struct weir_compiled_before now = weir_generation_now(&engine->generation);

		code = weir_own_open(&engine->own, &engine->dataplane, &now, err);
	}
	if (!code)
		code = weir_exchanges_open(&engine->exchanges, &engine->load, err);
	return code ? code : weir_lists_open(&engine->lists, &engine->dataplane, err);
}

/* What only looks on, once or twice. */
static void close_watches(struct weir_engine *engine)
{
	if (engine->netlink_fd >= 0)
		close(engine->netlink_fd);
	if (engine->clock_fd >= 0)
		close(engine->clock_fd);
	engine->netlink_fd = engine->clock_fd = -1;
	weir_connections_close(engine->connections);
	engine->connections = NULL;
}

/* `undo`: what a new set of pins brought goes too, 0 or why it can't. An adopted one stays as it
 * is. */
static int close_engine(struct weir_engine *engine, bool undo)
{
	int code;

	close_watches(engine);
	weir_exchanges_close(&engine->exchanges);
	weir_lists_close(&engine->lists);
	weir_xdp_close(&engine->xdp);
	weir_programs_forget();
	weir_tc_close(&engine->tc);
	weir_generation_close(&engine->generation);
	if (engine->dataplane.board)
		weir_dataplane_unmap(&engine->dataplane);
	code = weir_load_close(&engine->load, undo);
	if (code)
		weir_engine_say(engine, "the pins in %s can't be removed: %s", engine->pins,
				strerror(-code));
	weir_policy_free(engine->policy);
	json_decref(engine->kept);
	json_decref(engine->saved);
	free(engine->config);
	free(engine->pins);
	free(engine->overrides);
	free(engine->confirm_file);
	weir_confirm_free(engine->confirm);
	free(engine);
	return code;
}

static struct weir_engine *new_engine(const struct weir_engine_options *options)
{
	struct weir_engine *engine = calloc(1, sizeof(*engine));

	if (!engine)
		return NULL;
	engine->netlink_fd = engine->clock_fd = engine->load.lock_fd = -1;
	engine->generation.outer_fd = engine->generation.inner_fd = -1;
	weir_dataplane_init(&engine->dataplane);
	engine->wall_clock = options->wall_ns ? options->wall_ns : weir_clock_wall_ns;
	engine->boot_clock = options->boot_ns ? options->boot_ns : weir_boottime_ns;
	weir_confirm_boot_id(engine->boot_id);
	engine->log = options->log;
	engine->log_context = options->log_context;
	engine->config = strdup(options->config ? options->config : WEIR_CONFIG_DEFAULT);
	engine->pins = strdup(options->pins ? options->pins : WEIR_PINS_DEFAULT);
	engine->overrides =
		strdup(options->overrides ? options->overrides : WEIR_OVERRIDES_DEFAULT);
	if (engine->overrides &&
	    asprintf(&engine->confirm_file, "%s.confirm", engine->overrides) < 0)
		engine->confirm_file = NULL;
	if (engine->config && engine->pins && engine->confirm_file)
		return engine;
	close_engine(engine, false);
	return NULL;
}

int weir_engine_start(struct weir_engine **out, const struct weir_engine_options *options,
		      struct weir_error *err)
{
	struct weir_engine *engine = new_engine(options);
	const struct weir_terms terms = { .session = options->session };
	struct weir_policy *policy = NULL;
	int code, left = 0;

	if (!engine)
		return weir_error_set(err, -ENOMEM, "no memory for the engine");
	code = weir_engine_first_policy(engine, &policy, err);
	if (!code)
		code = open_maps(engine, (uint32_t)policy->ledger.keys, err);
	if (!code) {
		weir_file_sweep(engine->overrides);
		weir_file_sweep(engine->confirm_file);
	}
	if (!code)
		code = open_netlink(engine, err);
	if (!code)
		code = open_clock(engine, err);
	if (!code)
		code = weir_engine_enforce(engine, policy, &terms, true, err);
	if (!code) {
		weir_engine_first_done(engine);
		*out = engine;
		return 0;
	}
	/* Descriptors may be what it lacks, and to take programs off needs some. */
	close_watches(engine);
	if (engine->load.published)
		left = weir_held_sweep(engine, true);
	weir_policy_free(policy);
	/* What is still on is found by its pins. */
	close_engine(engine, !left);
	return code;
}

/* ---- life ---- */

int weir_engine_reload(struct weir_engine *engine, const struct weir_terms *terms,
		       struct weir_error *err)
{
	struct weir_policy *policy = NULL;
	int code = weir_engine_may_change(engine, terms, true, err);

	if (!code)
		code = weir_engine_read_policy(engine, &policy, err);
	if (code)
		return code;
	if (policy->ledger.keys != engine->policy->ledger.keys)
		weir_engine_say(engine, "ledger.keys changed: it takes effect after `weir stop "
					"--detach` and a start");
	code = weir_engine_enforce(engine, policy, terms, false, err);
	if (code)
		weir_policy_free(policy);
	else if (weir_engine_waiting(engine).state == WEIR_UNDONE)
		weir_engine_forget(engine, err);
	return code;
}

/* The wall clock was set: aligned periods go by it from now on. */
static void follow_clock(struct weir_engine *engine)
{
	struct weir_compiled_before now = weir_generation_now(&engine->generation);
	uint64_t wall_ns = engine->wall_clock(), was_ns = engine->wall_ns;
	uint64_t apart = wall_ns > was_ns ? wall_ns - was_ns : was_ns - wall_ns;
	bool moved = false;

	weir_clock_drain(engine->clock_fd);
	if (apart <= WEIR_PHASE_SLACK_TICKS >> WEIR_TICK_SHIFT)
		return;
	engine->wall_ns = wall_ns;
	for (uint32_t i = 0; i < now.count; i++) {
		struct weir_limit next = now.limits[i];
		const struct weir_label label = now.labels[next.slot];

		if (next.kind != WEIR_KIND_PERIOD || !next.period.align)
			continue;
		next.period.phase = weir_compile_phase(next.period.period, wall_ns);
		weir_generation_set(&engine->generation, i, &next, &label);
		moved = true;
	}
	if (moved)
		weir_engine_say(engine, "the wall clock was set by %+.3f s: aligned periods follow",
				(double)(int64_t)(wall_ns - was_ns) / 1e9);
}

void weir_engine_tick(struct weir_engine *engine)
{
	uint64_t now_ns = weir_monotonic_ns();
	char buffer[8192];
	bool news = false;

	/* -1 with ENOBUFS: something was left out, which is news too. */
	while (recv(engine->netlink_fd, buffer, sizeof(buffer), 0) >= 0 || errno == ENOBUFS)
		news = true;
	weir_held_look(engine, news || ++engine->ticks % RETRY_TICKS == 0);
	if (now_ns - engine->recounted_ns >= RECOUNT_NS)
		weir_engine_recount(engine);
	follow_clock(engine);
	weir_lists_expire(&engine->lists, weir_monotonic_ns());
	if (now_ns - engine->bans_swept_ns >= BANS_NS) {
		weir_sweep_bans(&engine->dataplane, now_ns);
		engine->bans_swept_ns = now_ns;
	}
}

int weir_engine_clock_fd(const struct weir_engine *engine)
{
	return engine->clock_fd;
}

int weir_engine_netlink_fd(const struct weir_engine *engine)
{
	return engine->netlink_fd;
}

int weir_engine_stop(struct weir_engine *engine, bool detach)
{
	int left = 0, pins;

	if (!engine)
		return 0;
	if (detach) {
		/* To take programs off needs descriptors. */
		close_watches(engine);
		left = weir_held_sweep(engine, true);
		engine->load.adopted = false;
		engine->load.published = true;
	}
	/* What is still on is found by its pins. */
	pins = close_engine(engine, detach && !left);
	return left ? left : pins;
}

/* No board is pinned: what a killed start or end has left, if anything. */
static int detach_remains(const char *pins, struct weir_error *err)
{
	int removed = weir_pins_remove_remains(pins, err);

	if (removed)
		return removed > 0 ? 0 : removed;
	return weir_error_set(err, -ENOENT, "nothing of weir's in %s", pins);
}

struct detaching {
	const char *pins;
	uint32_t board_id;
	struct weir_error *err;
	int code;
};

static void detach_here(void *context)
{
	struct detaching *detaching = context;
	int code = weir_xdp_detach_all(detaching->board_id, detaching->err);

	if (code)
		detaching->code = code;
	weir_tc_remove_all(detaching->pins, detaching->board_id);
}

int weir_engine_detach_pins(const char *pins, struct weir_error *err)
{
	struct detaching detaching = { .pins = pins, .err = err };
	char path[WEIR_PINS_SIZE + 64];
	int fd, lock, code;

	if (strlen(pins) >= WEIR_PINS_SIZE)
		return weir_error_set(err, -ENAMETOOLONG, "pins folder '%s': too long", pins);
	weir_kernel_words_listen();
	/* Locked first: the board must be that of the pins which go. */
	lock = weir_pins_lock(pins, err);
	if (lock == -ENOENT)
		return detach_remains(pins, err);
	if (lock < 0)
		return lock;
	snprintf(path, sizeof(path), "%s/weir_board", pins);
	fd = bpf_obj_get(path);
	if (fd < 0) {
		code = -errno;
		close(lock);
		return code == -ENOENT ? detach_remains(pins, err) :
					 weir_error_set(err, code, "can't open %s: %s", path,
							strerror(-code));
	}
	detaching.board_id = weir_map_id(fd);
	close(fd);
	weir_programs_recall(pins);
	code = weir_netns_each(detach_here, &detaching);
	weir_programs_forget();
	if (code)
		weir_error_set(err, code, "can't look into the network namespaces: %s",
			       strerror(-code));
	else
		code = detaching.code;
	if (!code) {
		code = weir_pins_remove(pins);
		if (code)
			weir_error_set(err, code,
				       "the limits are off, but the pins in %s can't be removed: "
				       "%s: `weir stop --detach` again, when they can",
				       pins, strerror(-code));
	}
	close(lock);
	return code;
}
