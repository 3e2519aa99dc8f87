/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ir/build.h"

#include "mlx5/wqe.h"
#include "reddnd/chain/ir/layout.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The relocations of one step: index, QPN, immediate, address and key of each place, or the two of a WAIT */
enum {
	MAX_RELOCS_PER_STEP = 3 + 2 * (CHAIN_MAX_SGE + 1),
	OFFSET_BITS = 40, /* of an address: CHAIN_MAX_OFFSET */
};

struct emitter {
	struct layout *l;
	struct chain_image *img;
	unsigned s;    /* step at work */
	uint32_t base; /* its offset in the queue's image */
	uint8_t *wqe;
};

/* @sym: as of struct chain_reloc, 0 if the kind has none */
static void reloc(struct emitter *e, enum chain_reloc_kind kind, unsigned field, unsigned sym, unsigned index,
	int64_t addend)
{
	e->img->relocs[e->img->nrelocs++] = (struct chain_reloc){
		.kind = kind,
		.where = e->l->d->steps[e->s].queue,
		.sym = (uint8_t)sym,
		.index = (uint8_t)index,
		.offset = e->base + field,
		.addend = addend,
	};
}

static void reloc_place(struct emitter *e, enum chain_reloc_kind key, unsigned addr_field, unsigned key_field,
	const struct layout_range *r)
{
	reloc(e, CHAIN_REL_ADDR64, addr_field, r->sym, r->index, (int64_t)r->offset);
	reloc(e, key, key_field, r->sym, r->index, 0);
}

void chain_put_operands(uint8_t *wqe, const struct chain_step *st)
{
	uint8_t *seg = wqe + WQE_ATOMIC;

	switch ((enum chain_verb)st->verb) {
	case CHAIN_MASKED_CAS:
		wqe_put64(seg + 16, st->swap_mask);
		wqe_put64(seg + 24, st->compare_mask);
		/* fall through */
	case CHAIN_CAS:
		wqe_put64(seg, st->swap);
		wqe_put64(seg + 8, st->compare);
		return;
	case CHAIN_MASKED_FETCH_ADD:
		wqe_put64(seg + 8, st->boundary);
		/* fall through */
	case CHAIN_FETCH_ADD:
		wqe_put64(seg, st->add);
		return;
	default:
		return;
	}
}

static void emit_data(struct emitter *e, const struct chain_step *st, const struct chain_verb_info *v)
{
	const struct layout_step *ls = &e->l->step[e->s];
	struct layout_range r;
	unsigned at = v->sge_at;

	if (v->remote) {
		r = layout_place(e->l, &st->remote, layout_step_bytes(e->l, e->s));
		reloc_place(e, CHAIN_REL_RKEY32, WQE_RADDR, WQE_RKEY, &r);
	}
	for (unsigned i = 0; i < ls->nsge; i++, at += WQE_DS) {
		r = layout_place(e->l, &st->local[i], st->local[i].len);
		wqe_put32(e->wqe + at + WQE_SGE_LEN, r.len);
		reloc_place(e, CHAIN_REL_LKEY32, at + WQE_SGE_ADDR, at + WQE_SGE_LKEY, &r);
	}
	if (v->atomic_bytes && ls->nsge == 0) {
		r = (struct layout_range){.sym = CHAIN_SYM_SCRATCH, .offset = e->l->discard_at};
		wqe_put32(e->wqe + at + WQE_SGE_LEN, 8);
		reloc_place(e, CHAIN_REL_LKEY32, at + WQE_SGE_ADDR, at + WQE_SGE_LKEY, &r);
	}
	chain_put_operands(e->wqe, st);
}

static void emit_sync(struct emitter *e, const struct chain_step *st)
{
	const struct layout_step *ls = &e->l->step[e->s];
	const bool request = ls->until == LAYOUT_NONE;
	const unsigned cq = request ? CHAIN_CQ_RECV : e->l->d->steps[ls->until].queue;

	if (st->verb == CHAIN_WAIT) {
		reloc(e, CHAIN_REL_WAIT, WQE_SYNC_INDEX, 0, cq, request ? 0 : e->l->step[ls->until].cqe);
		reloc(e, CHAIN_REL_CQN32, WQE_SYNC_OBJECT, 0, cq, 0);
	} else {
		reloc(e, CHAIN_REL_ENABLE, WQE_SYNC_INDEX, 0, st->target, ls->enables);
		reloc(e, CHAIN_REL_QPN32, WQE_SYNC_OBJECT, 0, st->target, 0);
	}
}

