/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A change that waits to be confirmed (--confirm), on disk: a JSON file beside the overrides,
 * so that a controller that was killed goes back all the same, or waits the rest.
 *
 * It holds the policy before and after, whole, with what the lists' files had in them: to go
 * back needs no other file. Time counts by CLOCK_BOOTTIME, which nobody sets and which goes on
 * while the machine sleeps; after a reboot (another boot id) the time is over. A reload that was
 * gone back from stays on file as `undone`: the configuration still says it, and a start must
 * not bring it in through the back door.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "controller/policy.h"

#define WEIR_CONFIRM_MIN_NS 1000000000ULL
#define WEIR_CONFIRM_MAX_NS (3600 * 1000000000ULL)
#define WEIR_CONFIRM_WHAT 256
#define WEIR_BOOT_ID 40

struct weir_confirm {
	bool undone;		      /* gone back from; else it waits */
	bool reload;		      /* of the file; else a set */
	char what[WEIR_CONFIRM_WHAT]; /* "weir set per-ip rate=500pps" */
	uint64_t within_ns;	      /* what was asked for */
	char boot_id[WEIR_BOOT_ID];
	uint64_t until_ns; /* CLOCK_BOOTTIME of that boot */
	char *before;	   /* policies: see weir_confirm_policy_text */
	char *after;
	/* To be saved once it is confirmed; NULL: nothing. */
	char *save_limit;
	json_t *save_changes; /* {field: text} */
};

void weir_confirm_free(struct weir_confirm *confirm); /* NULL is fine */

/* *confirm NULL where there is no file. -EINVAL for what is no such file, -ENOMEM, errno's. */
int weir_confirm_read(const char *path, struct weir_confirm **confirm, struct weir_error *err);
/* Atomic, on disk when it returns. */
int weir_confirm_write(const char *path, const struct weir_confirm *confirm,
		       struct weir_error *err);
/* Where there is no file: 0. */
int weir_confirm_remove(const char *path, struct weir_error *err);

/* Nanoseconds until it goes back; 0: the time is over, or it doesn't wait. */
uint64_t weir_confirm_left_ns(const struct weir_confirm *confirm, const char *boot_id,
			      uint64_t boot_ns);
/* This boot's, WEIR_BOOT_ID bytes; "" if the kernel doesn't tell. */
void weir_confirm_boot_id(char *boot_id);

/*
 * The policy as canonical YAML without files: their prefixes are in it. NULL: no memory, or more
 * than a policy may have (WEIR_POLICY_FILE_MAX): *code.
 */
char *weir_confirm_policy_text(const struct weir_policy *policy, int *code,
			       struct weir_error *err);
