/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ir/layout.h"

#include <string.h>

/* An instance in the abstract: how far each queue is enabled and how many of its steps have run */
struct run {
	uint32_t enabled[CHAIN_MAX_QUEUES]; /* WQEBBs of this instance, beyond its end: the next head */
	bool done[CHAIN_MAX_STEPS];
};

static bool waits(const struct layout *l, const struct run *run, unsigned s)
{
	const struct layout_step *ls = &l->step[s];

	if (run->enabled[l->d->steps[s].queue] < (uint32_t)ls->at + ls->wqebbs)
		return true;
	return l->d->steps[s].verb == CHAIN_WAIT && ls->until != LAYOUT_NONE && !run->done[ls->until];
}

/* Runs what can run of queue @q. 1: something did, 0: nothing, -1: refused */
static int advance(struct layout *l, struct run *run, unsigned q)
{
	int moved = 0;

	for (unsigned s = 0; s < l->d->nsteps; s++) {
		const struct chain_step *st = &l->d->steps[s];

		if (st->queue != q || run->done[s])
			continue;
		if (waits(l, run, s))
			break;
		if (st->verb == CHAIN_SEND_EN) {
			if (run->enabled[st->target] >= l->step[s].enables) {
				layout_refuse(l, ENABLED_BEFORE, .at = layout_at(l, s),
					.name = l->d->queues[st->target].name);
				return -1;
			}
			run->enabled[st->target] = l->step[s].enables;
		}
		run->done[s] = true;
		moved = 1;
	}
	return moved;
}

/* All of an instance comes after the first step of the head, because nothing else is enabled before */
static int check_start(struct layout *l)
{
	for (unsigned s = 0; s < l->d->nsteps; s++) {
		const struct chain_step *st = &l->d->steps[s];

		if (!l->step[s].head)
			continue;
		return st->verb == CHAIN_WAIT && !st->until
			       ? 0
			       : layout_refuse(l, HEAD_START, .at = layout_at(l, s));
	}
	return layout_refuse(l, NO_HEAD);
}

int layout_check_flow(struct layout *l)
{
	struct run run = {0};
	int moved;

	if (check_start(l))
		return CHAIN_REFUSED;
	memcpy(run.enabled, l->head, sizeof(run.enabled));
	do {
		moved = 0;
		for (unsigned q = 0; q < l->d->nqueues && moved >= 0; q++) {
			int r = advance(l, &run, q);

			moved = r < 0 ? r : moved | r;
		}
	} while (moved > 0);
	if (moved < 0)
		return CHAIN_REFUSED;
	for (unsigned s = 0; s < l->d->nsteps; s++) {
		const struct layout_step *ls = &l->step[s];
		unsigned q = l->d->steps[s].queue;

		if (run.done[s])
			continue;
		if (run.enabled[q] < (uint32_t)ls->at + ls->wqebbs)
			return layout_refuse(l, NEVER_ENABLED, .at = layout_at(l, s));
		return layout_refuse(
			l, WAITS_FOR_LATER, .at = layout_at(l, s), .other = layout_at(l, ls->until));
	}
	for (unsigned q = 0; q < l->d->nqueues; q++)
		if (run.enabled[q] != l->wqebbs[q] + l->head[q])
			return layout_refuse(l, NEXT_HEAD, .name = l->d->queues[q].name);
	return 0;
}
