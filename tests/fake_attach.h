/* SPDX-License-Identifier: GPL-2.0 */
/* A controller on the one interface of fake_xdp.h, for the tests of attach.c. */
#pragma once

#include "count_fds.h"
#include "fake_xdp.h"

/* What the verifier says of a program that is let in nowhere. */
#define VERDICT                                                                                    \
	"libbpf: prog 'weir_xdp': -- BEGIN PROG LOAD LOG --\nmay not write packets\nprocessed 9 "  \
	"insns"

static struct weir_load load;
static struct weir_xdp xdp;
static struct weir_interface_status status;
static struct weir_xdp_found found;
static struct weir_error err;
static int fds_before;

static inline void begin(void)
{
	memset(&fake, 0, sizeof(fake));
	fake.single.fd = -1;
	strcpy(load.pins, "/tmp/weir-attach-XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(load.pins));
	weir_kernel_words_listen();
	fds_before = count_fds();
	xdp = (struct weir_xdp){ .load = &load, .board_id = FAKE_BOARD };
	status = (struct weir_interface_status){ .name = "e0", .ifindex = 9 };
	err.text[0] = '\0';
}

/* What a controller held ends with it; programs and pins stay. */
static inline void close_all(void)
{
	weir_xdp_close(&xdp);
	if (fake.single.fd >= 0)
		close(fake.single.fd);
	fake.single.fd = -1;
	weir_programs_forget();
	CU_ASSERT_EQUAL(count_fds(), fds_before);
}

static inline void end(void)
{
	char path[WEIR_PINS_SIZE + 32];

	close_all();
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/weir_xdp%s", load.pins, i ? "_next" : "");
		unlink(path);
	}
	CU_ASSERT_EQUAL(rmdir(load.pins), 0);
}

static inline int attach(void)
{
	return weir_xdp_attach(&xdp, &status, &err);
}

static inline int detach(void)
{
	return weir_xdp_detach(FAKE_BOARD, status.ifindex, &err);
}

/* A new controller on the same interface. */
static inline void restart(void)
{
	close_all();
	xdp = (struct weir_xdp){ .load = &load, .board_id = FAKE_BOARD };
}

static inline bool says(const char *words)
{
	return strstr(err.text, words);
}

static inline enum weir_holder held_by(void)
{
	CU_ASSERT_EQUAL_FATAL(weir_xdp_look(FAKE_BOARD, status.ifindex, &found), 0);
	return found.holder;
}
