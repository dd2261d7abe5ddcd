// SPDX-License-Identifier: GPL-2.0
/* What is attached, replaced and taken off beside the programs of others; those always stay. */
#include <dirent.h>

#include "fake_xdp.h"

#define VERDICT                                                                                    \
	"libbpf: prog 'weir_xdp': -- BEGIN PROG LOAD LOG --\nmay not write packets\nprocessed 9 "  \
	"insns"

static struct weir_load load;
static struct weir_xdp xdp;
static struct weir_interface_status status;
static struct weir_xdp_found found;
static struct weir_error err;
static int fds_before;

static int count_fds(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int count = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

static void begin(void)
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
static void close_all(void)
{
	weir_xdp_close(&xdp);
	if (fake.single.fd >= 0)
		close(fake.single.fd);
	fake.single.fd = -1;
	weir_programs_forget();
	CU_ASSERT_EQUAL(count_fds(), fds_before);
}

static void end(void)
{
	char path[WEIR_PINS_SIZE + 32];

	close_all();
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/weir_xdp%s", load.pins, i ? "_next" : "");
		unlink(path);
	}
	CU_ASSERT_EQUAL(rmdir(load.pins), 0);
}

static int attach(void)
{
	return weir_xdp_attach(&xdp, &status, &err);
}

static int detach(void)
{
	return weir_xdp_detach(FAKE_BOARD, status.ifindex, &err);
}

/* A new controller on the same interface. */
static void restart(void)
{
	close_all();
	xdp = (struct weir_xdp){ .load = &load, .board_id = FAKE_BOARD };
}

static bool says(const char *words)
{
	return strstr(err.text, words);
}

static enum weir_holder held_by(void)
{
	CU_ASSERT_EQUAL_FATAL(weir_xdp_look(FAKE_BOARD, status.ifindex, &found), 0);
	return found.holder;
}

/* ---- beside others ---- */

static void joins_others_in_a_dispatcher(void)
{
	begin();
	fake_attach_inside("one", false);
	fake_attach_inside("two", false);
	CU_ASSERT_EQUAL(held_by(), WEIR_HELD_BY_OTHERS);
	CU_ASSERT_TRUE(found.dispatcher);
	CU_ASSERT_EQUAL(attach(), 0);
	CU_ASSERT_EQUAL(status.attached, WEIR_ATTACHED_NATIVE);
	CU_ASSERT_TRUE(status.dispatcher);
	CU_ASSERT_EQUAL(fake_inside(false), 2);
	CU_ASSERT_EQUAL(fake_inside(true), 1);
	CU_ASSERT_EQUAL(held_by(), WEIR_HELD_BY_US);
	CU_ASSERT_STRING_EQUAL(fake.programs[found.id].name, "weir_xdp");
	end();
}

static void ours_on_another_interface_is_not_here(void)
{
	uint32_t elsewhere;

	begin();
	fake_attach_inside("one", false);
	elsewhere = fake_program_add("xdp_dispatcher", false, 0);
	fake_program_add("weir_xdp", true, elsewhere);
	CU_ASSERT_EQUAL(held_by(), WEIR_HELD_BY_OTHERS);
	CU_ASSERT_EQUAL(attach(), 0);
	CU_ASSERT_EQUAL(fake_inside(true), 1);
	CU_ASSERT_EQUAL(fake_inside(false), 1);
	end();
}

static void is_replaced_among_others(void)
{
	uint32_t before;

	begin();
	fake_attach_inside("one", false);
	CU_ASSERT_EQUAL(attach(), 0);
	held_by();
	before = found.id;
	restart();
	CU_ASSERT_EQUAL(attach(), 0);
	CU_ASSERT_EQUAL(held_by(), WEIR_HELD_BY_US);
	CU_ASSERT_NOT_EQUAL(found.id, before);
	CU_ASSERT_EQUAL(fake_inside(true), 1);
	CU_ASSERT_EQUAL(fake_inside(false), 1);
	end();
}

