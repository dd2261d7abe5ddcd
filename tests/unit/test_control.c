// SPDX-License-Identifier: GPL-2.0
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control_fixture.h"

/* ---- requests ---- */

static void answers_each_line_in_order(void)
{
	const char *slowly = "{\"command\":\"echo\"}\r\n";
	json_t *got;
	int fd;

	setup();
	fd = join();
	CU_ASSERT(echoes(fd, 1));
	CU_ASSERT(echoes(fd, 2));
	say(fd, "{\"command\":\"echo\",\"arguments\":{\"n\":3}}\n"
		"{\"command\":\"none\"}\n{\"command\":\"echo\",\"arguments\":{\"n\":4}}\n");
	got = answer(fd);
	CU_ASSERT_EQUAL(number(got, "result.n"), 3);
	json_decref(got);
	CU_ASSERT(fails_with(fd, 1, "unknown"));
	got = answer(fd);
	CU_ASSERT_EQUAL(number(got, "result.n"), 4);
	json_decref(got);
	for (const char *c = slowly; *c; c++) {
		char one[2] = { *c, '\0' };

		CU_ASSERT_EQUAL(say(fd, one), 1);
	}
	got = answer(fd);
	CU_ASSERT(json_is_true(at(got, "ok")));
	json_decref(got);
	close(fd);
	teardown();
}

static void malformed_requests_are_refused_one_by_one(void)
{
	static const char *const bad[] = {
		"\n",
		"hello\n",
		"[]\n",
		"{\n",
		"null\n",
		"{}\n",
		"{\"command\":1}\n",
		"{\"command\":\"echo\",\"command\":\"echo\"}\n",
		"{\"command\":\"ec\\u0000ho\"}\n",
		"{\"command\":\"echo\",\"arguments\":[]}\n",
		"{\"command\":\"\xff\"}\n",
		"{\"command\":\"echo\"} x\n",
	};
	char deep[60002];
	int fd;

	setup();
	fd = join();
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		say(fd, bad[i]);
		CU_ASSERT(fails_with(fd, 1, "the request "));
	}
	CU_ASSERT_EQUAL(send(fd, "a\0b\n", 4, 0), 4);
	CU_ASSERT(fails_with(fd, 1, "no JSON object"));
	memset(deep, '[', sizeof(deep) - 2);
	deep[sizeof(deep) - 2] = '\n';
	deep[sizeof(deep) - 1] = '\0';
	say(fd, deep);
	CU_ASSERT(fails_with(fd, 1, "no JSON object"));
	CU_ASSERT(echoes(fd, 5));
	CU_ASSERT_EQUAL(handled, 1);
	close(fd);
	teardown();
}

static void request_without_an_end_is_cut_off(void)
{
	char chunk[4097];
	size_t sent = 0;
	int fd, other;

	setup();
	fd = join();
	other = join();
	memset(chunk, 'z', 4096);
	chunk[4096] = '\0';
	while (sent < 10 * WEIR_CONTROL_REQUEST_MAX) {
		ssize_t more = say(fd, chunk);

		if (more <= 0)
			break;
		sent += (size_t)more;
	}
	CU_ASSERT(fails_with(fd, 1, "longer than 64 KiB"));
	CU_ASSERT_PTR_NULL(line(fd));
	CU_ASSERT(echoes(other, 1));
	close(fd);
	close(other);
	teardown();
}

/* ---- clients that don't do their part ---- */

static void half_open_client_still_gets_its_answer(void)
{
	json_t *got;
	int fd;

	setup();
	fd = join();
	send(fd, "{\"command\":\"echo\"}\n", 19, 0);
	shutdown(fd, SHUT_WR);
	got = answer(fd);
	CU_ASSERT(json_is_true(at(got, "ok")));
	json_decref(got);
	CU_ASSERT_PTR_NULL(line(fd));
	close(fd);
	fd = join();
	say(fd, "{\"command\":\"later\"}\n");
	shutdown(fd, SHUT_WR);
	pump();
	CU_ASSERT_PTR_NOT_NULL_FATAL(owed);
	weir_control_reply(owed, json_integer(1));
	got = answer(fd);
	CU_ASSERT(json_is_true(at(got, "ok")));
	json_decref(got);
	CU_ASSERT_PTR_NULL(line(fd));
	close(fd);
	teardown();
}

