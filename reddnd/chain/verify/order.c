/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/verify/order.h"

#include "reddnd/chain/ir/access.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Moments of a step; the graph's edges mean "not later than" */
enum moment {
	ENABLED,   /* earliest fetch */
	STARTED,   /* fetched; nothing of its work done */
	EXECUTED,  /* local bytes gathered, remote ones read or written */
	LANDED,    /* its memory effects are there */
	COMPLETED, /* and so are those of all before it: its CQE, if it is signalled */
	MOMENTS
};

enum {
	MAX_NODES = CHAIN_MAX_STEPS * MOMENTS + 1, /* the last one: the request's bytes are in memory */
	NONE = LAYOUT_NONE,
	NOBODY = NONE,
	SEVERAL = NONE - 1,
};

struct edge {
	uint16_t to;
	int next; /* of the same node, -1: last */
};

struct proof {
	struct layout l;
	struct access_list list;
	unsigned nodes, words; /* of the graph; of a row in after[] */
	int first[MAX_NODES];
	struct edge *edges;
	unsigned nedges, max_edges;
	uint64_t *after;                  /* per node a row: the nodes that are not earlier */
	uint16_t before[CHAIN_MAX_STEPS]; /* step before it in its queue, or NONE */
	uint16_t waker[CHAIN_MAX_STEPS];  /* the step that writes its opcode, NOBODY, or SEVERAL */
	bool must[CHAIN_MAX_STEPS];       /* it has run if the answer was sent */
	bool doubtful[CHAIN_MAX_STEPS];   /* a WAIT that may have ended with an error */
	uint64_t needs[CHAIN_MAX_STEPS][CHAIN_MAX_STEPS / 64]; /* the steps whose data a step uses */
	struct access worst[2]; /* of the conflicts that are not ordered, the one that comes first */
	bool found;
	bool nomem;
};

static unsigned node(unsigned step, enum moment m)
{
	return step * MOMENTS + m;
}

static unsigned request(const struct proof *p)
{
	return p->nodes - 1;
}

/* ---- the graph -------------------------------------------------------------------------- */

static void edge(struct proof *p, unsigned from, unsigned to)
{
	if (p->nedges == p->max_edges) {
		unsigned n = p->max_edges ? 2 * p->max_edges : 1024;
		struct edge *more = realloc(p->edges, n * sizeof(*more));

		if (!more) {
			p->nomem = true;
			return;
		}
		p->edges = more;
		p->max_edges = n;
	}
	p->edges[p->nedges] = (struct edge){.to = (uint16_t)to, .next = p->first[from]};
	p->first[from] = (int)p->nedges++;
}

static uint32_t end_of(const struct layout *l, unsigned s)
{
	return (uint32_t)l->step[s].at + l->step[s].wqebbs;
}

static bool enables(const struct layout *l, unsigned e, unsigned s)
{
	return l->d->steps[e].verb == CHAIN_SEND_EN && l->d->steps[e].target == l->d->steps[s].queue &&
	       l->step[e].enables >= end_of(l, s);
}

/* The SEND_EN that lets step @s be fetched, with the group that it begins in; NONE when the previous instance
 * did, or may have done, since it ends in a group of this one */
static unsigned enabler(const struct layout *l, unsigned s)
{
	unsigned best = NONE, q = l->d->steps[s].queue, group = l->d->fetch_group ? l->d->fetch_group : 1;
	uint32_t from = l->step[s].at & ~(group - 1);

	for (unsigned e = 0; e < l->d->nsteps; e++)
		if (l->d->steps[e].verb == CHAIN_SEND_EN && l->d->steps[e].target == q &&
			l->step[e].enables > from &&
			(best == NONE || l->step[e].enables < l->step[best].enables))
			best = e;
	return from < l->head[q] || l->wqebbs[q] % group ? NONE : best;
}

