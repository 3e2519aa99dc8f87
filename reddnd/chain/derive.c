/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/derive.h"

#include "reddnd/chain/access.h"
#include "reddnd/chain/order.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	REQUEST = CHAIN_MAX_STEPS, /* in a set: the request's bytes */
	SET_WORDS = REQUEST / 64 + 1,
	NONE = LAYOUT_NONE,
	MAX_FIXED = 25, /* steps of the text in a head: with a WAIT for each queue they still fit a uint8_t */
};

/** Steps of the text. */
struct set {
	uint64_t w[SET_WORDS];
};

/** The text, and what must be over before what. */
struct text {
	struct chain_desc d;
	struct chain_step steps[CHAIN_MAX_STEPS];
	struct chain_queue_desc queues[CHAIN_MAX_QUEUES];
	struct layout l;
	struct set of_queue[CHAIN_MAX_QUEUES], scatterers;
	struct set data[CHAIN_MAX_STEPS];  /* before the step starts */
	struct set fetch[CHAIN_MAX_STEPS]; /* before it may be fetched */
	uint16_t by_hand[CHAIN_MAX_STEPS]; /* the author's SEND_EN that lets it be fetched, or NONE */
	uint16_t next[CHAIN_MAX_STEPS];    /* in its queue, or NONE */
	uint16_t first[CHAIN_MAX_QUEUES], last[CHAIN_MAX_QUEUES];
	struct set wakes[CHAIN_MAX_STEPS]; /* those whose opcode it writes */
	bool tells_end[CHAIN_MAX_STEPS];   /* writes the opcode of the reply's last step */
	char *err;
};

/** A description with room for what is put in. */
struct derived {
	struct chain_desc d;
	struct chain_queue_desc queues[CHAIN_MAX_QUEUES];
	struct chain_step steps[CHAIN_MAX_STEPS];
	bool cautious[CHAIN_MAX_STEPS]; /* a fence that only errors may need */
	char label[CHAIN_MAX_STEPS][12], why[CHAIN_MAX_STEPS][128];
};

struct queue_state {
	bool started, own_start;
	struct set known; /* over when the next step starts */
	uint16_t
		covers; /* the SEND_EN, in the output, that reaches to the end of what is enabled; NONE: the head */
	uint16_t enabled;   /* first step of the text that is not; NONE: all are */
	uint16_t last;      /* step of the output */
	unsigned nsteps;    /* in the output */
	uint16_t scatterer; /* last READ or atomic, of the text */
};

/** One way to order the text. */
struct attempt {
	struct text *t;
	unsigned reply_by; /* the queue that enables the reply */
	bool cautious;     /* steps that wake the end of the reply start when all of their queue is over */
	struct queue_state q[CHAIN_MAX_QUEUES];
	struct set at_start[CHAIN_MAX_STEPS]; /* what was over when the step of the text started */
	uint16_t at[CHAIN_MAX_STEPS];         /* in the output, of a step of the text */
	struct derived *out;
	uint16_t used; /* steps of the output */
	bool full;
};

/* ---- sets ------------------------------------------------------------------------------- */

static void set_add(struct set *s, unsigned i)
{
	s->w[i / 64] |= 1ull << i % 64;
}

static bool set_has(const struct set *s, unsigned i)
{
	return s->w[i / 64] >> i % 64 & 1;
}

static void set_join(struct set *s, const struct set *more)
{
	for (unsigned i = 0; i < SET_WORDS; i++)
		s->w[i] |= more->w[i];
}

static struct set set_and(const struct set *a, const struct set *b)
{
	struct set r;

	for (unsigned i = 0; i < SET_WORDS; i++)
		r.w[i] = a->w[i] & b->w[i];
	return r;
}

static struct set set_minus(const struct set *a, const struct set *b)
{
	struct set r;

	for (unsigned i = 0; i < SET_WORDS; i++)
		r.w[i] = a->w[i] & ~b->w[i];
	return r;
}

/* The members below @i */
static struct set set_below(const struct set *s, unsigned i)
{
	struct set r = *s;

	for (unsigned w = 0; w < SET_WORDS; w++)
		if (64 * (w + 1) > i)
			r.w[w] &= 64 * w >= i ? 0 : (1ull << i % 64) - 1;
	return r;
}

/* The last step in @s, or NONE; REQUEST does not count */
static unsigned set_last(const struct set *s)
{
	for (unsigned w = REQUEST / 64; w-- > 0;)
		if (s->w[w])
			return 64 * w + 63 - (unsigned)__builtin_clzll(s->w[w]);
	return NONE;
}

/* ---- what the text needs ---------------------------------------------------------------- */

