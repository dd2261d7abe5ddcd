// SPDX-License-Identifier: GPL-2.0
#include "controller/report.h"

#include <errno.h>
#include <string.h>

#include "controller/clock.h"
#include "controller/units.h"

json_t *weir_report_new(const struct weir_view *view)
{
	return json_pack("{s:i, s:b, s:I}", "schema", WEIR_JSON_SCHEMA, "live", view->live,
			 "time_ns", (json_int_t)weir_realtime_ns());
}

json_t *weir_report_add(json_t *report, const char *field, json_t *value)
{
	if (!report || !value) {
		json_decref(report);
		json_decref(value);
		return NULL;
	}
	if (json_object_set_new(report, field, value)) {
		json_decref(report);
		return NULL;
	}
	return report;
}

/* ---- rates ---- */

static struct weir_totals subtract(struct weir_totals now, const struct weir_totals *before)
{
	uint64_t *a = (uint64_t *)&now;
	const uint64_t *b = (const uint64_t *)before;

	/* A slot that went to another limit starts again from 0. */
	for (size_t i = 0; i < sizeof(now) / sizeof(*a); i++)
		a[i] = a[i] > b[i] ? a[i] - b[i] : 0;
	return now;
}

void weir_rates_update(struct weir_rates *rates, const struct weir_dataplane *dataplane,
		       uint64_t now_ns)
{
	if (rates->at_ns && now_ns <= rates->at_ns)
		return;
	rates->span_ns = rates->at_ns ? now_ns - rates->at_ns : 0;
	rates->at_ns = now_ns;
	for (uint32_t slot = 0; slot < WEIR_LIMITS_MAX; slot++) {
		struct weir_totals now = weir_dataplane_totals(dataplane, slot);

		rates->difference[slot] = subtract(now, &rates->last[slot]);
		rates->last[slot] = now;
	}
}

static json_t *per_sec(uint64_t difference, uint64_t span_ns)
{
	return span_ns ? json_real((double)difference * 1e9 / (double)span_ns) : json_null();
}

/* ---- settings: the label says them as the file does, "bucket rate 1000pps burst 2000" ---- */

static json_t *level(uint64_t amount)
{
	return amount == UINT64_MAX ? json_string("unlimited")
	       : amount		    ? json_integer((json_int_t)amount)
				    : json_string("block");
}

static json_t *rate_value(const char *text)
{
	struct weir_error err;
	struct weir_rate rate;

	if (weir_rate_parse(text, &rate, &err))
		return NULL;
	if (!rate.per_ns)
		return level(rate.amount);
	if (rate.amount * (WEIR_NS_PER_SEC / 1000) % (rate.per_ns / 1000))
		return json_real((double)rate.amount * 1e9 / (double)rate.per_ns);
	return json_integer((json_int_t)weir_rate_per_sec(&rate));
}

static json_t *amount_value(const char *text)
{
	struct weir_error err;
	struct weir_amount amount;

	return weir_amount_parse(text, &amount, &err) ? NULL
						      : json_integer((json_int_t)amount.value);
}

static json_t *time_value(const char *text)
{
	struct weir_error err;
	uint64_t ns;

	return weir_time_parse(text, &ns, &err) ? NULL : json_integer((json_int_t)ns);
}

/* In base units by the field's name; anything else stays the text that it is. */
static json_t *setting_value(const char *field, const char *text)
{
	static const struct {
		const char *field;
		json_t *(*parse)(const char *text);
	} parsers[] = {
		{ "rate", rate_value },	   { "burst", amount_value }, { "quota", amount_value },
		{ "limit", amount_value }, { "window", time_value },  { "period", time_value },
	};
	json_t *value = NULL;

	for (size_t i = 0; i < sizeof(parsers) / sizeof(parsers[0]); i++) {
		if (!strcmp(parsers[i].field, field))
			value = parsers[i].parse(text);
	}
	return value ? value : json_string(text);
}

/* Splits "bucket rate 1000pps burst 2000" into its kind and {"rate": …, "burst": …}. */
static json_t *settings(const char *setting, char *kind, size_t size)
{
	char text[sizeof(((struct weir_label *)0)->setting)];
	json_t *object = json_object();
	char *save = NULL, *word;

	memcpy(text, setting, sizeof(text));
	text[sizeof(text) - 1] = '\0';
	word = strtok_r(text, " ", &save);
	snprintf(kind, size, "%s", word ? word : "");
	while (object && (word = strtok_r(NULL, " ", &save))) {
		char *value = strtok_r(NULL, " ", &save);

		if (value && json_object_set_new(object, word, setting_value(word, value))) {
			json_decref(object);
			object = NULL;
		}
	}
	return object;
}

/* ---- limits ---- */

