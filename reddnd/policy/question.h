/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * question.h - what a client asks about a session of its own, by a REQ that opens none (protocol/wire.h).
 * Pure.
 */
#ifndef POLICY_QUESTION_H
#define POLICY_QUESTION_H

#include "reddnd/policy/end-reason.h"

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