static void note_publish(struct emitter *e, const struct chain_step *st)
{
	struct layout_range was = layout_place(e->l, &st->local[0], st->local[0].len);

	e->img->publish = (struct chain_publish){.there = true,
		.extent = st->extent,
		.region = st->remote.index,
		.queue = st->queue,
		.offset = e->base,
		.was = (uint32_t)was.offset,
		.swapped = e->l->d->swapped_old};
}

static void emit_step(struct emitter *e)
{
	const struct chain_step *st = &e->l->d->steps[e->s];
	const struct layout_step *ls = &e->l->step[e->s];
	const struct chain_verb_info *v = chain_verb_info(st->verb);
	struct chain_queue *q = &e->img->queue[st->queue];
	struct chain_label *label = &e->img->labels[e->img->nlabels++];

	e->base = (uint32_t)ls->at * CHAIN_WQEBB;
	e->wqe = q->wqes + e->base;
	q->starts[ls->at] = 1;
	label->queue = st->queue;
	label->wqebb = ls->at;
	snprintf(label->name, sizeof(label->name), "%s", st->label ? st->label : v->name);

	e->wqe[WQE_OPMOD] = v->opmod;
	e->wqe[WQE_OPCODE] = st->flags & CHAIN_DORMANT ? WQE_OP_NOP : v->opcode;
	e->wqe[WQE_DSCOUNT] = ls->ds;
	e->wqe[WQE_FLAGS] = (uint8_t)((st->flags & CHAIN_FENCE ? WQE_FENCE : 0) |
				      (st->flags & CHAIN_SIGNALLED ? WQE_SIGNALLED : 0));
	wqe_put32(e->wqe + WQE_IMM, st->imm);
	reloc(e, CHAIN_REL_INDEX16, WQE_INDEX, 0, 0, 0);
	reloc(e, CHAIN_REL_QPN24, WQE_QPN_DS, 0, st->queue, 0);
	if (st->flags & CHAIN_IMM_SEQ)
		reloc(e, CHAIN_REL_SEQ32, WQE_IMM, 0, 0, 0);
	if (v->class == CHAIN_CLASS_SYNC)
		emit_sync(e, st);
	else if (v->data)
		emit_data(e, st, v);
	if (st->publishes)
		note_publish(e, st);
}

/*
 * Bytes written into an address of a region replace its low end, so the region's own address must have
 * zeroes there. An address that is replaced whole asks for nothing. Bytes that are read or compared there are
 * of an offset as well, and of a whole address its low end is one.
 */
static void note_address(
	const struct layout *l, struct chain_image *img, const struct chain_place *p, bool written)
{
	const struct chain_place *base = layout_addressed(l, p);
	unsigned bits = 8 * (8 - p->from);

	if (bits == 64)
		bits = written ? 0 : OFFSET_BITS;
	if (base && base->kind == CHAIN_AT_REGION && bits > img->region_bits[base->index])
		img->region_bits[base->index] = (uint8_t)bits;
}

static void note_addresses(const struct layout *l, struct chain_image *img)
{
	for (unsigned a = 0; a < l->d->nargs; a++)
		note_address(l, img, &l->d->args[a], true);
	for (unsigned s = 0; s < l->d->nsteps; s++) {
		const struct chain_step *st = &l->d->steps[s];

		for (unsigned i = 0; i < l->step[s].nsge; i++)
			note_address(l, img, &st->local[i], chain_verb_info(st->verb)->scatters);
		note_address(l, img, &st->remote, st->verb == CHAIN_WRITE);
	}
}

static void count_work(const struct layout *l, struct chain_image *img)
{
	unsigned outstanding[CHAIN_MAX_QUEUES] = {0};

	for (unsigned s = 0; s < l->d->nsteps; s++) {
		const struct chain_step *st = &l->d->steps[s];
		const struct chain_verb_info *v = chain_verb_info(st->verb);

		img->n_pad += st->pad > 0;
		img->n_copy += v->class == CHAIN_CLASS_COPY && !st->pad;
		img->n_atomic += v->class == CHAIN_CLASS_ATOMIC;
		img->n_sync += v->class == CHAIN_CLASS_SYNC;
		if (st->flags & CHAIN_FENCE)
			outstanding[st->queue] = 0;
		if (v->scatters && ++outstanding[st->queue] > img->max_rd_atomic)
			img->max_rd_atomic = outstanding[st->queue];
	}
}

