/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/exec.h"

#include "softcx/hw/clock.h"
#include "softcx/hw/fault.h"
#include "softcx/hw/inflight.h"
#include "softcx/hw/pu.h"
#include "softcx/hw/resp.h"
#include "softcx/hw/turns.h"
#include "util/clock.h"

#include <string.h>

/* Whether each part of a message of @w moves in its turn. Those of a SEND are only paid for. */
static inline bool hw_segment_moves(const struct hw_wqe *w)
{
	return w->opcode == WQE_OP_WRITE || w->opcode == WQE_OP_WRITE_IMM || w->opcode == WQE_OP_READ;
}

/* Bytes up to the end of the share, in whole packets */
static uint32_t room(const struct hw_qp *qp)
{
	uint64_t left = hw_turns_has_share(qp) ? HW_SHARE - (qp->account - qp->dev->round) : 0;
	uint32_t bytes = (uint32_t)left * HW_DATA_UNIT / HW_PACKET * HW_PACKET;

	if (qp->dev->nready == 1)
		return HW_SEGMENT_ALONE;
	return bytes ? bytes : HW_PACKET;
}

bool hw_segment_end(struct hw_wqe *w)
{
	const struct hw_qp *qp = w->qp;
	uint32_t most;

	if (qp->clock || hw_split_is_due(qp))
		return true;
	most = room(qp);
	if (w->part <= most)
		return true;
	w->part = most;
	return false;
}

void hw_segment_advance(struct hw_span *spans, unsigned *n, uint32_t bytes)
{
	unsigned first = 0;

	while (first < *n && spans[first].len <= bytes)
		bytes -= spans[first++].len;
	*n -= first;
	memmove(spans, spans + first, *n * sizeof(*spans));
	if (spans->host)
		spans->host += bytes;
	spans->va += bytes;
	spans->len -= bytes;
}

enum {
	MAX_RETRY_NS =
		100000000, /* longest pause before a retry; timeouts of 4 s would only slow programs down */
	RETRY_FOREVER = 7,
};

/* ---- outcome ---------------------------------------------------------------------------- */

static struct hw_cqe cqe_of(const struct hw_wqe *w)
{
	return (struct hw_cqe){
		.opcode = CQE_OP_REQ,
		.user_index = w->qp->user_index,
		.real_time = w->qp->real_time,
		.byte_cnt = w->bytes,
		.sop_qpn = (uint32_t)w->opcode << 24 | w->qp->qpn,
		.wqe_counter = w->idx,
		.at = w->done,
	};
}

/* What the record of a WQE has to say besides its bytes */
static uint32_t trace_number(const struct hw_wqe *w, enum hw_trace_kind kind, uint8_t syndrome)
{
	enum hw_lost why = HW_LOST_ELSEWHERE;

	if (kind == HW_TRACE_BLOCKED)
		return w->qp->wait_index & 0xffffff;
	if (syndrome == CQE_SYND_RETRY)
		hw_route(w->qp->dev, &w->qp->mod.av, &why);
	return why;
}

static void trace(const struct hw_wqe *w, enum hw_trace_kind kind, uint8_t syndrome)
{
	struct hw_trace t = {
		.kind = (uint8_t)kind,
		.qpn = w->qp->qpn,
		.idx = w->idx,
		.opcode = w->opcode,
		.opmod = w->opmod,
		.syndrome = syndrome,
		.type = (uint8_t)w->qp->type,
		.ds = w->ds,
		.cqn = kind == HW_TRACE_BLOCKED ? w->qp->wait_cq->cqn : 0,
		.number = trace_number(w, kind, syndrome),
		.wqe = w->p,
	};

	w->qp->dev->trace(w->qp->dev->trace_arg, &t);
}

