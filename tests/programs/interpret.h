/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interpret.h - what a program means, statement after statement, on plain memory: what its chain is compared
 * with.
 */
#ifndef TESTS_PROGRAMS_INTERPRET_H
#define TESTS_PROGRAMS_INTERPRET_H

#include "reddnd/program/front/ast.h"

/** The memory of one request. */
struct interpret {
	const struct ast_program *p;
	uint8_t *region[PROGRAM_MAX_REGIONS];
	uint32_t bytes[PROGRAM_MAX_REGIONS];
	uint8_t *slot;
	uint32_t slot_bytes;
	uint8_t (*arg)[64]; /* big-endian, or bytes as they are */
	uint32_t number;    /* of the request */
	uint64_t extent;    /* that its payload has been put into */
	uint32_t request_bytes;
	bool published; /* the locator of the payload, with that length */
	/* Of its answer: a send, whose bytes come to @inbox, of slot_bytes as well, or a write_imm */
	bool sends;
	uint32_t imm;
	uint8_t *inbox;
};

enum {
	/* it reaches beyond a region, or an atomic is not aligned: its chain fails; or a loop goes on for too
	   long */
	INTERPRET_BEYOND = 1,
	INTERPRET_CANNOT, /* it reads or patches what only a NIC has */
};

/** Whether the program is one that can be interpreted: decided without running it. */
bool interpret_can(const struct ast_program *p);
/** Does to the memory what one request means. 0, INTERPRET_BEYOND or INTERPRET_CANNOT. */
int interpret(struct interpret *in);

#endif
