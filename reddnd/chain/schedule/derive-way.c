/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/schedule/derive-internal.h"

#include "reddnd/chain/verify/order.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Puts the step @s of the text where the output ends */
static void copy_step(struct attempt *a, unsigned s, const struct chain_step *st)
{
	struct queue_state *qs = &a->q[st->queue];

	a->at_start[s] = qs->known;
	if (st->verb == CHAIN_SEND_EN)
		attempt_enable(a, st);
	else
		attempt_put(a, st);
	a->at[s] = qs->last;
	if (set_has(&a->t->scatterers, s)) {
		qs->scatterer = (uint16_t)s;
		if (!(st->flags & CHAIN_DORMANT))
			qs->certain = (uint16_t)s;
	}
	if (!chain_verb_info(st->verb)->data) /* over when the next starts */
		set_add(&qs->known, s);
	if (text_is_request_wait(a->t, s))
		set_add(&qs->known, REQUEST);
}

/* The head lets queue @q begin */
static void start_by_request(struct attempt *a, unsigned q)
{
	struct text *t = a->t;
	struct queue_state *qs = &a->q[q];
	unsigned s = t->first[q], next = t->next[s];
	struct chain_step *st;

	/* a WAIT by hand stays where it is all that may be fetched now */
	if (text_is_request_wait(t, s) && (next == NONE || text_run_end(t, next, 0) != next)) {
		qs->skipped = (uint16_t)s;
		for (unsigned k = 0; k < t->d.nqueues; k++)
			set_add(&a->q[k].known, s);
		s = next;
	}
	st = attempt_enable_for(a, a->head, q, t->steps[t->first[q]].line, 0);
	ordered_explain(&a->out->order, st,
		"the request has filled in its places in queue \"%s\", which may be fetched now",
		t->queues[q].name);
	qs->started = true;
	qs->enabled = (uint16_t)text_run_end(t, s, 0);
}

/*
 * The head: it waits for the request, and starts the queues that need nothing else. It stands in the queue of
 * the client, because that one fails together with the RECVs: the CQE of a flushed RECV ends a WAIT as well,
 * but a queue that has failed executes nothing. If instances may overlap, it stands in the first queue of
 * code that starts so, where the next request does not wait for the reply.
 */
static void put_head(struct attempt *a)
{
	struct text *t = a->t;
	struct chain_step *st;

	for (unsigned q = t->d.nqueues; q-- > 1 && a->way.overlap;)
		if (t->first[q] != NONE && text_starts_with_request(t, t->first[q]))
			a->head = q;
	st = attempt_put(a, &(struct chain_step){.queue = (uint8_t)a->head, .verb = CHAIN_WAIT});
	ordered_explain(&a->out->order, st, "a request starts the chain");
	for (unsigned q = 0; q < t->d.nqueues; q++)
		set_add(&a->q[q].known, REQUEST);
	if (a->head)
		start_by_request(a, a->head);
	for (unsigned q = 1; q < t->d.nqueues; q++)
		if (!a->q[q].started && t->first[q] != NONE && text_starts_with_request(t, t->first[q]))
			start_by_request(a, q);
	a->out->queues[a->head].head = (uint8_t)a->q[a->head].nsteps;
}

/* Step @s is the first of its queue, and the head did not start that */
static void start(struct attempt *a, unsigned s)
{
	struct text *t = a->t;
	unsigned q = t->steps[s].queue, end = text_run_end(t, s, s), by;
	struct set need = text_run_needs(t, s, end);
	uint8_t flags;

	a->q[q].started = true;
	set_join(&need, &t->data[s]);
	/* a queue that begins when all of what it needs is over cannot miss the failures of others */
	for (unsigned k = s; k != NONE && a->way.cautious; k = t->next[k]) {
		struct set before = set_below(&t->data[k], s);

		set_join(&need, &before);
	}
	by = set_last(&need);
	assert(by != NONE && "else it starts with the request, or by hand");
	by = t->steps[by].queue;
	flags = attempt_settle(a, by, &need, s);
	ordered_explain(&a->out->order, attempt_enable_for(a, by, q, t->steps[s].line, flags),
		"queue \"%s\" begins with \"%s\", whose needs are met", t->queues[q].name,
		ordered_name(&a->t->steps[s]));
	a->q[q].enabled = (uint16_t)end;
}

