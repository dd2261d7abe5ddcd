// SPDX-License-Identifier: GPL-2.0
/*
 * Random sequences of operators' commands to a real controller: set, unset, --save, --confirm,
 * confirm, undo, reload of a changed or a broken file, allow and deny, freeze, thaw, and its end in
 * every way with a start after it. After each one all that it shows is what a model says
 * (commands_model.h).
 *
 * WEIR_SEED=N repeats a run, WEIR_STEPS=N makes it longer.
 */
#include "commands_lab.h"
#include "random.h"

static uint64_t draws;

static int draw(int below)
{
	return (int)random_below(&draws, (uint64_t)below);
}

/* ---- the file ---- */

static struct setting draw_setting(int limit, bool whole)
{
	struct setting drawn = { .there = true };

	for (int i = 0; i < fields_of(limit); i++) {
		/* A bucket's burst may be left to its default. */
		bool may_lack = !whole || (kind_of(limit) == BUCKET && i == 1);

		if (!may_lack || draw(2))
			drawn.number[i] = 1 + draw(fields[kind_of(limit)][i].most);
	}
	if (whole || draw(3) == 0)
		drawn.mode = 1 + draw(2);
	return drawn;
}

static void write_lists(FILE *out)
{
	fputs("lists:\n", out);
	for (int list = 0; list < 2; list++) {
		const char *comma = "";

		fprintf(out, "  %s: [", list_names[list]);
		for (int i = 0; i < PREFIXES; i++) {
			if (!model.lists[list][i].file)
				continue;
			fprintf(out, "%s\"%s\"", comma, prefixes[i]);
			comma = ", ";
		}
		fputs("]\n", out);
	}
}

static void write_file(void)
{
	FILE *out = fopen(lab.config, "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	fputs("version: 1\nledger: {keys: 1024}\ninterfaces: [{name: w0}]\n"
	      "metrics: {listen: \"off\"}\ncontrol: {group: root}\n"
	      "services:\n  - {name: web, match: {proto: tcp, to_port: 80}, breaker: {}, "
	      "shedder: {}}\n",
	      out);
	write_lists(out);
	fputs("limits:\n", out);
	for (int i = 0; i < LIMITS; i++) {
		if (model.file[i].there)
			setting_yaml(i, &model.file[i], out);
	}
	fclose(out);
}

static void draw_file(void)
{
	for (int i = 0; i < LIMITS; i++) {
		struct setting drawn = draw_setting(i, true);

		if (draw(3) == 0)
			continue; /* as it was */
		model.file[i] = drawn;
		model.file[i].there = i == 0 || draw(4);
	}
	for (int list = 0; list < 2; list++) {
		for (int i = 0; i < PREFIXES; i++)
			model.lists[list][i].file = draw(4) == 0;
	}
	write_file();
}

/* ---- commands ---- */

/* NULL where the answer is ok as it should be, or refused as it should be (code 1). */
static const char *expect(json_t *answer, bool ok)
{
	static char wrong[512];
	bool right = answer && json_is_true(json_object_get(answer, "ok")) == ok &&
		     (ok || json_integer_value(json_object_get(answer, "code")) == 1);

	if (!right) {
		char *text = answer ? json_dumps(answer, 0) : NULL;

		snprintf(wrong, sizeof(wrong), "should be %s: %.400s", ok ? "done" : "refused",
			 text ? text : "no answer");
		free(text);
	}
	json_decref(answer);
	return right ? NULL : wrong;
}

/* The changes as the command takes them; NULL for none. */
static json_t *changes_of(int limit, const struct setting *by)
{
	json_t *changes = json_object();
	char value[32];

	for (int i = 0; i < fields_of(limit); i++) {
		if (!by->number[i])
			continue;
		snprintf(value, sizeof(value), fields[kind_of(limit)][i].format, by->number[i]);
		json_object_set_new(changes, fields[kind_of(limit)][i].name, json_string(value));
	}
	if (by->mode)
		json_object_set_new(changes, "mode",
				    json_string(by->mode == 2 ? "monitor" : "enforce"));
	return changes;
}

