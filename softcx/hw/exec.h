/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exec.h - the requester: takes enabled WQEs from send queues, checks and executes them. Internal to
 * softcx/hw.
 */
#ifndef SOFTCX_HW_EXEC_H
#define SOFTCX_HW_EXEC_H

#include "mlx5/cqe.h"
#include "mlx5/wqe.h"
#include "softcx/hw/cq.h"
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
	uint32_t part;      /* of the message, which is moved now */
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

/*
 * Long messages, of which a queue moves a part in each of its turns.
 *
 * A RoCE NIC sends a message as packets, and those of other queues between them. How many at a time is not
 * public for ConnectX. Another vendor's driver sets it, so that "QPs with large traffic" do not keep others
 * waiting: to one MTU, as 16 KiB were too many (Linux hw/hns, long message loopback slice).
 *
 * Here a message ends its turn when the share of its queue is over (turns.h), at a multiple of HW_PACKET. The
 * WQE stays at the head of the queue. WRITEs and READs move part by part, so that others see half of them,
 * and words across the end of a part may be torn, as those across the end of a packet. Keys, the peer and its
 * rights are looked at again for each part: what has gone meanwhile makes the message fail in the middle.
 * Each part is acknowledged: what is lost is sent again from there, with all retries, and to the same
 * connection, whose PSNs go on with each part. A SEND, which fills one RECV, is paid for part by part, and
 * moves with the last one. A queue is drained (SQD) when the message is over. Datagrams are packets. With a
 * modelled clock, and when a fault splits it, a message is one part.
 */

enum {
	HW_PACKET = 4096,           /* bytes: the largest MTU */
	HW_SEGMENT_ALONE = 1 << 16, /* bytes at once of a queue beside which no other can execute */
};

/* Of messages longer than a packet */
bool hw_segment_end(struct hw_wqe *w);
void hw_segment_advance(struct hw_span *spans, unsigned *n, uint32_t bytes);

/** Sets w->part, how many of the w->bytes of its message are moved now. True: these are the last. */
static inline bool hw_segment_choose(struct hw_wqe *w)
{
	w->part = w->bytes - w->qp->moved;
	return __builtin_expect(w->part <= HW_PACKET, 1) || hw_segment_end(w);
}

/** Moves the start of @spans, of a whole message, to where this part begins. */
static inline void hw_segment_skip(const struct hw_wqe *w, struct hw_span *spans, unsigned *n)
{
	if (__builtin_expect(w->qp->moved, 0))
		hw_segment_advance(spans, n, w->qp->moved);
}

/*
 * op.c: which opcodes a queue may have, and who executes each.
 */

static inline bool hw_wait_is_sync(uint8_t opcode)
{
	return opcode == WQE_OP_WAIT || opcode == WQE_OP_SEND_EN || opcode == WQE_OP_RECV_EN;
}

/**
 * Executes @w, whose ctrl segment was checked; sets its peer, bytes and inl. HW_EXEC_* or a fault; only
 * HW_EXEC_OK and HW_EXEC_PART have had any effect, apart from RECVs that a fault consumed.
 */
int hw_op_exec(struct hw_wqe *w);

/** The processing units whose devices executing @w concerns besides its own, as hw_pu_claim() takes them. */
uint32_t hw_op_pus(const struct hw_wqe *w);

/** Opcodes that its profile lacks, by 1 << opcode: they end their queue. */
uint64_t hw_op_lacking(const struct hw_dev *dev);

#endif
