/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/layout.h"

#include "reddnd/chain/arm.h"
#include "reddnd/rnic/queue.h"

#include <assert.h>
#include <errno.h>

enum { SLOTS_MIN = 64, LOG_CODE_CQES = 6 };

unsigned session_slots(unsigned depth)
{
	unsigned slots = SLOTS_MIN;

	while (slots < 2 * depth)
		slots *= 2;
	return slots;
}

static uint64_t page_up(uint64_t v)
{
	const uint64_t page = 4096;

	return (v + page - 1) / page * page;
}

int session_layout(
	const struct chain_image *img, unsigned slots, uint32_t max_wqebbs, struct session_layout *l)
{
	unsigned log_slots = (unsigned)__builtin_ctz(slots);
	uint64_t at = 0;

	assert(slots >= 2 && (slots & (slots - 1)) == 0);
	*l = (struct session_layout){.slots = slots, .rq_stride = chain_rq_stride(img)};
	for (unsigned q = 0; q < img->nqueues; q++) {
		l->queue[q].cq_db_off = at;
		l->queue[q].qp_db_off = at + RNIC_DB_BYTES;
		at += 2 * RNIC_DB_BYTES;
	}
	for (unsigned q = 0; q < img->nqueues; q++) {
		/* The audit looks at the RECV of every instance it takes back; other CQs only count and keep the
		 * CQE of an error */
		l->queue[q].cq_log_size = q == 0 && log_slots > LOG_CODE_CQES ? log_slots : LOG_CODE_CQES;
		at = page_up(at);
		l->queue[q].cqes_off = at;
		at += (uint64_t)RNIC_CQE_BYTES << l->queue[q].cq_log_size;
	}
	at = page_up(at);
	l->code_off = at;
	for (unsigned q = 0; q < img->nqueues; q++) {
		uint32_t ring = chain_ring_wqebbs(&img->queue[q], slots);

		if (ring == 0 || ring > max_wqebbs)
			return -E2BIG;
		at = page_up(at);
		l->queue[q].wq_off = at;
		if (q == 0)
			at += (uint64_t)slots * l->rq_stride;
		at = (at + RNIC_WQEBB_BYTES - 1) / RNIC_WQEBB_BYTES * RNIC_WQEBB_BYTES;
		l->queue[q].ring_off = at;
		l->queue[q].ring_wqebbs = ring;
		at += (uint64_t)ring * RNIC_WQEBB_BYTES;
	}
	l->scratch_off = at;
	at += (uint64_t)slots * img->scratch_size;
	l->code_size = at - l->code_off;
	l->size = page_up(at);
	return 0;
}
