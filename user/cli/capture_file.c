// SPDX-License-Identifier: GPL-2.0
#include "cli/capture_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "controller/clock.h"
#include "controller/control.h"
#include "controller/engine.h"

#define TELL_EVERY_PACKETS 4096
#define TELL_EVERY_NS 200000000

/* ---- the file ---- */

static int64_t read_stream(void *context, void *bytes, size_t size)
{
	size_t got = fread(bytes, 1, size, context);

	/* An interrupt ends it, with what there is. */
	if (got < size && ferror((FILE *)context) && !weir_cli_interrupted())
		return -errno;
	return (int64_t)got;
}

static int open_file(struct weir_capture_file *file, const char *path, struct weir_error *err)
{
	struct stat stat;
	int code;

	file->path = path;
	file->stream = strcmp(path, "-") ? fopen(path, "rbe") : stdin;
	if (!file->stream)
		return weir_error_set(err, -errno, "%s: %s", path, strerror(errno));
	if (!fstat(fileno(file->stream), &stat) && S_ISREG(stat.st_mode))
		file->bytes = (uint64_t)stat.st_size;
	code = weir_capture_open(&file->capture, read_stream, file->stream, err);
	if (code)
		weir_error_prefix(err, "%s: ", path);
	return code;
}

/* ---- the policy ---- */

static void leave_out(void *context, const char *kind, const char *name)
{
	json_array_append_new(context, json_pack("{s:s, s:s}", "kind", kind, "name", name));
}

static int find_interface(struct weir_capture_file *file, const char *name, struct weir_error *err)
{
	const struct weir_policy *policy = file->policy;
	char names[256] = "";

	for (size_t i = 0; i < policy->interface_count; i++) {
		size_t used = strlen(names);

		if (!name || !strcmp(policy->interfaces[i].name, name)) {
			file->interface = i;
			return 0;
		}
		snprintf(names + used, sizeof(names) - used, "%s%s", used ? ", " : "",
			 policy->interfaces[i].name);
	}
	if (!name)
		return 0;
	return weir_error_set(err, -ENOENT, "--interface '%s': %s has %s", name, policy->file,
			      *names ? names : "none");
}

static int read_own(struct weir_capture_file *file, const char *text, struct weir_error *err)
{
	char copy[1024], *save = NULL, *word;
	struct weir_prefix prefix;
	int code = 0;

	if (strlen(text) >= sizeof(copy))
		return weir_error_set(err, -E2BIG, "--address: at most %zu characters",
				      sizeof(copy) - 1);
	memcpy(copy, text, strlen(text) + 1);
	for (word = strtok_r(copy, ",", &save); word && !code; word = strtok_r(NULL, ",", &save)) {
		code = weir_prefix_parse(word, &prefix, err);
		if (!code)
			code = weir_prefixes_add(&file->own, &prefix, err);
	}
	if (!code && !file->own.count)
		code = weir_error_set(err, -EINVAL, "'%s': give an address or prefix", text);
	if (code)
		weir_error_prefix(err, "--address: ");
	return code;
}

static int open_policy(struct weir_capture_file *file, const struct weir_cli *cli,
		       struct weir_error *err)
{
	int code = weir_policy_load_file(cli->config ? cli->config : WEIR_CONFIG_DEFAULT,
					 &file->policy, err);

	if (!code)
		code = weir_policy_check_features(file->policy, weir_engine_features(), err);
	if (!code)
		code = find_interface(file, cli->interface, err);
	if (!code && cli->addresses)
		code = read_own(file, cli->addresses, err);
	if (code)
		return code;
	file->left_out = json_array();
	weir_replay_reduce(file->policy, leave_out, file->left_out);
	if (!file->policy->limit_count)
		return weir_error_set(err, -EINVAL,
				      "%s has no limit that a capture could be tried "
				      "on",
				      file->policy->file);
	return 0;
}

/* ---- the replay ---- */

static void tell(struct weir_capture_file *file, bool last)
{
	uint64_t now = weir_monotonic_ns();

	if (!isatty(STDERR_FILENO) || (!last && now - file->told_ns < TELL_EVERY_NS))
		return;
	file->told_ns = now;
	if (last)
		fputs("\r\033[K", stderr);
	else if (file->bytes)
		fprintf(stderr, "\r%3.0f%%  %llu packets\033[K",
			100.0 * (double)weir_capture_offset(file->capture) / (double)file->bytes,
			(unsigned long long)file->replay.counts.packets);
	else
		fprintf(stderr, "\r%llu packets\033[K",
			(unsigned long long)file->replay.counts.packets);
}

static int open_replay(struct weir_capture_file *file, const struct weir_capture_packet *first,
		       struct weir_error *err)
{
	int code =
		weir_replay_open(&file->replay, file->policy, file->interface, first->time_ns, err);

	if (code)
		return code;
	file->open = true;
	file->replay.own = file->own.count ? &file->own : NULL;
	return 0;
}

static int replay(struct weir_capture_file *file, weir_capture_step step, void *context,
		  struct weir_error *err)
{
	struct weir_capture_packet packet;
	int code;

	while ((code = weir_capture_next(file->capture, &packet, err)) == 1) {
		code = file->open ? 0 : open_replay(file, &packet, err);
		if (code)
			return code;
		if (step)
			code = step(context, &file->replay, &packet, err);
		if (!code)
			code = weir_replay_packet(&file->replay, &packet, err);
		if (code || weir_cli_interrupted())
			break;
		if (!(file->replay.counts.packets % TELL_EVERY_PACKETS))
			tell(file, false);
	}
	if (code)
		weir_error_prefix(err, "%s: ", file->path);
	else if (!file->open)
		code = weir_error_set(err, -EINVAL, "%s: there is no packet in it", file->path);
	return code ? code : weir_replay_finish(&file->replay, err);
}

int weir_capture_file_replay(struct weir_capture_file *file, const struct weir_cli *cli,
			     const char *path, bool monitor, weir_capture_step step, void *context)
{
	struct weir_error err;
	int code;

	*file = (struct weir_capture_file){ 0 };
	weir_cli_catch_interrupts();
	code = open_policy(file, cli, &err);
	if (!code && monitor)
		file->policy->mode = WEIR_POLICY_MONITOR;
	if (!code)
		code = open_file(file, path, &err);
	if (!code) {
		code = replay(file, step, context, &err);
		tell(file, true);
	}
	return code ? weir_cli_fail(cli, weir_error_code(code), &err) : WEIR_EXIT_OK;
}

void weir_capture_file_close(struct weir_capture_file *file)
{
	if (file->open)
		weir_replay_close(&file->replay);
	weir_capture_close(file->capture);
	if (file->stream && file->stream != stdin)
		fclose(file->stream);
	weir_policy_free(file->policy);
	weir_prefixes_free(&file->own);
	json_decref(file->left_out);
}
