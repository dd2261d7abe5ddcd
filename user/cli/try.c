// SPDX-License-Identifier: GPL-2.0
#include <string.h>
#include <time.h>

#include "cli/capture_file.h"
#include "cli/json_value.h"
#include "cli/table.h"
#include "controller/clock.h"
#include "controller/report.h"

#define KEYS_DEFAULT 10

/* "+12.345s", since the first packet. */
static void add_instant(struct weir_table *table, json_t *object, const char *field,
			long long first_ns)
{
	json_t *value = json_object_get(object, field);

	if (json_is_integer(value))
		weir_table_add(table, "+%.3fs",
			       (double)(json_integer_value(value) - first_ns) / 1e9);
	else
		weir_table_add(table, "-");
}

static void add_words(struct weir_table *table, const char *const *words)
{
	for (; *words; words++)
		weir_table_add(table, "%s", *words);
}

static void say_limits(json_t *report)
{
	static const char *const names[] = { "LIMIT",	"MODE",	 "SETTING", "PASSED",
					     "REFUSED", "SHARE", "KEYS",    "UNTRACKED",
					     "FIRST",	"LAST",	 NULL };
	struct weir_table table = { .alignment = "lllrrrrrrr" };
	long long first_ns = weir_json_number(report, "first_ns");
	json_t *limit;
	size_t i;

	add_words(&table, names);
	json_array_foreach(json_object_get(report, "limits"), i, limit)
	{
		bool monitor = !strcmp(weir_json_text(limit, "mode"), "monitor");
		long long refused = weir_json_number(limit, monitor ? "would_refuse" : "refused");
		long long all = refused + weir_json_number(limit, "admitted");

		weir_table_add(&table, "%s", weir_json_text(limit, "name"));
		weir_table_add(&table, "%s", weir_json_text(limit, "mode"));
		weir_table_add(&table, "%s", weir_json_text(limit, "setting"));
		weir_table_add(&table, "%lld", weir_json_number(limit, "admitted"));
		weir_table_add(&table, "%lld", refused);
		weir_table_add(&table, "%.3g%%", all ? 100.0 * (double)refused / (double)all : 0.0);
		weir_table_add(&table, "%lld", weir_json_number(limit, "refused_keys"));
		weir_table_add(&table, "%lld", weir_json_number(limit, "untracked"));
		add_instant(&table, limit, "first_refused_ns", first_ns);
		add_instant(&table, limit, "last_refused_ns", first_ns);
	}
	weir_table_print(&table);
}

static void say_keys(json_t *report)
{
	static const char *const names[] = { "REFUSED", "BYTES", "KEY", "LIMIT",
					     "FIRST",	"LAST",	 NULL };
	struct weir_table table = { .alignment = "rrllrr" };
	long long first_ns = weir_json_number(report, "first_ns");
	json_t *keys = json_object_get(report, "keys"), *key;
	size_t i;

	if (!json_array_size(keys))
		return;
	putchar('\n');
	add_words(&table, names);
	json_array_foreach(keys, i, key)
	{
		weir_table_add(&table, "%lld", weir_json_number(key, "refused"));
		weir_table_add(&table, "%lld", weir_json_number(key, "refused_bytes"));
		weir_table_add(&table, "%s", weir_json_text(key, "key"));
		weir_table_add(&table, "%s", weir_json_text(key, "limit"));
		add_instant(&table, key, "first_refused_ns", first_ns);
		add_instant(&table, key, "last_refused_ns", first_ns);
	}
	weir_table_print(&table);
	if (weir_json_number(report, "keys_left_out"))
		printf("and %lld more keys: --top says how many to list\n",
		       weir_json_number(report, "keys_left_out"));
}

static void say_head(json_t *report)
{
	long long first_ns = weir_json_number(report, "first_ns");
	time_t seconds = (time_t)(first_ns / 1000000000);
	char begun[64];
	struct tm local;

	localtime_r(&seconds, &local);
	strftime(begun, sizeof(begun), "%Y-%m-%d %H:%M:%S %z", &local);
	printf("%s: %lld packets, %lld bytes, %.3f s from %s%s\n", weir_json_text(report, "file"),
	       weir_json_number(report, "packets"), weir_json_number(report, "bytes"),
	       (double)(weir_json_number(report, "last_ns") - first_ns) / 1e9, begun,
	       json_is_true(json_object_get(report, "interrupted")) ? " (interrupted)" : "");
	printf("as %s: %lld in, %lld out; %lld refused\n\n", weir_json_text(report, "interface"),
	       weir_json_number(report, "in"), weir_json_number(report, "out"),
	       weir_json_number(report, "refused"));
}