static int allocate(const struct layout *l, struct chain_image **out)
{
	struct chain_image *img = calloc(1, sizeof(*img));
	bool all;

	if (!img)
		return -ENOMEM;
	img->nqueues = l->d->nqueues;
	img->relocs = calloc((size_t)l->d->nsteps * MAX_RELOCS_PER_STEP, sizeof(*img->relocs));
	img->labels = calloc(l->d->nsteps, sizeof(*img->labels));
	img->scratch_init = calloc(1, l->scratch_size + 1);
	all = img->relocs && img->labels && img->scratch_init;
	for (unsigned q = 0; q < img->nqueues; q++) {
		struct chain_queue *iq = &img->queue[q];

		iq->wqebbs = l->wqebbs[q];
		iq->head_wqebbs = l->head[q];
		iq->cqes = l->cqes[q];
		iq->overlaps = l->d->queues[0].head == 0 && iq->head_wqebbs == 0;
		iq->wqes = calloc(iq->wqebbs, CHAIN_WQEBB);
		iq->starts = calloc(iq->wqebbs, 1);
		all = all && iq->wqes && iq->starts;
	}
	if (!all) {
		chain_free(img);
		return -ENOMEM;
	}
	*out = img;
	return 0;
}

static void emit(struct layout *l, struct chain_image *img)
{
	struct emitter e = {.l = l, .img = img};

	snprintf(img->name, sizeof(img->name), "%s", l->d->name);
	img->scratch_size = l->scratch_size;
	img->nregions = l->d->nregions;
	img->fetch_group = l->d->fetch_group;
	img->pad_wqebbs = l->d->pad_wqebbs;
	for (unsigned w = 0; w < l->d->nwords; w++)
		if (l->d->words[w].init)
			memcpy(img->scratch_init + l->word_at[w], l->d->words[w].init, l->d->words[w].size);
	for (unsigned q = 0; q < l->d->nqueues; q++)
		for (e.s = 0; e.s < l->d->nsteps; e.s++)
			if (l->d->steps[e.s].queue == q)
				emit_step(&e);
	for (unsigned a = 0; a < l->d->nargs; a++) {
		struct layout_range r = layout_place(l, &l->d->args[a], l->d->args[a].len);

		img->recv[img->nrecv++] = (struct chain_recv_sge){
			.sym = r.sym, .index = r.index, .len = (uint32_t)r.len, .offset = (uint32_t)r.offset};
		img->arg_len += (uint32_t)r.len;
	}
	if (l->d->payload.max) {
		img->payload = l->d->payload;
		img->recv[img->nrecv++] = (struct chain_recv_sge){
			.sym = CHAIN_SYM_EXTENT, .len = img->payload.max, .offset = img->arg_len};
	}
	note_addresses(l, img);
	count_work(l, img);
}

static void free_layout(struct layout **l)
{
	free(*l);
}

int chain_build(const struct chain_desc *d, struct chain_image **img, struct chain_error *err)
{
	__attribute__((cleanup(free_layout))) struct layout *l = calloc(1, sizeof(*l));
	struct chain_image *built;
	int r;

	if (!l)
		return -ENOMEM;
	l->err = err;
	*err = (struct chain_error){0};
	if (layout_make(l, d) || layout_check_flow(l))
		return CHAIN_REFUSED;
	r = allocate(l, &built);
	if (r < 0)
		return r;
	emit(l, built);
	r = layout_note_restores(l, built);
	if (r < 0) {
		chain_free(built);
		return r;
	}
	*img = built;
	return 0;
}

unsigned chain_step_named(const struct chain_desc *d, const char *label)
{
	unsigned s = 0;

	while (s < d->nsteps && (!d->steps[s].label || strcmp(d->steps[s].label, label) != 0))
		s++;
	return s;
}

uint64_t chain_step_most(const struct chain_step *st)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < CHAIN_MAX_SGE && st->local[i].kind != CHAIN_AT_NONE; i++)
		bytes += st->local[i].max ? st->local[i].max : st->local[i].len;
	return bytes;
}
