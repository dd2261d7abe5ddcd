// SPDX-License-Identifier: GPL-2.0
/*
 * replay-vectors FILE…: replays vectors (shared/vectors/README.md has the format) against
 * libweir. Prints the first wrong answers with what was expected, then `N lines, M wrong`.
 * Exit 0 if none is wrong; 1 if any is, or a line can't be parsed (blank lines are skipped).
 *
 * One table says it all: what each operation takes, what it answers, and the call.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vector-values.h"
#include "weir/weir.h"

#define WRONG_SHOWN 20

struct replay {
	const char *file;
	unsigned long line, lines, wrong;
	const char *object; /* the primitive that the lines below act on; NULL: none yet */
	struct weir_window *window;
	struct weir_breaker *breaker;
	uint64_t promises; /* not settled */
	struct weir_shedder *shedder;
	struct weir_ticket *tickets;
	size_t ticket_count;
	struct weir_bucket bucket;
	struct weir_sliding *sliding;
	struct weir_period period;
	struct weir_gate gate;
	struct weir_backoff backoff;
	struct weir_deadline deadline;
	struct weir_governor governor;
};

/* The operations: arguments in, answer fields out. False: this one can't be done. */
typedef bool (*operation)(struct replay *r, const struct value *in, struct value *out);

#define OPERATION(name)                                                                            \
	static bool name(struct replay *r __attribute__((unused)),                                 \
			 const struct value *in __attribute__((unused)),                           \
			 struct value *out __attribute__((unused)))
/* The calls that are one statement. */
#define SIMPLE(name, ...)                                                                          \
	OPERATION(name)                                                                            \
	{                                                                                          \
		__VA_ARGS__;                                                                       \
		return true;                                                                       \
	}

OPERATION(window_make)
{
	weir_window_free(r->window);
	r->window = must(weir_window_new((int32_t)in[0].i, in[1].i, in[2].i,
					 sizeof(struct weir_tally), NULL));
	return true;
}

SIMPLE(window_width, out[0].i = weir_window_width(r->window))
SIMPLE(window_size, out[0].i = weir_window_size(r->window))
SIMPLE(window_add, weir_tally_add(weir_window_slot(r->window, in[0].i), (enum weir_outcome)in[1].i))

static void list_tally(void *context, const void *bucket)
{
	const struct weir_tally *tally = bucket;
	struct value *out = context;
	int64_t *list = must(realloc(out->list, (out->count + 4) * sizeof(*list)));

	memcpy(list + out->count,
	       (int64_t[]){ tally->total, tally->success, tally->failure, tally->drop },
	       4 * sizeof(*list));
	out->list = list;
	out->count += 4;
}
SIMPLE(window_each, weir_window_each(r->window, in[0].i, in[1].i, list_tally, &out[0]))

OPERATION(breaker_make)
{
	struct weir_sre sre = { in[0].d, in[1].d, in[2].d, in[3].i, (int32_t)in[4].i, in[5].i };

	weir_breaker_free(r->breaker);
	r->breaker = must(weir_breaker_new(&sre, in[6].i));
	r->promises = 0;
	return true;
}

SIMPLE(breaker_ratio, out[0].d = weir_breaker_ratio(r->breaker, in[0].i))
OPERATION(breaker_allow)
{
	struct weir_promise promise;

	out[0].i = weir_breaker_allow(r->breaker, in[0].i, in[1].d, &promise);
	r->promises += (uint64_t)out[0].i;
	return true;
}

static bool settle(struct replay *r, bool (*how)(struct weir_promise *, int64_t), int64_t now_ns)
{
	struct weir_promise promise = { .breaker = r->breaker };

	if (!r->promises)
		return false;
	r->promises--;
	return how(&promise, now_ns);
}
OPERATION(breaker_pass)
{
	return settle(r, weir_promise_pass, in[0].i);
}
OPERATION(breaker_fail)
{
	return settle(r, weir_promise_fail, in[0].i);
}

OPERATION(shedder_make)
{
	struct weir_shed shed = { (int32_t)in[0].i, in[1].i, (int32_t)in[2].i, in[3].i,
				  in[4].d,	    in[5].i, in[6].d };

	weir_shedder_free(r->shedder);
	r->shedder = must(weir_shedder_new(&shed, in[7].i));
	r->ticket_count = 0;
	return true;
}

