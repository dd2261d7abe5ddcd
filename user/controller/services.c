// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/services_private.h"

#define CPU_EVERY_NS 100000000LL
#define WRITE_EVERY_NS 1000000000LL

enum { READING, WRITING, CPU };

/* Refuses nobody. */
static const struct weir_service_output nothing = { .ceiling = WEIR_SERVICE_NO_CEILING };

__attribute__((format(printf, 2, 3))) static void say(const struct weir_services *services,
						      const char *format, ...)
{
	char line[512];
	va_list args;

	if (!services->io.log)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	services->io.log(services->io.context, line);
}

struct weir_services_entry *weir_services_find(const struct weir_services *services,
					       const char *name)
{
	for (size_t i = 0; i < services->count; i++) {
		if (!strcmp(services->entries[i]->name, name))
			return services->entries[i];
	}
	return NULL;
}

/* ---- the governor's control ---- */

static int push_offer(void *context, double offer)
{
	struct weir_services_entry *entry = context;
	const struct weir_services_io *io = &entry->all->io;
	char text[WEIR_OFFER_TEXT];
	struct weir_policy_change change = weir_offer_change(offer, entry->unit, text);

	return io->set(io->context, entry->control, &change);
}

static int read_offer(void *context, double *committed)
{
	struct weir_services_entry *entry = context;
	const struct weir_services_io *io = &entry->all->io;
	const struct weir_policy_limit *limit = io->limit(io->context, entry->control);

	if (!limit)
		return -ENOENT;
	*committed = weir_offer_of_limit(limit, entry->unit);
	return 0;
}

static void moved(void *context, const struct weir_movement *movement)
{
	const struct weir_services_entry *entry = context;

	if (entry->all->io.moved)
		entry->all->io.moved(entry->all->io.context, movement);
}

/* ---- from the policy ---- */

static double ratio(uint64_t millionths)
{
	return (double)millionths / 1e6;
}

/* FNV-1a: services of one file draw differently, the same service the same everywhere. */
static uint64_t seed_of(const char *name)
{
	uint64_t hash = 0xcbf29ce484222325ULL;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 0x100000001b3ULL;
	return hash;
}

static struct weir_service_conf conf_of(const struct weir_policy_service *policy)
{
	const struct weir_policy_breaker *breaker = &policy->breaker;
	const struct weir_policy_shedder *shedder = &policy->shedder;
	const struct weir_policy_governor *governor = &policy->governor;
	struct weir_offer_unit unit = weir_offer_unit(governor);
	struct weir_service_conf conf = {
		.has = { breaker->given, shedder->given, governor->given },
		.breaker = { ratio(breaker->k), ratio(breaker->floor), ratio(breaker->protection),
			     (int64_t)breaker->probe_ns, (int32_t)breaker->size,
			     (int64_t)breaker->window_ns },
		.shedder = { (int32_t)shedder->size, (int64_t)shedder->window_ns,
			     (int32_t)shedder->cpu, (int64_t)shedder->latency_ns,
			     ratio(shedder->beta), (int64_t)shedder->cool_ns,
			     ratio(shedder->floor) },
		.governor = { weir_offer_of_rate(&governor->start, unit),
			      weir_offer_of_rate(&governor->floor, unit),
			      fmin(weir_offer_of_rate(&governor->ceiling, unit),
				   weir_offer_most(unit)),
			      ratio(governor->high), ratio(governor->low),
			      (int64_t)governor->window_ns },
		.seed = seed_of(policy->name),
	};

	memcpy(conf.name, policy->name, sizeof(conf.name));
	return conf;
}

static void free_entry(struct weir_services_entry *entry)
{
	if (!entry)
		return;
	weir_service_free(entry->service);
	weir_cpu_close(&entry->cpu);
	free(entry);
}

/* What of an entry is plain settings. */
static void settle(struct weir_services_entry *entry, const struct weir_policy_service *policy,
		   size_t index)
{
	const char *root = entry->all->io.root;

	entry->index = index;
	entry->wrote = false;
	if (entry->service && entry->trust != policy->trust)
		weir_service_rebase(entry->service);
	entry->trust = policy->trust;
	memcpy(entry->control, policy->governor.control, sizeof(entry->control));
	entry->unit = weir_offer_unit(&policy->governor);
	entry->floor = weir_offer_of_rate(&policy->governor.floor, entry->unit);
	entry->ceiling = weir_offer_of_rate(&policy->governor.ceiling, entry->unit);
	entry->sheds = policy->shedder.given;
	entry->hot_at = (int32_t)policy->shedder.cpu;
	if (strcmp(entry->cpu.cgroup, policy->cgroup)) {
		weir_cpu_close(&entry->cpu);
		weir_cpu_open(&entry->cpu, root ? root : "", policy->cgroup);
		entry->failing[CPU] = false;
		entry->cpu_now = WEIR_CPU_UNKNOWN;
		entry->cpu_ns = INT64_MIN;
	}
}

