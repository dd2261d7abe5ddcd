// SPDX-License-Identifier: GPL-2.0
/* Answers and keys that are typed. */
#include "cli/top_model.h"
#include "cli/json_value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GONE_LOOKS 10 /* a key that is in no answer for so long is forgotten */

static double real(json_t *object, const char *field)
{
	return json_number_value(json_object_get(object, field));
}

static void push(struct weir_top_history *history, double passed, double refused)
{
	if (history->count == WEIR_TOP_HISTORY) {
		size_t rest = (WEIR_TOP_HISTORY - 1) * sizeof(double);

		memmove(history->passed, history->passed + 1, rest);
		memmove(history->refused, history->refused + 1, rest);
		history->count--;
	}
	history->passed[history->count] = passed;
	history->refused[history->count++] = refused;
}

/* ---- limits ---- */

static struct weir_top_limit *find_limit(struct weir_top_model *model, const char *name)
{
	for (size_t i = 0; i < model->limit_count; i++) {
		if (!strcmp(model->limits[i].name, name))
			return &model->limits[i];
	}
	return NULL;
}

/* A total that went back began anew. */
static double per_second(double now, double before, double seconds)
{
	return seconds > 0 && now >= before ? (now - before) / seconds : 0;
}

static struct weir_top_limit take_limit(struct weir_top_model *model, json_t *limit, double seconds)
{
	const struct weir_top_limit *old = find_limit(model, weir_json_text(limit, "name"));
	struct weir_top_limit now = { .passed = -1, .refused = -1 };
	bool monitor = !strcmp(weir_json_text(limit, "mode"), "monitor");
	double passed = real(limit, "admitted");
	double refused = real(limit, monitor ? "would_refuse" : "refused");

	if (old && old->monitor == monitor) {
		now = *old;
		now.passed = per_second(passed, old->passed_total, seconds);
		now.refused = per_second(refused, old->refused_total, seconds);
		push(&now.history, now.passed, now.refused);
	}
	snprintf(now.name, sizeof(now.name), "%s", weir_json_text(limit, "name"));
	now.monitor = monitor;
	now.passed_total = passed;
	now.refused_total = refused;
	return now;
}

/* In the order of the file, which may have changed. */
static void take_limits(struct weir_top_model *model, json_t *limits, double seconds)
{
	struct weir_top_limit *now = calloc(WEIR_TOP_LIMITS, sizeof(*now));
	size_t count = 0, i;
	json_t *limit;

	if (!now)
		return;
	json_array_foreach(limits, i, limit)
	{
		if (count < WEIR_TOP_LIMITS)
			now[count++] = take_limit(model, limit, seconds);
	}
	memcpy(model->limits, now, count * sizeof(*now));
	model->limit_count = count;
	free(now);
}

/* ---- services ---- */

/* Adds to a line what printf would. */
#define ADD(line, ...) snprintf((line) + strlen(line), WEIR_TOP_TEXT - strlen(line), __VA_ARGS__)

static void take_service(char *line, json_t *service)
{
	json_t *breaker = json_object_get(service, "breaker");
	json_t *shedder = json_object_get(service, "shedder");
	json_t *governor = json_object_get(service, "governor");
	json_t *ceiling = json_object_get(shedder, "ceiling");

	snprintf(line, WEIR_TOP_TEXT, "%-12s %.0f in flight, %.0f ok, %.0f failed",
		 weir_json_text(service, "name"), real(service, "in_flight"), real(service, "ok"),
		 real(service, "failed"));
	if (json_is_number(json_object_get(service, "p99_ns")))
		ADD(line, ", p99 %.3gms", real(service, "p99_ns") / 1e6);
	if (json_is_object(breaker))
		ADD(line, ", drops %.3g%%", 100 * real(breaker, "drop"));
	if (json_is_integer(ceiling))
		ADD(line, ", at most %.0f", json_number_value(ceiling));
	if (json_is_object(governor))
		ADD(line, ", %s at %.6g", weir_json_text(governor, "control"),
		    real(governor, "offer"));
}

