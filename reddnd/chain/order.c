/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/order.h"

#include "reddnd/chain/layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Moments of a step; the graph's edges mean "not later than" */
enum moment {
	ENABLED,   /* earliest fetch */
	STARTED,   /* fetched; nothing of its work done */
	LANDED,    /* its memory effects are there */
	COMPLETED, /* and so are those of all before it: its CQE, if it is signalled */
	MOMENTS
};

enum {
	REQUEST = CHAIN_MAX_STEPS * MOMENTS, /* the moment the request's bytes are in memory */
	NODES,
	MAX_EDGES = CHAIN_MAX_STEPS * 16,
	MAX_ACCESSES = CHAIN_MAX_STEPS * (CHAIN_MAX_SGE + 2) + CHAIN_MAX_RECV_SGE,
};

struct edge {
	uint16_t to;
	int next; /* of the same node, -1: last */
};

/** Bytes of the instance that someone touches between two moments. */
struct access {
	struct layout_range r;
	uint16_t from, until; /* nodes */
	uint16_t step;        /* LAYOUT_NONE: the request */
	bool write, atomic, fetch;
};

struct proof {
	struct layout l;
	int first[NODES];
	struct edge *edges;
	unsigned nedges, max_edges;
	struct access accesses[MAX_ACCESSES];
	unsigned naccesses;
	uint16_t queue[NODES]; /* work list of a search */
	bool seen[NODES];
	bool nomem;
};

static unsigned node(unsigned step, enum moment m)
{
	return step * MOMENTS + m;
}

