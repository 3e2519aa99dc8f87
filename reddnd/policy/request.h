/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * request.h - the request of a client that connects, and the refusal of it. Pure.
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
	bool guessed;       /* the client does not know the size of slots, and asks for it */
	bool no_immediates; /* of its device */
	bool joins;         /* it is a further connection of a session: no name of an offload, but these */
	uint64_t session, secret;
	char offload[sizeof((struct reddn_wire_req *)0)->offload + 1];
};

/**
 * False when the bytes are not a request of this version of the protocol; @rej is the refusal then, and
 * request->offload is "" or a name: what is reported of a refused client holds no bytes of its choice.
 */
bool request_parse(const void *data, size_t size, struct request *request, struct reddn_wire_rej *rej);

/** False, with @rej, if the request has a depth above @depth_max or reply slots of less than @slot_need
 * bytes. */
bool request_check(
	const struct request *request, unsigned depth_max, uint32_t slot_need, struct reddn_wire_rej *rej);

/** Fills in a refusal. @need: the number that would have been accepted, 0 if there is none. Returns false. */
bool request_refuse(struct reddn_wire_rej *rej, enum reddn_wire_reason reason, uint32_t need,
	const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
