/* SPDX-License-Identifier: BSD-2-Clause */
/* Fuzz target: the private data of a connection, for the parser of connect requests. */
#include "reddnd/policy/request.h"
#include "tests/fuzz/fuzz.h"

#include <endian.h>
#include <string.h>

enum { DEPTH_MAX = 64, SLOT_MAX = 4096 };

static void check_request(const struct request *r)
{
	fuzz_need(r->depth && r->slot_addr % 64 == 0 && r->slot_size % 64 == 0 && r->slot_size &&
			  r->slot_addr + (uint64_t)r->depth * r->slot_size >= r->slot_addr,
		"impossible slots are accepted");
	fuzz_need(!*r->offload == r->joins && strnlen(r->offload, sizeof(r->offload)) < sizeof(r->offload),
		"an offload without a name is accepted");
	for (const char *c = r->offload; *c; c++)
		fuzz_need(*c > ' ' && *c < 127, "a name that would spoil a log is accepted");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct request r;
	struct reddn_wire_rej rej;

	if (request_parse(data, size, &r, &rej)) {
		fuzz_need(size >= sizeof(struct reddn_wire_req), "too short a request is accepted");
		check_request(&r);
		if (request_check(&r, DEPTH_MAX, SLOT_MAX, &rej))
			return 0;
	}
	fuzz_need(be32toh(rej.magic) == REDDN_WIRE_MAGIC && rej.version == REDDN_WIRE_VERSION && rej.reason &&
			  memchr(rej.text, 0, sizeof(rej.text)),
		"a malformed refusal");
	fuzz_refused(rej.text);
	return 0;
}
