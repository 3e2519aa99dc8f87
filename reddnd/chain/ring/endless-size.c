/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ring/endless.h"

#include <errno.h>
#include <stdlib.h>

enum { ITERATIONS = 16 /* a lap has at least so many, if there is room */ };

int chain_loop_size(const struct chain_desc *d, uint32_t max_wqebbs, uint32_t *ring,
	struct chain_loop_info *info, struct chain_error *err)
{
	int r = -E2BIG;

	for (uint32_t wqebbs = LAP_MIN_RING; wqebbs <= max_wqebbs && wqebbs <= CHAIN_MAX_RING; wqebbs *= 2) {
		struct chain_env env = {.queue[0].ring_wqebbs = wqebbs, .call.credit_cqn = 1};
		struct chain_loop_info tried = {0};
		int t = chain_loop(d, &env, &tried, err);

		if (t && t != -E2BIG)
			return t;
		if (t)
			continue;
		r = 0;
		*ring = wqebbs;
		*info = tried;
		if (tried.iterations >= ITERATIONS)
			break;
	}
	return r;
}

/* Addresses that are no pointers, and a key for each thing */
static void place(struct chain_env *env, const struct chain_desc *d, const struct chain_loop_info *info)
{
	uint32_t key = 1;

	env->queue[0].qpn = 1;
	env->queue[0].cqn = 2;
	env->call.exit_qpn = 3;
	env->call.gate_cqn = 4;
	env->call.credit_cqn = 5;
	env->queue[0].iova = 1ull << 57;
	env->queue[0].lkey = env->queue[0].rkey = key++;
	env->lanes.iova = 2ull << 57;
	env->lanes.lkey = env->lanes.rkey = key++;
	env->lanes.size = info->lanes;
	env->scratch.iova = 3ull << 57;
	env->scratch.lkey = env->scratch.rkey = key++;
	for (unsigned i = 0; i < d->nregions; i++) {
		env->region[i].iova = (uint64_t)(i + 4) << 57;
		env->region[i].lkey = env->region[i].rkey = key++;
	}
}

int chain_loop_image(const struct chain_desc *d, uint32_t ring, struct chain_loop_info *info, uint8_t **bytes,
	struct chain_error *err)
{
	struct chain_env env = {0};
	int r = -ENOMEM;

	place(&env, d, info);
	env.queue[0].ring_wqebbs = ring;
	env.queue[0].ring = malloc((size_t)ring * CHAIN_WQEBB);
	env.lanes.mem = malloc(info->lanes);
	env.scratch.mem = malloc(info->scratch + 1);
	if (env.queue[0].ring && env.lanes.mem && env.scratch.mem)
		r = chain_loop(d, &env, info, err);
	*bytes = r == 0 ? env.queue[0].ring : NULL;
	if (r)
		free(env.queue[0].ring);
	free(env.lanes.mem);
	free(env.scratch.mem);
	return r;
}

int chain_loop_prove(
	const struct chain_desc *d, uint32_t *ring, struct chain_loop_info *info, struct chain_error *err)
{
	uint8_t *bytes = NULL;
	int r = chain_loop_size(d, CHAIN_MAX_RING, ring, info, err);

	if (r == 0)
		r = chain_loop_image(d, *ring, info, &bytes, err);
	free(bytes);
	return r;
}
