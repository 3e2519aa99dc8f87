/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits.h - how large a program may be. docs/man/reddn-programs.7 states these numbers.
 */
#ifndef PROGRAM_FRONT_LIMITS_H
#define PROGRAM_FRONT_LIMITS_H

#include "reddnd/chain/ir/build.h"

enum {
	PROGRAM_MAX_SOURCE = 64 << 10, /* bytes of a file */
	PROGRAM_MAX_NAME = 23,         /* characters of a name */
	PROGRAM_MAX_NEST = 32,         /* blocks within blocks, or parentheses within parentheses */
	PROGRAM_MAX_LIST = 64,         /* items between commas */
	PROGRAM_MAX_TERMS = 64,        /* between operators of one kind in an expression */
	PROGRAM_MAX_ERRORS = 20,       /* reported in one run */

	PROGRAM_MAX_PARAMS = 16,
	PROGRAM_MAX_REGIONS = CHAIN_MAX_WINDOWS,   /* windows of one region count as bindings of their own */
	PROGRAM_MAX_QUEUES = CHAIN_MAX_QUEUES - 1, /* that a program names; the reply queue is always there */
	PROGRAM_MAX_FIELDS = 256,  /* of a structure, every element of an array field counted */
	PROGRAM_MAX_BYTES = 32768, /* of a `bytes N` */
	PROGRAM_MAX_ARGS = 256,    /* every element and field counted */
	PROGRAM_MAX_ARG_BYTES = CHAIN_MAX_ARG,
	PROGRAM_MAX_PAYLOAD = CHAIN_MAX_LOCATED - CHAIN_MAX_ARG,
	PROGRAM_MAX_REPLIES = 256,     /* fields of the reply */
	PROGRAM_MAX_VARS = 512,        /* every element and iteration counted */
	PROGRAM_MAX_ITERATIONS = 512,  /* of one loop */
	PROGRAM_MAX_STATEMENTS = 4096, /* after loops are unrolled */
	PROGRAM_MAX_DECISIONS = 4096,  /* iterations and comparisons, after loops are unrolled */
	PROGRAM_MAX_OFFSET = 5,        /* bytes of an offset in a region: those of variables that count */
	PROGRAM_MAX_SLOT = 1 << 30,    /* offset in the reply slot, bytes */
	PROGRAM_MAX_STORED = 1 << 24,  /* by one write into a region: where a CPU does that, others wait */
	PROGRAM_MAX_COMPARED = 32,     /* bytes of what == compares */
	PROGRAM_MAX_SEGMENTS = 30,     /* data segments of a verb: what a WQE has room for */
};

/** The constant part of an offset in a region, bytes: struct chain_place has 32 bits for it. */
#define PROGRAM_MAX_CONSTANT UINT32_MAX

#endif