static void a_failed_replacement_leaves_ours_of_before(void)
{
	const struct {
		int *fails;
		const char *words;
	} cases[] = { { &fake.create, "Permission denied" }, { &fake.join, "Permission denied" } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t before;

		begin();
		fake_attach_inside("one", false);
		before = fake_attach_inside("weir_xdp", true);
		*cases[i].fails = -EACCES;
		CU_ASSERT_EQUAL(attach(), -EIO);
		CU_ASSERT(says("e0: can't replace our program") && says(cases[i].words));
		CU_ASSERT_EQUAL(fake_inside(false), 1);
		CU_ASSERT_EQUAL(fake_inside(true), 1);
		CU_ASSERT_EQUAL(held_by(), WEIR_HELD_BY_US);
		CU_ASSERT_EQUAL(found.id, before);
		end();
	}
}

static void leaves_others_in_the_dispatcher(void)
{
	begin();
	fake_attach_inside("one", false);
	CU_ASSERT_EQUAL(attach(), 0);
	CU_ASSERT_EQUAL(detach(), 0);
	CU_ASSERT_EQUAL(fake_inside(true), 0);
	CU_ASSERT_EQUAL(fake_inside(false), 1);
	CU_ASSERT_EQUAL(held_by(), WEIR_HELD_BY_OTHERS);
	/* Once more: nothing of ours is there, nothing is done. */
	CU_ASSERT_EQUAL(detach(), 0);
	CU_ASSERT_EQUAL(fake_inside(false), 1);
	end();
}

static void takes_an_empty_dispatcher_along(void)
{
	begin();
	CU_ASSERT_EQUAL(attach(), 0);
	CU_ASSERT_TRUE(status.dispatcher);
	CU_ASSERT_EQUAL(detach(), 0);
	CU_ASSERT_EQUAL(held_by(), WEIR_HELD_BY_NOBODY);
	CU_ASSERT_EQUAL(fake.attached, 0);
	end();
}

static void says_what_keeps_it_in_the_dispatcher(void)
{
	begin();
	CU_ASSERT_EQUAL(attach(), 0);
	fake.leave = -ENOMEM;
	CU_ASSERT_EQUAL(detach(), -ENOMEM);
	CU_ASSERT(says("off interface 9: Cannot allocate memory"));
	fake.leave = 0;
	fake.create = -EINVAL;
	CU_ASSERT_EQUAL(detach(), -EINVAL);
	fake.create = 0;
	fake.sticks = true;
	CU_ASSERT_EQUAL(detach(), -EBUSY);
	CU_ASSERT_EQUAL(held_by(), WEIR_HELD_BY_US);
	end();
}

/* The kernel wants a program that may change packets in no dispatcher that doesn't. */
static void is_kept_out_where_others_share(void)
{
	begin();
	fake_attach_inside("one", false);
	fake_attach_inside("two", false);
	fake.join = -EINVAL;
	fake.words = VERDICT;
	CU_ASSERT_EQUAL(attach(), -EBUSY);
	CU_ASSERT(says("e0: other programs share it") && says("may not write packets"));
	CU_ASSERT_EQUAL(fake_inside(false), 2);
	CU_ASSERT_EQUAL(fake_inside(true), 0);
	CU_ASSERT_EQUAL(status.attached, WEIR_ATTACHED_NOT);
	/* Nor do they go at the next look. */
	CU_ASSERT_EQUAL(attach(), -EBUSY);
	CU_ASSERT_EQUAL(fake_inside(false), 2);
	end();
}

static void a_full_dispatcher_is_said(void)
{
	begin();
	fake_attach_inside("one", false);
	status.asked = WEIR_POLICY_NATIVE;
	fake.join = -E2BIG;
	CU_ASSERT_EQUAL(attach(), -EIO);
	CU_ASSERT(says("e0: native mode refused: Argument list too long"));
	CU_ASSERT_EQUAL(fake_inside(false), 1);
	end();
}

