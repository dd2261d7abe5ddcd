// SPDX-License-Identifier: GPL-2.0
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "cli/cli.h"

static volatile sig_atomic_t interrupted;

int weir_cli_fail(const struct weir_cli *cli, int code, const struct weir_error *err)
{
	if (cli->json)
		weir_cli_print_json(cli, json_pack("{s:s}", "error", err->text));
	else
		fprintf(stderr, "weir: %s\n", err->text);
	return code;
}

int weir_cli_fail_text(const struct weir_cli *cli, int code, const char *format, ...)
{
	struct weir_error err;
	char text[sizeof(err.text)];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	weir_error_set(&err, code, "%s", text);
	return weir_cli_fail(cli, code, &err);
}

int weir_cli_print_json(const struct weir_cli *cli, json_t *value)
{
	(void)cli;
	if (!value) {
		/* A value that is no UTF-8 ends here too. */
		puts("{\"error\": \"this can't be shown as JSON\"}");
		return WEIR_EXIT_FAILED;
	}
	json_dumpf(value, stdout, JSON_REAL_PRECISION(12));
	putchar('\n');
	json_decref(value);
	return WEIR_EXIT_OK;
}

char *weir_cli_clock(uint64_t time_ns, char *text)
{
	time_t seconds = (time_t)(time_ns / 1000000000);
	struct tm local;
	size_t used;

	localtime_r(&seconds, &local);
	used = strftime(text, 32, "%H:%M:%S", &local);
	snprintf(text + used, 32 - used, ".%03u", (unsigned int)(time_ns / 1000000 % 1000));
	return text;
}

static void on_interrupt(int signal)
{
	(void)signal;
	interrupted = 1;
}

void weir_cli_catch_interrupts(void)
{
	/* Without SA_RESTART: a wait ends. */
	const struct sigaction action = { .sa_handler = on_interrupt };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

bool weir_cli_interrupted(void)
{
	return interrupted;
}
