// SPDX-License-Identifier: GPL-2.0
#include "controller/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* An error is one line on a terminal: whatever a bad value holds must not break it up. */
static void make_printable(char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			*text = '?';
	}
}

int weir_error_set(struct weir_error *err, int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	make_printable(err->text);
	return code;
}

void weir_error_prefix(struct weir_error *err, const char *format, ...)
{
	struct weir_error old = *err;
	va_list args;
	size_t used;

	va_start(args, format);
	vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	used = strlen(err->text);
	snprintf(err->text + used, sizeof(err->text) - used, "%s", old.text);
	make_printable(err->text);
}

int weir_error_code(int error)
{
	switch (error) {
	case -EINVAL:
	case -ENOENT:
	case -ERANGE:
	case -E2BIG:
	case -EFBIG:
	case -EOPNOTSUPP:
	case -ENAMETOOLONG:
	case -EALREADY:
	case -ECONNABORTED:
		return 1;
	default:
		return 2;
	}
}
