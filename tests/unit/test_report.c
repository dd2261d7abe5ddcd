// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <net/if.h>

#include "controller/report.h"
#include "fake_dataplane.h"
#include "harness.h"

#include "weir/pending.h"
#include "json_path.h"
#include "weir/place.h"

#define NOW_NS 1000000000000ULL
#define NOW_TICKS (NOW_NS << WEIR_TICK_SHIFT)

static struct weir_dataplane fake;
static struct weir_limit *per_ip;
static struct weir_view view;

/* 1000 packets a second, a burst of 2000, on slot 3. */
static void setup(void)
{
	fake_dataplane_make(&fake, 64, 64);
	per_ip = fake_limit_add(&fake, "per-ip", "bucket rate 1000pps burst 2000", 3);
	weir_bucket_conf_init(&per_ip->bucket, 1000, 2000, 1);
	view = (struct weir_view){ .dataplane = &fake, .live = true, .now_ns = NOW_NS };
}

/* ---- limits ---- */

static void limit_has_totals_of_all_cpus_and_settings_in_base_units(void)
{
	json_t *limits;

	setup();
	fake.cpus[0].totals[3] = (struct weir_totals){ .passed_packets = 5, .refused_packets = 7 };
	fake.cpus[1].totals[3] =
		(struct weir_totals){ .passed_packets = 10, .untracked_packets = 2 };
	limits = weir_report_limits(&view);
	CU_ASSERT_EQUAL(json_array_size(limits), 1);
	CU_ASSERT_STRING_EQUAL(text(limits, "0.name"), "per-ip");
	CU_ASSERT_STRING_EQUAL(text(limits, "0.kind"), "bucket");
	CU_ASSERT_STRING_EQUAL(text(limits, "0.key"), "source/32/64");
	CU_ASSERT_STRING_EQUAL(text(limits, "0.mode"), "enforce");
	CU_ASSERT_STRING_EQUAL(text(limits, "0.setting"), "bucket rate 1000pps burst 2000");
	CU_ASSERT_EQUAL(number(limits, "0.settings.rate"), 1000);
	CU_ASSERT_EQUAL(number(limits, "0.settings.burst"), 2000);
	CU_ASSERT_EQUAL(number(limits, "0.admitted"), 15);
	CU_ASSERT_EQUAL(number(limits, "0.refused"), 7);
	CU_ASSERT_EQUAL(number(limits, "0.untracked"), 2);
	CU_ASSERT(json_is_null(at(limits, "0.admitted_per_sec")));
	json_decref(limits);
	fake_dataplane_free(&fake);
}

static void a_gate_says_who_is_inside(void)
{
	uint64_t now_ticks = NOW_NS << WEIR_TICK_SHIFT;
	uint64_t asked = weir_pending_add(0, weir_pending_slice(now_ticks));
	struct weir_limit *gate;
	json_t *limits;

	setup();
	gate = fake_limit_add(&fake, "conns", "gate limit 50", 4);
	gate->kind = WEIR_KIND_GATE;
	fake_key_add(&fake, gate, "192.0.2.1", 0, 0, WEIR_GATE_INSIDE | 7);
	fake_key_add(&fake, gate, "192.0.2.2", asked, 0, WEIR_GATE_INSIDE | 5);
	fake_key_add(&fake, gate, "192.0.2.3", asked, 0, now_ticks + 1);
	/* Whose state is no gate's. */
	fake_key_add(&fake, per_ip, "192.0.2.4", 1, 0, WEIR_GATE_INSIDE | 1000);
	limits = weir_report_limits(&view);
	CU_ASSERT_PTR_NULL(json_object_get(json_array_get(limits, 0), "inside"));
	CU_ASSERT_EQUAL(number(limits, "1.inside"), 12);
	CU_ASSERT_EQUAL(number(limits, "1.pending"), 2);
	json_decref(limits);
	fake_dataplane_free(&fake);
}

