// SPDX-License-Identifier: GPL-2.0
/* A capture through weir's own programs, on its own clock: what it would have refused. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "controller/replay.h"
#include "controller/report.h"
#include "harness.h"
#include "rig.h"

#define START_NS 1700000000000000000ULL
#define MS 1000000ULL

static struct weir_policy *policy;
static struct weir_replay replay;
static struct weir_error err;
static unsigned int taken;

static void count_taken(void *context, const char *kind, const char *name)
{
	(void)context;
	(void)kind;
	(void)name;
	taken++;
}

/* `limits`: the lines below `limits:`. */
static void begin(const char *limits)
{
	char text[2048];
	int code;

	snprintf(text, sizeof(text),
		 "version: 1\nledger: {keys: 4096}\ninterfaces:\n  - {name: eth0}\n"
		 "  - {name: eth1}\nlimits:\n%s",
		 limits);
	taken = 0;
	code = weir_policy_load_text(text, strlen(text), "test", &policy, &err);
	if (!code)
		weir_replay_reduce(policy, count_taken, NULL);
	if (!code)
		code = weir_replay_open(&replay, policy, 1, START_NS, &err);
	if (code)
		printf("  %s\n", err.text);
	CU_ASSERT_EQUAL_FATAL(code, 0);
}

static json_t *end(size_t keys)
{
	json_t *report;

	CU_ASSERT_EQUAL(weir_replay_finish(&replay, &err), 0);
	report = weir_replay_report(&replay, keys);
	CU_ASSERT_PTR_NOT_NULL_FATAL(report);
	weir_replay_close(&replay);
	weir_policy_free(policy);
	return report;
}

static int send_frame(const struct frame *frame, uint64_t at_ns, uint32_t captured, uint32_t length,
		      enum weir_direction direction)
{
	struct weir_capture_packet packet = { .time_ns = START_NS + at_ns,
					      .timed = true,
					      .frame = frame->bytes,
					      .captured = captured,
					      .length = length,
					      .direction = direction };
	uint64_t refused = replay.counts.refused;

	CU_ASSERT_EQUAL(weir_replay_packet(&replay, &packet, &err), 0);
	return replay.counts.refused != refused;
}

static int send_from(const char *source, uint64_t at_ns)
{
	struct frame frame;

	rig_frame(&frame, source, IPPROTO_UDP, 0);
	return send_frame(&frame, at_ns, frame.size, frame.size, WEIR_DIRECTION_UNKNOWN);
}

static json_int_t number(json_t *report, const char *part, size_t i, const char *field)
{
	json_t *object = part ? json_array_get(json_object_get(report, part), i) : report;

	return json_integer_value(json_object_get(object, field));
}

static const char *word(json_t *report, const char *part, size_t i, const char *field)
{
	return json_string_value(
		json_object_get(json_array_get(json_object_get(report, part), i), field));
}

/* 1,000 a second where 100 are allowed, for 2 s: 100 of burst and 200 of the time pass. */
static void refuses_what_a_bucket_would(void)
{
	uint64_t passed = 0;
	json_t *report;

	begin("  - {name: per-ip, key: source, bucket: {rate: 100pps, burst: 100}}\n");
	for (uint64_t ms = 0; ms < 2000; ms++) {
		passed += !send_from("192.0.2.7", ms * MS);
		if (ms % 100 == 0)
			CU_ASSERT_EQUAL(send_from("2001:db8:1:2::9", ms * MS), 0);
	}
	report = end(10);
	CU_ASSERT_EQUAL(passed, 299);
	CU_ASSERT_EQUAL(number(report, NULL, 0, "packets"), 2020);
	CU_ASSERT_EQUAL(number(report, NULL, 0, "refused"), 1701);
	CU_ASSERT_EQUAL(number(report, "limits", 0, "refused"), 1701);
	CU_ASSERT_EQUAL(number(report, "limits", 0, "refused_keys"), 1);
	CU_ASSERT_EQUAL(number(report, "limits", 0, "first_refused_ns"), START_NS + 111 * MS);
	CU_ASSERT_EQUAL(number(report, "limits", 0, "last_refused_ns"), START_NS + 1999 * MS);
	CU_ASSERT_STRING_EQUAL(word(report, "keys", 0, "key"), "192.0.2.7");
	CU_ASSERT_EQUAL(number(report, "keys", 0, "refused"), 1701);
	CU_ASSERT_EQUAL(number(report, "keys", 0, "refused_bytes"), 1701 * 60);
	json_decref(report);
}