/* ---- alone ---- */

static void stands_alone_where_no_dispatcher_takes_it(void)
{
	static const struct {
		int join;
		const char *words;
	} cases[] = { { -ENOENT, NULL }, { -EINVAL, VERDICT } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin();
		fake.join = cases[i].join;
		fake.words = cases[i].words;
		CU_ASSERT_EQUAL(attach(), 0);
		CU_ASSERT_EQUAL(status.attached, WEIR_ATTACHED_NATIVE);
		CU_ASSERT_FALSE(status.dispatcher);
		CU_ASSERT_EQUAL(held_by(), WEIR_HELD_BY_US);
		CU_ASSERT_FALSE(found.dispatcher);
		end();
	}
}

/* libxdp itself attaches it alone; the next one asks libxdp no more. */
static void learns_that_libxdp_has_no_dispatcher(void)
{
	begin();
	fake.alone = true;
	CU_ASSERT_EQUAL(attach(), 0);
	CU_ASSERT_EQUAL(held_by(), WEIR_HELD_BY_US);
	CU_ASSERT_FALSE(status.dispatcher);
	CU_ASSERT_EQUAL(detach(), 0);
	CU_ASSERT_EQUAL(fake.attached, 0);
	fake.join = -EIO;
	CU_ASSERT_EQUAL(attach(), 0);
	CU_ASSERT_EQUAL(held_by(), WEIR_HELD_BY_US);
	end();
}

static void is_exchanged_in_one_step(void)
{
	uint32_t before;

	begin();
	before = fake_attach_alone("weir_xdp", true, XDP_ATTACHED_DRV);
	CU_ASSERT_EQUAL(attach(), 0);
	CU_ASSERT_EQUAL(held_by(), WEIR_HELD_BY_US);
	CU_ASSERT_NOT_EQUAL(found.id, before);
	CU_ASSERT_FALSE(found.dispatcher);
	/* Ours of before by its pin, where the kernel opens none by its id. */
	restart();
	fake.by_id = -EPERM;
	weir_programs_recall(load.pins);
	before = found.id;
	CU_ASSERT_EQUAL(attach(), 0);
	CU_ASSERT_NOT_EQUAL(fake.attached, before);
	CU_ASSERT_EQUAL(xdp.pinned_id, fake.attached);
	CU_ASSERT_EQUAL(detach(), 0);
	CU_ASSERT_EQUAL(fake.attached, 0);
	end();
}

static void a_program_that_does_not_load_replaces_nothing(void)
{
	uint32_t before;

	begin();
	before = fake_attach_alone("weir_xdp", true, XDP_ATTACHED_DRV);
	fake.load = -ENOMEM;
	CU_ASSERT_EQUAL(attach(), -ENOMEM);
	CU_ASSERT_EQUAL(fake.attached, before);
	fake.load = 0;
	fake.open = -EPERM;
	CU_ASSERT_EQUAL(attach(), -EPERM);
	CU_ASSERT_EQUAL(fake.attached, before);
	CU_ASSERT_EQUAL(status.attached, WEIR_ATTACHED_NATIVE);
	end();
	begin();
	fake.open = -ENOMEM;
	CU_ASSERT_EQUAL(attach(), -ENOMEM);
	CU_ASSERT_EQUAL(fake.attached, 0);
	end();
}

static void a_strangers_program_stays(void)
{
	uint32_t id;

	begin();
	id = fake_attach_alone("theirs", false, XDP_ATTACHED_DRV);
	CU_ASSERT_EQUAL(attach(), -EBUSY);
	CU_ASSERT(says("e0: an XDP program of somebody else") && says("name theirs, tag 01000000"));
	CU_ASSERT_EQUAL(detach(), 0);
	CU_ASSERT_EQUAL(fake.attached, id);
	/* Nor does one go that can't be looked at. */
	fake.by_id = -EPERM;
	CU_ASSERT_EQUAL(attach(), -EBUSY);
	CU_ASSERT(says("name (none)"));
	CU_ASSERT_EQUAL(fake.attached, id);
	end();
}

