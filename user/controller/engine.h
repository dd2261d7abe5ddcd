/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The engine: a policy made to act. It loads or adopts the programs and maps, compiles the
 * policy into them, attaches them to the interfaces, and keeps them so. No event loop, no
 * socket, no printing: `weir run` drives it, and one engine a process is the only writer.
 *
 * Everything is pinned under a folder of the bpffs, so the data plane outlives the engine: a
 * start finds the pins, keeps state, totals, slots and seeds, and replaces programs in place.
 *
 * Functions return 0 or -errno with a sentence in err. What is refused changes nothing.
 */
#pragma once

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "controller/dataplane.h"
#include "controller/error.h"
#include "controller/lists.h"
#include "controller/policy.h"
#include "controller/session.h"

#define WEIR_PINS_DEFAULT "/sys/fs/bpf/weir"
#define WEIR_CONFIG_DEFAULT "/etc/weir/weir.yaml"
#define WEIR_OVERRIDES_DEFAULT "/var/lib/weir/overrides.json"

struct weir_engine;

/* How an interface is held. */
enum weir_attachment {
	WEIR_ATTACHED_NOT, /* see the reason */
	WEIR_ATTACHED_NATIVE,
	WEIR_ATTACHED_GENERIC,
};

struct weir_interface_status {
	char name[IF_NAMESIZE];
	char renamed[IF_NAMESIZE]; /* its name by now, where that is another; else "" */
	uint32_t ifindex; /* 0: does not exist now */
	uint32_t slot;	  /* in weir_traffic */
	enum weir_policy_attach asked;
	enum weir_attachment attached;
	bool at_ingress; /* ours at tc-ingress, where a limit asks for it */
	bool at_egress;
	bool dispatcher;  /* through libxdp's dispatcher, beside other programs */
	char reason[512]; /* why not attached, not in native mode or without answers; else "" */
};

/*
 * Takes one line of what the engine did and why: "limit per-ip: rate 1000pps -> 500pps (weir
 * set)". Called from within the engine's functions.
 */
typedef void (*weir_engine_log)(void *context, const char *line);

struct weir_engine_options {
	const char *config;    /* file; NULL: WEIR_CONFIG_DEFAULT */
	const char *pins;      /* folder on a bpffs, made if missing; NULL: WEIR_PINS_DEFAULT */
	const char *overrides; /* what `weir set --save` keeps; NULL: WEIR_OVERRIDES_DEFAULT */
	weir_engine_log log;
	void *log_context;
	const struct weir_session *session; /* not to be cut off by the start; NULL: none */
	/* For tests; NULL: weir_clock_wall_ns, weir_boottime_ns (controller/clock.h). */
	uint64_t (*wall_ns)(void);
	uint64_t (*boot_ns)(void);
};

/* What a change goes with. NULL or all zero: nothing. */
struct weir_terms {
	uint64_t confirm_ns; /* it goes back after that unless it is confirmed; 0: it stays */
	bool save;	     /* of a set: kept over a reload and a restart (once confirmed) */
	const struct weir_session *session; /* what would cut it off is refused; NULL: none */
};

/*
 * From the file to limited traffic. An interface that can't be had (missing, or held by
 * somebody else's program) is an error here if none could be had; else it is kept in the
 * status and tried again by weir_engine_tick. On an error nothing is left behind that was not
 * there before, and a data plane that was running goes on with its old policy.
 */
int weir_engine_start(struct weir_engine **engine, const struct weir_engine_options *options,
		      struct weir_error *err);

/*
 * The file again: atomic for each packet, state of unchanged limits kept. -EALREADY while a
 * change waits to be confirmed, -ECONNABORTED if it would cut the session off.
 */
int weir_engine_reload(struct weir_engine *engine, const struct weir_terms *terms,
		       struct weir_error *err);

/*
 * `weir set`, and with no changes `weir unset` (terms->save: what was kept is forgotten, also of a
 * limit that is no more): acts before it returns. Errors as above.
 */
int weir_engine_set(struct weir_engine *engine, const char *limit,
		    const struct weir_policy_change *changes, size_t count,
		    const struct weir_terms *terms, struct weir_error *err);

/*
 * A change with confirm_ns waits. Meanwhile neither the file nor a set changes anything more;
 * live entries of the lists and the governors do, and are not gone back from. What waits is on
 * file beside the overrides, so a start goes on with it (controller/confirm.h).
 */
enum weir_waiting_state {
	WEIR_WAITING_NOTHING,
	WEIR_WAITING, /* left_ns of the time is left: 0 says that it is to be undone now */
	WEIR_UNDONE,  /* a reload that was gone back from: the file is not what is in force */
};

struct weir_waiting {
	enum weir_waiting_state state;
	const char *what; /* "weir reload"; until the next change */
	bool save;
	uint64_t left_ns;
};

