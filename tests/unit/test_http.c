// SPDX-License-Identifier: GPL-2.0
/* The HTTP server against clients of every kind. */
#include <sys/resource.h>
#include <time.h>

#include "http_fixture.h"

/* ---- who is meant ---- */

static void hosts_that_are_ours(void)
{
	static const struct {
		const char *host;
		bool ours;
	} cases[] = {
		{ "127.0.0.1", true },
		{ "127.0.0.1:9477", true },
		{ "192.0.2.7:9477", true },
		{ "[::1]", true },
		{ "[2001:db8::1]:9477", true },
		{ "localhost", true },
		{ "LocalHost:9477", true },
		{ "weir.example", true },
		{ "WEIR.example:80", true },
		{ "evil.example", false },
		{ "weir.example.evil.example", false },
		{ "127.0.0.1.evil.example", false },
		{ "localhost.evil.example", false },
		{ "127.0.0.1@evil.example", false },
		{ "127.0.0.1:80@evil.example", false },
		{ "evil.example:127.0.0.1", false },
		{ "::1", false },
		{ "[::1", false },
		{ "[::1]x", false },
		{ "[localhost]", false },
		{ "127.1", false },
		{ "2130706433", false },
		{ " 127.0.0.1", false },
		{ "", false },
		{ ":80", false },
		{ NULL, false },
	};
	char *items[] = { "weir.example" };
	const struct weir_texts own = { .items = items, .count = 1 };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (weir_http_host_is_ours(cases[i].host, &own) != cases[i].ours)
			printf("  host '%s'\n", cases[i].host ? cases[i].host : "(none)");
		CU_ASSERT_EQUAL(weir_http_host_is_ours(cases[i].host, &own), cases[i].ours);
	}
	CU_ASSERT_FALSE(weir_http_host_is_ours("weir.example", &(struct weir_texts){ 0 }));
}

static void loopback_addresses(void)
{
	CU_ASSERT_TRUE(weir_http_is_loopback("127.0.0.1:9477"));
	CU_ASSERT_TRUE(weir_http_is_loopback("127.9.9.9:1"));
	CU_ASSERT_TRUE(weir_http_is_loopback("[::1]:9477"));
	CU_ASSERT_FALSE(weir_http_is_loopback("0.0.0.0:9477"));
	CU_ASSERT_FALSE(weir_http_is_loopback("[::]:9477"));
	CU_ASSERT_FALSE(weir_http_is_loopback("192.0.2.1:9477"));
	CU_ASSERT_FALSE(weir_http_is_loopback("off"));
}

static void taken_and_strange_addresses_are_refused_in_words(void)
{
	struct weir_http *second = NULL;
	struct weir_error err = { 0 };
	char address[32];

	setup();
	snprintf(address, sizeof(address), "127.0.0.1:%u", port);
	CU_ASSERT_EQUAL(listen_on(address, &second, &err), -EADDRINUSE);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, address));
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "another program has this port"));
	CU_ASSERT_EQUAL(listen_on("192.0.2.77:9477", &second, &err), -EADDRNOTAVAIL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "192.0.2.77:9477"));
	CU_ASSERT_EQUAL(listen_on("nowhere", &second, &err), -EINVAL);
	CU_ASSERT_EQUAL(listen_on(":80", &second, &err), -EINVAL);
	CU_ASSERT_PTR_NULL(second);
	snprintf(address, sizeof(address), "[::1]:%u", port);
	CU_ASSERT_EQUAL(listen_on(address, &second, &err), 0);
	weir_http_stop(second);
	teardown();
}

/* ---- requests ---- */