/* One for every packet of @bytes of the request, or of the response to a READ: IB 9.7. */
static void advance_psn(const struct hw_wqe *w, uint32_t bytes)
{
	struct hw_qp_mod *mod = &w->qp->mod;
	uint32_t packets = 1;

	if (!w->peer || (w->qp->type != HW_RC && w->qp->type != HW_UC))
		return;
	if (mod->mtu && bytes > mod->mtu)
		packets = (bytes + mod->mtu - 1) / mod->mtu;
	mod->sq_psn = (mod->sq_psn + packets) & 0xffffff;
	w->peer->mod.rq_psn = mod->sq_psn;
}

static void succeed(struct hw_wqe *w)
{
	struct hw_qp *qp = w->qp;
	const uint32_t left = w->bytes - qp->moved;
	struct hw_cqe cqe;

	qp->in_retry = false;
	if (qp->clock)
		hw_clock_issued(w);
	advance_psn(w, hw_segment_moves(w) ? left : w->bytes);
	if (qp->rate && w->opcode != WQE_OP_READ)
		hw_rate_charge(qp->rate, w->bytes, qp->clock ? w->at / 1000 : clock_ns());
	qp->dev->total.wqes++;
	hw_turns_charge(qp, w->opcode == WQE_OP_NOP ? 1 : w->ds, left);
	qp->moved = 0;
	qp->dev->total.bytes += w->bytes;
	if (__builtin_expect(qp->dev->trace != NULL, 0))
		trace(w, HW_TRACE_WQE, 0);
	if (!w->cqe)
		return;
	cqe = cqe_of(w);
	if (w->inl) {
		cqe.inl = w->inl_data;
		cqe.inl_len = w->bytes;
	}
	hw_inflight_complete(qp, &cqe);
}

static void fail_peer(struct hw_wqe *w, int fault)
{
	/* A target outlives what its initiators do; assumed */
	if ((fault & HW_FAULT_PEER) && w->peer->type != HW_DCT)
		hw_qp_fail(w->peer, HW_ERR,
			fault & HW_FAULT_PEER_ACCESS ? HW_EV_QP_ACCESS_ERR
			: fault & HW_FAULT_PEER_REQ  ? HW_EV_QP_REQ_ERR
						     : 0);
}

static void fail(struct hw_wqe *w, int fault)
{
	struct hw_qp *qp = w->qp;
	struct hw_cqe cqe = cqe_of(w);

	qp->in_retry = false;
	qp->moved = 0;
	if (qp->clock) {
		hw_clock_issued(w);
		cqe.at = w->done;
	}
	hw_inflight_land(qp);
	if (qp->dev->trace)
		trace(w, HW_TRACE_WQE, fault & 0xff);
	cqe.opcode = CQE_OP_REQ_ERR;
	cqe.syndrome = fault & 0xff;
	cqe.vendor = fault >> 8 & 0xff;
	cqe.byte_cnt = 0;
	hw_qp_complete(qp, qp->scq, &cqe);
	/* IB 10.3.1: an unconnected or unreliable queue goes on receiving */
	hw_qp_fail(qp, hw_qp_is_reliable(qp) ? HW_ERR : HW_SQER, 0);
	fail_peer(w, fault);
}

/*
 * Nobody took the packet of an RC queue. The counters are those since the last acknowledgement: neither a
 * loss nor an RNR NAK reloads any (Linux sw/rxe rxe_comp.c, hw/hfi1 rc.c do_rc_ack). False: the WQE has
 * failed.
 */
