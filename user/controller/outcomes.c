// SPDX-License-Identifier: GPL-2.0
#include "controller/outcomes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define FORM "write NAME pass or NAME fail, and rt=12ms behind it if you like"

struct weir_outcomes {
	struct sockaddr_un address;
	int fd;
	struct event *event;
	weir_outcomes_take take;
	void *context;
};

int weir_outcome_parse_time(const char *text, uint64_t *response_ns, struct weir_error *err)
{
	int rc;

	if (strncmp(text, "rt=", 3))
		return weir_error_set(err, -EINVAL,
				      "'%.64s': write a response time such as rt=12ms", text);
	rc = weir_time_parse(text + 3, response_ns, err);
	if (rc)
		weir_error_prefix(err, "'%.64s': ", text);
	return rc;
}

int weir_outcome_parse(const char *text, size_t length, struct weir_outcome_line *line,
		       struct weir_error *err)
{
	char copy[WEIR_OUTCOME_MAX + 1], *save = NULL, *words[4] = { NULL };
	size_t count = 0;

	if (length && text[length - 1] == '\n')
		length--;
	if (length > WEIR_OUTCOME_MAX || memchr(text, '\0', length) || memchr(text, '\n', length))
		return weir_error_set(err, -EINVAL, "no line of at most %u bytes: " FORM,
				      WEIR_OUTCOME_MAX);
	memcpy(copy, text, length);
	copy[length] = '\0';
	for (char *word = strtok_r(copy, " ", &save); word && count < 4;
	     word = strtok_r(NULL, " ", &save))
		words[count++] = word;
	if (count < 2 || count > 3 || strlen(words[0]) >= sizeof(line->name))
		return weir_error_set(err, -EINVAL, "'%.*s': " FORM, (int)length, text);
	*line = (struct weir_outcome_line){ .pass = !strcmp(words[1], "pass") };
	if (!line->pass && strcmp(words[1], "fail"))
		return weir_error_set(err, -EINVAL, "'%s' is neither pass nor fail", words[1]);
	memcpy(line->name, words[0], strlen(words[0]) + 1);
	return count == 3 ? weir_outcome_parse_time(words[2], &line->response_ns, err) : 0;
}

static void on_readable(evutil_socket_t fd, short what, void *context)
{
	struct weir_outcomes *outcomes = context;
	struct weir_outcome_line line;
	struct weir_error err;
	/* A byte more than a datagram may have, and the newline. */
	char text[WEIR_OUTCOME_MAX + 2];

	(void)what;
	for (unsigned int i = 0; i < WEIR_OUTCOMES_AT_ONCE; i++) {
		ssize_t length = recv(fd, text, sizeof(text), MSG_DONTWAIT);

		if (length < 0)
			return;
		if (weir_outcome_parse(text, (size_t)length, &line, &err))
			outcomes->take(outcomes->context, NULL);
		else
			outcomes->take(outcomes->context, &line);
	}
}

/* A report is lost, not harmful, when a socket goes: whoever listens there is replaced. */
static int clear(const char *path, struct weir_error *err)
{
	struct stat status;

	if (lstat(path, &status))
		return errno == ENOENT ? 0
				       : weir_error_set(err, -errno, "socket '%s': %s", path,
							strerror(errno));
	if (!S_ISSOCK(status.st_mode))
		return weir_error_set(err, -EEXIST,
				      "socket '%s': there is something else of this name: remove "
				      "it",
				      path);
	unlink(path);
	return 0;
}

static int bind_socket(struct weir_outcomes *outcomes, gid_t group, struct weir_error *err)
{
	const char *path = outcomes->address.sun_path;
	int rc = clear(path, err);
	mode_t old;

	if (rc)
		return rc;
	outcomes->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (outcomes->fd < 0)
		return weir_error_set(err, -errno, "socket '%s': %s", path, strerror(errno));
	/* As the control socket: no link is followed. */
	old = umask(0117);
	rc = bind(outcomes->fd, (struct sockaddr *)&outcomes->address, sizeof(outcomes->address));
	umask(old);
	if (!rc)
		rc = lchown(path, (uid_t)-1, group);
	return rc ? weir_error_set(err, -errno, "socket '%s': %s", path, strerror(errno)) : 0;
}

int weir_outcomes_start(struct weir_outcomes **out, struct event_base *base, const char *socket,
			gid_t group, weir_outcomes_take take, void *context, struct weir_error *err)
{
	struct weir_outcomes *outcomes = calloc(1, sizeof(*outcomes));
	size_t room;
	int rc;

	if (!outcomes)
		return weir_error_set(err, -ENOMEM, "out of memory");
	outcomes->fd = -1;
	outcomes->take = take;
	outcomes->context = context;
	outcomes->address.sun_family = AF_UNIX;
	room = sizeof(outcomes->address.sun_path);
	if (strlen(socket) + sizeof(WEIR_OUTCOMES_SUFFIX) > room) {
		rc = weir_error_set(err, -ENAMETOOLONG,
				    "socket '%s" WEIR_OUTCOMES_SUFFIX "': at most %zu characters",
				    socket, room - 1);
		goto out;
	}
	snprintf(outcomes->address.sun_path, room, "%s" WEIR_OUTCOMES_SUFFIX, socket);
	rc = bind_socket(outcomes, group, err);
	if (rc)
		goto out;
	outcomes->event =
		event_new(base, outcomes->fd, EV_READ | EV_PERSIST, on_readable, outcomes);
	if (!outcomes->event || event_add(outcomes->event, NULL))
		rc = weir_error_set(err, -ENOMEM, "out of memory");
out:
	if (rc) {
		weir_outcomes_stop(outcomes);
		return rc;
	}
	*out = outcomes;
	return 0;
}

void weir_outcomes_stop(struct weir_outcomes *outcomes)
{
	if (!outcomes)
		return;
	if (outcomes->event)
		event_free(outcomes->event);
	if (outcomes->fd >= 0) {
		close(outcomes->fd);
		unlink(outcomes->address.sun_path);
	}
	free(outcomes);
}
