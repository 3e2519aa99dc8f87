/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ring/arm.h"

#include "mlx5/wqe.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

/* Not reduced: what a field of any width may take the low bits of */
static uint64_t position(const struct chain_image *img, const struct chain_env *env, unsigned q, uint64_t seq)
{
	return (seq >> __builtin_ctz(env->slots)) * env->queue[q].ring_wqebbs +
	       (seq & (env->slots - 1)) * img->queue[q].wqebbs;
}

/* @at, @next: ring indices of an instance of @own WQEBBs in queue @q, and of the next one */
static uint16_t enable_at(unsigned q, uint32_t own, uint64_t at, uint64_t next, uint32_t wqebbs)
{
	bool through_pad = wqebbs > own || (wqebbs == own && q > 0);

	assert(wqebbs <= 2 * own);
	return (uint16_t)(through_pad ? next + wqebbs - own : at + wqebbs);
}

uint16_t chain_enable_index(
	const struct chain_image *img, const struct chain_env *env, unsigned q, uint64_t seq, uint32_t wqebbs)
{
	return enable_at(
		q, img->queue[q].wqebbs, position(img, env, q, seq), position(img, env, q, seq + 1), wqebbs);
}

uint16_t chain_start_index(const struct chain_image *img)
{
	return (uint16_t)img->queue[0].head_wqebbs;
}

/** What relocations of one instance are made from: worked out once for all of them. */
struct instance {
	const struct chain_image *img;
	const struct chain_env *env;
	unsigned slot;
	uint64_t lap;
	uint64_t seq, slot_addr;
	struct {
		uint64_t addr;     /* IOVA of its first WQEBB */
		uint64_t at, next; /* ring index of that, and of the one of the next instance, not reduced */
		uint8_t *wqes;
	} queue[CHAIN_MAX_QUEUES];
	uint64_t scratch;
	uint8_t *scratch_mem;
};

static void locate(
	struct instance *in, const struct chain_image *img, const struct chain_env *env, uint64_t seq)
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
		in->queue[q].wqes = env->queue[q].ring + own * CHAIN_WQEBB;
		in->queue[q].at = in->lap * ring + own;
		in->queue[q].next =
			in->slot + 1 < env->slots ? in->queue[q].at + wqebbs : (in->lap + 1) * ring;
	}
	in->scratch = env->scratch.iova + (uint64_t)in->slot * img->scratch_size;
	in->scratch_mem = env->scratch.mem + (size_t)in->slot * img->scratch_size;
	in->slot_addr = env->slot_addr;
	if (env->slot_count)
		in->slot_addr += seq % env->slot_count * env->slot_size;
}

static uint64_t address(const struct instance *in, unsigned sym, unsigned index)
{
	switch ((enum chain_sym_kind)sym) {
	case CHAIN_SYM_QUEUE:
		return in->queue[index].addr;
	case CHAIN_SYM_SCRATCH:
		return in->scratch;
	case CHAIN_SYM_REGION:
		return in->env->region[index].iova;
	case CHAIN_SYM_SLOT:
		return in->slot_addr;
	}
	assert(!"symbol kind");
	return 0;
}

static uint32_t lkey(const struct chain_env *env, unsigned sym, unsigned index)
{
	switch ((enum chain_sym_kind)sym) {
	case CHAIN_SYM_QUEUE:
		return env->queue[index].lkey;
	case CHAIN_SYM_SCRATCH:
		return env->scratch.lkey;
	case CHAIN_SYM_REGION:
		return env->region[index].lkey;
	case CHAIN_SYM_SLOT:
		break;
	}
	assert(!"symbol kind");
	return 0;
}

static uint32_t rkey(const struct chain_env *env, unsigned sym, unsigned index)
{
	switch ((enum chain_sym_kind)sym) {
	case CHAIN_SYM_QUEUE:
		return env->queue[index].rkey;
	case CHAIN_SYM_SCRATCH:
		return env->scratch.rkey;
	case CHAIN_SYM_REGION:
		return env->region[index].rkey;
	case CHAIN_SYM_SLOT:
		return env->slot_rkey;
	}
	assert(!"symbol kind");
	return 0;
}

static void relocate(const struct instance *in, const struct chain_reloc *r)
{
	const struct chain_env *env = in->env;
	uint8_t *f = in->queue[r->where].wqes + r->offset;
	uint64_t cqes, before;

	switch ((enum chain_reloc_kind)r->kind) {
	case CHAIN_REL_ADDR64:
		wqe_put64(f, address(in, r->sym, r->index) + (uint64_t)r->addend);
		return;
	case CHAIN_REL_LKEY32:
		wqe_put32(f, lkey(env, r->sym, r->index));
		return;
	case CHAIN_REL_RKEY32:
		wqe_put32(f, rkey(env, r->sym, r->index));
		return;
	case CHAIN_REL_QPN24:
		wqe_put32(f, env->queue[r->index].qpn << 8 | f[3]);
		return;
	case CHAIN_REL_QPN32:
		wqe_put32(f, env->queue[r->index].qpn);
		return;
	case CHAIN_REL_CQN32:
		wqe_put32(f, r->index == CHAIN_CQ_RECV ? env->recv_cqn : env->queue[r->index].cqn);
		return;
	case CHAIN_REL_INDEX16:
		wqe_put16(f, (uint16_t)(in->queue[r->where].at + r->offset / CHAIN_WQEBB));
		return;
	case CHAIN_REL_ENABLE:
		wqe_put32(f, enable_at(r->index, in->img->queue[r->index].wqebbs, in->queue[r->index].at,
				     in->queue[r->index].next, (uint32_t)r->addend));
		return;
	case CHAIN_REL_WAIT:
		cqes = r->index == CHAIN_CQ_RECV ? 1 : in->img->queue[r->index].cqes;
		before = r->index == CHAIN_CQ_RECV ? env->recv_before : env->queue[r->index].before;
		wqe_put32(f, (uint32_t)(before + in->seq * cqes + (uint64_t)r->addend) & 0xffffff);
		return;
	case CHAIN_REL_SEQ32:
		wqe_put32(f, (uint32_t)(in->seq + (uint64_t)r->addend));
		return;
	}
	assert(!"relocation kind");
}

