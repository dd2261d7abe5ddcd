// SPDX-License-Identifier: GPL-2.0
/* Lines of text for a screen of any size. Every character is one column wide. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/top_model.h"

#define LINE_BYTES 2048
#define WIDE 60 /* columns from which keys have their limit and sparkline */
#define SPARK_MAX 30
#define LIMITS_MOST 8
#define LISTED_MOST 3 /* services, and refusals */

struct canvas {
	const struct weir_top_model *model;
	weir_top_put put;
	void *context;
	int width, height;
	int row; /* the next */
};

/* ---- text ---- */

/* Bytes of the first `columns` characters. */
static size_t bytes_of(const char *text, int columns)
{
	size_t at = 0;

	while (text[at] && columns-- > 0) {
		at++;
		while ((text[at] & 0xc0) == 0x80)
			at++;
	}
	return at;
}

/* Puts a line, cut off at the right edge; below the lower one nothing. */
__attribute__((format(printf, 3, 4))) static void
line(struct canvas *canvas, enum weir_top_style style, const char *format, ...)
{
	char text[LINE_BYTES];
	va_list args;

	if (canvas->row >= canvas->height)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	text[bytes_of(text, canvas->width)] = '\0';
	canvas->put(canvas->context, canvas->row++, style, text);
}

/* "123", "12345", "123k", "12.3M", "-" below 0: at most 6 characters. */
static const char *figure(double value, char text[16])
{
	if (value < 0)
		snprintf(text, 16, "-");
	else if (value > 0 && value < 9.95)
		snprintf(text, 16, "%.1f", value);
	else if (value < 99999.5)
		snprintf(text, 16, "%.0f", value);
	else if (value < 9999500)
		snprintf(text, 16, "%.0fk", value / 1e3);
	else if (value < 1e12)
		snprintf(text, 16, "%.0fM", value / 1e6);
	else
		snprintf(text, 16, "%.0fT", value / 1e12);
	return text;
}

