/* SPDX-License-Identifier: GPL-2.0 */
/* The machine's network namespaces: interfaces of ours may be in another than the caller's. */
#pragma once

/*
 * Calls `visit` in the caller's own namespace, then in each other that has a name in /run/netns
 * or a process; those that may not be entered (without CAP_SYS_ADMIN: all) are left out. Of the
 * calling thread alone, which is in its own again when this returns: 0, or -errno where it lacks
 * descriptors or can't go back.
 */
int weir_netns_each(void (*visit)(void *context), void *context);
