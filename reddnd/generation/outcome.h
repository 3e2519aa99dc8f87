/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * outcome.h - the outcome of a request, read from the rings when it is over. Pure.
 *
 * A conditional work request of a chain is a NOP, which the chain gives its opcode if the condition holds.
 * The opcode stays in the ring until the instance is armed again, so the outcome is read without another work
 * request, and off the path of requests. A *message* is a WRITE to the reply slot or a SEND. An instance is a
 * *hit* if a conditional message was executed, a *miss* if the program has such messages and none was
 * executed. The last answer of a program is for the case that no condition holds; it does not count as such a
 * message. Of a program that publishes it is a hit if that took place (chain/ring/publish.h), and a miss if
 * no condition for it held.
 */
#ifndef GENERATION_OUTCOME_H
#define GENERATION_OUTCOME_H

#include "reddnd/chain/ring/arm.h"
#include "reddnd/program/program.h"

enum { OUTCOME_MAX_MESSAGES = 128 };

struct outcome_plan {
	unsigned reply_wqebbs; /* of an instance, in the reply queue */
	unsigned wqes;         /* program_wqes() */
	bool conditional;
	uint32_t longest; /* bytes of the longest reply, at least 1 */
	unsigned nmessages;
	struct {
		uint8_t nsge;
		bool sends;
		bool conditional;
		uint32_t wqebb;
	} messages[OUTCOME_MAX_MESSAGES];
};

struct outcome {
	bool hit;
	bool conflict;  /* neither: what the program was to replace had been replaced */
	uint64_t bytes; /* of its messages */
};

/** Messages beyond OUTCOME_MAX_MESSAGES are ignored. */
void outcome_plan(struct outcome_plan *plan, const struct program *p);

/**
 * Reads the outcome of the instance that is over in @slot. @replies: the ring of the reply queue, where the
 * slot has not been armed again, or a copy of it.
 */
struct outcome outcome_read(const struct outcome_plan *plan, const uint8_t *replies, unsigned slot);

#endif
