/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * end-reason.h - reasons why sessions ended, for clients that ask (REDDN_REQ_END_REASON of wire.h). Pure.
 *
 * The reasons of the last END_REASONS_MAX sessions are kept, at most END_REASONS_EACH for one source
 * (source.h), so that only who has addresses of many sources can displace the reasons of others. The asking
 * client must connect from the address of the session and must know the address and rkey of its reply slots,
 * which only the client and the server know.
 */
#ifndef POLICY_END_REASON_H
#define POLICY_END_REASON_H

#include "protocol/wire.h"
#include "reddnd/catalog/verdicts.h"
#include "reddnd/policy/source.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