static void monitor_says_what_it_would_have(void)
{
	json_t *report;

	begin("  - {name: all, key: none, bucket: {rate: 1pps, burst: 5}, mode: monitor}\n"
	      "  - {name: conns, match: {proto: tcp, to_port: 80}, key: source, "
	      "gate: {limit: 1}}\n");
	CU_ASSERT_EQUAL(taken, 1);
	for (int i = 0; i < 20; i++)
		CU_ASSERT_EQUAL(send_from("192.0.2.7", MS), 0);
	report = end(10);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(report, "limits")), 1);
	CU_ASSERT_EQUAL(number(report, "limits", 0, "would_refuse"), 15);
	CU_ASSERT_EQUAL(number(report, "limits", 0, "refused"), 0);
	CU_ASSERT_STRING_EQUAL(word(report, "keys", 0, "key"), "all");
	CU_ASSERT_EQUAL(number(report, "keys", 0, "refused"), 15);
	json_decref(report);
}

/* A clock that goes back, or none: held. A jump of a second forward refills as it should. */
static void the_clock_never_goes_back(void)
{
	struct weir_capture_packet packet = { .timed = true };
	struct frame frame;
	json_t *report;

	begin("  - {name: per-ip, key: source, bucket: {rate: 10pps, burst: 10}}\n");
	for (int i = 0; i < 10; i++)
		CU_ASSERT_EQUAL(send_from("192.0.2.7", 5000 * MS), 0);
	CU_ASSERT_EQUAL(send_from("192.0.2.7", 4000 * MS), 1);
	CU_ASSERT_EQUAL(send_from("192.0.2.7", 5000 * MS), 1);
	CU_ASSERT_EQUAL(send_from("192.0.2.7", 5100 * MS), 0);
	CU_ASSERT_EQUAL(send_from("192.0.2.7", 5100 * MS), 1);
	rig_frame(&frame, "192.0.2.7", IPPROTO_UDP, 0);
	packet = (struct weir_capture_packet){ .frame = frame.bytes,
					       .captured = frame.size,
					       .length = frame.size };
	CU_ASSERT_EQUAL(weir_replay_packet(&replay, &packet, &err), 0);
	packet.timed = true;
	packet.time_ns = START_NS + 31ULL * 365 * 86400 * 1000 * MS;
	CU_ASSERT_EQUAL(weir_replay_packet(&replay, &packet, &err), -ERANGE);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "30 years"));
	report = end(10);
	CU_ASSERT_EQUAL(number(report, NULL, 0, "backwards"), 1);
	CU_ASSERT_EQUAL(number(report, NULL, 0, "untimed"), 1);
	CU_ASSERT_EQUAL(number(report, NULL, 0, "last_ns"), START_NS + 5100 * MS);
	json_decref(report);
}

/* What was captured in part is charged in full; what the stack merged, as frames of the wire. */
static void lengths_are_those_of_the_wire(void)
{
	struct frame frame;
	json_t *report;

	begin("  - {name: bytes, key: source, match: {to_port: 53}, "
	      "bucket: {rate: 1kbyte/s, burst: 10000byte}}\n"
	      "  - {name: frames, key: source, match: {from: 198.51.100.0/24}, "
	      "bucket: {rate: 1pps, burst: 100}, mode: monitor}\n");
	rig_frame(&frame, "192.0.2.7", IPPROTO_UDP, 1400);
	for (int i = 0; i < 10; i++)
		CU_ASSERT_EQUAL(send_frame(&frame, MS, 60, 1400, WEIR_DIRECTION_IN), i >= 7);
	/* 42 bytes of headers, 10 times 1,480 of payload. */
	rig_frame(&frame, "198.51.100.1", IPPROTO_UDP, 1500);
	CU_ASSERT_EQUAL(send_frame(&frame, MS, 1500, 42 + 10 * 1480, WEIR_DIRECTION_IN), 1);
	/* Cut within the IP header; within the UDP header. */
	CU_ASSERT_EQUAL(send_frame(&frame, MS, 30, 1500, WEIR_DIRECTION_IN), 0);
	CU_ASSERT_EQUAL(send_frame(&frame, MS, 36, 1500, WEIR_DIRECTION_IN), 0);
	CU_ASSERT_EQUAL(send_frame(&frame, MS, 10, 1500, WEIR_DIRECTION_IN), 0);
	report = end(10);
	CU_ASSERT_EQUAL(number(report, NULL, 0, "cut"), 13);
	CU_ASSERT_EQUAL(number(report, NULL, 0, "cut_headers"), 2);
	CU_ASSERT_EQUAL(number(report, NULL, 0, "merged"), 1);
	CU_ASSERT_EQUAL(number(report, NULL, 0, "too_short"), 1);
	CU_ASSERT_EQUAL(number(report, "limits", 1, "admitted") +
				number(report, "limits", 1, "would_refuse"),
			6 + 1); /* those of the ten that `bytes` let pass, and the cut one */
	CU_ASSERT_EQUAL(number(report, "limits", 0, "refused"), 3 + 4);
	json_decref(report);
}

