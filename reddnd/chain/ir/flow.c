/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ir/layout.h"

#include <string.h>

static bool changes_region(const struct chain_step *st)
{
	const struct chain_verb_info *v = chain_verb_info(st->verb);

	if (v->remote && st->verb != CHAIN_READ && st->remote.kind == CHAIN_AT_REGION)
		return true;
	for (unsigned i = 0; v->scatters && i < CHAIN_MAX_SGE && st->local[i].kind != CHAIN_AT_NONE; i++)
		if (st->local[i].kind == CHAIN_AT_REGION)
			return true;
	return false;
}

/*
 * An instance that overlaps others: its head is in queue @q. It may run for a RECV that was flushed. And
 * where two queues enable a third, what one of them does for an instance may come after what the other does
 * for the next one. One queue does it in order, and when it does it for an instance, it has done all of it
 * for those before, whose patches are over by the proof of the order.
 */
static int check_overlap(struct layout *l, unsigned q)
{
	uint8_t by[CHAIN_MAX_QUEUES] = {0}; /* the queue that enables it, from 1 */

	if (l->d->loop)
		return layout_refuse(l, HEAD_LOOP, .name = l->d->queues[q].name);
	for (unsigned s = 0; s < l->d->nsteps; s++) {
		const struct chain_step *st = &l->d->steps[s];

		if (changes_region(st))
			return layout_refuse(
				l, HEAD_CHANGES, .at = layout_at(l, s), .name = l->d->queues[q].name);
		if (st->verb != CHAIN_SEND_EN)
			continue;
		if (by[st->target] && by[st->target] != st->queue + 1)
			return layout_refuse(l, HEAD_ENABLES, .at = layout_at(l, s),
				.name = l->d->queues[st->target].name);
		by[st->target] = (uint8_t)(st->queue + 1);
	}
	return 0;
}

/* All of an instance comes after the first step of the head, because nothing else is enabled before */
static int check_start(struct layout *l)
{
	unsigned q = 0, head = 0;

	while (q < l->d->nqueues && !l->head[q])
		q++;
	if (q == l->d->nqueues)
		return layout_refuse(l, NO_HEAD);
	for (unsigned other = q + 1; other < l->d->nqueues; other++)
		if (l->head[other])
			return layout_refuse(
				l, CODE_HEAD, .name = l->d->queues[other].name, .what = l->d->queues[q].name);
	while (!l->step[head].head)
		head++;
	if (l->d->steps[head].verb != CHAIN_WAIT || l->d->steps[head].until)
		return layout_refuse(l, HEAD_START, .at = layout_at(l, head));
	return q ? check_overlap(l, q) : 0;
}

static bool waits(const struct layout *l, const uint32_t enabled[], const bool done[], unsigned s)
{
	const struct layout_step *ls = &l->step[s];

	if (enabled[l->d->steps[s].queue] < (uint32_t)ls->at + ls->wqebbs)
		return true;
	return l->d->steps[s].verb == CHAIN_WAIT && ls->until != LAYOUT_NONE && !done[ls->until];
}

int layout_check_flow(struct layout *l)
{
	uint32_t enabled[CHAIN_MAX_QUEUES]; /* WQEBBs of this instance, beyond its end: the next head */
	bool done[CHAIN_MAX_STEPS] = {0}, moved = true;
	unsigned n = 0;

	if (check_start(l))
		return CHAIN_REFUSED;
	memcpy(enabled, l->head, sizeof(enabled));
	while (moved) {
		bool stuck[CHAIN_MAX_QUEUES] = {0};

		moved = false;
		for (unsigned s = 0; s < l->d->nsteps; s++) {
			const struct chain_step *st = &l->d->steps[s];

			if (done[s] || stuck[st->queue])
				continue;
			if (waits(l, enabled, done, s)) {
				stuck[st->queue] = true;
				continue;
			}
			if (st->verb == CHAIN_SEND_EN && enabled[st->target] >= l->step[s].enables)
				return layout_refuse(l, ENABLED_BEFORE, .at = layout_at(l, s),
					.name = l->d->queues[st->target].name);
			if (st->verb == CHAIN_SEND_EN)
				enabled[st->target] = l->step[s].enables;
			l->order[n++] = (uint16_t)s;
			done[s] = moved = true;
		}
	}
	for (unsigned s = 0; s < l->d->nsteps; s++) {
		const struct layout_step *ls = &l->step[s];

		if (done[s])
			continue;
		if (enabled[l->d->steps[s].queue] < (uint32_t)ls->at + ls->wqebbs)
			return layout_refuse(l, NEVER_ENABLED, .at = layout_at(l, s));
		return layout_refuse(
			l, WAITS_FOR_LATER, .at = layout_at(l, s), .other = layout_at(l, ls->until));
	}
	for (unsigned q = 0; q < l->d->nqueues; q++)
		if (enabled[q] != l->wqebbs[q] + l->head[q])
			return layout_refuse(l, NEXT_HEAD, .name = l->d->queues[q].name);
	return 0;
}
