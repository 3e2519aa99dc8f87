/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/srq.h"
#include "mlx5/wqe.h"

#include <errno.h>
#include <stdlib.h>

enum { NEXT_SEG = 16, NEXT_INDEX = 2 };

int hw_srq_create(struct hw_dev *dev, const struct hw_srq_attr *attr, struct hw_srq **out)
{
	struct hw_srq *srq;
	int err;

	if (!attr->wqes || attr->wqes > 65536 || attr->wqes & (attr->wqes - 1) || attr->stride < 32 ||
		attr->stride & (attr->stride - 1))
		return -EINVAL;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return -ENOMEM;
	srq->dev = dev;
	srq->pdn = attr->pdn;
	srq->wqes = attr->wqes;
	srq->stride = attr->stride;
	srq->cyclic = attr->cyclic;
	srq->on_event = attr->on_event;
	srq->arg = attr->arg;
	srq->ring = hw_mem_pin(dev, attr->buf, attr->buf_off, (uint64_t)attr->wqes * attr->stride, 16);
	srq->buf_mem = srq->ring ? attr->buf : NULL;
	srq->db = hw_mem_pin(dev, attr->db, attr->db_off, 4, 4);
	srq->db_mem = srq->db ? attr->db : NULL;
	err = srq->ring && srq->db ? hw_pd_ref(dev, attr->pdn) : -EINVAL;
	if (!err) {
		err = hw_table_add(&dev->srqs, srq, &srq->srqn);
		if (err)
			hw_pd_unref(dev, attr->pdn);
	}
	if (err) {
		hw_mem_unpin(dev, srq->buf_mem);
		hw_mem_unpin(dev, srq->db_mem);
		free(srq);
		return err;
	}
	*out = srq;
	return 0;
}

int hw_srq_destroy(struct hw_dev *dev, struct hw_srq *srq)
{
	if (srq->refs)
		return -EBUSY;
	hw_table_del(&dev->srqs, srq->srqn);
	hw_pd_unref(dev, srq->pdn);
	hw_mem_unpin(dev, srq->buf_mem);
	hw_mem_unpin(dev, srq->db_mem);
	free(srq);
	return 0;
}

int hw_srq_limit(struct hw_srq *srq, uint16_t limit)
{
	srq->limit = limit;
	return 0;
}

uint32_t hw_srqn(const struct hw_srq *srq)
{
	return srq->srqn;
}

uint16_t hw_srq_posted(const struct hw_srq *srq)
{
	return (uint16_t)(hw_db_read(srq->db) - srq->consumed);
}

const uint8_t *hw_srq_take(struct hw_srq *srq, unsigned *max, uint16_t *idx)
{
	const uint8_t *wqe = srq->ring + (size_t)(srq->head & (srq->wqes - 1)) * srq->stride;

	*idx = srq->cyclic ? srq->head : srq->head & (srq->wqes - 1);
	*max = srq->stride / WQE_DS - 1;
	srq->head = srq->cyclic ? srq->head + 1 : wqe_get16(wqe + NEXT_INDEX);
	srq->consumed++;
	if (srq->limit && hw_srq_posted(srq) < srq->limit) {
		srq->limit = 0;
		if (srq->on_event)
			srq->on_event(srq->arg, HW_EV_SRQ_LIMIT);
	}
	return wqe + NEXT_SEG;
}
