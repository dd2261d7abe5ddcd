// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "control_fixture.h"
#include "controller/control_socket.h"

#define NOBODY 65534

/* ---- where it listens ---- */

static void socket_of_a_dead_controller_is_replaced(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct weir_error err;
	struct stat status;
	int dead, fd;

	make_folder();
	dead = socket(AF_UNIX, SOCK_STREAM, 0);
	strcpy(address.sun_path, path);
	CU_ASSERT_EQUAL_FATAL(bind(dead, (struct sockaddr *)&address, sizeof(address)), 0);
	close(dead);
	CU_ASSERT_EQUAL_FATAL(start(30, &err), 0);
	CU_ASSERT_EQUAL(stat(path, &status), 0);
	CU_ASSERT_EQUAL(status.st_mode & 07777, 0660);
	fd = join();
	CU_ASSERT(echoes(fd, 1));
	close(fd);
	teardown();
	CU_ASSERT_EQUAL(access(path, F_OK), -1);
}

static void living_socket_and_other_files_are_left_alone(void)
{
	struct weir_control *first;
	struct weir_error err;
	int fd;

	setup();
	first = control;
	CU_ASSERT_EQUAL(start(30, &err), -EADDRINUSE);
	CU_ASSERT(strstr(err.text, path) && strstr(err.text, "another controller"));
	control = first;
	fd = join();
	CU_ASSERT(echoes(fd, 1));
	close(fd);
	/* Somebody else's file came to the path: the end doesn't take it away. */
	unlink(path);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	weir_control_stop(control);
	CU_ASSERT_EQUAL(start(30, &err), -EEXIST);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "something else"));
	CU_ASSERT_EQUAL(access(path, F_OK), 0);
	control = NULL;
	teardown();
}

static void path_too_long_is_refused(void)
{
	struct weir_error err;
	char longer[200];

	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	CU_ASSERT_EQUAL(weir_control_listen(longer, 0, &err), -ENAMETOOLONG);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "at most 107"));
	CU_ASSERT_EQUAL(weir_control_remove_dead(longer, &err), -ENAMETOOLONG);
	CU_ASSERT_EQUAL(weir_control_listen("/nonexistent/weir/x", 0, &err), -ENOENT);
	CU_ASSERT_EQUAL(weir_control_listen("/proc/version/x", 0, &err), -ENOTDIR);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "'/proc/version/x': Not a directory"));
}

static void only_a_dead_socket_is_removed(void)
{
	struct weir_error err;
	int fd;

	make_folder();
	CU_ASSERT_EQUAL(weir_control_remove_dead(path, &err), 0);
	fd = weir_control_listen(path, getegid(), &err);
	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(weir_control_remove_dead(path, &err), -EADDRINUSE);
	CU_ASSERT_EQUAL(access(path, F_OK), 0);
	close(fd);
	CU_ASSERT_EQUAL(weir_control_remove_dead(path, &err), 0);
	CU_ASSERT_EQUAL(access(path, F_OK), -1);
	teardown();
}

static void no_descriptor_is_an_error(void)
{
	struct rlimit before, none;
	struct weir_error err;
	int fd;

	make_folder();
	fd = weir_control_listen(path, getegid(), &err);
	CU_ASSERT_FATAL(fd >= 0);
	close(fd);
	getrlimit(RLIMIT_NOFILE, &before);
	none = (struct rlimit){ 0, before.rlim_max };
	setrlimit(RLIMIT_NOFILE, &none);
	/* Nobody can be asked whether it is dead: it stays. */
	CU_ASSERT_EQUAL(weir_control_listen(path, getegid(), &err), -EMFILE);
	CU_ASSERT_EQUAL(access(path, F_OK), 0);
	unlink(path);
	CU_ASSERT_EQUAL(weir_control_listen(path, getegid(), &err), -EMFILE);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "Too many open files"));
	setrlimit(RLIMIT_NOFILE, &before);
	teardown();
}

/* Without CAP_CHOWN a socket can be given to groups of one's own alone. */
static void a_group_that_is_not_ours_is_refused(void)
{
	int status;
	pid_t child;

	CU_ASSERT_EQUAL_FATAL(geteuid(), 0);
	make_folder();
	chmod(folder, 0777);
	child = fork();
	if (!child) {
		struct weir_error err = { "" };
		int rc;

		if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
			_exit(9);
		rc = weir_control_listen(path, 4321, &err);
		_exit(rc == -EPERM && strstr(err.text, "must be in control.group") &&
				      access(path, F_OK) < 0
			      ? 0
			      : 1);
	}
	waitpid(child, &status, 0);
	CU_ASSERT_EQUAL(status, 0);
	teardown();
}