void chain_write_pad(const struct chain_image *img, const struct chain_env *env, unsigned q, uint64_t lap)
{
	uint32_t w = img->queue[q].wqebbs * env->slots;

	while (w < env->queue[q].ring_wqebbs) {
		uint32_t left = env->queue[q].ring_wqebbs - w;
		uint32_t n = left < CHAIN_PAD_WQEBBS ? left : CHAIN_PAD_WQEBBS;
		uint8_t *wqe = env->queue[q].ring + (size_t)w * CHAIN_WQEBB;

		memset(wqe, 0, (size_t)n * CHAIN_WQEBB);
		wqe_put16(wqe + WQE_INDEX, (uint16_t)(lap * env->queue[q].ring_wqebbs + w));
		wqe[WQE_OPCODE] = WQE_OP_NOP;
		wqe_put32(wqe + WQE_QPN_DS, env->queue[q].qpn << 8 | n * (CHAIN_WQEBB / WQE_DS));
		w += n;
	}
}

/* The NOPs of an earlier lap are there: a NOP changes nothing */
static void renew_pad(const struct chain_image *img, const struct chain_env *env, unsigned q, uint64_t lap)
{
	uint32_t ring = env->queue[q].ring_wqebbs;

	for (uint32_t w = img->queue[q].wqebbs * env->slots; w < ring; w += CHAIN_PAD_WQEBBS)
		wqe_put16(
			env->queue[q].ring + (size_t)w * CHAIN_WQEBB + WQE_INDEX, (uint16_t)(lap * ring + w));
}

void chain_arm(const struct chain_image *img, const struct chain_env *env, uint64_t seq)
{
	struct instance in;

	locate(&in, img, env, seq);
	if (img->scratch_size)
		memcpy(in.scratch_mem, img->scratch_init, img->scratch_size);
	for (unsigned q = 0; q < img->nqueues; q++) {
		memcpy(in.queue[q].wqes, img->queue[q].wqes, (size_t)img->queue[q].wqebbs * CHAIN_WQEBB);
		if (in.slot == 0 && in.lap > 0)
			chain_write_pad(img, env, q, in.lap - 1);
	}
	for (unsigned i = 0; i < img->nrelocs; i++)
		relocate(&in, &img->relocs[i]);
}

static void restore(const struct instance *in, const struct chain_restore *r)
{
	if (r->sym == CHAIN_SYM_SCRATCH)
		memcpy(in->scratch_mem + r->offset, in->img->scratch_init + r->offset, r->len);
	else
		memcpy(in->queue[r->index].wqes + r->offset, in->img->queue[r->index].wqes + r->offset,
			r->len);
}

void chain_arm_again(const struct chain_image *img, const struct chain_env *env, uint64_t seq)
{
	const struct chain_reloc *index = img->relocs + img->index_reloc, *end = img->relocs + img->nrelocs;
	struct instance in;

	locate(&in, img, env, seq);
	assert(in.lap > 0);
	for (unsigned i = 0; i < img->nrestores; i++)
		restore(&in, &img->restores[i]);
	for (const struct chain_reloc *r = img->relocs + img->again_reloc; r < index; r++)
		relocate(&in, r);
	for (const struct chain_reloc *r = index; r < end; r++)
		wqe_put16(in.queue[r->where].wqes + r->offset,
			(uint16_t)(in.queue[r->where].at + r->offset / CHAIN_WQEBB));
	for (unsigned q = 0; in.slot == 0 && q < img->nqueues; q++) {
		if (in.lap == 1)
			chain_write_pad(img, env, q, 0);
		else
			renew_pad(img, env, q, in.lap - 1);
	}
}

void chain_format_recv(const struct chain_image *img, const struct chain_env *env, unsigned slot)
{
	uint8_t *sge = env->rq + (size_t)slot * env->rq_stride, *end = sge + env->rq_stride;
	struct instance in;

	locate(&in, img, env, slot);
	for (unsigned i = 0; i < img->nrecv; i++, sge += WQE_DS) {
		const struct chain_recv_sge *r = &img->recv[i];

		wqe_put32(sge, r->len);
		wqe_put32(sge + 4, lkey(env, r->sym, r->index));
		wqe_put64(sge + 8, address(&in, r->sym, r->index) + r->offset);
	}
	if (sge < end) {
		memset(sge, 0, (size_t)(end - sge));
		wqe_put32(sge + 4, WQE_LKEY_NONE);
	}
}
