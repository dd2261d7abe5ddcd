// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "controller/error.h"
#include "harness.h"

static void whatever_a_value_holds_the_sentence_is_one_line_of_utf8(void)
{
	static const struct {
		const char *value, *said;
	} cases[] = {
		{ "a\tb\nc\x7f", "a?b?c?" },
		{ "gr\xc3\xbcn \xe2\x82\xac", "gr\xc3\xbcn \xe2\x82\xac" },
		{ "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80" },
		{ "\xc2\x9b" "31m", "??31m" }, /* a terminal's escape in one character */
		{ "\xff\x80\xc3", "???" },
		{ "\xc0\xaf\xe0\x80\xaf\xf0\x80\x80\xaf", "?????????" },
		{ "\xed\xa0\x80\xf4\x90\x80\x80\xf5\x80\x80\x80", "???????????" },
		{ "\xed\x9f\xbf\xf4\x8f\xbf\xbf", "\xed\x9f\xbf\xf4\x8f\xbf\xbf" },
	};
	struct weir_error err;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *json;

		CU_ASSERT_EQUAL(weir_error_set(&err, -EINVAL, "%s", cases[i].value), -EINVAL);
		CU_ASSERT_STRING_EQUAL(err.text, cases[i].said);
		json = json_string(err.text);
		CU_ASSERT_PTR_NOT_NULL(json);
		json_decref(json);
	}
}

/* "'%.40s...' is too long" and a sentence that is too long itself cut where they must. */
static void a_character_cut_in_two_costs_no_more_than_itself(void)
{
	struct weir_error err;
	char longer[2 * sizeof(err.text)];

	weir_error_set(&err, 0, "'%.4s...'", "abc\xc3\xbc");
	CU_ASSERT_STRING_EQUAL(err.text, "'abc?...'");
	for (size_t i = 0; i + 1 < sizeof(longer); i += 2)
		memcpy(longer + i, "\xc3\xbc", 2);
	longer[sizeof(longer) - 2] = '\0';
	weir_error_set(&err, 0, "%s", longer);
	CU_ASSERT_EQUAL(strlen(err.text), sizeof(err.text) - 1);
	CU_ASSERT_EQUAL(err.text[sizeof(err.text) - 2], '?');
	weir_error_prefix(&err, "file:1: ");
	CU_ASSERT_EQUAL(strncmp(err.text, "file:1: \xc3\xbc", 10), 0);
}

static void bad_input_is_1_and_a_refusal_of_the_kernels_2(void)
{
	CU_ASSERT_EQUAL(weir_error_code(-ENOENT), 1);
	CU_ASSERT_EQUAL(weir_error_code(-EISDIR), 1);
	CU_ASSERT_EQUAL(weir_error_code(-EINVAL), 1);
	CU_ASSERT_EQUAL(weir_error_code(-EPERM), 2);
	CU_ASSERT_EQUAL(weir_error_code(-ENOMEM), 2);
}

WEIR_TESTS("error", TEST(bad_input_is_1_and_a_refusal_of_the_kernels_2),
	    TEST(whatever_a_value_holds_the_sentence_is_one_line_of_utf8),
	   TEST(a_character_cut_in_two_costs_no_more_than_itself))
