// SPDX-License-Identifier: GPL-2.0
/* What weir top shows, without a terminal: answers in, lines of text out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/top_model.h"
#include "harness.h"

#define ROWS 60

static struct weir_top_model model;
static struct {
	char lines[ROWS][2048];
	enum weir_top_style styles[ROWS];
	int width, height;
	bool beyond;
} screen;

static int columns(const char *text)
{
	int count = 0;

	for (; *text; text++)
		count += (*text & 0xc0) != 0x80;
	return count;
}

static void put(void *context, int row, enum weir_top_style style, const char *text)
{
	(void)context;
	screen.beyond |= row < 0 || row >= screen.height || columns(text) > screen.width;
	if (row < 0 || row >= ROWS)
		return;
	snprintf(screen.lines[row], sizeof(screen.lines[row]), "%s", text);
	screen.styles[row] = style;
}

static void draw(int width, int height)
{
	memset(&screen, 0, sizeof(screen));
	screen.width = width;
	screen.height = height;
	weir_top_draw(&model, width, height, put, NULL);
}

/* The first line with this in it, or -1. */
static int find(const char *text)
{
	for (int row = 0; row < ROWS; row++) {
		if (strstr(screen.lines[row], text))
			return row;
	}
	return -1;
}

static void begin(void)
{
	memset(&model, 0, sizeof(model));
	model.held_percent = -1;
	snprintf(model.state, sizeof(model.state), "live");
}

static void take(void (*to)(struct weir_top_model *model, json_t *answer), const char *text)
{
	json_t *answer = json_loads(text, 0, NULL);

	CU_ASSERT_PTR_NOT_NULL(answer);
	to(&model, answer);
	json_decref(answer);
}

/* Two limits, `seconds` after the first look. */
static void show(int seconds, int admitted, int refused, int would)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "{\"time_ns\": %lld, \"ledger\": {\"held_percent\": 12.3}, \"limits\": ["
		 "{\"name\": \"per-ip\", \"mode\": \"enforce\", \"admitted\": %d, \"refused\": %d, "
		 "\"would_refuse\": 0},"
		 "{\"name\": \"dns\", \"mode\": \"monitor\", \"admitted\": %d, \"refused\": 0, "
		 "\"would_refuse\": %d}]}",
		 1000000000LL * (1000 + seconds), admitted, refused, admitted, would);
	take(weir_top_take_show, text);
}

static void keys(const char *list)
{
	char text[4096];

	snprintf(text, sizeof(text), "{\"span_ns\": 1500000000, \"keys\": [%s]}", list);
	take(weir_top_take_keys, text);
}

#define KEY(key, limit, admitted, refused)                                                         \
	"{\"key\": \"" key "\", \"limit\": \"" limit "\", \"admitted_per_sec\": " #admitted        \
	", \"refused_per_sec\": " #refused "}"

#define THREE                                                                                      \
	KEY("192.0.2.7", "per-ip", 100, 5000)                                                      \
	"," KEY("2001:db8:0:1::/64", "per-ip", 900, 0) "," KEY("198.51.100.9", "dns", 500, 1)

static void rates_of_limits_are_differences(void)
{
	begin();
	show(0, 1000, 100, 5);
	CU_ASSERT(model.limits[0].passed < 0);
	draw(80, 24);
	CU_ASSERT(find("ledger 12% held") == 0);
	show(2, 3000, 700, 6);
	CU_ASSERT_EQUAL(model.limit_count, 2);
	CU_ASSERT_EQUAL(model.limits[0].passed, 1000);
	CU_ASSERT_EQUAL(model.limits[0].refused, 300);
	/* In monitor mode it is what would have been refused. */
	CU_ASSERT_EQUAL(model.limits[1].refused, 0.5);
	/* Counts that went back began anew. */
	show(3, 10, 0, 6);
	CU_ASSERT_EQUAL(model.limits[0].passed, 0);
	draw(80, 24);
	CU_ASSERT(find("per-ip") > 0 && find("dns") > find("per-ip"));
	CU_ASSERT_PTR_NOT_NULL(strstr(screen.lines[find("dns")], "monitor"));
}

