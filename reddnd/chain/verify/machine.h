/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * machine.h - private to the bounds proof: the abstract machine that executes a description, on all values
 * that each byte of an instance can have. docs/design/bounds-proof.md gives the reasons.
 */
#ifndef CHAIN_VERIFY_MACHINE_H
#define CHAIN_VERIFY_MACHINE_H

#include "reddnd/chain/ir/layout.h"

/** Where a value can come from. */
enum origin { PROGRAM, REGION, CLIENT, ORIGINS };

/** How a client can influence a value that is not its own. */
enum influence {
	PICKED = 1,  /* it comes from a place that the client chose */
	DECIDED = 2, /* it is there because of what the client sent, or because it did not send something else
		      */
};

enum {
	OPERAND_BYTES = 8,
	ADDR_BYTES = 8,
	LEN_BYTES = 4,
	LOCATED_BYTES = 3, /* of a length in a locator, in front */
	NOBODY = 0xfffe,
	BEYOND = 0xfffd, /* what shares memory with this: the loop, or who calls it */
};

/** What a byte can be. */
struct cell {
	uint64_t values[256 / 64];
	uint64_t
		ours[256 / 64]; /* those of them that are the program's alone: no region has a part in them */
	uint64_t live[256 / 64]; /* those of `ours` that no certain store has replaced since */
	uint64_t met[256 / 64];  /* of a length: what was live when its step was executed */
	uint64_t head[256 / 64]; /* what `live` was when the iteration began */
	uint8_t owner;     /* queue + 1 of that store: if it has failed, others may see the rest of `ours` */
	uint8_t from;      /* bits of enum origin */
	uint8_t influence; /* bits of enum influence */
	uint32_t longest;  /* bytes of what is published, of whose length it may be one; 0: of none */
	uint8_t digits;    /* which one of them, by bits */
	bool written;      /* by a step or the request */
	bool unvouched;    /* a region has a part in it, but its writer does not vouch for it */
	bool apart;        /* it and the next byte may come from different stores */
	bool in_bucket;    /* a length for the WQE that it is in, and a client's for all others */
	bool replaced;     /* for certain: the value of the description is not used */
	uint64_t failed[256 /
			64]; /* and what else if a CAS of queue `settled` - 1 failed; that queue stops then */
	uint8_t settled;
	uint16_t by[ORIGINS]; /* the first step that brought it from there; LAYOUT_NONE: the request */
};

struct machine {
	struct layout l;
	struct cell *queue[CHAIN_MAX_QUEUES], *scratch;
	struct cell of_region, of_client;
	struct cell of_length[LEN_BYTES]; /* the bytes of the request, counted: as many as the client sent */
	struct cell *shared;              /* what a loop and its caller share; not ours alone */
	uint32_t nshared;
	struct chain_stored stored[CHAIN_MAX_WINDOWS]; /* in regions */
	unsigned runs;
	bool decided; /* that anything runs at all, from here on: a WAIT or SEND_EN depends on the client */
	bool in_loop; /* the steps are those of an iteration, which follows itself */
	unsigned s;   /* step at work */
};

/** Lays @d out; what is shared, and what is stored, stay as they have become, as does the number of runs. 0,
 * CHAIN_REFUSED, -ENOMEM. */
int machine_begin(struct machine *m, const struct chain_desc *d);
/** Makes what @d and its loop share. 0 or -ENOMEM. */
int machine_share(struct machine *m, const struct chain_desc *d);
void machine_free(struct machine *m); /* and what is shared */

/** The request, and every step once. */
void machine_run(struct machine *m);
/** The same until nothing becomes possible that was not before; false if that takes too long. */
bool machine_iterate(struct machine *m);
/** A number that changes when anything becomes possible outside of the instance. */
uint64_t machine_outside(const struct machine *m);

/** The cells of the WQE of step @s. */
struct cell *machine_wqe(struct machine *m, unsigned s);

bool cell_is_only(const struct cell *c, uint8_t v);
bool cell_can_be(const struct cell *c, uint8_t v);
/** What @n bytes are at most, where a region has a part in one as little as can be. */
uint64_t cells_most(const struct cell *c, unsigned n);
/** What a length of the program alone is at least when its step is executed; UINT64_MAX if a region always
 * has a part in it. */
uint64_t cells_least(const struct cell *len);
/** What a length is at most that a publish has left, as far as it may be one; 0: it cannot. */
uint32_t cells_longest(const struct cell *len);
/** True if a length is the program's, or a region's writer vouches for it. */
bool cells_vouched(const struct cell *len);
/** True if a client chose or influenced one of @n bytes. */
bool cells_of_client(const struct cell *c, unsigned n);
/** The first of @n bytes that is written; NULL if none is. */
const struct cell *cells_written(const struct cell *c, unsigned n);
/** The first of them that can come from @from. */
const struct cell *cells_written_from(const struct cell *c, unsigned n, enum origin from);

#endif
