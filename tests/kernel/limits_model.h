/* SPDX-License-Identifier: GPL-2.0 */
/* Several limits at once, naively: a list of limits, each with a list of keys. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "kernel/rig_limits.h"
#include "weir/packet.h"

#define MODEL_RING 16

struct model_state {
	struct weir_key key;
	uint64_t word; /* bucket, gate */
	struct weir_period_state period;
	struct weir_sliding_state sliding;
	uint64_t ring[MODEL_RING];
};

struct model_limit {
	const struct weir_limit *limit;
	struct model_state *states;
	size_t count;
	struct weir_totals totals;
};

struct model {
	struct model_limit limits[WEIR_LIMITS_MAX];
	size_t count;
	uint64_t passed, refused;
};

static inline void model_begin(struct model *model, const struct weir_limit *limits, size_t count)
{
	memset(model, 0, sizeof(*model));
	model->count = count;
	for (size_t i = 0; i < count; i++)
		model->limits[i].limit = &limits[i];
}

static inline void model_end(struct model *model)
{
	for (size_t i = 0; i < model->count; i++)
		free(model->limits[i].states);
}

static inline struct weir_key model_key(const struct weir_limit *limit,
					const struct weir_packet *packet)
{
	struct weir_key key = { .kind = limit->key ? packet->family : 0 };
	bool ports = packet->has & WEIR_HAS_PORTS;

	for (int i = 0; i < (packet->family == 4 ? 1 : 4); i++) {
		uint32_t mask = packet->family == 4 ? limit->mask4 : limit->mask6[i];

		key.source[i] = limit->key & WEIR_KEY_SOURCE ? packet->source[i] & mask : 0;
		key.destination[i] =
			limit->key & WEIR_KEY_DESTINATION ? packet->destination[i] & mask : 0;
	}
	if (ports && limit->key & WEIR_KEY_SOURCE_PORT)
		key.ports |= (uint32_t)packet->source_port << 16;
	if (ports && limit->key & WEIR_KEY_DESTINATION_PORT)
		key.ports |= packet->destination_port;
	if (limit->key & WEIR_KEY_PROTOCOL)
		key.kind |= (uint32_t)packet->protocol << 8;
	return key;
}

static inline struct model_state *model_state(struct model_limit *limit, struct weir_key key)
{
	for (size_t i = 0; i < limit->count; i++)
		if (!memcmp(&limit->states[i].key, &key, sizeof(key)))
			return &limit->states[i];
	limit->states = realloc(limit->states, (limit->count + 1) * sizeof(*limit->states));
	if (!limit->states)
		abort();
	limit->states[limit->count] = (struct model_state){ .key = key };
	return &limit->states[limit->count++];
}

/* Takes from a copy of the state or from the state itself: whether the limit lets it pass. */
static inline bool model_step(const struct weir_limit *limit, struct model_state *state,
			      uint64_t now, const struct weir_packet *packet)
{
	uint64_t n = limit->flags & WEIR_LIMIT_BYTES ? packet->bytes : packet->packets, next;
	bool passes;

	if (limit->flags & (WEIR_LIMIT_BLOCK | WEIR_LIMIT_UNLIMITED))
		return !(limit->flags & WEIR_LIMIT_BLOCK);
	switch (limit->kind) {
	case WEIR_KIND_BUCKET:
		passes = weir_bucket_step(state->word, &limit->bucket, now,
					  weir_bucket_cost(&limit->bucket, n), &next);
		break;
	case WEIR_KIND_GATE:
		passes = weir_gate_step(state->word, &limit->gate, &next);
		break;
	case WEIR_KIND_PERIOD:
		if (weir_period_peek(&state->period, &limit->period, now, n) == WEIR_QUOTA_OVER)
			return false;
		weir_period_step(&state->period, &limit->period, now, n);
		return true;
	default:
		return weir_sliding_step(&state->sliding, &limit->sliding, state->ring, now, n);
	}
	if (passes)
		state->word = next;
	return passes;
}

static inline bool model_check(struct model_limit *limit, uint64_t now,
			       const struct weir_packet *packet)
{
	struct model_state copy = *model_state(limit, model_key(limit->limit, packet));

	return model_step(limit->limit, &copy, now, packet);
}

static inline void model_charge(struct model_limit *limit, uint64_t now,
				const struct weir_packet *packet)
{
	if (model_step(limit->limit, model_state(limit, model_key(limit->limit, packet)), now,
		       packet)) {
		limit->totals.passed_packets += packet->packets;
		limit->totals.passed_bytes += packet->bytes;
	} else {
		limit->totals.would_refuse_packets += packet->packets;
	}
}

/* A packet that these limits apply to, in the order of the file. */
static inline bool model_passes(struct model *model, const bool *applies, uint64_t now,
				const struct weir_packet *packet)
{
	for (size_t i = 0; i < model->count; i++) {
		struct model_limit *limit = &model->limits[i];

		if (!applies[i] || limit->limit->flags & WEIR_LIMIT_MONITOR ||
		    model_check(limit, now, packet))
			continue;
		limit->totals.refused_packets += packet->packets;
		limit->totals.refused_bytes += packet->bytes;
		model->refused++;
		return false;
	}
	for (size_t i = 0; i < model->count; i++)
		if (applies[i])
			model_charge(&model->limits[i], now, packet);
	model->passed++;
	return true;
}
