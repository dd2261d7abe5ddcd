// SPDX-License-Identifier: GPL-2.0
#include "controller/prefix.h"
#include "harness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void expect(bool ok, const char *text, const char *why)
{
	if (!ok)
		printf("  '%s': %s\n", text, why);
	CU_ASSERT_TRUE(ok);
}

static const struct {
	const char *text;
	uint8_t family, length;
	const char *canonical;
} good[] = {
	/* P12: every edge of the lengths. */
	{ "0.0.0.0/0", 4, 0, "0.0.0.0/0" },
	{ "128.0.0.0/1", 4, 1, "128.0.0.0/1" },
	{ "192.0.2.254/31", 4, 31, "192.0.2.254/31" },
	{ "192.0.2.255/32", 4, 32, "192.0.2.255/32" },
	{ "192.0.2.1", 4, 32, "192.0.2.1/32" },
	{ "192.0.2.0/24", 4, 24, "192.0.2.0/24" },
	{ "::/0", 6, 0, "::/0" },
	{ "8000::/1", 6, 1, "8000::/1" },
	{ "2001:db8::/63", 6, 63, "2001:db8::/63" },
	{ "2001:db8:0:1::/64", 6, 64, "2001:db8:0:1::/64" },
	{ "2001:db8::fe/127", 6, 127, "2001:db8::fe/127" },
	{ "2001:db8::1/128", 6, 128, "2001:db8::1/128" },
	{ "2001:DB8::1", 6, 128, "2001:db8::1/128" },
	{ "::1", 6, 128, "::1/128" },
	{ "64:ff9b::192.0.2.1", 6, 128, "64:ff9b::c000:201/128" },
};

static void prefixes_are_read_and_printed_P12(void)
{
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct weir_prefix prefix = { 0 };
		struct weir_error err = { "" };
		char text[WEIR_PREFIX_TEXT];

		expect(!weir_prefix_parse(good[i].text, &prefix, &err), good[i].text, err.text);
		expect(prefix.family == good[i].family && prefix.length == good[i].length,
		       good[i].text, "another value");
		expect(!strcmp(weir_prefix_print(&prefix, text), good[i].canonical), good[i].text,
		       text);
	}
}

static const struct {
	const char *text, *says;
} bad[] = {
	/* P13 */
	{ "192.0.2.0/33", "has the prefix length '33': write a whole number from 0 to 32" },
	{ "2001:db8::/129", "from 0 to 128" },
	{ "192.0.2.0/", "prefix length ''" },
	{ "/", "not an address" },
	{ "/8", "not an address" },
	{ "192.0.2.0/ 8", "prefix length ' 8'" },
	{ "192.0.2.0 /24", "not an address" },
	{ " 192.0.2.0/24", "not an address" },
	{ "192.0.2.0/24 ", "prefix length '24 '" },
	{ "192.0.2.0/+8", "prefix length '+8'" },
	{ "192.0.2.0/-1", "prefix length '-1'" },
	{ "192.0.2.0/024", "prefix length '024'" },
	{ "192.0.2.0/0x18", "prefix length" },
	{ "192.0.2.0/4294967320", "prefix length" },
	{ "192.0.2.0/24/24", "prefix length '24/24'" },
	{ "192.0.2.0/255.255.255.0", "prefix length" },
	{ "192.0.2.1/24", "write 192.0.2.0/24 for the whole network, or 192.0.2.1" },
	{ "192.0.2.1/0", "write 0.0.0.0/0 for" },
	{ "192.0.2.1/31", "write 192.0.2.0/31 for" },
	{ "2001:db8::1/64", "write 2001:db8::/64 for the whole network, or 2001:db8::1" },
	{ "::ffff:192.0.2.1", "write it as IPv4, 192.0.2.1" },
	{ "::ffff:0:0/96", "mapped into IPv6" },
	{ "", "not an address" },
	{ "192.0.2", "not an address" },
	{ "192.0.2.256", "not an address" },
	{ "192.0.02.1", "not an address" },
	{ "fe80::1%eth0", "not an address" },
	{ "example.org", "not an address" },
	{ "1111:2222:3333:4444:5555:6666:7777:8888:9999", "not an address" },
	{ "11111111111111111111111111111111111111111111111111111111111111111111", "not an" },
};

static void bad_prefixes_are_refused_with_a_reason_P13(void)
{
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct weir_prefix prefix = { .family = 9 };
		struct weir_error err = { "" };

		expect(weir_prefix_parse(bad[i].text, &prefix, &err) == -EINVAL, bad[i].text,
		       "code");
		expect(strstr(err.text, bad[i].says), bad[i].text, err.text);
		CU_ASSERT_EQUAL(prefix.family, 9);
	}
}

static bool contains(const char *prefix, const char *address)
{
	int family = strchr(address, ':') ? 6 : 4;
	struct weir_error err = { "" };
	uint8_t binary[16] = { 0 };
	struct weir_prefix p;

	expect(!weir_prefix_parse(prefix, &p, &err), prefix, err.text);
	CU_ASSERT_EQUAL(inet_pton(family == 4 ? AF_INET : AF_INET6, address, binary), 1);
	return weir_prefix_contains(&p, (uint8_t)family, binary);
}

