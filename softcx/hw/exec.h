/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exec.h - the requester: takes enabled WQEs from send queues, checks and executes them. Internal to
 * softcx/hw.
 */
#ifndef SOFTCX_HW_EXEC_H
#define SOFTCX_HW_EXEC_H

#include "mlx5/cqe.h"
#include "mlx5/wqe.h"
#include "softcx/hw/mem.h"
#include "softcx/hw/qp.h"

/** One WQE, as fetched. */
struct hw_wqe {
	struct hw_qp *qp;
	const uint8_t *p; /* ds * 16 bytes in one piece */
	uint16_t idx;
	uint8_t opcode, opmod, ds, fm_ce_se;
	uint8_t bbs;        /* WQEBBs */
	bool cqe;           /* a CQE also on success, */
	bool prompt;        /* which is not delayed: nothing is enabled behind it */
	struct hw_qp *peer; /* the responder, once found */
	uint64_t at, done;  /* modelled clock: when it starts and is complete */
	uint32_t part;      /* of the message, which is moved now: segment.h */
	/* for its CQE */
	uint32_t bytes;
	bool inl; /* the data is delivered in the CQE */
	uint8_t inl_data[64];
};

/** Result of executing a WQE: one of these, or a positive HW_FAULT(). */
enum {
	HW_EXEC_OK = 0,
	HW_EXEC_STOP = -1, /* a WAIT that is not satisfied; or the queue pauses */
	HW_EXEC_RNR = -2,  /* the peer has no RECV */
	HW_EXEC_LOST = -3, /* nobody answers */
	HW_EXEC_PART = -4, /* more of the message is to come */
};

#define HW_FAULT(syndrome, vendor) ((syndrome) | (vendor) << 8)
enum {
	HW_FAULT_PEER = 1 << 16,        /* the peer's QP fails too */
	HW_FAULT_PEER_ACCESS = 1 << 17, /* with an event for an access error, */
	HW_FAULT_PEER_REQ = 1 << 18,    /* or for an invalid request */
};

/* Vendor syndromes: 0x33, 0x81, 0x88 and 0x89 as seen in bug reports, the others made up. */
enum {
	HW_VENDOR_PROT = 0x33,
	HW_VENDOR_WQE = 0x68,
	HW_VENDOR_RETRY = 0x81,
	HW_VENDOR_RNR = 0x87,
	HW_VENDOR_ACCESS = 0x88,
	HW_VENDOR_REMOTE_OP = 0x89,
	HW_VENDOR_INVAL = 0x8a,
	HW_VENDOR_LENGTH = 0x92,
};

/** Local data of a WQE, resolved. */
struct hw_sgl {
	unsigned n;
	uint32_t len;
	uint32_t gathered; /* of len, from memory: not inline */
	struct hw_span span[WQE_MAX_DS];
};

/** Executes the WQE at the head of the queue, which is ready, or a part of it. False: it moved a part of its
 * message, or has to wait for a processing unit. */
bool hw_exec_step(struct hw_qp *qp);
/** Completes the WQE of which a part is executed, unless the queue has to pause. */
void hw_exec_finish(struct hw_qp *qp);

#endif
