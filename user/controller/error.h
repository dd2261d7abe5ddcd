/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The one error object of user space. Below the command layer nothing prints: a function that
 * fails returns -errno and leaves one sentence here that quotes the bad value, says what is
 * allowed and what to do. Callers that know more (file, line, field) put it in front.
 */
#pragma once

struct weir_error {
	char text[512]; /* one line, no newline at its end; "" while nothing failed */
};

/* Sets the sentence (cut off to fit) and returns `code`, so: return weir_error_set(err, -EINVAL,
 * …). */
int weir_error_set(struct weir_error *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts a context in front of the sentence that is there. */
void weir_error_prefix(struct weir_error *err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Goes on with the sentence that is there. */
void weir_error_append(struct weir_error *err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * An error is one line on a terminal, and a JSON string: control characters and what is not UTF-8,
 * such as a character that was cut in two, become '?'.
 */
void weir_error_make_printable(char *text);

/* The exit code that goes with an -errno: 1 for what was refused (bad input, not found), else 2. */
int weir_error_code(int error);
