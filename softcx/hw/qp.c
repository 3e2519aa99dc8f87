/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/qp.h"

#include "mlx5/cqe.h"
#include "mlx5/wqe.h"
#include "softcx/hw/clock.h"
#include "softcx/hw/exec.h"
#include "softcx/hw/fault.h"
#include "softcx/hw/inflight.h"
#include "softcx/hw/resp.h"
#include "softcx/hw/turns.h"
#include "softcx/hw/uar.h"
#include "util/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RECV_AHEAD = 4 };

/* ---- life ------------------------------------------------------------------------------- */

static bool power_of_two(uint32_t n)
{
	return n && !(n & (n - 1));
}

static void release(struct hw_qp *qp)
{
	hw_mem_unpin(qp->dev, qp->sq_mem);
	hw_mem_unpin(qp->dev, qp->rq_mem);
	hw_mem_unpin(qp->dev, qp->db_mem);
	free(qp->shadow);
	free(qp->rq_shadow);
	free(qp->clock);
	free(qp);
}

/* Of a managed queue of @n entries of @size bytes each: those that are fetched together. */
static uint16_t fetch_group(const struct hw_dev *dev, enum profile_fact fact, uint32_t size, uint32_t n)
{
	uint32_t group = (uint32_t)hw_fact(dev, fact) / size;

	if (dev->cfg.lenient || !group)
		return 1;
	return (uint16_t)(group < n ? group : n);
}

/* Pins the rings and the doorbell record. */
static int pin_queues(struct hw_dev *dev, struct hw_qp *qp, const struct hw_qp_attr *attr)
{
	if (attr->sq) {
		if (!power_of_two(attr->sq_wqebbs) || attr->sq_wqebbs > 32768)
			return -EINVAL;
		qp->sq = hw_mem_pin(dev, attr->sq, attr->sq_off, (uint64_t)attr->sq_wqebbs * WQE_BB, WQE_BB);
		if (!qp->sq)
			return -EINVAL;
		qp->sq_mem = attr->sq;
		qp->sq_wqebbs = attr->sq_wqebbs;
		if (posix_memalign((void **)&qp->shadow, WQE_BB, (size_t)attr->sq_wqebbs * WQE_BB))
			return -ENOMEM;
	}
	if (attr->rq) {
		if (!power_of_two(attr->rq_wqes) || attr->rq_wqes > 32768 || !power_of_two(attr->rq_stride) ||
			attr->rq_stride < WQE_DS)
			return -EINVAL;
		qp->rq = hw_mem_pin(
			dev, attr->rq, attr->rq_off, (uint64_t)attr->rq_wqes * attr->rq_stride, WQE_DS);
		if (!qp->rq)
			return -EINVAL;
		qp->rq_mem = attr->rq;
		qp->rq_wqes = attr->rq_wqes;
		qp->rq_stride = attr->rq_stride;
		if (posix_memalign((void **)&qp->rq_shadow, WQE_DS, (size_t)attr->rq_wqes * attr->rq_stride))
			return -ENOMEM;
	}
	if (attr->type == HW_DCT)
		return 0;
	qp->db = hw_mem_pin(dev, attr->db, attr->db_off, 8, 8);
	if (!qp->db)
		return -EINVAL;
	qp->db_mem = attr->db;
	return 0;
}

