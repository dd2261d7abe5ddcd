// SPDX-License-Identifier: GPL-2.0
#include "cli/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "controller/loop.h"

#define ANSWER_SECONDS 30

struct weir_client {
	FILE *stream;
	char *line;
	size_t size;
};

const char *weir_client_socket(const struct weir_cli *cli)
{
	return cli->socket ? cli->socket : WEIR_SOCKET_DEFAULT;
}

static int join(const struct weir_cli *cli, int *fd, struct weir_error *err)
{
	const char *path = weir_client_socket(cli);
	const struct timeval patience = { .tv_sec = ANSWER_SECONDS };
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(address.sun_path)) {
		weir_error_set(err, 0, "socket '%s': at most %zu characters", path,
			       sizeof(address.sun_path) - 1);
		return WEIR_EXIT_REFUSED;
	}
	memcpy(address.sun_path, path, strlen(path) + 1);
	*fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (*fd >= 0) {
		setsockopt(*fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		setsockopt(*fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
		if (!connect(*fd, (struct sockaddr *)&address, sizeof(address)))
			return WEIR_EXIT_OK;
		close(*fd);
	}
	if (errno == ENOENT || errno == ECONNREFUSED)
		return WEIR_CLIENT_DOWN;
	weir_error_set(err, 0, "socket '%s': %s%s", path, strerror(errno),
		       errno == EACCES ? ": it takes root or a member of its group" : "");
	return WEIR_EXIT_FAILED;
}

int weir_client_open(struct weir_client **client, const struct weir_cli *cli, const char *command,
		     json_t *arguments, struct weir_error *err)
{
	json_t *request = json_pack("{s:s, s:o}", "command", command, "arguments",
				    arguments ? arguments : json_object());
	char *text = request ? json_dumps(request, JSON_COMPACT) : NULL;
	struct weir_client *made = calloc(1, sizeof(*made));
	int fd = -1, code = WEIR_EXIT_REFUSED;

	json_decref(request);
	weir_error_set(err, 0, "an argument is not UTF-8");
	if (text && made)
		code = join(cli, &fd, err);
	if (code == WEIR_EXIT_OK) {
		/* An early refusal may have closed its end: what it said is still to be read. */
		(void)!send(fd, text, strlen(text), MSG_NOSIGNAL | MSG_MORE);
		(void)!send(fd, "\n", 1, MSG_NOSIGNAL);
		made->stream = fdopen(fd, "r");
		*client = made;
	} else {
		free(made);
	}
	free(text);
	return code;
}

static int read_line(struct weir_client *client, bool forever, bool *ended, struct weir_error *err)
{
	*ended = false;
	for (;;) {
		errno = 0;
		if (!weir_cli_interrupted() && getline(&client->line, &client->size, client->stream) > 0)
			return WEIR_EXIT_OK;
		if (weir_cli_interrupted() || (forever && feof(client->stream))) {
			*ended = true;
			return WEIR_EXIT_OK;
		}
		if (!forever || (errno != EAGAIN && errno != EINTR))
			break;
		clearerr(client->stream);
	}
	weir_error_set(err, 0,
		       errno == EAGAIN ? "the controller does not answer within 30 s"
				       : "the controller ended before it answered");
	return WEIR_EXIT_FAILED;
}

int weir_client_next(struct weir_client *client, bool forever, json_t **part, bool *last,
		     struct weir_error *err)
{
	json_t *answer, *result;
	const char *text;
	bool ended;
	int code = read_line(client, forever, &ended, err);

	*part = NULL;
	*last = true;
	if (code || ended)
		return code;
	answer = json_loads(client->line, JSON_DECODE_ANY, NULL);
	result = json_object_get(answer, "result");
	text = json_string_value(json_object_get(answer, "error"));
	if (json_is_true(json_object_get(answer, "ok")) && result) {
		*part = json_incref(result);
		*last = !json_is_true(json_object_get(answer, "more"));
	} else {
		code = json_integer_value(json_object_get(answer, "code")) == 1 ? WEIR_EXIT_REFUSED
										: WEIR_EXIT_FAILED;
		weir_error_set(err, 0, "%s", text ? text : "the controller's answer can't be read");
	}
	json_decref(answer);
	return code;
}

void weir_client_close(struct weir_client *client)
{
	if (!client)
		return;
	fclose(client->stream);
	free(client->line);
	free(client);
}

/* Appends a part's arrays to those of the whole. */
static void append(json_t *whole, json_t *part)
{
	const char *name;
	json_t *value;

	json_object_foreach(part, name, value)
	{
		json_t *have = json_object_get(whole, name);

		if (json_is_array(have) && json_is_array(value))
			json_array_extend(have, value);
		else
			json_object_set(whole, name, value);
	}
}

int weir_client_call(const struct weir_cli *cli, const char *command, json_t *arguments,
		     json_t **result, struct weir_error *err)
{
	struct weir_client *client = NULL;
	bool last = false;
	json_t *part;
	int code = weir_client_open(&client, cli, command, arguments, err);

	*result = NULL;
	while (!code && !last) {
		code = weir_client_next(client, false, &part, &last, err);
		if (!*result) {
			*result = part;
		} else if (part) {
			append(*result, part);
			json_decref(part);
		}
	}
	weir_client_close(client);
	if (!code && !*result) {
		weir_error_set(err, 0, "interrupted");
		return WEIR_EXIT_FAILED;
	}
	if (code) {
		json_decref(*result);
		*result = NULL;
	}
	return code;
}

int weir_client_fail_down(const struct weir_cli *cli)
{
	return weir_cli_fail_text(cli, WEIR_EXIT_FAILED,
				  "no controller answers at '%s': start it with `weir run` "
				  "(or `systemctl start weir`), or give its --socket",
				  weir_client_socket(cli));
}

int weir_client_ask(const struct weir_cli *cli, const char *command, json_t *arguments,
		    json_t **result)
{
	struct weir_error err;
	int code = weir_client_call(cli, command, arguments, result, &err);

	if (code == WEIR_CLIENT_DOWN)
		return weir_client_fail_down(cli);
	return code ? weir_cli_fail(cli, code, &err) : WEIR_EXIT_OK;
}