/* A dispatcher's name alone is none: no link says that it calls anybody. */
static void an_empty_dispatcher_is_a_stranger(void)
{
	begin();
	fake_attach_alone("xdp_dispatcher", false, XDP_ATTACHED_HW);
	CU_ASSERT_EQUAL(held_by(), WEIR_HELD_BY_FOREIGN);
	CU_ASSERT_FALSE(found.dispatcher);
	CU_ASSERT_EQUAL(found.mode, WEIR_ATTACHED_NATIVE);
	fake_attach_inside("one", false);
	fake.by_id = -EPERM;
	CU_ASSERT_EQUAL(held_by(), WEIR_HELD_BY_FOREIGN);
	end();
}

/* ---- modes ---- */

static void takes_generic_mode_where_native_is_refused(void)
{
	begin();
	fake.native = -EOPNOTSUPP;
	CU_ASSERT_EQUAL(attach(), 0);
	CU_ASSERT_EQUAL(status.attached, WEIR_ATTACHED_GENERIC);
	CU_ASSERT_PTR_NOT_NULL(strstr(status.reason, "the driver has no XDP; MTU is 0"));
	/* It stays so, and says why. */
	restart();
	fake.native = 0;
	CU_ASSERT_EQUAL(attach(), 0);
	CU_ASSERT_EQUAL(status.attached, WEIR_ATTACHED_GENERIC);
	CU_ASSERT_PTR_NOT_NULL(strstr(status.reason, "since an earlier start"));
	end();
}

static void native_alone_is_refused_in_the_drivers_words(void)
{
	begin();
	status.asked = WEIR_POLICY_NATIVE;
	fake.native = -ERANGE;
	fake.words = "libxdp: Peer MTU is too large\n";
	CU_ASSERT_EQUAL(attach(), -EIO);
	CU_ASSERT(says("e0: native mode refused") && says(": Peer MTU is too large; MTU is 0") &&
		  says("mode: auto"));
	CU_ASSERT_EQUAL(fake.attached, 0);
	end();
}

static void tries_no_other_mode_where_that_is_no_help(void)
{
	static const int codes[] = { -EBUSY, -ENODEV, -EPERM, -ENOMEM };

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		begin();
		fake.native = codes[i];
		CU_ASSERT_EQUAL(attach(), codes[i]);
		CU_ASSERT_EQUAL(fake.attached, 0);
		end();
	}
	begin();
	fake.native = -EOPNOTSUPP;
	fake.generic = -EINVAL;
	CU_ASSERT_EQUAL(attach(), -EIO);
	CU_ASSERT(says("e0: can't attach in generic mode: Invalid argument"));
	end();
}

/* Nothing is said of drivers then. */
static void the_verifiers_no_is_said_in_its_words(void)
{
	begin();
	fake.join = fake.native = -EINVAL;
	fake.words = VERDICT;
	CU_ASSERT_EQUAL(attach(), -EIO);
	CU_ASSERT(says("verifier refuses weir's program: may not write packets"));
	CU_ASSERT_EQUAL(fake.attached, 0);
	end();
}

static void changes_the_mode_that_is_asked_for(void)
{
	begin();
	fake_attach_alone("weir_xdp", true, XDP_ATTACHED_SKB);
	status.asked = WEIR_POLICY_NATIVE;
	CU_ASSERT_EQUAL(attach(), 0);
	CU_ASSERT_EQUAL(status.attached, WEIR_ATTACHED_NATIVE);
	CU_ASSERT_EQUAL(fake.mode, XDP_ATTACHED_DRV);
	/* And back: ours is in a dispatcher by now. */
	status.asked = WEIR_POLICY_GENERIC;
	CU_ASSERT_EQUAL(attach(), 0);
	CU_ASSERT_EQUAL(fake.mode, XDP_ATTACHED_SKB);
	CU_ASSERT_EQUAL(held_by(), WEIR_HELD_BY_US);
	CU_ASSERT_EQUAL(fake_inside(true), 1);
	end();
}