/* Frames that no limit was asked about, at the first hook that packets met. */
static void say_paths(json_t *report)
{
	static const struct {
		const char *field, *words;
	} paths[] = {
		{ "unmatched", "matched no limit" },
		{ "allowed", "on the allow list" },
		{ "denied", "refused by the deny list" },
		{ "exempt", "ARP or neighbour discovery" },
		{ "not_ip", "no IP" },
		{ "malformed", "without a whole IP header" },
	};
	json_t *hooks = json_object_get(report, "frames"), *frames;
	const char *hook;

	json_object_foreach(hooks, hook, frames)
	{
		for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
			if (weir_json_number(frames, paths[i].field))
				printf("%s: %lld %s\n", hook,
				       weir_json_number(frames, paths[i].field), paths[i].words);
		}
	}
}

/* Limits in monitor mode that would have refused. */
static unsigned int count_monitors(json_t *report)
{
	unsigned int count = 0;
	json_t *limit;
	size_t i;

	json_array_foreach(json_object_get(report, "limits"), i, limit) count +=
		weir_json_number(limit, "would_refuse") > 0;
	return count;
}

static void say_notes(json_t *report)
{
	static const struct {
		const char *field, *words;
	} notes[] = {
		{ "merged", "longer than a frame of the wire: replayed as frames of 1,522 bytes" },
		{ "keyless", "refused of keys beyond the first 1,048,576: in no list of keys" },
		{ "cut", "captured in part: charged with the length they had" },
		{ "cut_headers", "of them without all their headers: capture with -s 96 or more" },
		{ "backwards", "earlier than the packet before: the clock was held" },
		{ "untimed", "without a time: the clock was held" },
		{ "too_short", "without an Ethernet header: left out" },
	};
	json_t *left_out = json_object_get(report, "left_out"), *one;
	size_t i;

	for (i = 0; i < sizeof(notes) / sizeof(notes[0]); i++) {
		if (weir_json_number(report, notes[i].field))
			printf("note: %lld packets %s\n", weir_json_number(report, notes[i].field),
			       notes[i].words);
	}
	if (count_monitors(report) > 1)
		puts("note: a packet that several limits in monitor mode would refuse counts at "
		     "each of them; in KEYS, FIRST, LAST and the list at the last only");
	if (json_is_true(json_object_get(report, "cut_short")))
		puts("note: the file ends within a packet");
	json_array_foreach(left_out, i, one)
		printf("note: %s %s is left out: it goes by this host's sockets, which a capture "
		       "hasn't\n",
		       weir_json_text(one, "kind"), weir_json_text(one, "name"));
}

static int say(const struct weir_cli *cli, json_t *report)
{
	if (cli->json || !report)
		return weir_cli_print_json(cli, report);
	say_head(report);
	say_limits(report);
	say_keys(report);
	putchar('\n');
	say_paths(report);
	say_notes(report);
	json_decref(report);
	return WEIR_EXIT_OK;
}

static json_t *report(const struct weir_cli *cli, struct weir_capture_file *file, uint64_t took_ns)
{
	const struct weir_policy *policy = file->policy;
	json_t *made = weir_replay_report(&file->replay, cli->count ? cli->count : KEYS_DEFAULT);

	made = weir_report_add(made, "schema", json_integer(WEIR_JSON_SCHEMA));
	made = weir_report_add(made, "file", json_string(file->path));
	made = weir_report_add(made, "interface",
			       json_string(policy->interface_count
						   ? policy->interfaces[file->interface].name
						   : "no interface"));
	made = weir_report_add(made, "left_out", json_incref(file->left_out));
	made = weir_report_add(made, "cut_short", json_boolean(weir_capture_is_cut(file->capture)));
	made = weir_report_add(made, "interrupted", json_boolean(weir_cli_interrupted()));
	return weir_report_add(made, "took_ns", json_integer((json_int_t)took_ns));
}

static int run(struct weir_cli *cli)
{
	uint64_t begun_ns = weir_monotonic_ns();
	struct weir_capture_file file;
	int code = weir_capture_file_replay(&file, cli, cli->arguments[0], false, NULL, NULL);

	if (!code)
		code = say(cli, report(cli, &file, weir_monotonic_ns() - begun_ns));
	weir_capture_file_close(&file);
	return code;
}

const struct weir_command weir_command_try = {
	.name = "try",
	.arguments = "FILE.pcap",
	.summary = "what a configuration would have refused of a packet capture",
	.example = "  tcpdump -i eth0 -s 96 -w busy.pcap -G 60 -W 1\n"
		   "  weir try busy.pcap -c weir.yaml --address 192.0.2.1",
	.options = WEIR_OPTION_CONFIG | WEIR_OPTION_INTERFACE | WEIR_OPTION_ADDRESSES |
		   WEIR_OPTION_TOP,
	.least = 1,
	.most = 1,
	.run = run,
};
