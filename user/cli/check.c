// SPDX-License-Identifier: GPL-2.0
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "controller/control.h"
#include "controller/engine.h"
#include "controller/overrides.h"
#include "controller/own.h"
#include "controller/report.h"
#include "weir/place.h"

/* Rounded up to a power of two: of a ring, 0 for none. */
static uint64_t ring_of(const struct weir_policy_limit *limit)
{
	return limit->sliding.given ? weir_ring_capacity((uint32_t)limit->sliding.quota) : 0;
}

static uint64_t own_bytes(const struct weir_policy *policy, const struct weir_policy_limit *limit)
{
	return weir_own_bytes(weir_policy_own_keys(policy, limit) / WEIR_WAYS, ring_of(limit));
}

static void say_own(const struct weir_policy *policy)
{
	for (size_t i = 0; i < policy->limit_count; i++) {
		const struct weir_policy_limit *limit = &policy->limits[i];
		uint64_t keys = weir_policy_own_keys(policy, limit);

		if (keys)
			printf("# limit %s: %llu places of its own, %.1f MB of kernel memory\n",
			       limit->name, (unsigned long long)keys,
			       (double)own_bytes(policy, limit) / 1e6);
	}
}

/* ---- what the file doesn't say ---- */

static void note(void *notes, const char *line)
{
	json_array_append_new(notes, json_string(line));
}

/* What a start or reload would meet here, now: the policy, once it is shown, with what is kept. */
static json_t *take_notes(const struct weir_cli *cli, struct weir_policy *policy)
{
	const char *overrides = cli->overrides ? cli->overrides : WEIR_OVERRIDES_DEFAULT;
	json_t *notes = json_array();
	struct weir_error err;

	if (!policy->interface_count)
		note(notes, "interfaces: none, so nothing is limited: name one");
	for (size_t i = 0; i < policy->interface_count; i++) {
		const char *name = policy->interfaces[i].name;

		if (if_nametoindex(name))
			continue;
		weir_error_set(&err, 0, "interface %s: there is none of this name here now", name);
		note(notes, err.text);
	}
	if (weir_overrides_apply(overrides, policy, note, notes, &err))
		note(notes, err.text);
	return notes;
}

static void say_notes(json_t *notes)
{
	json_t *line;
	size_t i;

	json_array_foreach(notes, i, line)
		printf("# %s\n", json_string_value(line));
	json_decref(notes);
}

static int say_text(const struct weir_cli *cli, struct weir_policy *policy,
		    const struct weir_shape *shape)
{
	if (weir_policy_print(policy, stdout))
		return WEIR_EXIT_FAILED;
	printf("# ledger: %u places, %.1f MB of kernel memory on %u CPUs\n",
	       shape->sets * WEIR_WAYS, (double)weir_shape_bytes(shape) / 1e6, shape->cpus);
	say_own(policy);
	say_notes(take_notes(cli, policy));
	return WEIR_EXIT_OK;
}

static int say_json(const struct weir_cli *cli, struct weir_policy *policy,
		    const struct weir_shape *shape)
{
	char *text = NULL;
	size_t size = 0;
	uint64_t own = 0;
	FILE *out = open_memstream(&text, &size);
	json_t *made;

	if (!out)
		return weir_cli_print_json(cli, NULL);
	weir_policy_print(policy, out);
	fclose(out);
	for (size_t i = 0; i < policy->limit_count; i++)
		own += own_bytes(policy, &policy->limits[i]);
	made = json_pack("{s:i, s:s, s:I, s:I, s:I, s:I, s:I, s:s, s:o}", "schema",
			 WEIR_JSON_SCHEMA,
			 "file", policy->file, "interfaces", (json_int_t)policy->interface_count,
			 "limits", (json_int_t)policy->limit_count, "places",
			 (json_int_t)shape->sets * WEIR_WAYS, "memory_bytes",
			 (json_int_t)weir_shape_bytes(shape), "own_memory_bytes", (json_int_t)own,
			 "policy", text, "notes", take_notes(cli, policy));
	free(text);
	return weir_cli_print_json(cli, made);
}

static int run(struct weir_cli *cli)
{
	const char *file = cli->argument_count ? cli->arguments[0] : cli->config;
	struct weir_policy *policy = NULL;
	struct weir_shape shape;
	struct weir_error err;
	int rc = weir_policy_load_file(file ? file : WEIR_CONFIG_DEFAULT, &policy, &err), code;

	if (!rc)
		rc = weir_policy_check_features(policy, weir_engine_features(), &err);
	if (!rc) {
		rc = weir_shape_draw(&shape, (uint32_t)policy->ledger.keys);
		if (rc)
			weir_error_set(&err, rc, "the number of CPUs: %s", strerror(-rc));
	}
	if (rc)
		code = weir_cli_fail(cli, weir_error_code(rc), &err);
	else
		code = cli->json ? say_json(cli, policy, &shape) : say_text(cli, policy, &shape);
	weir_policy_free(policy);
	return code;
}

const struct weir_command weir_command_check = {
	.name = "check",
	.arguments = "[FILE]",
	.summary = "validate a configuration without touching the kernel, print all that it means",
	.example = "  weir check /etc/weir/weir.yaml",
	.options = WEIR_OPTION_CONFIG | WEIR_OPTION_OVERRIDES,
	.most = 1,
	.run = run,
};
