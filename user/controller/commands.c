// SPDX-License-Identifier: GPL-2.0
/* What the control socket can be asked for: docs/json.md. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "controller/clock.h"
#include "controller/loop_private.h"
#include "controller/units.h"

#define PART_ENTRIES 1000 /* of a top, in one part of the answer */

static void fail(struct weir_control_client *client, int error, const struct weir_error *err)
{
	weir_control_fail(client, weir_error_code(error), err->text);
}

void weir_loop_view(struct weir_view *view, const struct weir_loop *loop,
		    struct weir_interface_status *interfaces)
{
	size_t count = weir_engine_interfaces(loop->engine);

	if (count > WEIR_INTERFACES_MAX)
		count = WEIR_INTERFACES_MAX;
	for (size_t i = 0; i < count; i++)
		interfaces[i] = *weir_engine_interface(loop->engine, i);
	*view = (struct weir_view){
		.dataplane = weir_engine_dataplane(loop->engine),
		.rates = &loop->rates,
		.interfaces = interfaces,
		.interface_count = count,
		.services = loop->services,
		.engine = loop->engine,
		.lists = weir_engine_list(loop->engine, WEIR_ALLOW),
		.live = true,
		.now_ns = weir_monotonic_ns(),
	};
}

void weir_commands_show(struct weir_loop *loop, struct weir_control_client *client,
			const char *what)
{
	struct weir_interface_status interfaces[WEIR_INTERFACES_MAX];
	struct weir_error err;
	struct weir_view view;
	json_t *report;
	int rc;

	weir_loop_view(&view, loop, interfaces);
	report = weir_report_show(&view, what, &rc, &err);
	if (rc)
		fail(client, rc, &err);
	else
		weir_control_reply(client, report);
}

static void show(struct weir_loop *loop, struct weir_control_client *client, json_t *arguments)
{
	weir_commands_show(loop, client, json_string_value(json_object_get(arguments, "what")));
}

/* ---- top ---- */

/* An answer on its way to a client. */
struct listing {
	const struct weir_dataplane *dataplane;
	struct weir_limits_view limits;
	struct weir_top top;
	uint64_t span_ns;
	size_t next;
};

static json_t *listing_next(void *context, bool *more)
{
	struct listing *listing = context;
	json_t *part = json_pack("{s:i, s:I}", "schema", WEIR_JSON_SCHEMA, "span_ns",
				 (json_int_t)listing->span_ns);

	part = weir_report_add(part, "keys",
			       weir_report_top(listing->dataplane, &listing->top, &listing->limits,
					       listing->next, PART_ENTRIES, listing->span_ns));
	listing->next += PART_ENTRIES;
	*more = listing->next < listing->top.count;
	return part;
}

static void listing_end(void *context)
{
	struct listing *listing = context;

	weir_top_free(&listing->top);
	free(listing);
}

/* The asker of a ranking is the client itself. */
static void top_done(void *context, struct weir_top *top, const struct weir_limits_view *limits,
		     uint64_t span_ns)
{
	struct weir_control_client *client = context;
	struct weir_loop *loop = weir_control_client_context(client);
	struct listing *listing = malloc(sizeof(*listing));

	if (!listing) {
		weir_top_free(top);
		weir_control_reply(client, NULL);
		return;
	}
	*listing =
		(struct listing){ weir_engine_dataplane(loop->engine), *limits, *top, span_ns, 0 };
	weir_control_stream(client, listing_next, listing_end, listing);
}

static void top(struct weir_loop *loop, struct weir_control_client *client, json_t *arguments)
{
	const char *name = json_string_value(json_object_get(arguments, "limit"));
	json_t *count = json_object_get(arguments, "count");
	json_int_t size = count ? json_integer_value(count) : 10;
	struct weir_error err;
	bool total;
	int slot = WEIR_NO_LIMIT, rc = weir_commands_flag(arguments, "total", &total, &err);

	if (rc) {
		fail(client, rc, &err);
		return;
	}
	if (size < 1 || size > (json_int_t)WEIR_TOP_MAX) {
		weir_error_set(&err, -ERANGE, "count '%lld': give 1 to %u", (long long)size,
			       WEIR_TOP_MAX);
		fail(client, -ERANGE, &err);
		return;
	}
	if (name)
		slot = weir_report_find_slot(weir_engine_dataplane(loop->engine), name);
	if (slot < 0) {
		weir_error_set(&err, slot, "there is no limit '%s': see weir show limits", name);
		fail(client, slot, &err);
		return;
	}
	rc = weir_ranking_ask(loop->ranking, (uint32_t)slot, (size_t)size, !total, top_done,
			      client);
	if (rc)
		weir_control_fail(client, 2,
				  "others already ask for a million keys: ask for fewer or later");
}

