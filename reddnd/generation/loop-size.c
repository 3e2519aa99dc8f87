/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/generation/loop-size.h"

#include "reddnd/program/program.h"

enum { AHEAD_PER_SECOND = 25, AHEAD_MIN = 2, AHEAD_MAX = CHAIN_MAX_RING / 2, CREDITS_MIN = 64 };

struct loop_pace loop_pace_of(const struct program *p, uint64_t rate)
{
	uint64_t per_second = 2 * rate / p->loop_info.lap.wqes, ahead;

	per_second = per_second ? per_second : 1;
	ahead = per_second / AHEAD_PER_SECOND;
	ahead = ahead < AHEAD_MIN ? AHEAD_MIN : ahead > AHEAD_MAX ? AHEAD_MAX : ahead;
	return (struct loop_pace){.per_second = per_second, .ahead = (uint32_t)ahead};
}

uint64_t loop_pace_credits(
	const struct loop_pace *pace, uint64_t ahead, unsigned connections, uint64_t tokens)
{
	uint64_t most = pace->ahead / connections, n;

	most = most < AHEAD_MIN ? AHEAD_MIN : most;
	n = ahead < most ? most - ahead : 0;
	return n < tokens ? n : tokens;
}

/* At most two iterations of the ring are enabled at a time, so an error flushes at most these */
bool loop_size_of(const struct program *p, uint64_t rate, struct loop_size *size)
{
	const struct chain_loop_info *info = &p->loop_info;

	if (!p->loop)
		return false;
	*size = (struct loop_size){
		.ring_wqebbs = p->loop_ring,
		.cqes = 2 * p->loop->nsteps + info->lap.copies + info->lap.adds + 2,
		.lanes = info->lanes,
		.scratch = info->scratch,
		.shared = p->shared_bytes,
		.credits = CREDITS_MIN,
	};
	while (size->credits < 2 * loop_pace_of(p, rate).ahead)
		size->credits *= 2;
	return true;
}