OPERATION(shedder_allow)
{
	size_t n = r->ticket_count;
	bool allowed;

	r->tickets = must(realloc(r->tickets, (n + 1) * sizeof(*r->tickets)));
	allowed = weir_shedder_allow(r->shedder, in[0].i, (int32_t)in[1].i, &r->tickets[n]);
	r->ticket_count += allowed;
	out[0].i = allowed ? (int64_t)n : -1;
	return true;
}

SIMPLE(shedder_flying, out[0].i = weir_shedder_flying(r->shedder))
OPERATION(shedder_pass)
{
	return in[0].i >= 0 && (uint64_t)in[0].i < r->ticket_count &&
	       weir_ticket_pass(&r->tickets[in[0].i], in[1].i);
}
OPERATION(shedder_fail)
{
	return in[0].i >= 0 && (uint64_t)in[0].i < r->ticket_count &&
	       weir_ticket_fail(&r->tickets[in[0].i]);
}

SIMPLE(bucket_make, r->bucket = weir_bucket_new(in[0].d, in[1].d, in[2].i))
SIMPLE(bucket_take, out[0].i = weir_bucket_take(&r->bucket, in[0].i, in[1].d))
SIMPLE(bucket_next, out[0].i = weir_bucket_next(&r->bucket, in[0].i, in[1].d))
SIMPLE(bucket_tokens, out[0].d = weir_bucket_tokens(&r->bucket, in[0].i))

OPERATION(sliding_make)
{
	weir_sliding_free(r->sliding);
	r->sliding = must(weir_sliding_new((int32_t)in[0].i, in[1].i));
	return true;
}

SIMPLE(sliding_take, out[0].i = weir_sliding_take(r->sliding, in[0].i))
SIMPLE(sliding_left, out[0].i = weir_sliding_left(r->sliding, in[0].i))
SIMPLE(sliding_next, out[0].i = weir_sliding_next(r->sliding, in[0].i))

SIMPLE(period_make, r->period = weir_period_new((int32_t)in[0].i, in[1].i, in[2].i))
SIMPLE(period_take, out[0].i = weir_period_take(&r->period, in[0].i))
SIMPLE(period_left, out[0].i = weir_period_left(&r->period, in[0].i))
SIMPLE(period_next, out[0].i = weir_period_next(&r->period, in[0].i))

SIMPLE(gate_make, r->gate = weir_gate_new((int32_t)in[0].i))
SIMPLE(gate_enter, out[0].i = weir_gate_enter(&r->gate))
SIMPLE(gate_leave, weir_gate_leave(&r->gate))
SIMPLE(gate_held, out[0].i = weir_gate_held(&r->gate))

OPERATION(backoff_make)
{
	struct weir_jitter jitter = { (enum weir_jitter_kind)in[4].i, in[5].d };

	r->backoff = (struct weir_backoff){ in[0].i, in[1].d, in[2].i, (int32_t)in[3].i, jitter };
	return true;
}

SIMPLE(backoff_ceiling, out[0].i = weir_backoff_ceiling(&r->backoff, (int32_t)in[0].i))
SIMPLE(backoff_delay,
       out[0].i = weir_backoff_delay(&r->backoff, (int32_t)in[0].i, in[1].d, in[2].i))
SIMPLE(backoff_more, out[0].i = weir_backoff_more(&r->backoff, (int32_t)in[0].i))
OPERATION(backoff_schedule)
{
	const double *draws = in[0].list;
	size_t count = weir_backoff_schedule(&r->backoff, draws, in[0].count, NULL, 0);

	out[0].count = count;
	out[0].list = must(calloc(count + 1, sizeof(int64_t)));
	weir_backoff_schedule(&r->backoff, draws, in[0].count, out[0].list, count);
	return true;
}

SIMPLE(deadline_make, r->deadline = weir_deadline_start(in[0].i, in[1].i))
SIMPLE(deadline_expired, out[0].i = weir_deadline_expired(&r->deadline, in[0].i))
OPERATION(deadline_remaining)
{
	if (!weir_deadline_remaining(&r->deadline, in[0].i, &out[0].i))
		out[0].i = -1;
	return true;
}

