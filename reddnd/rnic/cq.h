/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cq.h - completion queues, made by firmware commands (DEVX) in memory of a block.
 *
 * CQEs and doorbell records, which verbs hides, are explicit here. Memory belongs to the caller's block,
 * which must outlive the queue; offsets are relative to the block.
 *
 * Thread rules: one thread. Errors of init functions have been logged.
 */
#ifndef RNIC_CQ_H
#define RNIC_CQ_H

#include "mlx5/cqe.h"
#include "reddnd/rnic/block.h"

enum {
	RNIC_CQE_BYTES = CQE_BYTES,
	RNIC_DB_BYTES = 64, /* room for one doorbell record: a cache line of its own */
};

struct rnic_cq {
	struct rnic_device *dev; /* NULL: there is no queue */
	struct ledger_slot *slot;
	uint32_t handle;
	uint32_t cqn;
	unsigned log_size;
	uint8_t *cqes;
	uint32_t *db; /* doorbell record */
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
	int events;          /* what that comes to (rnic_devx_event_fd()); 0: the device's */
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
	uint32_t length; /* bytes received by the RECV; of a WRITE none */
	/* Ticks of the free-running clock, or seconds << 32 | nanoseconds, as the device is set */
	uint64_t timestamp;
};

/** Takes the next CQE: 1, or 0 when there is none. */
int rnic_cq_poll(struct rnic_cq *cq, struct rnic_cqe *cqe);
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

#endif
