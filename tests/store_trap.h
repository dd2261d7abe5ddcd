/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Stops at each store into some memory: its page can't be written to, so that a store traps; it
 * is let through alone, and then a function of the test's is called, which may look, or kill
 * the process. For one place at a time, in one thread.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define STORE_TRAP_FLAG 0x100 /* x86: a trap after the next instruction */

static struct {
	void *page;
	size_t size;
	void (*stored)(void);
	struct sigaction segv, trap;
} store_trap;

static void store_trap_stop(int signal, siginfo_t *info, void *context)
{
	greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];
	bool stored = signal == SIGTRAP;

	(void)info;
	if (stored)
		store_trap.stored();
	mprotect(store_trap.page, store_trap.size, stored ? PROT_READ : PROT_READ | PROT_WRITE);
	*flags = stored ? *flags & ~STORE_TRAP_FLAG : *flags | STORE_TRAP_FLAG;
}

/* What lies at `at`, of `size` bytes, in memory that was mapped by pages. */
static inline void store_trap_on(void *at, size_t size, void (*stored)(void))
{
	const struct sigaction stop = { .sa_sigaction = store_trap_stop, .sa_flags = SA_SIGINFO };
	uintptr_t page = (uintptr_t)getpagesize(), begin = (uintptr_t)at & ~(page - 1);

	store_trap.page = (void *)begin;
	store_trap.size = ((uintptr_t)at + size - begin + page - 1) & ~(page - 1);
	store_trap.stored = stored;
	sigaction(SIGSEGV, &stop, &store_trap.segv);
	sigaction(SIGTRAP, &stop, &store_trap.trap);
	mprotect(store_trap.page, store_trap.size, PROT_READ);
}

static inline void store_trap_off(void)
{
	mprotect(store_trap.page, store_trap.size, PROT_READ | PROT_WRITE);
	sigaction(SIGSEGV, &store_trap.segv, NULL);
	sigaction(SIGTRAP, &store_trap.trap, NULL);
}
