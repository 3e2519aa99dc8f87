/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/schedule/loop-order.h"

#include "reddnd/chain/schedule/ordered.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NONE = CHAIN_MAX_STEPS };

/* More than a region has, and sums of it fit */
static const uint64_t ANY_LENGTH = 1ull << 48;

struct loop_order {
	struct chain_desc d; /* first: what is freed */
	struct ordered order;
};

struct orderer {
	const struct chain_desc *d;
	struct loop_order *out;
	unsigned at[CHAIN_MAX_STEPS]; /* in the output, of a step of the input */
	bool moves[CHAIN_MAX_STEPS]
		  [CHAIN_MAX_SGE + 1]; /* the address of that place is patched; the last: remote */
	bool stretches[CHAIN_MAX_STEPS][CHAIN_MAX_SGE]; /* the length of that segment is patched */
	unsigned used;
	unsigned known;   /* steps of the input that are over, known by a WAIT: the first so many */
	unsigned fenced;  /* READs and atomics among the first so many have landed */
	unsigned settled; /* patches by the first so many had landed when the last SEND_EN started */
	unsigned enable;  /* the last SEND_EN, in the output; NONE */
	bool full;
};

/* ---- who touches what ------------------------------------------------------------------------- */

struct touch {
	const struct chain_place *p;
	uint64_t len;
	bool write, atomic, remote, anywhere;
};

static const struct chain_verb_info *verb(const struct chain_step *st)
{
	return chain_verb_info(st->verb);
}

static unsigned touches(const struct orderer *o, unsigned s, struct touch t[CHAIN_MAX_SGE + 1])
{
	const struct chain_step *st = &o->d->steps[s];
	uint64_t total = 0;
	unsigned n = 0;

	for (; n < CHAIN_MAX_SGE && st->local[n].kind != CHAIN_AT_NONE; n++) {
		t[n] = (struct touch){.p = &st->local[n],
			.len = o->stretches[s][n] ? ANY_LENGTH : st->local[n].len,
			.write = verb(st)->scatters,
			.anywhere = o->moves[s][n]};
		total += t[n].len;
	}
	if (verb(st)->remote)
		t[n++] = (struct touch){.p = &st->remote,
			.len = chain_remote_bytes(verb(st), total),
			.write = st->verb != CHAIN_READ,
			.atomic = verb(st)->atomic_bytes,
			.remote = true,
			.anywhere = o->moves[s][CHAIN_MAX_SGE]};
	return n;
}

static bool same_bytes(const struct touch *a, const struct touch *b)
{
	if (a->p->kind != b->p->kind)
		return false;
	if (a->p->kind == CHAIN_AT_REGION) {
		if (a->p->index != b->p->index)
			return false;
		if (a->anywhere || b->anywhere)
			return true;
	} else if (a->p->kind == CHAIN_AT_FIELD) {
		if (strcmp(a->p->name, b->p->name) != 0 || a->p->field != b->p->field ||
			a->p->sge != b->p->sge)
			return false;
	} else if (strcmp(a->p->name, b->p->name) != 0) {
		return false;
	}
	return a->p->from < b->p->from + b->len && b->p->from < a->p->from + a->len;
}

/* Whether @b must not start before @a has landed; lap-check.h will ask the same of the ring */
static bool needs(const struct orderer *o, unsigned a, unsigned b)
{
	struct touch x[CHAIN_MAX_SGE + 1], y[CHAIN_MAX_SGE + 1];
	unsigned n = touches(o, a, x), m = touches(o, b, y);

	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < m; k++) {
			bool posted = x[i].remote && y[k].remote && x[i].write && !x[i].atomic;

			if ((x[i].write || y[k].write) && !(x[i].atomic && y[k].atomic) && !posted &&
				same_bytes(&x[i], &y[k]))
				return true;
		}
	return false;
}

static bool patches(const struct orderer *o, unsigned a, unsigned b)
{
	struct touch x[CHAIN_MAX_SGE + 1];
	unsigned n = touches(o, a, x);
	const char *label = o->d->steps[b].label;

	for (unsigned i = 0; i < n && label; i++)
		if (x[i].write && x[i].p->kind == CHAIN_AT_FIELD && strcmp(x[i].p->name, label) == 0)
			return true;
	return false;
}

static void note_moves(struct orderer *o)
{
	for (unsigned s = 0; s < o->d->nsteps; s++) {
		struct touch x[CHAIN_MAX_SGE + 1];
		unsigned n = touches(o, s, x);

		for (unsigned i = 0; i < n; i++) {
			const struct chain_place *p = x[i].p;

			for (unsigned t = 0; t < o->d->nsteps && x[i].write && p->kind == CHAIN_AT_FIELD;
				t++) {
				const char *label = o->d->steps[t].label;

				if (!label || strcmp(p->name, label) != 0)
					continue;
				if (p->field == CHAIN_F_REMOTE_ADDR)
					o->moves[t][CHAIN_MAX_SGE] = true;
				else if (p->field == CHAIN_F_LOCAL_ADDR)
					o->moves[t][p->sge] = true;
				else if (p->field == CHAIN_F_LOCAL_LEN)
					o->stretches[t][p->sge] = true;
			}
		}
	}
}

