/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace.h - the work requests of a request in their order, as straight steps. A step knows of its work
 * request what no request changes: pointers, masks, the bounds that a place must keep. What the request or
 * the chain fills in is read from the WQE and checked, as op.h does, with the same syndromes. A work request
 * of a rarer kind is executed by op.h.
 *
 * A trace is right as long as nothing new is learned about what is written (op.h). Private to the executor.
 */
#ifndef EXECUTOR_TRACE_H
#define EXECUTOR_TRACE_H

#include "reddnd/executor/op.h"

struct trace_step;
/** Executes @t, and then the next ones: as the last thing that it does, which compilers make a jump. Returns
 * the step that fails, with a syndrome in @s; else the one to go on with, as the rest does not hold any more
 * or is at its end. */
typedef const struct trace_step *trace_run(struct op_state *s, const struct trace_step *t);

/** Bytes of a word that is read, which become bytes of a word of the chain's own memory. */
struct trace_part {
	uint8_t *to; /* that word, aligned */
	uint64_t mask;
	uint8_t left; /* bits to rotate the word that is read */
	bool last;    /* of that word */
	uint8_t word;
};

struct trace_step {
	trace_run *run;
	struct op *op;
	unsigned number;  /* of that in the order. A READ of single bytes is a step for each */
	uint64_t control; /* of the WQE, if this is to be done */
	trace_run *then;  /* what that is */
	const uint8_t *wqe;
	/* a place that the WQE names: where its address is, the first and the last one that are right, and
	 * what is there */
	const uint8_t *address;
	uint64_t first, last;
	uint8_t *mem;
	const uint8_t *from; /* places that stay */
	uint8_t *to;
	uint32_t len;
	union {
		struct { /* of a READ of few bytes */
			const struct trace_part *part, *end;
			uint32_t nwords;
		};
		struct { /* of a compare-and-swap in own memory; .swap is masked */
			uint64_t swap, swap_mask, compare_mask;
		};
		struct { /* of a message */
			struct executor_message message;
			uint64_t room; /* in the slot */
		};
	};
};

struct trace {
	struct trace_step *step;
	unsigned nsteps, step_room; /* the end is one more */
	struct trace_part *part;
	unsigned nparts, part_room;
};

/** Room for @n work requests. -ENOMEM. */
int trace_init(struct trace *t, unsigned n);
void trace_deinit(struct trace *t);

/** Makes steps of @n work requests, whose WQEs are as in the image. */
void trace_make(struct trace *t, struct op_state *s, struct op *const *ops, unsigned n);
/** True: @t reads words whose place the WQE names, at .address. */
bool trace_reads_found(const struct trace_step *t);
/** True: @t, if it does anything, sends such bytes. */
bool trace_sends_found(const struct trace_step *t);
/** Gives back the room that trace_make() has not used. What is made later has no more; a work request that
 * needs more is executed by other means. True: it must be made again now. */
bool trace_shrink(struct trace *t);

/** Executes all. s->syndrome is 0. Returns how many were executed until one failed, with a syndrome, or
 * something was learned, without. */
static inline unsigned trace_execute(const struct trace *t, struct op_state *s)
{
	return t->step->run(s, t->step)->number;
}

#endif