static void a_mode_that_fails_is_changed_back(void)
{
	begin();
	fake_attach_alone("weir_xdp", true, XDP_ATTACHED_SKB);
	status.asked = WEIR_POLICY_NATIVE;
	fake.native = -EOPNOTSUPP;
	CU_ASSERT_EQUAL(attach(), -EIO);
	CU_ASSERT(says("e0: native mode refused"));
	CU_ASSERT_EQUAL(held_by(), WEIR_HELD_BY_US);
	CU_ASSERT_EQUAL(fake.mode, XDP_ATTACHED_SKB);
	CU_ASSERT_EQUAL(status.attached, WEIR_ATTACHED_GENERIC);
	/* Not even taken off: nothing is tried. */
	fake.sticks = true;
	fake.native = 0;
	CU_ASSERT_EQUAL(attach(), -EBUSY);
	CU_ASSERT_EQUAL(fake.mode, XDP_ATTACHED_SKB);
	end();
}

/* ---- the interface ---- */

static void an_interface_that_is_gone_is_no_detach(void)
{
	begin();
	fake.query = -ENODEV;
	CU_ASSERT_EQUAL(detach(), 0);
	fake.query = -EPERM;
	CU_ASSERT_EQUAL(detach(), -EPERM);
	CU_ASSERT_EQUAL(attach(), -EPERM);
	CU_ASSERT(says("e0: can't ask for its XDP program: Operation not permitted"));
	CU_ASSERT_EQUAL(weir_xdp_detach_all(FAKE_BOARD, &err), -EPERM);
	fake.query = 0;
	fake_attach_alone("weir_xdp", true, XDP_ATTACHED_SKB);
	CU_ASSERT_EQUAL(weir_xdp_detach_all(FAKE_BOARD, &err), 0);
	CU_ASSERT_EQUAL(fake.attached, 0);
	end();
}

static void ours_that_cannot_be_opened_stays(void)
{
	begin();
	CU_ASSERT_EQUAL(weir_program_open(1), -ENOENT);
	CU_ASSERT_FALSE(weir_program_uses(1, FAKE_BOARD));
	CU_ASSERT_EQUAL(weir_map_id(-1), 0);
	CU_ASSERT_EQUAL(weir_interface_mtu("lo"), 65536);
	end();
}

WEIR_TESTS("attach", TEST(joins_others_in_a_dispatcher),
	   TEST(ours_on_another_interface_is_not_here), TEST(is_replaced_among_others),
	   TEST(a_failed_replacement_leaves_ours_of_before), TEST(leaves_others_in_the_dispatcher),
	   TEST(takes_an_empty_dispatcher_along), TEST(says_what_keeps_it_in_the_dispatcher),
	   TEST(is_kept_out_where_others_share), TEST(a_full_dispatcher_is_said),
	   TEST(stands_alone_where_no_dispatcher_takes_it),
	   TEST(learns_that_libxdp_has_no_dispatcher), TEST(is_exchanged_in_one_step),
	   TEST(a_program_that_does_not_load_replaces_nothing), TEST(a_strangers_program_stays),
	   TEST(an_empty_dispatcher_is_a_stranger),
	   TEST(takes_generic_mode_where_native_is_refused),
	   TEST(native_alone_is_refused_in_the_drivers_words),
	   TEST(tries_no_other_mode_where_that_is_no_help),
	   TEST(the_verifiers_no_is_said_in_its_words), TEST(changes_the_mode_that_is_asked_for),
	   TEST(a_mode_that_fails_is_changed_back), TEST(an_interface_that_is_gone_is_no_detach),
	   TEST(ours_that_cannot_be_opened_stays))
