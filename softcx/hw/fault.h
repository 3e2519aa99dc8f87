/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fault.h - faults on demand: what a device does wrong, to which WQEs, and how often.
 *
 * A fault counts every send WQE of its device that matches, before it is executed; a packet that is sent
 * again counts again. WAITs never count: a queue stops and goes on at them any number of times. With @at, the
 * fault strikes at the n-th WQE counted and at those that follow; with @probability, at each by chance.
 * Chance depends only on the seed of the device, the id of the fault and the WQEs counted. What a fault does
 * to the device or the queue happens before the WQE is executed, which then meets the new state.
 */
#ifndef SOFTCX_HW_FAULT_H
#define SOFTCX_HW_FAULT_H

#include "softcx/hw/exec.h"
#include "softcx/hw/hw.h"

enum hw_fault_kind {
	/* to a WQE */
	HW_FAULT_DROP,  /* its packet is lost: RC retries after the timeout */
	HW_FAULT_DELAY, /* it starts @delay_ns later, and what follows in its queue with it */
	HW_FAULT_SPLIT, /* its bytes are read at two moments, @delay_ns apart */
	HW_FAULT_RNR,   /* the responder answers RNR NAK */
	HW_FAULT_ERROR, /* it fails with @syndrome; so does the peer if the syndrome is the peer's */
	/* to more than a WQE */
	HW_FAULT_QP_ERROR, /* the queue goes to ERR, with HW_EV_QP_FATAL */
	HW_FAULT_PORT_DOWN,
	HW_FAULT_PORT_UP,
	HW_FAULT_MKEY_REVOKE,  /* @key no longer gives access */
	HW_FAULT_DEVICE_FATAL, /* HW_EV_DEVICE_FATAL; every QP that is not in RST goes to ERR */
};

struct hw_fault {
	uint32_t id; /* chosen by the caller */
	enum hw_fault_kind kind;
	uint32_t qpn;       /* 0: every queue */
	int opcode;         /* of the WQE; < 0: every one */
	uint64_t at;        /* 1 is the next WQE that matches */
	double probability; /* if @at is 0. Both 0: at once, of the kinds that need no WQE */
	uint64_t count;     /* strikes so often, 0: without end */
	uint64_t delay_ns;
	uint8_t syndrome;
	uint32_t key;
	uint64_t seen, struck; /* set here: WQEs counted, times it struck */
};

enum { HW_FAULT_MAX = 64 }; /* faults of a device, spent ones included */

/**
 * -EINVAL: makes no sense (an opcode without packets for a packet's fault, a syndrome of 0, nothing that
 * could trigger it); -ENOENT: no such QP or key; -ENOSPC: too many. One that happens at once is not kept.
 */
int hw_fault_add(struct hw_dev *dev, const struct hw_fault *fault);
/** Forgets one, or all with @id 0; their effects stay. Returns the number of those forgotten. */
unsigned hw_fault_clear(struct hw_dev *dev, uint32_t id);
/** The fault after @prev in order of age, NULL at the end; starts with NULL. Valid until it is cleared. */
const struct hw_fault *hw_fault_next(const struct hw_dev *dev, const struct hw_fault *prev);

/* ---- internal to softcx/hw -------------------------------------------------------------- */

struct hw_wqe;

/**
 * Call it before a WQE is executed if dev->faults_armed or qp->delayed is set. Returns 0, or a result like
 * that of hw_op_exec(); the queue may have left HW_RUN_READY.
 */
int hw_fault_meet(struct hw_wqe *w);

/*
 * A message whose bytes are read from memory at two moments, by HW_FAULT_SPLIT.
 *
 * A device reads a block of host memory by many transactions. PCI Express promises no order among the cache
 * lines of one, nor among updates of the block; it recommends that aligned words of 8 bytes are not torn (PCI
 * Express Base Specification, 2.4.2). Ziegler et al. show programs that this breaks (DOI 10.1145/3589276).
 * Here the seed chooses for each cache line the moment at which it is read, or for each word of it.
 */

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