static void edge(struct proof *p, unsigned from, unsigned to)
{
	if (p->nedges == p->max_edges) {
		unsigned n = p->max_edges ? 2 * p->max_edges : MAX_EDGES;
		struct edge *more = realloc(p->edges, n * sizeof *more);

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

/* Marks what is not earlier than @from in p->seen */
static void search(struct proof *p, unsigned from)
{
	unsigned head = 0, tail = 0;

	memset(p->seen, 0, sizeof p->seen);
	p->seen[from] = true;
	p->queue[tail++] = (uint16_t)from;
	while (head < tail)
		for (int e = p->first[p->queue[head++]]; e >= 0; e = p->edges[e].next)
			if (!p->seen[p->edges[e].to]) {
				p->seen[p->edges[e].to] = true;
				p->queue[tail++] = p->edges[e].to;
			}
}

static uint32_t end_of(const struct layout *l, unsigned s)
{
	return (uint32_t)l->step[s].at + l->step[s].wqebbs;
}

/* The SEND_EN that lets step @s be fetched; LAYOUT_NONE when the previous instance did */
static unsigned enabler(const struct layout *l, unsigned s)
{
	unsigned best = LAYOUT_NONE;

	for (unsigned e = 0; e < l->d->nsteps; e++) {
		const struct chain_step *st = &l->d->steps[e];

		if (st->verb != CHAIN_SEND_EN || st->target != l->d->steps[s].queue ||
			l->step[e].enables < end_of(l, s))
			continue;
		if (best == LAYOUT_NONE || l->step[e].enables < l->step[best].enables)
			best = e;
	}
	return l->step[s].head ? LAYOUT_NONE : best;
}

static void add_edges(struct proof *p)
{
	const struct layout *l = &p->l;
	unsigned last[CHAIN_MAX_QUEUES];

	for (unsigned q = 0; q < CHAIN_MAX_QUEUES; q++)
		last[q] = LAYOUT_NONE;
	for (unsigned n = 0; n < NODES; n++)
		p->first[n] = -1;
	for (unsigned s = 0; s < l->d->nsteps; s++) {
		const struct chain_step *st = &l->d->steps[s];
		unsigned before = last[st->queue], by = enabler(l, s);

		last[st->queue] = s;
		for (unsigned m = ENABLED; m < COMPLETED; m++)
			edge(p, node(s, m), node(s, m + 1));
		if (by != LAYOUT_NONE)
			edge(p, node(by, STARTED), node(s, ENABLED));
		if (before != LAYOUT_NONE) {
			edge(p, node(before, STARTED), node(s, STARTED));
			edge(p, node(before, COMPLETED), node(s, COMPLETED));
			if (l->d->steps[before].verb == CHAIN_WAIT)
				edge(p, node(before, LANDED), node(s, STARTED));
		}
		if (st->verb == CHAIN_WAIT)
			edge(p, l->step[s].until == LAYOUT_NONE ? REQUEST : node(l->step[s].until, COMPLETED),
				node(s, LANDED));
		/* The WQE after a fence starts after the fenced one: only the stretch since the last fence counts */
		for (unsigned k = s; st->flags & CHAIN_FENCE && k-- > 0;) {
			if (l->d->steps[k].queue != st->queue)
				continue;
			if (chain_verb_info(l->d->steps[k].verb)->scatters)
				edge(p, node(k, LANDED), node(s, STARTED));
			if (l->d->steps[k].flags & CHAIN_FENCE)
				break;
		}
	}
}

static void add_access(struct proof *p, struct access a)
{
	if (a.r.sym == CHAIN_SYM_QUEUE || a.r.sym == CHAIN_SYM_SCRATCH)
		p->accesses[p->naccesses++] = a;
}

static struct layout_range place(struct proof *p, const struct chain_place *at, uint32_t len)
{
	struct layout_range r = {.sym = CHAIN_SYM_REGION};

	layout_resolve(&p->l, at, len, "", &r);
	return r;
}

static void add_accesses(struct proof *p)
{
	struct layout *l = &p->l;

	for (unsigned s = 0; s < l->d->nsteps; s++) {
		const struct chain_step *st = &l->d->steps[s];
		const struct chain_verb_info *v = chain_verb_info(st->verb);
		struct access a = {
			.r = {.sym = CHAIN_SYM_QUEUE,
				.index = st->queue,
				.offset = (uint64_t)l->step[s].at * CHAIN_WQEBB,
				.len = (uint32_t)l->step[s].wqebbs * CHAIN_WQEBB},
			.from = (uint16_t)node(s, ENABLED),
			.until = (uint16_t)node(s, STARTED),
			.step = (uint16_t)s,
			.fetch = true,
		};

		add_access(p, a);
		a.fetch = false;
		a.from = (uint16_t)node(s, STARTED);
		a.until = (uint16_t)node(s, LANDED);
		a.write = v->scatters;
		for (unsigned i = 0; i < l->step[s].nsge; i++) {
			a.r = place(p, &st->local[i], st->local[i].len);
			add_access(p, a);
		}
		if (!v->remote)
			continue;
		a.write = st->verb != CHAIN_READ;
		a.atomic = v->atomic_bytes;
		a.r = place(p, &st->remote, layout_step_bytes(l, s));
		add_access(p, a);
	}
	for (unsigned i = 0; i < l->d->nargs; i++)
		add_access(p, (struct access){
				      .r = place(p, &l->d->args[i], l->d->args[i].len),
				      .from = REQUEST,
				      .until = REQUEST,
				      .step = LAYOUT_NONE,
				      .write = true,
			      });
}

static bool conflict(const struct access *a, const struct access *b)
{
	if (a->step == b->step && a->step != LAYOUT_NONE)
		return false;
	return (a->write || b->write) && !(a->atomic && b->atomic) && layout_overlap(&a->r, &b->r);
}

static const char *party(const struct proof *p, const struct access *a)
{
	return a->step == LAYOUT_NONE ? "the request" : layout_step_name(&p->l, a->step);
}

static int complain(struct proof *p, const struct access *a, const struct access *b)
{
	const char *how;

	if (a->fetch) { /* the patch first */
		const struct access *t = a;

		a = b;
		b = t;
	}
	if (b->fetch)
		return layout_refuse(&p->l, "%s writes into %s, which may have been fetched by then",
			party(p, a), party(p, b));
	how = a->write && b->write ? "both write" : "one reads and the other writes";
	return layout_refuse(
		&p->l, "%s and %s are not ordered, but %s the same bytes", party(p, a), party(p, b), how);
}

static int check_accesses(struct proof *p)
{
	for (unsigned i = 0; i < p->naccesses; i++) {
		const struct access *a = &p->accesses[i];
		bool after[MAX_ACCESSES];
		bool any = false;

		for (unsigned j = 0; j < p->naccesses; j++)
			any |= j != i && conflict(a, &p->accesses[j]);
		if (!any)
			continue;
		search(p, a->until);
		for (unsigned j = 0; j < p->naccesses; j++)
			after[j] = p->seen[p->accesses[j].from];
		for (unsigned j = i + 1; j < p->naccesses; j++) {
			const struct access *b = &p->accesses[j];

			if (after[j] || !conflict(a, b))
				continue;
			search(p, b->until);
			if (!p->seen[a->from])
				return complain(p, a, b);
		}
	}
	return 0;
}

static int check_enables(struct proof *p)
{
	const struct layout *l = &p->l;

	for (unsigned a = 0; a < l->d->nsteps; a++) {
		if (l->d->steps[a].verb != CHAIN_SEND_EN)
			continue;
		search(p, node(a, STARTED));
		for (unsigned b = 0; b < l->d->nsteps; b++)
			if (l->d->steps[b].verb == CHAIN_SEND_EN &&
				l->d->steps[b].target == l->d->steps[a].target &&
				l->step[b].enables > l->step[a].enables && !p->seen[node(b, STARTED)])
				return layout_refuse(&p->l,
					"%s and %s enable queue \"%s\", and either may be first",
					layout_step_name(l, a), layout_step_name(l, b),
					l->d->queues[l->d->steps[a].target].name);
	}
	return 0;
}

/* What moves no data is over when it starts, except a WAIT */
static int check_end(struct proof *p)
{
	const struct layout *l = &p->l;
	unsigned last = LAYOUT_NONE;

	for (unsigned s = 0; s < l->d->nsteps; s++)
		if (l->d->steps[s].queue == 0)
			last = s;
	if (!(l->d->steps[last].flags & CHAIN_SIGNALLED))
		return layout_refuse(
			&p->l, "%s ends the reply and must be signalled", layout_step_name(l, last));
	for (unsigned s = 0; s < l->d->nsteps; s++) {
		enum chain_verb verb = l->d->steps[s].verb;
		bool over = !chain_verb_info(verb)->data && verb != CHAIN_WAIT;

		search(p, node(s, over ? STARTED : LANDED));
		if (!p->seen[node(last, COMPLETED)])
			return layout_refuse(&p->l, "%s may still be at work when %s has completed",
				layout_step_name(l, s), layout_step_name(l, last));
	}
	return 0;
}

static void free_proof(struct proof **p)
{
	if (*p)
		free((*p)->edges);
	free(*p);
}

int chain_check_order(const struct chain_desc *d, char err[CHAIN_ERR])
{
	__attribute__((cleanup(free_proof))) struct proof *p = calloc(1, sizeof *p);

	if (!p)
		return -ENOMEM;
	p->l.err = err;
	err[0] = '\0';
	if (layout_make(&p->l, d) || layout_check_flow(&p->l))
		return CHAIN_REFUSED;
	add_edges(p);
	if (p->nomem)
		return -ENOMEM;
	add_accesses(p);
	return check_enables(p) || check_accesses(p) || check_end(p) ? CHAIN_REFUSED : 0;
}