static struct weir_services_entry *new_entry(struct weir_services *services,
					     const struct weir_policy_service *policy, size_t index,
					     int64_t now_ns)
{
	struct weir_services_entry *entry = calloc(1, sizeof(*entry));
	const struct weir_service_hooks hooks = { { push_offer, read_offer, NULL, entry },
						  moved,
						  entry };
	const struct weir_service_conf conf = conf_of(policy);

	if (!entry)
		return NULL;
	entry->all = services;
	memcpy(entry->name, policy->name, sizeof(entry->name));
	weir_cpu_open(&entry->cpu, "", "");
	entry->cpu_now = WEIR_CPU_UNKNOWN;
	entry->ticked_ns = entry->written_ns = INT64_MIN;
	settle(entry, policy, index);
	entry->service = weir_service_new(&conf, &hooks, now_ns);
	if (entry->service)
		return entry;
	free_entry(entry);
	return NULL;
}

/* A service that goes on: its entry leaves the old array for the new one. */
static int keep_entry(struct weir_services_entry *entry, const struct weir_policy_service *policy,
		      size_t index, int64_t now_ns)
{
	const struct weir_service_conf conf = conf_of(policy);
	bool other = strcmp(entry->control, policy->governor.control) != 0;
	int rc;

	settle(entry, policy, index);
	/* A governor of another limit is another governor. */
	if (other) {
		struct weir_service_conf without = conf;

		without.has[WEIR_LOOP_GOVERNOR] = false;
		rc = weir_service_configure(entry->service, &without, now_ns);
		if (rc)
			return rc;
	}
	rc = weir_service_configure(entry->service, &conf, now_ns);
	if (!rc)
		weir_service_push(entry->service);
	return rc;
}

int weir_services_apply(struct weir_services *services, const struct weir_policy *policy,
			int64_t now_ns, struct weir_error *err)
{
	size_t count = policy->service_count, i;
	struct weir_services_entry **entries = calloc(count + 1, sizeof(*entries)), **old;
	int rc = entries ? 0 : -ENOMEM;

	for (i = 0; i < count && !rc; i++) {
		const struct weir_policy_service *wanted = &policy->services[i];

		entries[i] = weir_services_find(services, wanted->name);
		if (entries[i])
			rc = keep_entry(entries[i], wanted, i, now_ns);
		else
			entries[i] = new_entry(services, wanted, i, now_ns);
		if (!entries[i])
			rc = -ENOMEM;
	}
	if (rc) {
		/* Those of before are still in the old array. */
		for (size_t j = 0; entries && j < i; j++) {
			if (entries[j] && !weir_services_find(services, entries[j]->name))
				free_entry(entries[j]);
		}
		free(entries);
		return weir_error_set(err, rc, "services: out of memory");
	}
	old = services->entries;
	for (i = 0; i < services->count; i++) {
		if (!weir_policy_find_service(policy, old[i]->name))
			free_entry(old[i]);
	}
	free(old);
	services->entries = entries;
	services->count = count;
	services->monitor = policy->mode == WEIR_POLICY_MONITOR;
	return 0;
}

struct weir_services *weir_services_new(const struct weir_services_io *io)
{
	struct weir_services *services = calloc(1, sizeof(*services));

	if (!services)
		return NULL;
	services->io = *io;
	weir_cpu_open(&services->host, io->root ? io->root : "", "");
	services->host_now = WEIR_CPU_UNKNOWN;
	services->host_ns = INT64_MIN;
	return services;
}

void weir_services_free(struct weir_services *services)
{
	if (!services)
		return;
	for (size_t i = 0; i < services->count; i++) {
		if (services->io.write)
			services->io.write(services->io.context, i, &nothing);
		free_entry(services->entries[i]);
	}
	free(services->entries);
	weir_cpu_close(&services->host);
	free(services);
}

/* ---- a tick ---- */

/* One line when something stops working, one when it works again. */
static void note(const struct weir_services *services, const char *name, bool *failing, int rc,
		 const char *what)
{
	if (*failing == (rc != 0))
		return;
	*failing = rc != 0;
	if (rc)
		say(services, "service %s: %s: %s", name, what, strerror(-rc));
	else
		say(services, "service %s: %s: works again", name, what);
}

static bool is_due(int64_t last_ns, int64_t now_ns, int64_t every_ns)
{
	return last_ns == INT64_MIN || now_ns - last_ns >= every_ns;
}

static int32_t cpu_of(struct weir_services_entry *entry, int64_t now_ns)
{
	struct weir_services *services = entry->all;
	int rc;

	if (!entry->sheds)
		return WEIR_CPU_UNKNOWN;
	if (!*entry->cpu.cgroup) {
		if (is_due(services->host_ns, now_ns, CPU_EVERY_NS)) {
			services->host_ns = now_ns;
			rc = weir_cpu_read(&services->host, now_ns, &services->host_now);
			note(services, "(all)", &services->host_failing, rc,
			     "the host's CPU is not known, nothing is shed");
		}
		return services->host_now;
	}
	if (is_due(entry->cpu_ns, now_ns, CPU_EVERY_NS)) {
		entry->cpu_ns = now_ns;
		rc = weir_cpu_read(&entry->cpu, now_ns, &entry->cpu_now);
		note(services, entry->name, &entry->failing[CPU], rc,
		     "its cgroup's CPU is not known, nothing is shed");
	}
	return entry->cpu_now;
}

