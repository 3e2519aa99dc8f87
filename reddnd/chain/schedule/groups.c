/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/schedule/groups.h"

#include "reddnd/chain/ir/layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct groups {
	struct layout l;
	bool last[CHAIN_MAX_STEPS];                              /* of a run */
	uint8_t before[CHAIN_MAX_STEPS], after[CHAIN_MAX_STEPS]; /* WQEBBs of NOPs there */
	struct chain_step steps[CHAIN_MAX_STEPS];
	unsigned nsteps;
};

static void free_groups(struct groups **g)
{
	free(*g);
}

/* A run ends with the head, with what a SEND_EN names, and with the queue */
static void find_runs(struct groups *g)
{
	const struct layout *l = &g->l;
	unsigned end[CHAIN_MAX_QUEUES];

	for (unsigned s = 0; s < l->d->nsteps; s++) {
		unsigned q = l->d->steps[s].queue;

		end[q] = s;
		if (l->step[s].head && l->step[s].at + l->step[s].wqebbs == l->head[q])
			g->last[s] = true;
		for (unsigned e = 0; e < l->d->nsteps; e++)
			if (l->d->steps[e].verb == CHAIN_SEND_EN && l->d->steps[e].target == q &&
				l->step[e].enables == (uint32_t)l->step[s].at + l->step[s].wqebbs)
				g->last[s] = true;
	}
	for (unsigned q = 0; q < l->d->nqueues; q++)
		g->last[end[q]] = true;
}

static void measure_runs(struct groups *g)
{
	const struct layout *l = &g->l;
	unsigned first[CHAIN_MAX_QUEUES], len[CHAIN_MAX_QUEUES] = {0};

	for (unsigned s = 0; s < l->d->nsteps; s++) {
		unsigned q = l->d->steps[s].queue, pad;

		if (!len[q])
			first[q] = s;
		len[q] += l->step[s].wqebbs;
		if (!g->last[s])
			continue;
		pad = -len[q] & (l->d->fetch_group - 1u);
		*(l->step[s].head ? &g->after[s] : &g->before[first[q]]) = (uint8_t)pad;
		len[q] = 0;
	}
}

static unsigned put(struct groups *g, const struct chain_step *st)
{
	if (g->nsteps < CHAIN_MAX_STEPS)
		g->steps[g->nsteps] = *st;
	return g->nsteps++;
}

/* Returns how many NOPs these WQEBBs take */
static unsigned put_nops(struct groups *g, const struct chain_step *of, unsigned wqebbs)
{
	struct chain_step nop = {.queue = of->queue,
		.verb = CHAIN_NOP,
		.line = of->line,
		.why = "the device fetches groups of WQEs, and one that is enabled later must not be in "
		       "theirs"};
	unsigned n = 0;

	for (; wqebbs; wqebbs -= nop.pad, n++) {
		nop.pad = (uint8_t)(wqebbs < CHAIN_PAD_WQEBBS ? wqebbs : CHAIN_PAD_WQEBBS);
		put(g, &nop);
	}
	return n;
}

int chain_fill_groups(struct chain_desc *d, struct chain_step *steps, struct chain_queue_desc *queues,
	struct chain_error *err)
{
	__attribute__((cleanup(free_groups))) struct groups *g = calloc(1, sizeof(*g));

	if (!g)
		return -ENOMEM;
	g->l.err = err;
	if (layout_make(&g->l, d))
		return CHAIN_REFUSED;
	find_runs(g);
	measure_runs(g);
	for (unsigned s = 0; s < d->nsteps; s++) {
		put_nops(g, &steps[s], g->before[s]);
		put(g, &steps[s]);
		queues[steps[s].queue].head += (uint8_t)put_nops(g, &steps[s], g->after[s]);
	}
	if (g->nsteps > CHAIN_MAX_STEPS)
		return CHAIN_REFUSE(err, GROUPS, .number = {d->nsteps, d->fetch_group, CHAIN_MAX_STEPS});
	memcpy(steps, g->steps, g->nsteps * sizeof(*steps));
	d->nsteps = g->nsteps;
	return 0;
}
