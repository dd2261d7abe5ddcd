/* SPDX-License-Identifier: GPL-2.0 */
/* The folder of pins as a place in the file system: mounted, locked, ours or not, removed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

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

/*
 * Locks the folder for as long as the descriptor is open: fd; -ENOENT; -EBUSY where another holds
 * it, or took it away meanwhile. What is read from the folder is read after this.
 */
int weir_pins_lock(const char *folder, struct weir_error *err);

/*
 * Reads the switch from the pinned board and checks its ABI version before anything else is
 * looked at. -ENOENT where nothing is pinned, -EPROTO for another version.
 */
int weir_pins_switch(const char *pins, struct weir_switch *found, struct weir_error *err);

/* PINS-new: where a set is before it is complete, and again while it is taken away. */
void weir_pins_new_path(const char *pins, char *path, size_t size);

/* Pins `fd` (a map, a program, a link) as `path` in one step, whatever was pinned there. */
int weir_pins_replace(int fd, const char *path);

/* Takes what is ours out of the folder, by name. */
void weir_pins_empty(const char *folder);

/* The same and the folder itself, where nothing else is left in it. -ENOENT: no folder. */
int weir_pins_clear(const char *folder);

/* As weir_pins_clear, but whoever is killed over it leaves all of the pins in `pins` or none. */
int weir_pins_remove(const char *pins);

/*
 * Where no board is pinned: takes away what a killed or failed start or end left in PINS-new and
 * in `pins`. 1: there was something; 0: nothing; -EBUSY: another controller is at it.
 */
int weir_pins_remove_remains(const char *pins, struct weir_error *err);