static bool heeds_fence(const struct proof *p, const struct chain_step *st)
{
	return st->flags & CHAIN_FENCE && (chain_verb_info(st->verb)->class != CHAIN_CLASS_SYNC ||
						  (st->verb == CHAIN_SEND_EN && p->l.d->fenced_enables));
}

/*
 * What is before a fence has landed. The WQE after a fence starts after the fenced one, so that only the
 * stretch since the last fence counts.
 */
static void add_fence(struct proof *p, unsigned s)
{
	const struct chain_step *steps = p->l.d->steps;

	for (unsigned k = p->before[s]; k != NONE; k = p->before[k]) {
		if (chain_verb_info(steps[k].verb)->scatters)
			edge(p, node(k, LANDED), node(s, STARTED));
		if (heeds_fence(p, &steps[k]))
			break;
	}
}

/* What the responder has executed when it executes @s. A step that may be a NOP is no request to it */
static void add_turn(struct proof *p, unsigned s)
{
	const struct chain_step *steps = p->l.d->steps;
	bool atomic = chain_verb_info(steps[s].verb)->atomic_bytes;

	if (!chain_verb_info(steps[s].verb)->data || p->list.may_rest[s])
		return;
	for (unsigned k = p->before[s]; k != NONE; k = p->before[k]) {
		const struct chain_verb_info *v = chain_verb_info(steps[k].verb);

		if (!v->data || (v->scatters && !(v->atomic_bytes && atomic)))
			continue;
		edge(p, node(k, EXECUTED), node(s, EXECUTED));
		if (!v->scatters && !p->list.may_rest[k])
			break;
	}
}

static void add_edges(struct proof *p)
{
	const struct layout *l = &p->l;

	for (unsigned n = 0; n < p->nodes; n++)
		p->first[n] = -1;
	for (unsigned s = 0; s < l->d->nsteps; s++) {
		const struct chain_step *st = &l->d->steps[s];
		unsigned before = p->before[s], by = enabler(l, s);

		for (unsigned m = ENABLED; m < COMPLETED; m++)
			edge(p, node(s, m), node(s, m + 1));
		if (by != NONE)
			edge(p, node(by, STARTED), node(s, ENABLED));
		if (before != NONE) {
			edge(p, node(before, STARTED), node(s, STARTED));
			edge(p, node(before, COMPLETED), node(s, COMPLETED));
			if (l->d->steps[before].verb == CHAIN_WAIT)
				edge(p, node(before, LANDED), node(s, STARTED));
		}
		if (st->verb == CHAIN_WAIT && !p->doubtful[s])
			edge(p, l->step[s].until == NONE ? request(p) : node(l->step[s].until, COMPLETED),
				node(s, LANDED));
		if (heeds_fence(p, st))
			add_fence(p, s);
		add_turn(p, s);
	}
}

static bool is_before(const struct proof *p, unsigned a, unsigned b)
{
	return p->after[(size_t)a * p->words + b / 64] >> b % 64 & 1;
}

/* Fills in after[], the last moments first. The instance runs to its end (flow.c), so there is no cycle */
static void close_graph(struct proof *p, uint16_t *order, uint16_t *missing)
{
	unsigned head = 0, tail = 0;

	for (unsigned e = 0; e < p->nedges; e++)
		missing[p->edges[e].to]++;
	for (unsigned n = 0; n < p->nodes; n++)
		if (!missing[n])
			order[tail++] = (uint16_t)n;
	while (head < tail)
		for (int e = p->first[order[head++]]; e >= 0; e = p->edges[e].next)
			if (--missing[p->edges[e].to] == 0)
				order[tail++] = p->edges[e].to;
	assert(tail == p->nodes);
	while (tail-- > 0) {
		unsigned n = order[tail];
		uint64_t *row = p->after + (size_t)n * p->words;

		row[n / 64] |= 1ull << n % 64;
		for (int e = p->first[n]; e >= 0; e = p->edges[e].next) {
			const uint64_t *more = p->after + (size_t)p->edges[e].to * p->words;

			for (unsigned w = 0; w < p->words; w++)
				row[w] |= more[w];
		}
	}
}