int hw_qp_create(struct hw_dev *dev, const struct hw_qp_attr *attr, struct hw_qp **out)
{
	struct hw_uar *uar = hw_uar_find(dev, attr->uar);
	struct hw_qp *qp;
	int err;

	if (attr->type == HW_DCT ? !attr->srq || attr->sq : !uar)
		return -EINVAL;
	if (attr->type == HW_DCI && attr->rq)
		return -EINVAL;
	if (!attr->scq || !attr->rcq || attr->reserved_lkey || (attr->srq && attr->rq) ||
		(attr->srq && attr->srq->pdn != attr->pdn))
		return -EINVAL;
	if (dev->qps.live >= 1u << hw_fact(dev, PROFILE_LOG_QPS))
		return -ENOSPC;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return -ENOMEM;
	qp->dev = dev;
	err = pin_queues(dev, qp, attr);
	if (!err)
		err = hw_clock_add_qp(qp);
	if (!err)
		err = hw_pd_ref(dev, attr->pdn);
	if (!err) {
		err = hw_table_add(&dev->qps, qp, &qp->qpn);
		if (err)
			hw_pd_unref(dev, attr->pdn);
	}
	if (err) {
		release(qp);
		return err;
	}
	qp->type = attr->type;
	qp->state = HW_RST;
	qp->cd_master = attr->cd_master;
	qp->cd_send = attr->cd_slave_send;
	qp->cd_recv = attr->cd_slave_recv;
	qp->fetch_group = qp->cd_send ? fetch_group(dev, PROFILE_FETCH_GROUP, WQE_BB, qp->sq_wqebbs) : 1;
	qp->recv_group =
		qp->cd_recv && qp->rq ? fetch_group(dev, PROFILE_RECV_FETCH, qp->rq_stride, qp->rq_wqes) : 1;
	qp->real_time = attr->real_time;
	qp->srq = attr->srq;
	if (qp->srq)
		qp->srq->refs++;
	qp->scq = attr->scq;
	qp->rcq = attr->rcq;
	qp->scq->refs++;
	qp->rcq->refs++;
	qp->pdn = attr->pdn;
	qp->user_index = attr->user_index;
	qp->cs_req = attr->cs_req;
	qp->cs_res = attr->cs_res;
	qp->mod.qkey = attr->qkey;
	qp->dc_key = attr->dc_key;
	qp->on_event = attr->on_event;
	qp->arg = attr->arg;
	if (qp->type != HW_DCT)
		hw_uar_add_qp(uar, qp);
	*out = qp;
	return 0;
}

static void qp_leave_broken(struct hw_qp *qp)
{
	if (qp->is_broken)
		TAILQ_REMOVE(&qp->dev->broken, qp, broken);
	qp->is_broken = false;
}

int hw_qp_destroy(struct hw_dev *dev, struct hw_qp *qp)
{
	hw_inflight_free(qp);
	hw_split_free(qp);
	hw_qp_set_run(qp, HW_RUN_IDLE);
	qp_leave_broken(qp);
	hw_qp_limit(qp, NULL);
	if (qp->uar)
		hw_uar_remove_qp(qp);
	hw_table_del(&dev->qps, qp->qpn);
	hw_pd_unref(dev, qp->pdn);
	qp->scq->refs--;
	qp->rcq->refs--;
	if (qp->srq)
		qp->srq->refs--;
	release(qp);
	return 0;
}

uint32_t hw_qpn(const struct hw_qp *qp)
{
	return qp->qpn;
}

struct hw_qp *hw_qp_find(struct hw_dev *dev, uint32_t qpn)
{
	return hw_qp_get(dev, qpn);
}

enum hw_qp_state hw_qp_state(const struct hw_qp *qp)
{
	return qp->state;
}

void hw_qp_query(const struct hw_qp *qp, struct hw_qp_mod *mod, uint16_t *sq_idx, uint16_t *rq_idx)
{
	*mod = qp->mod;
	*sq_idx = qp->sq_ci;
	*rq_idx = qp->rq_ci;
}

void hw_qp_progress(const struct hw_qp *qp, struct hw_qp_progress *out)
{
	*out = (struct hw_qp_progress){
		.type = qp->type,
		.pdn = qp->pdn,
		.sq_done = qp->sq_ci,
		.sq_fetched = qp->sq_fetched,
		.sq_enabled = qp->sq_pi,
		.rq_done = qp->rq_ci,
		.sq_wqebbs = qp->sq_wqebbs,
		.rq_wqes = qp->rq_wqes,
		.wait_cq = qp->run_state == HW_RUN_WAIT ? qp->wait_cq : NULL,
		.wait_index = qp->wait_index,
		.pauses = qp->run_state == HW_RUN_TIMED,
	};
}