/* Step @s is the first of its queue that could not be enabled before */
static void go_on(struct attempt *a, unsigned s)
{
	struct text *t = a->t;
	unsigned q = t->steps[s].queue, end = text_run_end(t, s, s);
	struct set need = text_run_needs(t, s, end);
	uint8_t flags = attempt_settle(a, q, &need, s);

	ordered_explain(&a->out->order, attempt_enable_for(a, q, q, t->steps[s].line, flags),
		"\"%s\" is patched and must not be fetched before", ordered_name(&a->t->steps[s]));
	a->q[q].enabled = (uint16_t)end;
}

/* The author's SEND_EN, step @s, waits for what it enables, and for what the reply answers with. The flags it
 * takes */
static uint8_t prepare_enable(struct attempt *a, unsigned s)
{
	struct text *t = a->t;
	unsigned q = t->steps[s].target, after = NONE;
	struct set need = {0};
	uint8_t flags;

	for (unsigned k = q ? s + 1 : t->first[0]; k < t->d.nsteps; k++) {
		if (t->steps[k].queue != q)
			continue;
		if (t->by_hand[k] == s) {
			set_join(&need, &t->fetch[k]);
			if (!q)
				set_join(&need, &t->data[k]);
		} else if (after == NONE && (t->by_hand[k] == NONE || t->by_hand[k] > s)) {
			after = k;
		}
	}
	need = set_below(
		&need, s); /* it cannot wait for what comes later: the proof of the order refuses that */
	flags = attempt_settle(a, t->steps[s].queue, &need, s);
	a->q[q].started = true;
	a->q[q].enabled = (uint16_t)after;
	return flags;
}

/* Makes what step @s needs be there when it starts: by a fence if that is enough. A fence waits for no WRITE,
 * but the responder has executed those that come before a READ or an atomic which has landed */
static void satisfy(struct attempt *a, unsigned s, struct chain_step *st)
{
	struct text *t = a->t;
	struct queue_state *qs = &a->q[st->queue];
	struct set need = t->data[s], part, fenced = {0}, executed = {0};

	if (a->way.cautious && t->wakes_end[s] && st->queue != a->way.reply_by) {
		part = set_below(&t->of_queue[st->queue], s);
		set_join(&need, &part);
	}
	if (qs->scatterer != NONE) {
		fenced = set_and(&t->of_queue[st->queue], &t->scatterers);
		fenced = set_below(&fenced, qs->scatterer + 1u);
	}
	if (qs->certain != NONE)
		executed = set_below(&t->of_queue[st->queue], qs->certain);
	part = set_minus(&need, &fenced);
	part = set_minus(&part, &executed);
	attempt_learn(a, st->queue, &part, s);
	part = set_minus(&need, &qs->known);
	part = set_minus(&part, &qs->executed);
	if (set_last(&part) != NONE)
		st->flags |= CHAIN_FENCE;
	if (st->flags & CHAIN_FENCE) {
		set_join(&qs->known, &fenced);
		set_join(&qs->executed, &executed);
	}
}

/*
 * A step that is ahead of others is enabled when the READs and atomics before it are known to be over: the
 * others wait for that themselves sooner or later. For WRITEs it waits itself: for those whose data it uses,
 * and if it signals an answer, for all. The end of the reply comes when all is over. @now: the step of the
 * text that comes next; @covers: where the output ends with a SEND_EN for its own queue, the one that lets
 * this be fetched, and lets what comes after it as well; NONE: elsewhere.
 */
static void answer_early(struct attempt *a, unsigned now, unsigned covers)
{
	struct text *t = a->t;
	unsigned queue = t->steps[now].queue, through = NONE;
	struct set writes = {0}, later = {0};
	struct chain_step *st;

	for (unsigned s = t->first[0]; s < now; s = t->next[s]) {
		struct set before = set_below(&t->of_queue[queue], s);
		struct set need = set_minus(&before, &a->q[queue].known), use = set_and(&before, &t->data[s]);

		need = set_and(&need, &t->scatterers);
		if (set_last(&need) != NONE)
			break;
		set_join(&later, layout_answers(&t->l, s) ? &before : &use);
		if (!t->early[s])
			continue;
		through = s;
		writes = later;
	}
	if (through == NONE || (a->answered != NONE && through <= a->answered))
		return;
	attempt_learn(a, queue, &writes, through);
	st = attempt_put(a, &(struct chain_step){.queue = (uint8_t)queue,
				    .verb = CHAIN_SEND_EN,
				    .upto = CHAIN_UPTO_STEP,
				    .through = ordered_label(&a->out->order, a->at[through]),
				    .line = t->steps[through].line});
	ordered_explain(&a->out->order, st, "all that \"%s\" and the steps before it answer with is known",
		ordered_name(&a->t->steps[through]));
	a->answered = (uint16_t)through;
	if (covers != NONE)
		a->out->order.steps[covers].through = ordered_label(&a->out->order, a->q[queue].last);
}

