/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * outcome.h - what became of a request, as the rings tell when it is over. Pure.
 *
 * A work request of a chain that is only sometimes executed is a NOP that the chain gave its opcode. The
 * opcode is still in the ring when the instance is over, until it is armed again: so what an instance did is
 * seen without a work request more, and off the path of requests. An instance is a *hit* if a conditional
 * WRITE to the reply slot was executed, a *miss* if the program has such WRITEs and none was. The last answer
 * of a program is for when no condition has held, and no such WRITE.
 */
#ifndef GENERATION_OUTCOME_H
#define GENERATION_OUTCOME_H

#include "reddnd/chain/ring/arm.h"
#include "reddnd/program/program.h"

enum { OUTCOME_MAX_WRITES = 128 };

struct outcome_plan {
	unsigned wqes; /* of an instance, NOPs included: the NIC fetches and executes each of them */
	bool conditional;
	unsigned nwrites; /* WRITEs to the reply slot */
	struct {
		uint8_t queue, nsge;
		bool conditional;
		uint32_t wqebb;
	} writes[OUTCOME_MAX_WRITES];
};

struct outcome {
	bool hit;
	uint64_t bytes; /* written to the reply slot */
};

/** Writes beyond OUTCOME_MAX_WRITES are not looked at. */
void outcome_plan(struct outcome_plan *plan, const struct program *p);

/** What instance @seq did: it is over, and its slot not armed again. */
struct outcome outcome_read(const struct outcome_plan *plan, const struct chain_image *img,
	const struct chain_env *env, uint64_t seq);

#endif