static json_t *totals(json_t *limit, const struct weir_totals *sum)
{
	const struct {
		const char *field;
		uint64_t value;
	} fields[] = {
		{ "admitted", sum->passed_packets },
		{ "admitted_bytes", sum->passed_bytes },
		{ "refused", sum->refused_packets },
		{ "refused_bytes", sum->refused_bytes },
		{ "would_refuse", sum->would_refuse_packets },
		{ "untracked", sum->untracked_packets },
		{ "contended", sum->contended_packets },
		{ "new_keys", sum->new_keys },
		{ "banned", sum->banned_packets },
		{ "unbanned", sum->unbanned_packets },
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		limit = weir_report_add(limit, fields[i].field,
					json_integer((json_int_t)fields[i].value));
	return limit;
}

/* What was set, and kept, where a controller knows; and whose governor moves it, if one does. */
static json_t *add_set(json_t *made, const struct weir_view *view, const char *name)
{
	const struct weir_policy *policy = view->engine ? weir_engine_policy(view->engine) : NULL;
	json_t *set = json_null(), *saved = json_null(), *governor = json_null();
	const struct weir_policy_limit *limit = NULL;

	if (policy)
		limit = weir_policy_find_limit(policy, name);
	if (limit) {
		set = weir_policy_changes(policy, limit);
		if (weir_engine_saved(view->engine, name))
			saved = json_incref(weir_engine_saved(view->engine, name));
	}
	for (size_t i = 0; policy && i < policy->service_count; i++) {
		if (!strcmp(policy->services[i].governor.control, name))
			governor = json_string(policy->services[i].name);
	}
	made = weir_report_add(made, "set", set);
	made = weir_report_add(made, "saved", saved);
	return weir_report_add(made, "governor", governor);
}

/* Text of a fixed field that the controller writes while we read. */
static void copy_text(char *to, const char *from, size_t size)
{
	memcpy(to, from, size);
	to[size - 1] = '\0';
}

static json_t *one_limit(const struct weir_view *view, const struct weir_limit *limit,
			 const struct weir_crowd *crowd)
{
	const struct weir_label *label = &view->dataplane->labels[limit->slot];
	struct weir_totals sum = weir_dataplane_totals(view->dataplane, limit->slot);
	const struct weir_rates *rates = view->rates;
	uint64_t span_ns = rates ? rates->span_ns : 0;
	char name[sizeof(label->name)], setting[sizeof(label->setting)];
	char key[WEIR_KEY_TEXT], kind[16];
	json_t *values, *made;

	copy_text(name, label->name, sizeof(name));
	copy_text(setting, label->setting, sizeof(setting));
	values = settings(setting, kind, sizeof(kind));
	made = json_pack(
		"{s:s, s:i, s:s, s:s, s:s, s:s, s:s, s:s}", "name", name, "slot", limit->slot,
		"kind", kind, "mode", limit->flags & WEIR_LIMIT_MONITOR ? "monitor" : "enforce",
		"key", weir_limit_key_print(limit, key), "unit",
		limit->flags & WEIR_LIMIT_BYTES ? "bytes" : "packets", "on_untracked",
		limit->flags & WEIR_LIMIT_UNTRACKED_DROPS ? "drop" : "pass", "setting", setting);
	made = weir_report_add(made, "settings", values);
	made = add_set(made, view, name);
	made = totals(made, &sum);
	made = weir_report_crowd(made, crowd, limit);
	made = weir_report_add(
		made, "admitted_per_sec",
		per_sec(rates ? rates->difference[limit->slot].passed_packets : 0, span_ns));
	return weir_report_add(
		made, "refused_per_sec",
		per_sec(rates ? rates->difference[limit->slot].refused_packets : 0, span_ns));
}

static bool is_named(const struct weir_dataplane *dataplane, const struct weir_limit *limit,
		     const char *name)
{
	const struct weir_label *label = &dataplane->labels[limit->slot];

	return limit->slot < WEIR_LIMITS_MAX && !strncmp(label->name, name, sizeof(label->name));
}

json_t *weir_report_limits(const struct weir_view *view)
{
	struct weir_crowd crowd = weir_crowd_read(view);
	json_t *array = json_array();
	struct weir_limits_view limits;

	weir_limits_view_read(&limits, view->dataplane);
	for (uint32_t i = 0; i < limits.count && array; i++) {
		if (limits.by_index[i].slot >= WEIR_LIMITS_MAX)
			continue;
		if (json_array_append_new(array, one_limit(view, &limits.by_index[i], &crowd))) {
			json_decref(array);
			array = NULL;
		}
	}
	return array;
}

int weir_report_find_slot(const struct weir_dataplane *dataplane, const char *name)
{
	struct weir_limits_view limits;

	weir_limits_view_read(&limits, dataplane);
	for (uint32_t i = 0; i < limits.count; i++) {
		if (is_named(dataplane, &limits.by_index[i], name))
			return limits.by_index[i].slot;
	}
	return -ENOENT;
}

/* An array of one limit, or NULL. */
static json_t *named_limit(const struct weir_view *view, const char *name)
{
	struct weir_limits_view limits;

	weir_limits_view_read(&limits, view->dataplane);
	for (uint32_t i = 0; i < limits.count; i++) {
		if (is_named(view->dataplane, &limits.by_index[i], name)) {
			struct weir_crowd crowd = weir_crowd_read(view);

			return json_pack("[o]", one_limit(view, &limits.by_index[i], &crowd));
		}
	}
	return NULL;
}

/* Adds services, one by its name or all, and what was reported of them. */
static json_t *add_services(json_t *report, const struct weir_view *view, const char *name, int *rc,
			    struct weir_error *err)
{
	json_t *services = NULL;

	if (!view->services)
		*rc = weir_error_set(err, -EAGAIN,
				     "services are known to the controller alone, and it is down: "
				     "start it with weir run");
	else
		services = weir_services_json(view->services, name, rc);
	report = weir_report_add(report, "services", services);
	if (report)
		report = weir_report_add(report, "reports",
					 weir_services_reports_json(view->services));
	return report;
}

/* A limit or a service: a policy has no two of a name. */
static json_t *add_named(json_t *report, const struct weir_view *view, const char *name, int *rc,
			 struct weir_error *err)
{
	json_t *limit = named_limit(view, name);

	if (limit)
		return weir_report_add(report, "limits", limit);
	*rc = -ENOENT;
	if (view->services)
		report = add_services(report, view, name, rc, err);
	if (*rc == -ENOENT) {
		json_decref(view->services ? NULL : report);
		weir_error_set(err, -ENOENT,
			       "there is no limit or service '%s': give limits, interfaces, "
			       "services, ledger, lists, bans or the name of one",
			       name);
		return NULL;
	}
	return report;
}

json_t *weir_report_confirm(const struct weir_view *view)
{
	struct weir_waiting waiting = { 0 };

	if (view->engine)
		waiting = weir_engine_waiting(view->engine);
	if (waiting.state == WEIR_WAITING_NOTHING)
		return json_null();
	return json_pack("{s:s, s:s, s:b, s:I}", "state",
			 waiting.state == WEIR_WAITING ? "waiting" : "undone", "what", waiting.what,
			 "save", waiting.save, "left_ns", (json_int_t)waiting.left_ns);
}

/* No word for it; or "all", unless that is the name of a limit or service. */
static bool is_all(const struct weir_view *view, const char *what)
{
	const struct weir_policy *policy = view->engine ? weir_engine_policy(view->engine) : NULL;

	if (!what)
		return true;
	return !strcmp(what, "all") && weir_report_find_slot(view->dataplane, what) < 0 &&
	       !(policy && weir_policy_find_service(policy, what));
}

json_t *weir_report_show(const struct weir_view *view, const char *what, int *rc,
			 struct weir_error *err)
{
	static const struct {
		const char *name;
		json_t *(*make)(const struct weir_view *view);
	} parts[] = {
		{ "limits", weir_report_limits },
		{ "interfaces", weir_report_interfaces },
		{ "ledger", weir_report_ledger },
		{ "lists", weir_report_lists },
		{ "bans", weir_report_bans },
	};
	bool all = is_all(view, what), part = false;
	json_t *report = weir_report_new(view);

	*rc = 0;
	report = weir_report_add(report, "confirm", weir_report_confirm(view));
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (all ? !strcmp(parts[i].name, "bans") : strcmp(parts[i].name, what))
			continue;
		part = true;
		report = weir_report_add(report, parts[i].name, parts[i].make(view));
	}
	if (all ? view->services && weir_services_tick_ns(view->services)
		: !strcmp(what, "services"))
		report = add_services(report, view, NULL, rc, err);
	else if (!part)
		report = add_named(report, view, what, rc, err);
	if (!report && !*rc)
		*rc = weir_error_set(err, -ENOMEM, "out of memory");
	return report;
}

