// SPDX-License-Identifier: GPL-2.0
/* Every unit parser on one text: what is accepted prints as a text of the same value. */
#include "controller/units.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok)
{
	if (!ok)
		abort();
}

typedef int (*parser)(const char *text, uint64_t *value, struct weir_error *err);
typedef char *(*printer)(uint64_t value, char *text);

static void try_number(const char *text, parser parse, printer print)
{
	struct weir_error err = { "" };
	uint64_t value = 7, again = 0;
	char printed[WEIR_UNIT_TEXT];

	if (parse(text, &value, &err)) {
		check(value == 7 && *err.text);
		return;
	}
	check(!parse(print(value, printed), &again, &err) && again == value);
}

static void try_rate(const char *text)
{
	struct weir_rate rate, again;
	struct weir_error err = { "" };
	char printed[WEIR_UNIT_TEXT];

	if (weir_rate_parse(text, &rate, &err)) {
		check(*err.text);
		return;
	}
	check(!weir_rate_parse(weir_rate_print(&rate, printed), &again, &err));
	check(!weir_rate_compare(&rate, &again) && rate.bytes == again.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct {
		parser parse;
		printer print;
	} kinds[] = {
		{ weir_count_parse, weir_count_print },	    { weir_size_parse, weir_size_print },
		{ weir_time_parse, weir_time_print },	    { weir_ratio_parse, weir_ratio_print },
		{ weir_percent_parse, weir_percent_print },
	};
	struct weir_amount amount;
	struct weir_error err;
	char *text = malloc(size + 1);

	check(text);
	memcpy(text, data, size);
	text[size] = 0;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		try_number(text, kinds[i].parse, kinds[i].print);
	try_rate(text);
	weir_amount_parse(text, &amount, &err);
	free(text);
	return 0;
}
