// SPDX-License-Identifier: GPL-2.0
#include <bpf/libbpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xdp/libxdp.h>

#include "controller/load.h"

static char words[256];
static bool refused;

/* The verifier's last line before its figures says what it minds. */
static void keep_verdict(char *text)
{
	char *end = strstr(text, "\nprocessed "), *line;

	if (end)
		*end = '\0';
	line = strrchr(text, '\n');
	snprintf(words, sizeof(words), "%s", line ? line + 1 : text);
	refused = true;
}

/* Else a warning's first line: what follows is advice to programmers. */
static void keep_line(char *text)
{
	if (!strncmp(text, "libbpf: ", 8) || !strncmp(text, "libxdp: ", 8))
		text += 8;
	text += strspn(text, " \n");
	text[strcspn(text, "\n")] = '\0';
	if (*text)
		snprintf(words, sizeof(words), "%s", text);
}

static void keep(const char *format, va_list args)
{
	char *text;

	if (refused || vasprintf(&text, format, args) < 0)
		return;
	if (strstr(text, "prog 'weir_") && strstr(text, "BEGIN PROG LOAD LOG"))
		keep_verdict(text);
	else
		keep_line(text);
	free(text);
}

static int from_libbpf(enum libbpf_print_level level, const char *format, va_list args)
{
	if (level == LIBBPF_WARN)
		keep(format, args);
	return 0;
}

static int from_libxdp(enum libxdp_print_level level, const char *format, va_list args)
{
	if (level == LIBXDP_WARN)
		keep(format, args);
	return 0;
}

void weir_kernel_words_listen(void)
{
	libbpf_set_print(from_libbpf);
	libxdp_set_print(from_libxdp);
}

void weir_kernel_words_clear(void)
{
	words[0] = '\0';
	refused = false;
}

bool weir_kernel_refused(void)
{
	return refused;
}

const char *weir_kernel_words(void)
{
	return words;
}
