// SPDX-License-Identifier: GPL-2.0
#include "controller/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The bytes of the UTF-8 character at p: 0 for what is none, or for a control character. */
static size_t printable(const unsigned char *p)
{
	size_t length = *p < 0x80 ? 1 : *p < 0xc2 ? 0 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : 4;

	if (length == 1)
		return *p >= 0x20 && *p != 0x7f;
	for (size_t i = 1; i < length; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	}
	/* U+0080 to U+009F; said longer than need be; surrogates; above U+10FFFF. */
	if ((*p == 0xc2 && p[1] < 0xa0) || (*p == 0xe0 && p[1] < 0xa0) ||
	    (*p == 0xed && p[1] > 0x9f) || (*p == 0xf0 && p[1] < 0x90) ||
	    *p > 0xf4 || (*p == 0xf4 && p[1] > 0x8f))
		return 0;
	return length;
}

void weir_error_make_printable(char *text)
{
	while (*text) {
		size_t length = printable((const unsigned char *)text);

		if (!length)
			*text = '?';
		text += length ? length : 1;
	}
}

int weir_error_set(struct weir_error *err, int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	weir_error_make_printable(err->text);
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
	weir_error_make_printable(err->text);
}

void weir_error_append(struct weir_error *err, const char *format, ...)
{
	size_t used = strlen(err->text);
	va_list args;

	va_start(args, format);
	vsnprintf(err->text + used, sizeof(err->text) - used, format, args);
	va_end(args);
	weir_error_make_printable(err->text);
}

int weir_error_code(int error)
{
	switch (error) {
	case -EINVAL:
	case -ENOENT:
	case -ERANGE:
	case -E2BIG:
	case -EFBIG:
	case -EISDIR:
	case -EOPNOTSUPP:
	case -ENAMETOOLONG:
	case -EALREADY:
	case -ECONNABORTED:
		return 1;
	default:
		return 2;
	}
}