/* ---- heaviest keys ---- */

static json_t *top_entry(const struct weir_dataplane *dataplane, const struct weir_top_entry *entry,
			 const struct weir_limit *limit, uint64_t span_ns)
{
	const struct weir_label *label = &dataplane->labels[entry->key.key.slot];
	char name[sizeof(label->name)], key[WEIR_KEY_TEXT];

	copy_text(name, label->name, sizeof(name));
	weir_own_record_print(&entry->key, limit, key);
	if (!span_ns)
		return json_pack("{s:s, s:s, s:I, s:I}", "limit", name, "key", key, "admitted",
				 (json_int_t)entry->passed, "refused", (json_int_t)entry->refused);
	return json_pack("{s:s, s:s, s:o, s:o}", "limit", name, "key", key, "admitted_per_sec",
			 per_sec(entry->passed, span_ns), "refused_per_sec",
			 per_sec(entry->refused, span_ns));
}

json_t *weir_report_top(const struct weir_dataplane *dataplane, const struct weir_top *top,
			const struct weir_limits_view *limits, size_t first, size_t count,
			uint64_t span_ns)
{
	json_t *array = json_array();

	for (size_t i = first; i < top->count && i - first < count && array; i++) {
		const struct weir_top_entry *entry = &top->entries[i];
		const struct weir_limit *limit = weir_limits_view_slot(limits, entry->key.key.slot);

		if (limit &&
		    json_array_append_new(array, top_entry(dataplane, entry, limit, span_ns))) {
			json_decref(array);
			array = NULL;
		}
	}
	return array;
}
