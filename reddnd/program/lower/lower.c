/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/program/lower/lower.h"

#include "mlx5/wqe.h"
#include "reddnd/program/lower/ir.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- segments --------------------------------------------------------------------------------- */

struct out {
	struct lower *l;
	struct lowered *result;
	uint8_t queue[LOWER_QUEUES]; /* of the description, by that of the ops */
	const struct step *step;
	struct chain_step *to;
	unsigned n;                 /* segments so far */
	struct chain_place *places; /* of the request */
	unsigned nplaces, arg_bytes;
	bool full;
};

static const struct word *root(const struct word *w, uint32_t *at)
{
	*at += w->in ? w->at : 0;
	return w->in ? w->in : w;
}

/* The segment of @s in which element @sge of its list begins */
static uint8_t first_segment(const struct step *s, unsigned sge)
{
	unsigned n = 0;

	for (unsigned i = 0; i < sge + s->skips && i < s->nlocal; i++)
		n += lower_segments(&s->local[i]);
	return (uint8_t)n;
}

static struct chain_place plain(const struct lower *l, const struct place *p)
{
	struct chain_place to = {.kind = p->kind,
		.from = p->from,
		.len = p->len,
		.max = p->max,
		.least = p->least,
		.in_bucket = p->in_bucket};
	uint32_t at = p->from;

	switch ((enum chain_place_kind)p->kind) {
	case CHAIN_AT_REGION:
		to.index = p->region;
		break;
	case CHAIN_AT_SCRATCH:
		if (p->word->shared) {
			to.kind = CHAIN_AT_REGION;
			to.index = (uint8_t)l->p->nregions;
			to.from = p->word->at + p->from;
			break;
		}
		to.name = root(p->word, &at)->name;
		to.from = at;
		break;
	case CHAIN_AT_FIELD:
		to.name = p->step->label;
		to.field = p->field;
		to.sge = first_segment(p->step, p->sge);
		break;
	case CHAIN_AT_SLOT:
	case CHAIN_AT_LENGTH:
	case CHAIN_AT_NONE:
		break;
	}
	return to;
}

static void add_segment(struct out *o, const struct place *p)
{
	if (p->joins)
		o->to->local[o->n - 1].len += p->len;
	else if (o->n == CHAIN_MAX_SGE)
		o->full = true;
	else
		o->to->local[o->n++] = plain(o->l, p);
}

/* Bytes [from, from + len) of a variable lie in its parts */
static void each_part(struct out *o, const struct place *p, void (*f)(struct out *o, const struct place *p))
{
	if (p->kind != CHAIN_AT_SCRATCH || p->word) {
		f(o, p);
		return;
	}
	for (unsigned i = 0; i < p->web->nparts; i++) {
		const struct part *part = &p->web->part[i];
		uint32_t from = p->from > part->first ? p->from : part->first, end = p->from + p->len;

		if (end > (uint32_t)part->first + part->len)
			end = (uint32_t)part->first + part->len;
		if (from < end) {
			struct place bytes = lower_part(part, from, end - from);

			bytes.joins = p->joins;
			f(o, &bytes);
		}
	}
}

static void add_segments(struct out *o, const struct place *p)
{
	if (!p->reversed) {
		each_part(o, p, add_segment);
		return;
	}
	for (uint32_t i = p->len; i-- > 0;) {
		struct place byte = *p;

		byte.from += i;
		byte.len = 1;
		each_part(o, &byte, add_segment);
	}
}

static void set_remote(struct out *o, const struct place *p)
{
	o->to->remote = plain(o->l, p);
}

/* ---- steps ------------------------------------------------------------------------------------ */

/* Its lanes share a word with bytes that others choose, and only a mask keeps them apart */
static bool masked_lanes(const struct step *s)
{
	const struct test *t = s->lanes_of;
	const struct test_word *last = t && t->nwords ? &t->word[t->nwords - 1] : NULL;

	return last && (last->carry || last->twice);
}