struct weir_waiting weir_engine_waiting(const struct weir_engine *engine);
/* It stays. -ENOENT where nothing waits. */
int weir_engine_confirm(struct weir_engine *engine, struct weir_error *err);
/* Back to the policy of before, also when the time is over. -ENOENT. */
int weir_engine_undo(struct weir_engine *engine, struct weir_error *err);

/* A governor's step: as set, but it isn't kept and says no line. */
int weir_engine_move(struct weir_engine *engine, const char *limit,
		     const struct weir_policy_change *step, struct weir_error *err);

/*
 * To be called about once a second, and at once when netlink tells of a link or the wall clock
 * was set: attaches interfaces that have come (back), notices programs that others took off or
 * replaced, moves aligned periods with the clock, takes out list entries and bans that are over.
 */
void weir_engine_tick(struct weir_engine *engine);

/* A netlink socket to watch for reading; then call weir_engine_tick, which drains it. */
int weir_engine_netlink_fd(const struct weir_engine *engine);
/* The same for a descriptor that turns readable when the wall clock is set. */
int weir_engine_clock_fd(const struct weir_engine *engine);

/*
 * Ends the engine. The data plane stays as it is, unless `detach`: then every program, link,
 * filter and pin of ours is taken away, and nothing else. 0, or why not all of it could be, which
 * the log says too; while a program is still on, the pins stay, for another try.
 */
int weir_engine_stop(struct weir_engine *engine, bool detach);

/*
 * `weir allow`, `weir deny`: acts before it returns, kept over reloads and restarts. `for_ns`
 * from now on, 0 for ever; a prefix that is there is extended, never shortened. *expires_ns:
 * when it then ends, by CLOCK_MONOTONIC, 0 never. -EINVAL, -E2BIG, -ENOMEM.
 */
int weir_engine_list_add(struct weir_engine *engine, enum weir_list list, const char *prefix,
			 uint64_t for_ns, uint64_t *expires_ns, struct weir_error *err);
/* -ENOENT for what is not there, -EINVAL for what the configuration has. */
int weir_engine_list_del(struct weir_engine *engine, enum weir_list list, const char *prefix,
			 struct weir_error *err);
/*
 * Whether adding to the deny list, or taking out of the allow list, cuts a session off:
 * -ECONNABORTED. 0 too for what add and del themselves will refuse.
 */
int weir_engine_list_check(const struct weir_engine *engine, enum weir_list list, bool add,
			   const char *prefix, const struct weir_session *session,
			   struct weir_error *err);
/*
 * Lifts the bans of a key, as `weir show bans` has it or an address in it, at every limit; its
 * refusals so far don't count towards the next. -ENOENT.
 */
int weir_engine_unban(struct weir_engine *engine, const char *key, size_t *count,
		      struct weir_error *err);
/* The table itself, sorted; until the next change. That of WEIR_DENY lies behind the other. */
const struct weir_list_table *weir_engine_list(const struct weir_engine *engine,
					       enum weir_list list);

/* The policy in force, `set` changes included. Owned by the engine, until the next change. */
const struct weir_policy *weir_engine_policy(const struct weir_engine *engine);
/* What is kept of a limit over reloads and restarts: {field: text}, owned by the engine; NULL. */
json_t *weir_engine_saved(const struct weir_engine *engine, const char *limit);
/* What of the file, as last read, is not as it says: texts about saved changes that went over it,
 * and interfaces that are not limited now. The caller's; NULL: no memory. */
json_t *weir_engine_notes(const struct weir_engine *engine);
struct weir_dataplane *weir_engine_dataplane(struct weir_engine *engine);
const char *weir_engine_pins(const struct weir_engine *engine);

/* Slot in the totals of a limit of the policy in force, by its index there. */
uint32_t weir_engine_slot(const struct weir_engine *engine, size_t limit_index);

/*
 * A service's counts in the kernel, and what its newcomers get from now on (exchanges.h), by
 * its index in the policy in force. now_ns: since boot. -ENOENT.
 */
struct weir_service_counts;
struct weir_service_output;
int weir_engine_service_read(const struct weir_engine *engine, size_t service, uint64_t now_ns,
			     struct weir_service_counts *counts);
int weir_engine_service_steer(struct weir_engine *engine, size_t service, uint64_t now_ns,
			      const struct weir_service_output *output);

/* Totals of all gates; false where nothing counts connections. */
struct weir_connection_counts;
bool weir_engine_connections(const struct weir_engine *engine,
			     struct weir_connection_counts *counts);

size_t weir_engine_interfaces(const struct weir_engine *engine);
const struct weir_interface_status *weir_engine_interface(const struct weir_engine *engine,
							  size_t i);

/* What the data plane can do now: the mask for weir_policy_check_features. */
uint64_t weir_engine_features(void);

/*
 * Without an engine: takes away whatever a (dead) engine left under the pins, and only that, in
 * whatever network namespace its interfaces are (controller/netns.h). -ENOENT where there is
 * nothing.
 */
int weir_engine_detach_pins(const char *pins, struct weir_error *err);
