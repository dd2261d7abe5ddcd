// SPDX-License-Identifier: GPL-2.0
#include "controller/prefix.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/file.h"

#define PREFIX_HELP "write 192.0.2.0/24, 192.0.2.1, 2001:db8::/48 or 2001:db8::1"

/* Zeroes the bits behind the prefix length; says whether any was set. */
static bool clear_host_bits(struct weir_prefix *prefix)
{
	unsigned int bytes = prefix->family == 4 ? 4 : 16;
	bool any = false;

	for (unsigned int i = 0; i < bytes; i++) {
		unsigned int bits = prefix->length > i * 8 ? prefix->length - i * 8 : 0;
		uint8_t mask = bits >= 8 ? 0 : (uint8_t)(0xff >> bits);

		any |= prefix->address[i] & mask;
		prefix->address[i] &= (uint8_t)~mask;
	}
	return any;
}

/* The digits behind the slash: no sign, no leading zero, at most max. */
static int length_parse(const char *text, unsigned int max)
{
	unsigned int n = 0;

	if (!*text || strlen(text) > 3 || (*text == '0' && text[1]))
		return -EINVAL;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -EINVAL;
		n = n * 10 + (unsigned int)(*text - '0');
	}
	return n <= max ? (int)n : -EINVAL;
}

static int address_parse(const char *text, const char *address, struct weir_prefix *prefix,
			 struct weir_error *err)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (inet_pton(AF_INET, address, prefix->address) == 1) {
		prefix->family = 4;
		return 0;
	}
	if (inet_pton(AF_INET6, address, prefix->address) != 1)
		return weir_error_set(err, -EINVAL,
				      "'%.80s' is not an address or prefix: " PREFIX_HELP, text);
	prefix->family = 6;
	if (memcmp(prefix->address, mapped, sizeof(mapped)))
		return 0;
	return weir_error_set(err, -EINVAL,
			      "'%s' is an IPv4 address mapped into IPv6, which no packet carries: "
			      "write it as IPv4, %u.%u.%u.%u with a length of 0 to 32",
			      text, prefix->address[12], prefix->address[13], prefix->address[14],
			      prefix->address[15]);
}

int weir_prefix_parse(const char *text, struct weir_prefix *prefix, struct weir_error *err)
{
	struct weir_prefix p = { 0 };
	char address[INET6_ADDRSTRLEN], canonical[WEIR_PREFIX_TEXT];
	const char *slash = strchr(text, '/');
	size_t size = slash ? (size_t)(slash - text) : strlen(text);
	int length, max, rc;

	if (!size || size >= sizeof(address))
		return weir_error_set(err, -EINVAL,
				      "'%.80s' is not an address or prefix: " PREFIX_HELP, text);
	memcpy(address, text, size);
	address[size] = 0;
	rc = address_parse(text, address, &p, err);
	if (rc)
		return rc;
	max = p.family == 4 ? 32 : 128;
	length = slash ? length_parse(slash + 1, (unsigned int)max) : max;
	if (length < 0)
		return weir_error_set(
			err, -EINVAL,
			"'%.80s' has the prefix length '%.20s': write a whole number from "
			"0 to %d",
			text, slash + 1, max);
	p.length = (uint8_t)length;
	if (clear_host_bits(&p))
		return weir_error_set(err, -EINVAL,
				      "'%s' has bits set behind its length: write %s for the whole "
				      "network, or %s for the one address",
				      text, weir_prefix_print(&p, canonical), address);
	*prefix = p;
	return 0;
}

char *weir_prefix_print(const struct weir_prefix *prefix, char *text)
{
	size_t used;

	inet_ntop(prefix->family == 4 ? AF_INET : AF_INET6, prefix->address, text,
		  INET6_ADDRSTRLEN);
	used = strlen(text);
	snprintf(text + used, WEIR_PREFIX_TEXT - used, "/%u", prefix->length);
	return text;
}

bool weir_prefix_equal(const struct weir_prefix *a, const struct weir_prefix *b)
{
	return !memcmp(a, b, sizeof(*a));
}

bool weir_prefix_contains(const struct weir_prefix *prefix, uint8_t family, const void *address)
{
	struct weir_prefix p = { .family = family, .length = prefix->length };

	if (family != prefix->family)
		return false;
	memcpy(p.address, address, family == 4 ? 4 : 16);
	clear_host_bits(&p);
	return weir_prefix_equal(&p, prefix);
}

int weir_prefixes_add(struct weir_prefixes *list, const struct weir_prefix *prefix,
		      struct weir_error *err)
{
	if (list->count == WEIR_PREFIX_LIST_MAX)
		return weir_error_set(err, -E2BIG, "more than %u prefixes in one list",
				      WEIR_PREFIX_LIST_MAX);
	if (list->count == list->room) {
		size_t room = list->room ? list->room * 2 : 16;
		void *items = reallocarray(list->items, room, sizeof(*list->items));

		if (!items)
			return weir_error_set(err, -ENOMEM, "out of memory for %zu prefixes", room);
		list->items = items;
		list->room = room;
	}
	list->items[list->count++] = *prefix;
	return 0;
}

void weir_prefixes_free(struct weir_prefixes *list)
{
	free(list->items);
	*list = (struct weir_prefixes){ 0 };
}

static char *trim(char *line, size_t length)
{
	char *comment = memchr(line, '#', length);
	char *end = comment ? comment : line + length;

	while (end > line && strchr(" \t\r\n", end[-1]) && end[-1])
		end--;
	*end = 0;
	return line + strspn(line, " \t");
}

static int load_line(struct weir_prefixes *list, char *line, size_t length, struct weir_error *err)
{
	struct weir_prefix prefix;
	char *text;
	int rc;

	if (memchr(line, 0, length))
		return weir_error_set(err, -EINVAL, "a NUL byte: this is not a list of prefixes");
	text = trim(line, length);
	if (!*text)
		return 0;
	rc = weir_prefix_parse(text, &prefix, err);
	return rc ? rc : weir_prefixes_add(list, &prefix, err);
}

int weir_prefixes_load(struct weir_prefixes *list, const char *path, struct weir_error *err)
{
	size_t before = list->count, size = 0, number = 0;
	char *line = NULL;
	ssize_t length;
	FILE *file;
	int rc = weir_file_open(path, &file, err);

	if (rc)
		return rc;
	while ((length = getline(&line, &size, file)) >= 0) {
		/* A mark that some editors begin a file with. */
		size_t mark = number++ || strncmp(line, "\xef\xbb\xbf", 3) ? 0 : 3;

		rc = load_line(list, line + mark, (size_t)length - mark, err);
		if (rc) {
			weir_error_prefix(err, "%s:%zu: ", path, number);
			goto out;
		}
	}
	if (ferror(file))
		rc = weir_error_set(err, -EIO, "%s: can't be read", path);
out:
	if (rc)
		list->count = before;
	free(line);
	fclose(file);
	return rc;
}
