// SPDX-License-Identifier: GPL-2.0
#include "controller/exchanges.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "controller/compile.h"
#include "weir/match.h"

#define STORE(to, value) __atomic_store_n(&(to), value, __ATOMIC_RELEASE)

/* A deadline is so many slices at the most; the ring has room for a few more. */
#define DEADLINE_SLICES 24

static int map_one(const struct weir_load *load, const char *name, bool ours, size_t *bytes,
		   void **at, struct weir_error *err)
{
	struct bpf_map *map = bpf_object__find_map_by_name(load->skeleton->obj, name);

	*bytes = (size_t)bpf_map__value_size(map) * bpf_map__max_entries(map);
	*at = mmap(NULL, *bytes, ours ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
		   bpf_map__fd(map), 0);
	if (*at != MAP_FAILED)
		return 0;
	*at = NULL;
	return weir_error_set(err, -errno, "can't map %s into memory: %s", name, strerror(errno));
}

int weir_exchanges_open(struct weir_exchanges_map *map, const struct weir_load *load,
			struct weir_error *err)
{
	int code;

	*map = (struct weir_exchanges_map){ .cpus = load->shape.cpus };
	code = map_one(load, "weir_services", true, &map->bytes[0], (void **)&map->services, err);
	if (!code)
		code = map_one(load, "weir_service_ports", true, &map->bytes[1],
			       (void **)&map->ports, err);
	if (!code)
		code = map_one(load, "weir_service_states", false, &map->bytes[2],
			       (void **)&map->states, err);
	if (!code)
		code = map_one(load, "weir_exchanges", false, &map->bytes[3],
			       (void **)&map->counts, err);
	map->prefixes_fd =
		bpf_object__find_map_fd_by_name(load->skeleton->obj, "weir_service_prefixes");
	if (code)
		weir_exchanges_close(map);
	return code;
}

void weir_exchanges_close(struct weir_exchanges_map *map)
{
	void *const all[] = { map->services, map->ports, (void *)map->states,
			      (void *)map->counts };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (all[i])
			munmap(all[i], map->bytes[i]);
	}
	*map = (struct weir_exchanges_map){ 0 };
}

int weir_exchanges_find(const struct weir_exchanges_map *map, const char *name)
{
	for (int place = 0; place < WEIR_SERVICES_MAX; place++) {
		if (!strcmp(map->services[place].name, name))
			return place;
	}
	return -ENOENT;
}

/* ---- settings ---- */

static uint8_t slice_shift(uint64_t deadline_ns)
{
	uint8_t shift = 0;

	while (deadline_ns >> shift >= DEADLINE_SLICES)
		shift++;
	return shift;
}

static void fill(struct weir_service_policy *to, const struct weir_policy_service *service)
{
	memcpy(to->name, service->name, sizeof(to->name));
	STORE(to->deadline_ns, service->deadline_ns);
	STORE(to->slice_shift, slice_shift(service->deadline_ns));
	STORE(to->protocols, weir_compile_protocols(service));
}

/* ---- addresses ---- */

static int add_prefixes(const struct weir_exchanges_map *map, int place,
			const struct weir_prefixes *prefixes)
{
	const uint32_t one = 1;

	for (size_t i = 0; i < prefixes->count; i++) {
		const struct weir_prefix *prefix = &prefixes->items[i];
		struct weir_service_prefix key = {
			.length = WEIR_SERVICE_PREFIX_BITS + prefix->length,
			.service = (uint16_t)place,
			.family = prefix->family,
		};

		memcpy(key.address, prefix->address, sizeof(key.address));
		if (bpf_map_update_elem(map->prefixes_fd, &key, &one, BPF_ANY))
			return -errno;
	}
	return 0;
}

static bool wants(const struct weir_prefixes *prefixes, const struct weir_service_prefix *key)
{
	for (size_t i = 0; i < prefixes->count; i++) {
		const struct weir_prefix *prefix = &prefixes->items[i];

		if (key->length == WEIR_SERVICE_PREFIX_BITS + prefix->length &&
		    key->family == prefix->family &&
		    !memcmp(key->address, prefix->address, sizeof(key->address)))
			return true;
	}
	return false;
}

/* Takes out what no service names any more. */
static void drop_prefixes(const struct weir_exchanges_map *map, const struct weir_policy *policy)
{
	struct weir_service_prefix key, next;
	bool more = !bpf_map_get_next_key(map->prefixes_fd, NULL, &next);

	while (more) {
		const struct weir_policy_service *service;

		key = next;
		more = !bpf_map_get_next_key(map->prefixes_fd, &key, &next);
		service = weir_policy_find_service(policy, map->services[key.service].name);
		if (!service || !wants(&service->match.to, &key))
			bpf_map_delete_elem(map->prefixes_fd, &key);
	}
}

/* ---- apply ---- */

/* The table of ports of all services, a word at a time. */
static void store_ports(struct weir_exchanges_map *map, const struct weir_policy *policy)
{
	static uint64_t words[WEIR_PORT_WORDS];

	memset(words, 0, sizeof(words));
	for (size_t i = 0; i < policy->service_count; i++) {
		const struct weir_ranges *ports = &policy->services[i].match.to_ports;
		uint64_t number = map->places[i] + 1ULL;

		for (size_t j = 0; j < ports->count; j++) {
			for (uint32_t p = ports->items[j].low; p <= ports->items[j].high; p++) {
				words[p / 4] &= ~(0xffffULL << (p & 3) * 16);
				words[p / 4] |= number << (p & 3) * 16;
			}
		}
	}
	for (size_t i = 0; i < WEIR_PORT_WORDS; i++)
		STORE(map->ports[i], words[i]);
}