void weir_top_take_show(struct weir_top_model *model, json_t *show)
{
	json_t *limits = json_object_get(show, "limits"), *service;
	json_t *held = json_object_get(json_object_get(show, "ledger"), "held_percent");
	uint64_t time_ns = (uint64_t)json_integer_value(json_object_get(show, "time_ns"));
	size_t i;

	if (!json_is_array(limits) || !time_ns || model->paused)
		return;
	take_limits(model, limits,
		    time_ns > model->time_ns ? (double)(time_ns - model->time_ns) / 1e9 : 0);
	model->time_ns = time_ns;
	model->held_percent = held ? json_number_value(held) : -1;
	model->service_count = 0;
	json_array_foreach(json_object_get(show, "services"), i, service)
	{
		if (model->service_count < WEIR_TOP_SERVICES)
			take_service(model->services[model->service_count++], service);
	}
}

/* ---- keys ---- */

static struct weir_top_row *find_row(struct weir_top_model *model, const char *key,
				     const char *limit)
{
	for (size_t i = 0; i < model->row_count; i++) {
		if (!strcmp(model->rows[i].key, key) && !strcmp(model->rows[i].limit, limit))
			return &model->rows[i];
	}
	return NULL;
}

static struct weir_top_row *new_row(struct weir_top_model *model, const char *key,
				    const char *limit)
{
	struct weir_top_row *row;

	if (model->row_count == WEIR_TOP_ROWS)
		return NULL;
	row = &model->rows[model->row_count++];
	*row = (struct weir_top_row){ 0 };
	snprintf(row->key, sizeof(row->key), "%s", key);
	snprintf(row->limit, sizeof(row->limit), "%s", limit);
	return row;
}

/* Those that the answer hasn't sent little, or nothing. */
static void settle_rows(struct weir_top_model *model)
{
	for (size_t i = model->row_count; i-- > 0;) {
		struct weir_top_row *row = &model->rows[i];

		if (row->look == model->look)
			continue;
		if (model->look - row->look >= GONE_LOOKS) {
			*row = model->rows[--model->row_count];
			continue;
		}
		row->passed = row->refused = 0;
		push(&row->history, 0, 0);
	}
}

void weir_top_take_keys(struct weir_top_model *model, json_t *answer)
{
	json_t *keys = json_object_get(answer, "keys"), *key;
	bool total = !json_is_object(json_array_get(keys, 0))
			     ? model->total
			     : json_object_get(json_array_get(keys, 0), "admitted") != NULL;
	size_t i;

	if (!json_is_array(keys) || model->paused)
		return;
	model->look++;
	model->have_keys = true;
	model->span_s = total ? 0 : real(answer, "span_ns") / 1e9;
	json_array_foreach(keys, i, key)
	{
		struct weir_top_row *row =
			find_row(model, weir_json_text(key, "key"), weir_json_text(key, "limit"));

		if (!row)
			row = new_row(model, weir_json_text(key, "key"),
				      weir_json_text(key, "limit"));
		if (!row)
			break;
		row->passed = real(key, total ? "admitted" : "admitted_per_sec");
		row->refused = real(key, total ? "refused" : "refused_per_sec");
		row->look = model->look;
		push(&row->history, row->passed, row->refused);
	}
	settle_rows(model);
}

/* ---- refusals ---- */

static void add_end(char *line, json_t *event, const char *address, const char *port)
{
	const char *host = weir_json_text(event, address);
	json_int_t number = json_integer_value(json_object_get(event, port));

	if (number)
		ADD(line, strchr(host, ':') ? "[%s]:%lld" : "%s:%lld", host, (long long)number);
	else
		ADD(line, "%s", host);
}

