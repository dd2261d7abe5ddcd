// SPDX-License-Identifier: GPL-2.0
/* The readers of captures on any bytes: no read past the end, no frame that isn't there. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "controller/capture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
extern uint8_t fuzz_sink;

uint8_t fuzz_sink; /* so that what is read is not left out */

struct bytes {
	const uint8_t *at;
	size_t left;
};

static int64_t take(void *context, void *to, size_t size)
{
	struct bytes *from = context;
	size_t part = size < from->left ? size : from->left;

	memcpy(to, from->at, part);
	from->at += part;
	from->left -= part;
	return (int64_t)part;
}

/* Reads all of a frame, so that the sanitizer sees it. */
static uint8_t sum(const struct weir_capture_packet *packet)
{
	uint8_t all = 0;

	for (uint32_t i = 0; i < packet->captured; i++)
		all ^= packet->frame[i];
	return all;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes bytes = { data, size };
	struct weir_capture_packet packet;
	struct weir_capture *capture;
	struct weir_error err;
	size_t packets = 0;
	int code;

	if (weir_capture_open(&capture, take, &bytes, &err)) {
		if (!err.text[0])
			abort();
		return 0;
	}
	while ((code = weir_capture_next(capture, &packet, &err)) == 1) {
		if (packet.length < packet.captured || ++packets > size)
			abort();
		fuzz_sink ^= sum(&packet);
	}
	if ((code < 0 && !err.text[0]) || (!code && bytes.left))
		abort();
	weir_capture_close(capture);
	return 0;
}
