/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bonds. The kernel runs a bond's native XDP program on the links below, and the packets say
 * that they came in by those.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Indexes of the links below a bond, at most `max`: how many. 0 where it is none. */
size_t weir_bond_links(const char *name, uint32_t *ifindexes, size_t max);