void hw_qp_event(struct hw_qp *qp, int event)
{
	if (qp->on_event)
		qp->on_event(qp->arg, event);
}

/* ---- what the SQ is doing ---------------------------------------------------------------- */

void hw_qp_fetch(struct hw_qp *qp, uint16_t to)
{
	uint32_t group = qp->fetch_group, n, ahead = (uint16_t)(qp->sq_fetched - qp->sq_ci);
	uint32_t slot = qp->sq_fetched & (qp->sq_wqebbs - 1);

	if ((int16_t)(to - qp->sq_fetched) <= 0 || ahead >= qp->sq_wqebbs)
		return;
	n = (uint16_t)(((to + group - 1) & ~(group - 1)) - qp->sq_fetched);
	if (n > qp->sq_wqebbs - ahead)
		n = qp->sq_wqebbs - ahead;
	qp->sq_fetched = (uint16_t)(qp->sq_fetched + n);
	while (n) {
		uint32_t run = n < qp->sq_wqebbs - slot ? n : qp->sq_wqebbs - slot;
		const uint8_t *from = qp->sq + (size_t)slot * WQE_BB, *end = from + (size_t)run * WQE_BB;
		uint8_t *p = qp->shadow + (size_t)slot * WQE_BB;

		for (; from != end; from += WQE_BB, p += WQE_BB)
			memcpy(p, from, WQE_BB);
		n -= run;
		slot = 0;
	}
}

/* When enabled WQEBBs are fetched is the silicon's choice: mostly at once, here. */
static void fetch_early(struct hw_qp *qp)
{
	int16_t ahead = (int16_t)(qp->sq_pi - qp->sq_fetched);
	uint32_t luck;

	if (qp->dev->cfg.lenient || ahead <= 0)
		return;
	luck = hw_pick(qp->dev, 4);
	hw_qp_fetch(
		qp, luck ? qp->sq_pi : (uint16_t)(qp->sq_fetched + hw_pick(qp->dev, (uint32_t)ahead + 1)));
}

/* if it is in RTS and has WQEs that are enabled */
static void qp_start(struct hw_qp *qp)
{
	if (qp->state != HW_RTS || qp->sq_ci == qp->sq_pi)
		return;
	fetch_early(qp);
	if (qp->run_state == HW_RUN_IDLE)
		hw_qp_set_run(qp, HW_RUN_READY);
}

/* VENDOR_FLUSH: as seen in bug reports. BROKEN_AT_ONCE: a pass looks at so many queues in ERR */
enum { VENDOR_FLUSH = 0xf9, BROKEN_AT_ONCE = 64 };

/* Flushes send WQEs that are enabled. The index runs over the ring, not over the shadow: WQEs that were not
 * executed have no other owner now. */
static void qp_flush_sq(struct hw_qp *qp)
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

void hw_qp_enable(struct hw_qp *qp, uint16_t pi, const struct hw_wqe *by)
{
	uint16_t ahead = (uint16_t)(pi - qp->sq_pi);

	if (by && ahead >= 0x8000 && hw_fact(qp->dev, PROFILE_BEHIND) == PROFILE_BEHIND_AROUND) {
		pi = (uint16_t)(qp->sq_ci + qp->sq_wqebbs);
		ahead = (uint16_t)(pi - qp->sq_pi);
	}
	if (!qp->sq || !ahead || ahead >= 0x8000 || qp->state == HW_RST)
		return;
	if (qp->clock && by)
		hw_clock_enabled(qp, pi, by);
	else if (qp->clock)
		hw_clock_rung(qp, pi);
	qp->sq_pi = pi;
	if (qp->state == HW_ERR || qp->state == HW_SQER)
		qp_flush_sq(qp);
	else
		qp_start(qp);
}

void hw_qp_enable_recv(struct hw_qp *qp, uint16_t pi)
{
	uint16_t ahead = (uint16_t)(pi - qp->rq_enabled);

	if (qp->rq && qp->state != HW_RST && ahead && ahead < 0x8000)
		qp->rq_enabled = pi;
}

