/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A terminal of the kind xterm (its terminfo entry), as far as a program of curses uses one:
 * cells of one column, the cursor, erasing, inserting, scrolling, the other screen. Attributes
 * are read and forgotten. A sequence that it doesn't know is an error: it would be garbage on
 * a real terminal too.
 */
#pragma once

#include "tool.h"

#include <stdint.h>
#include <string.h>

#define EMULATOR_ROWS 200
#define EMULATOR_COLUMNS 400
#define EMULATOR_ARGUMENTS 16

struct emulator {
	uint32_t cells[EMULATOR_ROWS][EMULATOR_COLUMNS]; /* code points; 0 is a space */
	int rows, columns, row, column;
	int top, bottom; /* scrolling region, ends included */
	bool other_screen, cursor_hidden;
	uint32_t last; /* character, for REP */
	/* the sequence that is being read */
	enum { EMULATOR_TEXT, EMULATOR_ESCAPE, EMULATOR_CSI, EMULATOR_CHARSET } state;
	bool question;
	int arguments[EMULATOR_ARGUMENTS], count;
	uint32_t code;
	int left; /* bytes of a UTF-8 character */
};

static inline void emulator_resize(struct emulator *term, int columns, int rows)
{
	if (columns < 1 || columns > EMULATOR_COLUMNS || rows < 1 || rows > EMULATOR_ROWS)
		die(TOOL_USAGE, "a screen has 1x1 to %dx%d cells", EMULATOR_COLUMNS,
		    EMULATOR_ROWS);
	for (int row = 0; row < EMULATOR_ROWS; row++) {
		for (int column = 0; column < EMULATOR_COLUMNS; column++) {
			if (row >= rows || column >= columns)
				term->cells[row][column] = 0;
		}
	}
	term->rows = rows;
	term->columns = columns;
	term->top = 0;
	term->bottom = rows - 1;
	term->row = term->row < rows ? term->row : rows - 1;
	term->column = term->column < columns ? term->column : columns - 1;
}

static inline void emulator_blank(struct emulator *term, int row, int from, int to)
{
	for (int column = from; column < to && column < term->columns; column++)
		term->cells[row][column] = 0;
}

/* Moves the lines of [from, bottom] by `by` up (or down, below 0). */
static inline void emulator_scroll(struct emulator *term, int from, int by)
{
	int step = by > 0 ? 1 : -1;
	size_t line = sizeof(term->cells[0]);

	for (; by; by -= step) {
		size_t lines = (size_t)(term->bottom - from);

		if (by > 0)
			memmove(term->cells[from], term->cells[from + 1], lines * line);
		else
			memmove(term->cells[from + 1], term->cells[from], lines * line);
		emulator_blank(term, by > 0 ? term->bottom : from, 0, term->columns);
	}
}

static inline void emulator_line_down(struct emulator *term)
{
	if (term->row == term->bottom)
		emulator_scroll(term, term->top, 1);
	else if (term->row < term->rows - 1)
		term->row++;
}

static inline void emulator_print(struct emulator *term, uint32_t code)
{
	term->last = code;
	/* The last column wraps with the next character. */
	if (term->column == term->columns) {
		term->column = 0;
		emulator_line_down(term);
	}
	term->cells[term->row][term->column++] = code == ' ' ? 0 : code;
}

static inline int emulator_argument(const struct emulator *term, int i, int otherwise)
{
	return i < term->count && term->arguments[i] ? term->arguments[i] : otherwise;
}

static inline void emulator_go(struct emulator *term, int row, int column)
{
	term->row = row < 0 ? 0 : row >= term->rows ? term->rows - 1 : row;
	term->column = column < 0 ? 0 : column >= term->columns ? term->columns - 1 : column;
}

static inline void emulator_erase(struct emulator *term, int how)
{
	if (how == 0)
		emulator_blank(term, term->row, term->column, term->columns);
	for (int row = 0; row < term->rows; row++) {
		if (how >= 2 || (how == 0 && row > term->row) || (how == 1 && row < term->row))
			emulator_blank(term, row, 0, term->columns);
	}
	if (how == 1)
		emulator_blank(term, term->row, 0, term->column + 1);
}

/* Characters of the line from the cursor on, by `by` to the right, or left below 0. */
static inline void emulator_shift(struct emulator *term, int by)
{
	uint32_t *line = term->cells[term->row];
	int left = term->columns - term->column, count = by < 0 ? -by : by;

	count = count < left ? count : left;
	if (by > 0) {
		memmove(line + term->column + count, line + term->column,
			(size_t)(left - count) * sizeof(*line));
		emulator_blank(term, term->row, term->column, term->column + count);
	} else {
		memmove(line + term->column, line + term->column + count,
			(size_t)(left - count) * sizeof(*line));
		emulator_blank(term, term->row, term->columns - count, term->columns);
	}
}

static inline void emulator_mode(struct emulator *term, bool on)
{
	int mode = emulator_argument(term, 0, 0);

	if (term->question && mode == 1049) {
		term->other_screen = on;
		emulator_erase(term, 2);
	} else if (term->question && mode == 25) {
		term->cursor_hidden = !on;
	}
}

