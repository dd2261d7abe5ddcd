/* SPDX-License-Identifier: GPL-2.0 */
/* TC before 6.6: one filter of ours a hook, on the clsact qdisc that others may share. */
#pragma once

#include "controller/attach.h"

#define WEIR_CLSACT_HANDLE 0x77656972U /* "weir" */
#define WEIR_CLSACT_PRIORITY 0x7765U

/* As weir_tc_ensure, for one hook. */
int weir_clsact_ensure(const char *pins, uint32_t board_id,
		       const struct weir_interface_status *status, enum weir_hook hook, int program,
		       struct weir_error *err);

/* Ours off the hook, and the qdisc if we made it and no filter is left at either hook. */
void weir_clsact_remove(const char *pins, uint32_t board_id, uint32_t ifindex, enum weir_hook hook);