void weir_top_take_refusal(struct weir_top_model *model, json_t *event)
{
	char line[WEIR_TOP_TEXT] = "";

	if (model->paused || !json_is_object(event))
		return;
	memmove(model->refusals[1], model->refusals[0],
		sizeof(model->refusals) - sizeof(model->refusals[0]));
	ADD(line, "%s%s ",
	    json_is_null(json_object_get(event, "limit")) ? "deny list"
							  : weir_json_text(event, "limit"),
	    json_is_true(json_object_get(event, "would")) ? " would refuse" : "");
	add_end(line, event, "source", "source_port");
	ADD(line, " > ");
	add_end(line, event, "destination", "destination_port");
	ADD(line, " %s on %s, %.0f more left out", weir_json_text(event, "protocol"),
	    weir_json_text(event, "interface"), real(event, "left_out"));
	memcpy(model->refusals[0], line, sizeof(line));
	if (model->refusal_count < WEIR_TOP_REFUSALS)
		model->refusal_count++;
}

/* ---- what is typed ---- */

static void type_filter(struct weir_top_model *model, int key)
{
	size_t length = strlen(model->filter);

	model->scroll = 0;
	if (key == WEIR_TOP_KEY_ENTER) {
		model->typing = false;
	} else if (key == WEIR_TOP_KEY_ESCAPE) {
		model->typing = false;
		model->filter[0] = '\0';
	} else if (key == WEIR_TOP_KEY_BACKSPACE) {
		if (length)
			model->filter[length - 1] = '\0';
	} else if (key > ' ' && key < 127 && length + 1 < sizeof(model->filter)) {
		model->filter[length] = (char)key;
		model->filter[length + 1] = '\0';
	}
}

#define PAGE 10

static void scroll(struct weir_top_model *model, long by)
{
	uint16_t order[WEIR_TOP_ROWS];
	size_t count = weir_top_order(model, order);

	if (by < 0)
		model->scroll -= (size_t)-by < model->scroll ? (size_t)-by : model->scroll;
	else
		model->scroll += (size_t)by;
	if (model->scroll >= count)
		model->scroll = count ? count - 1 : 0;
}

bool weir_top_type(struct weir_top_model *model, int key)
{
	if (model->typing) {
		type_filter(model, key);
		return true;
	}
	switch (key) {
	case 'q':
		return false;
	case 's':
		model->sort = (model->sort + 1) % WEIR_TOP_SORTS;
		model->scroll = 0;
		break;
	case '/':
		model->typing = true;
		break;
	case WEIR_TOP_KEY_ESCAPE:
		model->filter[0] = '\0';
		model->scroll = 0;
		break;
	case ' ':
		model->paused = !model->paused;
		break;
	case WEIR_TOP_KEY_UP:
		scroll(model, -1);
		break;
	case WEIR_TOP_KEY_DOWN:
		scroll(model, 1);
		break;
	case WEIR_TOP_KEY_PAGE_UP:
		scroll(model, -PAGE);
		break;
	case WEIR_TOP_KEY_PAGE_DOWN:
		scroll(model, PAGE);
		break;
	}
	return true;
}

/* ---- order ---- */

static double weight(const struct weir_top_row *row, enum weir_top_sort sort)
{
	return sort == WEIR_TOP_BY_REFUSED  ? row->refused
	       : sort == WEIR_TOP_BY_PASSED ? row->passed
					    : row->passed + row->refused;
}

static int compare(const void *a, const void *b, void *context)
{
	const struct weir_top_model *model = context;
	const struct weir_top_row *left = &model->rows[*(const uint16_t *)a];
	const struct weir_top_row *right = &model->rows[*(const uint16_t *)b];
	double difference = weight(right, model->sort) - weight(left, model->sort);
	int by_key = strcmp(left->key, right->key);

	if (model->sort != WEIR_TOP_BY_KEY && difference != 0)
		return difference > 0 ? 1 : -1;
	return by_key ? by_key : strcmp(left->limit, right->limit);
}

size_t weir_top_order(const struct weir_top_model *model, uint16_t order[WEIR_TOP_ROWS])
{
	size_t count = 0;

	for (size_t i = 0; i < model->row_count; i++) {
		const struct weir_top_row *row = &model->rows[i];

		if (!*model->filter || strstr(row->key, model->filter) ||
		    strstr(row->limit, model->filter))
			order[count++] = (uint16_t)i;
	}
	qsort_r(order, count, sizeof(*order), compare, (void *)model);
	return count;
}
