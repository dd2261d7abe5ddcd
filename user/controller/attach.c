// SPDX-License-Identifier: GPL-2.0
#include "controller/attach.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <xdp/libxdp.h>

#include "controller/programs.h"

/* ---- attach ---- */

static uint32_t flag_of(enum weir_attachment mode)
{
	return mode == WEIR_ATTACHED_GENERIC ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE;
}

static enum xdp_attach_mode libxdp_mode(enum weir_attachment mode)
{
	return mode == WEIR_ATTACHED_GENERIC ? XDP_MODE_SKB : XDP_MODE_NATIVE;
}

/* The program of ours that stands alone: fd or -errno. */
static int single_fd(struct weir_xdp *xdp)
{
	struct weir_error words;
	int code;

	if (xdp->single)
		return bpf_program__fd(xdp->single->progs.weir_xdp);
	xdp->single = weir_load_programs_open(xdp->load, 1U << WEIR_HOOK_XDP);
	if (!xdp->single)
		return -errno;
	code = weir_load_programs(xdp->single, &words);
	if (!code) {
		weir_program_know(bpf_program__fd(xdp->single->progs.weir_xdp));
		weir_program_pin_next(bpf_program__fd(xdp->single->progs.weir_xdp),
				      xdp->load->pins);
		return bpf_program__fd(xdp->single->progs.weir_xdp);
	}
	weir_bpf__destroy(xdp->single);
	xdp->single = NULL;
	return code;
}

static int open_chained(struct weir_xdp *xdp)
{
	LIBBPF_OPTS(xdp_program_opts, options);
	struct xdp_program *program;

	if (xdp->chained)
		return 0;
	xdp->copy = weir_load_programs_open(xdp->load, 1U << WEIR_HOOK_XDP);
	if (!xdp->copy)
		return -errno;
	bpf_program__set_autoload(xdp->copy->progs.weir_xdp, !xdp->mute);
	bpf_program__set_autoload(xdp->copy->progs.weir_xdp_mute, xdp->mute);
	options.obj = xdp->copy->obj;
	options.prog_name = xdp->mute ? "weir_xdp_mute" : "weir_xdp";
	program = xdp_program__create(&options);
	if (libxdp_get_error(program))
		return (int)libxdp_get_error(program);
	xdp->chained = program;
	return 0;
}

static void close_chained(struct weir_xdp *xdp)
{
	if (xdp->chained)
		xdp_program__close(xdp->chained);
	weir_bpf__destroy(xdp->copy);
	xdp->chained = NULL;
	xdp->copy = NULL;
}

static int attach_chained(struct weir_xdp *xdp, uint32_t ifindex, enum weir_attachment mode)
{
	int code = open_chained(xdp);

	if (!code)
		code = xdp_program__attach(xdp->chained, (int)ifindex, libxdp_mode(mode), 0);
	if (!code)
		weir_program_know(xdp_program__fd(xdp->chained));
	/* What failed may be half loaded: the next try gets a fresh one. */
	if (code)
		close_chained(xdp);
	return code;
}

/*
 * Through libxdp, until it is known that it has no dispatcher here, or none for the program that
 * answers: that one then stands alone where nobody else is (not `shared`).
 */
