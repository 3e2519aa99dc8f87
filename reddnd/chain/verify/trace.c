/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/verify/trace.h"

#include "mlx5/cqe.h"
#include "mlx5/wqe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { WORD = 8, LENGTH = 3 /* bytes of one, in a locator */, SCRATCH = CHAIN_MAX_QUEUES };

enum source_kind {
	ARMED,   /* byte `at` of queue `step`, or of scratch memory, as it was before the request */
	UNKNOWN, /* or one of several things */
	REQUEST, /* byte `at` of it */
	READ,    /* byte `at` of what step `step` has read in a region */
	COUNT_OF /* byte `at` of the CQE */
};

struct source {
	uint8_t kind; /* enum source_kind */
	uint16_t step;
	uint32_t at;
};

struct trace {
	struct layout *l;
	struct source *queue[CHAIN_MAX_QUEUES], *scratch;
	bool changes[CHAIN_MAX_STEPS]; /* something writes to its opcode or to a length */
	unsigned publish;
	/* By step: its address when it is executed, of which some is written; */
	struct source address[CHAIN_MAX_STEPS][WORD];
	/* of the publish, its operands */
	struct source swap[WORD], compare[WORD];
};

static void free_trace(struct trace **t)
{
	if (!*t)
		return;
	for (unsigned q = 0; q < CHAIN_MAX_QUEUES; q++)
		free((*t)->queue[q]);
	free((*t)->scratch);
	free(*t);
}

/* NULL: not the chain's own memory */
static struct source *sources(struct trace *t, const struct layout_range *r)
{
	if (r->sym == CHAIN_SYM_QUEUE)
		return t->queue[r->index] + r->offset;
	return r->sym == CHAIN_SYM_SCRATCH ? t->scratch + r->offset : NULL;
}

static uint32_t field_at(const struct trace *t, unsigned s, enum chain_field f)
{
	unsigned size;

	return (uint32_t)t->l->step[s].at * CHAIN_WQEBB +
	       (uint32_t)chain_field_at(t->l->d->steps[s].verb, f, 0, &size);
}

static struct source *field(struct trace *t, unsigned s, enum chain_field f)
{
	return t->queue[t->l->d->steps[s].queue] + field_at(t, s, f);
}

/* ---- what steps do ------------------------------------------------------------------------------- */

static void forget(struct trace *t, const struct chain_place *p, uint32_t len)
{
	struct layout_range r = layout_place(t->l, p, len);
	struct source *to = sources(t, &r);

	for (uint32_t i = 0; to && i < len; i++)
		to[i] = (struct source){.kind = UNKNOWN};
}

/* Byte @at of a remote place that is read */
static struct source read_byte(struct trace *t, unsigned s, const struct layout_range *from, uint32_t at)
{
	const struct source *own = sources(t, from);

	if (own)
		return own[at];
	if (from->sym == CHAIN_SYM_CQE)
		return (struct source){.kind = COUNT_OF, .at = (uint32_t)from->offset + at};
	return (struct source){.kind = READ, .step = (uint16_t)s, .at = at};
}

static void copy(struct trace *t, unsigned s)
{
	const struct chain_step *st = &t->l->d->steps[s];
	struct layout_range remote = layout_place(t->l, &st->remote, layout_step_bytes(t->l, s));
	uint32_t at = 0;

	for (unsigned i = 0; i < t->l->step[s].nsge; i++) {
		struct layout_range local = layout_place(t->l, &st->local[i], st->local[i].len);
		struct source *to = sources(t, st->verb == CHAIN_READ ? &local : &remote);

		for (uint32_t k = 0; k < st->local[i].len; k++, at++) {
			if (to && st->verb == CHAIN_READ)
				to[k] = read_byte(t, s, &remote, at);
			else if (to && sources(t, &local))
				to[at] = sources(t, &local)[k];
			else if (to)
				to[at] = (struct source){.kind = UNKNOWN};
		}
	}
}