static inline void emulator_csi(struct emulator *term, char final)
{
	int n = emulator_argument(term, 0, 1);

	switch (final) {
	case 'A': emulator_go(term, term->row - n, term->column); break;
	case 'B': emulator_go(term, term->row + n, term->column); break;
	case 'C': emulator_go(term, term->row, term->column + n); break;
	case 'D': emulator_go(term, term->row, term->column - n); break;
	case 'G': emulator_go(term, term->row, n - 1); break;
	case 'd': emulator_go(term, n - 1, term->column); break;
	case 'H': emulator_go(term, n - 1, emulator_argument(term, 1, 1) - 1); break;
	case 'J': emulator_erase(term, emulator_argument(term, 0, 0)); break;
	case 'K':
		if (emulator_argument(term, 0, 0) == 1)
			emulator_blank(term, term->row, 0, term->column + 1);
		else
			emulator_blank(term, term->row, term->column, term->columns);
		break;
	case 'X': emulator_blank(term, term->row, term->column, term->column + n); break;
	case 'P': emulator_shift(term, -n); break;
	case '@': emulator_shift(term, n); break;
	case 'L': emulator_scroll(term, term->row, -n); break;
	case 'M': emulator_scroll(term, term->row, n); break;
	case 'S': emulator_scroll(term, term->top, n); break;
	case 'T': emulator_scroll(term, term->top, -n); break;
	case 'b':
		for (; n; n--)
			emulator_print(term, term->last);
		break;
	case 'r':
		term->top = n - 1;
		term->bottom = emulator_argument(term, 1, term->rows) - 1;
		if (term->bottom >= term->rows || term->top > term->bottom)
			die(TOOL_SYSTEM, "a scrolling region beyond the screen");
		emulator_go(term, 0, 0);
		break;
	case 'h': emulator_mode(term, true); break;
	case 'l': emulator_mode(term, false); break;
	case 'm':
	case 't': break;
	default: die(TOOL_SYSTEM, "a sequence that xterm has not: CSI %c", final);
	}
	/* A cursor behind the last column stays there for printing only. */
}

static inline void emulator_control(struct emulator *term, uint8_t byte)
{
	switch (byte) {
	case '\n': emulator_line_down(term); break;
	case '\r': term->column = 0; break;
	case '\b': term->column -= term->column > 0; break;
	case '\t': emulator_go(term, term->row, (term->column / 8 + 1) * 8); break;
	case 27: term->state = EMULATOR_ESCAPE; break;
	case 7:
	case 14:
	case 15: break;
	default: die(TOOL_SYSTEM, "a control character %d on the screen", byte);
	}
}

static inline void emulator_escape(struct emulator *term, uint8_t byte)
{
	term->state = EMULATOR_TEXT;
	if (byte == '[') {
		term->state = EMULATOR_CSI;
		term->count = 0;
		term->question = false;
		memset(term->arguments, 0, sizeof(term->arguments));
	} else if (byte == '(' || byte == ')') {
		term->state = EMULATOR_CHARSET;
	} else if (byte == 'M') {
		if (term->row == term->top)
			emulator_scroll(term, term->top, -1);
		else
			emulator_go(term, term->row - 1, term->column);
	} else if (byte != '=' && byte != '>' && byte != '7' && byte != '8') {
		die(TOOL_SYSTEM, "a sequence that xterm has not: ESC %c", byte);
	}
}

static inline void emulator_parameter(struct emulator *term, uint8_t byte)
{
	if (byte == '?') {
		term->question = true;
	} else if (byte >= '0' && byte <= '9') {
		term->count += !term->count;
		if (term->count <= EMULATOR_ARGUMENTS && term->arguments[term->count - 1] < 10000)
			term->arguments[term->count - 1] =
				term->arguments[term->count - 1] * 10 + byte - '0';
	} else if (byte == ';') {
		term->count += term->count ? 1 : 2;
		if (term->count > EMULATOR_ARGUMENTS)
			die(TOOL_SYSTEM, "a sequence with too many numbers");
	} else {
		term->state = EMULATOR_TEXT;
		emulator_csi(term, (char)byte);
	}
}

static inline void emulator_text(struct emulator *term, uint8_t byte)
{
	if (term->left) {
		if ((byte & 0xc0) != 0x80)
			die(TOOL_SYSTEM, "no UTF-8 on the screen: byte %02x", byte);
		term->code = term->code << 6 | (byte & 0x3f);
		if (!--term->left)
			emulator_print(term, term->code);
	} else if (byte < 32 || byte == 127) {
		emulator_control(term, byte);
	} else if (byte < 128) {
		emulator_print(term, byte);
	} else if (byte >= 0xc2 && byte < 0xf5) {
		term->left = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
		term->code = byte & (0x3f >> term->left);
	} else {
		die(TOOL_SYSTEM, "no UTF-8 on the screen: byte %02x", byte);
	}
}

static inline void emulator_feed(struct emulator *term, uint8_t byte)
{
	switch (term->state) {
	case EMULATOR_TEXT: emulator_text(term, byte); break;
	case EMULATOR_ESCAPE: emulator_escape(term, byte); break;
	case EMULATOR_CSI: emulator_parameter(term, byte); break;
	case EMULATOR_CHARSET: term->state = EMULATOR_TEXT; break;
	}
}

static inline size_t emulator_utf8(uint32_t code, char *to)
{
	if (code < 0x80) {
		to[0] = (char)(code ? code : ' ');
		return 1;
	}
	if (code < 0x800) {
		to[0] = (char)(0xc0 | code >> 6);
		to[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	to[0] = (char)(0xe0 | code >> 12);
	to[1] = (char)(0x80 | (code >> 6 & 0x3f));
	to[2] = (char)(0x80 | (code & 0x3f));
	return 3;
}

/* The screen as lines, without the spaces at their ends: how many bytes. */
static inline size_t emulator_dump(const struct emulator *term, char *to, size_t size)
{
	size_t used = 0;

	for (int row = 0; row < term->rows; row++) {
		int last = term->columns;

		while (last && !term->cells[row][last - 1])
			last--;
		for (int column = 0; column < last && used + 4 < size; column++)
			used += emulator_utf8(term->cells[row][column], to + used);
		if (used + 1 < size)
			to[used++] = '\n';
	}
	to[used < size ? used : size - 1] = '\0';
	return used;
}