OPERATION(governor_decide)
{
	struct weir_decision decision =
		weir_governor_decide(in[0].d, in[1].d, in[2].d, in[3].d, in[4].d, in[5].d, in[6].d);

	out[0].i = decision.kind;
	out[1].d = decision.offer;
	return true;
}

OPERATION(governor_memory)
{
	bool clears;

	out[0].i = weir_governor_memory_clear_step((int32_t)in[0].i, in[1].i, &clears);
	out[1].i = clears;
	return true;
}

OPERATION(governor_make)
{
	struct weir_governor_conf conf = { in[0].d, in[1].d, in[2].d, in[3].d, in[4].d, in[5].i };
	struct weir_attempts none = { 0, 0 };

	r->governor = weir_governor_new(&conf, NULL, in[6].i, none);
	return true;
}

SIMPLE(governor_offer, out[0].d = weir_governor_offer(&r->governor))
OPERATION(governor_tick)
{
	struct weir_attempts counts = { (uint64_t)in[1].i, (uint64_t)in[2].i };
	struct weir_decision decision = weir_governor_tick(&r->governor, in[0].i, counts);

	out[0].i = decision.kind;
	out[1].d = decision.offer;
	return true;
}

/*
 * What an operation takes and answers, a letter a value (vector-values.h). One named like its
 * object makes a new one; one without an object needs none.
 */
static const struct entry {
	const char *object, *word, *takes, *answers;
	operation run;
} entries[] = {
	{ "window", "window", "4ii", "", window_make },
	{ "window", "width", "", "i", window_width },
	{ "window", "size", "", "i", window_size },
	{ "window", "add", "io", "", window_add },
	{ "window", "each", "ib", "e", window_each },
	{ "breaker", "breaker", "dddi4ii", "", breaker_make },
	{ "breaker", "allow", "id", "b", breaker_allow },
	{ "breaker", "pass", "i", "", breaker_pass },
	{ "breaker", "fail", "i", "", breaker_fail },
	{ "breaker", "ratio", "i", "d", breaker_ratio },
	{ "shedder", "shedder", "4i4ididi", "", shedder_make },
	{ "shedder", "allow", "i4", "i", shedder_allow },
	{ "shedder", "pass", "ii", "", shedder_pass },
	{ "shedder", "fail", "i", "", shedder_fail },
	{ "shedder", "flying", "", "i", shedder_flying },
	{ "bucket", "bucket", "ddi", "", bucket_make },
	{ "bucket", "take", "id", "b", bucket_take },
	{ "bucket", "next", "id", "~", bucket_next },
	{ "bucket", "tokens", "i", "t", bucket_tokens },
	{ "sliding", "sliding", "4i", "", sliding_make },
	{ "sliding", "take", "i", "b", sliding_take },
	{ "sliding", "left", "i", "i", sliding_left },
	{ "sliding", "next", "i", "i", sliding_next },
	{ "period", "period", "4ib", "", period_make },
	{ "period", "take", "i", "q", period_take },
	{ "period", "left", "i", "i", period_left },
	{ "period", "next", "i", "i", period_next },
	{ "gate", "gate", "4", "", gate_make },
	{ "gate", "enter", "", "b", gate_enter },
	{ "gate", "leave", "", "", gate_leave },
	{ "gate", "held", "", "i", gate_held },
	{ "backoff", "backoff", "idi4jd", "", backoff_make },
	{ "backoff", "ceiling", "4", "~", backoff_ceiling },
	{ "backoff", "delay", "4di", "~", backoff_delay },
	{ "backoff", "more", "4", "b", backoff_more },
	{ "backoff", "schedule", "l", "s", backoff_schedule },
	{ "deadline", "deadline", "ii", "", deadline_make },
	{ "deadline", "expired", "i", "b", deadline_expired },
	{ "deadline", "remaining", "i", "r", deadline_remaining },
	{ NULL, "decide", "ddddddn", "kd", governor_decide },
	{ NULL, "memory", "4b", "ib", governor_memory },
	{ "governor", "governor", "dddddii", "", governor_make },
	{ "governor", "offer", "", "d", governor_offer },
	{ "governor", "tick", "icc", "kd", governor_tick },
};