static void setting_values(void)
{
	static const struct {
		const char *setting, *path, *json;
	} cases[] = {
		{ "bucket rate 200mbit burst 1mbyte", "0.settings.rate", "25000000" },
		{ "bucket rate 200mbit burst 1mbyte", "0.settings.burst", "1000000" },
		{ "bucket rate 90/h burst 1", "0.settings.rate", "0.025" },
		{ "bucket rate block burst 1", "0.settings.rate", "\"block\"" },
		{ "bucket rate unlimited burst 1", "0.settings.rate", "\"unlimited\"" },
		{ "sliding quota 100 window 1s", "0.settings.window", "1000000000" },
		{ "period quota 10000 period 1d align true", "0.settings.period",
		  "86400000000000" },
		{ "period quota 10000 period 1d align true", "0.settings.align", "\"true\"" },
		{ "gate limit 50 refuse drop", "0.settings.limit", "50" },
		{ "bucket rate", "0.settings", "{}" },
		{ "", "0.settings", "{}" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *limits;
		char *found;

		setup();
		memset(&fake.labels[3].setting, 0, sizeof(fake.labels[3].setting));
		strcpy(fake.labels[3].setting, cases[i].setting);
		limits = weir_report_limits(&view);
		found = json_dumps(at(limits, cases[i].path),
				   JSON_ENCODE_ANY | JSON_REAL_PRECISION(12));
		CU_ASSERT_STRING_EQUAL(found ? found : "", cases[i].json);
		free(found);
		json_decref(limits);
		fake_dataplane_free(&fake);
	}
}

/* The controller may be in the middle of writing one: no NUL, no such value. */
static void torn_label_is_read_within_its_field(void)
{
	json_t *limits;

	setup();
	memset(&fake.labels[3], 'x', sizeof(fake.labels[3]));
	limits = weir_report_limits(&view);
	CU_ASSERT_EQUAL(strlen(text(limits, "0.name")), sizeof(fake.labels[3].name) - 1);
	CU_ASSERT_EQUAL(strlen(text(limits, "0.setting")), sizeof(fake.labels[3].setting) - 1);
	json_decref(limits);
	fake_dataplane_free(&fake);
}

static void rates_are_differences_over_time(void)
{
	static struct weir_rates rates;
	json_t *limits;

	setup();
	rates = (struct weir_rates){ 0 };
	fake.cpus[0].totals[3].passed_packets = 1000;
	weir_rates_update(&rates, &fake, NOW_NS);
	CU_ASSERT_EQUAL(rates.span_ns, 0);
	fake.cpus[0].totals[3].passed_packets = 1500;
	weir_rates_update(&rates, &fake, NOW_NS + 500000000);
	view.rates = &rates;
	limits = weir_report_limits(&view);
	CU_ASSERT_DOUBLE_EQUAL(json_number_value(at(limits, "0.admitted_per_sec")), 1000, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(json_number_value(at(limits, "0.refused_per_sec")), 0, 1e-9);
	json_decref(limits);
	/* The slot went to another limit, which began at 0: no rate below nothing. */
	fake.cpus[0].totals[3].passed_packets = 0;
	weir_rates_update(&rates, &fake, NOW_NS + 1000000000);
	CU_ASSERT_EQUAL(rates.difference[3].passed_packets, 0);
	fake_dataplane_free(&fake);
}

static void show_gives_parts_and_names_what_is_missing(void)
{
	struct weir_error err = { 0 };
	json_t *report;
	int rc;

	setup();
	report = weir_report_show(&view, NULL, &rc, &err);
	CU_ASSERT_EQUAL(number(report, "schema"), 1);
	CU_ASSERT(json_is_array(at(report, "limits")) && json_is_array(at(report, "interfaces")));
	CU_ASSERT_EQUAL(number(report, "ledger.places"), 512);
	json_decref(report);
	report = weir_report_show(&view, "ledger", &rc, &err);
	CU_ASSERT(rc == 0 && !at(report, "limits") && at(report, "ledger"));
	json_decref(report);
	report = weir_report_show(&view, "per-ip", &rc, &err);
	CU_ASSERT_STRING_EQUAL(text(report, "limits.0.name"), "per-ip");
	json_decref(report);
	report = weir_report_show(&view, "all", &rc, &err);
	CU_ASSERT(json_is_array(at(report, "limits")) && json_is_object(at(report, "ledger")));
	json_decref(report);
	/* Which is a good name for a limit with key: none. */
	snprintf(fake.labels[3].name, sizeof(fake.labels[3].name), "all");
	report = weir_report_show(&view, "all", &rc, &err);
	CU_ASSERT_STRING_EQUAL(text(report, "limits.0.name"), "all");
	CU_ASSERT(!at(report, "ledger"));
	json_decref(report);
	snprintf(fake.labels[3].name, sizeof(fake.labels[3].name), "per-ip");
	report = weir_report_show(&view, "nobody", &rc, &err);
	CU_ASSERT(!report && rc == -ENOENT && strstr(err.text, "'nobody'"));
	CU_ASSERT_EQUAL(weir_report_find_slot(&fake, "per-ip"), 3);
	CU_ASSERT_EQUAL(weir_report_find_slot(&fake, "per-i"), -ENOENT);
	fake_dataplane_free(&fake);
}

/* ---- ledger ---- */

static void ledger_tells_held_from_known(void)
{
	json_t *ledger;

	setup();
	for (int i = 0; i < 128; i++) {
		char address[32];

		snprintf(address, sizeof(address), "10.0.0.%d", i);
		fake_key_add(&fake, per_ip, address, 1, 0, i < 64 ? NOW_TICKS + 1 : NOW_TICKS);
	}
	fake.cpus[1].sampler.lost = 9;
	ledger = weir_report_ledger(&view);
	CU_ASSERT_DOUBLE_EQUAL(json_number_value(at(ledger, "known_percent")), 25, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(json_number_value(at(ledger, "held_percent")), 12.5, 1e-9);
	CU_ASSERT_EQUAL(number(ledger, "events_lost"), 9);
	CU_ASSERT_EQUAL(number(ledger, "memory_bytes"), (long long)weir_shape_bytes(&fake.shape));
	CU_ASSERT(json_is_false(at(ledger, "estimated")));
	json_decref(ledger);
	fake_dataplane_free(&fake);
}

/* ---- one address ---- */

static json_t *why(const char *address)
{
	uint8_t bytes[16], family;
	struct weir_error err;

	CU_ASSERT_EQUAL(weir_report_parse_address(address, &family, bytes, &err), 0);
	return weir_report_why(&view, family, bytes);
}

static void why_counts_tokens_and_time_left(void)
{
	uint32_t place;
	json_t *report;

	setup();
	/* 1999.5 tokens taken of 2000: half a token left, the next in half a millisecond. */
	place = fake_key_add(&fake, per_ip, "192.0.2.7", 10, 20,
			     NOW_TICKS + (1999500000ULL << WEIR_TICK_SHIFT));
	fake_front_hold(&fake, 0, place, 300);
	report = why("192.0.2.7");
	CU_ASSERT_STRING_EQUAL(text(report, "address"), "192.0.2.7");
	CU_ASSERT_STRING_EQUAL(text(report, "limits.0.limit"), "per-ip");
	CU_ASSERT(json_is_true(at(report, "limits.0.in_ledger")));
	CU_ASSERT(json_is_true(at(report, "limits.0.refused_now")));
	CU_ASSERT_DOUBLE_EQUAL(json_number_value(at(report, "limits.0.left")), 0.5, 0.001);
	CU_ASSERT(number(report, "limits.0.refused_for_ns") > 490000 &&
		  number(report, "limits.0.refused_for_ns") <= 500000);
	CU_ASSERT_EQUAL(number(report, "limits.0.refused"), 320);
	CU_ASSERT_EQUAL(number(report, "limits.0.admitted"), 10);
	json_decref(report);
	fake_dataplane_free(&fake);
}

/* The limit was changed since the key's last packet: the next one finds the tokens as they were. */
static void why_counts_tokens_after_a_change(void)
{
	json_t *report;

	setup();
	fake_key_add(&fake, per_ip, "192.0.2.7", weir_passed_word(0, 10), 20,
		     NOW_TICKS + (1500000000ULL << WEIR_TICK_SHIFT));
	weir_dataplane_remember(&fake, per_ip, NOW_NS);
	per_ip->revision = 1;
	CU_ASSERT_EQUAL(weir_bucket_conf_init(&per_ip->bucket, 10, 2000, 1), 0);
	report = why("192.0.2.7");
	CU_ASSERT_DOUBLE_EQUAL(json_number_value(at(report, "limits.0.left")), 500, 0.001);
	CU_ASSERT_EQUAL(number(report, "limits.0.admitted"), 10);
	json_decref(report);
	/* So often that nothing is known of the setting then: as good as empty. */
	per_ip->revision = WEIR_PAST_REVISIONS;
	weir_dataplane_remember(&fake, per_ip, NOW_NS);
	per_ip->revision++;
	report = why("192.0.2.7");
	CU_ASSERT_DOUBLE_EQUAL(json_number_value(at(report, "limits.0.left")), 0, 0.001);
	CU_ASSERT(json_is_true(at(report, "limits.0.refused_now")));
	json_decref(report);
	fake_dataplane_free(&fake);
}

static void why_of_a_stranger_is_a_full_bucket(void)
{
	json_t *report;

	setup();
	report = why("2001:db8::9");
	CU_ASSERT(json_is_false(at(report, "limits.0.in_ledger")));
	CU_ASSERT(json_is_true(at(report, "limits.0.room")));
	CU_ASSERT(json_is_false(at(report, "limits.0.refused_now")));
	CU_ASSERT_STRING_EQUAL(text(report, "limits.0.of"), "2001:db8::/64");
	CU_ASSERT_DOUBLE_EQUAL(json_number_value(at(report, "limits.0.left")), 2000, 0.001);
	json_decref(report);
	/* Both of its sets full of who can't be forgotten: it would be untracked. */
	for (uint32_t set = 0; set < fake.shape.sets; set++) {
		for (int way = 0; way < WEIR_WAYS; way++) {
			fake.ledger[set].tag[way] = 3;
			fake.ledger[set].state[way] = NOW_TICKS + 5;
		}
	}
	report = why("2001:db8::9");
	CU_ASSERT(json_is_false(at(report, "limits.0.room")));
	json_decref(report);
	fake_dataplane_free(&fake);
}

static void why_knows_what_an_address_alone_cannot_tell(void)
{
	json_t *report;

	setup();
	per_ip->key = WEIR_KEY_SOURCE | WEIR_KEY_SOURCE_PORT;
	report = why("192.0.2.7");
	CU_ASSERT(json_is_null(at(report, "limits.0.in_ledger")));
	json_decref(report);
	fake_dataplane_free(&fake);
}

static void why_of_a_period_and_a_gate(void)
{
	uint64_t end = NOW_TICKS + (5000000ULL << WEIR_TICK_SHIFT);
	uint32_t place;
	json_t *report;

	setup();
	per_ip->kind = WEIR_KIND_PERIOD;
	per_ip->period = (struct weir_period_conf){ .period = 1ULL << 40, .quota = 10 };
	place = fake_key_add(&fake, per_ip, "192.0.2.7", weir_period_word(end, 10), 3, end);
	report = why("192.0.2.7");
	CU_ASSERT(json_is_true(at(report, "limits.0.refused_now")));
	CU_ASSERT_EQUAL(number(report, "limits.0.refused_for_ns"), 5000000);
	CU_ASSERT_EQUAL(number(report, "limits.0.admitted"), 10);
	json_decref(report);
	fake.ledger[place / WEIR_WAYS].counts[place % WEIR_WAYS].passed = weir_period_word(end, 4);
	report = why("192.0.2.7");
	CU_ASSERT(json_is_false(at(report, "limits.0.refused_now")));
	CU_ASSERT_DOUBLE_EQUAL(json_number_value(at(report, "limits.0.left")), 6, 1e-9);
	json_decref(report);
	per_ip->kind = WEIR_KIND_GATE;
	per_ip->gate = (struct weir_gate_conf){ .limit = 2 };
	fake.ledger[place / WEIR_WAYS].state[place % WEIR_WAYS] = WEIR_GATE_INSIDE | 2;
	report = why("192.0.2.7");
	CU_ASSERT(json_is_true(at(report, "limits.0.refused_now")));
	CU_ASSERT(json_is_null(at(report, "limits.0.refused_for_ns")));
	json_decref(report);
	fake_dataplane_free(&fake);
}

static void why_of_block_and_unlimited(void)
{
	json_t *report;

	setup();
	per_ip->flags = WEIR_LIMIT_BLOCK;
	report = why("192.0.2.7");
	CU_ASSERT(json_is_true(at(report, "limits.0.refused_now")));
	CU_ASSERT(json_is_null(at(report, "limits.0.refused_for_ns")));
	json_decref(report);
	per_ip->flags = WEIR_LIMIT_UNLIMITED;
	report = why("192.0.2.7");
	CU_ASSERT(json_is_false(at(report, "limits.0.refused_now")));
	CU_ASSERT_EQUAL(number(report, "limits.0.refused_for_ns"), 0);
	json_decref(report);
	fake_dataplane_free(&fake);
}

static void addresses_that_are_none(void)
{
	static const char *const bad[] = { "",	  "192.0.2",  "192.0.2.7/24", "192.0.2.7 ",
					   "::g", "01.2.3.4", "localhost" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint8_t bytes[16], family;
		struct weir_error err = { 0 };
		char quoted[64];

		snprintf(quoted, sizeof(quoted), "'%s'", bad[i]);
		CU_ASSERT_EQUAL(weir_report_parse_address(bad[i], &family, bytes, &err), -EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, quoted));
	}
}

/* ---- traffic ---- */

static void interfaces_have_their_traffic(void)
{
	struct weir_interface_status status = { .name = "eth0",
						.ifindex = 2,
						.slot = 5,
						.attached = WEIR_ATTACHED_GENERIC,
						.reason = "no native XDP" };
	json_t *interfaces;

	setup();
	fake.cpus[0].traffic[5][WEIR_HOOK_XDP].frames[WEIR_PATH_REFUSED] = 4;
	fake.cpus[1].traffic[5][WEIR_HOOK_XDP].frames[WEIR_PATH_REFUSED] = 5;
	view.interfaces = &status;
	view.interface_count = 1;
	interfaces = weir_report_interfaces(&view);
	CU_ASSERT_EQUAL(number(interfaces, "0.traffic.xdp.refused.packets"), 9);
	CU_ASSERT_EQUAL(number(interfaces, "0.traffic.tc-ingress.refused.packets"), 0);
	CU_ASSERT_STRING_EQUAL(text(interfaces, "0.attached"), "generic");
	json_decref(interfaces);
	view.live = false;
	interfaces = weir_report_interfaces(&view);
	CU_ASSERT(json_is_null(at(interfaces, "0.attached")));
	json_decref(interfaces);
	fake_dataplane_free(&fake);
}

static void pinned_interfaces_are_found(void)
{
	struct weir_interface_status found[4];
	unsigned int lo = if_nametoindex("lo");

	setup();
	fake.board->interfaces[lo % WEIR_INTERFACE_LINES].ifindex[0] = lo;
	fake.board->interfaces[lo % WEIR_INTERFACE_LINES].slot[0] = 6;
	fake.board->interfaces[900].ifindex[1] = 1000900;
	CU_ASSERT_EQUAL_FATAL(weir_report_pinned_interfaces(&fake, found, 4), 2);
	CU_ASSERT_STRING_EQUAL(found[0].name, "lo");
	CU_ASSERT_EQUAL(found[0].slot, 6);
	CU_ASSERT_STRING_EQUAL(found[1].name, "if1000900");
	CU_ASSERT_EQUAL(weir_report_pinned_interfaces(&fake, found, 1), 1);
	fake_dataplane_free(&fake);
}

static void event_says_all_it_knows(void)
{
	struct weir_event event = { .now_ns = 100,
				    .suppressed = 41,
				    .source_port = 1024,
				    .destination_port = 53,
				    .bytes = 90,
				    .slot = 3,
				    .family = 4,
				    .protocol = 17,
				    .ifindex = if_nametoindex("lo") };
	json_t *made;

	setup();
	inet_pton(AF_INET, "192.0.2.7", event.source);
	inet_pton(AF_INET, "198.51.100.1", event.destination);
	made = weir_report_event(&fake, &event, 1000);
	CU_ASSERT_EQUAL(number(made, "time_ns"), 1100);
	CU_ASSERT_EQUAL(number(made, "left_out"), 41);
	CU_ASSERT_STRING_EQUAL(text(made, "source"), "192.0.2.7");
	CU_ASSERT_STRING_EQUAL(text(made, "destination"), "198.51.100.1");
	CU_ASSERT_STRING_EQUAL(text(made, "protocol"), "udp");
	CU_ASSERT_STRING_EQUAL(text(made, "limit"), "per-ip");
	CU_ASSERT_STRING_EQUAL(text(made, "interface"), "lo");
	CU_ASSERT_STRING_EQUAL(text(made, "hook"), "xdp");
	json_decref(made);
	event.slot = WEIR_NO_LIMIT;
	made = weir_report_event(&fake, &event, 0);
	CU_ASSERT(json_is_null(at(made, "limit")));
	CU_ASSERT(json_is_null(at(made, "service")));
	json_decref(made);
	strcpy((char *)fake.services[200].name, "web");
	event.slot = WEIR_BY_SERVICE | 200;
	made = weir_report_event(&fake, &event, 0);
	CU_ASSERT(json_is_null(at(made, "limit")));
	CU_ASSERT_STRING_EQUAL(text(made, "service"), "web");
	CU_ASSERT_STRING_EQUAL(text(made, "loop"), "breaker");
	json_decref(made);
	event.slot |= WEIR_BY_SHEDDER;
	made = weir_report_event(&fake, &event, 0);
	CU_ASSERT_STRING_EQUAL(text(made, "service"), "web");
	CU_ASSERT_STRING_EQUAL(text(made, "loop"), "shedder");
	json_decref(made);
	fake_dataplane_free(&fake);
}

WEIR_TESTS("report", TEST(limit_has_totals_of_all_cpus_and_settings_in_base_units),
	   TEST(a_gate_says_who_is_inside),
	   TEST(setting_values), TEST(torn_label_is_read_within_its_field),
	   TEST(rates_are_differences_over_time), TEST(show_gives_parts_and_names_what_is_missing),
	   TEST(ledger_tells_held_from_known), TEST(why_counts_tokens_and_time_left),
	   TEST(why_counts_tokens_after_a_change),
	   TEST(why_of_a_stranger_is_a_full_bucket),
	   TEST(why_knows_what_an_address_alone_cannot_tell), TEST(why_of_a_period_and_a_gate),
	   TEST(why_of_block_and_unlimited), TEST(addresses_that_are_none),
	   TEST(interfaces_have_their_traffic), TEST(pinned_interfaces_are_found),
	   TEST(event_says_all_it_knows))