static bool is_request_wait(const struct text *t, unsigned s)
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
		return layout_refuse(&t->l,
			"%s comes after %s and touches the same bytes, but the reply is sent last, and "
			"nothing "
			"can wait for it: bytes that %s does not change would do",
			layout_step_name(&t->l, b->step), layout_step_name(&t->l, before),
			layout_step_name(&t->l, b->step));
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

/* The author's SEND_ENs: each enables what follows it in the target queue, up to the step it names */
static void link_enables(struct text *t)
{
	for (unsigned e = 0; e < t->d.nsteps; e++) {
		const struct chain_step *st = &t->steps[e];
		uint32_t end;

		if (st->verb != CHAIN_SEND_EN)
			continue;
		end = t->l.step[e].enables;
		for (unsigned s = e + 1; s < t->d.nsteps; s++)
			if (t->steps[s].queue == st->target && t->l.step[s].at < end)
				t->by_hand[s] = (uint16_t)e;
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

			if (t->tells_end[s] || set_last(&wakes) == NONE)
				continue;
			t->tells_end[s] = more = true;
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
		return layout_refuse(
			&t->l, "%u queues, there can be 1 to %d", d->nqueues, (int)CHAIN_MAX_QUEUES);
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
		return layout_refuse(
			&t->l, "%u steps, at most %d are possible", t->d.nsteps, (int)CHAIN_MAX_STEPS);
	memcpy(t->steps + n, d->steps, d->nsteps * sizeof *d->steps);
	for (unsigned s = 0; s < t->d.nsteps; s++)
		if (t->steps[s].queue != 0 && !(t->steps[s].flags & CHAIN_CALL))
			t->steps[s].flags &= (uint8_t)~CHAIN_SIGNALLED;
	/* what the author waits for */
	for (unsigned w = 0; w < t->d.nsteps; w++)
		for (unsigned s = 0; t->steps[w].until && s < t->d.nsteps; s++)
			if (t->steps[s].label && strcmp(t->steps[s].label, t->steps[w].until) == 0)
				t->steps[s].flags |= CHAIN_SIGNALLED;
	return 0;
}

static void free_accesses(struct access_list *list)
{
	access_free(list);
}

static int read_text(struct text *t, const struct chain_desc *d)
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
	if (!r)
		find_ends(t);
	return r;
}

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
		snprintf(a->out->label[i], sizeof a->out->label[i], "#%u", i);
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
	vsnprintf(why, sizeof a->out->why[0], fmt, ap);
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

/* What the CQE of step @i tells @q */
static void hear_of(struct attempt *a, unsigned q, unsigned i)
{
	struct set before = set_below(&a->t->of_queue[a->t->steps[i].queue], i + 1);

	set_join(&a->q[q].known, &a->at_start[i]);
	set_join(&a->q[q].known, &before);
}

static unsigned set_size(const struct set *s)
{
	unsigned n = 0;

	for (unsigned w = 0; w < REQUEST / 64; w++)
		n += (unsigned)__builtin_popcountll(s->w[w]);
	return n;
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

/* Puts in the SEND_EN @st. How far it reaches is found out later: up to the next one for that queue */
static struct chain_step *enable(struct attempt *a, const struct chain_step *en)
{
	struct queue_state *qs = &a->q[en->target];
	struct chain_step *st = put(a, en);
	uint16_t i = (uint16_t)(st - a->out->steps);

	if (qs->covers != NONE) {
		a->out->steps[qs->covers].upto = CHAIN_UPTO_STEP;
		a->out->steps[qs->covers].through = label_of(a, en->queue == en->target ? i : qs->last);
	} else if (qs->own_start) {
		a->out->queues[en->target].head = (uint8_t)qs->nsteps;
	}
	qs->covers = i;
	set_join(&qs->known, &a->q[en->queue].known);
	return st;
}

static struct chain_step *enable_for(struct attempt *a, unsigned in, unsigned q, unsigned line)
{
	return enable(
		a, &(struct chain_step){
			   .queue = (uint8_t)in, .verb = CHAIN_SEND_EN, .target = (uint8_t)q, .line = line});
}

/* First step of its queue, from @s on, that must not be fetched as soon as all before step @at is over; NONE if none */
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
	if (is_request_wait(a->t, s))
		set_add(&qs->known, REQUEST);
}

/*
 * A start of its own: the wait for the request and then, as early as that costs no SEND_EN more, the enabling of what
 * follows. Steps that nothing patches may come before that, in the head.
 */