static const char *do_set(void)
{
	int limit = draw(LIMITS);
	struct setting by = draw_setting(limit, false);
	bool save = draw(3) == 0, confirm = draw(6) == 0, ok;
	json_t *changes = changes_of(limit, &by), *arguments;
	char name[8];

	snprintf(name, sizeof(name), "l%d", limit);
	ok = model.now[limit].there && json_object_size(changes) && !model.waits;
	arguments = json_pack("{s:s, s:o, s:b}", "limit", name, "changes", changes, "save", save);
	if (confirm)
		json_object_set_new(arguments, "confirm", json_string("10m"));
	if (ok && confirm)
		model_set_waiting(&model, limit, &by, save);
	else if (ok)
		model_set(&model, limit, &by, save);
	return expect(ask(json_pack("{s:s, s:o}", "command", "set", "arguments", arguments)), ok);
}

static const char *do_unset(void)
{
	int limit = draw(LIMITS);
	bool ok = !model.waits && model_unset(&model, limit);
	char name[8];

	snprintf(name, sizeof(name), "l%d", limit);
	return expect(ask(json_pack("{s:s, s:{s:s}}", "command", "unset", "arguments", "limit",
				    name)),
		      ok);
}

static const char *do_confirm(void)
{
	bool undo = draw(2);

	return expect(
		ask(json_pack("{s:s, s:{s:b}}", "command", "confirm", "arguments", "undo", undo)),
		model_confirm(&model, undo));
}

/* What must change nothing, not even in part. */
static const char *do_wrong_set(void)
{
	static const char *const bad[][2] = {
		{ "rate", "0pps" },
		{ "rate", "5bps" },
		{ "mode", "maybe" },
		{ "burst", "" },
		{ "speed", "5pps" },
		{ "rate", "-1pps" },
		{ "burst", "99999999999999999999" },
		{ "rate", "10pps " },
	};
	const char *const *one = bad[draw(sizeof(bad) / sizeof(bad[0]))];

	return expect(ask(json_pack("{s:s, s:{s:s, s:{s:s, s:s}, s:b}}", "command", "set",
				    "arguments", "limit", "l0", "changes", "untracked", "drop",
				    one[0], one[1], "save", draw(2))),
		      false);
}

static const char *do_reload(void)
{
	bool broken = draw(4) == 0;
	const char *wrong;

	if (model.waits)
		return expect(ask(json_pack("{s:s}", "command", "reload")), false);
	if (broken)
		lab_config(W0, "  - {name: l0, key: source, bucket: {rate: 0pps}}\n");
	else
		draw_file();
	wrong = expect(ask(json_pack("{s:s}", "command", "reload")), !broken);
	if (broken)
		write_file();
	else
		model_apply(&model);
	return wrong;
}

static const char *do_list(void)
{
	static const struct {
		const char *text;
		int64_t ns;
	} times[] = {
		{ "1s", SECOND }, { "3s", 3 * SECOND }, { "10m", 600 * SECOND }, { NULL, 0 }
	};
	int list = draw(2), at = draw(PREFIXES), time = draw(4);
	struct entry *entry = &model.lists[list][at];
	bool add = draw(3) > 0, ok = true;
	int64_t before_ns = now_ns();
	json_t *arguments;

	if (is_unsure(entry, before_ns))
		return NULL;
	if (add)
		model_add(entry, before_ns, times[time].ns);
	else
		ok = model_del(entry, before_ns);
	arguments = json_pack("{s:s, s:s}", "action", add ? "add" : "del", "prefix", prefixes[at]);
	if (add && times[time].text)
		json_object_set_new(arguments, "for", json_string(times[time].text));
	return expect(
		ask(json_pack("{s:s, s:o}", "command", list_names[list], "arguments", arguments)),
		ok);
}