static void a_network_is_not_one_host_P15(void)
{
	CU_ASSERT_TRUE(contains("192.0.2.0/24", "192.0.2.1"));
	CU_ASSERT_TRUE(contains("192.0.2.0/24", "192.0.2.255"));
	CU_ASSERT_FALSE(contains("192.0.2.0/24", "192.0.3.0"));
	CU_ASSERT_TRUE(contains("0.0.0.0/0", "255.255.255.255"));
	CU_ASSERT_FALSE(contains("0.0.0.0/0", "::1"));
	CU_ASSERT_TRUE(contains("192.0.2.7", "192.0.2.7"));
	CU_ASSERT_FALSE(contains("192.0.2.7", "192.0.2.6"));
	CU_ASSERT_TRUE(contains("2001:db8::/63", "2001:db8:0:1:ffff::"));
	CU_ASSERT_FALSE(contains("2001:db8::/63", "2001:db8:0:2::"));
}

static char path[64];

static const char *write_file(const void *text, size_t length)
{
	FILE *file;

	snprintf(path, sizeof(path), "/tmp/weir-prefix-%d.txt", (int)getpid());
	file = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	CU_ASSERT_EQUAL(fwrite(text, 1, length, file), length);
	fclose(file);
	return path;
}

static void lists_take_comments_blanks_and_crlf(void)
{
	static const char text[] = "\xef\xbb\xbf# ours\r\n192.0.2.0/24\r\n\r\n"
				   "  2001:db8::/32\t# theirs\n\n#\n198.51.100.7";
	struct weir_prefixes list = { 0 };
	struct weir_error err = { "" };

	expect(!weir_prefixes_load(&list, write_file(text, sizeof(text) - 1), &err), "file",
	       err.text);
	CU_ASSERT_EQUAL(list.count, 3);
	CU_ASSERT_EQUAL(list.items[1].family, 6);
	CU_ASSERT_EQUAL(list.items[2].length, 32);
	weir_prefixes_free(&list);
	unlink(path);
}

/* U12: a line that can't be read is never logged and skipped. */
static void one_bad_line_refuses_the_file_U12(void)
{
	static const char *const lines[] = { "2001:db8:::1", "192.0.2.1/24", "192.0.2.0/24 x",
					     "x" };
	struct weir_prefixes list = { 0 };
	struct weir_error err;
	char text[128], where[96];

	CU_ASSERT_EQUAL(weir_prefixes_load(&list, write_file("192.0.2.9\n", 10), &err), 0);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		int n = snprintf(text, sizeof(text), "192.0.2.1\n#\n%s\n192.0.2.2\n", lines[i]);

		CU_ASSERT_EQUAL(weir_prefixes_load(&list, write_file(text, (size_t)n), &err),
				-EINVAL);
		snprintf(where, sizeof(where), "%s:3: '", path);
		expect(!strncmp(err.text, where, strlen(where)), lines[i], err.text);
		CU_ASSERT_EQUAL(list.count, 1);
	}
	CU_ASSERT_EQUAL(weir_prefixes_load(&list, write_file("192.0.2.1\n\0\n", 12), &err),
			-EINVAL);
	expect(strstr(err.text, ":2: a NUL byte"), "NUL", err.text);
	weir_prefixes_free(&list);
	unlink(path);
}

static void what_is_no_file_is_named(void)
{
	struct weir_prefixes list = { 0 };
	struct weir_error err;
	char fifo[64];

	CU_ASSERT_EQUAL(weir_prefixes_load(&list, "/nonexistent/list", &err), -ENOENT);
	expect(strstr(err.text, "/nonexistent/list: can't be opened: No such file"), "", err.text);
	CU_ASSERT_EQUAL(weir_prefixes_load(&list, "/tmp", &err), -EISDIR);
	expect(strstr(err.text, "/tmp: is not a regular file"), "", err.text);
	snprintf(fifo, sizeof(fifo), "/tmp/weir-fifo-%d", (int)getpid());
	CU_ASSERT_EQUAL(mkfifo(fifo, 0600), 0);
	CU_ASSERT_EQUAL(weir_prefixes_load(&list, fifo, &err), -EINVAL);
	unlink(fifo);
	CU_ASSERT_EQUAL(list.count, 0);
}

/* U16: all of a long list, not the first few; and fast enough to reload. */
static void a_million_lines_load_quickly_U16(void)
{
	enum { LINES = 1000000 };
	struct weir_prefixes list = { 0 };
	struct weir_error err = { "" };
	struct timespec from, to;
	char name[64];
	double seconds;
	FILE *file;

	snprintf(name, sizeof(name), "/tmp/weir-million-%d.txt", (int)getpid());
	file = fopen(name, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	for (unsigned int i = 0; i < LINES; i++)
		fprintf(file, i & 1 ? "10.%u.%u.%u/32\n" : "2001:db8:%x:%x:%x::/80\n", i >> 16,
			i >> 8 & 255, i & 255);
	fclose(file);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	expect(!weir_prefixes_load(&list, name, &err), name, err.text);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
	unlink(name);
	seconds = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
	printf("  %d lines in %.3f s of CPU, sanitized\n", LINES, seconds);
	CU_ASSERT_TRUE(seconds < 2);
	CU_ASSERT_EQUAL(list.count, LINES);
	CU_ASSERT_EQUAL(list.items[LINES - 1].address[3], (LINES - 1) & 255);
	weir_prefixes_free(&list);
}

WEIR_TESTS("prefix", TEST(prefixes_are_read_and_printed_P12),
	   TEST(bad_prefixes_are_refused_with_a_reason_P13), TEST(a_network_is_not_one_host_P15),
	   TEST(lists_take_comments_blanks_and_crlf), TEST(one_bad_line_refuses_the_file_U12),
	   TEST(what_is_no_file_is_named), TEST(a_million_lines_load_quickly_U16))
