// SPDX-License-Identifier: GPL-2.0
#include "controller/compile.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "weir/place.h"

__extension__ typedef unsigned __int128 u128;

/* The fewest bytes a frame costs: a fresh bucket of bytes admits burst / 64 of them. */
#define GRAIN_BYTES 64

static int burst_too_long(const struct weir_rate *rate, uint64_t burst, struct weir_error *err)
{
	char text[WEIR_UNIT_TEXT];

	return weir_error_set(err, -ERANGE,
			      "burst %llu at a rate of %s takes more than 2 years to refill: "
			      "lower the burst or raise the rate",
			      (unsigned long long)burst, weir_rate_print(rate, text));
}

int weir_compile_bucket(const struct weir_rate *rate, uint64_t burst, struct weir_bucket_conf *conf,
			struct weir_error *err)
{
	uint64_t grain = rate->bytes ? GRAIN_BYTES : 1;
	u128 ticks = (u128)rate->per_ns << WEIR_TICK_SHIFT, quotient, span;
	int right = 0;

	*conf = (struct weir_bucket_conf){ 0 };
	if (weir_rate_is_unlimited(rate))
		return 0;
	if (weir_rate_is_block(rate)) {
		conf->cost_mantissa = 1;
		return 0;
	}
	/* per_ns is below 2^60: 63 more bits fit. */
	while (right < 63 && (ticks << right) / rate->amount < 1U << 31)
		right++;
	quotient = (ticks << right) / rate->amount;
	while (quotient >> 32) {
		quotient >>= 1;
		right--;
	}
	conf->cost_mantissa = (uint32_t)quotient;
	conf->cost_right = (uint8_t)(right > 0 ? right : 0);
	conf->cost_left = (uint8_t)(right < 0 ? -right : 0);
	if (burst < grain)
		burst = grain;
	/* Both are below 2^64. Over the span one cost already is too much, so is the sum. */
	span = ((u128)burst * weir_bucket_cost(conf, grain) + grain - 1) / grain;
	if (span > WEIR_BUCKET_SPAN_MAX)
		return burst_too_long(rate, burst, err);
	conf->burst_ticks = (uint64_t)span;
	return 0;
}

static int compile_bucket(const struct weir_policy_limit *limit, struct weir_limit *out,
			  struct weir_error *err)
{
	const struct weir_rate *rate = &limit->bucket.rate;

	out->kind = WEIR_KIND_BUCKET;
	if (rate->bytes)
		out->flags |= WEIR_LIMIT_BYTES;
	if (weir_rate_is_block(rate))
		out->flags |= WEIR_LIMIT_BLOCK;
	if (weir_rate_is_unlimited(rate))
		out->flags |= WEIR_LIMIT_UNLIMITED;
	return weir_compile_bucket(rate, limit->bucket.burst.value, &out->bucket, err);
}

static void compile_sliding(const struct weir_policy_sliding *sliding, struct weir_limit *out)
{
	out->kind = WEIR_KIND_SLIDING;
	out->sliding = (struct weir_sliding_conf){
		.window = sliding->window_ns << WEIR_TICK_SHIFT,
		.quota = (uint32_t)sliding->quota,
		.capacity = weir_ring_capacity((uint32_t)sliding->quota),
	};
}

uint64_t weir_compile_phase(uint64_t period_ticks, uint64_t wall_ns)
{
	return (uint64_t)(period_ticks -
			  (((u128)wall_ns << WEIR_TICK_SHIFT) % period_ticks)) % period_ticks;
}

bool weir_compile_phase_is_near(uint64_t a, uint64_t b, uint64_t period_ticks)
{
	uint64_t apart = a > b ? a - b : b - a;

	return apart <= WEIR_PHASE_SLACK_TICKS || period_ticks - apart <= WEIR_PHASE_SLACK_TICKS;
}

static void compile_period(const struct weir_policy_period *period, uint64_t wall_ns,
			   struct weir_limit *out)
{
	uint64_t ticks = period->period_ns << WEIR_TICK_SHIFT;

	out->kind = WEIR_KIND_PERIOD;
	out->period = (struct weir_period_conf){
		.period = ticks,
		.phase = period->align ? weir_compile_phase(ticks, wall_ns) : 0,
		.quota = (uint32_t)period->quota,
		.align = period->align,
	};
}

static void compile_gate(const struct weir_policy_gate *gate, struct weir_limit *out)
{
	out->kind = WEIR_KIND_GATE;
	if (!gate->limit)
		out->flags |= WEIR_LIMIT_BLOCK;
	if (gate->limit == WEIR_POLICY_UNLIMITED)
		out->flags |= WEIR_LIMIT_UNLIMITED;
	else
		out->gate.limit = (uint32_t)gate->limit;
	if (gate->refuse == WEIR_POLICY_REFUSE_RESET)
		out->flags |= WEIR_LIMIT_RESET;
}

