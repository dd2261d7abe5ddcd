// SPDX-License-Identifier: GPL-2.0
/* What sources send: quantiles near the truth, shares, and keys that come and go. */
#include <math.h>
#include <stdlib.h>

#include "controller/sent.h"
#include "controller/top.h"
#include "fake_dataplane.h"
#include "harness.h"
#include "json_path.h"

#define SECOND 1000000000ULL

static struct weir_dataplane fake;
static struct weir_limit *limit;
static struct weir_limits_view view;
static struct weir_sent sent;
static uint64_t now_ns;

static void setup(void)
{
	fake_dataplane_make(&fake, 256, 64);
	limit = fake_limit_add(&fake, "per-ip", "bucket rate 1000pps burst 2000", 3);
	sent = (struct weir_sent){ 0 };
	now_ns = SECOND;
}

static void teardown(void)
{
	weir_sent_free(&sent);
	fake_dataplane_free(&fake);
}

static const struct weir_sent_limit *of_limit(void)
{
	return sent.limits[3];
}

static void window(uint64_t ns)
{
	weir_limits_view_read(&view, &fake);
	weir_sent_begin(&sent, &fake, &view, now_ns, now_ns + ns);
	now_ns += ns;
}

static bool is_near(double value, double truth)
{
	return value >= truth * 0.999 && value <= truth * 1.1;
}

/* Sources that send 1, 2, … 1000 packets a second, in windows of 2 s. */
static void quantiles_are_near_the_truth(void)
{
	setup();
	window(2 * SECOND);
	for (uint64_t i = 1; i <= 1000; i++)
		weir_sent_count(&sent, limit, 2 * i, 0, true);
	CU_ASSERT_EQUAL(of_limit()->sources, 1000);
	CU_ASSERT(is_near(weir_sent_quantile(of_limit(), .5), 500));
	CU_ASSERT(is_near(weir_sent_quantile(of_limit(), .9), 900));
	CU_ASSERT(is_near(weir_sent_quantile(of_limit(), .99), 990));
	CU_ASSERT(is_near(weir_sent_quantile(of_limit(), 1 / 1000.), 1));
	CU_ASSERT_EQUAL(weir_sent_quantile(of_limit(), 1), 1000);
	/* A tenth are above 900, to a slot; above r, (1000 - r)² / 2 of 500,500 packets. */
	CU_ASSERT(fabs(weir_sent_sources_above(of_limit(), 900) - 0.1) < 0.08);
	CU_ASSERT(fabs(weir_sent_sources_above(of_limit(), 300) - 0.7) < 0.03);
	CU_ASSERT(fabs(weir_sent_packets_above(of_limit(), 500) - 0.25) < 0.02);
	CU_ASSERT_EQUAL(weir_sent_sources_above(of_limit(), 1000), 0);
	CU_ASSERT(weir_sent_packets_above(of_limit(), 0) == 1);
	teardown();
}

/* What counts of a source is its busiest window; of packets, each window. */
static void a_source_counts_by_its_busiest_window(void)
{
	uint8_t peak;

	setup();
	window(SECOND);
	peak = weir_sent_count(&sent, limit, 10, 0, true);
	window(SECOND);
	peak = weir_sent_count(&sent, limit, 1000, peak, false);
	window(SECOND);
	CU_ASSERT_EQUAL(weir_sent_count(&sent, limit, 0, peak, false), peak);
	window(SECOND);
	CU_ASSERT_EQUAL(weir_sent_count(&sent, limit, 10, peak, false), peak);
	CU_ASSERT_EQUAL(of_limit()->sources, 1);
	CU_ASSERT_EQUAL(weir_sent_quantile(of_limit(), .5), 1000);
	CU_ASSERT_EQUAL(weir_sent_sources_above(of_limit(), 100), 1);
	/* 900 of 1,020. */
	CU_ASSERT(fabs(weir_sent_packets_above(of_limit(), 100) - 900 / 1020.) < 0.001);
	teardown();
}

static void rates_round_up_to_two_digits(void)
{
	CU_ASSERT_EQUAL(weir_sent_round(1), 1);
	CU_ASSERT_EQUAL(weir_sent_round(23), 23);
	CU_ASSERT_EQUAL(weir_sent_round(100), 100);
	CU_ASSERT_EQUAL(weir_sent_round(101), 110);
	CU_ASSERT_EQUAL(weir_sent_round(99.1), 100);
	CU_ASSERT_EQUAL(weir_sent_round(1234567), 1300000);
	CU_ASSERT_EQUAL(weir_sent_round(1000000), 1000000);
}

