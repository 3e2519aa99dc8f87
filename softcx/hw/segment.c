/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/segment.h"

#include "softcx/hw/split.h"
#include "softcx/hw/turns.h"

#include <string.h>

/* Bytes up to the end of the share, in whole packets */
static uint32_t room(const struct hw_qp *qp)
{
	uint64_t left = hw_turns_has_share(qp) ? HW_SHARE - (qp->account - qp->dev->round) : 0;
	uint32_t bytes = (uint32_t)left * HW_DATA_UNIT / HW_PACKET * HW_PACKET;

	if (qp->dev->nready == 1)
		return HW_SEGMENT_ALONE;
	return bytes ? bytes : HW_PACKET;
}

bool hw_segment_end(struct hw_wqe *w)
{
	const struct hw_qp *qp = w->qp;
	uint32_t most;

	if (qp->clock || hw_split_is_due(qp))
		return true;
	most = room(qp);
	if (w->part <= most)
		return true;
	w->part = most;
	return false;
}

void hw_segment_advance(struct hw_span *spans, unsigned *n, uint32_t bytes)
{
	unsigned first = 0;

	while (first < *n && spans[first].len <= bytes)
		bytes -= spans[first++].len;
	*n -= first;
	memmove(spans, spans + first, *n * sizeof(*spans));
	if (spans->host)
		spans->host += bytes;
	spans->va += bytes;
	spans->len -= bytes;
}
