/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/schedule/derive.h"

#include "reddnd/chain/schedule/derive-text.h"
#include "reddnd/chain/schedule/groups.h"
#include "reddnd/chain/verify/order.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** A description with room for what is put in. */
struct derived {
	struct chain_desc d;
	struct chain_queue_desc queues[CHAIN_MAX_QUEUES];
	struct chain_step steps[CHAIN_MAX_STEPS];
	bool cautious[CHAIN_MAX_STEPS]; /* a fence that only errors may need */
	char label[CHAIN_MAX_STEPS][12], why[CHAIN_MAX_STEPS][128];
};

struct queue_state {
	bool started;
	uint16_t
		skipped; /* a WAIT for the request, of the text, that the start of the queue makes needless */
	struct set known; /* over when the next step starts */
	uint16_t covers;  /* the SEND_EN, in the output, that reaches to the end of what is enabled; NONE: the
			     head */
	uint16_t enabled; /* first step of the text that is not; NONE: all are */
	uint16_t last;    /* step of the output */
	unsigned nsteps;  /* in the output */
	uint16_t scatterer; /* last READ or atomic, of the text */
};

/** One way to order the text. */
struct way {
	unsigned reply_by; /* the queue that enables the reply */
	bool cautious; /* steps that wake the end of the reply start when all of their queue is over, and a
			  queue when all of what it needs is */
	bool fenced;   /* SEND_ENs are fenced rather than preceded by a WAIT */
	bool overlap;  /* the head is in a queue of code, and lets the next instance begin */
	bool eager; /* SEND_ENs come before a step that has to wait, rather than one for as much as can be */
};

struct attempt {
	struct text *t;
	struct way way;
	unsigned head;     /* queue */
	uint16_t answered; /* the reply is enabled through this step of the text; NONE: not at all */
	bool turn;         /* the WAIT for the instance before is there */
	struct queue_state q[CHAIN_MAX_QUEUES];
	struct set at_start[CHAIN_MAX_STEPS]; /* what was over when the step of the text started */
	uint16_t at[CHAIN_MAX_STEPS];         /* in the output, of a step of the text */
	struct derived *out;
	uint16_t used; /* steps of the output */
	bool full;
};

/* ---- putting barriers in ---------------------------------------------------------------- */

/* Appends to the output; there is one place for what is too much */
static struct chain_step *put(struct attempt *a, const struct chain_step *st)
{
	struct queue_state *q = &a->q[st->queue];

	if (a->used == CHAIN_MAX_STEPS) {
		a->full = true;
		a->used--;
	}
	a->out->steps[a->used] = *st;
	q->last = a->used;
	q->nsteps++;
	return &a->out->steps[a->used++];
}

static const char *label_of(struct attempt *a, unsigned i)
{
	struct chain_step *st = &a->out->steps[i];

	assert(i < CHAIN_MAX_STEPS);
	if (!st->label) {
		snprintf(a->out->label[i], sizeof(a->out->label[i]), "#%u", i);
		st->label = a->out->label[i];
	}
	return st->label;
}

static const char *name_of(const struct attempt *a, unsigned s)
{
	const struct chain_step *st = &a->t->steps[s];

	return st->label ? st->label : chain_verb_info(st->verb)->name;
}

static void __attribute__((format(printf, 3, 4)))
explain(struct attempt *a, struct chain_step *st, const char *fmt, ...)
{
	char *why = a->out->why[st - a->out->steps];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(a->out->why[0]), fmt, ap);
	va_end(ap);
	st->why = why;
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

/* What queue @q knows from the CQE of step @i */
static void hear_of(struct attempt *a, unsigned q, unsigned i)
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

/* Waits in @q for all of @need, for the sake of step @s. The waits are in the order of the text */
static void learn(struct attempt *a, unsigned q, const struct set *need, unsigned s)
{
	struct set waits = {0};
	unsigned i;

	for (;;) {
		struct set unknown = set_minus(need, &a->q[q].known);

		i = next_to_wait_for(a, q, s, &unknown);
		if (i == NONE)
			break;
		set_add(&waits, i);
		hear_of(a, q, i);
	}
	for (i = 0; i < a->t->d.nsteps; i++) {
		struct chain_step *st;

		if (!set_has(&waits, i))
			continue;
		a->out->steps[a->at[i]].flags |= CHAIN_SIGNALLED;
		st = put(a, &(struct chain_step){.queue = (uint8_t)q,
				    .verb = CHAIN_WAIT,
				    .until = label_of(a, a->at[i]),
				    .line = a->t->steps[s].line});
		explain(a, st, "\"%s\" needs what \"%s\" does", name_of(a, s), name_of(a, i));
	}
}

