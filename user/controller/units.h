/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The units of the operator's language (DESIGN §8): strict parsers and canonical printers.
 *
 * Parsers take one whole NUL-terminated text and return 0, or -EINVAL (no such value) or
 * -ERANGE (too small or too large) with a sentence in err that quotes the text and says what
 * to write instead; *value is then untouched. Numbers are decimal and whole: no sign, space,
 * exponent, leading zero or trailing text. Zero is never a value: the words `unlimited` and
 * `block` say what it could have meant. k, M, G (kbit, mbit, kbyte …) are powers of 1000.
 *
 * Printers fill a buffer of WEIR_UNIT_TEXT bytes and return it; parsing that text gives the
 * same value again.
 */
#pragma once

#include "controller/error.h"

#include <stdbool.h>
#include <stdint.h>

#define WEIR_UNIT_TEXT 48
#define WEIR_MILLION 1000000ULL
#define WEIR_RATE_MAX_PER_SEC 1000000000000ULL /* packets or bytes a second */

/*
 * `amount` packets (or bytes) every `per_ns`, kept as it was said: no rounding, no doubles.
 * per_ns is a second, minute, hour or day, or 8 of them for a bit rate that is no whole number
 * of bytes. per_ns 0 is no rate but a level: amount 0 is `block`, UINT64_MAX `unlimited`, and
 * for what a governor moves on a gate, the number of connections.
 */
struct weir_rate {
	uint64_t amount;
	uint64_t per_ns;
	bool bytes; /* tokens are bytes (frame bytes), else packets */
};

/* A number of packets ("2000", "2k") or of bytes ("64kbyte"). */
struct weir_amount {
	uint64_t value;
	bool bytes;
	bool given; /* false: `value` is a default that was filled in */
};

static inline bool weir_rate_is_block(const struct weir_rate *rate)
{
	return !rate->per_ns && !rate->amount;
}

static inline bool weir_rate_is_unlimited(const struct weir_rate *rate)
{
	return !rate->per_ns && rate->amount == UINT64_MAX;
}

/* 1000pps 1kpps 1000/s /sec /second, /m /min /minute, /h /hour, /d /day; 200mbit 1mbyte (a
 * second, or with one of those endings); unlimited, block. */
int weir_rate_parse(const char *text, struct weir_rate *rate, struct weir_error *err);
char *weir_rate_print(const struct weir_rate *rate, char *text);
/* Below 0, 0, above 0 as a is slower than, equal to, faster than b; units are not compared. */
int weir_rate_compare(const struct weir_rate *a, const struct weir_rate *b);
/* Tokens in one second, rounded down; 0 for block, UINT64_MAX for unlimited. */
uint64_t weir_rate_per_sec(const struct weir_rate *rate);

/* 2000, 2k, 3M, 1G: at least 1. */
int weir_count_parse(const char *text, uint64_t *count, struct weir_error *err);
char *weir_count_print(uint64_t count, char *text);
/* 1500byte 64kbyte 1mbyte 1gbyte: at least 1. Bits are refused. */
int weir_size_parse(const char *text, uint64_t *bytes, struct weir_error *err);
char *weir_size_print(uint64_t bytes, char *text);
/* A count or a size, whichever it is. */
int weir_amount_parse(const char *text, struct weir_amount *amount, struct weir_error *err);
char *weir_amount_print(const struct weir_amount *amount, char *text);
/* 500ns 10us 100ms 1s 5m 2h 1d: at least 1 ns, at most 2^63 - 1. */
int weir_time_parse(const char *text, uint64_t *ns, struct weir_error *err);
char *weir_time_print(uint64_t ns, char *text);
/* What is left of a time, in whole seconds: rounded up, so that it is over when it says so. */
char *weir_time_print_left(uint64_t ns, char *text);
/* 1.5, 0.1, 5: up to six decimals, in millionths, 0 allowed, below 2^31. */
int weir_ratio_parse(const char *text, uint64_t *millionths, struct weir_error *err);
char *weir_ratio_print(uint64_t millionths, char *text);
/* 5%, 0.5%: up to four decimals, in millionths of the whole, 0% to 100%. */
int weir_percent_parse(const char *text, uint64_t *millionths, struct weir_error *err);
char *weir_percent_print(uint64_t millionths, char *text);