static void start_by_request(struct attempt *a, unsigned s)
{
	struct text *t = a->t;
	unsigned q = t->steps[s].queue, early, fixed, n = 0;
	struct queue_state *qs = &a->q[q];
	struct chain_step *st;

	qs->own_start = true;
	if (is_request_wait(t, s)) {
		copy_step(a, s, &t->steps[s]);
		s = t->next[s];
	} else {
		st = put(a, &(struct chain_step){
				    .queue = (uint8_t)q, .verb = CHAIN_WAIT, .line = t->steps[s].line});
		explain(a, st, "a request starts queue \"%s\"", t->queues[q].name);
		set_add(&qs->known, REQUEST);
	}
	early = run_end(t, s, 0);
	for (fixed = s; fixed != early && !set_has(&t->fetch[fixed], REQUEST) && n <= MAX_FIXED; n++)
		fixed = t->next[fixed];
	if (early != NONE && n <= MAX_FIXED && run_end(t, fixed, fixed) != early) {
		qs->enabled = (uint16_t)fixed;
		return;
	}
	st = enable_for(a, q, q, s == NONE ? 0 : t->steps[s].line);
	explain(a, st, "the request has filled in the rest of queue \"%s\", which may be fetched now",
		t->queues[q].name);
	qs->enabled = (uint16_t)early;
}

/* Step @s is the first of its queue */
static void start(struct attempt *a, unsigned s)
{
	struct text *t = a->t;
	unsigned q = t->steps[s].queue, end = run_end(t, s, s), by;
	struct set need = needs_of_run(t, s, end);

	a->q[q].started = true;
	set_join(&need, &t->data[s]);
	by = set_last(&need);
	if (by == NONE) {
		start_by_request(a, s);
		return;
	}
	by = t->steps[by].queue;
	learn(a, by, &need, s);
	explain(a, enable_for(a, by, q, t->steps[s].line),
		"queue \"%s\" begins with \"%s\", whose needs are met", t->queues[q].name, name_of(a, s));
	a->q[q].enabled = (uint16_t)end;
}

/* Step @s is the first of its queue that could not be enabled before */
static void go_on(struct attempt *a, unsigned s)
{
	struct text *t = a->t;
	unsigned q = t->steps[s].queue, end = run_end(t, s, s);
	struct set need = needs_of_run(t, s, end);

	learn(a, q, &need, s);
	explain(a, enable_for(a, q, q, t->steps[s].line), "\"%s\" is patched and must not be fetched before",
		name_of(a, s));
	a->q[q].enabled = (uint16_t)end;
}

/* The author's SEND_EN, step @s, waits for what it enables */
static void prepare_enable(struct attempt *a, unsigned s)
{
	struct text *t = a->t;
	unsigned q = t->steps[s].target, after = NONE;
	struct set need = {0};

	for (unsigned k = t->d.nsteps; --k > s;) {
		if (t->by_hand[k] == s)
			set_join(&need, &t->fetch[k]);
		else if (t->steps[k].queue == q)
			after = k;
	}
	learn(a, t->steps[s].queue, &need, s);
	a->q[q].started = true;
	a->q[q].enabled = (uint16_t)after;
}

