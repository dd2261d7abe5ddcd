// SPDX-License-Identifier: GPL-2.0
/* What is attached to an interface, and whose it is. */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "controller/attach.h"
#include "controller/programs.h"

#define MAPS_MAX 64

uint32_t weir_map_id(int fd)
{
	struct bpf_map_info info = { 0 };
	uint32_t size = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &size) ? 0 : info.id;
}

bool weir_program_uses(uint32_t program_id, uint32_t map_id)
{
	uint32_t ids[MAPS_MAX] = { 0 };
	struct bpf_prog_info info = { .nr_map_ids = MAPS_MAX, .map_ids = (uintptr_t)ids };
	uint32_t size = sizeof(info);
	int fd = weir_program_open(program_id);
	bool uses = false;

	if (fd < 0)
		return false;
	if (!bpf_obj_get_info_by_fd(fd, &info, &size)) {
		for (uint32_t i = 0; i < info.nr_map_ids && i < MAPS_MAX; i++)
			uses |= ids[i] == map_id;
	}
	close(fd);
	return uses;
}

static void describe(struct weir_xdp_found *found)
{
	struct bpf_prog_info info = { 0 };
	uint32_t size = sizeof(info);
	int fd = weir_program_open(found->id);

	if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &size)) {
		snprintf(found->name, sizeof(found->name), "%s", info.name);
		for (int i = 0; i < 8; i++)
			snprintf(found->tag + 2 * i, 3, "%02x", info.tag[i]);
	}
	if (fd >= 0)
		close(fd);
}

/* The program that a link hangs on another one, 0 if that isn't `target_id`. */
static uint32_t hung_on(uint32_t link_id, uint32_t target_id)
{
	struct bpf_link_info info = { 0 };
	uint32_t size = sizeof(info), id = 0;
	int fd = bpf_link_get_fd_by_id(link_id);

	if (fd < 0)
		return 0;
	if (!bpf_obj_get_info_by_fd(fd, &info, &size) && info.type == BPF_LINK_TYPE_TRACING &&
	    info.tracing.target_obj_id == target_id)
		id = info.prog_id;
	close(fd);
	return id;
}

/*
 * Who is in a dispatcher, by the links of the programs that it calls; one without any is none.
 * libxdp could tell too, but 1.3 loses two descriptors with every answer, and we ask every second.
 */
static void look_inside(uint32_t board_id, struct weir_xdp_found *found)
{
	uint32_t link_id = 0, dispatcher_id = found->id;

	while (!bpf_link_get_next_id(link_id, &link_id)) {
		uint32_t id = hung_on(link_id, dispatcher_id);

		if (!id)
			continue;
		found->dispatcher = true;
		if (weir_program_uses(id, board_id)) {
			found->holder = WEIR_HELD_BY_US;
			found->id = id;
			return;
		}
		found->holder = WEIR_HELD_BY_OTHERS;
	}
}

int weir_xdp_look(uint32_t board_id, uint32_t ifindex, struct weir_xdp_found *found)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	int code = bpf_xdp_query((int)ifindex, 0, &query);

	*found = (struct weir_xdp_found){ .holder = WEIR_HELD_BY_NOBODY };
	if (code)
		return code;
	if (query.attach_mode == XDP_ATTACHED_NONE)
		return 0;
	found->id = query.drv_prog_id	? query.drv_prog_id
		    : query.skb_prog_id ? query.skb_prog_id
					: query.prog_id;
	found->mode = query.attach_mode == XDP_ATTACHED_SKB ? WEIR_ATTACHED_GENERIC
							    : WEIR_ATTACHED_NATIVE;
	if (weir_program_uses(found->id, board_id)) {
		found->holder = WEIR_HELD_BY_US;
		return 0;
	}
	found->holder = WEIR_HELD_BY_FOREIGN;
	describe(found);
	if (!strcmp(found->name, "xdp_dispatcher"))
		look_inside(board_id, found);
	return 0;
}
