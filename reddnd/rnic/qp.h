/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * qp.h - RC queue pairs, made by firmware commands (DEVX) in memory of a block.
 *
 * Verbs cannot make managed queues, which execute WQEs only as far as a SEND_EN allows; firmware can
 * (QPC.cd_*). Memory, threads and errors are as in cq.h.
 */
#ifndef RNIC_QP_H
#define RNIC_QP_H

#include "mlx5/wqe.h"
#include "reddnd/rnic/cq.h"

enum { RNIC_WQEBB_BYTES = WQE_BB };

struct rnic_qp {
	struct rnic_device *dev; /* NULL: there is no queue */
	struct ledger_slot *slot;
	uint32_t handle;
	uint32_t qpn;
	uint8_t *sq, *rq;
	uint32_t sq_wqebbs; /* power of two */
	uint32_t *db;       /* doorbell record: receives, sends */
	uint16_t sq_posted; /* WQEBBs, by rnic_qp_post() */
	uint8_t log_max_message;
};

struct rnic_qp_attr {
	/* RQ entries first, SQ right behind them; page aligned. No RQ when rq_entries is 0 */
	uint64_t wq_off;
	uint32_t rq_entries, rq_stride; /* powers of two; stride in bytes, >= 16 */
	uint32_t sq_wqebbs;
	uint64_t db_off;
	const struct rnic_cq *send_cq, *recv_cq;
	/* Bytes of a message that it sends, at most; rounded up to a power of two. 0: what the device can */
	uint32_t max_message;
	bool managed;    /* the SQ runs only as far as SEND_EN allows */
	bool managed_rq; /* and the RQ only as far as RECV_EN does: rnic_qp_post_recvs() has no effect */
	bool plain;      /* no WAIT, SEND_EN or RECV_EN is in its SQ: any device can make it */
	uint64_t cookie; /* of the event when it breaks; 0: nobody wants it */
};

int rnic_qp_init(struct rnic_qp *qp, const struct rnic_block *block, const struct rnic_qp_attr *attr);
/** Connects @qp to itself, ready to send, with all remote access: for queues of a chain. */
int rnic_qp_connect_self(struct rnic_qp *qp, unsigned rd_atomic);
/** Connects @qp to queue pair @peer of the same device. @peer needs the same call with @qp. */
int rnic_qp_connect_local(struct rnic_qp *qp, uint32_t peer, unsigned rd_atomic);
/**
 * Connects @qp to @peer by the addresses of their ports, also where the device has forced loopback; @peer may
 * be of another device, or @qp itself. @peer needs the same call with @qp.
 */
int rnic_qp_connect_by_address(struct rnic_qp *qp, const struct rnic_qp *peer, unsigned rd_atomic);
/** 1: it is in an error state and executes nothing; 0: it is not. -errno of the device, not logged. */
int rnic_qp_is_broken(const struct rnic_qp *qp);
/** Moves @qp to the error state: it executes nothing more, and posted WQEs are flushed. */
void rnic_qp_stop(struct rnic_qp *qp);
/** Destroys @qp, which accesses no memory afterwards. Fine on a QP that is all zero. An error of the device,
 * logged: the queue pair may go on, and nobody has it any more. */
int rnic_qp_deinit(struct rnic_qp *qp);

/** Posts RQ entries up to number @count (since RESET, not masked), whose bytes are in memory.
 */
void rnic_qp_post_recvs(struct rnic_qp *qp, uint32_t count);

/**
 * For an SQ that is not managed: fills in index and QPN of one WQE of up to 64 bytes, posts it and rings the
 * doorbell. The caller makes sure that there is room.
 */
void rnic_qp_post(struct rnic_qp *qp, const uint8_t wqe[static RNIC_WQEBB_BYTES]);

/** The same for WQEs whose bytes are in the ring: posts all before index @count (since RESET), with one
 * doorbell. */
void rnic_qp_ring(struct rnic_qp *qp, uint16_t count);

/** WQEBBs that were posted to the SQ whose doorbell record is at @db: the low bits of their number. */
uint16_t rnic_qp_posted_at(const uint8_t *db);

#endif
