// SPDX-License-Identifier: GPL-2.0
/* What the words of a place mean: include/weir/place.h. */
#include "harness.h"
#include "random.h"

#include "weir/place.h"

static uint64_t exact(uint64_t ticks, uint32_t mantissa, int exponent, uint32_t to_mantissa,
		      int to_exponent, uint64_t most)
{
	long double ratio = (long double)to_mantissa / mantissa;
	int shift = to_exponent - exponent;

	for (; shift > 0; shift--)
		ratio *= 2;
	for (; shift < 0; shift++)
		ratio /= 2;
	ratio *= (long double)ticks;
	return ratio > (long double)most ? most : (uint64_t)ratio;
}

static void a_conversion_is_exact_to_its_rounding(void)
{
	uint64_t seed = 7;

	for (int i = 0; i < 200000; i++) {
		uint32_t mantissa = (uint32_t)random_below(&seed, 1U << 31) | 1U << 31;
		uint32_t to_mantissa = (uint32_t)random_below(&seed, 1U << 31) | 1U << 31;
		int exponent = (int)random_below(&seed, 50) - 31;
		int to_exponent = (int)random_below(&seed, 50) - 31;
		uint64_t ticks = random_below(&seed, 1ULL << random_below(&seed, 60));
		uint64_t most = random_below(&seed, WEIR_BUCKET_SPAN_MAX);
		uint64_t expected = exact(ticks, mantissa, exponent, to_mantissa, to_exponent, most);
		uint64_t got = weir_ticks_convert(ticks, mantissa, exponent, to_mantissa,
						  to_exponent, most);
		int shift = to_exponent - exponent;
		/* Two digits are rounded down before the shift. */
		uint64_t slack = shift > 0 ? 3ULL << shift : 3;

		CU_ASSERT_TRUE_FATAL(got <= expected + 1);
		CU_ASSERT_TRUE_FATAL(got + slack >= expected);
	}
}

static void a_conversion_has_ends(void)
{
	CU_ASSERT_EQUAL(weir_ticks_convert(0, 1, 0, 1, 0, 9), 0);
	CU_ASSERT_EQUAL(weir_ticks_convert(5, 0, 0, 1, 0, 9), 0);
	CU_ASSERT_EQUAL(weir_ticks_convert(5, 1U << 31, 0, 1U << 31, 0, 9), 5);
	CU_ASSERT_EQUAL(weir_ticks_convert(50, 1U << 31, 0, 1U << 31, 0, 9), 9);
	CU_ASSERT_EQUAL(weir_ticks_convert(1, 1, -40, UINT32_MAX, 40, 77), 77);
	CU_ASSERT_EQUAL(weir_ticks_convert(UINT64_MAX, 1, 0, 1, 0, 77), 0);
}

static void a_bucket_word_holds_count_and_revision(void)
{
	uint64_t word = weir_passed_word(0x12345, 99);

	CU_ASSERT_EQUAL(weir_passed_count(word), 99);
	CU_ASSERT_EQUAL(weir_passed_revision(word), 0x2345);
}

static void a_period_word_counts_for_its_own_end_only(void)
{
	uint64_t word = weir_period_word(1000, 7);

	CU_ASSERT_EQUAL(weir_period_unpack(1000, word).count, 7);
	CU_ASSERT_EQUAL(weir_period_unpack(1001, word).count, 0);
}

static void a_ring_holds_its_quota(void)
{
	CU_ASSERT_EQUAL(weir_ring_capacity(1), 16);
	CU_ASSERT_EQUAL(weir_ring_capacity(16), 16);
	CU_ASSERT_EQUAL(weir_ring_capacity(17), 32);
	CU_ASSERT_EQUAL(weir_ring_capacity(4096), 4096);
	CU_ASSERT_EQUAL(weir_ring_index(33, 16), 1);
}

WEIR_TESTS("place", TEST(a_conversion_is_exact_to_its_rounding), TEST(a_conversion_has_ends),
	   TEST(a_bucket_word_holds_count_and_revision),
	   TEST(a_period_word_counts_for_its_own_end_only), TEST(a_ring_holds_its_quota))
