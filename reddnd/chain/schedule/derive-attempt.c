/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/schedule/derive-internal.h"

struct chain_step *attempt_put(struct attempt *a, const struct chain_step *st)
{
	struct queue_state *q = &a->q[st->queue];

	if (a->used == CHAIN_MAX_STEPS) {
		a->full = true;
		a->used--;
	}
	a->out->order.steps[a->used] = *st;
	q->last = a->used;
	q->nsteps++;
	return &a->out->order.steps[a->used++];
}

/* The last of the steps before @s that @q needs at @s or later, of the queue that step @i is in */
static unsigned worth_waiting_for(const struct attempt *a, unsigned q, unsigned s, unsigned i)
{
	const struct text *t = a->t;
	unsigned best = i;

	for (unsigned k = s; k < t->d.nsteps; k++) {
		struct set need = t->data[k];
		unsigned last;

		if (t->steps[k].queue != q)
			continue;
		if (t->steps[i].queue == q) /* a fence will do */
			need = set_minus(&need, &t->scatterers);
		set_join(&need, &t->fetch[k]);
		need = set_and(&need, &t->of_queue[t->steps[i].queue]);
		need = set_below(&need, s);
		last = set_last(&need);
		if (last != NONE && last > best)
			best = last;
	}
	return best;
}

void attempt_hear(struct attempt *a, unsigned q, unsigned i)
{
	struct set before = set_below(&a->t->of_queue[a->t->steps[i].queue], i + 1);

	set_join(&a->q[q].known, &a->at_start[i]);
	set_join(&a->q[q].known, &before);
}

/* The step whose CQE leaves the least of @unknown so, and among such the last */
static unsigned next_to_wait_for(const struct attempt *a, unsigned q, unsigned s, const struct set *unknown)
{
	unsigned best = NONE, least = 0;

	for (unsigned of = 0; of < a->t->d.nqueues; of++) {
		struct set some = set_and(unknown, &a->t->of_queue[of]), left;
		unsigned i = set_last(&some), n;

		if (i == NONE)
			continue;
		i = worth_waiting_for(a, q, s, i);
		left = set_minus(unknown, &a->at_start[i]);
		some = set_below(&a->t->of_queue[of], i + 1);
		left = set_minus(&left, &some);
		n = set_size(&left);
		if (best == NONE || n < least || (n == least && i > best)) {
			best = i;
			least = n;
		}
	}
	return best;
}

void attempt_learn(struct attempt *a, unsigned q, const struct set *need, unsigned s)
{
	struct set waits = {0};
	unsigned i;

	for (;;) {
		struct set unknown = set_minus(need, &a->q[q].known);

		i = next_to_wait_for(a, q, s, &unknown);
		if (i == NONE)
			break;
		set_add(&waits, i);
		attempt_hear(a, q, i);
	}
	for (i = 0; i < a->t->d.nsteps; i++) {
		struct chain_step *st;

		if (!set_has(&waits, i))
			continue;
		a->out->order.steps[a->at[i]].flags |= CHAIN_SIGNALLED;
		st = attempt_put(a, &(struct chain_step){.queue = (uint8_t)q,
					    .verb = CHAIN_WAIT,
					    .until = ordered_label(&a->out->order, a->at[i]),
					    .line = a->t->steps[s].line});
		ordered_explain(&a->out->order, st, "\"%s\" needs what \"%s\" does",
			ordered_name(&a->t->steps[s]), ordered_name(&a->t->steps[i]));
	}
}

struct chain_step *attempt_enable(struct attempt *a, const struct chain_step *en)
{
	struct queue_state *qs = &a->q[en->target];
	struct chain_step *st = attempt_put(a, en);
	uint16_t i = (uint16_t)(st - a->out->order.steps);

	if (qs->covers != NONE && en->target != 0 && qs->last != NONE) {
		a->out->order.steps[qs->covers].upto = CHAIN_UPTO_STEP;
		a->out->order.steps[qs->covers].through =
			ordered_label(&a->out->order, en->queue == en->target ? i : qs->last);
	}
	qs->covers = i;
	set_join(&qs->known, &a->q[en->queue].known);
	return st;
}

struct chain_step *attempt_enable_for(
	struct attempt *a, unsigned in, unsigned q, unsigned line, uint8_t flags)
{
	return attempt_enable(a, &(struct chain_step){.queue = (uint8_t)in,
					 .verb = CHAIN_SEND_EN,
					 .flags = flags,
					 .target = (uint8_t)q,
					 .line = line});
}

uint8_t attempt_settle(struct attempt *a, unsigned in, const struct set *need, unsigned s)
{
	struct queue_state *qs = &a->q[in];
	struct set fenced = {0}, rest;

	if (a->way.fenced && qs->scatterer != NONE) {
		fenced = set_and(&a->t->of_queue[in], &a->t->scatterers);
		fenced = set_below(&fenced, qs->scatterer + 1u);
	}
	rest = set_minus(need, &fenced);
	attempt_learn(a, in, &rest, s);
	rest = set_minus(need, &qs->known);
	if (set_last(&rest) == NONE)
		return 0;
	set_join(&qs->known, &fenced);
	return CHAIN_FENCE;
}