static int attach_new(struct weir_xdp *xdp, uint32_t ifindex, enum weir_attachment mode,
		      bool shared)
{
	uint32_t flags = flag_of(mode) | XDP_FLAGS_UPDATE_IF_NOEXIST;
	struct weir_xdp_found found;
	int fd, code;

	weir_kernel_words_clear();
	if (xdp->no_dispatcher || (xdp->mute && !shared)) {
		fd = single_fd(xdp);
		return fd < 0 ? fd : bpf_xdp_attach((int)ifindex, fd, flags, NULL);
	}
	code = attach_chained(xdp, ifindex, mode);
	/*
	 * -ENOENT: libxdp's own object file is not installed. Refused: from some version on the
	 * kernel wants a program that may change packets, as ours that answers with a RST, in no
	 * dispatcher that says it doesn't.
	 */
	if (code == -ENOENT || (code && weir_kernel_refused())) {
		snprintf(xdp->why_alone, sizeof(xdp->why_alone), "%s", weir_kernel_words());
		xdp->no_dispatcher = code == -ENOENT || xdp->mute;
		xdp->mute = !xdp->no_dispatcher;
		return attach_new(xdp, ifindex, mode, shared);
	}
	/* libxdp found no dispatcher and loaded ours to stand alone. */
	if (!code && !weir_xdp_look(xdp->board_id, ifindex, &found) && !found.dispatcher) {
		xdp->no_dispatcher = true;
		close_chained(xdp);
	}
	return code;
}

/* Takes ours out of a dispatcher, after that of `next` (NULL: none) has come into it. */
static int leave_dispatcher(uint32_t ifindex, const struct weir_xdp_found *old,
			    struct weir_xdp *next)
{
	/* libxdp's own look-up by id loses a descriptor. */
	int fd = weir_program_open(old->id), code;
	struct xdp_program *program;

	if (fd < 0)
		return fd;
	program = xdp_program__from_fd(fd);
	close(fd);
	code = (int)libxdp_get_error(program);
	if (code)
		return code;
	if (next)
		code = attach_new(next, ifindex, old->mode, true);
	if (!code)
		code = xdp_program__detach(program, (int)ifindex, libxdp_mode(old->mode), 0);
	xdp_program__close(program);
	return code;
}

/* By one exchange, or within a dispatcher first the new one, then the old one off. */
static int replace(struct weir_xdp *xdp, uint32_t ifindex, const struct weir_xdp_found *old)
{
	LIBBPF_OPTS(bpf_xdp_attach_opts, options);
	int old_fd, fd, code;

	if (old->dispatcher)
		return leave_dispatcher(ifindex, old, xdp);
	fd = single_fd(xdp);
	old_fd = fd < 0 ? fd : weir_program_open(old->id);
	if (old_fd < 0)
		return old_fd;
	options.old_prog_fd = old_fd;
	code = bpf_xdp_attach((int)ifindex, fd, flag_of(old->mode) | XDP_FLAGS_REPLACE, &options);
	close(old_fd);
	return code;
}

static int foreign(const struct weir_interface_status *status, const struct weir_xdp_found *found,
		   struct weir_error *err)
{
	return weir_error_set(err, -EBUSY,
			      "interface %s: an XDP program of somebody else is attached: id %u, "
			      "name %s, tag %s (`bpftool prog show id %u`); weir leaves it alone: "
			      "take it off, or load it by libxdp's dispatcher, then it is shared",
			      status->name, found->id, *found->name ? found->name : "(none)",
			      found->tag, found->id);
}

/* Others share the interface, but weir can't be among them here. */
static int kept_out(const struct weir_xdp *xdp, const struct weir_interface_status *status,
		    const struct weir_xdp_found *found, struct weir_error *err)
{
	return weir_error_set(err, -EBUSY,
			      "interface %s: other programs share it by libxdp's dispatcher, id "
			      "%u, and weir can't join them here: %s; weir leaves them alone: "
			      "take them off first",
			      status->name, found->id, xdp->why_alone);
}

int weir_interface_mtu(const char *name)
{
	struct ifreq request = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int mtu = 0;

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (fd >= 0 && !ioctl(fd, SIOCGIFMTU, &request))
		mtu = request.ifr_mtu;
	if (fd >= 0)
		close(fd);
	return mtu;
}

/* Why the driver refused, in words: "Peer MTU is too large to set XDP" is the kernel's. */
static void why_not_native(const struct weir_interface_status *status, int code, char *text,
			   size_t size)
{
	const char *words = weir_kernel_words();

	if (code == -EOPNOTSUPP && !*words)
		words = "the driver has no XDP";
	snprintf(
		text, size,
		"native mode refused: %s%s%s; MTU is %d (native XDP needs a driver that has it and "
		"a frame that fits a page: on veth the peer's MTU 3506 at most)",
		strerror(-code), *words ? ": " : "", words, weir_interface_mtu(status->name));
}

