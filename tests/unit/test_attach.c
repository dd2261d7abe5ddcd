// SPDX-License-Identifier: GPL-2.0
/* What is attached, replaced and taken off beside the programs of others; those always stay. */
#include "fake_attach.h"

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

/* Then the one goes in that doesn't, and the reason says what that means. */
static void drops_beside_others_where_it_may_not_answer(void)
{
	begin();
	fake.join_answering = -EINVAL;
	fake.words = VERDICT;
	fake_attach_inside("one", false);
	for (int start = 0; start < 2; start++) {
		CU_ASSERT_EQUAL(attach(), 0);
		CU_ASSERT_TRUE(status.dispatcher);
		CU_ASSERT_PTR_EQUAL(strstr(status.reason, "`refuse: reset` drops here"),
				    status.reason);
		CU_ASSERT_EQUAL(held_by(), WEIR_HELD_BY_US);
		CU_ASSERT_STRING_EQUAL(fake.programs[found.id].name, "weir_xdp_mute");
		CU_ASSERT_EQUAL(fake_inside(true), 1);
		CU_ASSERT_EQUAL(fake_inside(false), 1);
		restart();
	}
	/* Beside another reason. */
	fake.mode = XDP_ATTACHED_SKB;
	CU_ASSERT_EQUAL(attach(), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(status.reason, "native again; `refuse: reset` drops here"));
	CU_ASSERT_EQUAL(detach(), 0);
	CU_ASSERT_EQUAL(held_by(), WEIR_HELD_BY_OTHERS);
	end();
}

/* On a free interface of such a kernel it answers; where others share the next one, it drops. */
static void answers_alone_where_it_may_not_beside_others(void)
{
	begin();
	fake.join_answering = -EINVAL;
	fake.words = VERDICT;
	CU_ASSERT_EQUAL(attach(), 0);
	CU_ASSERT_FALSE(status.dispatcher);
	CU_ASSERT_STRING_EQUAL(status.reason, "");
	CU_ASSERT_EQUAL(held_by(), WEIR_HELD_BY_US);
	CU_ASSERT_STRING_EQUAL(fake.programs[found.id].name, "weir_xdp");
	CU_ASSERT_EQUAL(detach(), 0);
	fake_attach_inside("one", false);
	CU_ASSERT_EQUAL(attach(), 0);
	CU_ASSERT_TRUE(status.dispatcher);
	CU_ASSERT_EQUAL(held_by(), WEIR_HELD_BY_US);
	CU_ASSERT_STRING_EQUAL(fake.programs[found.id].name, "weir_xdp_mute");
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

WEIR_TESTS("attach", TEST(joins_others_in_a_dispatcher),
	   TEST(ours_on_another_interface_is_not_here), TEST(is_replaced_among_others),
	   TEST(a_failed_replacement_leaves_ours_of_before), TEST(leaves_others_in_the_dispatcher),
	   TEST(takes_an_empty_dispatcher_along), TEST(says_what_keeps_it_in_the_dispatcher),
	   TEST(is_kept_out_where_others_share), TEST(drops_beside_others_where_it_may_not_answer),
	   TEST(answers_alone_where_it_may_not_beside_others), TEST(a_full_dispatcher_is_said))
