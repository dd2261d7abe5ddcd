/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Programs of ours by their ids. The kernel opens a program by its id for CAP_SYS_ADMIN only;
 * with CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON alone we know those that we loaded, and the one
 * of an earlier run by its pin.
 */
#pragma once

#include <stdint.h>

/* A descriptor of the program, the caller's to close, or -errno: -EPERM for an unknown one where
 * only known ones may be opened. */
int weir_program_open(uint32_t id);

/* Keeps a duplicate of the descriptor until weir_programs_forget. */
void weir_program_know(int fd);
/* Knows the program that weir_program_pin left there, if any. */
void weir_programs_recall(const char *pins);
void weir_programs_forget(void);

/*
 * The one that is about to be attached, then the same once it is: in the place of an earlier one,
 * and whoever is killed in between knows both. Without pins a start with all capabilities works.
 */
void weir_program_pin_next(int fd, const char *pins);
void weir_program_pin(int fd, const char *pins);

/* 0 if it can't be had. */
uint32_t weir_program_id(int fd);
