/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lower.h - from a checked program (ast.h) to work requests: a chain description in which
 * every statement has become steps, every variable has its bytes of scratch, and every argument its places in
 * the request. The steps mean what the text means if each is over before the next starts. Of WAITs, SEND_ENs
 * and fences they have only those written by hand; chain_derive() adds the others.
 *
 * How the constructs become steps:
 *   - A condition is decided by a CAS on a word of scratch that holds the operand and *lanes*: bytes that are
 * 0 or an opcode, and change sides when the operand is what it is compared with. A READ copies the lanes into
 * the opcodes of the steps of both branches, which are dormant until then. Ctrl segments stay valid, and no
 * byte of a region or of a request becomes an opcode.
 *   - An operand too wide for a word beside its lanes is compared in parts; a byte for "equal so far" goes
 * from each part's word to the next.
 *   - < > <= >=: the operand's word grows by the complement of what it is compared with, and a CAS tests the
 * carry.
 *   - A branch of more steps than lanes: the lanes wake READs, which bring the opcodes of all the steps.
 *   - An `if` within a branch needs one lane: without its opcodes, what it guards stays dormant.
 *   - A loop's iterations follow each other; what follows a `break`, in its iteration and in all later ones,
 * is the other branch of the `if` it is in.
 *   - A variable that only carries an address from a READ to a later statement is no bytes of scratch: the
 * READ writes it into that statement's WQE. One that is only tested lies in the word in which it is tested.
 */
#ifndef PROGRAM_LOWER_LOWER_H
#define PROGRAM_LOWER_LOWER_H

#include "reddnd/program/front/ast.h"
#include "reddnd/program/front/source.h"
#include "reddnd/program/lower/target.h"

struct lowered {
	struct chain_desc desc;
	bool endless;           /* it has a loop without a bound, which desc calls: */
	struct chain_desc loop; /* an iteration, not ordered yet: for chain_loop_order() */
	uint8_t *shared_init;   /* of the region desc.shared, the last one */
	uint32_t shared_bytes;
	struct program_piece *pieces; /* the request, in wire order */
	unsigned npieces;
	uint32_t reply_max; /* bytes of the reply slot that may be written: the highest one and all below */
	struct pool *pool;  /* of all of the above, names included */
};

/** 0 and a description that the caller frees with lower_free(); PROGRAM_REFUSED with the errors in @d;
 * -ENOMEM. Keeps no reference to @p or @d. @dormant_end: where there are several queues of code, the end of
 * the reply gets its opcode only if none of them has failed; else the proof of the order decides whether it
 * need not.
 */
int lower_program(const struct ast_program *p, const struct program_target *target, bool dormant_end,
	struct diag *d, struct lowered **out);
void lower_free(struct lowered *l); /* NULL is fine */

#endif
