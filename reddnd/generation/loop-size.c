/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/generation/loop-size.h"

#include "reddnd/program/program.h"

/* At most two iterations of the ring are enabled at a time, so an error flushes at most these */
bool loop_size_of(const struct program *p, struct loop_size *size)
{
	const struct chain_loop_info *info = &p->loop_info;

	if (!p->loop)
		return false;
	*size = (struct loop_size){
		.ring_wqebbs = p->loop_ring,
		.cqes = 2 * p->loop->nsteps + info->lap.reads + info->lap.adds + 2,
		.lanes = info->lanes,
		.scratch = info->scratch,
		.shared = p->shared_bytes,
	};
	return true;
}

uint64_t loop_size_wqes(const struct program *p, uint64_t iterations)
{
	return p->loop ? iterations * p->loop_info.lap.wqes / p->loop_info.iterations : 0;
}