/* Makes what step @s needs be over when it starts: by a fence if that is enough */
static void satisfy(struct attempt *a, unsigned s, struct chain_step *st)
{
	struct text *t = a->t;
	struct queue_state *qs = &a->q[st->queue];
	struct set need = t->data[s], part, fenced = {0};

	if (a->cautious && t->tells_end[s] && st->queue != a->reply_by) {
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

/* What the author's WAIT tells */
static void heed(struct attempt *a, const struct chain_step *st)
{
	struct text *t = a->t;

	for (unsigned i = 0; i < t->d.nsteps; i++)
		if (t->steps[i].label && strcmp(t->steps[i].label, st->until) == 0)
			hear_of(a, st->queue, i);
}

static void place_step(struct attempt *a, unsigned s)
{
	struct text *t = a->t;
	struct chain_step st = t->steps[s];
	struct queue_state *qs = &a->q[st.queue];

	if (st.queue != 0) {
		if (!qs->started) {
			start(a, s);
			if (is_request_wait(t, s))
				return;
		} else if (qs->enabled == s) {
			go_on(a, s);
		}
		satisfy(a, s, &st);
	}
	if (st.verb == CHAIN_SEND_EN)
		prepare_enable(a, s);
	copy_step(a, s, &st);
	a->out->cautious[a->at[s]] =
		t->tells_end[s] && st.flags & CHAIN_FENCE && !(t->steps[s].flags & CHAIN_FENCE);
	if (st.verb == CHAIN_WAIT && st.until)
		heed(a, &st);
}

/* The reply is enabled when all else is over; what follows the last SEND_EN of a queue is its end */
static void finish(struct attempt *a)
{
	struct text *t = a->t;
	struct derived *out = a->out;
	unsigned done = t->last[0];
	struct set all = {0};

	for (unsigned q = 1; q < t->d.nqueues; q++)
		set_join(&all, &t->of_queue[q]);
	if (a->q[0].covers == NONE || a->q[0].enabled != NONE) {
		learn(a, a->reply_by, &all, done);
		explain(a, enable_for(a, a->reply_by, 0, t->steps[done].line),
			"all that \"%s\" and the steps before it answer with is known", name_of(a, done));
	}
	for (unsigned q = 0; q < t->d.nqueues; q++) {
		if (a->q[q].covers == NONE && a->q[q].own_start)
			explain(a, enable_for(a, q, q, 0), "the next request needs its head");
		if (a->q[q].covers == NONE)
			continue;
		out->steps[a->q[q].covers].upto = a->q[q].own_start ? CHAIN_UPTO_NEXT_HEAD : CHAIN_UPTO_END;
		out->steps[a->q[q].covers].through = NULL;
	}
}

/* ---- attempts --------------------------------------------------------------------------- */

static int attempt(struct text *t, unsigned reply_by, bool cautious, struct derived *out, char err[CHAIN_ERR])
{
	struct attempt *a = calloc(1, sizeof *a);
	bool full;

	if (!a)
		return -ENOMEM;
	memset(out, 0, sizeof *out);
	out->d = t->d;
	out->d.steps = out->steps;
	out->d.queues = out->queues;
	memcpy(out->queues, t->queues, sizeof out->queues);
	a->t = t;
	a->out = out;
	a->reply_by = reply_by;
	a->cautious = cautious;
	for (unsigned q = 0; q < CHAIN_MAX_QUEUES; q++)
		a->q[q].covers = a->q[q].enabled = a->q[q].last = a->q[q].scatterer = NONE;
	for (unsigned s = 0; s < t->d.nsteps && !a->full; s++)
		place_step(a, s);
	if (!a->full)
		finish(a);
	out->d.nsteps = a->used;
	full = a->full;
	free(a);
	if (!full)
		return chain_check_order(&out->d, err);
	snprintf(err, CHAIN_ERR, "%u steps need so many barriers that there are more than %d in all",
		t->d.nsteps, (int)CHAIN_MAX_STEPS);
	return CHAIN_REFUSED;
}

/* Where one queue enables another, that one cannot miss its failures, and a fence may be too much */
static int spare_fences(struct derived *d)
{
	char why[CHAIN_ERR];

	for (unsigned s = 0; s < d->d.nsteps; s++) {
		int r;

		if (!d->cautious[s])
			continue;
		d->steps[s].flags &= (uint8_t)~CHAIN_FENCE;
		r = chain_check_order(&d->d, why);
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

/* The queues that could enable the reply. First the one with the last step among those that tell the end nothing */
static unsigned list_candidates(const struct text *t, uint8_t q[CHAIN_MAX_QUEUES])
{
	bool listed[CHAIN_MAX_QUEUES] = {[0] = true}, tells[CHAIN_MAX_QUEUES] = {0};
	unsigned n = 0;

	for (unsigned s = 0; s < t->d.nsteps; s++)
		tells[t->steps[s].queue] |= t->tells_end[s];
	for (unsigned telling = 0; telling < 2; telling++)
		for (unsigned s = t->d.nsteps; s-- > 0;) {
			unsigned by = t->steps[s].queue;

			if (listed[by] || tells[by] != telling)
				continue;
			listed[by] = true;
			q[n++] = (uint8_t)by;
		}
	return n;
}

int chain_derive(const struct chain_desc *d, struct chain_desc **out, char err[CHAIN_ERR])
{
	__attribute__((cleanup(free_text))) struct text *t = calloc(1, sizeof *t);
	__attribute__((cleanup(free_derived))) struct derived *best = NULL, *now = malloc(sizeof *now);
	uint8_t by[CHAIN_MAX_QUEUES];
	unsigned n;
	int r;

	if (!t || !now)
		return -ENOMEM;
	t->err = err;
	err[0] = '\0';
	r = read_text(t, d);
	if (r)
		return r;
	n = list_candidates(t, by);
	for (unsigned i = 0; i < n; i++) {
		char why[CHAIN_ERR];
		struct derived *worse = best;

		r = attempt(t, by[i], false, now, why);
		if (r > 0)
			r = attempt(t, by[i], true, now, why);
		if (!r)
			r = spare_fences(now);
		if (r < 0)
			return r;
		if (r) {
			if (i == 0)
				memcpy(err, why, sizeof why);
			continue;
		}
		if (best && cost(now) >= cost(best))
			continue;
		best = now;
		now = worse ? worse : malloc(sizeof *now);
		if (!now)
			return -ENOMEM;
	}
	if (!best)
		return CHAIN_REFUSED;
	err[0] = '\0';
	*out = &best->d;
	best = NULL;
	return 0;
}

void chain_derive_free(struct chain_desc *d)
{
	free(d); /* the first member of struct derived */
}