/* ---- barriers ----------------------------------------------------------------------------------- */

static struct chain_step *put(struct orderer *o, const struct chain_step *st)
{
	if (o->used == CHAIN_MAX_STEPS) {
		o->full = true;
		o->used--;
	}
	o->out->order.steps[o->used] = *st;
	return &o->out->order.steps[o->used++];
}

static void wait_for(struct orderer *o, unsigned s, unsigned line)
{
	o->out->order.steps[o->at[s]].flags |= CHAIN_SIGNALLED;
	put(o, &(struct chain_step){.queue = o->d->steps[s].queue,
		       .verb = CHAIN_WAIT,
		       .until = ordered_label(&o->out->order, o->at[s]),
		       .line = line});
	o->known = s + 1;
	if (o->fenced < o->known)
		o->fenced = o->known;
}

/* Reaches through the next one, which the last of an iteration finds at the head of the next */
static struct chain_step *enable(struct orderer *o, unsigned line)
{
	uint8_t queue = o->d->steps[0].queue;
	struct chain_step *st = put(o, &(struct chain_step){.queue = queue,
					       .verb = CHAIN_SEND_EN,
					       .target = queue,
					       .upto = CHAIN_UPTO_STEP,
					       .line = line});
	unsigned i = (unsigned)(st - o->out->order.steps);

	ordered_label(&o->out->order, i);
	if (o->enable != NONE)
		o->out->order.steps[o->enable].through = st->label;
	o->enable = i;
	return st;
}

/*
 * The last step before @s whose patch of @s has to be waited for, NONE if there is none; then of what comes
 * later as well, since one SEND_EN reaches to where the next is needed.
 */
static unsigned last_patch(const struct orderer *o, unsigned s)
{
	unsigned last = NONE;

	for (unsigned k = o->settled; k < s; k++)
		if (patches(o, k, s))
			last = k;
	for (unsigned t = s + 1; last != NONE && t < o->d->nsteps; t++)
		for (unsigned k = last + 1; k < s; k++)
			if (patches(o, k, t))
				last = k;
	return last;
}

static void place(struct orderer *o, unsigned s)
{
	const struct chain_step *st = &o->d->steps[s];
	unsigned fetch = last_patch(o, s), wait = NONE;
	bool fence = false;

	for (unsigned k = o->known; k < s; k++)
		if (!verb(&o->d->steps[k])->scatters && needs(o, k, s))
			wait = k;
	if (fetch != NONE && (wait == NONE || wait < fetch))
		wait = fetch;
	if (wait != NONE && wait >= o->known) {
		wait_for(o, wait, st->line);
		ordered_explain(&o->out->order, &o->out->order.steps[o->used - 1],
			"\"%s\" needs what \"%s\" does", ordered_name(st), ordered_name(&o->d->steps[wait]));
	}
	if (fetch != NONE) {
		ordered_explain(&o->out->order, enable(o, st->line),
			"\"%s\" is patched and must not be fetched before", ordered_name(st));
		o->settled = o->known;
	}
	for (unsigned k = o->fenced; !fence && k < s; k++)
		fence = verb(&o->d->steps[k])->scatters && needs(o, k, s);
	put(o, st);
	o->at[s] = o->used - 1;
	if (fence) {
		o->out->order.steps[o->at[s]].flags |= CHAIN_FENCE;
		o->fenced = s;
	}
}

static int order(struct orderer *o, struct chain_error *err)
{
	unsigned n = o->d->nsteps, last = 0;

	for (unsigned s = 0; s + 1 < n; s++) {
		place(o, s);
		if (verb(&o->d->steps[s])->data)
			last = s;
	}
	if (last == 0)
		return CHAIN_REFUSE(err, LOOP_IDLE);
	wait_for(o, last, o->d->steps[n - 1].line);
	ordered_explain(&o->out->order, &o->out->order.steps[o->used - 1], "the iteration is over with that");
	ordered_explain(&o->out->order, enable(o, o->d->steps[n - 1].line), "the next iteration");
	for (unsigned i = 0; i < o->used; i++)
		if (o->out->order.steps[i].verb == CHAIN_SEND_EN) {
			o->out->order.steps[o->enable].through = o->out->order.steps[i].label;
			break;
		}
	put(o, &o->d->steps[n - 1]);
	if (o->full)
		return CHAIN_REFUSE(err, BARRIERS, .number = {n, CHAIN_MAX_STEPS});
	return 0;
}

int chain_loop_order(const struct chain_desc *d, struct chain_desc **out, struct chain_error *err)
{
	struct orderer *o = calloc(1, sizeof(*o));
	int r = -ENOMEM;

	*err = (struct chain_error){0};
	if (!o)
		return -ENOMEM;
	o->d = d;
	o->enable = NONE;
	o->out = calloc(1, sizeof(*o->out));
	if (o->out) {
		note_moves(o);
		r = order(o, err);
		o->out->d = *d;
		o->out->d.steps = o->out->order.steps;
		o->out->d.nsteps = o->used;
	}
	if (r)
		free(o->out);
	else
		*out = &o->out->d;
	free(o);
	return r;
}

void chain_loop_order_free(struct chain_desc *d)
{
	free(d); /* the first member of struct loop_order */
}
