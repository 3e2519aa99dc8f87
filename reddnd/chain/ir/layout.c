/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ir/layout.h"

#include "mlx5/cqe.h"
#include "mlx5/wqe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 4 /* of a CQE's count of bytes */ };

struct chain_error_at layout_at(const struct layout *l, unsigned s)
{
	return chain_error_step(l->d, s);
}

static int by_label(const void *a, const void *b, void *steps)
{
	const struct chain_step *st = steps;

	return strcmp(st[*(const uint16_t *)a].label, st[*(const uint16_t *)b].label);
}

static int sort_labels(struct layout *l)
{
	const struct chain_step *st = l->d->steps;

	for (unsigned s = 0; s < l->d->nsteps; s++)
		if (st[s].label)
			l->by_label[l->nlabels++] = (uint16_t)s;
	qsort_r(l->by_label, l->nlabels, sizeof(l->by_label[0]), by_label, (void *)st);
	for (unsigned i = 1; i < l->nlabels; i++)
		if (strcmp(st[l->by_label[i - 1]].label, st[l->by_label[i]].label) == 0)
			return layout_refuse(l, SAME_LABEL, .name = st[l->by_label[i]].label);
	return 0;
}

unsigned layout_step(const struct layout *l, const char *label)
{
	unsigned low = 0, high = l->nlabels;

	while (label && low < high) {
		unsigned mid = (low + high) / 2;
		int order = strcmp(label, l->d->steps[l->by_label[mid]].label);

		if (order == 0)
			return l->by_label[mid];
		if (order < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return LAYOUT_NONE;
}

static int resolve_scratch(struct layout *l, const struct chain_place *p, uint32_t len,
	const struct chain_error_at *who, struct layout_range *range)
{
	unsigned w = 0;

	while (w < l->d->nwords && (!p->name || strcmp(l->d->words[w].name, p->name) != 0))
		w++;
	if (w == l->d->nwords)
		return layout_refuse(l, NO_WORD, .at = *who, .name = p->name);
	range->sym = CHAIN_SYM_SCRATCH;
	range->offset = l->word_at[w] + p->from;
	if (range->offset + len > l->words_size)
		return layout_refuse(l, WORD_END, .at = *who, .name = p->name, .number = {len, p->from});
	return 0;
}

static int resolve_field(struct layout *l, const struct chain_place *p, uint32_t len,
	const struct chain_error_at *who, struct layout_range *range)
{
	unsigned s = layout_step(l, p->name), size;
	int at;

	if (s == LAYOUT_NONE)
		return layout_refuse(l, NO_STEP, .at = *who, .name = p->name);
	at = p->field < CHAIN_FIELDS ? chain_field_at(l->d->steps[s].verb, p->field, p->sge, &size) : -1;
	if (at < 0)
		return layout_refuse(l, NO_FIELD, .at = *who, .other = layout_at(l, s),
			.name = p->field < CHAIN_FIELDS ? chain_field_name(p->field) : "of that number");
	if (at >= l->step[s].ds * WQE_DS)
		return layout_refuse(l, NO_SEGMENT, .at = *who, .other = layout_at(l, s), .number = {p->sge});
	if (p->from + len > size)
		return layout_refuse(l, FIELD_END, .at = *who, .other = layout_at(l, s),
			.name = chain_field_name(p->field), .number = {p->from, p->from + len - 1, size});
	range->sym = CHAIN_SYM_QUEUE;
	range->index = l->d->steps[s].queue;
	range->step = (uint16_t)s;
	range->offset = (uint64_t)l->step[s].at * CHAIN_WQEBB + (unsigned)at + p->from;
	return 0;
}

/* Resolves @p with @len bytes; @at is who names it, for errors. 0 or CHAIN_REFUSED. */
static int layout_resolve(struct layout *l, const struct chain_place *p, uint32_t len,
	const struct chain_error_at *who, struct layout_range *range)
{
	*range = (struct layout_range){.step = LAYOUT_NONE, .len = len};
	switch ((enum chain_place_kind)p->kind) {
	case CHAIN_AT_REGION:
		if (p->index >= l->d->nregions)
			return layout_refuse(l, NO_REGION, .at = *who, .number = {p->index, l->d->nregions});
		range->sym = CHAIN_SYM_REGION;
		range->index = p->index;
		range->offset = p->from;
		return 0;
	case CHAIN_AT_SLOT:
		range->sym = CHAIN_SYM_SLOT;
		range->offset = p->from;
		return 0;
	case CHAIN_AT_SCRATCH:
		return resolve_scratch(l, p, len, who, range);
	case CHAIN_AT_FIELD:
		return resolve_field(l, p, len, who, range);
	case CHAIN_AT_LENGTH:
		if (!l->d->payload.max)
			return layout_refuse(l, NO_PAYLOAD, .at = *who);
		range->sym = CHAIN_SYM_CQE;
		range->offset = CQE_LENGTH + p->from;
		return p->from + len <= LENGTH_BYTES ? 0 : layout_refuse(l, LENGTH_PLACE, .at = *who);
	case CHAIN_AT_NONE:
		break;
	}
	return layout_refuse(l, NO_PLACE, .at = *who);
}

struct layout_range layout_place(const struct layout *l, const struct chain_place *p, uint32_t len)
{
	struct layout_range r;

	layout_resolve((struct layout *)l, p, len, &(struct chain_error_at){0}, &r);
	return r;
}

const struct chain_place *layout_addressed(const struct layout *l, const struct chain_place *p)
{
	const struct chain_step *st;

	if (p->kind != CHAIN_AT_FIELD || (p->field != CHAIN_F_REMOTE_ADDR && p->field != CHAIN_F_LOCAL_ADDR))
		return NULL;
	st = &l->d->steps[layout_place(l, p, 1).step];
	return p->field == CHAIN_F_REMOTE_ADDR ? &st->remote : &st->local[p->sge];
}

bool layout_overlap(const struct layout_range *a, const struct layout_range *b)
{
	return a->sym == b->sym && a->index == b->index && a->offset < b->offset + b->len &&
	       b->offset < a->offset + a->len;
}

uint32_t layout_step_bytes(const struct layout *l, unsigned s)
{
	uint32_t bytes = 0;

	for (unsigned i = 0; i < l->step[s].nsge; i++)
		bytes += l->d->steps[s].local[i].len;
	return (uint32_t)chain_remote_bytes(chain_verb_info(l->d->steps[s].verb), bytes);
}

/* Sizes and positions: nothing here needs a name to be resolved */
static int place_steps(struct layout *l)
{
	unsigned count[CHAIN_MAX_QUEUES] = {0};

	for (unsigned s = 0; s < l->d->nsteps; s++) {
		const struct chain_step *st = &l->d->steps[s];
		struct layout_step *ls = &l->step[s];
		const struct chain_verb_info *v;
		unsigned nsge = 0;

		if (st->verb >= CHAIN_VERBS || st->verb == CHAIN_RECV_EN)
			return layout_refuse(l, NO_VERB, .at = layout_at(l, s), .number = {st->verb});
		if (st->queue >= l->d->nqueues)
			return layout_refuse(
				l, NO_QUEUE, .at = layout_at(l, s), .number = {st->queue, l->d->nqueues});
		v = chain_verb_info(st->verb);
		while (nsge < CHAIN_MAX_SGE && st->local[nsge].kind != CHAIN_AT_NONE)
			nsge++;
		if (v->atomic_bytes && nsge == 0)
			nsge = 1;
		else
			ls->nsge = (uint8_t)nsge;
		if (nsge && !v->data)
			return layout_refuse(l, NO_DATA, .at = layout_at(l, s), .what = v->name);
		if (v->data && nsge == 0 && st->verb == CHAIN_READ)
			return layout_refuse(l, READ_NOTHING, .at = layout_at(l, s));
		ls->ds = (uint8_t)(st->pad ? st->pad * (CHAIN_WQEBB / WQE_DS) : chain_wqe_ds(st->verb, nsge));
		ls->wqebbs = (uint8_t)((ls->ds * WQE_DS + CHAIN_WQEBB - 1) / CHAIN_WQEBB);
		ls->at = (uint16_t)l->wqebbs[st->queue];
		ls->head = count[st->queue]++ < l->d->queues[st->queue].head;
		l->wqebbs[st->queue] += ls->wqebbs;
		if (ls->head)
			l->head[st->queue] = l->wqebbs[st->queue];
		if (st->flags & CHAIN_SIGNALLED)
			ls->cqe = (uint16_t)l->cqes[st->queue]++;
	}
	for (unsigned q = 0; q < l->d->nqueues; q++) {
		if (count[q] == 0)
			return layout_refuse(l, QUEUE_EMPTY, .name = l->d->queues[q].name);
		if (count[q] < l->d->queues[q].head)
			return layout_refuse(l, HEAD_STEPS, .name = l->d->queues[q].name,
				.number = {l->d->queues[q].head, count[q]});
	}
	return 0;
}

static int place_words(struct layout *l)
{
	bool discard = false, calc = false;
	uint32_t at = 0, align;

	for (unsigned s = 0; s < l->d->nsteps; s++) {
		discard |= chain_verb_info(l->d->steps[s].verb)->atomic_bytes && l->step[s].nsge == 0;
		calc |= chain_verb_info(l->d->steps[s].verb)->calc;
	}
	for (unsigned w = 0; w < l->d->nwords; w++) {
		align = calc && l->d->words[w].size >= CHAIN_CALC_BYTES ? CHAIN_CALC_BYTES : 8;
		at = (at + align - 1) & ~(align - 1);
		l->word_at[w] = at;
		at += (l->d->words[w].size + 7u) & ~7u;
	}
	l->words_size = at;
	l->discard_at = at;
	l->scratch_size = discard ? at + 8 : at;
	if (calc) /* that of the next instance follows */
		l->scratch_size = (l->scratch_size + CHAIN_CALC_BYTES - 1) & ~(CHAIN_CALC_BYTES - 1u);
	if (l->scratch_size > CHAIN_MAX_SCRATCH)
		return layout_refuse(l, SCRATCH_BYTES, .number = {l->scratch_size, CHAIN_MAX_SCRATCH});
	return 0;
}

static int check_written(struct layout *l, const struct chain_error_at *who, const struct chain_place *p,
	const struct layout_range *r)
{
	if (r->step == LAYOUT_NONE)
		return 0;
	if (l->step[r->step].head)
		return layout_refuse(l, WRITES_HEAD, .at = *who, .other = layout_at(l, r->step));
	if (p->field == CHAIN_F_REMOTE_KEY || p->field == CHAIN_F_LOCAL_KEY)
		return layout_refuse(l, WRITES_KEY, .at = *who, .other = layout_at(l, r->step));
	return 0;
}

/* The device takes nothing else, and what is behind a result may be noise */
static int check_calc(struct layout *l, unsigned s)
{
	const struct chain_step *st = &l->d->steps[s];
	const struct chain_error_at who = layout_at(l, s);
	struct layout_range operands, result;

	if (layout_resolve(l, &st->remote, CHAIN_CALC_BYTES, &who, &result))
		return CHAIN_REFUSED;
	if (st->remote.kind != CHAIN_AT_SCRATCH || result.offset % 8)
		return layout_refuse(l, CALC_RESULT, .at = who);
	if (!l->step[s].nsge)
		return layout_refuse(l, CALC_OPERANDS, .at = who);
	for (unsigned i = 0; i < l->step[s].nsge; i++) {
		if (layout_resolve(l, &st->local[i], st->local[i].len, &who, &operands))
			return CHAIN_REFUSED;
		if (st->local[i].kind != CHAIN_AT_SCRATCH || st->local[i].len % CHAIN_CALC_BYTES ||
			operands.offset % CHAIN_CALC_BYTES)
			return layout_refuse(l, CALC_OPERANDS, .at = who);
		if (layout_overlap(&operands, &result))
			return layout_refuse(l, CALC_RESULT, .at = who);
	}
	return 0;
}

static int check_local(struct layout *l, unsigned s, unsigned i)
{
	const struct chain_step *st = &l->d->steps[s];
	const struct chain_place *p = &st->local[i];
	const struct chain_verb_info *v = chain_verb_info(st->verb);
	const struct chain_error_at who = layout_at(l, s);
	struct layout_range r;

	if (p->kind == CHAIN_AT_SLOT)
		return layout_refuse(l, LOCAL_SLOT, .at = who);
	if (p->kind == CHAIN_AT_LENGTH)
		return layout_refuse(l, LENGTH_PLACE, .at = who);
	if (p->len == 0)
		return layout_refuse(l, SEGMENT_EMPTY, .at = who, .number = {i});
	if (v->atomic_bytes && (p->len != 8 || l->step[s].nsge != 1))
		return layout_refuse(l, ATOMIC_BYTES, .at = who);
	if (layout_resolve(l, p, p->len, &who, &r))
		return CHAIN_REFUSED;
	for (unsigned k = 0; v->scatters && k < i; k++) {
		struct layout_range other;

		if (!layout_resolve(l, &st->local[k], st->local[k].len, &who, &other) &&
			layout_overlap(&r, &other))
			return layout_refuse(l, SEGMENTS_OVERLAP, .at = who, .number = {k, i});
	}
	return v->scatters ? check_written(l, &who, p, &r) : 0;
}

static int check_remote(struct layout *l, unsigned s)
{
	const struct chain_step *st = &l->d->steps[s];
	const struct chain_verb_info *v = chain_verb_info(st->verb);
	const struct chain_error_at who = layout_at(l, s);
	struct layout_range r;

	if (!v->remote)
		return st->remote.kind == CHAIN_AT_NONE
			       ? 0
			       : layout_refuse(l, NO_REMOTE, .at = who, .what = v->name);
	if (st->queue == 0 && v->scatters)
		return layout_refuse(
			l, READS_CLIENT, .at = who, .what = v->name, .name = l->d->queues[0].name);
	if (layout_resolve(l, &st->remote, layout_step_bytes(l, s), &who, &r))
		return CHAIN_REFUSED;
	if (st->queue == 0 && st->remote.kind != CHAIN_AT_SLOT)
		return layout_refuse(l, ONLY_SLOT, .at = who, .name = l->d->queues[0].name);
	if (st->queue != 0 && st->remote.kind == CHAIN_AT_SLOT)
		return layout_refuse(l, SLOT_QUEUE, .at = who, .name = l->d->queues[0].name);
	if (r.sym == CHAIN_SYM_CQE && st->verb != CHAIN_READ)
		return layout_refuse(l, LENGTH_PLACE, .at = who);
	if (v->atomic_bytes && r.offset % 8)
		return layout_refuse(l, ATOMIC_ALIGN, .at = who);
	return st->verb == CHAIN_READ ? 0 : check_written(l, &who, &st->remote, &r);
}

static int check_sync(struct layout *l, unsigned s)
{
	const struct chain_step *st = &l->d->steps[s];
	struct layout_step *ls = &l->step[s];
	const struct chain_error_at who = layout_at(l, s);
	unsigned to;

	if (st->verb == CHAIN_WAIT) {
		ls->until = LAYOUT_NONE;
		if (!st->until)
			return 0;
		to = layout_step(l, st->until);
		if (to == LAYOUT_NONE)
			return layout_refuse(l, NO_STEP, .at = who, .name = st->until);
		if (!(l->d->steps[to].flags & CHAIN_SIGNALLED))
			return layout_refuse(l, WAIT_UNSIGNALLED, .at = who, .other = layout_at(l, to));
		if (l->d->steps[to].queue == 0)
			return layout_refuse(l, WAIT_REPLY, .at = who, .other = layout_at(l, to),
				.name = l->d->queues[0].name);
		ls->until = (uint16_t)to;
		return 0;
	}
	if (st->target >= l->d->nqueues)
		return layout_refuse(l, NO_QUEUE, .at = who, .number = {st->target, l->d->nqueues});
	switch ((enum chain_upto)st->upto) {
	case CHAIN_UPTO_STEP:
		to = layout_step(l, st->through);
		if (to == LAYOUT_NONE || l->d->steps[to].queue != st->target)
			return layout_refuse(l, ENABLES_NO_STEP, .at = who,
				.name = l->d->queues[st->target].name, .what = st->through);
		ls->enables = l->step[to].at + l->step[to].wqebbs;
		return 0;
	case CHAIN_UPTO_END:
		ls->enables = l->wqebbs[st->target];
		return 0;
	case CHAIN_UPTO_NEXT_HEAD:
		if (l->head[st->target] == 0)
			return layout_refuse(
				l, ENABLES_NO_HEAD, .at = who, .name = l->d->queues[st->target].name);
		ls->enables = l->wqebbs[st->target] + l->head[st->target];
		return 0;
	}
	return layout_refuse(l, ENABLES_HOW_FAR, .at = who);
}

static int check_step(struct layout *l, unsigned s)
{
	const struct chain_step *st = &l->d->steps[s];
	const struct chain_verb_info *v = chain_verb_info(st->verb);

	if (st->queue != 0 && (st->verb == CHAIN_SEND || st->verb == CHAIN_WRITE_IMM))
		return layout_refuse(
			l, NO_RECEIVER, .at = layout_at(l, s), .what = v->name, .name = l->d->queues[0].name);
	if (v->class == CHAIN_CLASS_SYNC && check_sync(l, s))
		return CHAIN_REFUSED;
	for (unsigned i = 0; i < l->step[s].nsge; i++)
		if (check_local(l, s, i))
			return CHAIN_REFUSED;
	if (check_remote(l, s))
		return CHAIN_REFUSED;
	return v->calc ? check_calc(l, s) : 0;
}

static void note_written(struct layout *l, const struct chain_place *p)
{
	struct layout_step *ls = p->kind == CHAIN_AT_FIELD ? &l->step[layout_step(l, p->name)] : NULL;

	if (!ls)
		return;
	ls->opcode_written |=
		p->field == CHAIN_F_OPCODE ||
		(p->field == CHAIN_F_CTRL && p->from <= WQE_OPCODE && p->from + p->len > WQE_OPCODE);
	ls->remote_written |= p->field == CHAIN_F_REMOTE_ADDR;
	if (p->field == CHAIN_F_LOCAL_ADDR)
		ls->addr_written |= 1u << p->sge;
	if (p->field == CHAIN_F_LOCAL_LEN)
		ls->len_written |= 1u << p->sge;
}

static void note_all_written(struct layout *l)
{
	for (unsigned a = 0; a < l->d->nargs; a++)
		note_written(l, &l->d->args[a]);
	for (unsigned s = 0; s < l->d->nsteps; s++) {
		const struct chain_step *st = &l->d->steps[s];
		const struct chain_verb_info *v = chain_verb_info(st->verb);
		struct chain_place remote = st->remote; /* whose length the data segments give */

		for (unsigned i = 0; v->scatters && i < l->step[s].nsge; i++)
			note_written(l, &st->local[i]);
		remote.len = layout_step_bytes(l, s);
		if (v->remote && st->verb != CHAIN_READ)
			note_written(l, &remote);
	}
}

/* What a request may reach: operands, scratch memory, and the low bytes of an address in a region */
static int check_arg(struct layout *l, unsigned a)
{
	const struct chain_place *p = &l->d->args[a];
	const struct chain_place *base;
	struct layout_range r;
	const struct chain_error_at who = {.is_argument = true, .index = (uint16_t)a, .line = p->line};

	if (p->len == 0)
		return layout_refuse(l, ARG_EMPTY, .at = who);
	if (p->kind != CHAIN_AT_SCRATCH && p->kind != CHAIN_AT_FIELD)
		return layout_refuse(l, ARG_PLACE, .at = who);
	if (layout_resolve(l, p, p->len, &who, &r) || check_written(l, &who, p, &r))
		return CHAIN_REFUSED;
	for (unsigned b = 0; b < a; b++) {
		struct layout_range other;

		if (layout_resolve(l, &l->d->args[b], l->d->args[b].len, &who, &other))
			return CHAIN_REFUSED;
		if (layout_overlap(&r, &other))
			return layout_refuse(l, ARGS_OVERLAP, .at = who,
				.other = {.is_argument = true,
					.index = (uint16_t)b,
					.line = l->d->args[b].line});
	}
	if (p->kind == CHAIN_AT_SCRATCH)
		return 0;
	switch ((enum chain_field)p->field) {
	case CHAIN_F_SWAP:
	case CHAIN_F_COMPARE:
	case CHAIN_F_SWAP_MASK:
	case CHAIN_F_COMPARE_MASK:
	case CHAIN_F_ADD:
	case CHAIN_F_BOUNDARY:
		return 0;
	case CHAIN_F_REMOTE_ADDR:
	case CHAIN_F_LOCAL_ADDR:
		base = p->field == CHAIN_F_REMOTE_ADDR ? &l->d->steps[r.step].remote
						       : &l->d->steps[r.step].local[p->sge];
		if (base->kind == CHAIN_AT_REGION && p->len < 8 && p->from + p->len == 8)
			return 0;
		return layout_refuse(l, ARG_ADDRESS, .at = who);
	default:
		return layout_refuse(l, ARG_FIELD, .at = who, .name = chain_field_name(p->field));
	}
}

/* The last entry of a scatter list is the payload's */
static unsigned most_places(const struct chain_desc *d)
{
	return d->payload.max ? CHAIN_MAX_RECV_SGE - 1 : CHAIN_MAX_RECV_SGE;
}

static int check_payload(struct layout *l, uint32_t arg_len)
{
	const struct chain_payload *p = &l->d->payload;
	bool published = false;

	if (!p->max)
		return 0;
	if (p->max > CHAIN_MAX_LOCATED || arg_len + p->max > CHAIN_MAX_LOCATED)
		return layout_refuse(l, PAYLOAD_BYTES, .number = {p->max, arg_len, CHAIN_MAX_LOCATED});
	if (p->region >= l->d->nregions)
		return layout_refuse(l, PAYLOAD_REGION, .number = {p->region, l->d->nregions});
	if (l->d->regions && l->d->regions[p->region].flags & CHAIN_WRITABLE)
		return layout_refuse(l, PAYLOAD_WRITABLE, .name = l->d->regions[p->region].name);
	for (unsigned s = 0; s < l->d->nsteps; s++)
		published |= l->d->steps[s].publishes && l->d->steps[s].extent;
	return published ? 0 : layout_refuse(l, PAYLOAD_UNUSED);
}

/* An instance has one locator, and a loop as many iterations as it likes */
static int check_loop(struct layout *l)
{
	const struct chain_desc *loop = l->d->loop;

	for (unsigned s = 0; loop && s < loop->nsteps; s++)
		if (loop->steps[s].publishes)
			return layout_refuse(l, PUBLISH_LOOP, .at = chain_error_step(loop, s));
	return 0;
}

static int check_publish(struct layout *l, unsigned s)
{
	const struct chain_step *st = &l->d->steps[s];
	const struct chain_error_at who = layout_at(l, s);

	if (!st->publishes)
		return 0;
	if (st->extent && !l->d->payload.max)
		return layout_refuse(l, NO_PAYLOAD, .at = who);
	if (!st->extent && st->located >= l->d->nregions)
		return layout_refuse(l, NO_REGION, .at = who, .number = {st->located, l->d->nregions});
	if (l->d->loop)
		return layout_refuse(l, PUBLISH_LOOP, .at = who);
	for (unsigned other = 0; other < s; other++)
		if (l->d->steps[other].publishes)
			return layout_refuse(l, PUBLISH_TWICE, .at = layout_at(l, other), .other = who);
	if (st->verb != CHAIN_CAS || st->queue == 0 || st->remote.kind != CHAIN_AT_REGION)
		return layout_refuse(l, PUBLISH_CAS, .at = who);
	return l->step[s].nsge && st->local[0].kind == CHAIN_AT_SCRATCH
		       ? 0
		       : layout_refuse(l, PUBLISH_WAS, .at = who);
}

static int check_limits(struct layout *l)
{
	uint32_t arg_len = 0;

	if (l->d->nqueues == 0 || l->d->nqueues > CHAIN_MAX_QUEUES)
		return layout_refuse(l, QUEUES, .number = {l->d->nqueues, CHAIN_MAX_QUEUES});
	if (l->d->nsteps > CHAIN_MAX_STEPS)
		return layout_refuse(l, STEPS, .number = {l->d->nsteps, CHAIN_MAX_STEPS});
	if (l->d->nwords > CHAIN_MAX_WORDS)
		return layout_refuse(l, WORDS, .number = {l->d->nwords, CHAIN_MAX_WORDS});
	if (l->d->nregions > CHAIN_MAX_WINDOWS)
		return layout_refuse(l, REGIONS, .number = {l->d->nregions, CHAIN_MAX_WINDOWS});
	if (l->d->nargs > most_places(l->d))
		return layout_refuse(l, ARGS, .number = {l->d->nargs, most_places(l->d)});
	for (unsigned a = 0; a < l->d->nargs; a++)
		arg_len += l->d->args[a].len;
	if (arg_len > CHAIN_MAX_ARG)
		return layout_refuse(l, REQUEST_BYTES, .number = {arg_len, CHAIN_MAX_ARG});
	return check_payload(l, arg_len);
}

int layout_make(struct layout *l, const struct chain_desc *d)
{
	l->d = d;
	if (check_limits(l))
		return CHAIN_REFUSED;
	if (check_loop(l) || sort_labels(l) || place_steps(l) || place_words(l))
		return CHAIN_REFUSED;
	for (unsigned s = 0; s < d->nsteps; s++)
		if (check_step(l, s) || check_publish(l, s))
			return CHAIN_REFUSED;
	for (unsigned a = 0; a < d->nargs; a++)
		if (check_arg(l, a))
			return CHAIN_REFUSED;
	note_all_written(l);
	return 0;
}

struct chain_desc layout_loop(const struct chain_desc *loop, struct chain_step *steps)
{
	static const struct chain_queue_desc queues[] = {{"reply", 0}, {"loop", 0}, {"call", 0}};
	struct chain_desc as_chain = *loop;

	for (unsigned s = 0; s < loop->nsteps; s++) {
		steps[s] = loop->steps[s];
		steps[s].queue = 1;
		steps[s].target = steps[s].target ? 2 : 1;
	}
	steps[loop->nsteps] = (struct chain_step){.queue = 0};
	steps[loop->nsteps + 1] = (struct chain_step){.queue = 2};
	as_chain.steps = steps;
	as_chain.nsteps = loop->nsteps + 2;
	as_chain.queues = queues;
	as_chain.nqueues = 3;
	return as_chain;
}