/* ---- suggest ---- */

static void suggest(struct weir_loop *loop, struct weir_control_client *client, json_t *arguments)
{
	const struct weir_dataplane *dataplane = weir_engine_dataplane(loop->engine);
	const char *name = json_string_value(json_object_get(arguments, "limit"));
	int slot = name ? weir_report_find_slot(dataplane, name) : WEIR_NO_LIMIT;
	struct weir_error err;

	if (slot < 0) {
		weir_error_set(&err, slot, "there is no limit '%s': see weir show limits", name);
		fail(client, slot, &err);
		return;
	}
	weir_control_reply(client, weir_sent_report(weir_ranking_sent(loop->ranking), dataplane,
						    (uint32_t)slot));
}

/* ---- why ---- */

static void why(struct weir_loop *loop, struct weir_control_client *client, json_t *arguments)
{
	const char *text = json_string_value(json_object_get(arguments, "address"));
	struct weir_interface_status interfaces[WEIR_INTERFACES_MAX];
	uint8_t address[16] = { 0 }, family;
	struct weir_error err;
	struct weir_view view;
	int rc = weir_report_parse_address(text ? text : "", &family, address, &err);

	if (rc) {
		fail(client, rc, &err);
		return;
	}
	weir_loop_view(&view, loop, interfaces);
	weir_control_reply(client, weir_report_why(&view, family, address));
}

/* ---- lists ---- */

#define LISTED_MIN_NS 1000000000ULL
#define LISTED_MAX_NS (366 * 86400 * 1000000000ULL)

/* A list on its way to a client: on from the prefix after the last that was sent. */
struct walk {
	struct weir_loop *loop;
	enum weir_list list;
	struct weir_prefix next;
};

static json_t *walk_next(void *context, bool *more)
{
	struct walk *walk = context;
	const struct weir_list_table *table = weir_engine_list(walk->loop->engine, walk->list);
	bool found;
	size_t at = weir_list_find(table, &walk->next, &found), end = at + PART_ENTRIES;

	*more = end < table->count;
	if (*more)
		walk->next = table->entries[end].prefix;
	return weir_report_list(table, walk->list, at, PART_ENTRIES, weir_monotonic_ns());
}

static void list_change(struct weir_loop *loop, struct weir_control_client *client,
			enum weir_list list, bool add, json_t *arguments)
{
	static const struct weir_commands_span listed_for = { "for", LISTED_MIN_NS, LISTED_MAX_NS,
							      "1s to 366d, or nothing for ever" };
	const char *prefix = json_string_value(json_object_get(arguments, "prefix"));
	uint64_t for_ns, expires_ns = 0;
	struct weir_session session;
	struct weir_terms terms;
	struct weir_error err;
	int rc = weir_commands_terms(arguments, &terms, &session, &err);

	if (!rc && add)
		rc = weir_commands_time(arguments, &listed_for, &for_ns, &err);
	if (!rc && !prefix)
		rc = weir_error_set(&err, -EINVAL, "%s takes a text 'prefix'",
				    weir_list_name(list));
	if (!rc)
		rc = weir_engine_list_check(loop->engine, list, add, prefix, terms.session, &err);
	if (!rc && add)
		rc = weir_engine_list_add(loop->engine, list, prefix, for_ns, &expires_ns, &err);
	else if (!rc)
		rc = weir_engine_list_del(loop->engine, list, prefix, &err);
	if (rc) {
		fail(client, rc, &err);
		return;
	}
	weir_control_reply(client, json_pack("{s:i, s:s, s:s, s:s, s:o}", "schema",
					     WEIR_JSON_SCHEMA, "list", weir_list_name(list),
					     "prefix", prefix, "action", add ? "add" : "del",
					     "left_ns", weir_report_left(expires_ns,
									 weir_monotonic_ns())));
}

static void list(struct weir_loop *loop, struct weir_control_client *client, enum weir_list list,
		 json_t *arguments)
{
	const char *action = json_string_value(json_object_get(arguments, "action"));
	struct walk *walk;

	if (action && (!strcmp(action, "add") || !strcmp(action, "del"))) {
		list_change(loop, client, list, *action == 'a', arguments);
		return;
	}
	if (!action || strcmp(action, "list")) {
		weir_control_fail(client, 1, "action: give add, del or list");
		return;
	}
	walk = malloc(sizeof(*walk));
	if (!walk) {
		weir_control_reply(client, NULL);
		return;
	}
	*walk = (struct walk){ loop, list, { 0 } };
	weir_control_stream(client, walk_next, free, walk);
}

