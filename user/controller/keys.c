// SPDX-License-Identifier: GPL-2.0
#include "controller/keys.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "weir/place.h"

#define BOTH_ADDRESSES (WEIR_KEY_SOURCE | WEIR_KEY_DESTINATION)

void weir_limits_view_read(struct weir_limits_view *view, const struct weir_dataplane *dataplane)
{
	const struct weir_board *board = dataplane->board;
	uint32_t generation = weir_once(board->active.generation) & 1;
	uint32_t count = weir_once(board->policy[generation].limits);

	view->count = count < WEIR_LIMITS_MAX ? count : WEIR_LIMITS_MAX;
	memcpy(view->by_index, &board->limits[generation * WEIR_LIMITS_MAX],
	       view->count * sizeof(view->by_index[0]));
	for (int i = 0; i < WEIR_LIMITS_MAX; i++)
		view->index_of_slot[i] = -1;
	for (uint32_t i = 0; i < view->count; i++) {
		uint16_t slot = view->by_index[i].slot;

		if (slot < WEIR_LIMITS_MAX)
			view->index_of_slot[slot] = (int16_t)i;
	}
}

const struct weir_limit *weir_limits_view_slot(const struct weir_limits_view *view, uint32_t slot)
{
	if (slot >= WEIR_LIMITS_MAX || view->index_of_slot[slot] < 0)
		return NULL;
	return &view->by_index[view->index_of_slot[slot]];
}

uint64_t weir_record_tag(const struct weir_key_record *record, const struct weir_limit *limit,
			 const struct weir_seeds *seeds)
{
	struct weir_key key = {
		.ports = (uint32_t)record->source_port << 16 | record->destination_port,
		.kind = record->family | (uint32_t)record->protocol << 8,
	};

	if ((limit->key & BOTH_ADDRESSES) == BOTH_ADDRESSES)
		return 0;
	memcpy(limit->key & WEIR_KEY_SOURCE ? key.source : key.destination, record->address,
	       sizeof(record->address));
	return weir_key_tag(&key, limit->salt, seeds);
}

uint64_t weir_own_record_tag(const struct weir_own_record *record, const struct weir_limit *limit,
			     const struct weir_seeds *seeds)
{
	struct weir_key key = {
		.ports = (uint32_t)record->key.source_port << 16 | record->key.destination_port,
		.kind = record->key.family | (uint32_t)record->key.protocol << 8,
	};

	if (limit->key & WEIR_KEY_SOURCE)
		memcpy(key.source, record->key.address, sizeof(key.source));
	if (limit->key & WEIR_KEY_DESTINATION)
		memcpy(key.destination,
		       limit->key & WEIR_KEY_SOURCE ? record->peer : record->key.address,
		       sizeof(key.destination));
	return weir_key_tag(&key, limit->salt, seeds);
}

bool weir_record_fits(const struct weir_key_record *record, const struct weir_limit *limit,
		      const struct weir_seeds *seeds, uint64_t tag)
{
	uint64_t own = weir_record_tag(record, limit, seeds);

	return !own || own == tag;
}

struct weir_key_record weir_record_of_address(const struct weir_limit *limit, uint8_t family,
					      const void *address)
{
	struct weir_key_record record = { .slot = limit->slot };

	if (!limit->key)
		return record;
	record.family = family;
	memcpy(record.address, address, family == 4 ? 4 : 16);
	if (family == 4)
		record.address[0] &= limit->mask4;
	for (int i = 0; i < 4 && family == 6; i++)
		record.address[i] &= limit->mask6[i];
	return record;
}

unsigned int weir_limit_length4(const struct weir_limit *limit)
{
	return (unsigned int)__builtin_popcount(limit->mask4);
}

unsigned int weir_limit_length6(const struct weir_limit *limit)
{
	unsigned int length = 0;

	for (int i = 0; i < 4; i++)
		length += (unsigned int)__builtin_popcount(limit->mask6[i]);
	return length;
}

char *weir_record_print(const struct weir_key_record *record, const struct weir_limit *limit,
			char *text)
{
	bool v6 = record->family == 6;
	unsigned int length = v6 ? weir_limit_length6(limit) : weir_limit_length4(limit);
	char address[INET6_ADDRSTRLEN];

	if (!limit->key) {
		snprintf(text, WEIR_KEY_TEXT, "all");
		return text;
	}
	inet_ntop(v6 ? AF_INET6 : AF_INET, record->address, address, sizeof(address));
	if (limit->key & WEIR_KEY_SOURCE_PORT)
		snprintf(text, WEIR_KEY_TEXT, v6 ? "[%s]:%u" : "%s:%u", address,
			 record->source_port);
	else if (length < (v6 ? 128 : 32))
		snprintf(text, WEIR_KEY_TEXT, "%s/%u", address, length);
	else
		snprintf(text, WEIR_KEY_TEXT, "%s", address);
	return text;
}

