/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ring/arm.h"

#include "mlx5/cqe.h"
#include "mlx5/wqe.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void chain_locate(
	struct chain_instance *in, const struct chain_image *img, const struct chain_env *env, uint64_t seq)
{
	assert(env->slots >= 2 && (env->slots & (env->slots - 1)) == 0);
	in->img = img;
	in->env = env;
	in->seq = seq;
	in->slot = (unsigned)seq & (env->slots - 1);
	in->lap = seq >> __builtin_ctz(env->slots);
	for (unsigned q = 0; q < img->nqueues; q++) {
		uint32_t wqebbs = img->queue[q].wqebbs, ring = env->queue[q].ring_wqebbs;
		size_t own = (size_t)in->slot * wqebbs;

		in->queue[q].addr = env->queue[q].iova + own * CHAIN_WQEBB;
		in->queue[q].wqes = env->queue[q].ring ? env->queue[q].ring + own * CHAIN_WQEBB : NULL;
		in->queue[q].at = in->lap * ring + own;
		in->queue[q].next =
			in->slot + 1 < env->slots ? in->queue[q].at + wqebbs : (in->lap + 1) * ring;
	}
	in->scratch = env->scratch.iova + (uint64_t)in->slot * img->scratch_size;
	in->scratch_mem = env->scratch.mem ? env->scratch.mem + (size_t)in->slot * img->scratch_size : NULL;
	in->slot_addr = env->slot_addr;
	if (env->slot_count)
		in->slot_addr += seq % env->slot_count * env->slot_size;
}

struct chain_symbol chain_symbol(const struct chain_instance *in, unsigned sym, unsigned index)
{
	const struct chain_env *env = in->env;

	switch ((enum chain_sym_kind)sym) {
	case CHAIN_SYM_QUEUE:
		return (struct chain_symbol){
			in->queue[index].addr, env->queue[index].lkey, env->queue[index].rkey};
	case CHAIN_SYM_SCRATCH:
		return (struct chain_symbol){in->scratch, env->scratch.lkey, env->scratch.rkey};
	case CHAIN_SYM_REGION:
		return (struct chain_symbol){
			env->region[index].iova, env->region[index].lkey, env->region[index].rkey};
	case CHAIN_SYM_SLOT:
		return (struct chain_symbol){.iova = in->slot_addr, .rkey = env->slot_rkey};
	case CHAIN_SYM_CQE:
		return (struct chain_symbol){.iova = env->recv_cq.iova + (uint64_t)in->slot * CQE_BYTES,
			.rkey = env->recv_cq.rkey};
	case CHAIN_SYM_EXTENT:
		return (struct chain_symbol){
			.iova = env->extents.iova + env->extents.at[in->slot], .lkey = env->extents.lkey};
	}
	assert(!"symbol kind");
	return (struct chain_symbol){0};
}

uint64_t chain_cqe_number(const struct chain_instance *in, unsigned index)
{
	return index == CHAIN_CQ_RECV ? in->seq : in->seq * in->img->queue[index].cqes;
}

/* ---- indices ---- */

/* Not reduced: what a field of any width may take the low bits of */
static uint64_t position(const struct chain_image *img, const struct chain_env *env, unsigned q, uint64_t seq)
{
	return (seq >> __builtin_ctz(env->slots)) * env->queue[q].ring_wqebbs +
	       (seq & (env->slots - 1)) * img->queue[q].wqebbs;
}

uint16_t chain_enable_index(
	const struct chain_image *img, const struct chain_env *env, unsigned q, uint64_t seq, uint32_t wqebbs)
{
	const struct chain_queue *queue = &img->queue[q];

	assert(wqebbs <= 2 * queue->wqebbs);
	if (chain_through_pad(queue, wqebbs))
		return (uint16_t)(position(img, env, q, seq + 1) + wqebbs - queue->wqebbs);
	return (uint16_t)(position(img, env, q, seq) + wqebbs);
}

uint16_t chain_end_index(const struct chain_image *img, const struct chain_env *env, unsigned q, uint64_t seq)
{
	return (uint16_t)(position(img, env, q, seq) + img->queue[q].wqebbs);
}

unsigned chain_start_queue(const struct chain_image *img)
{
	unsigned q = 0;

	while (q + 1 < img->nqueues && !img->queue[q].head_wqebbs)
		q++;
	return q;
}