static void keys_sort_and_filter(void)
{
	uint16_t order[WEIR_TOP_ROWS];

	begin();
	draw(80, 24);
	CU_ASSERT(find("looking") > 0);
	keys(THREE);
	CU_ASSERT_EQUAL(weir_top_order(&model, order), 3);
	CU_ASSERT_STRING_EQUAL(model.rows[order[0]].key, "192.0.2.7");
	CU_ASSERT_STRING_EQUAL(model.rows[order[1]].key, "2001:db8:0:1::/64");
	weir_top_type(&model, 's'); /* by refused */
	weir_top_order(&model, order);
	CU_ASSERT_STRING_EQUAL(model.rows[order[1]].key, "198.51.100.9");
	weir_top_type(&model, 's'); /* by passed */
	weir_top_order(&model, order);
	CU_ASSERT_STRING_EQUAL(model.rows[order[0]].key, "2001:db8:0:1::/64");
	weir_top_type(&model, 's'); /* by key */
	weir_top_order(&model, order);
	CU_ASSERT_STRING_EQUAL(model.rows[order[1]].key, "198.51.100.9");
	weir_top_type(&model, '/');
	for (const char *at = "dnsq"; *at; at++)
		CU_ASSERT_TRUE(weir_top_type(&model, *at)); /* a q in a filter is no q */
	CU_ASSERT_EQUAL(weir_top_order(&model, order), 0);
	weir_top_type(&model, WEIR_TOP_KEY_BACKSPACE);
	CU_ASSERT_EQUAL(weir_top_order(&model, order), 1);
	draw(80, 24);
	CU_ASSERT(find("filter: dns_") == 23);
	CU_ASSERT(find("192.0.2.7") < 0 && find("198.51.100.9") > 0);
	weir_top_type(&model, WEIR_TOP_KEY_ENTER);
	CU_ASSERT_EQUAL(weir_top_order(&model, order), 1);
	weir_top_type(&model, WEIR_TOP_KEY_ESCAPE);
	CU_ASSERT_EQUAL(weir_top_order(&model, order), 3);
	CU_ASSERT_FALSE(weir_top_type(&model, 'q'));
}

static void keys_have_a_history(void)
{
	struct weir_top_row *row = &model.rows[0];

	begin();
	for (int i = 0; i < WEIR_TOP_HISTORY + 5; i++)
		keys(KEY("192.0.2.7", "per-ip", 10, 20));
	CU_ASSERT_EQUAL(model.row_count, 1);
	CU_ASSERT_EQUAL(row->history.count, WEIR_TOP_HISTORY);
	/* Not heard of it: it is quiet, and after a while forgotten. */
	keys("");
	CU_ASSERT_EQUAL(row->refused, 0);
	CU_ASSERT_EQUAL(row->history.refused[WEIR_TOP_HISTORY - 1], 0);
	CU_ASSERT_EQUAL(row->history.refused[WEIR_TOP_HISTORY - 2], 20);
	for (int i = 0; i < 9; i++)
		keys("");
	CU_ASSERT_EQUAL(model.row_count, 0);
}

static void a_pause_changes_nothing(void)
{
	begin();
	show(0, 1000, 0, 0);
	keys(THREE);
	weir_top_type(&model, ' ');
	keys(KEY("203.0.113.1", "per-ip", 1, 1));
	show(1, 2000, 0, 0);
	take(weir_top_take_refusal, "{\"limit\": null}");
	CU_ASSERT(model.row_count == 3 && !model.refusal_count && model.limits[0].passed < 0);
	draw(80, 24);
	CU_ASSERT(find("paused") == 0);
	weir_top_type(&model, ' ');
	keys(KEY("203.0.113.1", "per-ip", 1, 1));
	CU_ASSERT_EQUAL(model.row_count, 4);
}

static void refusals_and_services_show(void)
{
	begin();
	show(0, 0, 0, 0);
	take(weir_top_take_show,
	     "{\"time_ns\": 5000000000000, \"limits\": [], \"services\": [{\"name\": \"web\", "
	     "\"in_flight\": 12, \"ok\": 100, \"failed\": 3, \"p99_ns\": 2500000, "
	     "\"breaker\": {\"drop\": 0.25}, \"shedder\": {\"ceiling\": 40}, "
	     "\"governor\": {\"control\": \"web-rate\", \"offer\": 250}}]}");
	for (int i = 0; i < 20; i++)
		take(weir_top_take_refusal,
		     "{\"limit\": \"per-ip\", \"source\": \"2001:db8::7\", \"source_port\": 4000, "
		     "\"destination\": \"2001:db8::1\", \"destination_port\": 53, "
		     "\"protocol\": \"udp\", \"interface\": \"eth0\", \"left_out\": 41, "
		     "\"would\": true}");
	CU_ASSERT_EQUAL(model.refusal_count, WEIR_TOP_REFUSALS);
	draw(132, 50);
	CU_ASSERT(find("web          12 in flight, 100 ok, 3 failed, p99 2.5ms, drops 25%, at most "
		       "40, web-rate at 250") > 0);
	CU_ASSERT(find("per-ip would refuse [2001:db8::7]:4000 > [2001:db8::1]:53 udp on eth0, 41 "
		       "more left out") > 0);
}