/*
 * Puts in the SEND_EN @en. How far it reaches is found out later: up to the next one for that queue. One of
 * the reply that is not the last is an author's and reaches to what it names, as does one whose queue has
 * nothing in the output yet.
 */
static struct chain_step *enable(struct attempt *a, const struct chain_step *en)
{
	struct queue_state *qs = &a->q[en->target];
	struct chain_step *st = put(a, en);
	uint16_t i = (uint16_t)(st - a->out->steps);

	if (qs->covers != NONE && en->target != 0 && qs->last != NONE) {
		a->out->steps[qs->covers].upto = CHAIN_UPTO_STEP;
		a->out->steps[qs->covers].through = label_of(a, en->queue == en->target ? i : qs->last);
	}
	qs->covers = i;
	set_join(&qs->known, &a->q[en->queue].known);
	return st;
}

static struct chain_step *enable_for(struct attempt *a, unsigned in, unsigned q, unsigned line, uint8_t flags)
{
	return enable(a, &(struct chain_step){.queue = (uint8_t)in,
				 .verb = CHAIN_SEND_EN,
				 .flags = flags,
				 .target = (uint8_t)q,
				 .line = line});
}

/* Makes @need be over when the SEND_EN that comes next in @in starts, for the sake of step @s. The flags it
 * takes */
static uint8_t settle(struct attempt *a, unsigned in, const struct set *need, unsigned s)
{
	struct queue_state *qs = &a->q[in];
	struct set fenced = {0}, rest;

	if (a->way.fenced && qs->scatterer != NONE) {
		fenced = set_and(&a->t->of_queue[in], &a->t->scatterers);
		fenced = set_below(&fenced, qs->scatterer + 1u);
	}
	rest = set_minus(need, &fenced);
	learn(a, in, &rest, s);
	rest = set_minus(need, &qs->known);
	if (set_last(&rest) == NONE)
		return 0;
	set_join(&qs->known, &fenced);
	return CHAIN_FENCE;
}

/* The reply of the instance before is enabled by the other set of code queues, and before this one. The WAIT
 * comes where others do, so that it takes no time of its own */
static void await_turn(struct attempt *a, unsigned in)
{
	struct chain_step *st;

	if (a->t->d.sets <= 1 || a->turn)
		return;
	st = put(a, &(struct chain_step){.queue = (uint8_t)in, .verb = CHAIN_WAIT, .turn = true});
	explain(a, st,
		"the other set of code queues enables the reply of the request before, and does so first");
	a->turn = true;
}

/* First step of its queue, from @s on, that must not be fetched as soon as all before step @at is over; NONE
 * if none */
static unsigned run_end(const struct text *t, unsigned s, unsigned at)
{
	for (; s != NONE; s = t->next[s]) {
		struct set early = set_below(&t->fetch[s], at), late = set_minus(&t->fetch[s], &early);

		if (set_last(&late) != NONE || t->by_hand[s] != NONE)
			break;
	}
	return s;
}

static struct set needs_of_run(const struct text *t, unsigned s, unsigned end)
{
	struct set need = {0};

	for (; s != end; s = t->next[s])
		set_join(&need, &t->fetch[s]);
	return need;
}

/* Puts the step @s of the text where the output ends */
static void copy_step(struct attempt *a, unsigned s, const struct chain_step *st)
{
	struct queue_state *qs = &a->q[st->queue];

	a->at_start[s] = qs->known;
	if (st->verb == CHAIN_SEND_EN)
		enable(a, st);
	else
		put(a, st);
	a->at[s] = qs->last;
	if (set_has(&a->t->scatterers, s))
		qs->scatterer = (uint16_t)s;
	if (!chain_verb_info(st->verb)->data) /* over when the next starts */
		set_add(&qs->known, s);
	if (text_is_request_wait(a->t, s))
		set_add(&qs->known, REQUEST);
}

/* All that the step and those enabled with it need is the request */
static bool starts_with_request(const struct text *t, unsigned s)
{
	struct set need = needs_of_run(t, s, run_end(t, s, s));

	set_join(&need, &t->data[s]);
	return t->by_hand[s] == NONE && set_last(&need) == NONE;
}