/* All that it writes is not known */
static void disturb(struct trace *t, unsigned s)
{
	const struct chain_step *st = &t->l->d->steps[s];
	const struct chain_verb_info *v = chain_verb_info(st->verb);

	for (unsigned i = 0; v->scatters && i < t->l->step[s].nsge; i++)
		forget(t, &st->local[i], st->local[i].len);
	if (v->remote && st->verb != CHAIN_READ)
		forget(t, &st->remote, layout_step_bytes(t->l, s));
}

static void execute(struct trace *t, unsigned s)
{
	const struct chain_step *st = &t->l->d->steps[s];
	const struct chain_verb_info *v = chain_verb_info(st->verb);

	if (v->remote)
		memcpy(t->address[s], field(t, s, CHAIN_F_REMOTE_ADDR), sizeof(t->address[s]));
	if (s == t->publish) {
		memcpy(t->swap, field(t, s, CHAIN_F_SWAP), sizeof(t->swap));
		memcpy(t->compare, field(t, s, CHAIN_F_COMPARE), sizeof(t->compare));
	}
	if (v->remote && !v->atomic_bytes && !v->calc && !(st->flags & CHAIN_DORMANT) && !t->changes[s])
		copy(t, s);
	else
		disturb(t, s);
}

static void take_request(struct trace *t)
{
	uint32_t at = 0;

	for (unsigned a = 0; a < t->l->d->nargs; a++) {
		const struct chain_place *p = &t->l->d->args[a];
		struct layout_range r = layout_place(t->l, p, p->len);

		for (uint32_t i = 0; i < p->len; i++)
			sources(t, &r)[i] = (struct source){.kind = REQUEST, .at = at++};
	}
}

/* ---- what is written and read -------------------------------------------------------------------- */

/* Calls @f for each place that step @s writes (@writes) or reads in the chain's own memory; stops at what is
 * not 0 */
static int each_place(struct trace *t, unsigned s, bool writes,
	int (*f)(struct trace *t, unsigned s, const struct layout_range *r))
{
	const struct chain_step *st = &t->l->d->steps[s];
	const struct chain_verb_info *v = chain_verb_info(st->verb);
	struct layout_range r;
	int stop = 0;

	for (unsigned i = 0; v->data && v->scatters == writes && !stop && i < t->l->step[s].nsge; i++) {
		r = layout_place(t->l, &st->local[i], st->local[i].len);
		stop = f(t, s, &r);
	}
	if (stop || !v->remote || (writes ? st->verb == CHAIN_READ : !v->scatters))
		return stop;
	r = layout_place(t->l, &st->remote, layout_step_bytes(t->l, s));
	return f(t, s, &r);
}

/* A control segment that is written, or a length: the step does something else than its description */
static int note_change(struct trace *t, unsigned s, const struct layout_range *r)
{
	for (unsigned k = 0; k < t->l->d->nsteps; k++) {
		const struct chain_step *st = &t->l->d->steps[k];
		const struct chain_verb_info *v = chain_verb_info(st->verb);
		struct layout_range part = {.sym = CHAIN_SYM_QUEUE,
			.index = st->queue,
			.offset = (uint64_t)t->l->step[k].at * CHAIN_WQEBB,
			.len = WORD};

		t->changes[k] |= layout_overlap(&part, r);
		for (unsigned i = 0; i < t->l->step[k].nsge; i++) { /* length, key and address */
			part.offset = (uint64_t)t->l->step[k].at * CHAIN_WQEBB + v->sge_at + i * WQE_DS;
			part.len = WQE_DS;
			t->changes[k] |= layout_overlap(&part, r);
		}
	}
	(void)s;
	return 0;
}

static struct layout_range swap_of(const struct trace *t)
{
	return (struct layout_range){.sym = CHAIN_SYM_QUEUE,
		.index = t->l->d->steps[t->publish].queue,
		.offset = field_at(t, t->publish, CHAIN_F_SWAP),
		.len = WORD};
}

