/* SPDX-License-Identifier: BSD-2-Clause */
/* Flushes and transitions of queue pairs. */
#include "mlx5/cqe.h"
#include "mlx5/wqe.h"
#include "softcx/hw/clock.h"
#include "softcx/hw/exec.h"
#include "softcx/hw/inflight.h"
#include "softcx/hw/qp.h"
#include "softcx/hw/route.h"
#include "softcx/hw/split.h"
#include "softcx/hw/srq.h"
#include "util/clock.h"

#include <errno.h>

/* VENDOR_FLUSH: as seen in bug reports. BROKEN_AT_ONCE: a pass looks at so many queues in ERR */
enum { VENDOR_FLUSH = 0xf9, BROKEN_AT_ONCE = 64 };

/* ---- flush ------------------------------------------------------------------------------ */

/* The index runs over the ring, not over the shadow: WQEs that were not executed have no other owner now. */
void hw_qp_flush_sq(struct hw_qp *qp)
{
	while (qp->sq_ci != qp->sq_pi) {
		const uint8_t *wqe = qp->sq + (size_t)(qp->sq_ci & (qp->sq_wqebbs - 1)) * WQE_BB;
		uint8_t ds = wqe[WQE_QPN_DS + 3] & WQE_MAX_DS;
		uint16_t left = (uint16_t)(qp->sq_pi - qp->sq_ci), bbs = (uint16_t)(ds ? (ds + 3) / 4 : 1);
		struct hw_cqe cqe = {
			.opcode = CQE_OP_REQ_ERR,
			.syndrome = CQE_SYND_FLUSH,
			.vendor = VENDOR_FLUSH,
			.user_index = qp->user_index,
			.sop_qpn = (uint32_t)wqe[3] << 24 | qp->qpn,
			.wqe_counter = qp->sq_ci,
		};

		qp->sq_ci = (uint16_t)(qp->sq_ci + (bbs < left ? bbs : left));
		qp->sq_fetched = qp->sq_ci;
		/* DPDK, mlx5_prm.h: this mode reports the first error, and a flush is never the first */
		if ((wqe[WQE_FLAGS] >> WQE_CE_SHIFT & 3) != WQE_CE_FIRST_ERROR)
			hw_qp_complete(qp, qp->scq, &cqe);
	}
}

/* Flushes what the doorbell record has posted; of a managed RQ what was enabled, where that is so for a
 * managed SQ, too, and else no more of it than the doorbell record has. */
static bool flush_rq(struct hw_qp *qp)
{
	uint16_t n, posted;

	if (!qp->rq)
		return false;
	n = posted = hw_qp_recvs(qp);
	if (qp->cd_recv && hw_fact(qp->dev, PROFILE_FLUSH) == PROFILE_FLUSH_DOORBELL)
		posted = (uint16_t)(hw_db_read(&qp->db[0]) - qp->rq_ci);
	if (n >= 0x8000 || posted >= 0x8000)
		return false;
	if (posted < n)
		n = posted;
	for (uint16_t i = 0; i < n; i++) {
		struct hw_cqe cqe = {
			.opcode = CQE_OP_RESP_ERR,
			.syndrome = CQE_SYND_FLUSH,
			.vendor = VENDOR_FLUSH,
			.user_index = qp->user_index,
			.sop_qpn = qp->qpn,
			.wqe_counter = qp->rq_ci++,
		};

		qp->rq_fetched = qp->rq_ci;
		hw_qp_complete(qp, qp->rcq, &cqe);
	}
	return n;
}

void hw_qp_fail(struct hw_qp *qp, enum hw_qp_state to, int event)
{
	if (qp->state == HW_ERR)
		return;
	hw_inflight_land(qp);
	if (qp->state == HW_ERR) /* a CQE that landed found no room */
		return;
	hw_qp_set_run(qp, HW_RUN_IDLE);
	qp->moved = 0;
	qp->state = to;
	if (event)
		hw_qp_event(qp, event);
	hw_qp_read_sq_doorbell(qp);
	if (qp->sq && qp->cd_send && hw_fact(qp->dev, PROFILE_FLUSH) == PROFILE_FLUSH_DOORBELL)
		qp->sq_pi = (uint16_t)hw_db_read(&qp->db[1]);
	hw_qp_flush_sq(qp);
	if (to != HW_ERR)
		return;
	flush_rq(qp);
	if (qp->rq && !qp->is_broken) {
		qp->is_broken = true;
		TAILQ_INSERT_TAIL(&qp->dev->broken, qp, broken);
	}
	if (qp->srq)
		hw_qp_event(qp, HW_EV_LAST_WQE);
}

void hw_qp_leave_broken(struct hw_qp *qp)
{
	if (qp->is_broken)
		TAILQ_REMOVE(&qp->dev->broken, qp, broken);
	qp->is_broken = false;
}