/* The head lets queue @q begin */
static void start_by_request(struct attempt *a, unsigned q)
{
	struct text *t = a->t;
	struct queue_state *qs = &a->q[q];
	unsigned s = t->first[q], next = t->next[s];
	struct chain_step *st;

	/* a WAIT by hand stays where it is all that may be fetched now */
	if (text_is_request_wait(t, s) && (next == NONE || run_end(t, next, 0) != next)) {
		qs->skipped = (uint16_t)s;
		for (unsigned k = 0; k < t->d.nqueues; k++)
			set_add(&a->q[k].known, s);
		s = next;
	}
	st = enable_for(a, a->head, q, t->steps[t->first[q]].line, 0);
	explain(a, st, "the request has filled in its places in queue \"%s\", which may be fetched now",
		t->queues[q].name);
	qs->started = true;
	qs->enabled = (uint16_t)run_end(t, s, 0);
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
		if (t->first[q] != NONE && starts_with_request(t, t->first[q]))
			a->head = q;
	st = put(a, &(struct chain_step){.queue = (uint8_t)a->head, .verb = CHAIN_WAIT});
	explain(a, st, "a request starts the chain");
	for (unsigned q = 0; q < t->d.nqueues; q++)
		set_add(&a->q[q].known, REQUEST);
	if (a->head)
		start_by_request(a, a->head);
	for (unsigned q = 1; q < t->d.nqueues; q++)
		if (!a->q[q].started && t->first[q] != NONE && starts_with_request(t, t->first[q]))
			start_by_request(a, q);
	a->out->queues[a->head].head = (uint8_t)a->q[a->head].nsteps;
}

/* Step @s is the first of its queue, and the head did not start that */
static void start(struct attempt *a, unsigned s)
{
	struct text *t = a->t;
	unsigned q = t->steps[s].queue, end = run_end(t, s, s), by;
	struct set need = needs_of_run(t, s, end);
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
	flags = settle(a, by, &need, s);
	explain(a, enable_for(a, by, q, t->steps[s].line, flags),
		"queue \"%s\" begins with \"%s\", whose needs are met", t->queues[q].name, name_of(a, s));
	a->q[q].enabled = (uint16_t)end;
}

/* Step @s is the first of its queue that could not be enabled before */
static void go_on(struct attempt *a, unsigned s)
{
	struct text *t = a->t;
	unsigned q = t->steps[s].queue, end = run_end(t, s, s);
	struct set need = needs_of_run(t, s, end);
	uint8_t flags = settle(a, q, &need, s);

	explain(a, enable_for(a, q, q, t->steps[s].line, flags),
		"\"%s\" is patched and must not be fetched before", name_of(a, s));
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
	if (!q)
		await_turn(a, t->steps[s].queue);
	flags = settle(a, t->steps[s].queue, &need, s);
	a->q[q].started = true;
	a->q[q].enabled = (uint16_t)after;
	return flags;
}

/* Makes what step @s needs be over when it starts: by a fence if that is enough */
static void satisfy(struct attempt *a, unsigned s, struct chain_step *st)
{
	struct text *t = a->t;
	struct queue_state *qs = &a->q[st->queue];
	struct set need = t->data[s], part, fenced = {0};

	if (a->way.cautious && t->wakes_end[s] && (st->queue != a->way.reply_by || t->d.sets > 1)) {
		part = set_below(&t->of_queue[st->queue], s);
		set_join(&need, &part);
	}
	if (qs->scatterer != NONE)
		fenced = set_below(&t->of_queue[st->queue], qs->scatterer + 1u);
	part = set_minus(&need, &fenced);
	learn(a, st->queue, &part, s);
	part = set_minus(&need, &qs->known);
	if (set_last(&part) != NONE)
		st->flags |= CHAIN_FENCE;
	if (st->flags & CHAIN_FENCE)
		set_join(&qs->known, &fenced);
}

/* What a WAIT by hand makes known */
static void heed(struct attempt *a, const struct chain_step *st)
{
	struct text *t = a->t;

	for (unsigned i = 0; i < t->d.nsteps; i++)
		if (t->steps[i].label && strcmp(t->steps[i].label, st->until) == 0)
			hear_of(a, st->queue, i);
}

