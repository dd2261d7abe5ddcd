// SPDX-License-Identifier: GPL-2.0
#include "controller/keys.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

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