/* Step @s has to wait, and what comes after it and is not enabled could be, already: fetching it takes no
 * time then */
static bool can_go_on(const struct attempt *a, unsigned s)
{
	const struct text *t = a->t;
	const struct queue_state *qs = &a->q[t->steps[s].queue];
	unsigned end = text_run_end(t, s, s);
	struct set need = set_minus(&t->data[s], &qs->known);

	if (!a->way.eager || qs->enabled == NONE || end <= qs->enabled || set_last(&need) == NONE)
		return false;
	need = text_run_needs(t, s, end);
	need = set_minus(&need, &qs->known);
	return set_last(&need) == NONE;
}

static void place_step(struct attempt *a, unsigned s)
{
	struct text *t = a->t;
	struct chain_step st = t->steps[s];
	struct queue_state *qs = &a->q[st.queue];

	if (st.queue != 0) {
		unsigned covers = NONE;

		if (qs->skipped == s)
			return;
		if (!qs->started) {
			start(a, s);
		} else if (qs->enabled == s || can_go_on(a, s)) {
			covers = qs->covers;
			go_on(a, s);
		}
		answer_early(a, s, covers);
		satisfy(a, s, &st);
	}
	if (st.verb == CHAIN_SEND_EN)
		st.flags |= prepare_enable(a, s);
	copy_step(a, s, &st);
	a->out->cautious[a->at[s]] =
		t->wakes_end[s] && st.flags & CHAIN_FENCE && !(t->steps[s].flags & CHAIN_FENCE);
	if (st.verb == CHAIN_WAIT && st.until) /* by hand */
		attempt_hear(a, st.queue, chain_step_named(&t->d, st.until));
}

/* The end of the reply is enabled when all else is over; what follows the last SEND_EN of a queue is its end
 */
static void finish(struct attempt *a)
{
	struct text *t = a->t;
	struct derived *out = a->out;
	unsigned done = t->last[0];
	struct set all = {0};

	for (unsigned q = 1; q < t->d.nqueues; q++)
		set_join(&all, &t->of_queue[q]);
	if (a->q[0].covers == NONE || a->q[0].enabled != NONE) {
		uint8_t flags = attempt_settle(a, a->way.reply_by, &all, done);

		if (flags & CHAIN_FENCE) /* the CQEs of the queue say when all of it is over (recycle.h) */
			flags |= CHAIN_SIGNALLED;
		ordered_explain(&a->out->order,
			attempt_enable_for(a, a->way.reply_by, 0, t->steps[done].line, flags),
			"all that \"%s\" and the steps before it answer with is known",
			ordered_name(&a->t->steps[done]));
	}
	for (unsigned q = 0; q < t->d.nqueues; q++) {
		if (a->q[q].covers == NONE)
			continue;
		out->order.steps[a->q[q].covers].upto = q == a->head ? CHAIN_UPTO_NEXT_HEAD : CHAIN_UPTO_END;
		out->order.steps[a->q[q].covers].through = NULL;
	}
}

int way_order(struct text *t, struct way way, struct derived *out, struct chain_error *err)
{
	struct attempt *a = calloc(1, sizeof(*a));
	bool full;

	if (!a)
		return -ENOMEM;
	/* most of the steps, of almost a megabyte, are not used: each is written when it is put */
	memset(out->cautious, 0, sizeof(out->cautious));
	out->d = t->d;
	out->d.steps = out->order.steps;
	out->d.queues = out->queues;
	memcpy(out->queues, t->queues, sizeof(out->queues));
	a->t = t;
	a->out = out;
	a->way = way;
	for (unsigned q = 0; q < CHAIN_MAX_QUEUES; q++)
		a->q[q].covers = a->q[q].enabled = a->q[q].last = a->q[q].scatterer = a->q[q].certain =
			a->q[q].skipped = NONE;
	a->answered = NONE;
	put_head(a);
	if (way.overlap && !a->head) { /* or this is the other way */
		free(a);
		return CHAIN_REFUSE(err, NO_HEAD);
	}
	for (unsigned s = 0; s < t->d.nsteps && !a->full; s++)
		place_step(a, s);
	if (!a->full)
		finish(a);
	out->d.nsteps = a->used;
	full = a->full;
	free(a);
	if (!full)
		return chain_check_order(&out->d, err);
	return CHAIN_REFUSE(err, BARRIERS, .number = {t->d.nsteps, CHAIN_MAX_STEPS});
}