/* "printf … | nc -NU SOCKET": the end may be seen while the first answer is still made. */
static void half_open_client_gets_all_its_answers(void)
{
	int fd;

	setup();
	fd = join();
	say(fd, "{\"command\":\"later\"}\n{\"command\":\"echo\"}\n{\"command\":\"none\"}\nrest");
	shutdown(fd, SHUT_WR);
	pump();
	CU_ASSERT_PTR_NOT_NULL_FATAL(owed);
	weir_control_reply(owed, json_integer(1));
	for (int i = 0; i < 2; i++) {
		json_t *got = answer(fd);

		CU_ASSERT(json_is_true(at(got, "ok")));
		json_decref(got);
	}
	CU_ASSERT(fails_with(fd, 1, "unknown"));
	CU_ASSERT_PTR_NULL(line(fd));
	close(fd);
	teardown();
}

static void client_that_leaves_is_forgotten(void)
{
	int fd;

	setup();
	fd = join();
	say(fd, "{\"command\":\"ec");
	close(fd);
	pump();
	fd = join();
	say(fd, "{\"command\":\"watch\"}\n");
	CU_ASSERT_PTR_NOT_NULL(owed);
	close(fd);
	pump();
	CU_ASSERT_PTR_NULL(owed);
	CU_ASSERT_EQUAL(closed_count, 1);
	fd = join();
	say(fd, "{\"command\":\"parts\"}\n");
	close(fd);
	pump();
	CU_ASSERT_EQUAL(ended, 1);
	CU_ASSERT_EQUAL(closed_count, 1);
	teardown();
}

static void last_answer_is_sent_before_the_end(void)
{
	int fd;

	setup();
	fd = join();
	say(fd, "{\"command\":\"later\"}\n");
	CU_ASSERT_PTR_NOT_NULL_FATAL(owed);
	weir_control_reply(owed, json_integer(1));
	teardown();
	CU_ASSERT_EQUAL(recv(fd, &(char){ 0 }, 1, 0), 1);
	CU_ASSERT_EQUAL(closed_count, 0);
	close(fd);
}

/* An owed answer is dropped with its client when the server ends. */
static void end_of_the_server_ends_everybody(void)
{
	int owing, watching;

	setup();
	owing = join();
	say(owing, "{\"command\":\"later\"}\n");
	watching = join();
	say(watching, "{\"command\":\"watch\"}\n");
	teardown();
	CU_ASSERT_EQUAL(closed_count, 2);
	close(owing);
	close(watching);
}