static int make_graph(struct proof *p)
{
	uint16_t *work = calloc(2 * (size_t)p->nodes, sizeof(*work));

	if (!work)
		return -ENOMEM;
	p->nedges = 0;
	memset(p->after, 0, (size_t)p->nodes * p->words * sizeof(*p->after));
	add_edges(p);
	if (!p->nomem)
		close_graph(p, work, work + p->nodes);
	free(work);
	return p->nomem ? -ENOMEM : 0;
}

static int prepare(struct proof *p)
{
	unsigned n = p->l.d->nsteps, last[CHAIN_MAX_QUEUES];

	for (unsigned q = 0; q < CHAIN_MAX_QUEUES; q++)
		last[q] = NONE;
	for (unsigned s = 0; s < n; s++) {
		p->before[s] = (uint16_t)last[p->l.d->steps[s].queue];
		last[p->l.d->steps[s].queue] = s;
	}
	p->nodes = n * MOMENTS + 1;
	p->words = p->nodes / 64 + 1;
	p->after = calloc((size_t)p->nodes * p->words, sizeof(*p->after));
	return p->after ? access_collect(&p->l, &p->list) : -ENOMEM;
}

/* ---- bytes ------------------------------------------------------------------------------ */

static const enum moment begin[] = {
	[ACCESS_FETCH] = ENABLED,
	[ACCESS_GATHER] = STARTED,
	[ACCESS_REMOTE] = EXECUTED,
	[ACCESS_SCATTER] = EXECUTED,
};
static const enum moment finish[] = {
	[ACCESS_FETCH] = STARTED,
	[ACCESS_GATHER] = EXECUTED,
	[ACCESS_REMOTE] = EXECUTED,
	[ACCESS_SCATTER] = LANDED,
};

static bool is_over(const struct proof *p, const struct access *a, const struct access *b)
{
	unsigned end = a->when == ACCESS_REQUEST ? request(p) : node(a->step, finish[a->when]);

	return is_before(p, end, node(b->step, begin[b->when]));
}

static bool comes_first(const struct access *a, const struct access *b, const struct access than[2])
{
	return b->step != than[1].step ? b->step < than[1].step : a->step < than[0].step;
}

static int check_pair(void *arg, const struct access *a, const struct access *b)
{
	struct proof *p = arg;

	if (is_over(p, a, b))
		return 0;
	if (a->when != ACCESS_REQUEST && access_in_turn(&p->l, a, b))
		return 0;
	if (!p->found || comes_first(a, b, p->worst)) {
		p->found = true;
		p->worst[0] = *a;
		p->worst[1] = *b;
	}
	return 0;
}

static int check_accesses(struct proof *p)
{
	const struct access *a = &p->worst[0], *b = &p->worst[1];
	struct chain_error_at first, then;

	access_conflicts(&p->list, check_pair, p);
	if (!p->found)
		return 0;
	then = layout_at(&p->l, b->step);
	if (a->when == ACCESS_REQUEST) {
		assert(b->when == ACCESS_FETCH &&
			"all steps start after a WAIT for it, or flow.c refuses them");
		return layout_refuse(&p->l, FETCHED_BEFORE_REQUEST, .at = then);
	}
	first = layout_at(&p->l, a->step);
	if (is_over(p, b, a))
		return layout_refuse(&p->l, ORDER_REVERSED, .at = then, .other = first);
	if (b->when == ACCESS_FETCH)
		return layout_refuse(&p->l, FETCHED_EARLY, .at = first, .other = then);
	if (a->when == ACCESS_FETCH)
		return layout_refuse(&p->l, FETCHED_LATE, .at = then, .other = first);
	if (a->write && b->write)
		return layout_refuse(&p->l, BOTH_WRITE, .at = first, .other = then);
	return layout_refuse(&p->l, READ_AND_WRITE, .at = first, .other = then);
}