static bool may_try_generic(const struct weir_interface_status *status, int code)
{
	return status->asked == WEIR_POLICY_AUTO && code != -EBUSY && code != -EEXIST &&
	       code != -ENODEV && code != -EPERM && code != -ENOMEM;
}

static int attach_fresh(struct weir_xdp *xdp, struct weir_interface_status *status, bool shared,
			struct weir_error *err)
{
	bool generic = status->asked == WEIR_POLICY_GENERIC;
	enum weir_attachment mode = generic ? WEIR_ATTACHED_GENERIC : WEIR_ATTACHED_NATIVE;
	int code = attach_new(xdp, status->ifindex, mode, shared);
	char why[400];

	status->reason[0] = '\0';
	if (code && weir_kernel_refused())
		return weir_error_set(
			err, code,
			"interface %s: this kernel's verifier refuses weir's program: %s",
			status->name, weir_kernel_words());
	if (code && !generic) {
		why_not_native(status, code, why, sizeof(why));
		if (!may_try_generic(status, code))
			return weir_error_set(err, code,
					      "interface %s: %s; say mode: auto or generic to "
					      "limit in the slower generic mode",
					      status->name, why);
		snprintf(status->reason, sizeof(status->reason), "%s", why);
		mode = WEIR_ATTACHED_GENERIC;
		code = attach_new(xdp, status->ifindex, mode, shared);
	}
	if (code)
		return weir_error_set(err, code,
				      "interface %s: can't attach in generic mode: %s %s",
				      status->name, strerror(-code), weir_kernel_words());
	status->attached = mode;
	return 0;
}

/* Native asked for and generic there, or the other way: the kernel has no exchange for that. */
static int change_mode(struct weir_xdp *xdp, struct weir_interface_status *status,
		       const struct weir_xdp_found *old, struct weir_error *err)
{
	int code = weir_xdp_detach(xdp->board_id, status->ifindex, err);

	if (code)
		return code;
	code = attach_fresh(xdp, status, old->dispatcher, err);
	if (code && !attach_new(xdp, status->ifindex, old->mode, old->dispatcher))
		status->attached = old->mode;
	return code;
}

static bool mode_suits(enum weir_policy_attach asked, enum weir_attachment mode)
{
	return asked == WEIR_POLICY_AUTO ||
	       (asked == WEIR_POLICY_NATIVE) == (mode == WEIR_ATTACHED_NATIVE);
}

static int attach_over(struct weir_xdp *xdp, struct weir_interface_status *status,
		       const struct weir_xdp_found *old, struct weir_error *err)
{
	int code;

	if (!mode_suits(status->asked, old->mode))
		return change_mode(xdp, status, old, err);
	code = replace(xdp, status->ifindex, old);
	status->attached = old->mode;
	if (code)
		return weir_error_set(err, code,
				      "interface %s: can't replace our program %u of before: %s %s",
				      status->name, old->id, strerror(-code), weir_kernel_words());
	status->reason[0] = '\0';
	if (old->mode == WEIR_ATTACHED_GENERIC && status->asked == WEIR_POLICY_AUTO)
		snprintf(status->reason, sizeof(status->reason),
			 "in generic mode since an earlier start: `weir stop --detach`, then a "
			 "start "
			 "tries native again");
	return 0;
}

static void say_mute(struct weir_interface_status *status)
{
	size_t length = strlen(status->reason);

	snprintf(status->reason + length, sizeof(status->reason) - length,
		 "%s`refuse: reset` drops here: the kernel lets no program into libxdp's "
		 "dispatcher that answers packets",
		 length ? "; " : "");
}