static void compile_ban(const struct weir_policy_ban *ban, struct weir_limit *out)
{
	if (!ban->given)
		return;
	out->ban_ticks = ban->for_ns << WEIR_TICK_SHIFT;
	out->ban_window_ticks = ban->after_ns << WEIR_TICK_SHIFT;
	out->ban_after = (uint32_t)ban->after_count;
}

static uint32_t mask_word(int bits)
{
	return bits <= 0 ? 0 : bits >= 32 ? UINT32_MAX : htonl(UINT32_MAX << (32 - bits));
}

static void compile_key(const struct weir_policy_key *key, struct weir_limit *out)
{
	static const uint8_t parts[] = {
		[WEIR_POLICY_KEY_SOURCE] = WEIR_KEY_SOURCE,
		[WEIR_POLICY_KEY_DESTINATION] = WEIR_KEY_DESTINATION,
		[WEIR_POLICY_KEY_SOURCE_PORT] = WEIR_KEY_SOURCE | WEIR_KEY_SOURCE_PORT,
		[WEIR_POLICY_KEY_FLOW] = WEIR_KEY_SOURCE | WEIR_KEY_DESTINATION |
					 WEIR_KEY_SOURCE_PORT | WEIR_KEY_DESTINATION_PORT |
					 WEIR_KEY_PROTOCOL,
		[WEIR_POLICY_KEY_NONE] = 0,
	};
	bool whole = key->kind == WEIR_POLICY_KEY_FLOW;

	out->key = parts[key->kind];
	if (!out->key)
		return;
	out->mask4 = mask_word(whole ? 32 : key->v4_length);
	for (int i = 0; i < 4; i++)
		out->mask6[i] = mask_word(whole ? 32 : key->v6_length - 32 * i);
}

int weir_compile_limit(const struct weir_policy *policy, const struct weir_policy_limit *limit,
		       uint64_t wall_ns, struct weir_limit *out, struct weir_error *err)
{
	int code = 0;

	*out = (struct weir_limit){ 0 };
	if (policy->mode == WEIR_POLICY_MONITOR || limit->mode == WEIR_POLICY_MONITOR)
		out->flags |= WEIR_LIMIT_MONITOR;
	if (limit->untracked == WEIR_POLICY_DROP)
		out->flags |= WEIR_LIMIT_UNTRACKED_DROPS;
	compile_key(&limit->key, out);
	compile_ban(&limit->ban, out);
	out->own_sets = (uint32_t)(weir_policy_own_keys(policy, limit) / WEIR_WAYS);
	switch (limit->kind) {
	case WEIR_POLICY_BUCKET:
		code = compile_bucket(limit, out, err);
		break;
	case WEIR_POLICY_SLIDING:
		compile_sliding(&limit->sliding, out);
		break;
	case WEIR_POLICY_PERIOD:
		compile_period(&limit->period, wall_ns, out);
		break;
	case WEIR_POLICY_GATE:
		compile_gate(&limit->gate, out);
		break;
	}
	if (code)
		weir_error_prefix(err, "limit %s: ", limit->name);
	return code;
}

static const char *level_print(uint64_t level, char *text)
{
	if (!level || level == WEIR_POLICY_UNLIMITED)
		return level ? "unlimited" : "block";
	return weir_count_print(level, text);
}

void weir_compile_label(const struct weir_policy_limit *limit, struct weir_label *label)
{
	char first[WEIR_UNIT_TEXT], second[WEIR_UNIT_TEXT];
	char *setting = label->setting;
	const size_t size = sizeof(label->setting);

	*label = (struct weir_label){ 0 };
	snprintf(label->name, sizeof(label->name), "%s", limit->name);
	switch (limit->kind) {
	case WEIR_POLICY_BUCKET:
		snprintf(setting, size, "bucket rate %s burst %s",
			 weir_rate_print(&limit->bucket.rate, first),
			 weir_amount_print(&limit->bucket.burst, second));
		break;
	case WEIR_POLICY_SLIDING:
		snprintf(setting, size, "sliding quota %s window %s",
			 weir_count_print(limit->sliding.quota, first),
			 weir_time_print(limit->sliding.window_ns, second));
		break;
	case WEIR_POLICY_PERIOD:
		snprintf(setting, size, "period quota %s period %s align %s",
			 weir_count_print(limit->period.quota, first),
			 weir_time_print(limit->period.period_ns, second),
			 limit->period.align ? "true" : "false");
		break;
	case WEIR_POLICY_GATE:
		snprintf(setting, size, "gate limit %s%s", level_print(limit->gate.limit, first),
			 limit->gate.refuse == WEIR_POLICY_REFUSE_RESET ? " refuse reset" : "");
		break;
	}
}

/* ---- identity ---- */

static const struct weir_limit *find_before(const struct weir_compiled_before *before,
					    const char *name)
{
	for (size_t i = 0; i < before->count; i++) {
		if (!strcmp(before->labels[before->limits[i].slot].name, name))
			return &before->limits[i];
	}
	return NULL;
}

