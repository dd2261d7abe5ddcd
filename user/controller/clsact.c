// SPDX-License-Identifier: GPL-2.0
#include "controller/clsact.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "controller/programs.h"

static enum bpf_tc_attach_point point_of(enum weir_hook hook)
{
	return hook == WEIR_HOOK_TC_INGRESS ? BPF_TC_INGRESS : BPF_TC_EGRESS;
}

/* A link in the pins says that the qdisc is of our making. It leads nowhere. */
static void mark_path(const char *pins, uint32_t ifindex, char *path, size_t size)
{
	snprintf(path, size, "%s/weir_clsact_%u", pins, ifindex);
}

/* The program at our handle, 0 if there is none. */
static uint32_t filter_program(uint32_t ifindex, enum weir_hook hook)
{
	LIBBPF_OPTS(bpf_tc_hook, where, .ifindex = (int)ifindex, .attach_point = point_of(hook));
	LIBBPF_OPTS(bpf_tc_opts, filter, .handle = WEIR_CLSACT_HANDLE,
		    .priority = WEIR_CLSACT_PRIORITY);

	return bpf_tc_query(&where, &filter) ? 0 : filter.prog_id;
}

static int make_qdisc(const char *pins, uint32_t ifindex, struct bpf_tc_hook *where)
{
	int code = bpf_tc_hook_create(where);
	char path[WEIR_PINS_SIZE + 64];

	if (code)
		return code == -EEXIST ? 0 : code;
	mark_path(pins, ifindex, path, sizeof(path));
	return symlink("made-by-weir", path) && errno != EEXIST ? -errno : 0;
}

int weir_clsact_ensure(const char *pins, uint32_t board_id,
		       const struct weir_interface_status *status, enum weir_hook hook, int program,
		       struct weir_error *err)
{
	LIBBPF_OPTS(bpf_tc_hook, where, .ifindex = (int)status->ifindex,
		    .attach_point = point_of(hook));
	LIBBPF_OPTS(bpf_tc_opts, filter, .handle = WEIR_CLSACT_HANDLE,
		    .priority = WEIR_CLSACT_PRIORITY, .prog_fd = program);
	uint32_t there = filter_program(status->ifindex, hook);
	int code;

	if (there && there == weir_program_id(program))
		return 0;
	if (there && !weir_program_uses(there, board_id))
		return weir_error_set(err, -EBUSY,
				      "interface %s: a filter of somebody else has weir's handle "
				      "0x%x and priority %u: program id %u (`bpftool prog show id "
				      "%u`); weir leaves it alone",
				      status->name, WEIR_CLSACT_HANDLE, WEIR_CLSACT_PRIORITY, there,
				      there);
	if (there)
		filter.flags = BPF_TC_F_REPLACE;
	code = make_qdisc(pins, status->ifindex, &where);
	if (!code)
		code = bpf_tc_attach(&where, &filter);
	if (code)
		return weir_error_set(err, code, "interface %s: can't add a TC filter: %s %s",
				      status->name, strerror(-code), weir_kernel_words());
	return 1;
}

/* ---- is anybody else there ---- */

static int ask_filters(int fd, uint32_t ifindex, uint32_t parent)
{
	struct {
		struct nlmsghdr head;
		struct tcmsg tc;
	} request = {
		.head = { .nlmsg_len = sizeof(request),
			  .nlmsg_type = RTM_GETTFILTER,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.tc = { .tcm_family = AF_UNSPEC,
			.tcm_ifindex = (int)ifindex,
			.tcm_parent = parent },
	};

	return send(fd, &request, sizeof(request), 0) < 0 ? -errno : 0;
}

/* How many filters an answer tells of; -1 where it goes wrong. *done at its end. */
static int count_answer(const char *buffer, size_t length, bool *done)
{
	int count = 0;

	for (const struct nlmsghdr *head = (const struct nlmsghdr *)buffer; NLMSG_OK(head, length);
	     head = NLMSG_NEXT(head, length)) {
		if (head->nlmsg_type == NLMSG_ERROR)
			return -1;
		*done |= head->nlmsg_type == NLMSG_DONE;
		count += head->nlmsg_type == RTM_NEWTFILTER;
	}
	return count;
}

/* Filters at a hook, of whomever. What can't be found out counts as one: nothing is removed. */
static int count_filters(uint32_t ifindex, uint32_t parent)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), count = 0;
	char buffer[32768] __attribute__((aligned(8)));
	bool done = false;

	if (fd < 0)
		return 1;
	if (ask_filters(fd, ifindex, parent))
		count = 1;
	while (!count && !done) {
		ssize_t length = recv(fd, buffer, sizeof(buffer), 0);

		count = length < 0 ? 1 : count_answer(buffer, (size_t)length, &done);
	}
	close(fd);
	return count;
}

void weir_clsact_remove(const char *pins, uint32_t board_id, uint32_t ifindex, enum weir_hook hook)
{
	LIBBPF_OPTS(bpf_tc_hook, where, .ifindex = (int)ifindex, .attach_point = point_of(hook));
	LIBBPF_OPTS(bpf_tc_opts, filter, .handle = WEIR_CLSACT_HANDLE,
		    .priority = WEIR_CLSACT_PRIORITY);
	uint32_t there = filter_program(ifindex, hook);
	char path[WEIR_PINS_SIZE + 64];

	if (there && weir_program_uses(there, board_id))
		bpf_tc_detach(&where, &filter);
	mark_path(pins, ifindex, path, sizeof(path));
	if (readlink(path, (char[1]){ 0 }, 1) < 0 ||
	    count_filters(ifindex, TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS)) ||
	    count_filters(ifindex, TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS)))
		return;
	where.attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS;
	bpf_tc_hook_destroy(&where);
	unlink(path);
}