static const char *do_wrong_list(void)
{
	static const char *const bad[][2] = { { "10.0.0.1/8", "1s" }, { "10.0.0.0/33", "1s" },
					      { "10.0.0.0/8", "0s" }, { "10.0.0.0/8", "400d" },
					      { "", "1s" },	      { "::/129", "1m" } };
	const char *const *one = bad[draw(sizeof(bad) / sizeof(bad[0]))];

	return expect(ask(json_pack("{s:s, s:{s:s, s:s, s:s}}", "command", list_names[draw(2)],
				    "arguments", "action", "add", "prefix", one[0], "for", one[1])),
		      false);
}

static const char *do_freeze(void)
{
	bool freeze = draw(2);
	int which = draw(3); /* 2: both */

	json_t *arguments = json_pack("{s:s}", "service", "web");

	if (which < 2)
		json_object_set_new(arguments, "loop", json_string(loops[which]));
	for (int i = 0; i < 2; i++) {
		if (which == 2 || which == i)
			model.frozen[i] = freeze;
	}
	return expect(ask(json_pack("{s:s, s:o}", "command", freeze ? "freeze" : "thaw",
				    "arguments", arguments)),
		      true);
}

static const char *do_restart(void)
{
	const char *wrong = NULL;

	switch (draw(3)) {
	case 0:
		wrong = expect(ask(json_pack("{s:s}", "command", "stop")), true);
		break;
	case 1:
		kill(process, SIGTERM);
		break;
	default:
		kill(process, SIGKILL);
	}
	snprintf(last, sizeof(last), "restart");
	ended();
	/* The file may have changed meanwhile; while a change waits its policy counts, not the
	 * file. */
	if (!model.waits && draw(2))
		draw_file();
	begin();
	if (!model.waits)
		model_apply(&model);
	return wrong;
}

static const struct {
	int share; /* of 1000 */
	const char *(*run)(void);
} kinds_of_step[] = {
	{ 360, do_set },       { 60, do_wrong_set }, { 110, do_reload }, { 200, do_list },
	{ 40, do_wrong_list }, { 80, do_freeze },    { 80, do_confirm }, { 30, do_restart },
	{ 40, do_unset },
};

static const char *step(void)
{
	int at = draw(1000), i = 0;
	const char *wrong;
	char done[256];

	while (at >= kinds_of_step[i].share)
		at -= kinds_of_step[i++].share;
	wrong = kinds_of_step[i].run();
	snprintf(done, sizeof(done), "%s", last);
	if (!wrong)
		wrong = compare();
	snprintf(last, sizeof(last), "%s", done);
	return wrong;
}

/* ---- the run ---- */

static unsigned long from_environment(const char *name, unsigned long otherwise)
{
	const char *text = getenv(name);

	return text ? strtoul(text, NULL, 0) : otherwise;
}

static void commands_do_what_the_model_says(void)
{
	unsigned long seed = from_environment("WEIR_SEED", 20261130);
	unsigned long steps = from_environment("WEIR_STEPS", 320), i = 0;
	const char *wrong = NULL;
	int64_t began_ns = now_ns();

	signal(SIGPIPE, SIG_IGN);
	draws = seed * 2 + 1;
	lab_open();
	snprintf(control, sizeof(control), "%s/s", lab.folder);
	draw_file();
	begin();
	model_apply(&model);
	wrong = compare();
	while (!wrong && i < steps) {
		wrong = step();
		i++;
	}
	printf("  WEIR_SEED=%lu: %lu commands in %.1f s\n", seed, i,
	       (double)(now_ns() - began_ns) / 1e9);
	if (wrong)
		printf("  after command %lu, %s:\n  %s\n", i, last, wrong);
	CU_ASSERT_PTR_NULL(wrong);
	kill(process, SIGTERM);
	ended();
	lab_close();
}

WEIR_TESTS("commands", TEST(commands_do_what_the_model_says))