static int check_reads(struct trace *t, unsigned s, const struct layout_range *r)
{
	struct layout_range swap = swap_of(t);

	return layout_overlap(&swap, r) ? layout_refuse(t->l, EXTENT_LEAVES, .at = layout_at(t->l, s),
						  .other = layout_at(t->l, t->publish))
					: 0;
}

static int check_writes(struct trace *t, unsigned s, const struct layout_range *r)
{
	const struct chain_place *p = &t->l->d->steps[t->publish].local[0];
	struct layout_range was = layout_place(t->l, p, p->len);

	return s != t->publish && layout_overlap(&was, r)
		       ? layout_refuse(t->l, PUBLISH_KEPT, .at = layout_at(t->l, s),
				 .other = layout_at(t->l, t->publish))
		       : 0;
}

/* An argument arrives in the word that the publish has found, or in its locator */
static int check_args(struct trace *t)
{
	struct layout_range swap = swap_of(t);
	const struct chain_place *was = &t->l->d->steps[t->publish].local[0];
	struct layout_range found = layout_place(t->l, was, was->len);

	for (unsigned a = 0; a < t->l->d->nargs; a++) {
		const struct chain_place *p = &t->l->d->args[a];
		struct layout_range r = layout_place(t->l, p, p->len);

		if (layout_overlap(&swap, &r))
			return layout_refuse(t->l, PUBLISH_LOCATOR, .at = layout_at(t->l, t->publish));
		if (layout_overlap(&found, &r))
			return layout_refuse(t->l, PUBLISH_KEPT,
				.at = {.is_argument = true, .index = (uint16_t)a, .line = p->line},
				.other = layout_at(t->l, t->publish));
	}
	return 0;
}

/* Of scratch memory, as an instance is armed */
static uint8_t armed_byte(const struct layout *l, uint64_t at)
{
	for (unsigned w = 0; w < l->d->nwords; w++)
		if (l->d->words[w].init && at - l->word_at[w] < l->d->words[w].size)
			return l->d->words[w].init[at - l->word_at[w]];
	return 0;
}

/* No locator has all bits set, so that what a publish was to replace is never what it was armed with */
static int check_armed(struct trace *t)
{
	const struct chain_place *p = &t->l->d->steps[t->publish].local[0];
	struct layout_range was = layout_place(t->l, p, p->len);

	for (unsigned i = 0; i < WORD; i++)
		if (armed_byte(t->l, was.offset + i) != 0xff)
			return layout_refuse(t->l, PUBLISH_ARMED, .at = layout_at(t->l, t->publish));
	return 0;
}

/* ---- what has to be ------------------------------------------------------------------------------ */

/* Byte @k of a word in memory is byte 7 - k of an operand */
static const struct source *memory_byte(const struct source operand[WORD], unsigned k)
{
	return &operand[WORD - 1 - k];
}

static bool is(const struct source *s, enum source_kind kind, unsigned step, uint32_t at)
{
	return s->kind == kind && s->step == step && s->at == at;
}

/* Byte @k of a field, in which it is as it was armed */
static bool is_armed(
	const struct trace *t, unsigned s, enum chain_field f, unsigned k, const struct source *is_now)
{
	return is(is_now, ARMED, t->l->d->steps[s].queue, field_at(t, s, f) + k);
}

static int check_locator(struct trace *t)
{
	const struct chain_step *st = &t->l->d->steps[t->publish];
	bool fine = true;

	for (unsigned k = 0; k < WORD; k++)
		fine &= st->extent && k < LENGTH
				? is(memory_byte(t->swap, k), COUNT_OF, 0, CQE_LENGTH + 4 - LENGTH + k)
				: is_armed(
					  t, t->publish, CHAIN_F_SWAP, WORD - 1 - k, memory_byte(t->swap, k));
	return fine ? 0 : layout_refuse(t->l, PUBLISH_LOCATOR, .at = layout_at(t->l, t->publish));
}

