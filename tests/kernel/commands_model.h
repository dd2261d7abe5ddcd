/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What operators' commands mean, without a controller: the file, what `set --save` kept, what is
 * in force, the lists. docs/operations.md and weir(8) in a hundred lines.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define LIMITS 8
#define PREFIXES 12
#define FOREVER INT64_MAX
#define SECOND 1000000000LL

enum kind { BUCKET, SLIDING, PERIOD, GATE, KINDS };

/* The numbers of a kind: as a field's text, and up to which they print as they are written. */
static const struct field {
	const char *name, *format;
	int most;
} fields[KINDS][2] = {
	[BUCKET] = { { "rate", "%dpps", 999 }, { "burst", "%d", 999 } },
	[SLIDING] = { { "window", "%ds", 59 } },
	[PERIOD] = { { "quota", "%d", 999 }, { "period", "%dh", 23 } },
	[GATE] = { { "limit", "%d", 999 } },
};

/* Of a file, a limit in force, or an override, which may lack any of it: 0. */
struct setting {
	bool there;
	int number[2];
	int mode; /* 1 enforce, 2 monitor */
};

struct entry {
	bool file, live;
	int64_t expires_ns; /* of the live one */
};

struct model {
	struct setting file[LIMITS], saved[LIMITS], now[LIMITS];
	struct entry lists[2][PREFIXES];
	bool frozen[2]; /* breaker, shedder */
	/* A set that waits to be confirmed: what was in force, and what is then saved. */
	bool waits, waits_save;
	int waits_limit;
	struct setting waits_by, before[LIMITS];
};

static const char *const list_names[] = { "allow", "deny" };
static const char *const loops[] = { "breaker", "shedder" };
static const char *const prefixes[PREFIXES] = {
	"0.0.0.0/0",	 "10.0.0.0/8",	    "10.1.0.0/16", "10.1.2.3/32",
	"10.1.2.4/31",	 "192.0.2.128/25",  "::/0",	   "2001:db8::/32",
	"2001:db8::/64", "2001:db8::1/128", "fd00::/8",	   "2001:db8:0:1::/64",
};

static inline enum kind kind_of(int limit)
{
	return (enum kind)(limit % KINDS);
}

static inline int fields_of(int limit)
{
	return fields[kind_of(limit)][1].name ? 2 : 1;
}

static inline void change(struct setting *setting, const struct setting *by)
{
	for (int i = 0; i < 2; i++) {
		if (by->number[i])
			setting->number[i] = by->number[i];
	}
	if (by->mode)
		setting->mode = by->mode;
}

/* A start, or a reload that was not refused: the file, and over it what was saved. */
static inline void model_apply(struct model *model)
{
	for (int i = 0; i < LIMITS; i++) {
		model->now[i] = model->file[i];
		if (model->now[i].there)
			change(&model->now[i], &model->saved[i]);
	}
}

static inline void model_set(struct model *model, int limit, const struct setting *by, bool save)
{
	change(&model->now[limit], by);
	if (save)
		change(&model->saved[limit], by);
}

/* False where there is neither the limit nor anything that was saved of it. */
static inline bool model_unset(struct model *model, int limit)
{
	struct setting *saved = &model->saved[limit];
	bool there = model->now[limit].there || saved->number[0] || saved->number[1] || saved->mode;

	model->now[limit] = model->file[limit];
	*saved = (struct setting){ 0 };
	return there;
}

/* `set --confirm`: nothing is saved yet. */
static inline void model_set_waiting(struct model *model, int limit, const struct setting *by,
				     bool save)
{
	memcpy(model->before, model->now, sizeof(model->before));
	model->waits = true;
	model->waits_save = save;
	model->waits_limit = limit;
	model->waits_by = *by;
	model_set(model, limit, by, false);
}

/* False where nothing waits. */
static inline bool model_confirm(struct model *model, bool undo)
{
	bool waited = model->waits;

	model->waits = false;
	if (waited && undo)
		memcpy(model->now, model->before, sizeof(model->now));
	else if (waited && model->waits_save)
		change(&model->saved[model->waits_limit], &model->waits_by);
	return waited;
}

/* A burst of 0 is the default, one second of the rate. */
static inline void setting_print(int limit, const struct setting *setting, char *text, size_t size)
{
	const int *n = setting->number;

	switch (kind_of(limit)) {
	case BUCKET:
		snprintf(text, size, "bucket rate %dpps burst %d", n[0], n[1] ? n[1] : n[0]);
		break;
	case SLIDING:
		snprintf(text, size, "sliding quota 10 window %ds", n[0]);
		break;
	case PERIOD:
		snprintf(text, size, "period quota %d period %dh align false", n[0], n[1]);
		break;
	default:
		snprintf(text, size, "gate limit %d", n[0]);
	}
}

/* The limit as the file has it. */
static inline void setting_yaml(int limit, const struct setting *setting, FILE *out)
{
	static const char *const kinds[] = { "bucket", "sliding", "period", "gate" };
	const struct field *field = fields[kind_of(limit)];

	fprintf(out, "  - {name: l%d, key: source, mode: %s, %s: {", limit,
		setting->mode == 2 ? "monitor" : "enforce", kinds[kind_of(limit)]);
	if (kind_of(limit) == SLIDING)
		fputs("quota: 10, ", out);
	for (int i = 0; i < fields_of(limit); i++) {
		if (!setting->number[i])
			continue;
		fprintf(out, "%s%s: ", i ? ", " : "", field[i].name);
		fprintf(out, field[i].format, setting->number[i]);
	}
	fprintf(out, "}%s}\n", kind_of(limit) == GATE ? ", match: {proto: tcp, to_port: 80}" : "");
}

/* ---- lists ---- */

/* Live, and by when: neither for what is over. */
static inline bool is_live(const struct entry *entry, int64_t now_ns)
{
	return entry->live && entry->expires_ns > now_ns;
}

/* Too near its end, or its sweep, to say what a command finds. */
static inline bool is_unsure(const struct entry *entry, int64_t now_ns)
{
	return entry->live && entry->expires_ns - now_ns < SECOND / 2 &&
	       now_ns - entry->expires_ns < 5 * SECOND;
}

static inline void model_add(struct entry *entry, int64_t now_ns, int64_t for_ns)
{
	int64_t expires_ns = for_ns ? now_ns + for_ns : FOREVER;

	/* Again extends, and never shortens. */
	if (!is_live(entry, now_ns) || expires_ns > entry->expires_ns)
		entry->expires_ns = expires_ns;
	entry->live = true;
}

/* False: refused, for it isn't there, or is the file's alone. */
static inline bool model_del(struct entry *entry, int64_t now_ns)
{
	bool was = is_live(entry, now_ns);

	entry->live = false;
	return was;
}
