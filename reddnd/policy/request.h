/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * request.h - the request of a client that connects, the refusal of it, and the questions that a REQ may be
 * instead. Pure.
 */
#ifndef POLICY_REQUEST_H
#define POLICY_REQUEST_H

#include "protocol/wire.h"
#include "reddnd/catalog/verdicts.h"
#include "reddnd/policy/source.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/*
 * Reasons why sessions ended, for clients that ask (REDDN_REQ_END_REASON of wire.h).
 *
 * The reasons of the last END_REASONS_MAX sessions are kept, at most END_REASONS_EACH for one source
 * (source.h), so that only who has addresses of many sources can displace the reasons of others. The asking
 * client must connect from the address of the session and must know the address and rkey of its reply slots,
 * which only the client and the server know.
 */

enum { END_REASONS_MAX = 1024, END_REASONS_EACH = 32 };

/** A session, and the proof that it belonged to the asking client. */
struct end_reason_query {
	uint64_t session; /* > 0 */
	uint64_t slot_addr;
	uint32_t slot_rkey;
};

struct end_reason {
	uint64_t number; /* count of end_reasons_add(); 0: free */
	uint8_t address[16];
	struct source source; /* of that address */
	struct end_reason_query of;
	uint8_t how; /* enum reddn_wire_end */
	char why[sizeof((struct reddn_wire_rej *)0)->text];
};

struct end_reasons {
	struct end_reason kept[END_REASONS_MAX];
	uint64_t count;
};

/** How a session ended, for the client, when a verdict ended it. */
enum reddn_wire_end end_reason_of_verdict(enum verdict_kind kind);

/** @address: of the client; @source_bits: for source_of(). @why is cut to what a REJ holds. */
void end_reasons_add(struct end_reasons *all, const uint8_t address[16], unsigned source_bits,
	const struct end_reason_query *of, enum reddn_wire_end how, const char *why);

/** The answer: REDDN_REJ_ENDED or REDDN_REJ_UNKNOWN. */
void end_reasons_answer(const struct end_reasons *all, const uint8_t address[16],
	const struct end_reason_query *of, struct reddn_wire_rej *rej);

/* What a client asks about a session of its own, by a REQ that opens none (protocol/wire.h). */

struct question {
	bool describe; /* what the offload takes and answers; else why the session ended */
	uint32_t from; /* first byte of the description that is wanted */
	struct end_reason_query of;
};

/** True if the private data of a REQ are a question. */
bool question_parse(const void *data, size_t size, struct question *question);

/** The answer REDDN_REJ_DESCRIBED: as much of @description, from byte @from on, as a REJ holds. */
void question_describe(const char *description, uint32_t from, struct reddn_wire_rej *rej);

#endif