static uint64_t *refused_of(unsigned int place)
{
	return &fake.ledger[place / WEIR_WAYS].counts[place % WEIR_WAYS].refused;
}

/* By walks over a ledger: base 0 alone, as the ranking has every second one. */
static void walk(struct weir_scan *scan, uint64_t ns)
{
	weir_scan_compare(scan, ns ? 0 : -1, 0, ns ? &sent : NULL);
	weir_scan_begin(scan);
	if (ns) {
		weir_sent_begin(&sent, &fake, weir_scan_limits(scan), now_ns, now_ns + ns);
		now_ns += ns;
	}
	while (weir_scan_step(scan, UINT32_MAX, NULL, 0))
		;
}

/* Adds to every key of the ledger what its passed count is. */
static void all_send_again(void)
{
	for (unsigned int place = 0; place < fake.shape.sets * WEIR_WAYS; place++) {
		const struct weir_set *set = &fake.ledger[place / WEIR_WAYS];

		*refused_of(place) +=
			set->tag[place % WEIR_WAYS] ? set->counts[place % WEIR_WAYS].passed : 0;
	}
}

static void walks_see_what_comes_after_the_first(void)
{
	struct weir_scan *scan = NULL;
	json_t *report;

	setup();
	for (unsigned int i = 1; i <= 200; i++) {
		char address[16];

		snprintf(address, sizeof(address), "10.0.0.%u", i);
		fake_key_add(&fake, limit, address, i, 0, 0);
	}
	CU_ASSERT_EQUAL_FATAL(weir_scan_new(&scan, &fake, 1), 0);
	walk(scan, 0);
	/* Keys of before that are quiet are no sources. */
	walk(scan, SECOND);
	CU_ASSERT_EQUAL(of_limit()->sources, 0);
	all_send_again();
	walk(scan, SECOND);
	CU_ASSERT_EQUAL(of_limit()->sources, 200);
	CU_ASSERT_EQUAL(of_limit()->appeared, 0);
	CU_ASSERT(is_near(weir_sent_quantile(of_limit(), .5), 100));
	/* One that comes later counts from zero; the same again makes no more of the others. */
	fake_key_add(&fake, limit, "10.0.1.1", 5000, 0, 0);
	walk(scan, SECOND);
	CU_ASSERT_EQUAL(of_limit()->sources, 201);
	CU_ASSERT_EQUAL(of_limit()->appeared, 1);
	CU_ASSERT_EQUAL(of_limit()->max, 5000);
	report = weir_sent_report(&sent, &fake, 3);
	CU_ASSERT_STRING_EQUAL(json_string_value(at(report, "limits.0.name")), "per-ip");
	CU_ASSERT_EQUAL(json_integer_value(at(report, "limits.0.sources")), 201);
	CU_ASSERT_STRING_EQUAL(json_string_value(at(report, "limits.0.proposal.command")),
			       "weir set per-ip rate=440pps burst=880"); /* 99%: below 215.3 */
	json_decref(report);
	/* Another salt, other keys: begins anew. */
	limit->salt++;
	walk(scan, SECOND);
	CU_ASSERT_EQUAL(of_limit()->sources, 0);
	weir_scan_free(scan);
	teardown();
}

static void what_cannot_be_proposed_says_why(void)
{
	json_t *report;

	setup();
	report = weir_sent_report(&sent, &fake, WEIR_NO_LIMIT);
	CU_ASSERT_STRING_EQUAL(json_string_value(at(report, "limits.0.reason")),
			       "no traffic was seen yet");
	json_decref(report);
	limit->flags |= WEIR_LIMIT_BYTES;
	report = weir_sent_report(&sent, &fake, WEIR_NO_LIMIT);
	CU_ASSERT_PTR_NOT_NULL(strstr(json_string_value(at(report, "limits.0.reason")), "bytes"));
	json_decref(report);
	limit->kind = WEIR_KIND_GATE;
	report = weir_sent_report(&sent, &fake, WEIR_NO_LIMIT);
	CU_ASSERT_PTR_NOT_NULL(strstr(json_string_value(at(report, "limits.0.reason")), "buckets"));
	CU_ASSERT(json_is_null(at(report, "limits.0.proposal")));
	json_decref(report);
	teardown();
}

WEIR_TESTS("sent", TEST(quantiles_are_near_the_truth), TEST(a_source_counts_by_its_busiest_window),
	   TEST(rates_round_up_to_two_digits), TEST(walks_see_what_comes_after_the_first),
	   TEST(what_cannot_be_proposed_says_why))
