/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ring/lap-end.h"

#include "mlx5/wqe.h"
#include "reddnd/chain/ir/verbs.h"
#include "reddnd/chain/ring/instance.h"

#include <string.h>

bool chain_has_lap_end(const struct chain_image *img)
{
	return chain_start_queue(img) > 0;
}

uint32_t chain_lap_end_at(const struct chain_image *img, const struct chain_env *env)
{
	return chain_pad_at(img, 0, env->slots);
}

uint16_t chain_lap_end_index(const struct chain_image *img, const struct chain_env *env, uint64_t lap)
{
	return chain_enable_index(
		img, env, chain_start_queue(img), (lap + 1) * env->slots, chain_start_index(img));
}

/* It enables the head of the next lap, too */
static bool crosses(
	const struct chain_image *img, const struct chain_env *env, const struct chain_reloc *r, uint64_t seq)
{
	return chain_has_lap_end(img) && r->index == chain_start_queue(img) &&
	       seq % env->slots + 1 == env->slots && r->addend > img->queue[r->index].wqebbs;
}

uint16_t chain_recycled_index(
	const struct chain_image *img, const struct chain_env *env, const struct chain_reloc *r, uint64_t seq)
{
	if (crosses(img, env, r, seq))
		return chain_enable_index(img, env, r->index, seq + 1, 0);
	return chain_enable_index(img, env, r->index, seq, (uint32_t)r->addend);
}

/* A WQE in WQEBB @at of queue 0, with an index of lap @lap */
static uint8_t *write_wqe(
	const struct chain_env *env, uint64_t lap, uint32_t at, enum chain_verb verb, unsigned ds)
{
	uint8_t *w = env->queue[0].ring + (size_t)at * CHAIN_WQEBB;

	memset(w, 0, CHAIN_WQEBB);
	wqe_put16(w + WQE_INDEX, (uint16_t)(lap * env->queue[0].ring_wqebbs + at));
	w[WQE_OPCODE] = chain_verb_info(verb)->opcode;
	wqe_put32(w + WQE_QPN_DS, env->queue[0].qpn << 8 | ds);
	return w;
}

/* The first NOP of the pad makes room for it */
static void write_pad(const struct chain_image *img, const struct chain_env *env, uint64_t lap)
{
	const uint32_t at = chain_lap_end_at(img, env);
	const uint32_t nop = chain_pad_nop(img, env->queue[0].ring_wqebbs - at);
	uint8_t *w = write_wqe(env, lap, at, CHAIN_SEND_EN, chain_wqe_ds(CHAIN_SEND_EN, 0));

	wqe_put32(w + WQE_SYNC_INDEX, chain_lap_end_index(img, env, lap));
	wqe_put32(w + WQE_SYNC_OBJECT, env->queue[chain_start_queue(img)].qpn);
	if (nop > 1)
		write_wqe(env, lap, at + 1, CHAIN_NOP, (nop - 1) * (CHAIN_WQEBB / WQE_DS));
}

static void write_last(const struct chain_image *img, const struct chain_env *env, uint64_t seq)
{
	struct chain_instance in;

	chain_locate(&in, img, env, seq);
	for (const struct chain_reloc *r = img->relocs; r < img->relocs + img->nrelocs; r++)
		if (r->kind == CHAIN_REL_ENABLE && crosses(img, env, r, seq))
			wqe_put32(
				in.queue[r->where].wqes + r->offset, chain_recycled_index(img, env, r, seq));
}

void chain_write_lap_end(const struct chain_image *img, const struct chain_env *env, uint64_t lap)
{
	write_last(img, env, (lap + 1) * env->slots - 1);
	write_pad(img, env, lap);
}