bool hw_qp_flush_broken(struct hw_dev *dev)
{
	const struct hw_qp *last = TAILQ_LAST(&dev->broken, hw_qp_list);
	bool any = false;

	for (unsigned i = 0; last && i < BROKEN_AT_ONCE; i++) {
		struct hw_qp *qp = TAILQ_FIRST(&dev->broken);

		any |= flush_rq(qp);
		TAILQ_REMOVE(&dev->broken, qp, broken);
		TAILQ_INSERT_TAIL(&dev->broken, qp, broken);
		if (qp == last)
			break;
	}
	return any;
}

/* ---- states ----------------------------------------------------------------------------- */

static void reset(struct hw_qp *qp)
{
	struct hw_qp_mod clear = {.qkey = qp->mod.qkey};

	hw_inflight_land(qp);
	hw_split_free(qp);
	hw_qp_set_run(qp, HW_RUN_IDLE);
	hw_qp_leave_broken(qp);
	qp->sq_ci = qp->sq_fetched = qp->sq_pi = 0;
	qp->rq_ci = qp->rq_fetched = qp->rq_enabled = 0;
	qp->in_retry = qp->established = qp->delayed = false;
	qp->unanswered = qp->moved = 0;
	qp->mod = clear;
	qp->peer_dev = NULL;
	if (qp->clock)
		hw_clock_reset_qp(qp);
	qp->state = HW_RST;
}

/* IB 10.3.1: the transitions that exist besides those to RST and ERR. */
static bool transition(enum hw_qp_state from, enum hw_qp_state to)
{
	switch (to) {
	case HW_RST:
	case HW_ERR:
		return true;
	case HW_INIT:
		return from == HW_RST || from == HW_INIT;
	case HW_RTR:
		return from == HW_INIT;
	case HW_RTS:
		return from == HW_RTR || from == HW_RTS || from == HW_SQD || from == HW_SQER;
	case HW_SQD:
		return from == HW_RTS || from == HW_SQD;
	default:
		return false;
	}
}

static void apply(struct hw_qp *qp, const struct hw_qp_mod *m)
{
	struct hw_qp_mod *c = &qp->mod;

	c->mask |= m->mask;
	if (m->mask & HW_QP_AV) {
		c->av = m->av;
		qp->peer_dev = hw_route(qp->dev, &m->av, NULL);
	}
	if (m->mask & HW_QP_DEST)
		c->dest_qpn = m->dest_qpn;
	if (m->mask & HW_QP_ACCESS)
		c->access = m->access;
	if (m->mask & HW_QP_RNR_TIMER)
		c->min_rnr_timer = m->min_rnr_timer;
	if (m->mask & HW_QP_RETRY)
		c->retry_cnt = m->retry_cnt;
	if (m->mask & HW_QP_RNR_RETRY)
		c->rnr_retry = m->rnr_retry;
	if (m->mask & HW_QP_TIMEOUT)
		c->timeout = m->timeout;
	if (m->mask & HW_QP_SQ_PSN)
		c->sq_psn = m->sq_psn & 0xffffff;
	if (m->mask & HW_QP_RQ_PSN)
		c->rq_psn = m->rq_psn & 0xffffff;
	if (m->mask & HW_QP_RD_ATOMIC)
		c->max_rd_atomic = m->max_rd_atomic;
	if (m->mask & HW_QP_DEST_RD_ATOMIC)
		c->max_dest_rd_atomic = m->max_dest_rd_atomic;
	if (m->mask & HW_QP_QKEY)
		c->qkey = m->qkey;
	if (m->mask & HW_QP_MTU)
		c->mtu = m->mtu;
	if (m->mask & HW_QP_MAX_MSG)
		c->log_max_msg = m->log_max_msg;
	if (m->mask & HW_QP_ACK_FREQ)
		c->log_ack_freq = m->log_ack_freq;
}

void hw_qp_drain(struct hw_qp *qp)
{
	if (qp->state != HW_SQD || qp->moved)
		return;
	hw_inflight_land(qp);
	if (qp->state != HW_SQD) /* a CQE that landed found no room */
		return;
	hw_qp_set_run(qp, HW_RUN_IDLE);
	hw_qp_event(qp, HW_EV_SQ_DRAINED);
}

int hw_qp_modify(struct hw_dev *dev, struct hw_qp *qp, enum hw_qp_state to, const struct hw_qp_mod *mod)
{
	enum hw_qp_state from = qp->state;

	dev->now = clock_ns();
	if (!transition(from, to))
		return -EINVAL;
	if (to == HW_RST) {
		reset(qp);
		return 0;
	}
	if (mod)
		apply(qp, mod);
	if (to == HW_ERR) {
		hw_qp_fail(qp, HW_ERR, 0);
		return 0;
	}
	qp->state = to;
	if (to == HW_RTS) {
		if (qp->clock && from != HW_RTS)
			hw_clock_start_qp(qp);
		if (from != HW_RTS)
			hw_qp_read_sq_doorbell(qp);
		hw_qp_start(qp);
	} else if (to == HW_SQD && from != HW_SQD) {
		hw_exec_finish(qp);
		hw_qp_drain(qp);
	}
	return 0;
}