static void directions_find_their_hooks(void)
{
	static const char limits[] =
		"  - {name: out, key: none, match: {hook: tc-egress}, "
		"bucket: {rate: 1pps, burst: 2}}\n"
		"  - {name: in, key: none, match: {hook: tc-ingress, interfaces: [eth1]}, "
		"bucket: {rate: 1pps, burst: 3}}\n"
		"  - {name: elsewhere, key: none, match: {interfaces: [eth0]}, "
		"bucket: {rate: block}}\n";
	struct weir_prefixes own = { 0 };
	struct weir_prefix prefix;
	struct frame frame;
	json_t *report;

	begin(limits);
	rig_frame(&frame, "192.0.2.7", IPPROTO_UDP, 0);
	for (int i = 0; i < 5; i++) {
		CU_ASSERT_EQUAL(send_frame(&frame, MS, 60, 60, WEIR_DIRECTION_OUT), i >= 2);
		CU_ASSERT_EQUAL(send_frame(&frame, MS, 60, 60, WEIR_DIRECTION_UNKNOWN), i >= 3);
	}
	/* A header and nothing else. */
	CU_ASSERT_EQUAL(send_frame(&frame, MS, 14, 14, WEIR_DIRECTION_IN), 0);
	CU_ASSERT_EQUAL(send_frame(&frame, MS, 14, 14, WEIR_DIRECTION_OUT), 0);
	/* An address of our own outweighs what the capture says. */
	weir_prefix_parse("192.0.2.0/24", &prefix, &err);
	weir_prefixes_add(&own, &prefix, &err);
	replay.own = &own;
	CU_ASSERT_EQUAL(send_frame(&frame, 1001 * MS, 60, 60, WEIR_DIRECTION_IN), 0);
	CU_ASSERT_EQUAL(send_frame(&frame, 1001 * MS, 60, 60, WEIR_DIRECTION_IN), 1);
	weir_prefixes_free(&own);
	report = end(10);
	CU_ASSERT_EQUAL(number(report, NULL, 0, "in"), 6);
	CU_ASSERT_EQUAL(number(report, NULL, 0, "out"), 8);
	CU_ASSERT_EQUAL(number(report, "limits", 0, "refused"), 4);
	CU_ASSERT_EQUAL(number(report, "limits", 1, "refused"), 2);
	CU_ASSERT_EQUAL(number(report, "limits", 2, "refused"), 0);
	json_decref(report);
}

/* The lists act at XDP, whether or not a limit does. */
static void lists_come_first(void)
{
	json_t *report;

	begin("  - {name: in, key: source, match: {hook: tc-ingress}, bucket: {rate: block}}\n"
	      "lists: {allow: [192.0.2.7], deny: [198.51.100.0/24]}\n");
	CU_ASSERT_EQUAL(send_from("198.51.100.9", MS), 1);
	CU_ASSERT_EQUAL(send_from("192.0.2.7", MS), 0);
	CU_ASSERT_EQUAL(send_from("192.0.2.8", MS), 1);
	report = end(10);
	CU_ASSERT_EQUAL(
		json_integer_value(json_object_get(
			json_object_get(json_object_get(report, "frames"), "xdp"), "denied")),
		1);
	CU_ASSERT_EQUAL(number(report, "limits", 0, "refused"), 1);
	json_decref(report);
}

/* More refusals than the ring of events holds at once: each is told by its key. */
static void every_refusal_has_its_key(void)
{
	json_int_t sum = 0;
	char source[32];
	json_t *report;

	begin("  - {name: per-ip, key: {source: {v4: 24}}, bucket: {rate: 1/h, burst: 1}}\n");
	for (int i = 0; i < 10000; i++) {
		snprintf(source, sizeof(source), "10.0.%d.%d", i % 100, i % 7);
		send_from(source, MS);
	}
	report = end(SIZE_MAX);
	CU_ASSERT_EQUAL(number(report, "limits", 0, "refused"), 9900);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(report, "keys")), 100);
	for (size_t i = 0; i < 100; i++)
		sum += number(report, "keys", i, "refused");
	CU_ASSERT_EQUAL(sum, 9900);
	json_decref(report);
}

WEIR_TESTS("replay", TEST(refuses_what_a_bucket_would), TEST(monitor_says_what_it_would_have),
	   TEST(the_clock_never_goes_back), TEST(lengths_are_those_of_the_wire),
	   TEST(directions_find_their_hooks), TEST(lists_come_first),
	   TEST(every_refusal_has_its_key))
