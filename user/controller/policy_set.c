// SPDX-License-Identifier: GPL-2.0
#include "controller/policy_schema.h"

#include <errno.h>
#include <string.h>

/*
 * The name of a settable field as the operator says it: those of the limit and of its kind by
 * themselves (rate), those of another section with its name in front (ban.for).
 */
static void full_name(const struct weir_field *section, const struct weir_field *field, char *name,
		      size_t size)
{
	bool kind = section && strcmp(section->name, "ban");

	snprintf(name, size, "%s%s%s", section && !kind ? section->name : "",
		 section && !kind ? "." : "", field->name);
}

/* Looks through one table for a settable field; adds the names it sees to `all`. */
static const struct weir_field *find_in(const struct weir_field *section,
					const struct weir_field *fields, const char *name,
					char *all, size_t size)
{
	const struct weir_field *found = NULL;

	for (; fields->name; fields++) {
		char full[64];

		if (!(fields->flags & WEIR_FIELD_SET))
			continue;
		full_name(section, fields, full, sizeof(full));
		if (!strcmp(full, name))
			found = fields;
		snprintf(all + strlen(all), size - strlen(all), "%s%s", *all ? ", " : "", full);
	}
	return found;
}

static int apply(struct weir_policy_limit *limit, const struct weir_policy_change *change,
		 struct weir_error *err)
{
	const struct weir_field *field = NULL;
	void *object = limit;
	char all[256] = "";

	for (const struct weir_field *f = weir_policy_limit_fields; f->name && !field; f++) {
		void *section = (char *)limit + f->offset;

		if (!(f->flags & WEIR_FIELD_GIVEN) || !*(bool *)section)
			continue;
		field = find_in(f, f->fields, change->field, all, sizeof(all));
		object = section;
	}
	if (!field) {
		object = limit;
		field = find_in(NULL, weir_policy_limit_fields, change->field, all, sizeof(all));
	}
	if (!field)
		return weir_error_set(err, -ENOENT,
				      "limit '%s' has no field '%s' to set: it has %s", limit->name,
				      change->field, all);
	return weir_field_parse(field, change->value, object, err);
}

/* What a change of the rate means for the unit and the burst. */
static int settle_rate(const struct weir_policy_limit *old, struct weir_policy_limit *limit,
		       struct weir_error *err)
{
	const struct weir_rate *was = &old->bucket.rate, *is = &limit->bucket.rate;
	struct weir_amount *burst = &limit->bucket.burst;

	if (!limit->bucket.given ||
	    (was->per_ns == is->per_ns && was->amount == is->amount && was->bytes == is->bytes))
		return 0;
	if (!is->per_ns) {
		/* A word has no unit: a burst in bytes is what remembers it. */
		if (was->bytes && !burst->given)
			*burst = (struct weir_amount){ old->bucket.burst.value, true, true };
		return 0;
	}
	if (was->per_ns && was->bytes != is->bytes)
		return weir_error_set(
			err, -EINVAL,
			"this limit counts %s: to count %s, change the file and reload",
			was->bytes ? "bytes" : "packets", is->bytes ? "bytes" : "packets");
	return 0;
}

/* The limit that is to be changed, or NULL and why. */
static struct weir_policy_limit *find(const struct weir_policy *policy, const char *name,
				      struct weir_error *err)
{
	struct weir_policy_limit *limit = weir_policy_find_limit(policy, name);

	if (!limit && weir_policy_find_service(policy, name))
		weir_error_set(err, -ENOENT,
			       "'%s' is a service, and set changes limits: change the file and "
			       "reload",
			       name);
	else if (!limit)
		weir_error_set(err, -ENOENT, "there is no limit '%s': see weir show limits", name);
	return limit;
}

int weir_policy_set(struct weir_policy *policy, const char *limit_name,
		    const struct weir_policy_change *changes, size_t count, struct weir_error *err)
{
	struct weir_policy_limit *limit = find(policy, limit_name, err);
	struct weir_policy_limit old, changed;
	int rc;

	if (!limit)
		return -ENOENT;
	/* Settable fields are plain values, so a copy of the struct is a copy of them. */
	old = changed = *limit;
	for (size_t i = 0; i < count; i++) {
		rc = apply(&changed, &changes[i], err);
		if (!rc)
			rc = settle_rate(&old, &changed, err);
		if (rc) {
			if (rc != -ENOENT)
				weir_error_prefix(err, "limit '%s': field '%s': ", limit_name,
						  changes[i].field);
			return rc;
		}
	}
	weir_policy_complete_limit(&changed);
	*limit = changed;
	/* Only this limit has changed, and never its unit: the governors still fit. */
	rc = weir_policy_check_limit(policy, limit, err);
	if (rc)
		*limit = old;
	return rc;
}

int weir_policy_set_field(struct weir_policy *policy, const char *limit_name, const char *field,
			  const char *value, struct weir_error *err)
{
	struct weir_policy_change change = { field, value };

	return weir_policy_set(policy, limit_name, &change, 1, err);
}

/* A field as the file says it. */
static const char *words_of(const struct weir_field *field, const void *object, char *text)
{
	return weir_field_text(field, object, text) ? text : "default";
}

static void add_changes(json_t *changes, const struct weir_field *section,
			const struct weir_field *fields, const void *written, const void *now)
{
	for (; fields->name; fields++) {
		char full[64], before[WEIR_FIELD_TEXT], after[WEIR_FIELD_TEXT];
		const char *file, *is;

		if (!(fields->flags & WEIR_FIELD_SET))
			continue;
		full_name(section, fields, full, sizeof(full));
		file = words_of(fields, written, before);
		is = words_of(fields, now, after);
		if (strcmp(file, is))
			json_object_set_new(changes, full,
					    json_pack("{s:s, s:s}", "file", file, "now", is));
	}
}

json_t *weir_policy_changes(const struct weir_policy *policy, const struct weir_policy_limit *limit)
{
	const char *written = (const char *)&policy->written[limit - policy->limits];
	const char *now = (const char *)limit;
	json_t *changes = json_object();

	if (!changes)
		return NULL;
	for (const struct weir_field *f = weir_policy_limit_fields; f->name; f++) {
		if (f->flags & WEIR_FIELD_GIVEN && *(const bool *)(now + f->offset))
			add_changes(changes, f, f->fields, written + f->offset, now + f->offset);
	}
	add_changes(changes, NULL, weir_policy_limit_fields, written, now);
	return changes;
}

int weir_policy_unset(struct weir_policy *policy, const char *limit_name, struct weir_error *err)
{
	struct weir_policy_limit *limit = find(policy, limit_name, err);

	if (!limit)
		return -ENOENT;
	*limit = policy->written[limit - policy->limits];
	return 0;
}

void weir_policy_write_as(struct weir_policy *policy, const struct weir_policy *other)
{
	for (size_t i = 0; i < policy->limit_count; i++) {
		struct weir_policy_limit *to = &policy->written[i];
		const struct weir_policy_limit *from = weir_policy_find_limit(other, to->name);

		if (from)
			from = &other->written[from - other->limits];
		if (!from || from->kind != to->kind ||
		    from->bucket.rate.bytes != to->bucket.rate.bytes)
			continue;
		to->bucket = from->bucket;
		to->sliding = from->sliding;
		to->period = from->period;
		to->gate = from->gate;
		to->mode = from->mode;
		to->untracked = from->untracked;
		to->ban = from->ban;
	}
}
