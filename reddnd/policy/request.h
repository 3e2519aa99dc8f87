/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * request.h - what a client asks for when it connects, and how it is told no. Pure.
 */
#ifndef POLICY_REQUEST_H
#define POLICY_REQUEST_H

#include "protocol/wire.h"

#include <stdbool.h>
#include <stddef.h>

/** struct reddn_wire_req in host order. */
struct request {
	uint16_t depth;
	uint64_t slot_addr;
	uint32_t slot_rkey, slot_size;
	char offload[sizeof((struct reddn_wire_req *)0)->offload + 1];
};

/** False when the bytes are no request that this version understands; @rej then says why. */
bool request_parse(const void *data, size_t size, struct request *request, struct reddn_wire_rej *rej);

/** False when the offload wants something else: at most @depth_max requests, slots of @slot_need bytes. */
bool request_check(
	const struct request *request, unsigned depth_max, uint32_t slot_need, struct reddn_wire_rej *rej);

/** Fills in a refusal; @need: the number that would have been right, 0 if there is none. */
void request_refuse(struct reddn_wire_rej *rej, enum reddn_wire_reason reason, uint32_t need,
	const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
