// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <string.h>

#include "cli/capture_file.h"
#include "cli/client.h"
#include "cli/json_value.h"
#include "cli/table.h"
#include "controller/report.h"
#include "controller/sent.h"

#define WINDOW_NS 1000000000ULL /* of a capture's rates */

static const char *limit_of(const struct weir_cli *cli)
{
	return cli->argument_count ? cli->arguments[0] : NULL;
}

/* ---- printing ---- */

static double real(json_t *object, const char *field)
{
	return json_number_value(json_object_get(object, field));
}

static void say_rates(json_t *limit)
{
	struct weir_table table = { .alignment = "rrrr" };
	json_t *rate;
	size_t i;

	weir_table_add(&table, "OF SOURCES");
	weir_table_add(&table, "AT MOST");
	weir_table_add(&table, "WOULD REFUSE: SOURCES");
	weir_table_add(&table, "PACKETS");
	json_array_foreach(json_object_get(limit, "rates"), i, rate)
	{
		const char *name = weir_json_text(rate, "quantile");

		weir_table_add(&table, "%s%s", name, strcmp(name, "max") ? "%" : "");
		weir_table_add(&table, real(rate, "per_sec") < 100 ? "%.3gpps" : "%.0fpps",
			       real(rate, "per_sec"));
		weir_table_add(&table, "%.3g%%", real(rate, "refused_sources_percent"));
		weir_table_add(&table, "%.3g%%", real(rate, "refused_packets_percent"));
	}
	weir_table_print(&table);
}

static void say_proposal(json_t *limit, json_t *proposal)
{
	printf("proposal: %.0f times the rate of the 99%%, and 2 s of it as burst; it would refuse "
	       "%.3g%% of sources and %.3g%% of packets\n",
	       real(proposal, "headroom"), real(proposal, "refused_sources_percent"),
	       real(proposal, "refused_packets_percent"));
	if (json_is_true(json_object_get(proposal, "few_sources")))
		puts("note: of fewer than 100 sources the 99% are all, so the heaviest one alone "
		     "makes the proposal; if that is a flooder, choose by the table");
	if (real(limit, "unseen_keys") > 0)
		printf("note: %.0f keys came and went between two looks: not in these figures\n",
		       real(limit, "unseen_keys"));
	printf("\n    %s\n", weir_json_text(proposal, "command"));
}

static int say(const struct weir_cli *cli, json_t *report)
{
	json_t *limit;
	size_t i;

	if (cli->json || !report)
		return weir_cli_print_json(cli, report);
	json_array_foreach(json_object_get(report, "limits"), i, limit)
	{
		json_t *proposal = json_object_get(limit, "proposal");

		printf("%s%s (%s, %s): ", i ? "\n" : "", weir_json_text(limit, "name"),
		       weir_json_text(limit, "mode"), weir_json_text(limit, "setting"));
		if (!json_is_object(proposal)) {
			printf("%s\n", weir_json_text(limit, "reason"));
			continue;
		}
		printf("%.0f source%s in %.0f s, each at its busiest %.0f s\n",
		       real(limit, "sources"), real(limit, "sources") == 1 ? "" : "s",
		       real(limit, "seen_ns") / 1e9,
		       real(limit, "window_ns") / 1e9);
		say_rates(limit);
		say_proposal(limit, proposal);
	}
	json_decref(report);
	return WEIR_EXIT_OK;
}

/* ---- from a capture ---- */

/* A walk over the replay's ledger at the end of each second in which there were packets. */
struct watch {
	struct weir_scan *scan;
	struct weir_sent sent;
	uint64_t base_ns; /* in the capture's time */
	uint64_t last_ns; /* of the packet before */
};

static void look(struct watch *watch, const struct weir_replay *replay, uint64_t now_ns)
{
	weir_scan_compare(watch->scan, 0, 0, &watch->sent);
	weir_scan_begin(watch->scan);
	weir_sent_begin(&watch->sent, &replay->dataplane, weir_scan_limits(watch->scan),
			watch->base_ns, now_ns);
	while (weir_scan_step(watch->scan, UINT32_MAX, NULL, 0))
		;
	watch->base_ns = now_ns;
}

static int step(void *context, struct weir_replay *replay, const struct weir_capture_packet *packet,
		struct weir_error *err)
{
	struct watch *watch = context;
	uint64_t seconds;

	if (!watch->scan) {
		if (weir_scan_new(&watch->scan, &replay->dataplane, 1))
			return weir_error_set(err, -ENOMEM, "out of memory");
		watch->base_ns = watch->last_ns = packet->time_ns;
	}
	if (!packet->timed || packet->time_ns < watch->last_ns)
		return 0;
	watch->last_ns = packet->time_ns;
	seconds = (packet->time_ns - watch->base_ns) / WINDOW_NS;
	if (seconds)
		look(watch, replay, watch->base_ns + WINDOW_NS);
	/* Nothing came in the seconds between. */
	if (seconds > 1)
		watch->base_ns += (seconds - 1) * WINDOW_NS;
	return 0;
}

static int from_capture(const struct weir_cli *cli)
{
	struct watch watch = { 0 };
	struct weir_capture_file file;
	const char *name = limit_of(cli);
	int slot = WEIR_NO_LIMIT, code;

	code = weir_capture_file_replay(&file, cli, cli->pcap, true, step, &watch);
	if (!code && name)
		slot = weir_report_find_slot(&file.replay.dataplane, name);
	if (slot < 0)
		code = weir_cli_fail_text(cli, WEIR_EXIT_REFUSED, "there is no limit '%s' in %s",
					  name, file.policy->file);
	if (!code) {
		look(&watch, &file.replay, watch.base_ns + WINDOW_NS);
		code = say(cli,
			   weir_sent_report(&watch.sent, &file.replay.dataplane, (uint32_t)slot));
	}
	weir_scan_free(watch.scan);
	weir_sent_free(&watch.sent);
	weir_capture_file_close(&file);
	return code;
}

static int run(struct weir_cli *cli)
{
	json_t *arguments, *result;
	int code;

	if (cli->pcap)
		return from_capture(cli);
	if (cli->config || cli->interface || cli->addresses)
		return weir_cli_fail_text(cli, WEIR_EXIT_USAGE,
					  "--config, --interface and --address are of a capture: "
					  "give its --pcap");
	arguments = json_object();
	if (limit_of(cli))
		json_object_set_new(arguments, "limit", json_string(limit_of(cli)));
	code = weir_client_ask(cli, "suggest", arguments, &result);
	return code ? code : say(cli, result);
}

const struct weir_command weir_command_suggest = {
	.name = "suggest",
	.arguments = "[NAME]",
	.summary = "a rate for each bucket, from what its sources have sent so far",
	.example = "  weir suggest per-ip\n  weir suggest --pcap busy.pcap -c weir.yaml",
	.options = WEIR_OPTION_PCAP | WEIR_OPTION_CONFIG | WEIR_OPTION_INTERFACE |
		   WEIR_OPTION_ADDRESSES | WEIR_OPTION_SOCKET,
	.most = 1,
	.run = run,
};