static void add_step(struct out *o, const struct step *s)
{
	struct chain_step *to = o->to;

	*to = (struct chain_step){
		.label = s->label,
		.queue = s->in_loop ? 0 : o->queue[s->queue],
		.verb = s->verb,
		.flags = (uint8_t)(s->flags | (masked_lanes(s) ? CHAIN_LANES : 0)),
		.swap = s->swap,
		.compare = s->compare,
		.swap_mask = s->swap_mask,
		.compare_mask = s->compare_mask,
		.add = s->add,
		.boundary = s->boundary,
		.imm = s->imm,
		.line = s->line,
		.publishes = s->publishes,
		.located = s->located,
		.in_bucket = s->in_bucket,
		.extent = s->extent,
	};
	o->step = s;
	o->n = 0;
	o->full = false;
	each_part(o, &s->remote, set_remote);
	for (unsigned i = 0; i < s->nlocal; i++)
		add_segments(o, &s->local[i]);
	if (s->until)
		to->until = s->until->label;
	if (s->through) {
		to->target = o->queue[s->through->queue];
		to->upto = CHAIN_UPTO_STEP;
		to->through = s->through->label;
	}
	if (s == o->l->exit) {
		to->target = 1;
		to->upto = CHAIN_UPTO_END;
	}
	if (o->full)
		lower_refuse(o->l, LIMIT, diag_line(o->l->diag, s->line),
			"this needs more than %d data segments in a work request; move fewer pieces at a "
			"time",
			CHAIN_MAX_SGE);
}

/* Of an instance, or of an iteration */
static void add_list(struct out *o, struct steps *list, struct chain_desc *d, const char *what)
{
	struct lower *l = o->l;
	struct chain_step *steps;
	struct step *s;
	unsigned n = 0;

	TAILQ_FOREACH (s, list, link)
		n++;
	if (n > CHAIN_MAX_STEPS) {
		lower_refuse(l, LIMIT, l->p->pos, "%u work requests, and an %s has at most %d; do less in it",
			n, what, CHAIN_MAX_STEPS);
		return;
	}
	steps = pool_alloc(l->pool, n * sizeof(*steps));
	o->to = steps;
	TAILQ_FOREACH (s, list, link) {
		add_step(o, s);
		o->to++;
	}
	d->steps = steps;
	d->nsteps = n;
}

static void add_steps(struct out *o)
{
	struct lower *l = o->l;
	struct step *s, *last = NULL;

	TAILQ_FOREACH (s, &l->steps, link)
		if (s->queue == 0)
			last = s;
	last->flags |= CHAIN_SIGNALLED;
	add_list(o, &l->steps, &o->result->desc, "instance");
	if (l->endless)
		add_list(o, &l->loop, &o->result->loop, "iteration");
	TAILQ_FOREACH (s, &l->steps, link)
		if (s->remote.kind == CHAIN_AT_SLOT) {
			uint32_t end = s->remote.from;

			for (unsigned i = 0; i < s->nlocal; i++)
				end += s->local[i].max ? s->local[i].max : s->local[i].len;
			if (end > o->result->reply_max)
				o->result->reply_max = end;
		}
}

static void add_queues(struct out *o)
{
	struct lower *l = o->l;
	struct chain_queue_desc *queues = pool_alloc(l->pool, LOWER_QUEUES * sizeof(*queues));
	unsigned n = 1;

	queues[0].name = "reply";
	for (unsigned q = 1; q <= l->p->nqueues + 1; q++)
		if (l->used[q]) {
			o->queue[q] = (uint8_t)n;
			queues[n++].name = q <= l->p->nqueues
						   ? pool_printf(l->pool, "%s", l->p->queue[q - 1]->name)
						   : "code";
		}
	if (n == 1) /* nothing to be done but to answer */
		queues[n++].name = "code";
	if (l->endless) {
		o->queue[QUEUE_CALL] = (uint8_t)n;
		queues[n++].name = "call";
	}
	o->result->desc.queues = queues;
	o->result->desc.nqueues = n;
}

static void add_words(struct out *o)
{
	struct lower *l = o->l;
	struct chain_word *words = pool_alloc(l->pool, (l->nwords + 1) * sizeof(*words));
	struct lowered *r = o->result;
	unsigned n = 0, in_loop;

	for (struct word *w = l->words; w; w = w->next)
		if (w->in)
			memcpy(w->in->init + w->at, w->init, w->size);
	for (struct word *w = l->words; w; w = w->next)
		if (!w->in && !w->shared && !w->in_loop)
			words[n++] = (struct chain_word){.name = w->name, .size = w->size, .init = w->init};
	in_loop = n;
	for (struct word *w = l->words; w; w = w->next)
		if (!w->in && !w->shared && w->in_loop)
			words[n++] = (struct chain_word){.name = w->name, .size = w->size, .init = w->init};
	if (in_loop > CHAIN_MAX_WORDS || n - in_loop > CHAIN_MAX_WORDS)
		lower_refuse(l, LIMIT, l->p->pos,
			"%u words of scratch, and an instance has at most %d; do less per request", n,
			CHAIN_MAX_WORDS);
	r->desc.words = words;
	r->desc.nwords = in_loop;
	r->loop.words = words + in_loop;
	r->loop.nwords = n - in_loop;
	r->shared_init = pool_alloc(l->pool, l->shared_bytes + WORD);
	r->desc.shared_init = r->shared_init;
	r->shared_bytes = (l->shared_bytes + WORD - 1) / WORD * WORD;
	for (struct word *w = l->words; w; w = w->next)
		if (w->shared)
			memcpy(r->shared_init + w->at, w->init, w->size);
}