/* ---- who may come in ---- */

static void stranger_is_refused_even_past_the_mode(void)
{
	int status;
	pid_t child;

	CU_ASSERT_EQUAL_FATAL(geteuid(), 0);
	setup();
	chmod(path, 0666);
	chmod(folder, 0755);
	child = fork();
	if (!child) {
		struct sockaddr_un address = { .sun_family = AF_UNIX };
		char answered[512] = "";
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);

		strcpy(address.sun_path, path);
		if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY) ||
		    connect(fd, (struct sockaddr *)&address, sizeof(address)))
			_exit(9);
		_exit(recv(fd, answered, sizeof(answered) - 1, 0) > 0 &&
				      strstr(answered, "may not use weir") &&
				      !recv(fd, answered, 1, 0)
			      ? 0
			      : 1);
	}
	while (!waitpid(child, &status, WNOHANG)) {
		pump();
		poll(NULL, 0, 1);
	}
	CU_ASSERT_EQUAL(WEXITSTATUS(status), 0);
	CU_ASSERT_EQUAL(handled, 0);
	teardown();
}

#define GROUPS_MAX 128

/* Connects from a child of these ids (gid, and so many groups from first_extra on) to a listener of
 * root's with this group. */
static bool peer_allowed(gid_t of_socket, gid_t gid, gid_t first_extra, size_t extras)
{
	gid_t extra[GROUPS_MAX];
	int listener, fd, status;
	struct weir_error err;
	bool allowed;
	pid_t child;

	listener = weir_control_listen(path, of_socket, &err);
	CU_ASSERT_FATAL(listener >= 0);
	chmod(path, 0666);
	for (size_t i = 0; i < extras; i++)
		extra[i] = first_extra + (gid_t)i;
	child = fork();
	if (!child) {
		struct sockaddr_un address = { .sun_family = AF_UNIX };
		char byte;

		strcpy(address.sun_path, path);
		fd = socket(AF_UNIX, SOCK_STREAM, 0);
		if (setgroups(extras, extra) || setgid(gid) || setuid(NOBODY) ||
		    connect(fd, (struct sockaddr *)&address, sizeof(address)))
			_exit(9);
		_exit(recv(fd, &byte, 1, 0) != 0);
	}
	poll(&(struct pollfd){ .fd = listener, .events = POLLIN }, 1, 5000);
	fd = accept(listener, NULL, NULL);
	allowed = weir_control_peer_allowed(fd, of_socket);
	close(fd);
	close(listener);
	waitpid(child, &status, 0);
	CU_ASSERT_EQUAL(WEXITSTATUS(status), 0);
	return allowed;
}

static void members_of_the_group_come_in(void)
{
	make_folder();
	chmod(folder, 0755);
	CU_ASSERT_TRUE(peer_allowed(4321, 4321, NOBODY, 1));
	CU_ASSERT_TRUE(peer_allowed(4321, NOBODY, 4321, 1));
	CU_ASSERT_FALSE(peer_allowed(4321, NOBODY, 4322, 1));
	/* More than one looks for at first. */
	CU_ASSERT_TRUE(peer_allowed(5099, NOBODY, 5000, 100));
	CU_ASSERT_FALSE(peer_allowed(5100, NOBODY, 5000, 100));
	teardown();
}

static void group_of_no_system_is_roots(void)
{
	gid_t group = 5;

	CU_ASSERT_FALSE(weir_control_group("no-such-group-here", &group));
	CU_ASSERT_EQUAL(group, 0);
	CU_ASSERT_TRUE(weir_control_group("daemon", &group));
	CU_ASSERT_NOT_EQUAL(group, 0);
}

WEIR_TESTS("control-socket", TEST(socket_of_a_dead_controller_is_replaced),
	   TEST(living_socket_and_other_files_are_left_alone), TEST(path_too_long_is_refused),
	   TEST(only_a_dead_socket_is_removed), TEST(no_descriptor_is_an_error),
	   TEST(a_group_that_is_not_ours_is_refused), TEST(stranger_is_refused_even_past_the_mode),
	   TEST(members_of_the_group_come_in), TEST(group_of_no_system_is_roots))