uint16_t chain_start_index(const struct chain_image *img)
{
	return (uint16_t)img->queue[chain_start_queue(img)].head_wqebbs;
}

/* ---- what instances are written from ---- */

enum {
	SCRATCH = CHAIN_MAX_QUEUES, /* part of an instance, beside its queues */
	PARTS,
	WORD = 8,
	MAX_BASES = 128, /* more than the kinds of relocations have symbols and indices together */
};

/* Bytes of a word of the image */
struct word {
	uint64_t keep; /* the bits that stay */
	uint64_t bytes;
	uint32_t offset;
	uint32_t part;
};

/* A field: big-endian, of the low bits of a base plus an addend */
struct number {
	int64_t addend;
	uint32_t offset;
	uint32_t mask; /* of one with 32 bits */
	uint8_t part, base, bits;
};

/* What relocations add to: as they name it, but an INDEX16 is the index of the first WQEBB of an instance,
 * and an ENABLE that of the next one */
struct base {
	uint8_t kind, sym, index;
	uint64_t step; /* from one instance to the next one of the same lap */
};

/* One of two ways to write an instance */
struct table {
	struct word *words;
	unsigned nwords;
	struct number *numbers; /* first those of 16 bits, then of 32, then of 64 */
	unsigned n16, n32, n64;
	struct base bases[MAX_BASES];
	unsigned nbases;
	unsigned slot_base; /* the address of the reply slot; nbases: there is none */
};

struct chain_writer {
	const struct chain_image *img;
	struct table whole;      /* over a copy of the image; it has no words */
	struct table again;      /* over the instance that was there */
	size_t part_step[PARTS]; /* bytes, as base.step */
};

/* Bytes of a queue, or of scratch memory */
static size_t part_step(const struct chain_image *img, unsigned part)
{
	if (part == SCRATCH)
		return img->scratch_size;
	return (size_t)img->queue[part].wqebbs * CHAIN_WQEBB;
}

static uint64_t step_of(const struct chain_image *img, const struct base *b)
{
	switch ((enum chain_reloc_kind)b->kind) {
	case CHAIN_REL_INDEX16:
	case CHAIN_REL_ENABLE:
		return img->queue[b->index].wqebbs;
	case CHAIN_REL_WAIT:
		return b->index == CHAIN_CQ_RECV ? 1 : img->queue[b->index].cqes;
	case CHAIN_REL_SEQ32:
		return 1;
	case CHAIN_REL_ADDR64:
		return b->sym == CHAIN_SYM_QUEUE     ? part_step(img, b->index)
		       : b->sym == CHAIN_SYM_SCRATCH ? part_step(img, SCRATCH)
		       : b->sym == CHAIN_SYM_CQE     ? CQE_BYTES
						     : 0;
	default:
		return 0;
	}
}

static uint8_t get_base(struct table *t, const struct chain_image *img, const struct base *b)
{
	unsigned i = 0;

	while (i < t->nbases &&
		(t->bases[i].kind != b->kind || t->bases[i].sym != b->sym || t->bases[i].index != b->index))
		i++;
	assert(i < MAX_BASES - 1);
	if (i == t->nbases) {
		t->bases[i] = *b;
		t->bases[i].step = step_of(img, b);
		t->nbases++;
	}
	return (uint8_t)i;
}

/* An end of an instance of @own WQEBBs that lies behind its pad is counted from the next one */
static void count_enabled(const struct chain_image *img, struct base *b, struct number *n)
{
	const struct chain_queue *q = &img->queue[b->index];

	assert(n->addend <= 2 * q->wqebbs);
	n->mask = UINT16_MAX;
	if (chain_through_pad(q, (uint32_t)n->addend))
		n->addend -= q->wqebbs;
	else
		b->kind = CHAIN_REL_INDEX16;
}

