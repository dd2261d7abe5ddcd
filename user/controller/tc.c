// SPDX-License-Identifier: GPL-2.0
#include "controller/tc.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "controller/clsact.h"
#include "controller/programs.h"

/* <linux/bpf.h> of 6.6, which the build may not have yet. */
#define TCX_INGRESS 46
#define TCX_EGRESS 47

static int attach_type(enum weir_hook hook)
{
	return hook == WEIR_HOOK_TC_INGRESS ? TCX_INGRESS : TCX_EGRESS;
}

/* Begins as our maps do, so that whoever removes the pins removes the links. */
static void link_path(const char *pins, uint32_t ifindex, enum weir_hook hook, char *path,
		      size_t size)
{
	snprintf(path, size, "%s/weir_tcx_%u_%s", pins, ifindex,
		 hook == WEIR_HOOK_TC_INGRESS ? "in" : "out");
}

static int program_fd(struct weir_tc *tc, enum weir_hook hook, struct weir_error *err)
{
	struct weir_bpf *programs = tc->programs[hook];
	int code;

	if (!programs) {
		programs = weir_load_programs_open(tc->load, 1U << hook);
		if (!programs)
			return weir_error_set(err, -errno, "can't open weir's programs: %s",
					      strerror(errno));
		code = weir_load_programs(programs, err);
		if (code) {
			weir_bpf__destroy(programs);
			return code;
		}
		tc->programs[hook] = programs;
	}
	return bpf_program__fd(hook == WEIR_HOOK_TC_INGRESS ? programs->progs.weir_ingress
							    : programs->progs.weir_egress);
}

/* ---- links ---- */

/* 0: ours was right; 1: the program was exchanged; -ENOENT: there is no link that works. */
static int link_refresh(const char *path, uint32_t ifindex, int program)
{
	struct bpf_link_info info = { 0 };
	uint32_t size = sizeof(info);
	int link = bpf_obj_get(path), code = -ENOENT;

	if (link < 0)
		return -errno;
	/* The member for TCX begins like XDP's. 0: the interface is gone, or it was detached. */
	if (!bpf_obj_get_info_by_fd(link, &info, &size) && info.xdp.ifindex == ifindex) {
		if (info.prog_id == weir_program_id(program))
			code = 0;
		else
			code = bpf_link_update(link, program, NULL) ? -errno : 1;
	}
	close(link);
	if (code == -ENOENT)
		unlink(path);
	return code;
}

static int link_make(const char *path, uint32_t ifindex, enum weir_hook hook, int program)
{
	int link = bpf_link_create(program, (int)ifindex, (enum bpf_attach_type)attach_type(hook),
				   NULL);
	int code;

	if (link < 0)
		return -errno;
	code = bpf_obj_pin(link, path) ? -errno : 1;
	close(link);
	return code;
}

/* ---- a hook ---- */

static int ensure_one(struct weir_tc *tc, const struct weir_interface_status *status,
		      enum weir_hook hook, struct weir_error *err)
{
	int program = program_fd(tc, hook, err), code;
	char path[WEIR_PINS_SIZE + 64];

	if (program < 0) {
		weir_error_prefix(err, "interface %s: ", status->name);
		return program;
	}
	link_path(tc->load->pins, status->ifindex, hook, path, sizeof(path));
	weir_kernel_words_clear();
	code = link_refresh(path, status->ifindex, program);
	if (code == -ENOENT)
		code = link_make(path, status->ifindex, hook, program);
	if (code == -EINVAL)
		return weir_clsact_ensure(tc->load->pins, tc->board_id, status, hook, program, err);
	if (code < 0)
		return weir_error_set(err, code, "interface %s: can't attach at %s: %s %s",
				      status->name,
				      hook == WEIR_HOOK_TC_INGRESS ? "tc-ingress" : "tc-egress",
				      strerror(-code), weir_kernel_words());
	return code;
}

int weir_tc_ensure(struct weir_tc *tc, struct weir_interface_status *status, uint32_t hooks,
		   struct weir_error *err)
{
	int changed = 0;

	for (int hook = WEIR_HOOK_TC_INGRESS; hook <= WEIR_HOOK_TC_EGRESS; hook++) {
		bool *at = hook == WEIR_HOOK_TC_INGRESS ? &status->at_ingress : &status->at_egress;
		int code;

		*at = false;
		if (!(hooks >> hook & 1))
			continue;
		code = ensure_one(tc, status, (enum weir_hook)hook, err);
		if (code < 0)
			return code;
		*at = true;
		changed |= code;
	}
	return changed;
}

void weir_tc_remove(const char *pins, uint32_t board_id, uint32_t ifindex, uint32_t hooks)
{
	for (int hook = WEIR_HOOK_TC_INGRESS; hook <= WEIR_HOOK_TC_EGRESS; hook++) {
		char path[WEIR_PINS_SIZE + 64];
		int link;

		if (!(hooks >> hook & 1))
			continue;
		link_path(pins, ifindex, (enum weir_hook)hook, path, sizeof(path));
		link = bpf_obj_get(path);
		if (link >= 0) {
			bpf_link_detach(link);
			close(link);
			unlink(path);
		} else {
			weir_clsact_remove(pins, board_id, ifindex, (enum weir_hook)hook);
		}
	}
}

void weir_tc_remove_all(const char *pins, uint32_t board_id)
{
	struct if_nameindex *interfaces = if_nameindex();

	for (struct if_nameindex *i = interfaces; i && i->if_index; i++)
		weir_tc_remove(pins, board_id, i->if_index, WEIR_TC_HOOKS);
	if (interfaces)
		if_freenameindex(interfaces);
}

void weir_tc_close(struct weir_tc *tc)
{
	for (int hook = 0; hook < WEIR_HOOKS; hook++)
		weir_bpf__destroy(tc->programs[hook]);
}
