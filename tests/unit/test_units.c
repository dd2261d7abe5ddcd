// SPDX-License-Identifier: GPL-2.0
#include "controller/units.h"
#include "harness.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SEC 1000000000ULL

/* CUnit shows only the source line of a failure; a table's row has to name itself. */
static void expect(bool ok, const char *text, const char *why)
{
	if (!ok)
		printf("  '%s': %s\n", text, why);
	CU_ASSERT_TRUE(ok);
}

static const struct {
	const char *text;
	struct weir_rate rate;
	const char *canonical;
} good_rates[] = {
	{ "1000pps", { 1000, SEC, false }, "1000pps" },
	{ "1kpps", { 1000, SEC, false }, "1000pps" },
	{ "1000/s", { 1000, SEC, false }, "1000pps" },
	{ "1000/sec", { 1000, SEC, false }, "1000pps" },
	{ "1k/second", { 1000, SEC, false }, "1000pps" },
	{ "3M/m", { 3000000, 60 * SEC, false }, "3000000/min" },
	{ "10/min", { 10, 60 * SEC, false }, "10/min" },
	{ "10/minute", { 10, 60 * SEC, false }, "10/min" },
	/* D17: very low rates are exact. */
	{ "1/h", { 1, 3600 * SEC, false }, "1/h" },
	{ "1/hour", { 1, 3600 * SEC, false }, "1/h" },
	{ "1/d", { 1, 86400 * SEC, false }, "1/d" },
	{ "1/day", { 1, 86400 * SEC, false }, "1/d" },
	{ "200mbit", { 25000000, SEC, true }, "200mbit" },
	{ "200mbit/s", { 25000000, SEC, true }, "200mbit" },
	{ "1bit", { 1, 8 * SEC, true }, "1bit" },
	{ "7kbit", { 875, SEC, true }, "7kbit" },
	{ "12bit/h", { 12, 8 * 3600 * SEC, true }, "12bit/h" },
	{ "1byte", { 1, SEC, true }, "8bit" },
	{ "1mbyte", { 1000000, SEC, true }, "8mbit" },
	{ "1kbyte/min", { 1000, 60 * SEC, true }, "8kbit/min" },
	{ "100gbit", { 12500000000, SEC, true }, "100gbit" },
	{ "10gbyte/day", { 10000000000, 86400 * SEC, true }, "80gbit/d" },
	/* D12: rates about 2^31 and 2^32 are themselves. */
	{ "2147483648pps", { 2147483648, SEC, false }, "2147483648pps" },
	{ "4294967296pps", { 4294967296, SEC, false }, "4294967296pps" },
	{ "1000Gpps", { 1000000000000, SEC, false }, "1000000000000pps" },
	{ "60000G/min", { 60000000000000, 60 * SEC, false }, "60000000000000/min" },
	{ "1000gbyte", { 1000000000000, SEC, true }, "8000gbit" },
	{ "unlimited", { UINT64_MAX, 0, false }, "unlimited" },
	{ "block", { 0, 0, false }, "block" },
};

static void rates_are_read_and_printed(void)
{
	for (size_t i = 0; i < sizeof(good_rates) / sizeof(good_rates[0]); i++) {
		const struct weir_rate *want = &good_rates[i].rate;
		const char *text = good_rates[i].text;
		struct weir_error err = { "" };
		struct weir_rate rate = { 0 };
		char canonical[WEIR_UNIT_TEXT];

		expect(!weir_rate_parse(text, &rate, &err), text, err.text);
		expect(rate.amount == want->amount && rate.per_ns == want->per_ns &&
			       rate.bytes == want->bytes,
		       text, "another value");
		expect(!strcmp(weir_rate_print(&rate, canonical), good_rates[i].canonical), text,
		       canonical);
	}
}

typedef int (*parser)(const char *text, struct weir_error *err);

static int parse_rate(const char *text, struct weir_error *err)
{
	struct weir_rate rate;

	return weir_rate_parse(text, &rate, err);
}

#define NUMBER(name)                                                                               \
	static int parse_##name(const char *text, struct weir_error *err)                          \
	{                                                                                          \
		uint64_t value;                                                                    \
		return weir_##name##_parse(text, &value, err);                                     \
	}
NUMBER(count)
NUMBER(size)
NUMBER(time)
NUMBER(ratio)
NUMBER(percent)

/* U13: what can't be is refused with a reason, never replaced by a default. D18: zero, -1, empty,
 * 1e3, 10/0s. */
