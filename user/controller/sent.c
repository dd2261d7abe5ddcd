// SPDX-License-Identifier: GPL-2.0
#include "controller/sent.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "controller/report.h"

#define OCTAVE 8 /* slots */
#define FIRST_EXPONENT (-8)
#define HEADROOM 2	   /* times the 99% quantile */
#define BURST_SECONDS 2	   /* what is sent within a window isn't seen: a burst of so much */
#define SOURCES_ENOUGH 100 /* below, 1% of them is not even one */

static uint8_t slot_of(double rate)
{
	double at = floor((log2(rate) - FIRST_EXPONENT) * OCTAVE) + 1;

	return at < 1 ? 1 : at > WEIR_SENT_SLOTS - 1 ? WEIR_SENT_SLOTS - 1 : (uint8_t)at;
}

static double upper_end(unsigned int slot)
{
	return exp2((double)slot / OCTAVE + FIRST_EXPONENT);
}

void weir_sent_free(struct weir_sent *sent)
{
	for (int slot = 0; slot < WEIR_LIMITS_MAX; slot++)
		free(sent->limits[slot]);
	*sent = (struct weir_sent){ 0 };
}

static bool counts_packets(const struct weir_limit *limit)
{
	return limit->kind == WEIR_KIND_BUCKET || limit->kind == WEIR_KIND_SLIDING;
}

void weir_sent_begin(struct weir_sent *sent, const struct weir_dataplane *dataplane,
		     const struct weir_limits_view *limits, uint64_t before_ns, uint64_t now_ns)
{
	sent->window_ns = now_ns - before_ns;
	for (uint32_t slot = 0; slot < WEIR_LIMITS_MAX; slot++) {
		const struct weir_limit *limit = weir_limits_view_slot(limits, slot);
		struct weir_sent_limit *now = sent->limits[slot];

		if (!limit || !counts_packets(limit) || (now && now->salt != limit->salt)) {
			free(now);
			now = sent->limits[slot] = NULL;
		}
		if (limit && counts_packets(limit) && !now) {
			now = sent->limits[slot] = calloc(1, sizeof(*now));
			if (!now)
				continue;
			now->salt = limit->salt;
			now->since_ns = before_ns;
			now->new_keys = weir_dataplane_totals(dataplane, slot).new_keys;
		}
		if (now) {
			now->until_ns = now_ns;
			now->window_ns = sent->window_ns;
		}
	}
}

uint8_t weir_sent_count(struct weir_sent *sent, const struct weir_limit *limit, uint64_t packets,
			uint8_t peak, bool fresh)
{
	struct weir_sent_limit *now = sent->limits[limit->slot % WEIR_LIMITS_MAX];
	double seconds = (double)sent->window_ns / 1e9, rate;
	uint8_t slot;

	if (!now || seconds <= 0)
		return 0;
	now->appeared += fresh;
	if (!packets)
		return peak;
	rate = (double)packets / seconds;
	slot = slot_of(rate);
	now->load[slot].packets += packets;
	now->load[slot].seconds += seconds;
	if (rate > now->max)
		now->max = rate;
	now->sources += !peak;
	if (slot <= peak)
		return peak;
	if (peak && now->peaks[peak])
		now->peaks[peak]--;
	now->peaks[slot]++;
	return slot;
}

double weir_sent_quantile(const struct weir_sent_limit *limit, double quantile)
{
	uint64_t below = 0, wanted = (uint64_t)ceil(quantile * (double)limit->sources);

	if (!limit->sources)
		return 0;
	for (unsigned int slot = 1; slot < WEIR_SENT_SLOTS; slot++) {
		below += limit->peaks[slot];
		if (below && below >= wanted)
			return fmin(upper_end(slot), limit->max);
	}
	return limit->max;
}

double weir_sent_sources_above(const struct weir_sent_limit *limit, double rate)
{
	uint64_t above = 0;

	if (!limit->sources || rate >= limit->max)
		return 0;
	for (unsigned int slot = rate > 0 ? slot_of(rate) + 1U : 1; slot < WEIR_SENT_SLOTS; slot++)
		above += limit->peaks[slot];
	return (double)above / (double)limit->sources;
}

double weir_sent_packets_above(const struct weir_sent_limit *limit, double rate)
{
	double all = 0, above = 0;

	for (unsigned int slot = 1; slot < WEIR_SENT_SLOTS; slot++) {
		double packets = (double)limit->load[slot].packets;

		all += packets;
		above += fmax(packets - rate * limit->load[slot].seconds, 0);
	}
	return all > 0 ? above / all : 0;
}

double weir_sent_round(double rate)
{
	double unit = pow(10, floor(log10(rate)) - 1);

	/* 23.000000001 of 2.3 units, by the logarithm's error, is 23 of them. */
	return ceil(rate / unit - 1e-9) * unit;
}

/* ---- the report ---- */