static void allow(struct weir_loop *loop, struct weir_control_client *client, json_t *arguments)
{
	list(loop, client, WEIR_ALLOW, arguments);
}

static void deny(struct weir_loop *loop, struct weir_control_client *client, json_t *arguments)
{
	list(loop, client, WEIR_DENY, arguments);
}

static void ban(struct weir_loop *loop, struct weir_control_client *client, json_t *arguments)
{
	const char *action = json_string_value(json_object_get(arguments, "action"));
	const char *key = json_string_value(json_object_get(arguments, "key"));
	struct weir_error err;
	size_t lifted;
	int rc;

	if (!key || !action || strcmp(action, "del")) {
		weir_control_fail(client, 1, "ban takes an 'action', del, and a text 'key'");
		return;
	}
	rc = weir_engine_unban(loop->engine, key, &lifted, &err);
	if (rc)
		fail(client, rc, &err);
	else
		weir_control_reply(client, json_pack("{s:i, s:I}", "schema", WEIR_JSON_SCHEMA,
						     "lifted", (json_int_t)lifted));
}

/* ---- the rest ---- */

static void watch(struct weir_loop *loop, struct weir_control_client *client, json_t *arguments)
{
	(void)arguments;
	if (loop->subscriber_count == WEIR_CONTROL_WATCHERS_MAX) {
		weir_control_fail(client, 2, "too many are watching: try again");
		return;
	}
	loop->subscribers[loop->subscriber_count++] = (struct weir_subscriber){ .client = client };
	weir_control_subscribe(client);
}

static void events(struct weir_loop *loop, struct weir_control_client *client, json_t *arguments)
{
	json_t *count = json_object_get(arguments, "count");
	json_int_t lines = count ? json_integer_value(count) : WEIR_JOURNAL_LINES;

	if (lines < 1) {
		weir_control_fail(client, 1, "count: give 1 or more");
		return;
	}
	weir_control_reply(client,
			   weir_report_add(json_pack("{s:i}", "schema", WEIR_JSON_SCHEMA), "events",
					   weir_journal_json(loop->journal, (size_t)lines)));
}

static void stop(struct weir_loop *loop, struct weir_control_client *client, json_t *arguments)
{
	struct weir_error err;
	int rc = weir_commands_flag(arguments, "detach", &loop->detach, &err);

	if (rc) {
		fail(client, rc, &err);
		return;
	}
	/* Answered when it is done: see loop.c. */
	if (loop->stopper)
		weir_control_fail(client, 2, "the controller is stopping");
	else
		loop->stopper = client;
	event_base_loopbreak(loop->base);
}

static const struct command {
	const char *name;
	void (*run)(struct weir_loop *loop, struct weir_control_client *client, json_t *arguments);
} commands[] = {
	{ "show", show },
	{ "set", weir_commands_set },
	{ "unset", weir_commands_unset },
	{ "reload", weir_commands_reload },
	{ "confirm", weir_commands_confirm },
	{ "top", top },
	{ "suggest", suggest },
	{ "why", why },
	{ "watch", watch },
	{ "events", events },
	{ "stop", stop },
	{ "freeze", weir_commands_freeze },
	{ "thaw", weir_commands_thaw },
	{ "report", weir_commands_report },
	{ "allow", allow },
	{ "deny", deny },
	{ "ban", ban },
};

void weir_commands_handle(void *context, struct weir_control_client *client, const char *command,
			  json_t *arguments)
{
	struct weir_error err;

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (!strcmp(commands[i].name, command)) {
			commands[i].run(context, client, arguments);
			return;
		}
	}
	weir_error_set(&err, -EINVAL,
		       "unknown command '%.64s': there are show, set, unset, reload, confirm, top, "
		       "suggest, why, watch, events, stop, allow, deny, ban, freeze, thaw, report",
		       command);
	fail(client, -EINVAL, &err);
}

void weir_commands_closed(void *context, struct weir_control_client *client)
{
	struct weir_loop *loop = context;

	if (loop->ranking)
		weir_ranking_forget(loop->ranking, client);
	for (size_t i = loop->subscriber_count; i-- > 0;) {
		if (loop->subscribers[i].client == client)
			loop->subscribers[i] = loop->subscribers[--loop->subscriber_count];
	}
	if (loop->stopper == client)
		loop->stopper = NULL;
}