/* ---- enables, and the end --------------------------------------------------------------- */

static int check_enables(struct proof *p)
{
	const struct layout *l = &p->l;

	for (unsigned a = 0; a < l->d->nsteps; a++)
		for (unsigned b = 0; b < l->d->nsteps && l->d->steps[a].verb == CHAIN_SEND_EN; b++)
			if (l->d->steps[b].verb == CHAIN_SEND_EN &&
				l->d->steps[b].target == l->d->steps[a].target &&
				l->step[b].enables > l->step[a].enables &&
				!is_before(p, node(a, STARTED), node(b, STARTED)))
				return layout_refuse(&p->l, ENABLE_RACE, .at = layout_at(l, a),
					.other = layout_at(l, b),
					.name = l->d->queues[l->d->steps[a].target].name);
	return 0;
}

/* What moves no data is over when it starts, except a WAIT */
static int check_end(struct proof *p, unsigned last)
{
	const struct layout *l = &p->l;

	if (!(l->d->steps[last].flags & CHAIN_SIGNALLED))
		return layout_refuse(&p->l, END_UNSIGNALLED, .at = layout_at(l, last));
	for (unsigned s = 0; s < l->d->nsteps; s++) {
		enum chain_verb verb = l->d->steps[s].verb;
		bool over = !chain_verb_info(verb)->data && verb != CHAIN_WAIT;

		if (!is_before(p, node(s, over ? STARTED : LANDED), node(last, COMPLETED)))
			return layout_refuse(
				&p->l, END_EARLY, .at = layout_at(l, s), .other = layout_at(l, last));
	}
	return 0;
}

/* ---- errors ----------------------------------------------------------------------------- */

/*
 * An answer has gone out, so the step that sends it has run, and so have the only step that can have woken
 * it, the only SEND_EN that can have enabled that, and so on: all of these *must* have run. A queue runs
 * nothing after a failure. So a step has succeeded if it was over before one of its queue started that must
 * have run.
 *
 * Was it really? A WAIT for another queue may have ended with an error, and proves nothing then. But take
 * those WAITs only that wait for something which is over before a step of that queue starts that must have
 * run, and so that the same can be said of all WAITs by which that is known: the first of them that ended
 * with an error would have done so after that step started, and by then its CQE was there.
 */

static bool needs(const struct proof *p, unsigned s, unsigned k)
{
	return p->needs[s][k / 64] >> k % 64 & 1;
}

/* An atomic takes a word of a region as it is: others change it, too */
static bool uses(const struct access *b)
{
	return !b->write || (b->atomic && b->r.sym != CHAIN_SYM_REGION);
}

/* Who gives a step its opcode, and whose data it uses */
static int note_use(void *arg, const struct access *a, const struct access *b)
{
	struct proof *p = arg;
	unsigned s = b->step;

	if (a->when != ACCESS_REQUEST && a->write && uses(b))
		p->needs[s][a->step / 64] |= 1ull << a->step % 64;
	if (b->when == ACCESS_FETCH && a->when != ACCESS_REQUEST && access_writes_opcode(&p->l, a, s))
		p->waker[s] = p->waker[s] == NOBODY ? a->step : SEVERAL;
	return 0;
}

/* And whose data those steps used */
static void close_needs(struct proof *p)
{
	for (unsigned s = 0; s < p->l.d->nsteps; s++)
		for (unsigned k = 0; k < s; k++)
			for (unsigned w = 0; needs(p, s, k) && w < CHAIN_MAX_STEPS / 64; w++)
				p->needs[s][w] |= p->needs[k][w];
}