/* The field of @r, but its base */
static void plan(const struct chain_image *img, const struct chain_reloc *r, struct base *b, struct number *n)
{
	*n = (struct number){
		.part = r->where, .offset = r->offset, .addend = r->addend, .bits = 32, .mask = UINT32_MAX};
	*b = (struct base){.kind = r->kind, .index = r->index};
	switch ((enum chain_reloc_kind)r->kind) {
	case CHAIN_REL_ADDR64:
		n->bits = 64;
		b->sym = r->sym;
		return;
	case CHAIN_REL_LKEY32:
	case CHAIN_REL_RKEY32:
		b->sym = r->sym;
		n->addend = 0;
		return;
	case CHAIN_REL_QPN24: /* the byte beside it is the image's */
		n->addend = img->queue[r->where].wqes[r->offset + 3];
		return;
	case CHAIN_REL_QPN32:
	case CHAIN_REL_CQN32:
		n->addend = 0;
		return;
	case CHAIN_REL_INDEX16:
		n->bits = 16;
		b->index = r->where;
		n->addend = r->offset / CHAIN_WQEBB;
		return;
	case CHAIN_REL_ENABLE:
		count_enabled(img, b, n);
		return;
	case CHAIN_REL_WAIT:
		n->mask = 0xffffff;
		return;
	case CHAIN_REL_SEQ32:
		return;
	}
	assert(!"relocation kind");
}

/* Of relocations from @first on; returns their number */
static unsigned add_numbers(
	struct table *t, const struct chain_image *img, unsigned first, struct number *at, unsigned bits)
{
	struct number *n = at;
	struct base b;

	for (unsigned i = first; i < img->nrelocs; i++) {
		plan(img, &img->relocs[i], &b, n);
		if (n->bits == bits)
			n++->base = get_base(t, img, &b);
	}
	return (unsigned)(n - at);
}

static int plan_numbers(struct table *t, const struct chain_image *img, unsigned first)
{
	t->numbers = calloc(img->nrelocs - first + 1, sizeof(*t->numbers));
	if (!t->numbers)
		return -ENOMEM;
	t->n16 = add_numbers(t, img, first, t->numbers, 16);
	t->n32 = add_numbers(t, img, first, t->numbers + t->n16, 32);
	t->n64 = add_numbers(t, img, first, t->numbers + t->n16 + t->n32, 64);
	while (t->slot_base < t->nbases && (t->bases[t->slot_base].kind != CHAIN_REL_ADDR64 ||
						   t->bases[t->slot_base].sym != CHAIN_SYM_SLOT))
		t->slot_base++;
	return 0;
}

static const uint8_t *image_of(const struct chain_image *img, const struct chain_restore *r)
{
	return r->sym == CHAIN_SYM_SCRATCH ? img->scratch_init : img->queue[r->index].wqes;
}

static struct word *get_word(struct table *t, uint32_t part, uint32_t offset)
{
	struct word *w = t->words + t->nwords;

	while (w-- > t->words)
		if (w->part == part && w->offset == offset)
			return w;
	w = &t->words[t->nwords++];
	*w = (struct word){.keep = UINT64_MAX, .part = part, .offset = offset};
	return w;
}

static void plan_byte(
	struct table *t, const struct chain_image *img, const struct chain_restore *r, uint32_t at)
{
	struct word *w =
		get_word(t, r->sym == CHAIN_SYM_SCRATCH ? SCRATCH : r->index, at & ~(uint32_t)(WORD - 1));

	((uint8_t *)&w->keep)[at % WORD] = 0;
	((uint8_t *)&w->bytes)[at % WORD] = image_of(img, r)[at];
}

static int plan_words(struct table *t, const struct chain_image *img)
{
	size_t most = 1;

	for (unsigned i = 0; i < img->nrestores; i++)
		most += img->restores[i].len / WORD + 2;
	t->words = calloc(most, sizeof(*t->words));
	if (!t->words)
		return -ENOMEM;
	for (unsigned i = 0; i < img->nrestores; i++) {
		const struct chain_restore *r = &img->restores[i];

		for (uint32_t at = r->offset; at < r->offset + r->len; at++)
			plan_byte(t, img, r, at);
	}
	return 0;
}

int chain_writer_new(struct chain_writer **writer, const struct chain_image *img)
{
	struct chain_writer *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->img = img;
	for (unsigned q = 0; q < img->nqueues; q++)
		w->part_step[q] = part_step(img, q);
	w->part_step[SCRATCH] = part_step(img, SCRATCH);
	r = plan_numbers(&w->whole, img, 0);
	if (r == 0)
		r = plan_words(&w->again, img);
	if (r == 0)
		r = plan_numbers(&w->again, img, img->again_reloc);
	if (r < 0)
		chain_writer_free(w);
	else
		*writer = w;
	return r;
}

void chain_writer_free(struct chain_writer *w)
{
	if (!w)
		return;
	free(w->whole.numbers);
	free(w->again.words);
	free(w->again.numbers);
	free(w);
}

