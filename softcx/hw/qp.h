/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * qp.h - a queue pair: its rings, its progress, and its state. Internal to softcx/hw.
 *
 * Send queue indices count WQEBBs modulo 2^16: sq_ci <= sq_fetched <= sq_pi.
 *
 * [sq_ci, sq_pi) is enabled: by the doorbell record, or, on a managed queue, by SEND_EN alone. The silicon
 * may fetch an enabled WQEBB at any time before it executes it, into @shadow; later stores to the ring are
 * not seen. WQEBBs from sq_pi on are not fetched, unless the profile has a device that fetches groups of a
 * managed queue: then sq_fetched may be ahead of sq_pi by the rest of a group. RECVs are fetched ahead in the
 * same way, into @rq_shadow: [rq_ci, rq_fetched), but only when one of them is used.
 */
#ifndef SOFTCX_HW_QP_H
#define SOFTCX_HW_QP_H

#include "softcx/hw/cq.h"
#include "softcx/hw/dev.h"

struct hw_inflight;
struct hw_split;
struct hw_wqe;

/* On which list its SQ is */
enum hw_run {
	HW_RUN_IDLE,  /* nothing to execute, or not in RTS */
	HW_RUN_READY, /* can execute: turns.h */
	HW_RUN_WAIT,  /* stopped at a WAIT: on the waiters of wait_cq */
	HW_RUN_TIMED, /* pause before a retry: on dev->timed until @due */
};

struct hw_qp {
	struct hw_dev *dev;
	uint32_t qpn;
	enum hw_qp_type type;
	enum hw_qp_state state;

	uint8_t *sq, *shadow;
	uint32_t sq_wqebbs;
	uint16_t fetch_group, recv_group; /* WQEBBs, RECVs that are fetched together */
	uint16_t sq_ci, sq_fetched, sq_pi;
	bool cd_master, cd_send, cd_recv, real_time;
	enum hw_run run_state;
	bool spent;       /* on dev->spent */
	uint64_t account; /* of what it has executed */
	unsigned burst;   /* WQEs left that the seed lets it execute */
	struct hw_cq *wait_cq;
	uint32_t wait_index;
	uint64_t due;
	bool delayed;   /* by a fault: the WQE at sq_ci has had its pause */
	uint32_t moved; /* bytes of the message at sq_ci, so far */
	bool in_retry;  /* rnr_left and retry_left are those of the WQE at sq_ci */
	uint8_t rnr_left, retry_left;
	struct hw_inflight *inflight;
	bool has_inflight; /* on dev->inflight */
	struct hw_split *split;

	uint8_t *rq, *rq_shadow;
	uint32_t rq_wqes, rq_stride;
	uint16_t rq_ci, rq_fetched, rq_enabled; /* rq_enabled: by RECV_EN, on a managed RQ */
	struct hw_srq *srq;
	bool is_broken;   /* on dev->broken */
	bool established; /* a packet arrived in RTR */

	uint32_t unanswered; /* messages sent less those received, and less the lowest that this ever was */

	uint32_t *db; /* [0] RECVs, [1] send WQEBBs */
	struct hw_cq *scq, *rcq;
	uint32_t pdn, user_index;
	uint64_t dc_key; /* of a target */
	uint8_t cs_req, cs_res;
	struct hw_rate *rate;      /* or NULL */
	struct hw_qp_clock *clock; /* or NULL, as that of the device */
	struct hw_qp_mod mod;      /* current values */
	struct hw_dev *peer_dev;   /* where mod.av leads, NULL: nowhere */
	void (*on_event)(void *arg, int event);
	void *arg;

	struct hw_uar *uar;
	struct hw_mem *sq_mem, *rq_mem, *db_mem;
	TAILQ_ENTRY(hw_qp) of_uar, run, landing, broken;
};

static inline struct hw_qp *hw_qp_get(const struct hw_dev *dev, uint32_t qpn)
{
	return qpn >> 24 ? NULL : hw_table_get(&dev->qps, qpn);
}

/* Whether software enables its sends by a doorbell record. */
static inline bool hw_qp_has_doorbell(const struct hw_qp *qp)
{
	return qp->sq && !qp->cd_send;
}

/* Whether it gets acknowledgements, and so has READs, atomics and retries. */
static inline bool hw_qp_is_reliable(const struct hw_qp *qp)
{
	return qp->type == HW_RC || qp->type == HW_DCI;
}

void hw_qp_event(struct hw_qp *qp, int event);

/**
 * The new producer index of the SQ is @pi. An index that is not ahead of the current one (cyclic half
 * window) has no effect. @by: the SEND_EN; NULL: software. The seed chooses what is fetched early.
 */
void hw_qp_enable(struct hw_qp *qp, uint16_t pi, const struct hw_wqe *by);
void hw_qp_enable_recv(struct hw_qp *qp, uint16_t pi);
void hw_qp_read_sq_doorbell(struct hw_qp *qp);
/** Software named the queue in a doorbell: an error of a managed SQ, unless the device allows it. Rings that
 * another one replaced before they were seen are not noticed. */
void hw_qp_rung(struct hw_qp *qp);

/** Fetches WQEBBs up to index @to (<= sq_pi) unless they already were; of a managed queue, whole groups. */
void hw_qp_fetch(struct hw_qp *qp, uint16_t to);

/** RECVs that can be consumed. */
uint16_t hw_qp_recvs(const struct hw_qp *qp);
/** Consumes one, of the QP's own RQ: its scatter list as fetched. Only if there is one. */
const uint8_t *hw_qp_take_recv(struct hw_qp *qp);

/**
 * To ERR (UC, UD on a send error: SQER), and flushes: every WQE that is posted gets a CQE. Posted means:
 * before the doorbell record's index, or, on a managed queue, before the index enabled so far, or on some
 * devices before the doorbell record's, whatever was enabled. @event: also raised, 0 for none.
 */
void hw_qp_fail(struct hw_qp *qp, enum hw_qp_state to, int event);
/** A queue in SQD stops, with an event, unless it is in the middle of a message: call this again when that is
 * over. No effect in other states, to which a failure may have led. */
void hw_qp_drain(struct hw_qp *qp);
bool hw_qp_flush_broken(struct hw_dev *dev); /* RECVs posted since to queues in ERR */

/**
 * Writes a CQE; a CQ that overruns takes the QP to ERR. It counts as an answer that software waits for if
 * there is none that software has not consumed, and nothing else is under way for it: the SQ is empty, or no
 * more messages have no answer than when there were fewest. A CQ that may overrun is there for
 * WAITs, and the order of a modelled clock is that of its time.
 */
void hw_qp_complete(struct hw_qp *qp, struct hw_cq *cq, const struct hw_cqe *cqe);

#endif
