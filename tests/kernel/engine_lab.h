/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the engine's tests stand on: a network namespace, a folder of pins and files of this
 * process's own; a veth pair w0 (limited) - w1; UDP frames sent into w1; a foreign program.
 */
#pragma once

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "controller/engine.h"

#define W0 "  - {name: w0, mode: auto}\n"
/* No token comes while a test runs. */
#define TEN_A_DAY "  - {name: per-ip, key: source, bucket: {rate: 10/d, burst: 10}}\n"

struct lab {
	char folder[64];
	char pins[96];
	char config[96];
	char overrides[96];
	unsigned int keys; /* of the ledger */
	char log[1 << 16]; /* what the engine said since the test began, a line each */
};

static struct lab lab;

/* The command's exit code; its output is thrown away. */
__attribute__((format(printf, 1, 2))) static inline int lab_run(const char *format, ...)
{
	char command[512];
	va_list args;
	int used;

	va_start(args, format);
	used = vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	snprintf(command + used, sizeof(command) - (size_t)used, " >/dev/null 2>&1");
	return system(command);
}

static inline void lab_write(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	if (!file || fputs(text, file) < 0 || fclose(file))
		abort();
}

/* A configuration of interfaces and limits, each the YAML of its items. */
static inline void lab_config(const char *interfaces, const char *limits)
{
	char text[4096];

	snprintf(text, sizeof(text), "version: 1\nledger: {keys: %u}\ninterfaces:\n%slimits:\n%s",
		 lab.keys, interfaces, limits);
	lab_write(lab.config, text);
}

static inline void lab_note(void *context, const char *line)
{
	struct lab *to = context;
	size_t used = strlen(to->log);

	snprintf(to->log + used, sizeof(to->log) - used, "%s\n", line);
}

static inline bool lab_said(const char *text)
{
	return strstr(lab.log, text);
}

static inline int lab_start(struct weir_engine **engine, struct weir_error *err)
{
	const struct weir_engine_options options = {
		.config = lab.config,
		.pins = lab.pins,
		.overrides = lab.overrides,
		.log = lab_note,
		.log_context = &lab,
	};

	*engine = NULL;
	err->text[0] = '\0';
	return weir_engine_start(engine, &options, err);
}

/* The same where it has to succeed: says why it did not. */
static inline int lab_begin(struct weir_engine **engine, struct weir_error *err)
{
	int code = lab_start(engine, err);

	if (code)
		printf("  %s\n", err->text);
	return code;
}

/* Also at the exit, whatever a failed test left. */
static inline void lab_close(void)
{
	struct weir_error err;

	weir_engine_detach_pins(lab.pins, &err);
	lab_run("rm -rf %s %s-new %s", lab.pins, lab.pins, lab.folder);
	lab_run("ip link del w0");
}

/* A clean place for a test: a new namespace, so what a failed one left is gone with the old. */
static inline void lab_open(void)
{
	static bool once;

	if (!once)
		atexit(lab_close);
	once = true;
	lab.log[0] = '\0';
	lab.keys = 1024;
	snprintf(lab.folder, sizeof(lab.folder), "/tmp/weir-test-%d", getpid());
	snprintf(lab.pins, sizeof(lab.pins), "/sys/fs/bpf/weir-test-%d", getpid());
	snprintf(lab.config, sizeof(lab.config), "%s/weir.yaml", lab.folder);
	snprintf(lab.overrides, sizeof(lab.overrides), "%s/var/overrides.json", lab.folder);
	mkdir(lab.folder, 0700);
	/* Without IPv6 the kernel sends nothing of its own. */
	if (unshare(CLONE_NEWNET) || lab_run("sysctl -w net.ipv6.conf.default.disable_ipv6=1") ||
	    lab_run("ip link add w0 type veth peer name w1") || lab_run("ip link set w0 up") ||
	    lab_run("ip link set w1 up"))
		abort();
}

static inline bool lab_has_pins(void)
{
	char path[128];
	struct stat st;

	snprintf(path, sizeof(path), "%s-new", lab.pins);
	return !stat(lab.pins, &st) || !stat(path, &st);
}

/* ---- XDP as the kernel tells it ---- */

static inline struct bpf_xdp_query_opts lab_query(const char *interface)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);

	bpf_xdp_query((int)if_nametoindex(interface), 0, &query);
	return query;
}