/* ---- arming ---- */

void chain_write_pad(const struct chain_image *img, const struct chain_env *env, unsigned q, uint64_t lap)
{
	uint32_t w = chain_pad_at(img, q, env->slots);

	while (w < env->queue[q].ring_wqebbs) {
		uint32_t n = chain_pad_nop(img, env->queue[q].ring_wqebbs - w);
		uint8_t *wqe = env->queue[q].ring + (size_t)w * CHAIN_WQEBB;

		memset(wqe, 0, (size_t)n * CHAIN_WQEBB);
		wqe_put16(wqe + WQE_INDEX, (uint16_t)(lap * env->queue[q].ring_wqebbs + w));
		wqe[WQE_OPCODE] = WQE_OP_NOP;
		wqe_put32(wqe + WQE_QPN_DS, env->queue[q].qpn << 8 | n * (CHAIN_WQEBB / WQE_DS));
		w += n;
	}
}

static uint64_t value_of(const struct chain_instance *in, const struct base *b)
{
	switch ((enum chain_reloc_kind)b->kind) {
	case CHAIN_REL_ADDR64:
		return chain_symbol(in, b->sym, b->index).iova;
	case CHAIN_REL_LKEY32:
		return chain_symbol(in, b->sym, b->index).lkey;
	case CHAIN_REL_RKEY32:
		return chain_symbol(in, b->sym, b->index).rkey;
	case CHAIN_REL_QPN24:
		return (uint64_t)in->env->queue[b->index].qpn << 8;
	case CHAIN_REL_QPN32:
		return in->env->queue[b->index].qpn;
	case CHAIN_REL_CQN32:
		return b->index == CHAIN_CQ_RECV ? in->env->recv_cqn : in->env->queue[b->index].cqn;
	case CHAIN_REL_INDEX16:
		return in->queue[b->index].at;
	case CHAIN_REL_ENABLE:
		return in->queue[b->index].next;
	case CHAIN_REL_WAIT:
		return chain_cqe_number(in, b->index);
	case CHAIN_REL_SEQ32:
		return in->seq;
	}
	assert(!"base kind");
	return 0;
}

/* What one instance is written with */
struct state {
	uint64_t base[MAX_BASES];
	uint8_t *part[PARTS];
};

static void begin(struct state *st, const struct chain_writer *w, const struct table *t,
	const struct chain_env *env, uint64_t seq)
{
	struct chain_instance in;

	chain_locate(&in, w->img, env, seq);
	for (unsigned i = 0; i < t->nbases; i++)
		st->base[i] = value_of(&in, &t->bases[i]);
	for (unsigned q = 0; q < w->img->nqueues; q++)
		st->part[q] = in.queue[q].wqes;
	st->part[SCRATCH] = in.scratch_mem;
}

/* To the next instance of the same lap, and of the same round of the reply slots, which are @slot_step bytes
 * apart */
static void go_on(struct state *st, const struct chain_writer *w, const struct table *t, uint64_t slot_step)
{
	for (unsigned i = 0; i < t->nbases; i++)
		st->base[i] += t->bases[i].step;
	st->base[t->slot_base] += slot_step;
	for (unsigned q = 0; q < w->img->nqueues; q++)
		st->part[q] += w->part_step[q];
	if (w->img->scratch_size)
		st->part[SCRATCH] += w->part_step[SCRATCH];
}

static void copy_image(const struct state *st, const struct chain_image *img)
{
	if (img->scratch_size)
		memcpy(st->part[SCRATCH], img->scratch_init, img->scratch_size);
	for (unsigned q = 0; q < img->nqueues; q++)
		memcpy(st->part[q], img->queue[q].wqes, (size_t)img->queue[q].wqebbs * CHAIN_WQEBB);
}

static void put(const struct state *st, const struct table *t)
{
	const struct number *n = t->numbers, *end;
	uint64_t v64;
	uint32_t v32;
	uint16_t v16;

	for (unsigned i = 0; i < t->nwords; i++) {
		const struct word *w = &t->words[i];

		memcpy(&v64, st->part[w->part] + w->offset, sizeof(v64));
		v64 = (v64 & w->keep) | w->bytes;
		memcpy(st->part[w->part] + w->offset, &v64, sizeof(v64));
	}
	for (end = n + t->n16; n < end; n++) {
		v16 = htobe16((uint16_t)(st->base[n->base] + (uint64_t)n->addend));
		memcpy(st->part[n->part] + n->offset, &v16, sizeof(v16));
	}
	for (end = n + t->n32; n < end; n++) {
		v32 = htobe32((uint32_t)(st->base[n->base] + (uint64_t)n->addend) & n->mask);
		memcpy(st->part[n->part] + n->offset, &v32, sizeof(v32));
	}
	for (end = n + t->n64; n < end; n++) {
		v64 = htobe64(st->base[n->base] + (uint64_t)n->addend);
		memcpy(st->part[n->part] + n->offset, &v64, sizeof(v64));
	}
}