#define ENTRY_COUNT (sizeof(entries) / sizeof(entries[0]))

static bool refuse(const struct replay *r, const char *text, const char *why)
{
	fprintf(stderr, "%s:%lu: can't parse \"%s\": %s\n", r->file, r->line, text, why);
	return false;
}

static const struct entry *find(const struct replay *r, const char *word)
{
	for (size_t i = 0; i < ENTRY_COUNT; i++) {
		const struct entry *entry = &entries[i];

		if (strcmp(entry->word, word))
			continue;
		if (!entry->object || !strcmp(entry->object, word))
			return entry;
		if (r->object && !strcmp(entry->object, r->object))
			return entry;
	}
	return NULL;
}

static void judge(struct replay *r, const struct entry *entry, const char *line,
		  const struct value *want, const struct value *got)
{
	size_t count = strlen(entry->answers), i = 0;

	while (i < count && same(entry->answers[i], &want[i], &got[i]))
		i++;
	if (i == count || r->wrong++ >= WRONG_SHOWN)
		return;
	printf("%s:%lu: %s, got", r->file, r->line, line);
	for (i = 0; i < count; i++)
		print_value(entry->answers[i], &got[i]);
	putchar('\n');
}

/* "WORD ARGUMENT… = ANSWER…": replay it. False: it can't be parsed, and says why. */
static bool replay_line(struct replay *r, char *text, const char *line)
{
	struct value in[FIELDS_MAX] = { { 0 } }, want[FIELDS_MAX] = { { 0 } },
		     got[FIELDS_MAX] = { { 0 } };
	char *answer = strstr(text, " = "), *word, *arguments;
	const struct entry *entry;
	const char *why = NULL;

	if (answer) {
		*answer = '\0';
		answer += 3;
	}
	arguments = text;
	word = strsep(&arguments, " ");
	entry = find(r, word);
	if (!entry)
		return refuse(r, line,
			      r->object ? "no such operation of this primitive"
					: "no primitive was made yet, or no such one");
	if (!!answer != !!*entry->answers)
		why = answer ? "this operation has no answer" : "the answer is missing";
	else if (!parse_fields(entry->takes, arguments, in))
		why = "wrong number, kind or range of arguments";
	else if (!parse_fields(entry->answers, answer, want))
		why = "the answer is not of the right kind";
	else if (entry->object && !strcmp(entry->object, word))
		r->object = entry->object;
	if (!why && !entry->run(r, in, got))
		why = "no such call, or it was settled before";
	if (!why) {
		r->lines++;
		judge(r, entry, line, want, got);
	}
	drop(in);
	drop(want);
	drop(got);
	return why ? refuse(r, line, why) : true;
}

static bool replay_file(struct replay *r, const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = NULL, *line;
	size_t room = 0;
	ssize_t length;
	bool ok = file;

	if (!file) {
		fprintf(stderr, "replay-vectors: can't open %s: %s\n", path, strerror(errno));
		return false;
	}
	r->file = path;
	r->object = NULL;
	for (r->line = 1; ok && (length = getline(&text, &room, file)) >= 0; r->line++) {
		if (length && text[length - 1] == '\n')
			text[--length] = '\0';
		if (strlen(text) != (size_t)length)
			ok = refuse(r, text, "a zero byte in the line");
		if (!ok || !length)
			continue;
		line = must(strdup(text));
		ok = replay_line(r, text, line);
		free(line);
	}
	if (ferror(file)) {
		fprintf(stderr, "replay-vectors: can't read %s: %s\n", path, strerror(errno));
		ok = false;
	}
	free(text);
	fclose(file);
	return ok;
}

int main(int argc, char **argv)
{
	struct replay r = { 0 };
	bool ok = true;

	if (argc < 2) {
		fprintf(stderr, "usage: replay-vectors FILE...\n");
		return 64;
	}
	for (int i = 1; i < argc; i++)
		ok = replay_file(&r, argv[i]) && ok;
	printf("%lu lines, %lu wrong\n", r.lines, r.wrong);
	weir_window_free(r.window);
	weir_breaker_free(r.breaker);
	weir_shedder_free(r.shedder);
	weir_sliding_free(r.sliding);
	free(r.tickets);
	return ok && !r.wrong ? 0 : 1;
}