/*
 * A step that is ahead of others is enabled when all before it is known to be over: that costs no WAIT, since
 * the others wait for that themselves sooner or later. The end of the reply comes when all is over. @now: the
 * step of the text that comes next; @covers: where the output ends with a SEND_EN for its own queue, the one
 * that lets this be fetched, and lets what comes after it as well; NONE: elsewhere.
 */
static void answer_early(struct attempt *a, unsigned now, unsigned covers)
{
	struct text *t = a->t;
	unsigned queue = t->steps[now].queue, through = NONE;
	struct chain_step *st;

	for (unsigned s = t->first[0]; s < now; s = t->next[s]) {
		struct set need = set_below(&t->of_queue[queue], s);

		need = set_minus(&need, &a->q[queue].known);
		if (set_last(&need) != NONE)
			break;
		if (t->early[s])
			through = s;
	}
	if (through == NONE || (a->answered != NONE && through <= a->answered))
		return;
	await_turn(a, queue);
	st = put(a, &(struct chain_step){.queue = (uint8_t)queue,
			    .verb = CHAIN_SEND_EN,
			    .upto = CHAIN_UPTO_STEP,
			    .through = label_of(a, a->at[through]),
			    .line = t->steps[through].line});
	explain(a, st, "all that \"%s\" and the steps before it answer with is known", name_of(a, through));
	a->answered = (uint16_t)through;
	if (covers != NONE)
		a->out->steps[covers].through = label_of(a, a->q[queue].last);
}

/* Step @s has to wait, and what comes after it and is not enabled could be, already: fetching it takes no
 * time then */
static bool can_go_on(const struct attempt *a, unsigned s)
{
	const struct text *t = a->t;
	const struct queue_state *qs = &a->q[t->steps[s].queue];
	unsigned end = run_end(t, s, s);
	struct set need = set_minus(&t->data[s], &qs->known);

	if (!a->way.eager || qs->enabled == NONE || end <= qs->enabled || set_last(&need) == NONE)
		return false;
	need = needs_of_run(t, s, end);
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
	if (st.verb == CHAIN_WAIT && st.until)
		heed(a, &st);
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
		uint8_t flags;

		await_turn(a, a->way.reply_by);
		flags = settle(a, a->way.reply_by, &all, done);
		if (flags & CHAIN_FENCE) /* the CQEs of the queue say when all of it is over (recycle.h) */
			flags |= CHAIN_SIGNALLED;
		explain(a, enable_for(a, a->way.reply_by, 0, t->steps[done].line, flags),
			"all that \"%s\" and the steps before it answer with is known", name_of(a, done));
	}
	if (a->turn) /* the next instance waits for it */
		out->steps[a->q[0].covers].flags |= CHAIN_SIGNALLED;
	for (unsigned q = 0; q < t->d.nqueues; q++) {
		if (a->q[q].covers == NONE)
			continue;
		out->steps[a->q[q].covers].upto = q == a->head ? CHAIN_UPTO_NEXT_HEAD : CHAIN_UPTO_END;
		out->steps[a->q[q].covers].through = NULL;
	}
}

/* ---- attempts --------------------------------------------------------------------------- */