static void idle_client_is_sent_away_but_not_one_that_waits(void)
{
	struct weir_error err;
	int idle, waiting;

	make_folder();
	CU_ASSERT_EQUAL_FATAL(start(1, &err), 0);
	waiting = join();
	say(waiting, "{\"command\":\"later\"}\n");
	idle = join();
	say(idle, "{\"comm");
	CU_ASSERT_PTR_NULL(line(idle));
	CU_ASSERT_EQUAL(recv(idle, &(char){ 0 }, 1, 0), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(owed);
	weir_control_reply(owed, json_integer(7));
	CU_ASSERT_PTR_NOT_NULL(line(waiting));
	close(idle);
	close(waiting);
	teardown();
}

static void who_does_not_read_waits_for_himself_alone(void)
{
	int fd, other, got = 0;

	setup();
	fd = join();
	other = join();
	for (int i = 0; i < 20; i++)
		say(fd, "{\"command\":\"big\"}\n");
	CU_ASSERT(handled >= 4 && handled <= 7);
	CU_ASSERT(echoes(other, 1));
	while (got < 20 && line(fd))
		got++;
	CU_ASSERT_EQUAL(got, 20);
	close(fd);
	close(other);
	teardown();
}

/* Requests that pile up behind an answer that isn't ready yet: the loop rests meanwhile. */
static void requests_that_pile_up_wait(void)
{
	const char *request = "{\"command\":\"echo\"}\n";
	unsigned int sent = 0, got = 0;
	char *first;
	int fd;

	setup();
	fd = join();
	say(fd, "{\"command\":\"later\"}\n");
	while (sent < 100000 && say(fd, request) == (ssize_t)strlen(request))
		sent++;
	CU_ASSERT(sent > WEIR_CONTROL_REQUEST_MAX / strlen(request) && sent < 100000);
	CU_ASSERT_EQUAL(handled, 1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(owed);
	weir_control_reply(owed, json_integer(1));
	first = line(fd);
	CU_ASSERT(first && strstr(first, "\"result\":1"));
	while (got < sent && line(fd))
		got++;
	CU_ASSERT_EQUAL(got, sent);
	close(fd);
	teardown();
}

static void long_answer_comes_in_parts_as_it_is_read(void)
{
	unsigned int unread;
	int fd, got = 0;

	setup();
	fd = join();
	say(fd, "{\"command\":\"parts\"}\n");
	pump();
	unread = parts_made;
	CU_ASSERT(unread < 100);
	for (int left = 999; left >= 0; left--) {
		json_t *part = answer(fd);

		got += number(part, "result.left") == left &&
		       json_is_true(at(part, "more")) == (left > 0);
		json_decref(part);
	}
	CU_ASSERT_EQUAL(got, 1000);
	CU_ASSERT_EQUAL(ended, 1);
	CU_ASSERT(echoes(fd, 1));
	close(fd);
	teardown();
}

static void slow_subscriber_misses_some_and_memory_is_bounded(void)
{
	json_t *part = json_pack("{s:s}", "text", "0123456789012345678901234567890123456789");
	unsigned int pushed = 0, got = 0;
	int fd;

	setup();
	fd = join();
	say(fd, "{\"command\":\"watch\"}\n");
	CU_ASSERT_PTR_NOT_NULL_FATAL(owed);
	for (unsigned int i = 0; i < 200000; i++)
		pushed += weir_control_push(owed, part);
	CU_ASSERT(pushed > 1000 && pushed < 60000);
	/* What it says meanwhile is of no interest. */
	say(fd, "{\"command\":\"echo\"}\n");
	while (got < pushed && line(fd))
		got++;
	CU_ASSERT_EQUAL(got, pushed);
	CU_ASSERT(weir_control_push(owed, part));
	CU_ASSERT_EQUAL(handled, 1);
	json_decref(part);
	close(fd);
	teardown();
}

static void client_too_many_is_told(void)
{
	int fds[WEIR_CONTROL_CLIENTS_MAX], extra;

	setup();
	for (size_t i = 0; i < WEIR_CONTROL_CLIENTS_MAX; i++) {
		fds[i] = join();
		say(fds[i], "{\"command\":\"watch\"}\n");
	}
	extra = join();
	CU_ASSERT(fails_with(extra, 2, "too many clients"));
	CU_ASSERT_PTR_NULL(line(extra));
	close(extra);
	close(fds[0]);
	pump();
	fds[0] = join();
	CU_ASSERT(echoes(fds[0], 1));
	for (size_t i = 0; i < WEIR_CONTROL_CLIENTS_MAX; i++)
		close(fds[i]);
	teardown();
}

/* Half-open clients, as many as there are places, and more: who asks is answered. */
static void who_idles_makes_room(void)
{
	int fds[WEIR_CONTROL_CLIENTS_MAX], busy, fd;

	setup();
	busy = join();
	say(busy, "{\"command\":\"later\"}\n");
	for (size_t i = 1; i < WEIR_CONTROL_CLIENTS_MAX; i++) {
		fds[i] = join();
		say(fds[i], "{\"comm");
	}
	for (int i = 0; i < 3; i++) {
		fd = join();
		CU_ASSERT(echoes(fd, i));
		close(fd);
		pump();
		/* The place is taken again: the next has to wait for another's. */
		fds[0] = join();
		CU_ASSERT(fails_with(fds[1 + i], 2, "others wait for a place"));
		CU_ASSERT_PTR_NULL(line(fds[1 + i]));
		close(fds[1 + i]);
		fds[1 + i] = fds[0];
	}
	CU_ASSERT_PTR_NOT_NULL_FATAL(owed);
	weir_control_reply(owed, json_integer(1));
	CU_ASSERT_PTR_NOT_NULL(line(busy));
	close(busy);
	for (size_t i = 1; i < WEIR_CONTROL_CLIENTS_MAX; i++)
		close(fds[i]);
	teardown();
}

WEIR_TESTS("control", TEST(answers_each_line_in_order),
	   TEST(malformed_requests_are_refused_one_by_one), TEST(request_without_an_end_is_cut_off),
	   TEST(half_open_client_still_gets_its_answer),
	   TEST(half_open_client_gets_all_its_answers), TEST(client_that_leaves_is_forgotten),
	   TEST(end_of_the_server_ends_everybody), TEST(last_answer_is_sent_before_the_end),
	   TEST(idle_client_is_sent_away_but_not_one_that_waits),
	   TEST(who_does_not_read_waits_for_himself_alone), TEST(requests_that_pile_up_wait),
	   TEST(long_answer_comes_in_parts_as_it_is_read),
	   TEST(slow_subscriber_misses_some_and_memory_is_bounded), TEST(client_too_many_is_told),
	   TEST(who_idles_makes_room))
