// SPDX-License-Identifier: GPL-2.0
/* The same where no others are, in either mode. */
#include "fake_attach.h"

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

WEIR_TESTS("attach alone", TEST(stands_alone_where_no_dispatcher_takes_it),
	   TEST(learns_that_libxdp_has_no_dispatcher), TEST(is_exchanged_in_one_step),
	   TEST(a_program_that_does_not_load_replaces_nothing), TEST(a_strangers_program_stays),
	   TEST(an_empty_dispatcher_is_a_stranger),
	   TEST(takes_generic_mode_where_native_is_refused),
	   TEST(native_alone_is_refused_in_the_drivers_words),
	   TEST(tries_no_other_mode_where_that_is_no_help),
	   TEST(the_verifiers_no_is_said_in_its_words), TEST(changes_the_mode_that_is_asked_for),
	   TEST(a_mode_that_fails_is_changed_back), TEST(an_interface_that_is_gone_is_no_detach),
	   TEST(ours_that_cannot_be_opened_stays))
