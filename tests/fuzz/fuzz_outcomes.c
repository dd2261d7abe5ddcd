// SPDX-License-Identifier: GPL-2.0
/* A datagram of an application's report: refused in words, or a name and an outcome that another
 * datagram can say again. */
#include "controller/outcomes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok)
{
	if (!ok)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct weir_outcome_line line, again;
	struct weir_error err = { "" };
	char text[WEIR_OUTCOME_MAX + 1];
	int length;

	/* libFuzzer's buffer is as long as the input: the sanitizer guards its end. */
	if (weir_outcome_parse((const char *)data, size, &line, &err)) {
		check(*err.text);
		return 0;
	}
	check(*line.name && size <= WEIR_OUTCOME_MAX + 1);
	length = snprintf(text, sizeof(text), "%s %s", line.name, line.pass ? "pass" : "fail");
	if (line.response_ns)
		length += snprintf(text + length, sizeof(text) - (size_t)length,
				   " rt=%" PRIu64 "ns", line.response_ns);
	check(!weir_outcome_parse(text, (size_t)length, &again, &err));
	check(!strcmp(line.name, again.name) && line.pass == again.pass &&
	      line.response_ns == again.response_ns);
	return 0;
}