static bool retry(struct hw_wqe *w, int why)
{
	struct hw_qp *qp = w->qp;
	uint64_t ns;

	if (!qp->in_retry) {
		qp->in_retry = true;
		qp->rnr_left = qp->mod.rnr_retry;
		qp->retry_left = qp->mod.retry_cnt;
	}
	if (why == HW_EXEC_RNR) {
		if (qp->mod.rnr_retry != RETRY_FOREVER && qp->rnr_left-- == 0) {
			fail(w, HW_FAULT(CQE_SYND_RNR_RETRY, HW_VENDOR_RNR));
			return false;
		}
		hw_qp_pause(qp, hw_resp_rnr_ns(w->peer->mod.min_rnr_timer));
		return true;
	}
	if (qp->mod.timeout && qp->retry_left-- == 0) { /* a timeout of 0 means to wait for ever */
		fail(w, HW_FAULT(CQE_SYND_RETRY, HW_VENDOR_RETRY));
		return false;
	}
	ns = qp->mod.timeout ? 4096ull << (qp->mod.timeout & 31) : MAX_RETRY_NS;
	hw_qp_pause(qp, ns < MAX_RETRY_NS ? ns : MAX_RETRY_NS);
	return true;
}

/* ---- one WQE ---------------------------------------------------------------------------- */

/* Makes sure that [sq_ci, to) is fetched; how much more comes along is the silicon's choice. */
static inline void fetch_for(struct hw_qp *qp, uint16_t to)
{
	struct hw_dev *dev = qp->dev;

	if ((int16_t)(to - qp->sq_fetched) <= 0)
		return;
	if (!dev->cfg.lenient && hw_pick(dev, 2))
		to = qp->sq_pi;
	hw_qp_fetch(qp, to);
}

/* Failures that an unreliable requester does not notice: lost packets and the responder's objections. */
static bool unnoticed(int result)
{
	return result < 0 || (result & 0xff) >= CQE_SYND_REMOTE_INVAL;
}

static bool must_pause(struct hw_qp *qp)
{
	uint64_t due = hw_rate_due(qp->rate);

	if (due <= clock_ns())
		return false;
	qp->due = due;
	hw_qp_set_run(qp, HW_RUN_TIMED);
	return true;
}

/*
 * Reads the WQE at the head of the send queue. @linear: room for one that wraps the ring. False: its index,
 * queue number or length is wrong.
 */
static bool decode(struct hw_qp *qp, struct hw_wqe *w, uint8_t linear[static WQE_MAX_BBS * WQE_BB])
{
	const struct hw_config *cfg = &qp->dev->cfg;
	uint32_t slot = qp->sq_ci & (qp->sq_wqebbs - 1), op, qpn_ds;
	uint16_t left = (uint16_t)(qp->sq_pi - qp->sq_ci);

	fetch_for(qp, (uint16_t)(qp->sq_ci + 1));
	w->qp = qp;
	w->p = qp->shadow + (size_t)slot * WQE_BB;
	w->idx = qp->sq_ci;
	w->peer = NULL;
	w->bytes = 0;
	w->at = w->done = 0;
	w->inl = false;
	op = wqe_get32(w->p + WQE_OPMOD);
	qpn_ds = wqe_get32(w->p + WQE_QPN_DS);
	w->opcode = (uint8_t)op;
	w->opmod = (uint8_t)(op >> 24);
	w->ds = qpn_ds & WQE_MAX_DS;
	w->fm_ce_se = w->p[WQE_FLAGS];
	w->cqe = (w->fm_ce_se >> WQE_CE_SHIFT & 3) >= WQE_CE_ALWAYS;
	w->bbs = (uint8_t)(w->ds ? (w->ds + 3u) / 4 : 1);
	if (!w->ds || w->ds > qp->dev->max_ds || w->bbs > left || w->bbs > qp->sq_wqebbs ||
		((op >> 8 & 0xffff) != w->idx && !cfg->no_index_check) ||
		(qpn_ds >> 8 != qp->qpn && !cfg->no_qpn_check)) {
		w->ds = w->ds > 4 ? 4 : w->ds; /* the rest was not fetched */
		return false;
	}
	w->prompt = w->cqe && w->bbs == left;
	if (w->bbs > 1)
		fetch_for(qp, (uint16_t)(qp->sq_ci + w->bbs));
	if (slot + w->bbs > qp->sq_wqebbs) {
		size_t head = (size_t)(qp->sq_wqebbs - slot) * WQE_BB;

		memcpy(linear, w->p, head);
		memcpy(linear + head, qp->shadow, w->bbs * WQE_BB - head);
		w->p = linear;
	}
	return true;
}

