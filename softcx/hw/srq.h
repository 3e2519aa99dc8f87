/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * srq.h - shared receive queues: WQEs linked by the index in their first segment
 * (mlx5dv.h, struct mlx5_wqe_srq_next_seg), posted by a counter in the doorbell record. Internal to
 * softcx/hw.
 */
#ifndef SOFTCX_HW_SRQ_H
#define SOFTCX_HW_SRQ_H

#include "softcx/hw/dev.h"

struct hw_srq {
	struct hw_dev *dev;
	uint32_t srqn, pdn;
	uint8_t *ring;
	uint32_t wqes, stride;
	uint32_t *db;
	bool cyclic;       /* one WQE after the other: their next-segments have no meaning */
	uint16_t head;     /* index of the next WQE to consume; not wrapped if cyclic */
	uint16_t consumed; /* WQEs */
	uint16_t limit;    /* 0: no event armed */
	unsigned refs;     /* by QPs */
	struct hw_mem *buf_mem, *db_mem;
	void (*on_event)(void *arg, int event);
	void *arg;
};

uint16_t hw_srq_posted(const struct hw_srq *srq); /* WQEs that can be consumed */
/** Takes the next WQE: its scatter list, room for @max segments, and its index. Only if one is posted. */
const uint8_t *hw_srq_take(struct hw_srq *srq, unsigned *max, uint16_t *idx);

#endif
