// SPDX-License-Identifier: GPL-2.0
/* The packet parser on any bytes: no read past the end, no answer that contradicts itself. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "weir/packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(enum weir_parsed parsed, const struct weir_packet *packet, size_t size)
{
	bool transport = packet->protocol == WEIR_IP_TCP || packet->protocol == WEIR_IP_UDP ||
			 packet->protocol == WEIR_IP_SCTP;
	size_t least = packet->family == 4 ? 34 : 54;

	if (parsed == WEIR_NOT_IP || parsed == WEIR_MALFORMED)
		return;
	if (parsed == WEIR_PARSED && packet->family != 4 && packet->family != 6)
		abort();
	if (packet->family && size < least)
		abort();
	if (packet->has & WEIR_HAS_PORTS && (!transport || size < least + 4))
		abort();
	if (!(packet->has & WEIR_HAS_PORTS) && (packet->source_port || packet->destination_port))
		abort();
	if (packet->has & WEIR_HAS_TCP_FLAGS && packet->protocol != WEIR_IP_TCP)
		abort();
	if (packet->has & WEIR_HAS_PORTS && packet->has & WEIR_HAS_ICMP_TYPE)
		abort();
}

/* The parser leaves out what the family has not, and what the hook fills in. */
static void ignore_unwritten(struct weir_packet *packet)
{
	size_t words = packet->family == 4 ? 1 : packet->family == 6 ? 4 : 0;

	for (size_t i = words; i < 4; i++)
		packet->source[i] = packet->destination[i] = 0;
	memset(packet->reserved, 0, sizeof(packet->reserved));
	packet->bytes = packet->packets = 0;
}

/* The first byte says whether the hook knew a VLAN tag. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct weir_packet packet, again;
	enum weir_parsed parsed;
	uint16_t vlan;

	if (size < 2)
		return 0;
	vlan = data[0] & 1 ? 7 : WEIR_NO_VLAN;
	memset(&packet, 0x55, sizeof(packet));
	memset(&again, 0xaa, sizeof(again));
	/* libFuzzer's buffer is as long as the input: the sanitizer guards its end. */
	parsed = weir_packet_parse(&packet, data + 1, data + size, vlan);
	check(parsed, &packet, size - 1);
	/* What was there before must not matter. */
	if (weir_packet_parse(&again, data + 1, data + size, vlan) != parsed)
		abort();
	ignore_unwritten(&packet);
	ignore_unwritten(&again);
	if (memcmp(&packet, &again, sizeof(packet)))
		abort();
	return 0;
}