void weir_top_spark(const double *values, size_t count, int width, bool ascii, char *text,
		    size_t size)
{
	static const char *const blocks[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	static const char *const signs[] = { " ", "_", ".", "-", "=", "+", "*", "#", "@" };
	size_t first = count > (size_t)width ? count - (size_t)width : 0;
	double most = 0;

	*text = '\0';
	for (size_t i = first; i < count; i++)
		most = values[i] > most ? values[i] : most;
	for (size_t i = first; i < count; i++) {
		/* What is anything shows, if only as the lowest. */
		int level = values[i] > 0 ? 1 + (int)(7 * values[i] / most) : 0;
		const char *sign = ascii ? signs[level] : blocks[level];
		size_t used = strlen(text);

		if (used + strlen(sign) < size)
			memcpy(text + used, sign, strlen(sign) + 1);
	}
}

/* A sparkline, filled up to its width with spaces on the left. */
static const char *spark(const struct canvas *canvas, const double *values, size_t count, int width,
			 char text[4 * WEIR_TOP_HISTORY])
{
	char drawn[3 * WEIR_TOP_HISTORY + 1];
	int missing = (int)count < width ? width - (int)count : 0;

	if (width > WEIR_TOP_HISTORY)
		width = WEIR_TOP_HISTORY;
	weir_top_spark(values, count, width, canvas->model->ascii, drawn, sizeof(drawn));
	snprintf(text, 4 * WEIR_TOP_HISTORY, "%*s%s", missing, "", drawn);
	return text;
}

/* Passed and refused together. */
static const char *spark_all(const struct canvas *canvas, const struct weir_top_history *history,
			     int width, char text[4 * WEIR_TOP_HISTORY])
{
	double sums[WEIR_TOP_HISTORY];

	for (uint32_t i = 0; i < history->count; i++)
		sums[i] = history->passed[i] + history->refused[i];
	return spark(canvas, sums, history->count, width, text);
}

/* ---- parts ---- */

static void draw_title(struct canvas *canvas)
{
	const struct weir_top_model *model = canvas->model;
	char clock[32] = "", held[32] = "";

	if (model->time_ns) {
		weir_cli_clock(model->time_ns, clock);
		clock[strcspn(clock, ".")] = '\0';
	}
	if (model->held_percent >= 0)
		snprintf(held, sizeof(held), "  ledger %.0f%% held", model->held_percent);
	line(canvas, model->alert ? WEIR_TOP_ALERT : WEIR_TOP_TITLE, "weir top %s  %s%s%s", clock,
	     model->state, model->paused ? "  paused" : "", held);
}

static void draw_limit(struct canvas *canvas, const struct weir_top_limit *limit, int width)
{
	enum weir_top_style style = limit->refused > 0 ? WEIR_TOP_REFUSING : WEIR_TOP_PLAIN;
	const struct weir_top_history *history = &limit->history;
	char passed[4 * WEIR_TOP_HISTORY], refused[4 * WEIR_TOP_HISTORY], figures[2][16];

	figure(limit->passed, figures[0]);
	figure(limit->refused, figures[1]);
	if (width < 1)
		line(canvas, style, "%6s %6s %s", figures[1], figures[0], limit->name);
	else
		line(canvas, style, "%-20.20s %-7s %s %6s %s %6s", limit->name,
		     limit->monitor ? "monitor" : "enforce",
		     spark(canvas, history->passed, history->count, width, passed), figures[0],
		     spark(canvas, history->refused, history->count, width, refused), figures[1]);
}

static void draw_limits(struct canvas *canvas, int rows)
{
	const struct weir_top_model *model = canvas->model;
	int width = (canvas->width - 44) / 2;
	int shown = (int)model->limit_count > rows ? rows - 1 : (int)model->limit_count;

	width = canvas->width < WIDE ? 0 : width > SPARK_MAX ? SPARK_MAX : width;
	if (width)
		line(canvas, WEIR_TOP_HEADING, "%-20s %-7s %*s %*s", "LIMIT", "MODE", width + 7,
		     "PASS/s", width + 7, "REF/s");
	else
		line(canvas, WEIR_TOP_HEADING, "%6s %6s LIMIT", "REF/s", "PASS/s");
	for (int i = 0; i < shown; i++)
		draw_limit(canvas, &model->limits[i], width);
	if (shown < (int)model->limit_count)
		line(canvas, WEIR_TOP_PLAIN, "and %d more limits", (int)model->limit_count - shown);
}

static void draw_list(struct canvas *canvas, const char *heading,
		      const char (*texts)[WEIR_TOP_TEXT], size_t count, int last)
{
	int rows = last - canvas->row - 1;

	if (!count || rows < 1)
		return;
	line(canvas, WEIR_TOP_HEADING, "%s", heading);
	for (int i = 0; i < (int)count && i < rows && i < LISTED_MOST; i++)
		line(canvas, WEIR_TOP_PLAIN, "%s", texts[i]);
}

static const char *const sort_names[WEIR_TOP_SORTS] = {
	[WEIR_TOP_BY_ALL] = "all",
	[WEIR_TOP_BY_REFUSED] = "refused",
	[WEIR_TOP_BY_PASSED] = "passed",
	[WEIR_TOP_BY_KEY] = "key",
};

/* Where the columns of keys are. */
struct columns {
	bool wide;
	int key, limit, spark;
};

static struct columns columns_of(const struct canvas *canvas)
{
	struct columns columns = { .wide = canvas->width >= WIDE };
	int left = canvas->width - 14; /* two figures */

	columns.key = left;
	if (!columns.wide)
		return columns;
	columns.limit = 14;
	columns.spark = left / 4 > SPARK_MAX ? SPARK_MAX : left / 4;
	columns.key = left - columns.limit - columns.spark - 2;
	return columns;
}

/* A key in its column; what is cut off says so. */
static const char *key_text(const struct canvas *canvas, const char *key, int width,
			    char text[WEIR_KEY_TEXT + 8])
{
	if ((int)strlen(key) <= width)
		snprintf(text, WEIR_KEY_TEXT + 8, "%s", key);
	else
		snprintf(text, WEIR_KEY_TEXT + 8, "%.*s%s", width > 0 ? width - 1 : 0, key,
			 canvas->model->ascii ? "~" : "…");
	return text;
}

static void draw_key(struct canvas *canvas, const struct weir_top_row *row,
		     const struct columns *columns)
{
	char refused[16], passed[16], drawn[4 * WEIR_TOP_HISTORY], key[WEIR_KEY_TEXT + 8];
	enum weir_top_style style = row->refused > 0 ? WEIR_TOP_REFUSING : WEIR_TOP_PLAIN;
	int missing;

	key_text(canvas, row->key, columns->key, key);
	figure(row->refused, refused);
	figure(row->passed, passed);
	if (!columns->wide) {
		line(canvas, style, "%6s %6s %s", refused, passed, key);
		return;
	}
	/* By hand: printf fills up by bytes. */
	missing = columns->key - (int)strlen(row->key);
	line(canvas, style, "%6s %6s %s%*s %-*.*s %s", refused, passed, key,
	     missing > 0 ? missing : 0, "", columns->limit, columns->limit, row->limit,
	     spark_all(canvas, &row->history, columns->spark, drawn));
}

static void draw_keys(struct canvas *canvas, int last)
{
	const struct weir_top_model *model = canvas->model;
	const char *unit = model->total ? "" : "/s";
	struct columns columns = columns_of(canvas);
	uint16_t order[WEIR_TOP_ROWS];
	size_t count = weir_top_order(model, order), first = model->scroll;
	char over[64] = "";

	if (model->span_s > 0)
		snprintf(over, sizeof(over), ", over %.1f s", model->span_s);
	line(canvas, WEIR_TOP_HEADING, "%4s%s %4s%s KEY%s%s  (by %s%s%s%s)", "REF", unit, "PASS",
	     unit, first ? " from " : "", first ? "below" : "", sort_names[model->sort], over,
	     *model->filter ? ", with " : "", model->filter);
	if (!model->have_keys)
		line(canvas, WEIR_TOP_PLAIN, "  looking: rates take a second");
	else if (!count)
		line(canvas, WEIR_TOP_PLAIN, "  none%s", *model->filter ? " with that" : "");
	for (size_t i = first; i < count && canvas->row < last; i++)
		draw_key(canvas, &model->rows[order[i]], &columns);
}

static void draw_help(struct canvas *canvas)
{
	const struct weir_top_model *model = canvas->model;

	canvas->row = canvas->height - 1;
	if (model->typing)
		line(canvas, WEIR_TOP_HELP, "filter: %s_  Enter keeps, Esc clears", model->filter);
	else
		line(canvas, WEIR_TOP_HELP, "q quit  s sort  / filter  up down scroll  space %s",
		     model->paused ? "go on" : "pause");
}

/* Keys get what the others leave: at least half of the screen. */
void weir_top_draw(const struct weir_top_model *model, int width, int height, weir_top_put put,
		   void *context)
{
	struct canvas canvas = { model, put, context, width, height, 0 };
	int others = height / 2 - 1;

	draw_title(&canvas);
	if (others >= 3)
		draw_limits(&canvas, others - 2 < LIMITS_MOST ? others - 2 : LIMITS_MOST);
	draw_list(&canvas, "SERVICES", model->services, model->service_count, others);
	draw_list(&canvas, "REFUSALS", model->refusals, model->refusal_count, others);
	draw_keys(&canvas, height > 3 ? height - 1 : height);
	if (height > 3)
		draw_help(&canvas);
}