static bool same_state(const struct weir_limit *a, const struct weir_limit *b)
{
	return a->kind == b->kind && a->key == b->key && a->mask4 == b->mask4 &&
	       a->own_sets == b->own_sets &&
	       (a->kind != WEIR_KIND_SLIDING || a->sliding.capacity == b->sliding.capacity) &&
	       !memcmp(a->mask6, b->mask6, sizeof(a->mask6));
}

/* An aligned period that did not change stays where it is. */
static void keep_phase(const struct weir_limit *old, struct weir_limit *limit)
{
	if (limit->kind == WEIR_KIND_PERIOD && old->period.align && limit->period.align &&
	    old->period.period == limit->period.period &&
	    weir_compile_phase_is_near(old->period.phase, limit->period.phase,
				       limit->period.period))
		limit->period.phase = old->period.phase;
}

/* A slot of nobody, neither in the old policy nor so far in the new one. */
static int free_slot(bool *taken, const char *name, struct weir_error *err)
{
	for (uint16_t slot = 0; slot < WEIR_LIMITS_MAX; slot++) {
		if (!taken[slot]) {
			taken[slot] = true;
			return slot;
		}
	}
	return weir_error_set(err, -E2BIG,
			      "limit %s: no room for it while the limits that this change removes "
			      "still count; there is room for %d old and new ones together: "
			      "remove in one reload, add in the next",
			      name, WEIR_LIMITS_MAX);
}

static int identify(struct weir_compiled *compiled, const struct weir_compiled_before *before,
		    struct weir_error *err)
{
	bool taken[WEIR_LIMITS_MAX] = { 0 };

	for (size_t i = 0; i < before->count; i++)
		taken[before->limits[i].slot] = true;
	for (size_t i = 0; i < compiled->head.limits; i++) {
		struct weir_limit *limit = &compiled->limits[i], old;
		const struct weir_limit *found = find_before(before, compiled->labels[i].name);
		int slot;

		if (found && (found->own_sets || limit->own_sets) && !same_state(found, limit))
			found = NULL;
		slot = found ? found->slot : free_slot(taken, compiled->labels[i].name, err);
		if (slot < 0)
			return slot;
		limit->slot = (uint16_t)slot;
		if (found && same_state(found, limit))
			limit->salt = found->salt;
		else if (getrandom(&limit->salt, sizeof(limit->salt), 0) != sizeof(limit->salt))
			return weir_error_set(err, -EIO, "no random bytes: %s", strerror(errno));
		if (!found)
			continue;
		old = *found;
		if (same_state(&old, limit))
			keep_phase(&old, limit);
		limit->revision = old.revision;
		if (memcmp(&old, limit, sizeof(old)))
			limit->revision++;
	}
	return 0;
}

/* At most `sample` events a second in all: each CPU keeps to its share. */
static uint64_t sample_ns(const struct weir_rate *sample, uint32_t cpus)
{
	if (weir_rate_is_unlimited(sample))
		return 0;
	if (weir_rate_is_block(sample))
		return WEIR_SAMPLE_NEVER_NS;
	return (uint64_t)((u128)sample->per_ns * cpus / sample->amount);
}

uint8_t weir_compile_protocols(const struct weir_policy_service *service)
{
	const struct weir_bits256 *protocols = &service->match.protocols;

	return (weir_bits256_has(protocols, IPPROTO_TCP) ? WEIR_SERVICE_TCP : 0) |
	       (weir_bits256_has(protocols, IPPROTO_UDP) ? WEIR_SERVICE_UDP : 0);
}

int weir_compile(const struct weir_policy *policy, const struct weir_compiled_before *before,
		 const uint32_t *slots, uint32_t cpus, uint64_t wall_ns,
		 struct weir_compiled **out, struct weir_error *err)
{
	struct weir_compiled *compiled = calloc(1, sizeof(*compiled));
	int code = 0;

	if (!compiled)
		return weir_error_set(err, -ENOMEM, "no memory for the policy");
	compiled->head.limits = (uint32_t)policy->limit_count;
	for (size_t i = 0; i < policy->service_count; i++)
		compiled->head.services |= weir_compile_protocols(&policy->services[i]);
	compiled->head.sample_ns = sample_ns(&policy->sample, cpus);
	for (size_t i = 0; i < policy->limit_count && !code; i++) {
		code = weir_compile_limit(policy, &policy->limits[i], wall_ns,
					  &compiled->limits[i], err);
		weir_compile_label(&policy->limits[i], &compiled->labels[i]);
		compiled->head.gates += policy->limits[i].kind == WEIR_POLICY_GATE;
	}
	if (!code)
		code = identify(compiled, before, err);
	if (!code)
		code = weir_compile_match(policy, slots, compiled, err);
	if (code) {
		weir_compiled_free(compiled);
		return code;
	}
	for (int hook = 0; hook < WEIR_HOOKS; hook++)
		compiled->head.plain[hook] =
			weir_policy_plain(&compiled->head, compiled->limits, (enum weir_hook)hook);
	*out = compiled;
	return 0;
}

void weir_compiled_free(struct weir_compiled *compiled)
{
	if (compiled)
		free(compiled->prefixes);
	free(compiled);
}
