/* SPDX-License-Identifier: GPL-2.0 */
/* The folder of pins as a place in the file system: mounted, locked, ours or not, removed. */
#pragma once

#include <stdbool.h>

#include "controller/error.h"
#include "weir/abi.h"

/*
 * Makes sure that the folder which is to hold `pins` is on a bpffs. Where it isn't, and is an
 * empty folder (under `ip netns exec` /sys/fs/bpf is), mounts one there that stays in this
 * mount namespace and sets *mounted; else -ENOTDIR.
 */
int weir_pins_mount(const char *pins, bool *mounted, struct weir_error *err);
void weir_pins_unmount(const char *pins);

/* 1: pins of ours are there; 0: nothing, or an empty folder; -EEXIST: things not ours. */
int weir_pins_look(const char *pins, struct weir_error *err);

/* Locks the folder for as long as the descriptor is open: fd, or -EBUSY. */
int weir_pins_lock(const char *folder, struct weir_error *err);

/*
 * Reads the switch from the pinned board and checks its ABI version before anything else is
 * looked at. -ENOENT where nothing is pinned, -EPROTO for another version.
 */
int weir_pins_switch(const char *pins, struct weir_switch *found, struct weir_error *err);

/* Takes what is ours out of the folder, by name. */
void weir_pins_empty(const char *folder);

/* The same and the folder itself, where nothing else is left in it. -ENOENT: no folder. */
int weir_pins_remove(const char *folder);
