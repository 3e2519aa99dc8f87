/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ring/arm.h"

#include "mlx5/wqe.h"
#include "reddnd/chain/ring/instance.h"

#include <assert.h>
#include <string.h>

/* Not reduced: what a field of any width may take the low bits of */
static uint64_t position(const struct chain_image *img, const struct chain_env *env, unsigned q, uint64_t seq)
{
	return (seq >> __builtin_ctz(env->slots)) * env->queue[q].ring_wqebbs +
	       (seq & (env->slots - 1)) * img->queue[q].wqebbs;
}

/* @at, @next: ring indices of an instance in queue @q, and of the next one */
static uint16_t enable_at(const struct chain_queue *q, uint64_t at, uint64_t next, uint32_t wqebbs)
{
	assert(wqebbs <= 2 * q->wqebbs);
	return (uint16_t)(chain_through_pad(q, wqebbs) ? next + wqebbs - q->wqebbs : at + wqebbs);
}

uint16_t chain_enable_index(
	const struct chain_image *img, const struct chain_env *env, unsigned q, uint64_t seq, uint32_t wqebbs)
{
	return enable_at(&img->queue[q], position(img, env, q, seq), position(img, env, q, seq + 1), wqebbs);
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

static void relocate(const struct chain_instance *in, const struct chain_reloc *r)
{
	uint8_t *f = in->queue[r->where].wqes + r->offset;

	switch ((enum chain_reloc_kind)r->kind) {
	case CHAIN_REL_ADDR64:
		wqe_put64(f, chain_address(in, r->sym, r->index) + (uint64_t)r->addend);
		return;
	case CHAIN_REL_LKEY32:
		wqe_put32(f, chain_lkey(in, r->sym, r->index));
		return;
	case CHAIN_REL_RKEY32:
		wqe_put32(f, chain_rkey(in, r->sym, r->index));
		return;
	case CHAIN_REL_QPN24:
		wqe_put32(f, chain_qpn(in, r->index) << 8 | f[3]);
		return;
	case CHAIN_REL_QPN32:
		wqe_put32(f, chain_qpn(in, r->index));
		return;
	case CHAIN_REL_CQN32:
		wqe_put32(f, chain_cqn(in, r->index));
		return;
	case CHAIN_REL_INDEX16:
		wqe_put16(f, (uint16_t)(in->queue[r->where].at + r->offset / CHAIN_WQEBB));
		return;
	case CHAIN_REL_ENABLE:
		wqe_put32(f, enable_at(&in->img->queue[r->index], in->queue[r->index].at,
				     in->queue[r->index].next, (uint32_t)r->addend));
		return;
	case CHAIN_REL_WAIT:
		wqe_put32(f, (uint32_t)(chain_cqe_number(in, r->index) + (uint64_t)r->addend) & 0xffffff);
		return;
	case CHAIN_REL_SEQ32:
		wqe_put32(f, (uint32_t)(in->seq + (uint64_t)r->addend));
		return;
	}
	assert(!"relocation kind");
}

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

void chain_arm(const struct chain_image *img, const struct chain_env *env, uint64_t seq)
{
	struct chain_instance in;

	chain_locate(&in, img, env, seq);
	if (img->scratch_size)
		memcpy(in.scratch_mem, img->scratch_init, img->scratch_size);
	for (unsigned q = 0; q < img->nqueues; q++) {
		memcpy(in.queue[q].wqes, img->queue[q].wqes, (size_t)img->queue[q].wqebbs * CHAIN_WQEBB);
		if (in.slot == 0 && in.lap > 0)
			chain_write_pad(img, env, q, in.lap - 1);
	}
	for (unsigned i = 0; i < img->nrelocs; i++)
		relocate(&in, &img->relocs[i]);
	chain_write_locator(&in);
}

void chain_format_recv(const struct chain_image *img, const struct chain_env *env, unsigned slot)
{
	uint8_t *sge = env->rq + (size_t)slot * env->rq_stride, *end = sge + env->rq_stride;
	struct chain_instance in;

	chain_locate(&in, img, env, slot);
	for (unsigned i = 0; i < img->nrecv; i++, sge += WQE_DS) {
		const struct chain_recv_sge *r = &img->recv[i];

		wqe_put32(sge, r->len);
		wqe_put32(sge + 4, chain_lkey(&in, r->sym, r->index));
		wqe_put64(sge + 8, chain_address(&in, r->sym, r->index) + r->offset);
	}
	if (sge < end) {
		memset(sge, 0, (size_t)(end - sge));
		wqe_put32(sge + 4, WQE_LKEY_NONE);
	}
}
