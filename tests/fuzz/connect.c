/* SPDX-License-Identifier: BSD-2-Clause */
/* Private data of a connection, to the parser of requests. */
#include "reddnd/policy/request.h"
#include "tests/fuzz/inputs.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

static void make(struct input *in)
{
	struct reddn_wire_req req = {
		.magic = htobe32(REDDN_WIRE_MAGIC),
		.version = REDDN_WIRE_VERSION,
		.depth = htobe16(8),
		.slot_addr = htobe64(0x7f0000001000),
		.slot_rkey = htobe32(0x1234),
		.slot_size = htobe32(4096),
		.offload = "users",
	};
	uint64_t word = htobe64(inputs_word());

	in->len = inputs_pick(8) ? sizeof(req) : inputs_pick(sizeof(req) + 1);
	switch (inputs_pick(6)) {
	case 0:
		req.slot_addr = word;
		break;
	case 1:
		req.slot_size = (uint32_t)(word >> 32);
		req.depth = (uint16_t)(word >> 48);
		break;
	case 2:
		memset(req.offload + inputs_pick(24), (int)inputs_pick(256), 1);
		break;
	}
	memcpy(in->bytes, &req, in->len);
	for (unsigned i = inputs_pick(4); i > 0 && in->len; i--)
		in->bytes[inputs_pick((unsigned)in->len)] = (char)(inputs_pick(2)   ? inputs_pick(256)
								   : inputs_pick(2) ? 0
										    : 255);
}

static enum input_outcome use(const struct input *in)
{
	uint8_t *data = malloc(in->len ? in->len : 1); /* of its own: a sanitizer sees its end */
	struct request r;
	struct reddn_wire_rej rej;
	bool ok;

	inputs_need(data != NULL, "no memory");
	memcpy(data, in->bytes, in->len);
	ok = request_parse(data, in->len, &r, &rej);
	if (ok) {
		inputs_need(in->len >= sizeof(struct reddn_wire_req), "too short a request is accepted");
		inputs_need(r.depth && r.slot_addr % 64 == 0 && r.slot_size % 64 == 0 && r.slot_size &&
				    r.slot_addr + (uint64_t)r.depth * r.slot_size >= r.slot_addr,
			"impossible slots are accepted");
		inputs_need(
			*r.offload && strnlen(r.offload, sizeof(r.offload)) < sizeof(r.offload), "no name");
		for (const char *c = r.offload; *c; c++)
			inputs_need(*c > ' ' && *c < 127, "a name that would spoil a log");
		ok = request_check(&r, 64, 4096, &rej);
	}
	if (!ok) {
		inputs_need(be32toh(rej.magic) == REDDN_WIRE_MAGIC && rej.version == REDDN_WIRE_VERSION &&
				    rej.reason && *rej.text && memchr(rej.text, 0, sizeof(rej.text)),
			"refused without words");
		inputs_feature(rej.text);
	}
	free(data);
	return ok ? INPUT_ACCEPTED : INPUT_REFUSED;
}

const struct input_kind inputs_connect = {.name = "connect", .make = make, .use = use};
