/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * access.h - private to the builder: which bytes the steps of a chain touch, and when.
 */
#ifndef CHAIN_IR_ACCESS_H
#define CHAIN_IR_ACCESS_H

#include "reddnd/chain/ir/layout.h"

/** When within the life of a WQE; order.h defines these moments. */
enum access_when {
	ACCESS_REQUEST, /* the client's bytes arrive, before everything */
	ACCESS_FETCH,   /* of the WQE itself: enabled to started */
	ACCESS_GATHER,  /* local bytes that are sent: started to executed */
	ACCESS_REMOTE,  /* executed */
	ACCESS_SCATTER, /* local bytes that a READ or atomic brings: executed to landed */
};

struct access {
	struct layout_range r; /* if the chain replaces the address: all of the symbol; the length: all from
				  there on */
	uint16_t step;         /* LAYOUT_NONE: the request */
	uint8_t when;          /* enum access_when */
	bool write, atomic;
};

struct access_list {
	struct access *all; /* sorted by place */
	unsigned n;
	bool may_rest[CHAIN_MAX_STEPS]; /* the step may be executed as a NOP: dormant, or its opcode is
					   written */
};

/** All accesses of @l, which layout_make() has filled; the caller calls access_free(). 0 or -ENOMEM. */
int access_collect(struct layout *l, struct access_list *list);
void access_free(struct access_list *list);

/**
 * Calls @pair for any two accesses to the same bytes by different steps, one of which writes; @a is the one
 * that comes first in the description. Stops at the first nonzero result and returns it.
 */
int access_conflicts(const struct access_list *list,
	int (*pair)(void *arg, const struct access *a, const struct access *b), void *arg);

/**
 * True if the connection alone makes @a, of an earlier step of the same queue, come before @b. A responder
 * executes the requests of one connection in order, except that a READ or an atomic may still be at work
 * when what follows is executed, unless both are atomics. (InfiniBand Architecture 1.3, volume 1, 10.8.3.3:
 * the table of work requests and what orders them. It orders an atomic and a READ more strictly than is used
 * here.)
 */
bool access_in_turn(const struct layout *l, const struct access *a, const struct access *b);

/** True if @a writes the opcode of step @s. */
bool access_writes_opcode(const struct layout *l, const struct access *a, unsigned s);

#endif