static const struct {
	parser parse;
	const char *text;
	int code;
	const char *says;
} bad[] = {
	{ parse_rate, "", -EINVAL, "'' is empty: write 1000pps" },
	{ parse_rate, "0", -ERANGE, "'0' is zero" },
	{ parse_rate, "0pps", -ERANGE, "unlimited or block" },
	{ parse_rate, "-1pps", -ERANGE, "'-1pps' is negative" },
	{ parse_rate, "-1mbit", -ERANGE, "is negative" },
	{ parse_rate, "+5pps", -EINVAL, "does not start with a digit" },
	{ parse_rate, " 5pps", -EINVAL, "does not start with a digit" },
	{ parse_rate, "5pps ", -EINVAL, "unknown unit 'pps '" },
	{ parse_rate, "5 pps", -EINVAL, "unknown unit ' pps'" },
	{ parse_rate, "1e3", -EINVAL, "unknown unit 'e3'" },
	{ parse_rate, "10/0s", -EINVAL, "unknown unit '/0s'" },
	{ parse_rate, "10/", -EINVAL, "unknown unit '/'" },
	{ parse_rate, "10/s/s", -EINVAL, "unknown unit" },
	{ parse_rate, "10pps/s", -EINVAL, "unknown unit" },
	{ parse_rate, "10/week", -EINVAL, "unknown unit '/week'" },
	{ parse_rate, "1000", -EINVAL, "'1000' has no unit: write 1000pps" },
	{ parse_rate, "10bps", -EINVAL, "bps means bits to some and bytes to others" },
	{ parse_rate, "10kbps", -EINVAL, "write 200mbit or 25mbyte" },
	{ parse_rate, "10Mbit", -EINVAL, "unknown unit 'Mbit'" },
	{ parse_rate, "10mpps", -EINVAL, "unknown unit 'mpps'" },
	{ parse_rate, "NaN", -EINVAL, "does not start with a digit" },
	{ parse_rate, "inf", -EINVAL, "does not start with a digit" },
	{ parse_rate, "0x10pps", -ERANGE, "zero" },
	{ parse_rate, "010pps", -EINVAL, "starts with a 0" },
	{ parse_rate, "1.5mbit", -EINVAL, "not a whole number" },
	{ parse_rate, "Unlimited", -EINVAL, "does not start" },
	{ parse_rate, "1001Gpps", -ERANGE, "at most 1000Gpps" },
	{ parse_rate, "60000000000001/min", -ERANGE, "too large" },
	{ parse_rate, "18446744073709551616pps", -ERANGE, "too large" },
	{ parse_rate, "99999999999999999999pps", -ERANGE, "too large" },
	{ parse_rate, "18446744073709551615Gpps", -ERANGE, "too large" },
	{ parse_rate, "9223372036854775808pps", -ERANGE, "too large" },
	{ parse_rate, "18446744073709551615gbit", -ERANGE, "too large" },
	{ parse_count, "", -EINVAL, "empty" },
	{ parse_count, "0", -ERANGE, "zero" },
	{ parse_count, "-1", -ERANGE, "negative" },
	{ parse_count, "1e3", -EINVAL, "unknown unit 'e3'" },
	{ parse_count, "1K", -EINVAL, "unknown unit 'K': write a whole number such as 2000" },
	{ parse_count, "1kk", -EINVAL, "unknown unit 'kk'" },
	{ parse_count, "18446744073709551615", -ERANGE, "too large" },
	{ parse_count, "18446744073709551615k", -ERANGE, "too large" },
	{ parse_size, "1500", -EINVAL, "'1500' has no unit: write bytes such as 1500byte" },
	{ parse_size, "1mbit", -EINVAL, "is in bits: write bytes" }, /* D19 */
	{ parse_size, "1mb", -EINVAL, "unknown unit 'mb'" },
	{ parse_size, "0byte", -ERANGE, "zero" },
	{ parse_time, "1", -EINVAL, "'1' has no unit: write a time" },
	{ parse_time, "0s", -ERANGE, "zero" },
	{ parse_time, "1w", -EINVAL, "unknown unit 'w'" },
	{ parse_time, "1s5", -EINVAL, "unknown unit 's5'" },
	{ parse_time, "1h30m", -EINVAL, "unknown unit 'h30m'" },
	{ parse_time, "106752d", -ERANGE, "too large" },
	{ parse_ratio, "", -EINVAL, "write 1.5 or 0.1" },
	{ parse_ratio, "-1", -EINVAL, "is not a number" },
	{ parse_ratio, ".5", -EINVAL, "is not a number" },
	{ parse_ratio, "1.", -EINVAL, "is not a number" },
	{ parse_ratio, "1.1234567", -EINVAL, "up to 6 decimals" },
	{ parse_ratio, "01", -EINVAL, "is not a number" },
	{ parse_ratio, "2147483648", -ERANGE, "is too large" },
	{ parse_ratio, "nan", -EINVAL, "is not a number" },
	{ parse_percent, "5", -EINVAL, "write 5% or 0.5%" },
	{ parse_percent, "%", -EINVAL, "is not a share" },
	{ parse_percent, "101%", -ERANGE, "0% to 100%" },
	{ parse_percent, "5%%", -EINVAL, "is not a share" },
	{ parse_percent, "-5%", -EINVAL, "is not a share" },
	{ parse_percent, "0.00001%", -EINVAL, "4 decimals" },
};

