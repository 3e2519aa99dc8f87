/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/executor/receive.h"

#include "reddnd/executor/trace-step.h"

enum { ADDRESS = sizeof(uint64_t), NOWHERE = UINT32_MAX };

/* By fours that may overlap, or else by ones */
void receive_add(struct receive *r, uint8_t *to, uint32_t at, uint32_t len, bool fours)
{
	const uint32_t bytes = fours ? RECEIVE_FOUR : 1;

	if ((len >= RECEIVE_FOUR) != fours)
		return;
	for (uint32_t i = 0; i < len; i += bytes) {
		uint32_t off = i + bytes <= len ? i : len - bytes;

		r->moves[r->nmoves++] = (struct receive_move){to + off, at + off};
	}
	r->nfours = fours ? r->nmoves : r->nfours;
}

/* What fills in an address: the request, or a READ of few bytes */
struct origin {
	const struct receive *request;
	const struct op *read;
};

static bool is_in(const uint8_t *p, const uint8_t *from, uint32_t len)
{
	return p >= from && p < from + len;
}

/* Which byte of that comes to @to */
static uint32_t source(const struct origin *o, const uint8_t *to)
{
	const struct receive *r = o->request;
	uint32_t at = 0;

	for (unsigned i = 0; r && i < r->nmoves; i++)
		if (is_in(to, r->moves[i].to, i < r->nfours ? RECEIVE_FOUR : 1))
			return r->moves[i].at + (uint32_t)(to - r->moves[i].to);
	for (unsigned i = 0; o->read && i < o->read->nsegments; at += o->read->segment[i++].len)
		if (is_in(to, o->read->segment[i].mem, o->read->segment[i].len))
			return at + (uint32_t)(to - o->read->segment[i].mem);
	return NOWHERE;
}

/* The place of @t; .mask 0: the end of its address is not from @o, or something else changes some of it, or
 * there are no eight bytes that end with it */
static struct receive_place find_place(
	const struct origin *o, const struct trace_step *t, const struct op_state *s)
{
	const struct receive_place none = {.mask = 0};
	struct receive_place place = {.mem = t->mem, .last = t->last};
	uint8_t address[ADDRESS];
	uint32_t end = 0;

	memcpy(address, t->address, sizeof(address));
	for (unsigned i = 0; i < ADDRESS; i++) {
		uint32_t at = source(o, t->address + i);

		if (at == NOWHERE ? place.mask || op_is_written(s, t->address + i, 1)
				  : place.mask && at != end)
			return none;
		if (at == NOWHERE)
			continue;
		end = at + 1;
		place.mask = place.mask << 8 | 0xff;
		address[i] = 0;
	}
	if (end < ADDRESS)
		return none;
	place.at = end - ADDRESS;
	place.first = wqe_get64(address) - t->first;
	return place;
}

static bool does(const struct trace_step *t, trace_run *run)
{
	return t->run == run || (t->run == trace_step_if && t->then == run);
}

void receive_find_reads(struct receive *r, const struct trace *t, const struct op_state *s)
{
	const struct origin request = {.request = r};

	r->nreads = 0;
	for (unsigned i = 0; i < t->nsteps && r->nreads < EXECUTOR_READS; i++) {
		const struct trace_step *step = &t->step[i];
		const struct origin read = {.read = step->op};
		struct receive_read *to = &r->reads[r->nreads];

		if (step->run != trace_step_found_words)
			continue;
		*to = (struct receive_read){.place = find_place(&request, step, s)};
		if (!to->place.mask)
			continue;
		r->nreads++;
		for (unsigned k = i + 1; k < t->nsteps && !to->then.mask; k++)
			if (does(&t->step[k], trace_step_found_send))
				to->then = find_place(&read, &t->step[k], s);
	}
}
