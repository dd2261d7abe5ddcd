// SPDX-License-Identifier: GPL-2.0
#include "cli/top_screen.h"

#include <curses.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/top_model.h"
#include "cli/top_source.h"

#define ESCAPE_MS 25 /* that a sequence of a terminal over ssh may take */

static volatile sig_atomic_t hung_up;

static void on_hangup(int signal)
{
	(void)signal;
	hung_up = 1;
}

/* Signals come while we wait, and at no other time: none is missed. */
static void hold_signals(sigset_t *before)
{
	const struct sigaction action = { .sa_handler = on_hangup };
	sigset_t held;

	weir_cli_catch_interrupts();
	sigaction(SIGHUP, &action, NULL);
	sigemptyset(&held);
	sigaddset(&held, SIGINT);
	sigaddset(&held, SIGTERM);
	sigaddset(&held, SIGHUP);
	sigaddset(&held, SIGWINCH);
	sigprocmask(SIG_BLOCK, &held, before);
}

static int attributes_of(enum weir_top_style style)
{
	switch (style) {
	case WEIR_TOP_TITLE:
	case WEIR_TOP_HELP:
		return A_REVERSE;
	case WEIR_TOP_ALERT:
		return A_REVERSE | A_BOLD;
	case WEIR_TOP_HEADING:
		return A_UNDERLINE;
	case WEIR_TOP_REFUSING:
		return A_BOLD;
	default:
		return A_NORMAL;
	}
}

static void put(void *context, int row, enum weir_top_style style, const char *text)
{
	(void)context;
	attrset(attributes_of(style));
	mvaddstr(row, 0, text);
	attrset(A_NORMAL);
}

static void paint(const struct weir_top_model *model)
{
	int width, height;

	getmaxyx(stdscr, height, width);
	erase();
	if (width > 0 && height > 0)
		weir_top_draw(model, width, height, put, NULL);
	refresh();
}

static int key_of(int typed)
{
	switch (typed) {
	case KEY_UP:
		return WEIR_TOP_KEY_UP;
	case KEY_DOWN:
		return WEIR_TOP_KEY_DOWN;
	case KEY_PPAGE:
		return WEIR_TOP_KEY_PAGE_UP;
	case KEY_NPAGE:
		return WEIR_TOP_KEY_PAGE_DOWN;
	case KEY_ENTER:
	case '\n':
	case '\r':
		return WEIR_TOP_KEY_ENTER;
	case 27:
		return WEIR_TOP_KEY_ESCAPE;
	case KEY_BACKSPACE:
	case 127:
	case '\b':
		return WEIR_TOP_KEY_BACKSPACE;
	default:
		return typed;
	}
}

/* What was typed, and a new size, which curses gives as a key. False: to quit. */
static bool read_keys(struct weir_top_model *model, bool *news)
{
	int typed;

	while ((typed = getch()) != ERR) {
		*news = true;
		if (typed != KEY_RESIZE && !weir_top_type(model, key_of(typed)))
			return false;
	}
	return true;
}

static void follow(struct weir_top_model *model, struct weir_top_source *source,
		   const sigset_t *signals)
{
	struct pollfd fds[1 + WEIR_TOP_SOURCE_FDS];
	bool news = true;

	do {
		int wait_ms = weir_top_source_wait_ms(source);
		struct timespec wait = { wait_ms / 1000, wait_ms % 1000 * 1000000L };

		if (news)
			paint(model);
		fds[0] = (struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN };
		ppoll(fds, 1 + weir_top_source_fds(source, fds + 1), &wait, signals);
		/* A terminal that is gone says no more than that. */
		if (fds[0].revents & (POLLHUP | POLLERR | POLLNVAL))
			break;
		news = weir_top_source_step(source);
	} while (!weir_cli_interrupted() && !hung_up && read_keys(model, &news));
}

static int on_terminal(const struct weir_cli *cli, struct weir_top_model *model,
		       struct weir_top_source *source)
{
	const char *name = getenv("TERM");
	sigset_t before;
	SCREEN *screen;

	setlocale(LC_ALL, "");
	model->ascii = strcmp(nl_langinfo(CODESET), "UTF-8");
	screen = newterm(NULL, stdout, stdin);
	if (!screen)
		return weir_cli_fail_text(cli, WEIR_EXIT_FAILED,
					  "terminal '%s' is not known here: set TERM to one that "
					  "is, such as vt100, or give --once",
					  name ? name : "");
	hold_signals(&before);
	cbreak();
	noecho();
	nonl();
	nodelay(stdscr, true);
	keypad(stdscr, true);
	set_escdelay(ESCAPE_MS);
	curs_set(0);
	follow(model, source, &before);
	endwin();
	delscreen(screen);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return WEIR_EXIT_OK;
}

int weir_top_screen(const struct weir_cli *cli)
{
	struct weir_top_model *model = calloc(1, sizeof(*model));
	struct weir_top_source *source = NULL;
	int code;

	if (!model)
		return weir_cli_fail_text(cli, WEIR_EXIT_FAILED, "out of memory");
	model->held_percent = -1;
	model->total = cli->total;
	code = weir_top_source_open(&source, cli, model);
	if (!code)
		code = on_terminal(cli, model, source);
	if (!code)
		weir_top_source_close(source);
	free(model);
	return code;
}