/* Of several in one queue the first: a queue that has run a later one has run that */
static unsigned only_enabler(const struct proof *p, unsigned s)
{
	const struct chain_step *steps = p->l.d->steps;
	unsigned only = NOBODY;

	for (unsigned e = 0; e < p->l.d->nsteps && !p->l.step[s].head; e++) {
		if (!enables(&p->l, e, s) || is_before(p, node(s, STARTED), node(e, STARTED)))
			continue;
		if (only != NOBODY && steps[e].queue != steps[only].queue)
			return SEVERAL;
		only = only == NOBODY ? e : only;
	}
	return only;
}

static void find_must_run(struct proof *p, unsigned answer)
{
	unsigned n = p->l.d->nsteps;
	bool more = true;

	memset(p->must, 0, sizeof(p->must));
	p->must[answer] = true;
	while (more) {
		more = false;
		for (unsigned s = 0; s < n; s++) {
			unsigned by[2];

			if (!p->must[s])
				continue;
			by[0] = only_enabler(p, s);
			by[1] = p->l.d->steps[s].flags & CHAIN_DORMANT ? p->waker[s] : NOBODY;
			for (unsigned i = 0; i < 2; i++)
				if (by[i] < n && !p->must[by[i]])
					more = p->must[by[i]] = true;
		}
	}
}

/*
 * True if step @s has reached moment @m before a step of its queue starts that must have run. One that has
 * woken another step has done its work: its CQE is no error's.
 */
static bool is_settled(const struct proof *p, unsigned s, enum moment m)
{
	if (p->must[s] && chain_verb_info(p->l.d->steps[s].verb)->data)
		return true;
	for (unsigned t = 0; t < p->l.d->nsteps; t++)
		if (p->must[t] && p->l.d->steps[t].queue == p->l.d->steps[s].queue &&
			is_before(p, node(s, m), node(t, STARTED)))
			return true;
	return false;
}

/* Leaves the WAITs for other queues out that prove nothing, until all others do */
static int leave_doubtful_waits_out(struct proof *p)
{
	const struct layout *l = &p->l;
	bool more = true;

	while (more) {
		more = false;
		for (unsigned s = 0; s < l->d->nsteps; s++) {
			unsigned until = l->d->steps[s].verb == CHAIN_WAIT ? l->step[s].until : NONE;

			if (until == NONE || p->doubtful[s] ||
				l->d->steps[until].queue == l->d->steps[s].queue)
				continue;
			p->doubtful[s] = !is_settled(p, until, COMPLETED);
			more |= p->doubtful[s];
		}
		if (more && make_graph(p))
			return -ENOMEM;
	}
	return 0;
}

/* Steps after an answer do not matter to it; after the end of the reply the slot is armed again */
static int check_answer(struct proof *p, unsigned answer, bool last)
{
	const struct layout *l = &p->l;

	find_must_run(p, answer);
	if (leave_doubtful_waits_out(p))
		return -ENOMEM;
	for (unsigned s = 0; s < (last ? l->d->nsteps : answer); s++)
		if (l->d->steps[s].queue != 0 && chain_verb_info(l->d->steps[s].verb)->data &&
			!is_settled(p, s, LANDED))
			return layout_refuse(&p->l, FAILURE_HIDDEN, .at = layout_at(l, s),
				.other = layout_at(l, answer),
				.name = l->d->queues[l->d->steps[s].queue].name);
	return 0;
}

static bool is_outside(const struct proof *p, const struct chain_place *place)
{
	return place->kind == CHAIN_AT_SLOT ||
	       (place->kind == CHAIN_AT_REGION && !(p->l.d->loop && place->index == p->l.d->shared));
}

/* True if it changes what others see: a region, or the client's slot */
static bool has_effect(const struct proof *p, const struct chain_step *st)
{
	const struct chain_verb_info *v = chain_verb_info(st->verb);

	if (v->remote && st->verb != CHAIN_READ && is_outside(p, &st->remote))
		return true;
	for (unsigned i = 0; v->scatters && i < CHAIN_MAX_SGE && st->local[i].kind != CHAIN_AT_NONE; i++)
		if (is_outside(p, &st->local[i]))
			return true;
	return false;
}