/* Lets the effects land that the fence of @w waits for. */
static void fence(const struct hw_wqe *w)
{
	switch (w->fm_ce_se >> WQE_FM_SHIFT) {
	case WQE_FM_STRONG:
		hw_inflight_land(w->qp);
		break;
	case WQE_FM_FENCE:
	case WQE_FM_SMALL_AND_FENCE:
		hw_inflight_land_reads(w->qp);
		break;
	}
}

/*
 * Executes @w, unless a fault strikes it. Returns as hw_op_exec() does; the queue is not ready any more when
 * a fault paused it, or when @w made it fail: a queue may be connected to itself.
 */
static int execute(struct hw_wqe *w)
{
	struct hw_qp *qp = w->qp;
	int ret = 0;

	if (qp->clock)
		hw_clock_start(w);
	if (__builtin_expect(qp->dev->faults_armed || qp->delayed, 0) && !qp->moved) {
		ret = hw_fault_meet(w);
		if (ret || qp->run_state != HW_RUN_READY)
			return ret;
	}
	if (qp->clock)
		hw_clock_issue(w);
	return hw_op_exec(w);
}

/* A part of its message has been moved, which the peer has acknowledged, or has only been paid for */
static void move_on(const struct hw_wqe *w)
{
	struct hw_qp *qp = w->qp;

	qp->moved += w->part;
	hw_turns_charge(qp, 0, w->part);
	if (!hw_segment_moves(w))
		return;
	qp->in_retry = false;
	advance_psn(w, w->part);
}

/* Takes @w off the queue with its result, or leaves it there to be executed again. */
static void retire(struct hw_wqe *w, int ret)
{
	struct hw_qp *qp = w->qp;

	if (ret == HW_EXEC_PART) {
		move_on(w);
		return;
	}
	if (ret == HW_EXEC_STOP) {
		if (qp->dev->trace)
			trace(w, HW_TRACE_BLOCKED, 0);
		hw_qp_set_run(qp, HW_RUN_WAIT);
		return;
	}
	qp->sq_ci = (uint16_t)(qp->sq_ci + w->bbs);
	if (ret && !hw_qp_is_reliable(qp) && unnoticed(ret)) {
		if (ret > 0)
			fail_peer(w, ret);
		ret = 0;
	}
	if (ret > 0)
		fail(w, ret);
	else if (!ret)
		succeed(w);
	else if (retry(w, ret))
		qp->sq_ci = w->idx;
}

bool hw_exec_step(struct hw_qp *qp)
{
	uint8_t linear[WQE_MAX_BBS * WQE_BB];
	struct hw_wqe w;
	int ret;

	if (__builtin_expect(qp->rate != NULL, 0) && !qp->clock && must_pause(qp))
		return true;
	if (!decode(qp, &w, linear)) {
		qp->sq_ci++;
		fail(&w, HW_FAULT(CQE_SYND_LOCAL_QP_OP, HW_VENDOR_WQE));
		return true;
	}
	if (__builtin_expect(qp->dev->pu != NULL, 0) && !hw_pu_claim(qp->dev->pu, hw_op_pus(&w)))
		return false;
	if (!(qp->dev->cfg.no_sync_fence && hw_wait_is_sync(w.opcode)))
		fence(&w);
	/* A CQE that landed found no room: the queue has failed and is flushed */
	if (qp->run_state != HW_RUN_READY)
		return true;
	ret = execute(&w);
	if (qp->run_state == HW_RUN_READY)
		retire(&w, ret);
	return !qp->moved;
}

void hw_exec_finish(struct hw_qp *qp)
{
	while (qp->moved && qp->run_state == HW_RUN_READY)
		hw_exec_step(qp);
}