/* The program's id in any mode, 0 for none. */
static inline uint32_t lab_program(const char *interface)
{
	struct bpf_xdp_query_opts query = lab_query(interface);

	return query.drv_prog_id ? query.drv_prog_id : query.skb_prog_id;
}

static inline bool lab_is_generic(const char *interface)
{
	return lab_query(interface).attach_mode == XDP_ATTACHED_SKB;
}

/* Attaches a program of nobody's named "stranger", in place of any other; its id. */
static inline uint32_t lab_attach_named(const char *interface, const char *name)
{
	const struct bpf_insn pass[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_PASS },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, name, "GPL", pass, 2, NULL);

	if (fd < 0 || bpf_xdp_attach((int)if_nametoindex(interface), fd, 0, NULL))
		abort();
	close(fd);
	return lab_program(interface);
}

static inline uint32_t lab_attach_foreign(const char *interface)
{
	return lab_attach_named(interface, "stranger");
}

/* A TC filter of nobody's on clsact, which must be there. */
static inline void lab_attach_foreign_filter(const char *interface, enum bpf_tc_attach_point point)
{
	const struct bpf_insn pass[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = -1 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "stranger", "GPL", pass, 2, NULL);
	LIBBPF_OPTS(bpf_tc_hook, where, .ifindex = (int)if_nametoindex(interface),
		    .attach_point = point);
	LIBBPF_OPTS(bpf_tc_opts, filter, .prog_fd = fd, .handle = 1, .priority = 1);

	if (fd < 0 || bpf_tc_attach(&where, &filter))
		abort();
	close(fd);
}

/* ---- packets ---- */

static inline void lab_mac(const char *interface, uint8_t *mac)
{
	struct ifreq request = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
	if (fd < 0 || ioctl(fd, SIOCGIFHWADDR, &request))
		abort();
	memcpy(mac, request.ifr_hwaddr.sa_data, 6);
	close(fd);
}

/* `count` UDP frames of 64 bytes from w1 to w0, from 10.9.0.`last` to a port. */
static inline void lab_send(unsigned int count, uint8_t last, uint16_t port)
{
	uint8_t frame[64] = { [12] = 8,
			      [14] = 0x45,
			      [17] = 50,
			      [22] = 64,
			      [23] = 17,
			      [26] = 10,
			      9,
			      0,
			      last,
			      10,
			      9,
			      1,
			      1,
			      9,
			      9,
			      (uint8_t)(port >> 8),
			      (uint8_t)port,
			      0,
			      30 };
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_halen = 6 };
	int fd = socket(AF_PACKET, SOCK_RAW, 0);

	lab_mac("w0", frame);
	lab_mac("w1", frame + 6);
	to.sll_ifindex = (int)if_nametoindex("w1");
	for (unsigned int i = 0; i < count; i++) {
		/* ENOBUFS: refused on the way out. */
		if (sendto(fd, frame, sizeof(frame), 0, (struct sockaddr *)&to, sizeof(to)) < 0 &&
		    errno != ENOBUFS)
			abort();
	}
	close(fd);
}

static inline struct weir_totals lab_totals(struct weir_engine *engine, size_t limit)
{
	return weir_dataplane_totals(weir_engine_dataplane(engine),
				     weir_engine_slot(engine, limit));
}

/* The totals once they count `packets`, or after a second without. */
static inline struct weir_totals lab_await(struct weir_engine *engine, size_t limit,
					   uint64_t packets)
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	struct weir_totals totals = lab_totals(engine, limit);

	for (int i = 0; i < 1000 && totals.passed_packets + totals.refused_packets < packets; i++) {
		nanosleep(&ms, NULL);
		totals = lab_totals(engine, limit);
	}
	return totals;
}

/* A child that starts an engine and is killed; true if it had started. */
static inline bool lab_start_and_be_killed(void)
{
	pid_t child = fork();
	int status;

	if (!child) {
		struct weir_engine *engine;
		struct weir_error err;

		if (lab_begin(&engine, &err))
			_exit(1);
		lab_send(15, 1, 53);
		lab_await(engine, 0, 15);
		kill(getpid(), SIGKILL);
	}
	waitpid(child, &status, 0);
	return WIFSIGNALED(status);
}
