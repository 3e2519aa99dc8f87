/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ring/again.h"

#include "mlx5/cqe.h"
#include "mlx5/wqe.h"
#include "reddnd/chain/ring/instance.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

struct chain_again {
	const struct chain_image *img;
	struct word *words;
	unsigned nwords;
	struct number *numbers; /* first those of 16 bits, then of 32, then of 64 */
	unsigned n16, n32, n64;
	struct base bases[MAX_BASES];
	unsigned nbases;
	unsigned slot_base;      /* the address of the reply slot; nbases: there is none */
	size_t part_step[PARTS]; /* bytes, as base.step */
};

/* ---- preparing ---- */

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

static uint8_t get_base(struct chain_again *a, const struct base *b)
{
	unsigned i = 0;

	while (i < a->nbases &&
		(a->bases[i].kind != b->kind || a->bases[i].sym != b->sym || a->bases[i].index != b->index))
		i++;
	assert(i < MAX_BASES - 1);
	if (i == a->nbases) {
		a->bases[i] = *b;
		a->bases[i].step = step_of(a->img, b);
		a->nbases++;
	}
	return (uint8_t)i;
}

/* An end of an instance of @own WQEBBs that lies behind its pad is counted from the next one */
static void count_enabled(const struct chain_image *img, struct base *b, struct number *n)
{
	const struct chain_queue *q = &img->queue[b->index];

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

/* Returns their number */
static unsigned add_numbers(struct chain_again *a, struct number *at, unsigned bits)
{
	const struct chain_image *img = a->img;
	struct number *n = at;
	struct base b;

	for (unsigned i = img->again_reloc; i < img->nrelocs; i++) {
		plan(img, &img->relocs[i], &b, n);
		if (n->bits == bits)
			n++->base = get_base(a, &b);
	}
	return (unsigned)(n - at);
}

static int plan_numbers(struct chain_again *a)
{
	a->numbers = calloc(a->img->nrelocs - a->img->again_reloc + 1, sizeof(*a->numbers));
	if (!a->numbers)
		return -ENOMEM;
	a->n16 = add_numbers(a, a->numbers, 16);
	a->n32 = add_numbers(a, a->numbers + a->n16, 32);
	a->n64 = add_numbers(a, a->numbers + a->n16 + a->n32, 64);
	while (a->slot_base < a->nbases && (a->bases[a->slot_base].kind != CHAIN_REL_ADDR64 ||
						   a->bases[a->slot_base].sym != CHAIN_SYM_SLOT))
		a->slot_base++;
	return 0;
}

static const uint8_t *image_of(const struct chain_image *img, const struct chain_restore *r)
{
	return r->sym == CHAIN_SYM_SCRATCH ? img->scratch_init : img->queue[r->index].wqes;
}

static struct word *get_word(struct chain_again *a, uint32_t part, uint32_t offset)
{
	struct word *w = a->words + a->nwords;

	while (w-- > a->words)
		if (w->part == part && w->offset == offset)
			return w;
	w = &a->words[a->nwords++];
	*w = (struct word){.keep = UINT64_MAX, .part = part, .offset = offset};
	return w;
}

static void plan_byte(struct chain_again *a, const struct chain_restore *r, uint32_t at)
{
	struct word *w =
		get_word(a, r->sym == CHAIN_SYM_SCRATCH ? SCRATCH : r->index, at & ~(uint32_t)(WORD - 1));

	((uint8_t *)&w->keep)[at % WORD] = 0;
	((uint8_t *)&w->bytes)[at % WORD] = image_of(a->img, r)[at];
}

static int plan_words(struct chain_again *a)
{
	size_t most = 1;

	for (unsigned i = 0; i < a->img->nrestores; i++)
		most += a->img->restores[i].len / WORD + 2;
	a->words = calloc(most, sizeof(*a->words));
	if (!a->words)
		return -ENOMEM;
	for (unsigned i = 0; i < a->img->nrestores; i++) {
		const struct chain_restore *r = &a->img->restores[i];

		for (uint32_t at = r->offset; at < r->offset + r->len; at++)
			plan_byte(a, r, at);
	}
	return 0;
}

int chain_again_new(struct chain_again **again, const struct chain_image *img)
{
	struct chain_again *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	a->img = img;
	for (unsigned q = 0; q < img->nqueues; q++)
		a->part_step[q] = part_step(img, q);
	a->part_step[SCRATCH] = part_step(img, SCRATCH);
	r = plan_words(a);
	if (r == 0)
		r = plan_numbers(a);
	if (r < 0) {
		chain_again_free(a);
		return r;
	}
	*again = a;
	return 0;
}

void chain_again_free(struct chain_again *a)
{
	if (!a)
		return;
	free(a->words);
	free(a->numbers);
	free(a);
}

/* ---- arming ---- */

static uint64_t value_of(const struct chain_instance *in, const struct base *b)
{
	switch ((enum chain_reloc_kind)b->kind) {
	case CHAIN_REL_ADDR64:
		return chain_address(in, b->sym, b->index);
	case CHAIN_REL_LKEY32:
		return chain_lkey(in, b->sym, b->index);
	case CHAIN_REL_RKEY32:
		return chain_rkey(in, b->sym, b->index);
	case CHAIN_REL_QPN24:
		return (uint64_t)chain_qpn(in, b->index) << 8;
	case CHAIN_REL_QPN32:
		return chain_qpn(in, b->index);
	case CHAIN_REL_CQN32:
		return chain_cqn(in, b->index);
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

static void begin(struct state *st, const struct chain_again *a, const struct chain_env *env, uint64_t seq)
{
	struct chain_instance in;

	chain_locate(&in, a->img, env, seq);
	for (unsigned i = 0; i < a->nbases; i++)
		st->base[i] = value_of(&in, &a->bases[i]);
	for (unsigned q = 0; q < a->img->nqueues; q++)
		st->part[q] = in.queue[q].wqes;
	st->part[SCRATCH] = in.scratch_mem;
}

/* To the next instance of the same lap, and of the same round of the reply slots, which are @slot_step bytes
 * apart */
static void go_on(struct state *st, const struct chain_again *a, uint64_t slot_step)
{
	for (unsigned i = 0; i < a->nbases; i++)
		st->base[i] += a->bases[i].step;
	st->base[a->slot_base] += slot_step;
	for (unsigned q = 0; q < a->img->nqueues; q++)
		st->part[q] += a->part_step[q];
	st->part[SCRATCH] += a->part_step[SCRATCH];
}

static void put(const struct state *st, const struct chain_again *a)
{
	const struct number *n = a->numbers, *end;
	const struct word *w, *last = a->words + a->nwords;
	uint64_t v64;
	uint32_t v32;
	uint16_t v16;

	for (w = a->words; w < last; w++) {
		memcpy(&v64, st->part[w->part] + w->offset, sizeof(v64));
		v64 = (v64 & w->keep) | w->bytes;
		memcpy(st->part[w->part] + w->offset, &v64, sizeof(v64));
	}
	for (end = n + a->n16; n < end; n++) {
		v16 = htobe16((uint16_t)(st->base[n->base] + (uint64_t)n->addend));
		memcpy(st->part[n->part] + n->offset, &v16, sizeof(v16));
	}
	for (end = n + a->n32; n < end; n++) {
		v32 = htobe32((uint32_t)(st->base[n->base] + (uint64_t)n->addend) & n->mask);
		memcpy(st->part[n->part] + n->offset, &v32, sizeof(v32));
	}
	for (end = n + a->n64; n < end; n++) {
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

/* The first instance of a lap brings the pads of the lap before, as with chain_arm() */
static void write_pads(const struct chain_image *img, const struct chain_env *env, uint64_t seq)
{
	const uint64_t lap = seq >> __builtin_ctz(env->slots);

	for (unsigned q = 0; q < img->nqueues; q++)
		if (lap == 1)
			chain_write_pad(img, env, q, 0);
		else
			renew_pad(img, env, q, lap - 1);
}

/* No base: extents follow each other in no order */
static void write_locator(const struct chain_again *a, const struct chain_env *env, uint64_t seq)
{
	struct chain_instance in;

	chain_locate(&in, a->img, env, seq);
	chain_write_locator(&in);
}

void chain_arm_again(const struct chain_again *a, const struct chain_env *env, uint64_t from, uint64_t to)
{
	const uint64_t slot_step = env->slot_count ? env->slot_size : 0;
	uint64_t until = 0; /* instances before this one can go on from the one before them */
	struct state st;

	assert(from >= env->slots);
	for (uint64_t seq = from; seq < to; seq++) {
		const unsigned slot = (unsigned)seq & (env->slots - 1);

		if (seq < until && slot > 0 && slot < env->slots - 1) {
			go_on(&st, a, slot_step);
		} else {
			begin(&st, a, env, seq);
			until = seq + (env->slot_count ? env->slot_count - seq % env->slot_count : to - seq);
		}
		put(&st, a);
		if (a->img->publish.extent)
			write_locator(a, env, seq);
		if (slot == 0)
			write_pads(a->img, env, seq);
	}
}