static void bad_values_are_refused_with_a_reason_D18_U13(void)
{
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct weir_error err = { "" };
		int rc = bad[i].parse(bad[i].text, &err);

		expect(rc == bad[i].code, bad[i].text, "another code");
		expect(strstr(err.text, bad[i].says), bad[i].text, err.text);
	}
}

static void a_failed_parse_writes_nothing(void)
{
	struct weir_rate rate = { 7, 8, true };
	struct weir_amount amount = { 7, true, false };
	uint64_t value = 7;
	struct weir_error err;

	CU_ASSERT_NOT_EQUAL(weir_rate_parse("7bps", &rate, &err), 0);
	CU_ASSERT_TRUE(rate.amount == 7 && rate.per_ns == 8 && rate.bytes);
	CU_ASSERT_NOT_EQUAL(weir_time_parse("7", &value, &err), 0);
	CU_ASSERT_NOT_EQUAL(weir_ratio_parse("7..", &value, &err), 0);
	CU_ASSERT_NOT_EQUAL(weir_percent_parse("700%", &value, &err), 0);
	CU_ASSERT_EQUAL(value, 7);
	CU_ASSERT_NOT_EQUAL(weir_amount_parse("0", &amount, &err), 0);
	CU_ASSERT_TRUE(amount.value == 7 && amount.bytes && !amount.given);
}

static void bits_are_an_eighth_of_bytes_D19(void)
{
	struct weir_rate bits, bytes;
	struct weir_error err;

	CU_ASSERT_EQUAL(weir_rate_parse("8mbit", &bits, &err), 0);
	CU_ASSERT_EQUAL(weir_rate_parse("1mbyte/s", &bytes, &err), 0);
	CU_ASSERT_EQUAL(weir_rate_compare(&bits, &bytes), 0);
	CU_ASSERT_EQUAL(bits.amount, bytes.amount);
	CU_ASSERT_EQUAL(weir_rate_per_sec(&bits), 1000000);
}

static void rates_compare_across_units(void)
{
	static const char *const rising[] = {
		"block",  "1/d",     "1/h",	 "59/min",   "1pps",	  "3601/h",
		"61/min", "120/min", "172801/d", "1000Gpps", "unlimited",
	};
	struct weir_rate a, b;
	struct weir_error err;
	size_t count = sizeof(rising) / sizeof(rising[0]);

	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < count; j++) {
			CU_ASSERT_EQUAL(weir_rate_parse(rising[i], &a, &err), 0);
			CU_ASSERT_EQUAL(weir_rate_parse(rising[j], &b, &err), 0);
			expect(weir_rate_compare(&a, &b) == (i > j) - (i < j), rising[i],
			       rising[j]);
		}
	}
}