/* Step @s moves data in another queue of code, and step @t uses them */
static bool feeds(const struct proof *p, unsigned s, unsigned t)
{
	const struct chain_step *steps = p->l.d->steps;

	return steps[s].queue != 0 && steps[s].queue != steps[t].queue &&
	       chain_verb_info(steps[s].verb)->data && needs(p, t, s);
}

/* Step @t does something though step @s may have failed, whose data it uses. The reply has the queue that
 * reaches the client, so that the two cannot come into one */
static int refuse_effect(const struct proof *p, unsigned s, unsigned t)
{
	const struct layout *l = &p->l;
	const struct chain_step *steps = l->d->steps;
	const uint8_t of = steps[s].queue;
	const unsigned waker = p->waker[t];

	if (steps[t].queue != 0)
		return layout_refuse(l, FAILURE_HEEDLESS, .at = layout_at(l, s), .other = layout_at(l, t),
			.name = l->d->queues[of].name);
	if (waker < l->d->nsteps && steps[waker].queue != of)
		return layout_refuse(l, FAILURE_ELSEWHERE, .at = layout_at(l, s), .other = layout_at(l, t),
			.name = l->d->queues[steps[waker].queue].name);
	return layout_refuse(l, FAILURE_UNGUARDED, .at = layout_at(l, s), .other = layout_at(l, t),
		.name = l->d->queues[of].name);
}

/* Step @t does nothing if a step has failed in another queue whose data it uses */
static int check_effect(struct proof *p, unsigned t)
{
	const struct layout *l = &p->l;
	unsigned s = 0;

	while (s < l->d->nsteps && !feeds(p, s, t))
		s++;
	if (s == l->d->nsteps)
		return 0;
	if (make_graph(p))
		return -ENOMEM;
	find_must_run(p, t);
	if (leave_doubtful_waits_out(p))
		return -ENOMEM;
	for (; s < l->d->nsteps; s++)
		if (feeds(p, s, t) && !is_settled(p, s, LANDED))
			return refuse_effect(p, s, t);
	return 0;
}

/* The reply's own errors: the client's connection has failed then, and with it whatever came after */
static int check_errors(struct proof *p, unsigned last)
{
	int r = 0;

	for (unsigned s = 0; s < p->l.d->nsteps; s++)
		p->waker[s] = NOBODY;
	access_conflicts(&p->list, note_use, p);
	close_needs(p);
	for (unsigned t = 0; t < p->l.d->nsteps && !r; t++) {
		const struct chain_step *st = &p->l.d->steps[t];

		memset(p->doubtful, 0, sizeof(p->doubtful));
		if (layout_answers(&p->l, t) || t == last) {
			r = make_graph(p);
			if (!r)
				r = check_answer(p, t, t == last);
		} else if (has_effect(p, st)) {
			r = check_effect(p, t);
		}
	}
	return r;
}

/* ----------------------------------------------------------------------------------------- */

static int check(struct proof *p)
{
	unsigned last = NONE;
	int r = prepare(p);

	if (!r)
		r = make_graph(p);
	for (unsigned s = 0; s < p->l.d->nsteps; s++)
		if (p->l.d->steps[s].queue == 0)
			last = s;
	if (!r)
		r = check_enables(p);
	if (!r)
		r = check_accesses(p);
	if (!r)
		r = check_end(p, last);
	return r ? r : check_errors(p, last);
}

static void free_proof(struct proof **p)
{
	if (!*p)
		return;
	free((*p)->edges);
	free((*p)->after);
	access_free(&(*p)->list);
	free(*p);
}

int chain_check_order(const struct chain_desc *d, struct chain_error *err)
{
	__attribute__((cleanup(free_proof))) struct proof *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->l.err = err;
	*err = (struct chain_error){0};
	if (layout_make(&p->l, d) || layout_check_flow(&p->l))
		return CHAIN_REFUSED;
	return check(p);
}
