/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reddnc-result.h - what came of a run of a program: the reply, the work requests as the chain has left them,
 * and the scratch.
 */
#ifndef TOOLS_REDDNC_RESULT_H
#define TOOLS_REDDNC_RESULT_H

#include "reddnd/program/program.h"
#include "reddnd/session/loop-queue.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct reddnc_result {
	const struct program *program;
	const struct chain_image *image;
	unsigned slots;                        /* in each ring; the first was executed, the second is armed */
	const uint8_t *ring[CHAIN_MAX_QUEUES]; /* of WQEs, by queue */
	const uint8_t *reply, *scratch;
	const struct session_loop *loop; /* of an endless program, or NULL */
	uint64_t took_us;
	bool answered;
};

/** For people. A WQE that has another opcode than when it was armed is followed by what it was. */
void reddnc_result_text(const struct reddnc_result *r, FILE *out);
/** reddnc(1) has the members. */
void reddnc_result_json(const struct reddnc_result *r, FILE *out);

#endif
