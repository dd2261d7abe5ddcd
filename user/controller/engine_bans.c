// SPDX-License-Identifier: GPL-2.0
/* `weir ban del`. */
#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "controller/clock.h"
#include "controller/engine_internal.h"
#include "controller/keys.h"
#include "controller/report.h"

/* The key as it is shown, or an address that belongs to it. */
struct wanted {
	const char *text;
	bool is_address;
	uint8_t family, address[16];
};

static bool is_wanted(const struct wanted *wanted, const struct weir_ban *ban,
		      const struct weir_limit *limit)
{
	struct weir_own_record record = weir_ban_record(ban);
	struct weir_key_record mine;
	char key[WEIR_KEY_TEXT];

	if (!strcmp(weir_own_record_print(&record, limit, key), wanted->text))
		return true;
	if (!wanted->is_address || !(limit->key & (WEIR_KEY_SOURCE | WEIR_KEY_DESTINATION)))
		return false;
	mine = weir_record_of_address(limit, wanted->family, wanted->address);
	return mine.family == ban->key.family &&
	       !memcmp(mine.address, ban->key.address, sizeof(mine.address));
}

static void lift(const struct weir_engine *engine, const uint64_t *tag)
{
	bpf_map_delete_elem(engine->dataplane.bans_fd, tag);
	/* Nor is it the next refusal that bans again. */
	bpf_map_delete_elem(bpf_map__fd(engine->load.skeleton->maps.weir_strikes), tag);
}

int weir_engine_unban(struct weir_engine *engine, const char *text, size_t *count,
		      struct weir_error *err)
{
	struct wanted wanted = { .text = text };
	struct weir_limits_view limits;
	struct weir_error nothing;
	struct weir_bans bans;
	int code = weir_bans_read(&bans, &engine->dataplane);

	*count = 0;
	if (code)
		return weir_error_set(err, code, "can't read the bans: %s", strerror(-code));
	wanted.is_address = !weir_report_parse_address(text, &wanted.family, wanted.address,
						       &nothing);
	weir_limits_view_read(&limits, &engine->dataplane);
	for (size_t i = 0; i < bans.count; i++) {
		const struct weir_limit *limit =
			weir_limits_view_slot(&limits, bans.items[i].key.slot);

		if (!limit || !is_wanted(&wanted, &bans.items[i], limit))
			continue;
		lift(engine, &bans.tags[i]);
		weir_engine_say(engine, "limit %.32s: ban of %s lifted (weir ban del)",
				engine->dataplane.labels[limit->slot].name, text);
		++*count;
	}
	weir_bans_free(&bans);
	return *count ? 0 : weir_error_set(err, -ENOENT,
					   "'%.128s' is not banned: see weir show bans", text);
}