static struct chain_stored stored_in(const struct program_target *t, const char *region)
{
	for (unsigned i = 0; i < t->nstored; i++)
		if (strcmp(t->stored[i].region, region) == 0)
			return t->stored[i].stored;
	return (struct chain_stored){0};
}

static void add_regions(struct out *o)
{
	struct lower *l = o->l;
	unsigned n = l->p->nregions;
	struct chain_region *r = pool_alloc(l->pool, (n + 1) * sizeof(*r));

	for (unsigned i = 0; i < l->p->nregions; i++)
		r[i] = (struct chain_region){
			.name = pool_printf(l->pool, "%s", l->p->region[i]->name),
			.size = l->p->region[i]->size,
			.flags = (l->p->region[i]->writable ? CHAIN_WRITABLE : 0) |
				 (l->p->region[i]->steered ? CHAIN_STEERED : 0),
			.stored = stored_in(l->target, l->p->region[i]->name),
			.line = l->p->region[i]->pos.line,
		};
	if (l->endless)
		r[n++] = (struct chain_region){
			.name = "shared", .size = o->result->shared_bytes, .flags = CHAIN_WRITABLE};
	o->result->desc.regions = o->result->loop.regions = r;
	o->result->desc.nregions = o->result->loop.nregions = n;
}

/* @next is what follows @p in a word */
static bool goes_on(const struct chain_place *p, const struct chain_place *next)
{
	return p->kind == CHAIN_AT_SCRATCH && next->kind == CHAIN_AT_SCRATCH && p->name == next->name &&
	       p->from + p->len == next->from;
}

/* The next bytes of the request: of @u's those that go to @to, which begin @from bytes into its place */
static void add_arg(struct out *o, const struct arg_use *u, const struct place *to, uint32_t from)
{
	struct chain_place p = plain(o->l, to), *last = o->nplaces ? &o->places[o->nplaces - 1] : NULL;
	struct lowered *r = o->result;

	p.line = u->arg->pos.line;
	if (last && goes_on(last, &p))
		last->len += p.len;
	else
		o->places[o->nplaces++] = p;
	r->pieces[r->npieces++] = (struct program_piece){.arg = (uint16_t)u->arg->index,
		.first = (uint16_t)(u->reversed ? u->first + u->len - from - to->len : u->first + from),
		.len = (uint16_t)to->len,
		.reversed = u->reversed,
		.inverted = u->inverted};
	o->arg_bytes += to->len;
}

static void add_use(struct out *o, const struct arg_use *u)
{
	if (u->to.kind != CHAIN_AT_SCRATCH || u->to.word) {
		add_arg(o, u, &u->to, 0);
		return;
	}
	for (unsigned i = 0; i < u->to.web->nparts; i++) { /* of a variable */
		const struct part *part = &u->to.web->part[i];
		const uint32_t from = part->first > u->to.from ? part->first : u->to.from,
			       end = u->to.from + u->to.len,
			       until = part->first + part->len < end ? part->first + part->len : end;

		if (from < until) {
			struct place to = lower_part(part, from, until - from);

			add_arg(o, u, &to, from - u->to.from);
		}
	}
}

static void add_args(struct out *o)
{
	struct lower *l = o->l;
	unsigned max = 0;

	for (struct arg_use *u = l->uses; u; u = u->next)
		max += MAX_PARTS;
	o->places = pool_alloc(l->pool, (max + 1) * sizeof(*o->places));
	o->result->pieces = pool_alloc(l->pool, (max + 1) * sizeof(*o->result->pieces));
	for (unsigned a = 0; a < l->p->nargs; a++)
		for (struct arg_use *u = l->uses; u; u = u->next)
			if (u->arg == l->p->arg[a])
				add_use(o, u);
	assert(o->nplaces <= lower_max_places(l) && "lower_share_args() has seen to it");
	assert(o->arg_bytes <= CHAIN_MAX_ARG && "the front end has counted them");
	o->result->desc.args = o->places;
	o->result->desc.nargs = o->nplaces;
}