/* The NOPs of an earlier lap are there: a NOP changes nothing */
static void renew_pad(const struct chain_image *img, const struct chain_env *env, unsigned q, uint64_t lap)
{
	uint32_t ring = env->queue[q].ring_wqebbs;

	for (uint32_t w = chain_pad_at(img, q, env->slots); w < ring; w += chain_pad_nop(img, ring - w))
		wqe_put16(
			env->queue[q].ring + (size_t)w * CHAIN_WQEBB + WQE_INDEX, (uint16_t)(lap * ring + w));
}

/* The first instance of a lap brings the pads of the lap before */
static void write_pads(const struct chain_image *img, const struct chain_env *env, uint64_t lap, bool again)
{
	for (unsigned q = 0; q < img->nqueues && lap > 0; q++)
		if (again && lap > 1)
			renew_pad(img, env, q, lap - 1);
		else
			chain_write_pad(img, env, q, lap - 1);
}

/* Where an instance publishes that of an extent, with length 0. No base: extents follow each other in no
 * order
 */
static void write_locator(const struct chain_image *img, const struct chain_env *env, uint64_t seq)
{
	const struct chain_publish *p = &img->publish;
	struct chain_instance in;

	if (!p->extent)
		return;
	chain_locate(&in, img, env, seq);
	wqe_put64(
		in.queue[p->queue].wqes + p->offset + WQE_ATOMIC, chain_locator(env->extents.at[in.slot], 0));
}

static void write_instances(const struct chain_writer *w, const struct table *t, const struct chain_env *env,
	uint64_t from, uint64_t to)
{
	const uint64_t slot_step = env->slot_count ? env->slot_size : 0;
	uint64_t until = 0; /* instances before this one can go on from the one before them */
	struct state st;

	for (uint64_t seq = from; seq < to; seq++) {
		const unsigned slot = (unsigned)seq & (env->slots - 1);

		if (seq < until && slot > 0 && slot < env->slots - 1) {
			go_on(&st, w, t, slot_step);
		} else {
			begin(&st, w, t, env, seq);
			until = seq + (env->slot_count ? env->slot_count - seq % env->slot_count : to - seq);
		}
		if (t == &w->whole)
			copy_image(&st, w->img);
		put(&st, t);
		write_locator(w->img, env, seq);
		if (slot == 0)
			write_pads(w->img, env, seq >> __builtin_ctz(env->slots), t == &w->again);
	}
}

void chain_arm(const struct chain_writer *w, const struct chain_env *env, uint64_t from, uint64_t to)
{
	write_instances(w, &w->whole, env, from, to);
}

void chain_arm_again(const struct chain_writer *w, const struct chain_env *env, uint64_t from, uint64_t to)
{
	assert(from >= env->slots);
	write_instances(w, &w->again, env, from, to);
}

/* ---- RECVs ---- */

void chain_format_recv(const struct chain_image *img, const struct chain_env *env, unsigned slot)
{
	uint8_t *sge = env->rq + (size_t)slot * env->rq_stride, *end = sge + env->rq_stride;
	struct chain_instance in;

	chain_locate(&in, img, env, slot);
	for (unsigned i = 0; i < img->nrecv; i++, sge += WQE_DS) {
		const struct chain_recv_sge *r = &img->recv[i];

		const struct chain_symbol sym = chain_symbol(&in, r->sym, r->index);

		wqe_put_sge(sge, r->len, sym.lkey, sym.iova + r->offset);
	}
	if (sge < end) {
		memset(sge, 0, (size_t)(end - sge));
		wqe_put32(sge + 4, WQE_LKEY_NONE);
	}
}

void chain_arm_extent(const struct chain_image *img, const struct chain_env *env, unsigned slot)
{
	chain_format_recv(img, env, slot);
	write_locator(img, env, slot);
}