/* For a later run that may not open programs by their ids. */
static void pin(struct weir_xdp *xdp, const struct weir_xdp_found *found)
{
	int fd;

	if (found->holder != WEIR_HELD_BY_US || found->dispatcher || found->id == xdp->pinned_id)
		return;
	fd = weir_program_open(found->id);
	if (fd < 0)
		return;
	weir_program_pin(fd, xdp->load->pins);
	xdp->pinned_id = found->id;
	close(fd);
}

/* What a kernel or driver refuses is no bad input, whatever its code (weir_error_code). */
static int as_refusal(int code)
{
	switch (code) {
	case 0:
	case -EBUSY:
	case -ENODEV:
	case -ENOMEM:
	case -EPERM:
		return code;
	default:
		return -EIO;
	}
}

int weir_xdp_attach(struct weir_xdp *xdp, struct weir_interface_status *status,
		    struct weir_error *err)
{
	struct weir_xdp_found found;
	int code = weir_xdp_look(xdp->board_id, status->ifindex, &found);
	bool shared;

	if (code)
		return weir_error_set(err, code, "interface %s: can't ask for its XDP program: %s",
				      status->name, strerror(-code));
	switch (found.holder) {
	case WEIR_HELD_BY_FOREIGN:
		return foreign(status, &found, err);
	case WEIR_HELD_BY_US:
		code = attach_over(xdp, status, &found, err);
		break;
	default:
		shared = found.holder == WEIR_HELD_BY_OTHERS;
		code = attach_fresh(xdp, status, shared, err);
		if (code && shared && *xdp->why_alone)
			code = kept_out(xdp, status, &found, err);
	}
	if (!weir_xdp_look(xdp->board_id, status->ifindex, &found)) {
		status->dispatcher = found.dispatcher;
		if (!code && found.dispatcher && xdp->mute)
			say_mute(status);
		pin(xdp, &found);
	}
	return as_refusal(code);
}

/* ---- detach ---- */

static int detach_found(uint32_t ifindex, const struct weir_xdp_found *found)
{
	LIBBPF_OPTS(bpf_xdp_attach_opts, options);
	int fd, code;

	if (found->dispatcher)
		return leave_dispatcher(ifindex, found, NULL);
	fd = weir_program_open(found->id);
	if (fd < 0)
		return fd;
	/* In the mode it was attached in: the kernel answers 0 to another and does nothing. */
	options.old_prog_fd = fd;
	code = bpf_xdp_detach((int)ifindex, flag_of(found->mode) | XDP_FLAGS_REPLACE, &options);
	close(fd);
	return code;
}

int weir_xdp_detach(uint32_t board_id, uint32_t ifindex, struct weir_error *err)
{
	struct weir_xdp_found found;
	int code = weir_xdp_look(board_id, ifindex, &found);

	if (!code && found.holder == WEIR_HELD_BY_US) {
		code = detach_found(ifindex, &found);
		if (!code && !weir_xdp_look(board_id, ifindex, &found) &&
		    found.holder == WEIR_HELD_BY_US)
			code = -EBUSY;
	}
	if (!code || code == -ENODEV)
		return 0;
	return weir_error_set(err, code, "can't take our XDP program off interface %u: %s", ifindex,
			      strerror(-code));
}

int weir_xdp_detach_all(uint32_t board_id, struct weir_error *err)
{
	struct if_nameindex *interfaces = if_nameindex();
	int code = interfaces ? 0 : -errno;

	for (struct if_nameindex *i = interfaces; i && i->if_index; i++) {
		int one = weir_xdp_detach(board_id, i->if_index, err);

		if (one)
			code = one;
	}
	if (interfaces)
		if_freenameindex(interfaces);
	else
		weir_error_set(err, code, "can't list the interfaces: %s", strerror(-code));
	return code;
}

void weir_xdp_close(struct weir_xdp *xdp)
{
	close_chained(xdp);
	weir_bpf__destroy(xdp->single);
	xdp->single = NULL;
}