void hw_qp_read_sq_doorbell(struct hw_qp *qp)
{
	if (hw_qp_has_doorbell(qp))
		hw_qp_enable(qp, (uint16_t)hw_db_read(&qp->db[1]), NULL);
}

void hw_qp_rung(struct hw_qp *qp)
{
	uint64_t doorbell = hw_fact(qp->dev, PROFILE_DOORBELL);

	if (!qp->cd_send)
		hw_qp_read_sq_doorbell(qp);
	else if (qp->state != HW_RST && doorbell == PROFILE_DOORBELL_ERROR)
		hw_qp_fail(qp, HW_ERR, HW_EV_QP_FATAL);
	else if (qp->sq && doorbell == PROFILE_DOORBELL_MOVES)
		hw_qp_enable(qp, (uint16_t)hw_db_read(&qp->db[1]), NULL);
}

uint16_t hw_qp_recvs(const struct hw_qp *qp)
{
	uint16_t pi;

	if (qp->srq)
		return hw_srq_posted(qp->srq);
	if (!qp->rq)
		return 0;
	pi = qp->cd_recv ? qp->rq_enabled : (uint16_t)hw_db_read(&qp->db[0]);
	return (uint16_t)(pi - qp->rq_ci);
}

const uint8_t *hw_qp_take_recv(struct hw_qp *qp)
{
	size_t off = (size_t)(qp->rq_ci & (qp->rq_wqes - 1)) * qp->rq_stride;
	uint16_t to = (uint16_t)(qp->rq_ci + 1), posted;

	if (!qp->dev->cfg.lenient && hw_pick(qp->dev, 4) == 0) { /* some of those behind it come along */
		posted = hw_qp_recvs(qp);
		if (posted > MAX_RECV_AHEAD)
			posted = MAX_RECV_AHEAD;
		if (posted > qp->rq_wqes)
			posted = (uint16_t)qp->rq_wqes;
		to = (uint16_t)(qp->rq_ci + 1 + hw_pick(qp->dev, posted));
	}
	to = (uint16_t)((to + qp->recv_group - 1u) & ~(qp->recv_group - 1u));
	if ((uint16_t)(to - qp->rq_ci) > qp->rq_wqes)
		to = (uint16_t)(qp->rq_ci + qp->rq_wqes);
	while ((int16_t)(to - qp->rq_fetched) > 0) {
		size_t at = (size_t)(qp->rq_fetched & (qp->rq_wqes - 1)) * qp->rq_stride;

		memcpy(qp->rq_shadow + at, qp->rq + at, qp->rq_stride);
		qp->rq_fetched++;
	}
	qp->rq_ci++;
	return qp->rq_shadow + off;
}

/* Whether nothing else is under way when @cqe is written. */
static bool is_last(struct hw_qp *qp, const struct hw_cqe *cqe)
{
	if (cqe->opcode == CQE_OP_REQ || cqe->syndrome)
		return qp->sq_ci == qp->sq_pi;
	if (qp->unanswered)
		qp->unanswered--;
	return !qp->unanswered;
}

void hw_qp_complete(struct hw_qp *qp, struct hw_cq *cq, const struct hw_cqe *cqe)
{
	const bool last = is_last(qp, cqe);

	if (hw_cq_push(cq, cqe))
		qp->dev->answers += last && !cq->oi && !qp->clock && hw_cq_holds_one(cq);
	else if (qp->state != HW_ERR)
		hw_qp_fail(qp, HW_ERR, HW_EV_QP_FATAL);
}

/* ---- flush ------------------------------------------------------------------------------ */

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
	qp_flush_sq(qp);
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
	qp_leave_broken(qp);
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
		qp_start(qp);
	} else if (to == HW_SQD && from != HW_SQD) {
		hw_exec_finish(qp);
		hw_qp_drain(qp);
	}
	return 0;
}
