/* SPDX-License-Identifier: GPL-2.0 */
/* One controller a folder of pins: a lock on the folder, which ends with its holder. */
#pragma once

#include <stdbool.h>

#include "controller/error.h"

struct weir_pins_lock {
	int fd;
	bool made; /* the folder, by us */
};

/* Makes the folder if it is missing. -EBUSY where another controller has the pins. */
int weir_pins_lock(struct weir_pins_lock *lock, const char *pins, struct weir_error *err);
/* Takes the folder away if we made it and nothing is in it. */
void weir_pins_unlock(struct weir_pins_lock *lock, const char *pins);
