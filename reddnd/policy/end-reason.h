/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * end-reason.h - why sessions ended, for clients that come back to ask (REDDN_REQ_WHY of wire.h). Pure.
 *
 * The last words of FAREWELLS_MAX sessions are kept, of one client address at most FAREWELLS_EACH: whoever lets sessions end one after
 * the other displaces what others want to know only when he comes from many addresses. Who asks has to come from the address of
 * the session and to know where its reply slots were and their key, which nobody was told but the server.
 */
#ifndef POLICY_END_REASON_H
#define POLICY_END_REASON_H

#include "protocol/wire.h"
#include "reddnd/catalog/verdicts.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FAREWELLS_MAX = 1024, FAREWELLS_EACH = 32 };

/** Which session, and the proof that it was the asking client's. */
struct farewell_of {
	uint64_t session; /* > 0 */
	uint64_t slot_addr;
	uint32_t slot_rkey;
};

struct farewell {
	uint64_t number; /* of farewells_add(); 0: free */
	uint8_t address[16];
	struct farewell_of of;
	uint8_t how; /* enum reddn_wire_end */
	char why[sizeof((struct reddn_wire_rej *)0)->text];
};

struct farewells {
	struct farewell kept[FAREWELLS_MAX];
	uint64_t count;
};

/** True: the private data of a REQ is such a question, about @of. */
bool farewell_asked(const void *data, size_t size, struct farewell_of *of);

/** What a verdict is to the client. */
enum reddn_wire_end farewell_how(enum verdict_kind kind);

/** @address: rnic_conn_address(). @why is cut to what a REJ holds. */
void farewells_add(struct farewells *f, const uint8_t address[16], const struct farewell_of *of,
	enum reddn_wire_end how, const char *why);

/** The answer: REDDN_REJ_ENDED or REDDN_REJ_FORGOTTEN. */
void farewells_tell(const struct farewells *f, const uint8_t address[16], const struct farewell_of *of,
	struct reddn_wire_rej *rej);

#endif
