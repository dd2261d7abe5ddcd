// SPDX-License-Identifier: GPL-2.0
#include "controller/session.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ADVICE                                                                          \
	"which would cut off the ssh session that this is typed in: put %s on the allow " \
	"list first (weir allow add), or give --force"

/* ---- SSH_CONNECTION ---- */

static int parse_address(char *text, uint8_t *family, uint8_t address[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };
	char *zone = strchr(text, '%');

	if (zone)
		*zone = '\0';
	memset(address, 0, 16);
	*family = 4;
	if (inet_pton(AF_INET, text, address) == 1)
		return 0;
	*family = 6;
	if (inet_pton(AF_INET6, text, address) != 1)
		return -EINVAL;
	if (memcmp(address, mapped, sizeof(mapped)))
		return 0;
	*family = 4;
	memmove(address, address + 12, 4);
	memset(address + 4, 0, 12);
	return 0;
}

static int parse_port(const char *text, uint16_t *port)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || !value || value > UINT16_MAX)
		return -EINVAL;
	*port = (uint16_t)value;
	return 0;
}

int weir_session_parse(const char *text, struct weir_session *session, struct weir_error *err)
{
	char peer[64], own[64], peer_port[8], own_port[8], more[2];
	uint8_t family;

	if (sscanf(text, "%63s %7s %63s %7s %1s", peer, peer_port, own, own_port, more) == 4 &&
	    !parse_address(peer, &session->family, session->peer) &&
	    !parse_address(own, &family, session->own) && family == session->family &&
	    !parse_port(peer_port, &session->peer_port) &&
	    !parse_port(own_port, &session->own_port))
		return 0;
	return weir_error_set(err, -EINVAL,
			      "SSH_CONNECTION '%.128s': not 'client port server port', so it can't "
			      "be told whether this change cuts the session off: set it right, or "
			      "give --force",
			      text);
}

/* ---- its packets ---- */

enum part { DATA, ACK, SYN, PARTS };

/* From the peer, or to it where `out`. */
static struct weir_packet packet_of(const struct weir_session *session, bool out, enum part part)
{
	static const uint8_t flags[PARTS] = { [DATA] = 0x18, [ACK] = 0x10, [SYN] = WEIR_TCP_SYN };
	struct weir_packet packet = {
		.source_port = out ? session->own_port : session->peer_port,
		.destination_port = out ? session->peer_port : session->own_port,
		.vlan = WEIR_NO_VLAN,
		.family = session->family,
		.protocol = WEIR_IP_TCP,
		.has = WEIR_HAS_PORTS | WEIR_HAS_TCP_FLAGS,
		.tcp_flags = flags[part],
	};

	/* The server answers a SYN by SYN and ACK. */
	if (out && part == SYN)
		packet.tcp_flags |= 0x10;
	memcpy(packet.source, out ? session->own : session->peer, sizeof(packet.source));
	memcpy(packet.destination, out ? session->peer : session->own, sizeof(packet.destination));
	return packet;
}

/* ---- limits ---- */

/* `quota` in `span_ns` is less than `least` a second. */
static bool is_slow(uint64_t quota, uint64_t span_ns, uint64_t least)
{
	return (double)quota * 1e9 < (double)least * (double)span_ns;
}

/* On average; a burst is soon spent. */
static bool starves(const struct weir_policy_limit *limit)
{
	const struct weir_rate *rate = &limit->bucket.rate;

	switch (limit->kind) {
	case WEIR_POLICY_BUCKET:
		return rate->per_ns && is_slow(rate->amount, rate->per_ns,
					       rate->bytes ? WEIR_SESSION_BYTES : WEIR_SESSION_PPS);
	case WEIR_POLICY_SLIDING:
		return is_slow(limit->sliding.quota, limit->sliding.window_ns, WEIR_SESSION_PPS);
	case WEIR_POLICY_PERIOD:
		return is_slow(limit->period.quota, limit->period.period_ns, WEIR_SESSION_PPS);
	case WEIR_POLICY_GATE:
		return false;
	}
	return false;
}