static void pages_and_refusals(void)
{
	static const struct {
		const char *request, *status, *has;
	} cases[] = {
		{ GET("/"), OK, "\r\n\r\nhello\n" },
		{ GET("/?a=b"), OK, "\r\n\r\nhello\n" },
		{ "GET http://127.0.0.1/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", OK, "hello" },
		{ GET("/"), OK, "\r\nContent-Security-Policy: default-src 'none';" },
		{ GET("/"), OK, "\r\nX-Content-Type-Options: nosniff\r\n" },
		{ GET("/nothing"), "HTTP/1.1 404 ", "no such page: /metrics" },
		{ GET("//"), "HTTP/1.1 404 ", "" },
		{ GET("/../"), "HTTP/1.1 404 ", "" },
		{ GET("/%2e%2e/etc/passwd"), "HTTP/1.1 404 ", "" },
		{ GET("/poor"), "HTTP/1.1 503 ", "out of memory" },
		{ "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 3\r\n\r\nabc",
		  "HTTP/1.1 405 ", "\r\nAllow: GET, HEAD\r\n" },
		{ "DELETE / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "HTTP/1.1 405 ", "Allow" },
		{ "OPTIONS / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "HTTP/1.1 405 ", "Allow" },
		{ "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "HTTP/1.1 403 ",
		  "metrics.hosts" },
		{ "GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 403 ", "" },
		{ "GET http://127.0.0.1/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
		  "HTTP/1.1 403 ", "" },
		{ "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5000000\r\n\r\n",
		  "HTTP/1.1 413 ", "" },
		{ "GET\r\n\r\n", "HTTP/1.1 400 ", "" },
		{ "\r\n\r\n\r\n", "HTTP/1.1 400 ", "" },
	};
	bool ended;

	setup();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int fd = join();
		const char *got;

		say(fd, cases[i].request);
		got = hear(fd, &ended);
		if (strncmp(got, cases[i].status, strlen(cases[i].status)) ||
		    !strstr(got, cases[i].has))
			printf("  %s-> %s\n", cases[i].request, got);
		CU_ASSERT_EQUAL(strncmp(got, cases[i].status, strlen(cases[i].status)), 0);
		CU_ASSERT_PTR_NOT_NULL(strstr(got, cases[i].has));
		close(fd);
	}
	teardown();
}

static void head_has_the_headers_and_no_body(void)
{
	int fd;
	bool ended;
	const char *got;

	setup();
	fd = join();
	say(fd, "HEAD /big HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
	got = hear(fd, &ended);
	CU_ASSERT_EQUAL(strncmp(got, OK, strlen(OK)), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(got, "\r\nContent-Length: 4000000\r\n"));
	CU_ASSERT_PTR_NOT_NULL_FATAL(strstr(got, "\r\n\r\n"));
	CU_ASSERT_STRING_EQUAL(strstr(got, "\r\n\r\n"), "\r\n\r\n");
	say(fd, "HEAD /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
	CU_ASSERT_PTR_NULL(strstr(hear(fd, &ended), "no such page"));
	CU_ASSERT_TRUE(answers(fd, GET("/"), OK));
	close(fd);
	teardown();
}

static void pipelined_requests_are_answered_in_order(void)
{
	char requests[50 * sizeof(GET("/nothing"))] = "";
	unsigned int found = 0, missing = 0;
	const char *got;
	bool ended;
	int fd;

	setup();
	for (int i = 0; i < 25; i++)
		strcat(strcat(requests, GET("/")), GET("/nothing"));
	fd = join();
	say(fd, requests);
	got = hear(fd, &ended);
	for (const char *at = got; (at = strstr(at, "HTTP/1.1 ")); at++) {
		/* One of each in turn. */
		CU_ASSERT_EQUAL(strncmp(at, OK, strlen(OK)) != 0, (found + missing) % 2);
		found += !strncmp(at, OK, strlen(OK));
		missing += !strncmp(at, "HTTP/1.1 404", 12);
	}
	CU_ASSERT_EQUAL(found, 25);
	CU_ASSERT_EQUAL(missing, 25);
	CU_ASSERT_EQUAL(weir_http_counts(http).requests, 50);
	CU_ASSERT_EQUAL(weir_http_counts(http).refused, 25);
	close(fd);
	teardown();
}

static void huge_headers_are_refused(void)
{
	char filler[1025];
	size_t sent = 0;
	int fd;

	setup();
	memset(filler, 'x', 1024);
	filler[1024] = '\0';
	fd = join();
	say(fd, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ");
	while (sent < 1000000 && say(fd, filler) > 0)
		sent += 1024;
	/* It is told so, or cut off in the middle of a line. */
	CU_ASSERT_TRUE(sent < 1000000 || is_cut(fd));
	close(fd);
	fd = join();
	CU_ASSERT_TRUE(answers(fd, GET("/"), OK));
	close(fd);
	teardown();
}

/* ---- clients that don't do their part ---- */

static void slow_asker_is_cut_off_however_he_trickles(void)
{
	int slow, kept;

	setup();
	slow = join();
	kept = join();
	CU_ASSERT_TRUE(answers(kept, GET("/"), OK));
	say(slow, "GET / HTTP/1.1\r\n");
	for (int i = 0; i < 4; i++) {
		now_ns += SECOND;
		CU_ASSERT_EQUAL(say(slow, "X: y\r\n"), 6);
	}
	sweep();
	CU_ASSERT_EQUAL(weir_http_counts(http).cut_off, 0);
	now_ns += 2 * SECOND;
	sweep();
	CU_ASSERT_TRUE(is_cut(slow));
	CU_ASSERT_EQUAL(weir_http_counts(http).cut_off, 1);
	/* One that has been answered may rest, but not for ever. */
	CU_ASSERT_TRUE(answers(kept, GET("/"), OK));
	now_ns += (WEIR_HTTP_KEEP_SECONDS - 1) * SECOND;
	sweep();
	CU_ASSERT_TRUE(answers(kept, GET("/"), OK));
	now_ns += (WEIR_HTTP_KEEP_SECONDS + 1) * SECOND;
	sweep();
	CU_ASSERT_TRUE(is_cut(kept));
	sweep();
	CU_ASSERT_EQUAL(weir_http_counts(http).connections, 0);
	close(slow);
	close(kept);
	teardown();
}

static void slow_readers_share_one_page_and_are_cut_off(void)
{
	int fds[50];

	setup();
	for (size_t i = 0; i < 50; i++) {
		fds[i] = join();
		say(fds[i], GET("/big"));
	}
	CU_ASSERT_EQUAL(weir_http_counts(http).requests, 50);
	CU_ASSERT_EQUAL(weir_http_counts(http).connections, 50);
	/* 200 MB are due, 4 are held. */
	CU_ASSERT_TRUE(big->users >= 40 && big->users <= 51);
	now_ns += (WEIR_HTTP_TAKE_SECONDS + 1) * SECOND;
	sweep();
	sweep();
	CU_ASSERT_EQUAL(weir_http_counts(http).connections, 0);
	CU_ASSERT_EQUAL(weir_http_counts(http).cut_off, 50);
	CU_ASSERT_EQUAL(big->users, 1);
	/* The kernel keeps nothing for them either. */
	for (size_t i = 0; i < 50; i++) {
		int error = 0;
		socklen_t size = sizeof(error);

		getsockopt(fds[i], SOL_SOCKET, SO_ERROR, &error, &size);
		CU_ASSERT_EQUAL(error, ECONNRESET);
		close(fds[i]);
	}
	teardown();
}

static void clients_that_leave_are_forgotten(void)
{
	int fd;

	setup();
	for (int i = 0; i < 300; i++) {
		fd = join();
		say(fd, i % 3 ? GET("/big") : "GET / HT");
		close(fd);
	}
	sweep();
	CU_ASSERT_EQUAL(weir_http_counts(http).connections, 0);
	CU_ASSERT_EQUAL(big->users, 1);
	fd = join();
	CU_ASSERT_TRUE(answers(fd, GET("/"), OK));
	close(fd);
	teardown();
}

static void a_thousand_connections_keep_nobody_out(void)
{
	const struct rlimit more = { 4096, 4096 };
	static int fds[1000];
	bool answered = false;
	int fd;

	setrlimit(RLIMIT_NOFILE, &more);
	setup();
	for (size_t i = 0; i < 1000; i++)
		fds[i] = join();
	pump(20);
	CU_ASSERT_EQUAL(weir_http_counts(http).connections, WEIR_HTTP_CONNECTIONS_MAX);
	fd = join();
	send(fd, GET("/"), strlen(GET("/")), MSG_NOSIGNAL);
	/* Those that idle make room, a hundred at a time; the kernel tries SYNs again by itself. */
	for (int i = 0; i < 200 && !answered; i++) {
		char text[16];

		now_ns += 2 * WEIR_HTTP_CROWDED_MS * 1000000ULL;
		pump(100);
		CU_ASSERT_TRUE(weir_http_counts(http).connections <= WEIR_HTTP_CONNECTIONS_MAX);
		if (recv(fd, text, sizeof(text), 0) > 0)
			answered = !strncmp(text, OK, 15);
		else if (errno == ENOTCONN)
			send(fd, GET("/"), strlen(GET("/")), MSG_NOSIGNAL);
	}
	CU_ASSERT_TRUE(answered);
	CU_ASSERT_TRUE(weir_http_counts(http).cut_off >= WEIR_HTTP_CONNECTIONS_MAX);
	close(fd);
	for (size_t i = 0; i < 1000; i++)
		close(fds[i]);
	teardown();
}

/* Somebody at work is not in the way of those who wait. */
static void crowds_don_t_cut_off_who_is_taking_his_answer(void)
{
	int fds[WEIR_HTTP_CONNECTIONS_MAX], reader;

	setup();
	reader = join();
	say(reader, GET("/big"));
	for (size_t i = 0; i < WEIR_HTTP_CONNECTIONS_MAX; i++)
		fds[i] = join();
	pump(20);
	now_ns += 2 * WEIR_HTTP_CROWDED_MS * 1000000ULL;
	sweep();
	CU_ASSERT_EQUAL(weir_http_counts(http).cut_off, WEIR_HTTP_CONNECTIONS_MAX - 1);
	CU_ASSERT_TRUE(big->users == 2);
	/* Unless he takes his time. */
	for (size_t i = 0; i < WEIR_HTTP_CONNECTIONS_MAX; i++)
		close(fds[i]);
	for (size_t i = 0; i < WEIR_HTTP_CONNECTIONS_MAX; i++)
		fds[i] = join();
	pump(20);
	now_ns += WEIR_HTTP_CROWDED_TAKE_SECONDS * SECOND;
	sweep();
	sweep();
	CU_ASSERT_TRUE(big->users == 1);
	for (size_t i = 0; i < WEIR_HTTP_CONNECTIONS_MAX; i++)
		close(fds[i]);
	close(reader);
	teardown();
}

/* Accept fails again and again then: that must not keep the loop busy. */
static void without_descriptors_it_rests(void)
{
	struct rlimit before, none;
	unsigned int turns = 0;
	time_t end;
	int fd, next;

	setup();
	fd = join();
	next = dup(fd);
	close(next);
	getrlimit(RLIMIT_NOFILE, &before);
	none = (struct rlimit){ (rlim_t)next, before.rlim_max };
	setrlimit(RLIMIT_NOFILE, &none);
	for (end = time(NULL) + 2; time(NULL) < end; turns++)
		event_base_loop(base, EVLOOP_ONCE);
	CU_ASSERT_TRUE(turns > 0 && turns < 100);
	CU_ASSERT_EQUAL(weir_http_counts(http).connections, 0);
	setrlimit(RLIMIT_NOFILE, &before);
	pump(1500);
	CU_ASSERT_TRUE(answers(fd, GET("/"), OK));
	close(fd);
	teardown();
}

static void the_end_comes_at_any_time(void)
{
	int fds[20];

	setup();
	for (size_t i = 0; i < 20; i++) {
		fds[i] = join();
		say(fds[i], i % 2 ? GET("/big") : "GET /");
	}
	teardown();
	for (size_t i = 0; i < 20; i++)
		close(fds[i]);
}

WEIR_TESTS("http", TEST(hosts_that_are_ours), TEST(loopback_addresses),
	   TEST(taken_and_strange_addresses_are_refused_in_words), TEST(pages_and_refusals),
	   TEST(head_has_the_headers_and_no_body), TEST(pipelined_requests_are_answered_in_order),
	   TEST(huge_headers_are_refused), TEST(slow_asker_is_cut_off_however_he_trickles),
	   TEST(slow_readers_share_one_page_and_are_cut_off),
	   TEST(clients_that_leave_are_forgotten), TEST(a_thousand_connections_keep_nobody_out),
	   TEST(crowds_don_t_cut_off_who_is_taking_his_answer), TEST(without_descriptors_it_rests),
	   TEST(the_end_comes_at_any_time))
