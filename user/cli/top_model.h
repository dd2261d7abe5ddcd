/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What weir top shows, without a terminal: the answers of the controller (or of the pins) go in,
 * lines of text come out (weir_top_draw). All figures are of the last answer; a line of history
 * is a column of a sparkline, one a look.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/keys.h"

#define WEIR_TOP_HISTORY 60  /* looks */
#define WEIR_TOP_ROWS 512    /* keys with a history */
#define WEIR_TOP_ASK 200     /* keys in one answer */
#define WEIR_TOP_LIMITS 256
#define WEIR_TOP_SERVICES 256
#define WEIR_TOP_REFUSALS 8  /* sampled ones, the newest */
#define WEIR_TOP_FILTER 64
#define WEIR_TOP_TEXT 256

/* What a row sent, look by look; the newest is [count - 1]. */
struct weir_top_history {
	double passed[WEIR_TOP_HISTORY];
	double refused[WEIR_TOP_HISTORY];
	uint32_t count;
};

struct weir_top_limit {
	char name[32];
	bool monitor;
	double passed_total, refused_total; /* at the last look; in monitor mode would-refuses */
	double passed, refused;		    /* a second; below 0: not known yet */
	struct weir_top_history history;
};

struct weir_top_row {
	char key[WEIR_KEY_TEXT];
	char limit[32];
	double passed, refused; /* a second, or totals */
	uint32_t look;
	struct weir_top_history history;
};

enum weir_top_sort { WEIR_TOP_BY_ALL, WEIR_TOP_BY_REFUSED, WEIR_TOP_BY_PASSED, WEIR_TOP_BY_KEY,
		     WEIR_TOP_SORTS };

struct weir_top_model {
	struct weir_top_limit limits[WEIR_TOP_LIMITS];
	size_t limit_count;
	struct weir_top_row rows[WEIR_TOP_ROWS];
	size_t row_count;
	char services[WEIR_TOP_SERVICES][WEIR_TOP_TEXT];
	size_t service_count;
	char refusals[WEIR_TOP_REFUSALS][WEIR_TOP_TEXT]; /* the newest first */
	size_t refusal_count;
	uint64_t time_ns; /* of the last show */
	double held_percent; /* of the ledger; below 0: not known */
	double span_s;	     /* that the keys' rates are over; 0: totals */
	bool have_keys;	     /* there was an answer */
	uint32_t look;	     /* number of that answer */

	/* what the user chose */
	enum weir_top_sort sort;
	char filter[WEIR_TOP_FILTER];
	bool typing; /* the filter */
	bool paused;
	size_t scroll;

	/* what the source says */
	char state[WEIR_TOP_TEXT]; /* "live", "the controller is down, reading the pinned maps" */
	bool alert;		   /* it is to be seen */
	bool total;
	bool ascii; /* the terminal has no block characters */
};

/* Answers: of show, of top, one of watch. What has no such form changes nothing, and nothing does
 * while it is paused. */
void weir_top_take_show(struct weir_top_model *model, json_t *show);
void weir_top_take_keys(struct weir_top_model *model, json_t *answer);
void weir_top_take_refusal(struct weir_top_model *model, json_t *event);

/* Keys that are typed, beyond characters. */
enum weir_top_key {
	WEIR_TOP_KEY_UP = 0x1000,
	WEIR_TOP_KEY_DOWN,
	WEIR_TOP_KEY_PAGE_UP,
	WEIR_TOP_KEY_PAGE_DOWN,
	WEIR_TOP_KEY_ENTER,
	WEIR_TOP_KEY_ESCAPE,
	WEIR_TOP_KEY_BACKSPACE,
};
/* False: to quit. */
bool weir_top_type(struct weir_top_model *model, int key);

/* Indexes of the rows to show, in order; how many. */
size_t weir_top_order(const struct weir_top_model *model, uint16_t order[WEIR_TOP_ROWS]);

enum weir_top_style {
	WEIR_TOP_PLAIN,
	WEIR_TOP_TITLE,
	WEIR_TOP_ALERT, /* a title that is to be seen */
	WEIR_TOP_HEADING,
	WEIR_TOP_REFUSING, /* a row with refusals now */
	WEIR_TOP_HELP,
};
/* A line of UTF-8, never wider than the width that was asked for. */
typedef void (*weir_top_put)(void *context, int row, enum weir_top_style style, const char *text);

/* Draws into `width` columns and `height` rows, each at least 1; lines that are not put are
 * empty. */
void weir_top_draw(const struct weir_top_model *model, int width, int height, weir_top_put put,
		   void *context);

/* The last `width` looks as characters from low to high; fills `text` (3 bytes a look). */
void weir_top_spark(const double *values, size_t count, int width, bool ascii, char *text,
		    size_t size);
