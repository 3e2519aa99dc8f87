/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/split.h"

#include "softcx/hw/dev.h"
#include "softcx/hw/run.h"

#include <stdlib.h>
#include <string.h>

enum { WORD = 8, LINE = 64 };

struct hw_split {
	enum { IDLE, NEXT, HALF } state;
	uint64_t pause_ns;
	uint8_t *bytes; /* 2 * len: as they were at the first moment, and at the second */
};

bool hw_split_next(struct hw_qp *qp, uint64_t pause_ns)
{
	if (!qp->split)
		qp->split = calloc(1, sizeof(*qp->split));
	if (!qp->split)
		return false;
	qp->split->state = NEXT;
	qp->split->pause_ns = pause_ns;
	return true;
}

bool hw_split_is_due(const struct hw_qp *qp)
{
	return qp->split && qp->split->state != IDLE;
}

void hw_split_free(struct hw_qp *qp)
{
	if (qp->split)
		free(qp->split->bytes);
	free(qp->split);
	qp->split = NULL;
}

/* Takes a word of @first for the one in @second, or a part of it at either end of the message */
static void mix(struct hw_dev *dev, const struct hw_span *span, uint8_t *first, const uint8_t *second)
{
	uint64_t at = span->host ? (uintptr_t)span->host : span->va;
	uint32_t how = hw_pick(dev, 3), n;

	for (uint32_t done = 0; done < span->len; done += n) {
		n = WORD - (uint32_t)((at + done) % WORD);
		if (n > span->len - done)
			n = span->len - done;
		if (done && (at + done) % LINE == 0)
			how = hw_pick(dev, 3);
		if (how == 2 ? hw_pick(dev, 2) : how)
			memcpy(first + done, second + done, n);
	}
}

static int begin(struct hw_wqe *w, const struct hw_span *spans, unsigned n, uint32_t len)
{
	struct hw_split *s = w->qp->split;
	uint8_t *bytes = realloc(s->bytes, 2 * (size_t)len);

	s->state = IDLE;
	if (!bytes)
		return 0;
	s->bytes = bytes;
	if (!hw_gather(bytes, spans, n, len))
		return HW_FAULT(CQE_SYND_LOCAL_PROT, HW_VENDOR_PROT);
	s->state = HALF;
	w->qp->delayed = true;
	hw_qp_pause(w->qp, s->pause_ns);
	return HW_EXEC_STOP;
}

static int end(struct hw_wqe *w, struct hw_span *spans, unsigned *n, uint32_t len)
{
	struct hw_split *s = w->qp->split;
	uint32_t done = 0;

	s->state = IDLE;
	if (!hw_gather(s->bytes + len, spans, *n, len))
		return HW_FAULT(CQE_SYND_LOCAL_PROT, HW_VENDOR_PROT);
	for (unsigned i = 0; i < *n && done < len; done += spans[i++].len)
		mix(w->qp->dev, &spans[i], s->bytes + done, s->bytes + len + done);
	spans[0] = (struct hw_span){.host = s->bytes, .len = len};
	*n = 1;
	return 0;
}

int hw_split_read_due(struct hw_wqe *w, struct hw_span *spans, unsigned *nspans, uint32_t len)
{
	struct hw_split *s = w->qp->split;

	if (s->state == IDLE)
		return 0;
	if (!len || len > HW_SPLIT_MOST) {
		s->state = IDLE;
		return 0;
	}
	return s->state == NEXT ? begin(w, spans, *nspans, len) : end(w, spans, nspans, len);
}
