/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * layout.h - a description with its names resolved and its steps placed: for the builder, proofs and loops.
 */
#ifndef CHAIN_IR_LAYOUT_H
#define CHAIN_IR_LAYOUT_H

#include "reddnd/chain/ir/build.h"

enum { LAYOUT_NONE = 0xffff };

struct layout_step {
	uint16_t at; /* first WQEBB in the queue's image */
	uint8_t wqebbs;
	uint8_t ds, nsge; /* data segments in the description */
	bool head;
	uint16_t cqe;     /* signalled: number of its CQE in the instance */
	uint16_t until;   /* WAIT: step, LAYOUT_NONE for the request, and for the instance before */
	uint32_t enables; /* SEND_EN: WQEBBs of the target queue */
	/* What a step, or the request, writes into: the opcode, the remote address; and by bits, of which
	 * data segments the address and the length */
	bool opcode_written, remote_written;
	uint32_t addr_written, len_written;
};

struct layout {
	const struct chain_desc *d;
	struct layout_step step[CHAIN_MAX_STEPS];
	uint16_t by_label[CHAIN_MAX_STEPS]; /* the steps with labels, sorted by them */
	unsigned nlabels;
	uint32_t wqebbs[CHAIN_MAX_QUEUES], head[CHAIN_MAX_QUEUES], cqes[CHAIN_MAX_QUEUES];
	uint32_t word_at[CHAIN_MAX_WORDS], words_size;
	uint32_t discard_at; /* word that takes unwanted old values */
	uint32_t scratch_size;
	uint16_t order[CHAIN_MAX_STEPS]; /* of steps, in one run of an instance: layout_check_flow() */
	struct chain_error *err;
};

/** Where a place is: bytes [offset, offset + len) of a symbol (enum chain_sym_kind). */
struct layout_range {
	uint8_t sym, index;
	uint16_t step; /* of a field, else LAYOUT_NONE */
	uint64_t offset, len;
};

/** Bytes of a range that reaches to the end of its symbol: more than a region can have, and no sum of an
 * offset and that overflows. */
#define LAYOUT_ALL (1ull << 62)

/** CHAIN_REFUSED, with the reason in l->err: as CHAIN_REFUSE(). */
#define layout_refuse(l, reason, ...) CHAIN_REFUSE((l)->err, reason, ##__VA_ARGS__)

/** Step @s for a struct chain_error. */
struct chain_error_at layout_at(const struct layout *l, unsigned s);

/** Resolves @d into @l and checks everything about single steps. 0 or CHAIN_REFUSED. */
int layout_make(struct layout *l, const struct chain_desc *d);
/** An iteration of an endless loop as the chain that it is: its steps in a queue of code, 1, with a reply
 * that does nothing, and the queue of who calls it, 2. @steps: room for two steps more than @loop has. */
struct chain_desc layout_loop(const struct chain_desc *loop, struct chain_step *steps);
/** The step with that label; LAYOUT_NONE: there is none. */
unsigned layout_step(const struct layout *l, const char *label);
/** The same of a place that layout_make() has resolved, with as many bytes at most. */
struct layout_range layout_place(const struct layout *l, const struct chain_place *p, uint32_t len);
/** The place of which @p is the address, in the WQE of a step; NULL: @p is something else. */
const struct chain_place *layout_addressed(const struct layout *l, const struct chain_place *p);
/** True if step @s signals an answer to the client. */
static inline bool layout_answers(const struct layout *l, unsigned s)
{
	const struct chain_step *st = &l->d->steps[s];

	return st->queue == 0 && (st->verb == CHAIN_WRITE_IMM || st->verb == CHAIN_SEND);
}

bool layout_overlap(const struct layout_range *a, const struct layout_range *b);
/** Bytes a step moves: sum of its data segments, 8 for an atomic. */
uint32_t layout_step_bytes(const struct layout *l, unsigned s);
/** Runs the instance in the abstract and checks that it reaches every step and that every enable is of use. 0
 * or CHAIN_REFUSED. */
int layout_check_flow(struct layout *l);

/**
 * Finds the bytes of an instance that must be restored before it can serve another request (restore.c).
 *
 * A byte must be put back if the instance writes it, and if anything of the instance
 * reads or fetches it without a step having written it before that always runs, and without whose success it
 * would not come to that. So bytes that a READ fills in each time need no restoring, nor does an opcode that
 * is copied from a lane each time, if the queue of the READ enables what has it; the lane does. The places of
 * a request are restored: a request that is too short leaves the last of them as they are.
 *
 * Fills in img->restores, and orders img->relocs accordingly. The order of steps is that of the run which
 * layout_check_flow() has found. This is enough for descriptions that chain_check_order() accepts: two
 * accesses to a byte are ordered in every run or in none. 0 or -ENOMEM.
 */
int layout_note_restores(const struct layout *l, struct chain_image *img);

#endif