static const struct {
	const char *name;
	double share;
} quantiles[] = { { "50", .5 }, { "90", .9 }, { "99", .99 }, { "99.9", .999 }, { "max", 1 } };

static json_t *candidates(const struct weir_sent_limit *sent)
{
	json_t *array = json_array();

	for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]) && array; i++) {
		double rate = quantiles[i].share < 1 ? weir_sent_quantile(sent, quantiles[i].share)
						     : sent->max;
		json_t *one = json_pack(
			"{s:s, s:f, s:f, s:f}", "quantile", quantiles[i].name, "per_sec", rate,
			"refused_sources_percent", 100 * weir_sent_sources_above(sent, rate),
			"refused_packets_percent", 100 * weir_sent_packets_above(sent, rate));

		if (json_array_append_new(array, one)) {
			json_decref(array);
			array = NULL;
		}
	}
	return array;
}

/* What to say instead of a proposal; NULL: there is one. */
static const char *no_proposal(const struct weir_limit *limit, const struct weir_sent_limit *sent)
{
	if (limit->kind != WEIR_KIND_BUCKET)
		return "only buckets have a rate to propose";
	if (limit->flags & WEIR_LIMIT_BYTES)
		return "it counts bytes, and the ledger knows packets of a key alone: see weir try";
	if (limit->flags & (WEIR_LIMIT_UNLIMITED | WEIR_LIMIT_BLOCK))
		return "it looks at no key: to learn a rate set one, such as 20kpps, in mode "
		       "monitor";
	if (!sent || !sent->sources)
		return "no traffic was seen yet";
	return NULL;
}

static json_t *proposal(const char *name, const struct weir_sent_limit *sent)
{
	double rate = weir_sent_round(fmax(HEADROOM * weir_sent_quantile(sent, .99), 1));
	double burst = BURST_SECONDS * rate;
	char command[128];

	snprintf(command, sizeof(command), "weir set %s rate=%.0fpps burst=%.0f", name, rate,
		 burst);
	return json_pack("{s:f, s:f, s:i, s:f, s:f, s:b, s:s}", "per_sec", rate, "burst", burst,
			 "headroom", HEADROOM, "refused_sources_percent",
			 100 * weir_sent_sources_above(sent, rate), "refused_packets_percent",
			 100 * weir_sent_packets_above(sent, rate), "few_sources",
			 sent->sources < SOURCES_ENOUGH, "command", command);
}

/* Keys that came and went between two walks. */
static uint64_t unseen(const struct weir_sent_limit *sent, const struct weir_dataplane *dataplane,
		       uint32_t slot)
{
	uint64_t made = weir_dataplane_totals(dataplane, slot).new_keys - sent->new_keys;

	return made > sent->appeared ? made - sent->appeared : 0;
}

static json_t *one_limit(const struct weir_sent *sent, const struct weir_dataplane *dataplane,
			 const struct weir_limit *limit)
{
	const struct weir_sent_limit *now = sent->limits[limit->slot];
	const struct weir_sent_limit nothing = { 0 };
	const char *reason = no_proposal(limit, now);
	char name[sizeof(((struct weir_label *)0)->name)];
	char setting[sizeof(((struct weir_label *)0)->setting)];
	json_t *made;

	memcpy(name, dataplane->labels[limit->slot].name, sizeof(name));
	memcpy(setting, dataplane->labels[limit->slot].setting, sizeof(setting));
	name[sizeof(name) - 1] = setting[sizeof(setting) - 1] = '\0';
	made = json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I}", "name", name, "mode",
			 limit->flags & WEIR_LIMIT_MONITOR ? "monitor" : "enforce", "setting",
			 setting, "sources", (json_int_t)(now ? now->sources : 0), "unseen_keys",
			 (json_int_t)(now ? unseen(now, dataplane, limit->slot) : 0), "seen_ns",
			 (json_int_t)(now ? now->until_ns - now->since_ns : 0), "window_ns",
			 (json_int_t)(now ? now->window_ns : 0));
	made = weir_report_add(made, "rates", candidates(now ? now : &nothing));
	made = weir_report_add(made, "proposal", reason ? json_null() : proposal(name, now));
	return weir_report_add(made, "reason", reason ? json_string(reason) : json_null());
}

json_t *weir_sent_report(const struct weir_sent *sent, const struct weir_dataplane *dataplane,
			 uint32_t slot)
{
	json_t *array = json_array();
	struct weir_limits_view limits;

	weir_limits_view_read(&limits, dataplane);
	for (uint32_t i = 0; i < limits.count && array; i++) {
		const struct weir_limit *limit = &limits.by_index[i];

		if (limit->slot >= WEIR_LIMITS_MAX ||
		    (slot != WEIR_NO_LIMIT && limit->slot != slot))
			continue;
		if (json_array_append_new(array, one_limit(sent, dataplane, limit))) {
			json_decref(array);
			array = NULL;
		}
	}
	return weir_report_add(json_pack("{s:i}", "schema", WEIR_JSON_SCHEMA), "limits", array);
}
