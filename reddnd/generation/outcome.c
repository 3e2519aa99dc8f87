/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/generation/outcome.h"

#include "mlx5/wqe.h"

static bool answers(const struct chain_step *st)
{
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

void outcome_plan(struct outcome_plan *plan, const struct program *p)
{
	const struct chain_image *img = p->image;
	const struct chain_step *last = last_answer(p->desc);

	*plan = (struct outcome_plan){.reply_wqebbs = img->queue[0].wqebbs,
		.wqes = program_wqes(p),
		.conditional = img->publish.there};
	for (uint32_t w = 0; w < img->queue[0].wqebbs; w++) {
		const struct chain_step *st;
		bool conditional;

		if (!img->queue[0].starts[w])
			continue;
		st = &p->desc->steps[program_step_at(p, 0, w)];
		if (!answers(st) || plan->nwrites == OUTCOME_MAX_WRITES)
			continue;
		plan->writes[plan->nwrites].wqebb = w;
		plan->writes[plan->nwrites].nsge = (uint8_t)segments(st);
		conditional = st->flags & CHAIN_DORMANT && st != last;
		plan->writes[plan->nwrites].conditional = conditional;
		plan->conditional |= conditional;
		plan->nwrites++;
	}
}

struct outcome outcome_read(const struct outcome_plan *plan, const uint8_t *replies, unsigned slot)
{
	struct outcome o = {0};

	for (unsigned i = 0; i < plan->nwrites; i++) {
		size_t at = (size_t)slot * plan->reply_wqebbs + plan->writes[i].wqebb;
		const uint8_t *wqe = replies + at * CHAIN_WQEBB;

		if (wqe[WQE_OPCODE] == WQE_OP_NOP)
			continue;
		o.hit |= plan->writes[i].conditional;
		for (unsigned g = 0; g < plan->writes[i].nsge; g++)
			o.bytes += wqe_get32(wqe + WQE_RDMA_SGE + g * WQE_DS + WQE_SGE_LEN);
	}
	return o;
}
