/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace-wqe.h - what the WQE of a trace record holds, as far as its bytes make sense, and the names of
 * opcodes and syndromes.
 */
#ifndef SOFTCX_TOOL_TRACE_WQE_H
#define SOFTCX_TOOL_TRACE_WQE_H

#include "softcx/proto/proto.h"

#include <stdbool.h>
#include <stdint.h>

enum { TRACE_PIECES = 16 }; /* data segments of what a record holds */

struct trace_piece {
	bool is_inline;
	uint32_t len, lkey;
	uint64_t addr;
};

enum trace_shape { TRACE_NONE, TRACE_SEND, TRACE_WRITE, TRACE_READ, TRACE_ATOMIC, TRACE_WAIT, TRACE_ENABLE };

struct trace_wqe {
	const char *name; /* NULL: no such opcode */
	enum trace_shape shape;
	bool cas, masked;
	const char *calc; /* the operation of a CALC, "vector" of those; NULL: none */
	const uint8_t *wqe;
	unsigned bytes;                                      /* of the WQE, that the record holds */
	bool cut;                                            /* there were more */
	bool datagram;                                       /* with an address vector */
	uint32_t dctn;                                       /* which an initiator addresses; 0: none */
	uint8_t rc[sizeof(((struct softcx_trace *)0)->wqe)]; /* what it has without the address */
	struct trace_piece piece[TRACE_PIECES];
	unsigned pieces;
	uint64_t total;
	/* of an atomic */
	unsigned size;
	uint64_t arg, compare, arg_mask, compare_mask;
};

/** @w points into @rec. */
void trace_parse(struct trace_wqe *w, const struct softcx_trace *rec);
/** Length of the message: the sum of its data segments. */
uint64_t trace_bytes(const struct softcx_trace *rec);

const char *trace_opcode(uint8_t opcode); /* NULL: no such */
const char *trace_syndrome(uint8_t code);

#endif