/* The first limit that refuses the packet; -1: none. */
static int refusing(const struct weir_session_ground *ground, const struct weir_packet *packet,
		    enum weir_hook hook, uint32_t slot, enum part part)
{
	struct weir_bitmap match =
		weir_compiled_match(ground->compiled, packet, hook, slot, WEIR_BY_VLAN);

	for (size_t i = 0; i < ground->policy->limit_count; i++) {
		const struct weir_policy_limit *limit = &ground->policy->limits[i];
		const bool changes = ground->only < 0 || ground->only == (int)i;
		uint8_t flags = ground->compiled->limits[i].flags;

		if (!changes || !weir_bitmap_has(&match, i) || flags & WEIR_LIMIT_MONITOR)
			continue;
		if (flags & WEIR_LIMIT_BLOCK || (part != SYN && starves(limit)))
			return (int)i;
	}
	return -1;
}

static int say_limit(const struct weir_session_ground *ground, int index, enum part part,
		     const char *peer, struct weir_error *err)
{
	const struct weir_policy_limit *limit = &ground->policy->limits[index];
	const bool block = ground->compiled->limits[index].flags & WEIR_LIMIT_BLOCK;
	const char *what = !block	 ? "is too slow for it" :
			   part == SYN ? "refuses new connections from it" :
					 "refuses it";

	return weir_error_set(err, -ECONNABORTED, "%s:%u: limit %s (%s) %s, " ADVICE,
			      ground->policy->file, limit->line, limit->name,
			      ground->compiled->labels[index].setting, what, peer);
}

/* ---- all of it ---- */

/* XDP is there for every interface, a hook of TC where a limit is. */
static bool is_used(const struct weir_session_ground *ground, enum weir_hook hook)
{
	return hook == WEIR_HOOK_XDP ||
	       (ground->compiled && weir_bitmap_any(&ground->compiled->head.hooks[hook]));
}

/* At one hook of one interface: lists first, as the kernel side does. */
static int check_hook(const struct weir_session *session, const struct weir_session_ground *ground,
		      enum weir_hook hook, uint32_t slot, const char *peer, struct weir_error *err)
{
	const bool out = hook == WEIR_HOOK_TC_EGRESS;
	const uint8_t *source = out ? session->own : session->peer;
	const struct weir_list_entry *denied =
		ground->only >= 0 ? NULL :
				    weir_list_match(ground->deny, session->family, source,
						    ground->now_ns);
	char prefix[WEIR_PREFIX_TEXT];

	if (weir_list_match(ground->allow, session->family, source, ground->now_ns))
		return 0;
	if (denied)
		return weir_error_set(err, -ECONNABORTED, "the deny list has %s, " ADVICE,
				      weir_prefix_print(&denied->prefix, prefix), peer);
	for (int part = 0; part < PARTS && ground->compiled; part++) {
		struct weir_packet packet = packet_of(session, out, (enum part)part);
		int limit = refusing(ground, &packet, hook, slot, (enum part)part);

		if (limit >= 0)
			return say_limit(ground, limit, (enum part)part, peer, err);
	}
	return 0;
}

int weir_session_check(const struct weir_session *session,
		       const struct weir_session_ground *ground, struct weir_error *err)
{
	char peer[INET6_ADDRSTRLEN];
	int code = 0;

	inet_ntop(session->family == 4 ? AF_INET : AF_INET6, session->peer, peer, sizeof(peer));
	for (size_t i = 0; i < ground->policy->interface_count; i++) {
		for (int hook = 0; hook < WEIR_HOOKS && ground->by[i] && !code; hook++) {
			if (is_used(ground, (enum weir_hook)hook))
				code = check_hook(session, ground, (enum weir_hook)hook,
						  ground->slots[i], peer, err);
		}
	}
	return code;
}
