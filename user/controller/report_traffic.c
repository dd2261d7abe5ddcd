// SPDX-License-Identifier: GPL-2.0
#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>
#include <string.h>

#include "controller/report.h"

static const char *const hook_words[WEIR_HOOKS] = { "xdp", "tc-ingress", "tc-egress" };

const char *weir_report_hook_name(uint32_t hook)
{
	return hook < WEIR_HOOKS ? hook_words[hook] : "unknown";
}

const char *weir_report_path_name(enum weir_path path)
{
	static const char *const paths[WEIR_PATHS] = {
		"limits", "unmatched", "allowed",   "denied",
		"exempt", "not_ip",    "malformed", "refused"
	};

	return path < WEIR_PATHS ? paths[path] : "unknown";
}

static json_t *hook_traffic(const struct weir_traffic *sum)
{
	json_t *made = json_object();

	for (int i = 0; i < WEIR_PATHS; i++)
		made = weir_report_add(made, weir_report_path_name((enum weir_path)i),
				       json_pack("{s:I, s:I}", "packets",
						 (json_int_t)sum->frames[i], "bytes",
						 (json_int_t)sum->bytes[i]));
	return made;
}

static json_t *attached(const struct weir_view *view, enum weir_attachment how)
{
	static const char *const words[] = { "no", "native", "generic" };

	return view->live ? json_string(words[how]) : json_null();
}

static json_t *one_interface(const struct weir_view *view,
			     const struct weir_interface_status *interface)
{
	static const char *const asked[] = { "auto", "native", "generic" };
	json_t *made = json_pack("{s:s, s:I}", "name", interface->name, "ifindex",
				 (json_int_t)interface->ifindex);
	json_t *hooks = json_object();

	made = weir_report_add(made, "mode",
			       view->live ? json_string(asked[interface->asked]) : json_null());
	made = weir_report_add(made, "attached", attached(view, interface->attached));
	made = weir_report_add(made, "dispatcher",
			       view->live ? json_boolean(interface->dispatcher) : json_null());
	made = weir_report_add(made, "reason",
			       *interface->renamed ?
				       json_sprintf("is called %s now: write that into the file "
						    "and weir reload, or give it its name back",
						    interface->renamed) :
				       json_string(interface->reason));
	for (int hook = 0; hook < WEIR_HOOKS; hook++) {
		struct weir_traffic sum = weir_dataplane_traffic(
			view->dataplane, interface->slot % WEIR_INTERFACES_MAX,
			(enum weir_hook)hook);

		hooks = weir_report_add(hooks, weir_report_hook_name((uint32_t)hook),
					hook_traffic(&sum));
	}
	return weir_report_add(made, "traffic", hooks);
}

json_t *weir_report_interfaces(const struct weir_view *view)
{
	json_t *array = json_array();

	for (size_t i = 0; i < view->interface_count && array; i++) {
		if (json_array_append_new(array, one_interface(view, &view->interfaces[i]))) {
			json_decref(array);
			array = NULL;
		}
	}
	return array;
}

size_t weir_report_pinned_interfaces(const struct weir_dataplane *dataplane,
				     struct weir_interface_status *interfaces, size_t size)
{
	size_t count = 0;

	for (uint32_t i = 0; i < 2 * WEIR_INTERFACE_LINES && count < size; i++) {
		const struct weir_interface_line *line = &dataplane->board->interfaces[i / 2];
		struct weir_interface_status *status = &interfaces[count];

		if (!line->ifindex[i % 2])
			continue;
		*status = (struct weir_interface_status){
			.ifindex = line->ifindex[i % 2],
			.slot = line->slot[i % 2],
			.reason = "the controller is down: how it is attached is not known",
		};
		if (!if_indextoname(status->ifindex, status->name))
			snprintf(status->name, sizeof(status->name), "if%u", status->ifindex);
		count++;
	}
	return count;
}

/* ---- a sampled refusal ---- */

static const char *protocol_name(uint8_t protocol, char *text, size_t size)
{
	static const struct {
		uint8_t number;
		const char *name;
	} names[] = {
		{ 1, "icmp" }, { 6, "tcp" }, { 17, "udp" }, { 58, "icmpv6" }, { 132, "sctp" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i].number == protocol)
			return names[i].name;
	}
	snprintf(text, size, "%u", protocol);
	return text;
}

static json_t *interface_of(uint32_t ifindex)
{
	char name[IF_NAMESIZE];

	return if_indextoname(ifindex, name) ? json_string(name) : json_null();
}

static json_t *limit_of(const struct weir_dataplane *dataplane, uint16_t slot)
{
	char name[sizeof(dataplane->labels[0].name)];

	if (slot >= WEIR_LIMITS_MAX)
		return json_null();
	memcpy(name, dataplane->labels[slot].name, sizeof(name));
	name[sizeof(name) - 1] = '\0';
	return json_string(name);
}

/* The service that refused, and the loop of it; null for both where it was no service. */
static json_t *add_service(json_t *made, const struct weir_dataplane *dataplane, uint16_t slot)
{
	bool service = slot != WEIR_NO_LIMIT && slot & WEIR_BY_SERVICE;
	char name[sizeof(dataplane->services[0].name)] = "";

	if (service)
		memcpy(name, dataplane->services[slot & WEIR_SERVICE_INDEX].name, sizeof(name));
	name[sizeof(name) - 1] = '\0';
	made = weir_report_add(made, "service", service ? json_string(name) : json_null());
	return weir_report_add(made, "loop",
			       !service ? json_null() :
			       slot & WEIR_BY_SHEDDER ? json_string("shedder") :
							json_string("breaker"));
}

json_t *weir_report_event(const struct weir_dataplane *dataplane, const struct weir_event *event,
			  int64_t realtime_offset_ns)
{
	int family = event->family == 6 ? AF_INET6 : AF_INET;
	char source[INET6_ADDRSTRLEN], destination[INET6_ADDRSTRLEN], protocol[8];
	json_t *made;

	inet_ntop(family, event->source, source, sizeof(source));
	inet_ntop(family, event->destination, destination, sizeof(destination));
	made = json_pack("{s:I, s:s, s:s, s:s, s:i, s:i, s:s, s:I, s:b, s:I}", "time_ns",
			 (json_int_t)event->now_ns + (json_int_t)realtime_offset_ns, "hook",
			 weir_report_hook_name(event->hook), "source", source, "destination",
			 destination, "source_port", event->source_port, "destination_port",
			 event->destination_port, "protocol",
			 protocol_name(event->protocol, protocol, sizeof(protocol)), "bytes",
			 (json_int_t)event->bytes, "would", event->would, "left_out",
			 (json_int_t)event->suppressed);
	made = weir_report_add(made, "limit", limit_of(dataplane, event->slot));
	made = add_service(made, dataplane, event->slot);
	return weir_report_add(made, "interface", interface_of(event->ifindex));
}
