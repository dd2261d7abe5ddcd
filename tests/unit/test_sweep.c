// SPDX-License-Identifier: GPL-2.0
/* Places of removed limits are freed, and no others. The ledger is memory of a memfd here. */
#include "harness.h"

#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "controller/sweep.h"
#include "fake_dataplane.h"

#define SETS 1024
#define NOW_NS 1000000000ULL
#define HELD (2 * NOW_NS << WEIR_TICK_SHIFT)

static int ledger_fd;

static void open_fake(struct weir_dataplane *fake)
{
	size_t bytes = SETS * sizeof(struct weir_set);

	fake_dataplane_make(fake, SETS, 64);
	free(fake->ledger);
	ledger_fd = memfd_create("ledger", MFD_CLOEXEC);
	CU_ASSERT_EQUAL_FATAL(ftruncate(ledger_fd, (off_t)bytes), 0);
	fake->ledger = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ledger_fd, 0);
	CU_ASSERT_FATAL(fake->ledger != MAP_FAILED);
}

static void close_fake(struct weir_dataplane *fake)
{
	munmap(fake->ledger, SETS * sizeof(struct weir_set));
	fake->ledger = NULL;
	fake_dataplane_free(fake);
	close(ledger_fd);
}

static unsigned int fill(struct weir_dataplane *fake, const struct weir_limit *limit,
			 unsigned int count, uint64_t state)
{
	unsigned int filled = 0;
	char address[32];

	for (unsigned int i = 0; i < count; i++) {
		snprintf(address, sizeof(address), "10.1.%u.%u", i >> 8, i & 255);
		filled += fake_key_add(fake, limit, address, 1, 0, state) != UINT32_MAX;
	}
	return filled;
}

static unsigned int held_of(const struct weir_dataplane *fake, uint16_t slot)
{
	unsigned int held = 0;

	for (uint32_t place = 0; place < SETS * WEIR_WAYS; place++)
		held += fake->keys[place].slot == slot && fake_tag_at(fake, place) &&
			fake->ledger[place / WEIR_WAYS].state[place % WEIR_WAYS] == HELD;
	return held;
}

static void only_what_no_limit_has_is_freed(void)
{
	struct weir_dataplane fake;
	struct weir_limit *kept, *rekeyed, old, removed;
	unsigned int count, kept_count, busy = 3;

	open_fake(&fake);
	kept = fake_limit_add(&fake, "kept", "", 1);
	rekeyed = fake_limit_add(&fake, "rekeyed", "", 2);
	old = *rekeyed;
	old.salt++;
	removed = *kept;
	removed.slot = 7;
	removed.salt = 99;
	kept_count = fill(&fake, kept, 500, HELD);
	count = fill(&fake, &old, 500, HELD) + fill(&fake, &removed, 500, HELD);
	CU_ASSERT_EQUAL(fill(&fake, rekeyed, 100, HELD), 100);
	/* Being claimed: somebody else's for the moment. */
	for (uint32_t place = 0; place < SETS * WEIR_WAYS && busy; place++) {
		uint64_t *state = &fake.ledger[place / WEIR_WAYS].state[place % WEIR_WAYS];

		if (fake.keys[place].slot != 7 || *state != HELD)
			continue;
		*state = WEIR_STATE_BUSY;
		busy--;
	}
	CU_ASSERT_EQUAL(weir_sweep_ledger(&fake, ledger_fd, NOW_NS), (int64_t)count - 3);
	CU_ASSERT_EQUAL(held_of(&fake, 1), kept_count);
	CU_ASSERT_EQUAL(held_of(&fake, 2), 100);
	CU_ASSERT_EQUAL(held_of(&fake, 7), 0);
	CU_ASSERT_EQUAL(weir_sweep_ledger(&fake, ledger_fd, NOW_NS), 0);
	close_fake(&fake);
}

WEIR_TESTS("sweep", TEST(only_what_no_limit_has_is_freed))