static void times_counts_sizes_ratios(void)
{
	struct weir_error err;
	struct weir_amount amount;
	char text[WEIR_UNIT_TEXT];
	uint64_t v;

	CU_ASSERT_EQUAL(weir_time_parse("1500ms", &v, &err), 0);
	CU_ASSERT_EQUAL(v, 1500000000);
	CU_ASSERT_STRING_EQUAL(weir_time_print(v, text), "1500ms");
	CU_ASSERT_STRING_EQUAL(weir_time_print(86400 * SEC, text), "1d");
	CU_ASSERT_STRING_EQUAL(weir_time_print(90 * SEC, text), "90s");
	CU_ASSERT_STRING_EQUAL(weir_time_print_left(0, text), "1s");
	CU_ASSERT_STRING_EQUAL(weir_time_print_left(1, text), "1s");
	CU_ASSERT_STRING_EQUAL(weir_time_print_left(SEC, text), "1s");
	CU_ASSERT_STRING_EQUAL(weir_time_print_left(60 * SEC - 1, text), "1m");
	CU_ASSERT_STRING_EQUAL(weir_time_print_left(60 * SEC + 1, text), "61s");
	CU_ASSERT_EQUAL(weir_time_parse("5m", &v, &err), 0);
	CU_ASSERT_EQUAL(v, 300 * SEC);
	CU_ASSERT_EQUAL(weir_count_parse("3M", &v, &err), 0);
	CU_ASSERT_EQUAL(v, 3000000);
	CU_ASSERT_EQUAL(weir_size_parse("64kbyte", &v, &err), 0);
	CU_ASSERT_EQUAL(v, 64000);
	CU_ASSERT_EQUAL(weir_ratio_parse("1.5", &v, &err), 0);
	CU_ASSERT_EQUAL(v, 1500000);
	CU_ASSERT_EQUAL(weir_percent_parse("0.5%", &v, &err), 0);
	CU_ASSERT_EQUAL(v, 5000);
	CU_ASSERT_EQUAL(weir_percent_parse("100%", &v, &err), 0);
	CU_ASSERT_EQUAL(v, WEIR_MILLION);
	CU_ASSERT_EQUAL(weir_amount_parse("2k", &amount, &err), 0);
	CU_ASSERT_TRUE(amount.value == 2000 && !amount.bytes && amount.given);
	CU_ASSERT_EQUAL(weir_amount_parse("1mbyte", &amount, &err), 0);
	CU_ASSERT_TRUE(amount.value == 1000000 && amount.bytes && amount.given);
}

/* xorshift64: the same numbers on every run. */
static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* 1 - max, all magnitudes alike. */
static uint64_t random_value(uint64_t *state, uint64_t max)
{
	uint64_t value = random_next(state) >> (random_next(state) % 64);

	return value % max + 1;
}

static void any_rate_prints_and_parses_back(void)
{
	static const uint64_t per[] = { 1, 60, 3600, 86400 };
	uint64_t state = 0x9e3779b97f4a7c15ULL;

	for (int i = 0; i < 200000; i++) {
		uint64_t seconds = per[random_next(&state) % 4];
		struct weir_rate rate = { .bytes = random_next(&state) & 1,
					  .per_ns = seconds * SEC },
				 again = { 0 };
		struct weir_error err = { "" };
		char text[WEIR_UNIT_TEXT];

		rate.amount = random_value(&state, WEIR_RATE_MAX_PER_SEC * seconds);
		if (rate.bytes && rate.amount % 8 && random_next(&state) & 1)
			rate.per_ns *= 8;
		weir_rate_print(&rate, text);
		expect(!weir_rate_parse(text, &again, &err) && again.amount == rate.amount &&
			       again.per_ns == rate.per_ns && again.bytes == rate.bytes,
		       text, err.text);
	}
}

static void any_number_prints_and_parses_back(void)
{
	uint64_t state = 0xdeadbeefcafef00dULL;
	struct weir_error err = { "" };
	char text[WEIR_UNIT_TEXT];

	for (int i = 0; i < 200000; i++) {
		uint64_t v = random_value(&state, INT64_MAX), w = 0;

		expect(!weir_time_parse(weir_time_print(v, text), &w, &err) && v == w, text,
		       "time");
		expect(!weir_size_parse(weir_size_print(v, text), &w, &err) && v == w, text,
		       "size");
		expect(!weir_count_parse(weir_count_print(v, text), &w, &err) && v == w, text,
		       "count");
		v %= INT32_MAX * WEIR_MILLION;
		expect(!weir_ratio_parse(weir_ratio_print(v, text), &w, &err) && v == w, text,
		       "ratio");
		v %= WEIR_MILLION + 1;
		expect(!weir_percent_parse(weir_percent_print(v, text), &w, &err) && v == w, text,
		       "percent");
	}
}

WEIR_TESTS("units", TEST(rates_are_read_and_printed),
	   TEST(bad_values_are_refused_with_a_reason_D18_U13), TEST(a_failed_parse_writes_nothing),
	   TEST(bits_are_an_eighth_of_bytes_D19), TEST(rates_compare_across_units),
	   TEST(times_counts_sizes_ratios), TEST(any_rate_prints_and_parses_back),
	   TEST(any_number_prints_and_parses_back))
