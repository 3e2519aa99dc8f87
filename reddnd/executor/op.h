/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * op.h - a work request in prepared form: what its WQE means, found out once. Places that nothing ever writes
 * are pointers then; places that the request or the chain fills in are looked up each time. Private to the
 * executor.
 *
 * Which bytes of the WQEs are written is learned: from the request's places, and before a work request writes
 * any others. What was prepared without knowing that is prepared anew.
 */
#ifndef EXECUTOR_OP_H
#define EXECUTOR_OP_H

#include "mlx5/wqe.h"
#include "reddnd/executor/executor.h"
#include "reddnd/executor/memory.h"

/** A data segment. */
struct op_segment {
	uint8_t *mem; /* NULL: the WQE has to be asked */
	uint32_t len;
};

struct op;
struct op_state;
typedef bool op_run(struct op_state *s, const struct op *op);

struct op {
	uint64_t control;   /* the first 8 bytes of the WQE for which this was prepared; 0: it was not */
	const uint8_t *wqe; /* where it is, or a copy */
	uint8_t *remote;    /* NULL: the WQE has to be asked */
	uint64_t bytes;     /* of all segments, if .sized */
	op_run *run;
	bool sized;
	bool overlaps;  /* it writes to its own WQE, and is executed from a copy */
	bool in_slot;   /* a message of which place and length stay, and are right */
	bool settled;   /* small READ: its data segments stay, in own memory; atomic: all places */
	uint8_t opcode; /* that it has, or may have */
	uint8_t queue, at, nsegments; /* at: of the first segment in the WQE */
	uint8_t room;                 /* for segments */
	uint32_t wqebb;
	struct op_segment *segment;
};

/* of a byte of code: it is written; it must never be; each request begins by writing it */
enum { OP_WRITTEN = 1, OP_FIXED = 2, OP_GIVEN = 4 };

/** What work requests work on. */
struct op_state {
	struct memory memory;
	uint8_t *own; /* rings of the queues of the image, then the rest; code bytes of it are such rings */
	uint64_t code;
	uint8_t *marks; /* of each byte of code */
	struct op *ops; /* by WQEBB of code */
	bool learned;   /* something since this was false */
	bool swapped_old;
	uint8_t syndrome; /* of what failed */
	uint8_t *data;
	uint32_t data_size, data_used;
	struct executor_message *messages;
	unsigned nmessages, max_messages;
};

/** Segments that a WQE of so many WQEBBs has at most. */
enum { OP_SEGMENTS = WQE_BB / WQE_DS };
/** A READ of that many bytes is whole before its data are scattered, as one on the wire is. */
enum { OP_WHOLE = 64 };

/** Prepares @op as a work request with that opcode, which its WQE may have later. */
void op_prepare(struct op_state *s, struct op *op, uint8_t opcode);
/** Bytes of the code that are written from now on. False: one of them must not be, and none is learned. */
bool op_learn(struct op_state *s, uint64_t at, uint64_t len);
/** True if one of these bytes is. */
bool op_is_written(const struct op_state *s, const uint8_t *field, unsigned len);
/** Executes any but WAIT and SEND_EN. False: s->syndrome. */
bool op_execute(struct op_state *s, struct op *op);
/** The same of @n in a row. Returns how many were executed before one failed. */
unsigned op_execute_row(struct op_state *s, struct op *const *ops, unsigned n);
/** The same of the work request at that place as it is in the copy @wqe, unprepared; no NOP. */
bool op_execute_copy(struct op_state *s, const struct op *op, const uint8_t *wqe);

static inline unsigned op_ds(const uint8_t *wqe)
{
	return wqe[WQE_DSCOUNT] & WQE_MAX_DS;
}

#endif
