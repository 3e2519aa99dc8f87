/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * queue.h - completion queues and RC queue pairs, made by firmware commands (DEVX) in memory of a block.
 *
 * Verbs cannot make managed queues, which execute WQEs only as far as a SEND_EN allows; firmware can
 * (QPC.cd_*). CQEs, doorbell records and WQE indices, which verbs hides, are explicit here. Memory belongs to
 * the caller's block, which must outlive the queue; offsets are relative to the block.
 *
 * Thread rules: one thread. Errors of init functions have been logged.
 */
#ifndef RNIC_QUEUE_H
#define RNIC_QUEUE_H

#include "mlx5/cqe.h"
#include "mlx5/wqe.h"
#include "reddnd/rnic/device.h"

enum {
	RNIC_CQE_BYTES = CQE_BYTES,
	RNIC_WQEBB_BYTES = WQE_BB,
	RNIC_DB_BYTES = 64, /* room for one doorbell record: a cache line of its own */
};

/* ---- completion queues ----------------------------------------------------------------------------------
 */

struct rnic_cq {
	struct rnic_device *dev; /* NULL: there is no queue */
	struct ledger_slot *slot;
	uint32_t handle;
	uint32_t cqn;
	unsigned log_size;
	uint8_t *cqes;
	uint32_t *db;   /* doorbell record */
	uint32_t first; /* number of the CQE that counts as 0 */
	uint32_t consumer;
	uint32_t arm_sn;
	bool armed;
};

struct rnic_cq_attr {
	uint64_t cqes_off; /* page aligned, RNIC_CQE_BYTES << log_size bytes */
	uint64_t db_off;   /* RNIC_DB_BYTES */
	unsigned log_size;
	bool overrun_ignore; /* not polled; it only counts, for WAIT */
	uint64_t cookie;     /* of its event */
	/* An armed CQ fires after so many CQEs or so long after one; 0, 0: at once */
	uint16_t moderate_count, moderate_us;
};

int rnic_cq_init(struct rnic_cq *cq, const struct rnic_block *block, const struct rnic_cq_attr *attr);
/** After the QPs that use it. Fine on a CQ that is all zero. */
void rnic_cq_deinit(struct rnic_cq *cq);

struct rnic_cqe {
	bool error, receive;
	uint8_t syndrome, vendor; /* of an error: enum cqe_syndrome, rnic_syndrome_text() */
	uint32_t qpn;
	uint16_t index;  /* of the WQE: WQEBBs since RESET (SQ), RQ entries since RESET */
	uint32_t length; /* bytes received */
	/* Ticks of the free-running clock, or seconds << 32 | nanoseconds, as the device is set */
	uint64_t timestamp;
};

/** Takes the next CQE: 1, or 0 when there is none. */
int rnic_cq_poll(struct rnic_cq *cq, struct rnic_cqe *cqe);
/** Numbers of CQEs begin with 0 again, and no CQE is there. What used the CQ is destroyed or in RESET. An
 * error of the device, logged. */
int rnic_cq_restart(struct rnic_cq *cq);
/** The next CQE to be taken, or to raise an event, is number @n. */
void rnic_cq_seek(struct rnic_cq *cq, uint64_t n);
/** Writes the doorbell record: the device may reuse the entries that rnic_cq_poll() took. */
void rnic_cq_update(struct rnic_cq *cq);

/**
 * Arms the CQ: one event at the next CQE (@errors_only: at the next error or solicited receive). A CQE
 * between the last poll and this call may raise no event, so poll once more afterwards.
 */
void rnic_cq_arm(struct rnic_cq *cq, bool errors_only);

/** For a CQ that ignores overrun: CQE number @n, if the ring still holds it. 1, or 0 when it is not there. */
int rnic_cq_peek(const struct rnic_cq *cq, uint32_t n, struct rnic_cqe *cqe);
/** Any error CQE in the ring, a flushed one only if there is no other: 1, or 0 when there is none. */
int rnic_cq_find_error(const struct rnic_cq *cq, struct rnic_cqe *cqe);

const char *rnic_syndrome_text(uint8_t syndrome);

/* ---- queue pairs ------------------------------------------------------------------------------------------
 */

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
	uint32_t resets;
};

struct rnic_qp_attr {
	/* RQ entries first, SQ right behind them; page aligned. No RQ when rq_entries is 0 */
	uint64_t wq_off;
	uint32_t rq_entries, rq_stride; /* powers of two; stride in bytes, >= 16 */
	uint32_t sq_wqebbs;
	uint64_t db_off;
	const struct rnic_cq *send_cq, *recv_cq;
	/* Bytes of a message that it sends, at most; rounded up to a power of two. 0: what the device can.
	 * The device may not heed it: rnic_observed.limits_messages */
	uint32_t max_message;
	bool managed;    /* the SQ runs only as far as SEND_EN allows */
	bool managed_rq; /* and the RQ only as far as RECV_EN does: rnic_qp_post_recvs() has no effect */
	uint64_t cookie; /* of the event when it breaks */
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
/** Moves @qp to RESET: it executes nothing more, nothing is flushed, and its indices begin with 0 again once
 * it is connected. An error of the device, logged. */
int rnic_qp_reset(struct rnic_qp *qp);
/** Destroys @qp, which accesses no memory afterwards. Fine on a QP that is all zero. */
void rnic_qp_deinit(struct rnic_qp *qp);

/** The low bits of the number up to which RQ entries are posted, as the device was notified last. */
uint16_t rnic_qp_posted_recvs(const struct rnic_qp *qp);
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

#endif