/* Whatever the size: nothing beyond the edges, and what there is room for is there. */
static void it_fits_any_screen(void)
{
	begin();
	show(0, 1000, 0, 0);
	show(1, 100000000, 2000000, 7);
	keys(THREE);
	keys(KEY("tcp [2001:db8:1111:2222:3333:4444:5555:6666]:40000 > "
		 "[2001:db8:1111:2222:3333:4444:5555:7777]:443",
		 "a-limit-with-a-very-long-name-1", 123456, 99999999));
	for (int i = 0; i < 8; i++)
		take(weir_top_take_refusal, "{\"limit\": null, \"source\": \"192.0.2.7\"}");
	for (int ascii = 0; ascii < 2; ascii++) {
		model.ascii = ascii;
		for (int width = 1; width <= 140; width++) {
			for (int height = 1; height <= 55; height++) {
				draw(width, height);
				CU_ASSERT_FALSE(screen.beyond);
				CU_ASSERT(*screen.lines[0] == 'w');
			}
		}
	}
	draw(40, 12);
	CU_ASSERT(find("192.0.2.7") > 0 && find("q quit") == 11);
	CU_ASSERT(find(" 2000k   100M per-ip") == 2);
	model.ascii = false;
	draw(80, 24);
	CU_ASSERT(find("tcp [2001:db8:1111:2222") > 0 && find("…") > 0);
	draw(20, 3);
	CU_ASSERT(find("KEY") == 1);
}

static void scrolling_ends_at_the_last(void)
{
	begin();
	keys(THREE);
	for (int i = 0; i < 5; i++)
		weir_top_type(&model, WEIR_TOP_KEY_PAGE_DOWN);
	CU_ASSERT_EQUAL(model.scroll, 2);
	draw(80, 24);
	CU_ASSERT(find("198.51.100.9") > 0 && find("192.0.2.7") < 0);
	weir_top_type(&model, WEIR_TOP_KEY_UP);
	CU_ASSERT_EQUAL(model.scroll, 1);
	weir_top_type(&model, WEIR_TOP_KEY_PAGE_UP);
	CU_ASSERT_EQUAL(model.scroll, 0);
}

static void sparks_go_from_low_to_high(void)
{
	const double values[] = { 5, 0, 1, 50, 100 }, none[] = { 0, 0 };
	char text[64];

	weir_top_spark(values, 5, 4, false, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, " ▁▄█");
	weir_top_spark(values, 5, 10, true, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, "_ _=@");
	weir_top_spark(none, 2, 4, false, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, "  ");
}

/* Answers that aren't: nothing changes, nothing breaks (the sanitizers tell). */
static void nonsense_changes_nothing(void)
{
	begin();
	take(weir_top_take_show, "{}");
	take(weir_top_take_show, "{\"time_ns\": \"x\", \"limits\": 3}");
	take(weir_top_take_keys, "{\"keys\": 7}");
	take(weir_top_take_keys, "{\"keys\": [1, null, {}]}");
	take(weir_top_take_refusal, "[]");
	weir_top_take_show(&model, NULL);
	weir_top_take_keys(&model, NULL);
	CU_ASSERT(!model.limit_count && !model.refusal_count);
	draw(80, 24);
	CU_ASSERT_FALSE(screen.beyond);
}

WEIR_TESTS("top_screen", TEST(rates_of_limits_are_differences), TEST(keys_sort_and_filter),
	   TEST(keys_have_a_history), TEST(a_pause_changes_nothing),
	   TEST(refusals_and_services_show), TEST(it_fits_any_screen),
	   TEST(scrolling_ends_at_the_last), TEST(sparks_go_from_low_to_high),
	   TEST(nonsense_changes_nothing))