static int attempt(struct text *t, struct way way, struct derived *out, struct chain_error *err)
{
	struct attempt *a = calloc(1, sizeof(*a));
	bool full;

	if (!a)
		return -ENOMEM;
	memset(out, 0, sizeof(*out));
	out->d = t->d;
	out->d.steps = out->steps;
	out->d.queues = out->queues;
	memcpy(out->queues, t->queues, sizeof(out->queues));
	a->t = t;
	a->out = out;
	a->way = way;
	for (unsigned q = 0; q < CHAIN_MAX_QUEUES; q++)
		a->q[q].covers = a->q[q].enabled = a->q[q].last = a->q[q].scatterer = a->q[q].skipped = NONE;
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

/* Where one queue enables another, that one cannot miss its failures, and a fence may be too much */
static int spare_fences(struct derived *d)
{
	struct chain_error why;

	for (unsigned s = 0; s < d->d.nsteps; s++) {
		int r;

		if (!d->cautious[s])
			continue;
		d->steps[s].flags &= (uint8_t)~CHAIN_FENCE;
		r = chain_check_order(&d->d, &why);
		if (r < 0)
			return r;
		if (r)
			d->steps[s].flags |= CHAIN_FENCE;
	}
	return 0;
}

/* Work requests first, then fences, then CQEs */
static unsigned cost(const struct derived *d)
{
	unsigned cost = 0;

	for (unsigned s = 0; s < d->d.nsteps; s++)
		cost += 0x100000u + (d->steps[s].flags & CHAIN_FENCE ? 0x400u : 0) +
			(d->steps[s].flags & CHAIN_SIGNALLED ? 1 : 0);
	return cost;
}

static void free_text(struct text **t)
{
	free(*t);
}

static void free_derived(struct derived **d)
{
	free(*d);
}

/* The queues that could enable the reply. First the one with the last step among those that tell the end
 * nothing */
static unsigned list_candidates(const struct text *t, uint8_t q[CHAIN_MAX_QUEUES])
{
	bool listed[CHAIN_MAX_QUEUES] = {[0] = true}, informs[CHAIN_MAX_QUEUES] = {0};
	unsigned n = 0;

	for (unsigned s = 0; s < t->d.nsteps; s++)
		informs[t->steps[s].queue] |= t->wakes_end[s];
	for (unsigned informing = 0; informing < 2; informing++)
		for (unsigned s = t->d.nsteps; s-- > 0;) {
			unsigned by = t->steps[s].queue;

			if (listed[by] || informs[by] != informing)
				continue;
			listed[by] = true;
			q[n++] = (uint8_t)by;
		}
	return n;
}

static int fill_groups(struct derived *d, uint16_t group, struct chain_error *err)
{
	int r;

	if (group <= 1)
		return 0;
	d->d.fetch_group = group;
	r = chain_fill_groups(&d->d, d->steps, d->queues, err);
	return r ? r : chain_check_order(&d->d, err);
}

/* The best of the ways in which instances overlap, or in which they do not; NULL: none is right. Of the
 * errors the first one is kept */
static int find_best(struct text *t, bool overlap, struct derived **best)
{
	__attribute__((cleanup(free_derived))) struct derived *now = malloc(sizeof(*now));
	uint8_t by[CHAIN_MAX_QUEUES];
	unsigned n = list_candidates(t, by);
	int r;

	for (unsigned i = 0; now && i < 4 * n; i++) {
		struct chain_error why;
		struct derived *worse = *best;
		struct way way = {
			.reply_by = by[i % n], .fenced = i / n % 2, .eager = i < 2 * n, .overlap = overlap};

		/* who wants an answer early gets what is fastest, and others the fewest work requests */
		if ((way.fenced && !t->d.fenced_enables) ||
			(way.eager ? !t->any_early : *best && t->any_early))
			continue;

		r = attempt(t, way, now, &why);
		if (r > 0) {
			way.cautious = true;
			r = attempt(t, way, now, &why);
		}
		if (!r)
			r = spare_fences(now);
		if (r < 0)
			return r;
		if (r) {
			if (!t->err->code)
				*t->err = why;
			continue;
		}
		if (*best && cost(now) >= cost(*best))
			continue;
		*best = now;
		now = worse ? worse : malloc(sizeof(*now));
	}
	return now ? 0 : -ENOMEM;
}

int chain_derive(const struct chain_desc *d, struct chain_desc **out, struct chain_error *err)
{
	__attribute__((cleanup(free_text))) struct text *t = calloc(1, sizeof(*t));
	__attribute__((cleanup(free_derived))) struct derived *best = NULL;
	int r;

	if (!t)
		return -ENOMEM;
	t->err = err;
	*err = (struct chain_error){0};
	r = text_read(t, d);
	if (r)
		return r;
	t->d.fetch_group = 0; /* its groups are filled in the end */
	if (d->overlap)
		r = find_best(t, true, &best);
	if (r == 0 && !best && d->sets > 1)
		return d->overlap ? CHAIN_REFUSED : CHAIN_REFUSE(err, SETS_OVERLAP);
	if (r == 0 && !best) {
		*err = (struct chain_error){0};
		r = find_best(t, false, &best);
	}
	if (r < 0)
		return r;
	if (!best)
		return CHAIN_REFUSED;
	*err = (struct chain_error){0};
	r = fill_groups(best, d->fetch_group, err);
	if (r)
		return r;
	*out = &best->d;
	best = NULL;
	return 0;
}

void chain_derive_free(struct chain_desc *d)
{
	free(d); /* the first member of struct derived */
}
