/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/schedule/derive-internal.h"

#include "reddnd/chain/ir/access.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

bool text_is_request_wait(const struct text *t, unsigned s)
{
	return t->steps[s].verb == CHAIN_WAIT && !t->steps[s].until;
}

static int pair(void *arg, const struct access *a, const struct access *b)
{
	struct text *t = arg;
	unsigned before = a->when == ACCESS_REQUEST ? (unsigned)REQUEST : a->step;

	if (before == REQUEST) {
		set_add(b->when == ACCESS_FETCH ? &t->fetch[b->step] : &t->data[b->step], REQUEST);
		return 0;
	}
	if (b->when == ACCESS_FETCH) {
		set_add(&t->fetch[b->step], before);
		if (access_writes_opcode(&t->l, a, b->step))
			set_add(&t->wakes[before], b->step);
	} else if (t->steps[before].queue == t->steps[b->step].queue) {
		if (a->when != ACCESS_FETCH && !access_in_turn(&t->l, a, b))
			set_add(&t->data[b->step], before);
	} else {
		set_add(&t->data[b->step], before);
	}
	if (t->steps[before].queue == 0 && t->steps[b->step].queue != 0)
		return layout_refuse(&t->l, AFTER_REPLY, .at = layout_at(&t->l, b->step),
			.other = layout_at(&t->l, before));
	return 0;
}

static void link_steps(struct text *t)
{
	for (unsigned q = 0; q < CHAIN_MAX_QUEUES; q++)
		t->first[q] = t->last[q] = NONE;
	for (unsigned s = 0; s < t->d.nsteps; s++) {
		unsigned q = t->steps[s].queue;

		set_add(&t->of_queue[q], s);
		if (chain_verb_info(t->steps[s].verb)->scatters)
			set_add(&t->scatterers, s);
		if (t->last[q] == NONE)
			t->first[q] = (uint16_t)s;
		else
			t->next[t->last[q]] = (uint16_t)s;
		t->next[s] = t->by_hand[s] = NONE;
		t->last[q] = (uint16_t)s;
	}
}

/*
 * The author's SEND_ENs. Each enables what follows it in the target queue up to the step it names; of the
 * reply, which nothing else starts, also what stands before it.
 */
static void link_enables(struct text *t)
{
	for (unsigned e = 0; e < t->d.nsteps; e++) {
		const struct chain_step *st = &t->steps[e];
		uint32_t end;

		if (st->verb != CHAIN_SEND_EN)
			continue;
		end = t->l.step[e].enables;
		for (unsigned s = st->target ? e + 1 : 0; s < t->d.nsteps; s++)
			if (t->steps[s].queue == st->target && t->l.step[s].at < end && t->by_hand[s] == NONE)
				t->by_hand[s] = (uint16_t)e;
	}
}

/* Unless the author enables the reply */
static void find_early(struct text *t)
{
	for (unsigned s = 0; s < t->d.nsteps; s++)
		if (t->d.nqueues > 2 || (t->steps[s].verb == CHAIN_SEND_EN && t->steps[s].target == 0))
			return;
	for (unsigned s = t->first[0]; s != t->last[0]; s = t->next[s]) {
		t->early[s] = t->steps[s].flags & CHAIN_AHEAD;
		t->any_early |= t->early[s];
	}
}

/* A dormant end of the reply is woken by other queues, whose steps that do so may themselves be woken */
static void find_ends(struct text *t)
{
	struct set ends = {0};
	bool more = t->steps[t->last[0]].flags & CHAIN_DORMANT;

	set_add(&ends, t->last[0]);
	while (more) {
		more = false;
		for (unsigned s = 0; s < t->d.nsteps; s++) {
			struct set wakes = set_and(&t->wakes[s], &ends);

			if (t->wakes_end[s] || set_last(&wakes) == NONE)
				continue;
			t->wakes_end[s] = more = true;
			if (t->steps[s].flags & CHAIN_DORMANT)
				set_add(&ends, s);
		}
	}
}

/* Copies the input without what is derived, and with something in the only code queue */
static int copy_input(struct text *t, const struct chain_desc *d)
{
	bool any[CHAIN_MAX_QUEUES] = {0};
	unsigned n = 0;

	t->d = *d;
	t->d.steps = t->steps;
	t->d.queues = t->queues;
	t->l.err = t->err;
	t->l.d = d;
	if (d->nqueues == 0 || d->nqueues > CHAIN_MAX_QUEUES)
		return layout_refuse(&t->l, QUEUES, .number = {d->nqueues, CHAIN_MAX_QUEUES});
	for (unsigned q = 0; q < d->nqueues; q++)
		t->queues[q] = (struct chain_queue_desc){.name = d->queues[q].name};
	if (d->nqueues == 1)
		t->queues[t->d.nqueues++] = (struct chain_queue_desc){.name = "start"};
	for (unsigned s = 0; s < d->nsteps; s++)
		if (d->steps[s].queue < t->d.nqueues)
			any[d->steps[s].queue] = true;
	if (t->d.nqueues == 2 && !any[1])
		t->steps[n++] = (struct chain_step){
			.queue = 1, .verb = CHAIN_WAIT, .why = "every request starts the reply"};
	t->d.nsteps = n + d->nsteps;
	if (t->d.nsteps > CHAIN_MAX_STEPS)
		return layout_refuse(&t->l, STEPS, .number = {t->d.nsteps, CHAIN_MAX_STEPS});
	memcpy(t->steps + n, d->steps, d->nsteps * sizeof(*d->steps));
	for (unsigned s = 0; s < t->d.nsteps; s++)
		if (t->steps[s].queue != 0 && !(t->steps[s].flags & CHAIN_CALL))
			t->steps[s].flags &= (uint8_t)~CHAIN_SIGNALLED;
	/* what the author waits for */
	for (unsigned w = 0; w < t->d.nsteps; w++) {
		unsigned s = t->steps[w].until ? chain_step_named(&t->d, t->steps[w].until) : t->d.nsteps;

		if (s < t->d.nsteps)
			t->steps[s].flags |= CHAIN_SIGNALLED;
	}
	return 0;
}

static void free_accesses(struct access_list *list)
{
	access_free(list);
}

int text_read(struct text *t, const struct chain_desc *d)
{
	__attribute__((cleanup(free_accesses))) struct access_list list = {0};
	int r = copy_input(t, d);

	if (!r)
		r = layout_make(&t->l, &t->d);
	if (!r)
		r = access_collect(&t->l, &list);
	if (r)
		return r;
	link_steps(t);
	assert(t->last[0] != NONE && "layout_make() refuses a queue without steps");
	t->steps[t->last[0]].flags |= CHAIN_SIGNALLED;
	link_enables(t);
	r = access_conflicts(&list, pair, t);
	if (r)
		return r;
	find_ends(t);
	find_early(t);
	return 0;
}

unsigned text_run_end(const struct text *t, unsigned s, unsigned at)
{
	for (; s != NONE; s = t->next[s]) {
		struct set early = set_below(&t->fetch[s], at), late = set_minus(&t->fetch[s], &early);

		if (set_last(&late) != NONE || t->by_hand[s] != NONE)
			break;
	}
	return s;
}

struct set text_run_needs(const struct text *t, unsigned s, unsigned end)
{
	struct set need = {0};

	for (; s != end; s = t->next[s])
		set_join(&need, &t->fetch[s]);
	return need;
}

bool text_starts_with_request(const struct text *t, unsigned s)
{
	struct set need = text_run_needs(t, s, text_run_end(t, s, s));

	set_join(&need, &t->data[s]);
	return t->by_hand[s] == NONE && set_last(&need) == NONE;
}
