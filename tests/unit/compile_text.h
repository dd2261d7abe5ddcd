/* SPDX-License-Identifier: GPL-2.0 */
/* A policy from text, and its tables: what the compiler's tests begin with. */
#pragma once

#include <CUnit/CUnit.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "controller/compile.h"

static const uint32_t slots[WEIR_INTERFACES_MAX] = { 5, 0, 63 };
#define INTERFACES 3

/* How far the wall clock is ahead. */
static uint64_t wall_ns = 1700000000123456789;

struct text {
	char *bytes;
	size_t used, room;
};

__attribute__((format(printf, 2, 3))) static inline void add(struct text *text, const char *format,
							     ...)
	__attribute__((format(printf, 2, 3)));

__attribute__((format(printf, 2, 3))) static inline void add(struct text *text, const char *format,
							     ...)
{
	va_list args;

	if (text->room - text->used < 1024) {
		text->room = 2 * text->room + 4096;
		text->bytes = realloc(text->bytes, text->room);
	}
	va_start(args, format);
	text->used +=
		(size_t)vsnprintf(text->bytes + text->used, text->room - text->used, format, args);
	va_end(args);
}

static inline struct weir_policy *load(const char *text)
{
	struct weir_policy *policy = NULL;
	struct weir_error err = { "" };

	if (weir_policy_load_text(text, strlen(text), "test", &policy, &err))
		printf("  %s\n", err.text);
	CU_ASSERT_PTR_NOT_NULL_FATAL(policy);
	return policy;
}

static inline struct weir_compiled *compile(const struct weir_policy *policy,
					    const struct weir_compiled_before *before, int *code,
					    struct weir_error *err)
{
	static const struct weir_compiled_before nothing;
	struct weir_compiled *compiled = NULL;

	*code = weir_compile(policy, before ? before : &nothing, slots, 2, wall_ns, &compiled, err);
	return compiled;
}

static inline struct weir_compiled *compile_text(const char *text, int *code,
						 struct weir_error *err)
{
	struct weir_policy *policy = load(text);
	struct weir_compiled *compiled = compile(policy, NULL, code, err);

	weir_policy_free(policy);
	return compiled;
}
