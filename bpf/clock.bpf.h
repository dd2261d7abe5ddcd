/* SPDX-License-Identifier: GPL-2.0 */
/* The one place where the kernel side reads a clock: nanoseconds since boot, sleep left out. */
#pragma once

#ifdef WEIR_INJECTED_CLOCK
volatile uint64_t weir_injected_now_ns;
#define weir_now_ns() (weir_injected_now_ns)
#else
#define weir_now_ns() bpf_ktime_get_ns()
#endif