/* The READ that has brought the word, and from which byte on of what it has read */
static int find_look(struct trace *t, unsigned *look, uint32_t *from)
{
	const struct source *first = memory_byte(t->compare, 0);

	*look = first->step;
	*from = first->at;
	for (unsigned k = 0; k < WORD; k++)
		if (!is(memory_byte(t->compare, k), READ, first->step, first->at + k))
			return layout_refuse(t->l, PUBLISH_SEEN, .at = layout_at(t->l, t->publish));
	return 0;
}

/* An address is that of the region and the place in it, of which the low bytes may be replaced */
static bool is_same_place(struct trace *t, unsigned look, uint32_t from)
{
	const struct chain_place *read = &t->l->d->steps[look].remote,
				 *replaced = &t->l->d->steps[t->publish].remote;
	bool written = false;

	if (read->index != replaced->index)
		return false;
	for (unsigned k = 0; k < WORD; k++) {
		const struct source *a = &t->address[look][k], *b = &t->address[t->publish][k];
		bool armed = is_armed(t, look, CHAIN_F_REMOTE_ADDR, k, a) &&
			     is_armed(t, t->publish, CHAIN_F_REMOTE_ADDR, k, b);

		written |= !armed;
		if (!armed && (a->kind == UNKNOWN || !is(b, a->kind, a->step, a->at)))
			return false;
	}
	return written ? from == 0 && read->from == replaced->from : read->from + from == replaced->from;
}

static int check(struct trace *t)
{
	unsigned look = 0;
	uint32_t from = 0;

	if (check_args(t))
		return CHAIN_REFUSED;
	for (unsigned s = 0; s < t->l->d->nsteps; s++)
		if (each_place(t, s, false, check_reads) || each_place(t, s, true, check_writes))
			return CHAIN_REFUSED;
	if (check_armed(t) || check_locator(t) || find_look(t, &look, &from))
		return CHAIN_REFUSED;
	if (!is_same_place(t, look, from))
		return layout_refuse(t->l, PUBLISH_PLACE, .at = layout_at(t->l, t->publish),
			.other = layout_at(t->l, look));
	return t->l->d->steps[t->publish].in_bucket
		       ? 0
		       : layout_refuse(t->l, PUBLISH_BLIND, .at = layout_at(t->l, t->publish));
}

static int make_sources(struct trace *t)
{
	for (unsigned q = 0; q < t->l->d->nqueues; q++) {
		t->queue[q] = calloc((size_t)t->l->wqebbs[q] * CHAIN_WQEBB, sizeof(*t->queue[q]));
		if (!t->queue[q])
			return -ENOMEM;
	}
	t->scratch = calloc(t->l->scratch_size + 1u, sizeof(*t->scratch));
	if (!t->scratch)
		return -ENOMEM;
	for (unsigned q = 0; q < t->l->d->nqueues; q++)
		for (uint32_t i = 0; i < t->l->wqebbs[q] * CHAIN_WQEBB; i++)
			t->queue[q][i] = (struct source){.kind = ARMED, .step = (uint16_t)q, .at = i};
	for (uint32_t i = 0; i < t->l->scratch_size; i++)
		t->scratch[i] = (struct source){.kind = ARMED, .step = SCRATCH, .at = i};
	return 0;
}

int trace_check(struct layout *l)
{
	__attribute__((cleanup(free_trace))) struct trace *t = NULL;
	unsigned publish = 0;

	while (publish < l->d->nsteps && !l->d->steps[publish].publishes)
		publish++;
	if (publish == l->d->nsteps)
		return 0;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->l = l;
	t->publish = publish;
	if (make_sources(t))
		return -ENOMEM;
	for (unsigned s = 0; s < l->d->nsteps; s++)
		each_place(t, s, true, note_change);
	take_request(t);
	for (unsigned s = 0; s < l->d->nsteps; s++)
		execute(t, s);
	return check(t);
}