/* What counts for the loops: the kernel's view, or the application's where that is trusted. */
static int counts_of(struct weir_services_entry *entry, struct weir_service_counts *counts)
{
	const struct weir_services_io *io = &entry->all->io;
	struct weir_service_counts kernel = { 0 };
	int rc = io->read ? io->read(io->context, entry->index, &kernel) : 0;

	if (rc)
		return rc;
	*counts = kernel;
	if (entry->trust != WEIR_POLICY_TRUST_REPORT)
		return 0;
	*counts = entry->reported;
	counts->dropped = kernel.dropped;
	counts->shed = kernel.shed;
	counts->in_flight = kernel.in_flight;
	return 0;
}

static void write_output(struct weir_services_entry *entry, int64_t now_ns)
{
	const struct weir_service_output *output =
		entry->all->monitor ? &nothing : weir_service_output(entry->service);
	const struct weir_services_io *io = &entry->all->io;
	bool same = entry->wrote && output->drop == entry->written.drop &&
		    output->ceiling == entry->written.ceiling &&
		    (output->probe_ns == entry->written.probe_ns || output->drop <= 0);
	int rc;

	if (!io->write || (same && !is_due(entry->written_ns, now_ns, WRITE_EVERY_NS)))
		return;
	rc = io->write(io->context, entry->index, output);
	note(entry->all, entry->name, &entry->failing[WRITING], rc,
	     "its drop fraction and ceiling can't be written");
	entry->wrote = !rc;
	entry->written = *output;
	entry->written_ns = now_ns;
}

static void tick(struct weir_services_entry *entry, int64_t now_ns)
{
	struct weir_service_counts counts;
	int rc = counts_of(entry, &counts);

	entry->ticked_ns = now_ns;
	note(entry->all, entry->name, &entry->failing[READING], rc, "its counts can't be read");
	if (rc)
		return;
	weir_service_tick(entry->service, now_ns, &counts, cpu_of(entry, now_ns));
	write_output(entry, now_ns);
}

int64_t weir_services_tick_ns(const struct weir_services *services)
{
	int64_t least = 0;

	for (size_t i = 0; i < services->count; i++) {
		int64_t own = weir_service_tick_ns(services->entries[i]->service);

		if (!least || own < least)
			least = own;
	}
	return least;
}

void weir_services_tick(struct weir_services *services, int64_t now_ns)
{
	int64_t slack_ns = weir_services_tick_ns(services) / 2;

	for (size_t i = 0; i < services->count; i++) {
		struct weir_services_entry *entry = services->entries[i];

		if (is_due(entry->ticked_ns, now_ns,
			   weir_service_tick_ns(entry->service) - slack_ns))
			tick(entry, now_ns);
	}
}

/* ---- what comes from outside ---- */

int weir_services_outcome(struct weir_services *services, const char *name, bool pass,
			  uint64_t response_ns, struct weir_error *err)
{
	struct weir_services_entry *entry = weir_services_find(services, name);
	struct weir_service_counts *counts;

	services->received++;
	if (!entry) {
		services->unknown++;
		return weir_error_set(err, -ENOENT,
				      "there is no service '%s': see weir show services", name);
	}
	if (entry->trust != WEIR_POLICY_TRUST_REPORT)
		return weir_error_set(err, -EOPNOTSUPP,
				      "service '%s' counts what the kernel sees: write trust: "
				      "report in the file to count reports instead",
				      name);
	counts = &entry->reported;
	counts->attempts++;
	counts->success += pass;
	counts->failure += !pass;
	if (pass && response_ns) {
		counts->response_count++;
		counts->response_ns += response_ns;
		counts->response[weir_response_slot(response_ns)]++;
	}
	return 0;
}

void weir_services_malformed(struct weir_services *services)
{
	services->received++;
	services->malformed++;
}

int weir_services_freeze(struct weir_services *services, const char *name, const char *loop,
			 bool frozen, struct weir_error *err)
{
	struct weir_services_entry *entry = weir_services_find(services, name);
	bool known = !loop, done = false;

	if (!entry)
		return weir_error_set(err, -ENOENT,
				      "there is no service '%s': see weir show services", name);
	for (int kind = 0; kind < WEIR_LOOP_KINDS; kind++) {
		if (loop && strcmp(loop, weir_loop_name(kind)))
			continue;
		known = true;
		if (!weir_service_freeze(entry->service, kind, frozen))
			continue;
		done = true;
		say(services, "service %s: %s %s (weir %s)", name, weir_loop_name(kind),
		    frozen ? "frozen" : "thawed", frozen ? "freeze" : "thaw");
	}
	if (!known)
		return weir_error_set(err, -EINVAL,
				      "'%s' is no loop: give breaker, shedder or governor", loop);
	if (!done)
		return weir_error_set(err, -ENOENT, "service '%s' has no %s", name,
				      loop ? loop : "loops");
	return 0;
}