/* ---- all of it -------------------------------------------------------------------------------- */

static bool answers(struct lower *l)
{
	struct step *s;

	TAILQ_FOREACH (s, &l->steps, link)
		if (s->queue == 0)
			return true;
	return lower_refuse(
		l, ANSWER, l->p->pos, "this program never answers; end it with a `write_imm` to the slot");
}

static void lower_all(struct lower *l)
{
	lower_flatten(l);
	if (diag_errors(l->diag) || !lower_check_loop(l))
		return;
	lower_check_answers(l);
	if (diag_errors(l->diag))
		return;
	l->by_hand |= l->endless != NULL; /* in the order of the text */
	lower_webs(l);
	if (diag_errors(l->diag))
		return;
	for (unsigned i = 0; i < l->nops; i++) {
		struct op *op = &l->op[i];

		if (op->verb)
			lower_verb_begin(l, op);
		else
			op->test->load = lower_step(l, op, CHAIN_READ, "load");
	}
	for (unsigned i = 0; i < l->nops; i++) {
		if (l->endless && !l->gate && l->op[i].part == PART_AFTER)
			lower_call(l);
		l->part = l->op[i].part;
		if (l->op[i].verb)
			lower_verb(l, &l->op[i]);
		else
			lower_test_begin(l, &l->op[i]);
		if (lower_is_too_long(l))
			return;
	}
	if (diag_errors(l->diag) || !answers(l))
		return;
	lower_tests(l);
	if (diag_errors(l->diag))
		return;
	lower_schedule(l);
	lower_pair_lanes(l);
	if (l->dormant_end && !l->endless)
		lower_tell(l);
	lower_finish_tests(l);
	if (l->endless)
		lower_head(l);
	l->part = PART_BEFORE;
	lower_share_args(l);
}

static void emit(struct lower *l, struct lowered *result)
{
	static const struct chain_queue_desc loop_queue = {.name = "loop"};
	struct out o = {.l = l, .result = result};

	result->desc.name = pool_printf(l->pool, "%s", l->p->name);
	result->desc.ignores_index = l->target->ignores_index;
	result->desc.fenced_enables = l->target->fenced_enables;
	result->desc.swapped_old = l->target->swapped_old;
	result->desc.fetch_group = (uint16_t)l->target->fetch_group;
	result->desc.pad_wqebbs = (uint8_t)l->target->pad_wqebbs;
	result->desc.overlap = l->target->overlap;
	if (l->p->payload)
		result->desc.payload = (struct chain_payload){
			.max = l->p->payload->max, .region = (uint8_t)l->p->payload->region->index};
	result->endless = l->endless;
	if (l->endless) {
		result->loop.name = result->desc.name;
		result->loop.ignores_index = result->desc.ignores_index;
		result->loop.swapped_old = result->desc.swapped_old;
		result->loop.fetch_group = result->desc.fetch_group;
		result->loop.queues = &loop_queue;
		result->loop.nqueues = 1;
		result->desc.loop = &result->loop;
		result->desc.shared = (uint8_t)l->p->nregions;
	}
	add_queues(&o);
	add_words(&o);
	add_regions(&o);
	add_steps(&o);
	add_args(&o);
}

int lower_program(const struct ast_program *p, const struct program_target *target, bool dormant_end,
	struct diag *d, struct lowered **out)
{
	struct lower l = {
		.p = p, .target = target, .dormant_end = dormant_end, .diag = d, .pool = pool_new()};
	struct lowered *result;

	*out = NULL;
	if (!l.pool)
		return -ENOMEM;
	result = pool_alloc(l.pool, sizeof(*result));
	result->pool = l.pool;
	TAILQ_INIT(&l.steps);
	TAILQ_INIT(&l.loop);
	l.last_word = &l.words;
	l.last_use = &l.uses;
	l.arg_at = pool_alloc(l.pool, (p->nargs + 1) * sizeof(*l.arg_at));
	lower_all(&l);
	if (!diag_errors(d))
		emit(&l, result);
	if (diag_errors(d)) {
		pool_free(l.pool);
		return PROGRAM_REFUSED;
	}
	*out = result;
	return 0;
}

void lower_free(struct lowered *l)
{
	if (l)
		pool_free(l->pool);
}
