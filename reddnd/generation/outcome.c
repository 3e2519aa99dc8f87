/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/generation/outcome.h"

#include "mlx5/wqe.h"

static bool is_message(const struct chain_step *st)
{
	if (st->verb == CHAIN_SEND)
		return true;
	return (st->verb == CHAIN_WRITE || st->verb == CHAIN_WRITE_IMM) && st->remote.kind == CHAIN_AT_SLOT;
}

static unsigned segments(const struct chain_step *st)
{
	unsigned n = 0;

	while (n < CHAIN_MAX_SGE && st->local[n].kind != CHAIN_AT_NONE)
		n++;
	return n;
}

/* The last step of the reply: in a program with several answers, the one for the case that no condition has
 * held */
static const struct chain_step *last_answer(const struct chain_desc *d)
{
	unsigned s = d->nsteps - 1;

	while (d->steps[s].queue)
		s--;
	return &d->steps[s];
}

/* A request is answered by one WRITE with an immediate or one SEND, of which the longest counts; the WRITEs
 * fill at most the slot */
static uint32_t longest_reply(const struct program *p)
{
	uint64_t sent = 0, bytes;

	for (unsigned s = 0; s < p->desc->nsteps; s++) {
		bytes = p->desc->steps[s].verb == CHAIN_SEND ? chain_step_most(&p->desc->steps[s]) : 0;
		sent = bytes > sent ? bytes : sent;
	}
	bytes = p->reply_max + sent;
	return bytes < 1 ? 1 : bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}

void outcome_plan(struct outcome_plan *plan, const struct program *p)
{
	const struct chain_image *img = p->image;
	const struct chain_step *last = last_answer(p->desc);

	*plan = (struct outcome_plan){.reply_wqebbs = img->queue[0].wqebbs,
		.wqes = program_wqes(p),
		.longest = longest_reply(p),
		.conditional = img->publish.there};
	for (uint32_t w = 0; w < img->queue[0].wqebbs; w++) {
		const struct chain_step *st;
		bool conditional;

		if (!img->queue[0].starts[w])
			continue;
		st = &p->desc->steps[program_step_at(p, 0, w)];
		if (!is_message(st) || plan->nmessages == OUTCOME_MAX_MESSAGES)
			continue;
		plan->messages[plan->nmessages].wqebb = w;
		plan->messages[plan->nmessages].sends = st->verb == CHAIN_SEND;
		plan->messages[plan->nmessages].nsge = (uint8_t)segments(st);
		conditional = st->flags & CHAIN_DORMANT && st != last;
		plan->messages[plan->nmessages].conditional = conditional;
		plan->conditional |= conditional;
		plan->nmessages++;
	}
}

struct outcome outcome_read(const struct outcome_plan *plan, const uint8_t *replies, unsigned slot)
{
	struct outcome o = {0};

	for (unsigned i = 0; i < plan->nmessages; i++) {
		size_t at = (size_t)slot * plan->reply_wqebbs + plan->messages[i].wqebb;
		const uint8_t *wqe = replies + at * CHAIN_WQEBB, *sge;

		if (wqe[WQE_OPCODE] == WQE_OP_NOP)
			continue;
		o.hit |= plan->messages[i].conditional;
		sge = wqe + (plan->messages[i].sends ? WQE_SEND_SGE : WQE_RDMA_SGE);
		for (unsigned g = 0; g < plan->messages[i].nsge; g++)
			o.bytes += wqe_get32(sge + g * WQE_DS + WQE_SGE_LEN);
	}
	return o;
}
