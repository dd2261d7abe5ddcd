// SPDX-License-Identifier: GPL-2.0
/*
 * Random edits of real configurations (U15): nothing crashes under the sanitizers, every refusal
 * is a sentence, and whatever is accepted prints, loads back and is the same policy.
 */
#include "controller/policy.h"
#include "harness.h"
#include "policy_roundtrip.h"

#include <errno.h>

enum { ROUNDS = 12000, TEXT_MAX = 8192 };

static const char *const paths[] = { "packaging/weir.yaml", "packaging/examples/dns.yaml",
				     "packaging/examples/ntp.yaml", "packaging/examples/web.yaml" };
static char originals[4][TEXT_MAX / 2];

/* Words that land in the right place more often than random bytes do. */
static const char *const words[] = {
	"0",	    "1",       "-1",	    "65536",	 "18446744073709551616",
	"1e3",	    "5%",      "1.5",	    "10bps",	 "1/d",
	"1mbyte",   "200mbit", "block",	    "unlimited", "source",
	"flow",	    "none",    "{}",	    "[]",	 "[",
	"}",	    ":",       "~",	    "null",	 "&a ",
	"*a",	    "!!str ",  "\n---\n",   "\t",	 "\"",
	"'",	    "#",       "::/0",	    "0.0.0.0/0", "10.0.0.0/33",
	"syn,!ack", "icmp",    "true",	    "1s",	 "0s",
	"400d",	    "monitor", "tc-egress", "\\0",	 "100 refusals in 10s",
	"- ",	    "\n  - ",  "\n    ",    ", ",	 "? ",
	"|\n",	    ">\n",     "%",	    "\xff",	 "\x01",
};

static uint64_t random_state = 0x2545f4914f6cdd1dULL;

static size_t random_below(size_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (size_t)(random_state >> 11) % n;
}

static void load_originals(void)
{
	for (size_t i = 0; i < 4; i++) {
		FILE *file = fopen(paths[i], "r");
		size_t length;

		CU_ASSERT_PTR_NOT_NULL_FATAL(file);
		length = fread(originals[i], 1, sizeof(originals[i]) - 1, file);
		CU_ASSERT_TRUE(length > 100 && length < sizeof(originals[i]) - 1);
		originals[i][length] = 0;
		fclose(file);
	}
}

/* Replaces `cut` bytes at `at` by `length` others, as far as there is room. */
static void splice(char *text, size_t *size, size_t at, size_t cut, const char *by, size_t length)
{
	if (*size - cut + length > TEXT_MAX)
		return;
	memmove(text + at + length, text + at + cut, *size - at - cut);
	memcpy(text + at, by, length);
	*size += length - cut;
}

static void edit(char *text, size_t *size)
{
	size_t at = random_below(*size), rest = *size - at,
	       cut = random_below(rest < 12 ? rest : 12);
	const char *word = words[random_below(sizeof(words) / sizeof(words[0]))];
	const char *other = originals[random_below(4)];
	char byte = (char)random_below(256);
	size_t from = random_below(strlen(other)), span = random_below(40);

	if (span > strlen(other) - from)
		span = strlen(other) - from;
	switch (random_below(6)) {
	case 0:
		splice(text, size, at, 1, &byte, 1);
		break;
	case 1:
		splice(text, size, at, cut, "", 0);
		break;
	case 2:
		splice(text, size, at, 0, other + from, span);
		break;
	case 3: /* a number for a number */
		while (at < *size && (text[at] < '0' || text[at] > '9'))
			at++;
		if (at < *size)
			splice(text, size, at, 1, &"0123456789"[random_below(10)], 1);
		break;
	default:
		splice(text, size, at, cut, word, strlen(word));
	}
	if (!*size)
		text[(*size)++] = ' ';
}

static void try_one(const char *text, size_t size, unsigned int *accepted)
{
	struct weir_policy *policy = NULL;
	struct weir_error err = { "" };
	const char *wrong;
	int rc = weir_policy_load_text(text, size, "w.yaml", &policy, &err);

	if (rc) {
		bool said = !strncmp(err.text, "w.yaml:", 7) && strlen(err.text) > 12;

		if (!said)
			printf("  %d '%s'\n", rc, err.text);
		CU_ASSERT_TRUE(said && rc < 0 && !policy);
		return;
	}
	++*accepted;
	wrong = weir_roundtrip(policy, &err);
	if (wrong)
		printf("---\n%.*s\n---\n  %s: %s\n", (int)size, text, wrong, err.text);
	CU_ASSERT_PTR_NULL(wrong);
	weir_policy_free(policy);
}

static void random_edits_are_refused_or_kept_U15(void)
{
	unsigned int accepted = 0;

	load_originals();
	for (int i = 0; i < ROUNDS; i++) {
		static char text[TEXT_MAX];
		size_t size = strlen(strcpy(text, originals[random_below(4)]));

		for (size_t edits = 1 + random_below(3); edits; edits--)
			edit(text, &size);
		try_one(text, size, &accepted);
	}
	printf("  %u of %d edited files were accepted\n", accepted, ROUNDS);
	CU_ASSERT_TRUE(accepted > ROUNDS / 50); /* else the edits test nothing but YAML */
}

/* U15: a file cut off anywhere. */
static void every_truncation_is_refused_or_kept_U15(void)
{
	unsigned int accepted = 0;

	load_originals();
	for (size_t i = 0; i < 4; i++) {
		for (size_t size = 0; size < strlen(originals[i]); size++)
			try_one(originals[i], size, &accepted);
	}
	CU_ASSERT_TRUE(accepted > 0);
}

WEIR_TESTS("policy_random", TEST(random_edits_are_refused_or_kept_U15),
	   TEST(every_truncation_is_refused_or_kept_U15))
