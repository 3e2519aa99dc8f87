/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * receive.h - where the bytes of a request go, as a RECV scatters them, and what in the regions they alone
 * decide to read. Private to the executor.
 */
#ifndef EXECUTOR_RECEIVE_H
#define EXECUTOR_RECEIVE_H

#include "reddnd/executor/trace.h"

enum { RECEIVE_FOUR = 4 };

struct receive_move {
	uint8_t *to;
	uint32_t at; /* in the request */
};

/** A place in a region whose address ends with bytes from elsewhere, and is constant before them. */
struct receive_place {
	const uint8_t *mem; /* of the region */
	uint64_t first;     /* its offset if these bytes are zero */
	uint64_t last;      /* the last offset that is right */
	uint64_t mask;      /* of these bytes; 0: there is no such place */
	uint32_t at;        /* where they come from: of the eight that end with them */
};

/** A READ of a place that the request has, and the place of a message that has its address from what is read.
 */
struct receive_read {
	struct receive_place place, then;
};

struct receive {
	struct receive_move moves[CHAIN_MAX_ARG]; /* first four bytes each, then one each */
	unsigned nfours, nmoves;
	struct receive_read reads[EXECUTOR_READS];
	unsigned nreads;
};

/** @len bytes, from @at of the request to @to. No place of a request overlaps another. First all calls with
 * @fours, then all without. */
void receive_add(struct receive *r, uint8_t *to, uint32_t at, uint32_t len, bool fours);
/** Finds the READs of a trace that was just made; the WQEs are as in the image. */
void receive_find_reads(struct receive *r, const struct trace *t, const struct op_state *s);
/** NULL: it is not in the region. @from: the request, or what is read. */
static inline const uint8_t *receive_locate(const struct receive_place *p, const uint8_t *from)
{
	const uint64_t offset = p->first + (wqe_get64(from + p->at) & p->mask);

	return offset <= p->last ? p->mem + offset : NULL;
}

static inline void receive_scatter(const struct receive *r, const uint8_t *request)
{
	const struct receive_move *m = r->moves, *fours = m + r->nfours, *end = m + r->nmoves;

	for (; m < fours; m++)
		memcpy(m->to, request + m->at, RECEIVE_FOUR);
	for (; m < end; m++)
		*m->to = request[m->at];
}

#endif
