/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * split.h - a message whose bytes are read from memory at two moments, by HW_FAULT_SPLIT. Internal to
 * softcx/hw.
 *
 * A device reads a block of host memory by many transactions. PCI Express promises no order among the cache
 * lines of one, nor among updates of the block; it recommends that aligned words of 8 bytes are not torn (PCI
 * Express Base Specification, 2.4.2). Ziegler et al. show programs that this breaks (DOI 10.1145/3589276).
 * Here the seed chooses for each cache line the moment at which it is read, or for each word of it.
 */
#ifndef SOFTCX_HW_SPLIT_H
#define SOFTCX_HW_SPLIT_H

#include "softcx/hw/exec.h"

enum { HW_SPLIT_MOST = 1 << 20 }; /* bytes; longer messages are read at once */

/** The next message of @qp is to be read at two moments, @pause_ns apart. False: out of memory. */
bool hw_split_next(struct hw_qp *qp, uint64_t pause_ns);

/* Of a queue that has had such messages */
int hw_split_read_due(struct hw_wqe *w, struct hw_span *spans, unsigned *nspans, uint32_t len);

/**
 * Call it when @len bytes of @spans are about to be read for @w. 0: read them, from @spans, which may be one
 * span of other memory now, valid until the next WQE of the queue. Else the queue pauses, and the WQE is to
 * be executed again (HW_EXEC_STOP), or memory cannot be reached: a local protection fault.
 */
static inline int hw_split_read(struct hw_wqe *w, struct hw_span *spans, unsigned *nspans, uint32_t len)
{
	return __builtin_expect(!w->qp->split, 1) ? 0 : hw_split_read_due(w, spans, nspans, len);
}

/** Whether the message at the head of @qp is read at two moments. */
bool hw_split_is_due(const struct hw_qp *qp);

void hw_split_free(struct hw_qp *qp);

#endif