static bool is_named(const struct weir_policy *policy, const char *name)
{
	return weir_policy_find_service(policy, name);
}

int weir_exchanges_check(const struct weir_exchanges_map *map, const struct weir_policy *policy,
			 struct weir_error *err)
{
	size_t new = 0, room = 0, prefixes = 0;

	for (size_t i = 0; i < policy->service_count; i++) {
		new += weir_exchanges_find(map, policy->services[i].name) < 0;
		prefixes += policy->services[i].match.to.count;
	}
	for (int place = 0; place < WEIR_SERVICES_MAX; place++)
		room += !*map->services[place].name;
	if (new > room)
		return weir_error_set(err, -E2BIG,
				      "no room for %zu new services while the old ones still "
				      "count: remove in one reload, add in the next",
				      new);
	/* Those of before are there until the new ones are. */
	if (prefixes > WEIR_SERVICE_PREFIXES_MAX / 2)
		return weir_error_set(err, -E2BIG,
				      "match.to of services: %zu prefixes in all, "
				      "there is room for %d: join some into shorter ones",
				      prefixes, WEIR_SERVICE_PREFIXES_MAX / 2);
	return 0;
}

int weir_exchanges_apply(struct weir_exchanges_map *map, const struct weir_policy *policy,
			 struct weir_error *err)
{
	int code = 0;

	for (size_t i = 0; i < policy->service_count; i++) {
		const struct weir_policy_service *service = &policy->services[i];
		int place = weir_exchanges_find(map, service->name), wrong;

		if (place < 0)
			place = weir_exchanges_find(map, "");
		map->places[i] = (uint16_t)place;
		fill(&map->services[place], service);
		/* What it looks at is there before it looks. */
		wrong = add_prefixes(map, place, &service->match.to);
		STORE(map->services[place].has_to, (uint8_t)(service->match.to.count > 0));
		code = code ? code : wrong;
	}
	store_ports(map, policy);
	for (int place = 0; place < WEIR_SERVICES_MAX; place++) {
		if (*map->services[place].name && !is_named(policy, map->services[place].name))
			map->services[place] = (struct weir_service_policy){ 0 };
	}
	drop_prefixes(map, policy);
	return code ? weir_error_set(err, code, "can't store the addresses of services: %s",
				     strerror(-code)) :
		      0;
}

/* ---- counts ---- */

/* How many of those in flight are not past their deadline, or just so. */
static uint64_t in_time(const struct weir_service_state *state,
			const struct weir_service_policy *service, uint64_t now_ns)
{
	uint64_t now = now_ns >> service->slice_shift;
	uint64_t then = (now_ns - service->deadline_ns) >> service->slice_shift, sum = 0;

	if (now_ns < service->deadline_ns)
		then = 0;
	for (uint64_t number = then; number <= now; number++) {
		uint64_t word = __atomic_load_n(&state->slices[number % WEIR_SERVICE_SLICES],
						__ATOMIC_RELAXED);

		if (word >> 32 == (number & 0xffffffff))
			sum += word & 0xffffffff;
	}
	return sum;
}

void weir_exchanges_read(const struct weir_exchanges_map *map, int place, uint64_t now_ns,
			 struct weir_service_counts *counts)
{
	const struct weir_service_policy *service = &map->services[place];
	const struct weir_service_state *state = &map->states[place];
	uint64_t late = 0, recent;

	*counts = (struct weir_service_counts){ 0 };
	for (uint32_t cpu = 0; cpu < map->cpus; cpu++) {
		const volatile struct weir_exchanges *one =
			&map->counts[cpu * WEIR_SERVICES_MAX + (uint32_t)place];

		counts->attempts += one->attempts;
		counts->success += one->successes;
		counts->failure += one->failures;
		counts->dropped += one->dropped;
		counts->shed += one->shed;
		counts->response_ns += one->time_ns;
		late += one->late;
		for (int i = 0; i < WEIR_RESPONSE_SLOTS; i++)
			counts->response[i] += one->times[i];
	}
	counts->response_count = counts->success;
	counts->in_flight = __atomic_load_n(&state->in_flight, __ATOMIC_RELAXED);
	counts->failure += late;
	if (!service->deadline_ns)
		return;
	recent = in_time(state, service, now_ns);
	if (counts->in_flight > recent)
		counts->failure += counts->in_flight - recent;
}

void weir_exchanges_steer(struct weir_exchanges_map *map, int place, uint64_t now_ns,
			  const struct weir_service_output *output)
{
	struct weir_service_policy *service = &map->services[place];
	bool free = output->ceiling == WEIR_SERVICE_NO_CEILING;

	STORE(service->probe_ns, (uint64_t)(output->probe_ns > 0 ? output->probe_ns : 0));
	STORE(service->drop, (uint32_t)(output->drop >= 1 ? UINT32_MAX
							  : output->drop * 4294967296.0));
	STORE(service->ceiling, free			       ? 0
				: output->ceiling < UINT32_MAX ? (uint32_t)output->ceiling
							       : UINT32_MAX);
	STORE(service->until_ns, now_ns + WEIR_STEER_NS);
}
