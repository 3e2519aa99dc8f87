/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ring/instance.h"

#include "mlx5/cqe.h"
#include "mlx5/wqe.h"

#include <assert.h>
#include <stddef.h>

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