char *weir_own_record_print(const struct weir_own_record *record, const struct weir_limit *limit,
			    char *text)
{
	bool v6 = record->key.family == 6;
	char source[INET6_ADDRSTRLEN], destination[INET6_ADDRSTRLEN], protocol[8];

	if ((limit->key & BOTH_ADDRESSES) != BOTH_ADDRESSES)
		return weir_record_print(&record->key, limit, text);
	inet_ntop(v6 ? AF_INET6 : AF_INET, record->key.address, source, sizeof(source));
	inet_ntop(v6 ? AF_INET6 : AF_INET, record->peer, destination, sizeof(destination));
	snprintf(protocol, sizeof(protocol), "%u", record->key.protocol);
	snprintf(text, WEIR_KEY_TEXT, v6 ? "%s [%s]:%u > [%s]:%u" : "%s %s:%u > %s:%u",
		 record->key.protocol == IPPROTO_TCP   ? "tcp"
		 : record->key.protocol == IPPROTO_UDP ? "udp"
						       : protocol,
		 source, record->key.source_port, destination, record->key.destination_port);
	return text;
}

char *weir_limit_key_print(const struct weir_limit *limit, char *text)
{
	const char *what = limit->key & WEIR_KEY_SOURCE ? "source" : "destination";

	if (!limit->key)
		what = "none";
	else if ((limit->key & BOTH_ADDRESSES) == BOTH_ADDRESSES)
		what = "flow";
	else if (limit->key & WEIR_KEY_SOURCE_PORT)
		what = "source+port";
	if (limit->key == WEIR_KEY_SOURCE || limit->key == WEIR_KEY_DESTINATION)
		snprintf(text, WEIR_KEY_TEXT, "%s/%u/%u", what, weir_limit_length4(limit),
			 weir_limit_length6(limit));
	else
		snprintf(text, WEIR_KEY_TEXT, "%s", what);
	return text;
}

/* ---- bans ---- */

#define BANS_A_CALL 4096

/* Reads on from where the last call ended: 0, 1 at the end, or -errno. */
static int read_some(struct weir_bans *bans, int fd, uint32_t *cursor, bool first)
{
	uint32_t count = BANS_A_CALL, next;
	int code = 0;

	if (bpf_map_lookup_batch(fd, first ? NULL : cursor, &next, bans->tags + bans->count,
				 bans->items + bans->count, &count, NULL))
		code = errno == ENOENT ? 1 : -errno;
	if (code >= 0) {
		bans->count += count;
		*cursor = next;
	}
	return code;
}

int weir_bans_read(struct weir_bans *bans, const struct weir_dataplane *dataplane)
{
	uint32_t cursor = 0;
	int code = 0;

	*bans = (struct weir_bans){
		.tags = malloc((WEIR_BANS_MAX + BANS_A_CALL) * sizeof(*bans->tags)),
		.items = malloc((WEIR_BANS_MAX + BANS_A_CALL) * sizeof(*bans->items)),
	};
	if (!bans->tags || !bans->items)
		code = -ENOMEM;
	while (!code && bans->count <= WEIR_BANS_MAX)
		code = read_some(bans, dataplane->bans_fd, &cursor, !bans->count);
	if (code < 0)
		weir_bans_free(bans);
	return code < 0 ? code : 0;
}

void weir_bans_free(struct weir_bans *bans)
{
	free(bans->tags);
	free(bans->items);
	*bans = (struct weir_bans){ 0 };
}

struct weir_own_record weir_ban_record(const struct weir_ban *ban)
{
	struct weir_own_record record = { .key = ban->key };

	memcpy(record.peer, ban->peer, sizeof(record.peer));
	return record;
}

uint64_t weir_limit_admitted(const struct weir_limit *limit, uint64_t state, uint64_t passed)
{
	switch (limit->kind) {
	case WEIR_KIND_BUCKET:
		return weir_passed_count(passed);
	case WEIR_KIND_PERIOD:
		return passed & 0xffffffff;
	case WEIR_KIND_GATE:
		return weir_gate_count(state);
	default:
		return passed;
	}
}
