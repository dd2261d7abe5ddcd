// SPDX-License-Identifier: GPL-2.0
#include <bpf/libbpf.h>
#include <stdio.h>
#include <string.h>
#include <xdp/libxdp.h>

#include "controller/load.h"

static char words[256];

/* Keeps the warning's first line: what follows is a verifier's log or advice to programmers. */
static void keep(const char *format, va_list args)
{
	char text[256];
	char *start = text;

	vsnprintf(text, sizeof(text), format, args);
	if (!strncmp(text, "libbpf: ", 8) || !strncmp(text, "libxdp: ", 8))
		start += 8;
	start += strspn(start, " \n");
	start[strcspn(start, "\n")] = '\0';
	if (*start)
		snprintf(words, sizeof(words), "%s", start);
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
}

const char *weir_kernel_words(void)
{
	return words;
}
